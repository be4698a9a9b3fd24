#!/usr/bin/env bash
# What a namespace session looks like from inside and on the host, and what is refused.
. "$(dirname "$0")/../lib/e2e.sh"

# --- what is in reach -----------------------------------------------------------------------
is "the root holds nothing of the host" "$(sb -- sh -c 'ls -A /root /mnt /opt /srv /home 2>/dev/null | grep -c authorized')" 0
is "no host accounts" "$(sb -- sh -c 'grep -c . /etc/passwd')" 3
is "nothing writable but the known places" "$(sb -- sh -c '
	for d in / /etc /usr /var /var/lib /run /dev /sys /opt /home /proc/sys /mnt; do
		( : >"$d/sb-x" ) 2>/dev/null && echo "$d"; done')" ""
is "writable places" "$(sb -- sh -c 'for d in /tmp /var/tmp "$HOME" /dev/shm /run/user/$(id -u) .; do
	: >"$d/sb-x" || echo "$d"; rm -f "$d/sb-x"; done')" ""
is "mounts are nosuid" "$(sb -- sh -c 'grep -vc nosuid /proc/self/mounts')" 0
is "only devices without power" "$(sb -- sh -c 'cd /dev; for f in * pts/*; do [ -c "$f" ] && [ ! -L "$f" ] && echo "$f"; done | tr "\n" " "')" \
	"full null random tty urandom zero pts/ptmx "
is "PID 1 cannot be looked at" "$(sb -- sh -c 'ls -d /proc/1 2>&1 | grep -c "No such file"')" 1
is "no other process is seen" "$(sb -- sh -c 'ls /proc | grep -c "^[0-9]*$"' | awk '{ print ($1 <= 4) ? "few" : $1 }')" few
is "kernel files are empty" "$(sb -- sh -c 'cat /proc/kcore /proc/keys /proc/cmdline /proc/timer_list /proc/kallsyms 2>/dev/null | wc -c')" 0
is "kernel settings are frozen" "$(sb -- sh -c 'for f in kernel/core_pattern vm/drop_caches net/ipv4/ip_forward; do
	echo 1 2>/dev/null >/proc/sys/$f && echo $f; done; echo b 2>/dev/null >/proc/sysrq-trigger; true')" ""
is "sysfs shows processors only" "$(sb -- sh -c 'ls /sys /sys/devices /sys/devices/system | tr -s "\n" " "')" \
	"/sys: devices /sys/devices: system /sys/devices/system: cpu "
is "the number of processors is known" "$(sb -- getconf _NPROCESSORS_ONLN)" "$(getconf _NPROCESSORS_ONLN)"
is "no further user namespaces" "$(sb -- sh -c 'unshare -U true 2>/dev/null || echo refused')" refused
is "no signal to PID 1" "$(sb -- sh -c 'kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null; echo alive')" alive
is "only lo" "$(sb -- sh -c 'ls /proc/self/net >/dev/null; tail -n +3 /proc/net/dev | wc -l')" 1
is "lo is up" "$(sb -- python3 -c '
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); print("yes")')" yes
is "names of services resolve" "$(sb -- getent services https | tr -s ' ')" "https 443/tcp"
is "certificates are there" "$(sb -- sh -c 'test -e /etc/ssl/certs/ca-certificates.crt -o ! -e /usr/sbin/update-ca-certificates && echo yes')" yes

# --- mounts ---------------------------------------------------------------------------------
mkdir -p "$work/a/sub" "$work/b"; echo one >"$work/a/f"; echo two >"$work/b/f"
chmod -R a+rX "$work/a" "$work/b"; [ "$SB_WHO" = user ] && chown -R $uid_user:$uid_user "$work/a" "$work/b"
is "a mount inside a mount" "$(sb -m "$work/a:/w:rw" -m "$work/b:/w/sub:ro" -- cat /w/f /w/sub/f)" "one
two"
sb -m "$work/a:/w:rw" -m "$work/b:/w/none:ro" -- true 2>"$work/err"; like "a missing point inside a mount is refused" $? '^12[13]$'
like "and the message says what to do" "$(cat "$work/err")" '/w/none.*create it first'
is "and not made on the host" "$(ls "$work/a")" "f
sub"
sb -m "$work/b:/proc/x:ro" -- true 2>"$work/err"; unlike "reserved places are refused" $? '^0$'
is "a read-only mount stays so" "$(sb -m "$work/b:/w:ro" -- sh -c 'echo x 2>/dev/null >/w/f; mount -o remount,rw /w 2>/dev/null; echo y 2>/dev/null >/w/f; cat /w/f')" two
is "owner of new files on the host" "$(sb -m "$work/a:/w:rw" -- sh -c 'mkdir /w/d && : >/w/d/n' ; stat -c '%u' "$work/a/d/n")" "$(stat -c %u "$work/a")"
is "no set-id bits on the host's files" "$(sb -m "$work/a:/w:rw" -- sh -c 'cp /bin/true /w/t; chmod 4755 /w/t 2>/dev/null; chmod 2755 /w/t 2>/dev/null; true'
	stat -c %a "$work/a/t" | grep -Ec '^[0-7]{3}$')" 1
if [ "$SB_WHO" = root ]; then
	sb -- sleep "20.$$" & job=$! # a number that no other test has
	for _ in $(seq 1200); do pid=$(pgrep -fx "sleep 20.$$" | head -n 1); [ -n "$pid" ] && break; sleep 0.1; done
	like "no process of the session is root on the host" "$(awk '/^Uid/ { print $2 }' "/proc/$pid/status")" '^1[89][0-9]{8}$|^2[01][0-9]{8}$'
	kill "$(processes | awk '$2 == "sendbox" { print $1 }')"; wait $job 2>/dev/null
	install -d -m 700 "$work/secret"; echo s >"$work/secret/f"; chmod 600 "$work/secret/f"
	chown 12345 "$work/secret" "$work/secret/f"
	is "only the owner's files are the user's" "$(sb -m "$work:/w:ro" -- sh -c 'cat /w/secret/f 2>/dev/null || echo refused')" refused
fi

# --- limits ---------------------------------------------------------------------------------
if [ "$SB_WHO" = root ] && [ -w /sys/fs/cgroup ]; then
	sb --memory 64m -- python3 -c 'b = bytearray(400 << 20)' 2>/dev/null; is "memory limit" $? 137
	is "process limit" "$(sb --pids 20 -- python3 -c '
import os
n = 0
try:
    for i in range(40):
        if os.fork() == 0:
            import time; time.sleep(5); os._exit(0)
        n += 1
except OSError:
    pass
print("limited" if n < 20 else n)')" limited
	is "no control group is left" "$(find /sys/fs/cgroup -maxdepth 4 -name 'sendbox-*' 2>/dev/null)" ""
elif [ "$SB_WHO" = user ]; then
	sb --memory 64m -- true 2>"$work/err"; st=$?
	[ $st = 0 ] || like "a limit that cannot be had is refused with the remedy" "$(cat "$work/err")" 'systemd-run'
fi
is "disk limit" "$(sb --disk 16m -- sh -c 'head -c 40000000 /dev/zero 2>/dev/null >/tmp/f; [ "$(stat -c %s /tmp/f)" -le 16777216 ] && echo yes')" yes

# --- life -----------------------------------------------------------------------------------
is "no process is left" "$(processes_left)" ""
is "no mount is left" "$(grep -c "$work" /proc/self/mounts)" 0
finish
