# Sourced after e2e.sh by the network tests. Root only: two network namespaces stand for the host
# on which sendbox runs and for the rest of the world; a veth pair joins them and nothing joins
# them to the machine's own network.
#
#   host   45.33.32.1/24 2606:4700:10::1/64; loopback services on 5432 and 8888
#   world  45.33.32.2 (router), resolver 45.33.32.53; web 93.184.216.34 and 2606:2800:220:1::34;
#          another site 93.184.216.66; 8.8.8.8; a LAN 10.20.0.5; 100.64.9.9; metadata 169.254.169.254
#
# Names: web, api, cname.example.com -> web server; evil.example.net -> the other site; lan, meta,
# loop, self, cgnat, six.example.com; flip.example.com (world_flip ADDRESS); *.wild.example.com.
if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP needs root: network namespaces that stand for the internet"
	exit 0
fi
world=$work/world
mkdir -p "$world/www"
chmod 755 "$work" "$world"
tag=$(basename "$work" | tr -dc A-Za-z0-9)
ns_host=sbh-$tag
ns_world=sbw-$tag
world_pids=

world_down() {
	local p
	for p in $world_pids; do kill "$p" 2>/dev/null; done
	for p in $world_pids; do wait "$p" 2>/dev/null; done
	ip netns del "$ns_host" 2>/dev/null
	ip netns del "$ns_world" 2>/dev/null
	rm -rf "$work"
}
trap world_down EXIT

# in_world CMD..., in_host CMD...: the latter with the test's resolv.conf
in_world() { nsenter --net="/run/netns/$ns_world" "$@"; }
in_host() {
	nsenter --net="/run/netns/$ns_host" unshare -m --propagation slave \
		sh -c 'mount --bind "$0/resolv.conf" /etc/resolv.conf && mount --bind "$0/hosts" /etc/hosts && exec "$@"' "$world" "$@"
}
world_bg() { # CMD...: a server of the world
	(trap - EXIT; exec nsenter --net="/run/netns/$ns_world" "$@") >>"$world/log" 2>&1 &
	world_pids="$world_pids $!"
}
wait_for() { # FILE
	for _ in $(seq 1200); do [ -e "$1" ] && return 0; sleep 0.1; done
	echo "Bail out! $1 did not appear"; cat "$world/log"; exit 1
}
wait_port() { # NS PORT
	for _ in $(seq 100); do
		nsenter --net="/run/netns/$1" bash -c "exec 3<>/dev/tcp/${3:-127.0.0.1}/$2" 2>/dev/null && return 0
		sleep 0.1
	done
	echo "Bail out! port $2 does not answer"; cat "$world/log"; exit 1
}

world_links() {
	local a
	ip netns add "$ns_host"; ip netns add "$ns_world"
	ip -n "$ns_host" link add h0 type veth peer name w0 netns "$ns_world"
	ip -n "$ns_host" link set lo up; ip -n "$ns_world" link set lo up
	ip -n "$ns_host" addr add 45.33.32.1/24 dev h0
	ip -n "$ns_host" addr add 2606:4700:10::1/64 dev h0 nodad
	ip -n "$ns_world" addr add 45.33.32.2/24 dev w0
	ip -n "$ns_world" addr add 45.33.32.53/24 dev w0
	ip -n "$ns_world" addr add 2606:4700:10::2/64 dev w0 nodad
	ip -n "$ns_host" link set h0 up; ip -n "$ns_world" link set w0 up
	ip -n "$ns_host" route add default via 45.33.32.2
	ip -n "$ns_host" -6 route add default via 2606:4700:10::2
	for a in 93.184.216.34 93.184.216.66 8.8.8.8 1.1.1.1 10.20.0.5 100.64.9.9 169.254.169.254; do
		ip -n "$ns_world" addr add "$a/32" dev lo
	done
	for a in 2606:2800:220:1::34 fd00:ec2::254 fd12:3456::5; do
		ip -n "$ns_world" addr add "$a/128" dev lo nodad
	done
}

world_certificates() {
	local k=$world/www
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=Test CA" \
		-keyout "$world/ca.key" -out "$world/ca.pem" 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=web.example.com" \
		-keyout "$world/srv.key" -out "$world/srv.csr" 2>/dev/null
	printf 'subjectAltName=DNS:*.example.com,DNS:example.com,DNS:*.example.net,DNS:*.wild.example.com,IP:93.184.216.34\n' >"$world/san"
	openssl x509 -req -in "$world/srv.csr" -CA "$world/ca.pem" -CAkey "$world/ca.key" -CAcreateserial -days 30 \
		-extfile "$world/san" -out "$world/srv.pem" 2>/dev/null
	cp "$world/ca.pem" "$k/ca.pem"
	chmod 644 "$world/ca.pem" "$k/ca.pem"
}

