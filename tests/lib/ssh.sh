# Sourced after e2e.sh by the topics of the SSH agent: a real ssh-agent with three keys of the caller
# and two sshd on loopback, one with a host key that known_hosts has and one without.
#
# $ssh: folder. Ports: $port_good, $port_evil. Keys by comment: work, spare, rsa.
ssh=$work/ssh
mkdir -p "$ssh/home/.ssh"
chmod 755 "$ssh"
sshd_pids=
agent_pid=
ssh_down() {
	local p
	for p in $sshd_pids $agent_pid; do kill "$p" 2>/dev/null; done
	for p in $sshd_pids; do wait "$p" 2>/dev/null; done
	rm -rf "$work"
}
trap ssh_down EXIT
free_port() {
	/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
sshd_up() { # NAME PORT
	ssh-keygen -q -t ed25519 -N '' -f "$ssh/host-$1"
	[ "$SB_WHO" = user ] && chown $uid_user:$uid_user "$ssh/host-$1"
	cat >"$ssh/$1.conf" <<-C
		Port $2
		ListenAddress 127.0.0.1
		HostKey $ssh/host-$1
		AuthorizedKeysFile $ssh/authorized
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin yes
		PidFile none
	C
	(trap - EXIT; exec /usr/sbin/sshd -D -f "$ssh/$1.conf" -E "$ssh/$1.log") &
	sshd_pids="$sshd_pids $!"
}
mkdir -p /run/sshd 2>/dev/null
for k in work spare; do ssh-keygen -q -t ed25519 -N '' -C "$k" -f "$ssh/$k"; done
ssh-keygen -q -t rsa -b 2048 -N '' -C rsa -f "$ssh/rsa"
cat "$ssh"/*.pub >"$ssh/authorized"
port_good=$(free_port)
port_evil=$(free_port)
sshd_up good "$port_good"
sshd_up evil "$port_evil"
host=host.sendbox.internal
echo "[$host]:$port_good $(cut -d' ' -f1,2 "$ssh/host-good.pub")" >"$ssh/home/.ssh/known_hosts"
{ cat "$ssh/home/.ssh/known_hosts"; echo "[$host]:$port_evil $(cut -d' ' -f1,2 "$ssh/host-evil.pub")"; } >"$work/p/known_hosts"
chmod 644 "$work/p/known_hosts" "$ssh"/*.pub
[ "$SB_WHO" = user ] && chown -R $uid_user:$uid_user "$ssh/home" "$ssh/work" "$ssh/spare" "$ssh/rsa" && chmod 777 "$ssh"
export SSH_AUTH_SOCK=$ssh/agent.sock
eval "$(as ssh-agent -a "$SSH_AUTH_SOCK")" >/dev/null
agent_pid=$SSH_AGENT_PID
as ssh-add -q "$ssh/work" "$ssh/spare" "$ssh/rsa" || echo "Bail out! ssh-add"
for _ in $(seq 100); do
	(exec 3<>"/dev/tcp/127.0.0.1/$port_good") 2>/dev/null && (exec 3<>"/dev/tcp/127.0.0.1/$port_evil") 2>/dev/null && break
	sleep 0.1
done
login_user=root
[ "$(id -u)" = 0 ] || login_user=$(id -un)
# conf BODY: the configuration under test; both servers' ports are open
conf() {
	printf 'schema_version: 1\npolicy: {network: {host_ports: [%s, %s]}}\n%s\n' "$port_good" "$port_evil" "$1" >"$work/p/c.yaml"
	chmod 600 "$work/p/c.yaml"
	[ "$SB_WHO" = user ] && chown $uid_user "$work/p/c.yaml"
	return 0
}
# sa OPTIONS -- COMMAND: sb with that configuration, and with the caller's home
sa() {
	local h=$ssh/home
	if [ "$SB_WHO" = user ]; then
		setpriv --reuid=$uid_user --regid=$uid_user --clear-groups --inh-caps=-all env HOME="$h" \
			timeout -k 5 "${SB_LIMIT:-120}" "$sendbox" run --runtime "$SB_PROVIDER" $accel --config "$work/p/c.yaml" --trust-config "$@"
	else
		HOME=$h timeout -k 5 "${SB_LIMIT:-120}" "$sendbox" run --runtime "$SB_PROVIDER" $accel --config "$work/p/c.yaml" --trust-config "$@"
	fi
}
# in the guest: $remote PORT COMMAND
cat >"$work/p/remote" <<-C
	#!/bin/sh
	port=\$1; shift
	exec ssh -F none -o IdentityFile=none -o BatchMode=yes -o UserKnownHostsFile=$work/p/known_hosts -o ConnectTimeout=30 -p "\$port" $login_user@$host "\$@"
C
chmod 755 "$work/p/remote"
remote=$work/p/remote