world_nginx() {
	cat >"$world/nginx.conf" <<-C
		daemon off; master_process off; pid $world/nginx.pid; error_log $world/nginx.err crit;
		events { worker_connections 4096; }
		http {
		 access_log $world/access.log combined; client_body_temp_path $world/t1; proxy_temp_path $world/t2;
		 fastcgi_temp_path $world/t3; uwsgi_temp_path $world/t4; scgi_temp_path $world/t5;
		 keepalive_timeout 60; keepalive_requests 100000; sendfile on; tcp_nopush on; types { }
		 server { listen 80 backlog=1024; listen [::]:80; listen 443 ssl http2; listen [::]:443 ssl http2; server_name _;
		  ssl_certificate $world/srv.pem; ssl_certificate_key $world/srv.key;
		  add_header Alt-Svc 'h3=":443"; ma=60' always;
		  location = /who { default_type text/plain; return 200 "\$server_addr \$http_host \$ssl_server_name \$server_protocol\n"; }
		  location /simple/ { root $world/www; index index.html; default_type text/html; }
		  location / { root $world/www; } } }
	C
	world_bg nginx -c "$world/nginx.conf"
}

world_dns() {
	cat >"$world/example.com.zone" <<-C
		\$ORIGIN example.com.
		\$TTL 5
		@ SOA ns.example.com. root.example.com. 1 60 60 3600 5
		@ NS ns
		ns A 127.0.0.1
		web A 93.184.216.34
		web TXT "hello"
		api A 93.184.216.34
		both A 93.184.216.34
		both AAAA 2606:2800:220:1::34
		six AAAA 2606:2800:220:1::34
		lan A 10.20.0.5
		cgnat A 100.64.9.9
		meta A 169.254.169.254
		loop A 127.0.0.1
		self A 45.33.32.1
		mapped AAAA ::ffff:10.20.0.5
		mixed A 10.20.0.5
		mixed A 93.184.216.34
		dead A 45.33.32.99
		dead A 93.184.216.34
		cname CNAME web
		ccevil CNAME evil.example.net.
		cclan CNAME lan
		loop1 CNAME loop2
		loop2 CNAME loop1
		*.wild A 93.184.216.34
	C
	for i in $(seq 60); do echo "many A 93.184.217.$i"; echo "many TXT \"$(printf %0200d "$i")\""; done >>"$world/example.com.zone"
	cat >"$world/example.net.zone" <<-C
		\$ORIGIN example.net.
		\$TTL 5
		@ SOA ns.example.net. root.example.net. 1 60 60 3600 5
		@ NS ns
		ns A 127.0.0.1
		evil A 93.184.216.66
		*.evil A 93.184.216.66
	C
	cat >"$world/knot.conf" <<-C
		server:
		    rundir: "$world"
		    listen: 127.0.0.1@5300
		    user: root
		database:
		    storage: "$world"
		zone:
		  - domain: example.com
		    file: "$world/example.com.zone"
		  - domain: example.net
		    file: "$world/example.net.zone"
	C
	cat >"$world/unbound.conf" <<-C
		server:
		 interface: 45.33.32.53
		 access-control: 0.0.0.0/0 allow
		 do-daemonize: no
		 username: ""
		 chroot: ""
		 pidfile: "$world/unbound.pid"
		 use-syslog: no
		 log-queries: yes
		 logfile: "$world/queries.log"
		 module-config: "iterator"
		 do-not-query-localhost: no
		 local-zone: "." refuse
		 local-zone: "example.com." transparent
		 local-zone: "example.net." transparent
		 local-data: "flip.example.com. 1 A 93.184.216.34"
		stub-zone:
		 name: example.com
		 stub-addr: 127.0.0.1@5300
		stub-zone:
		 name: example.net
		 stub-addr: 127.0.0.1@5300
		remote-control:
		 control-enable: yes
		 control-interface: $world/unbound.sock
		 control-use-cert: no
	C
	world_bg knotd -c "$world/knot.conf"
	wait_port "$ns_world" 5300
	world_bg unbound -d -c "$world/unbound.conf"
}
# world_flip ADDRESS: what flip.example.com means from now on
world_flip() {
	unbound-control -c "$world/unbound.conf" local_data_remove flip.example.com >/dev/null
	unbound-control -c "$world/unbound.conf" local_data "flip.example.com. 1 A $1" >/dev/null
}

world_up() {
	echo "nameserver 45.33.32.53" >"$world/resolv.conf"
	printf '127.0.0.1 localhost\n::1 localhost\n' >"$world/hosts"
	world_links
	world_certificates
	echo "hello from the web" >"$world/www/index.html"
	: >"$world/udp.log"; : >"$world/http.log"
	world_nginx
	world_dns
	world_bg /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/net/world.py" world "$world"
	(trap - EXIT; exec nsenter --net="/run/netns/$ns_host" /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/net/world.py" host "$world") >>"$world/log" 2>&1 &
	world_pids="$world_pids $!"
	wait_for "$world/world.up"
	wait_for "$world/host.up"
	wait_for "$world/unbound.sock"
	wait_port "$ns_world" 80 93.184.216.34
}

# nb OPTIONS -- COMMAND: like sb, on the host of this world; standard error goes to $work/err, too
nb() {
	local status
	# shellcheck disable=SC2086
	in_host sh -c 'cd "$0" && exec "$@"' "$work/p" $(as_words) timeout -k 5 "${SB_LIMIT:-120}" "$sendbox" run --runtime "$SB_PROVIDER" $accel "$@" 2>"$work/err"
	status=$?
	grep -v 'shares the host' "$work/err" >&2
	return $status
}
as_words() {
	[ "$SB_WHO" = user ] && echo "setpriv --reuid=$uid_user --regid=$uid_user --clear-groups --inh-caps=-all env HOME=$work/p"
	return 0
}
