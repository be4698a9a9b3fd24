/*
 * The names of the gate without the gate: resolver and name server with a policy from the command
 * line, for 60-net-names. Prints "ports UDP TCP TAGGED UDP6", then one line an event; answers
 * commands on its standard input: "resolve NAME", "deny RULE", "local ADDRESS".
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "net/gate.h"

void conns_each(struct gate *g, void (*fn)(void *arg, const struct sb_ipc_net_flow *f), void *arg)
{
	(void)g;
	(void)fn;
	(void)arg;
}

int gate_amend(struct gate *g, const uint8_t signature[64], const char *bytes, size_t len,
	       struct sb_err *err)
{
	(void)g;
	(void)signature;
	(void)bytes;
	(void)len;
	return sb_err_set(err, -ENOSYS, "no");
}

void gate_fail(struct gate *g, const char *fmt, ...)
{
	va_list ap;

	(void)g;
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	_exit(3);
}

static struct gate g;
static struct sb_plan plan;
static int peer;
static struct sb_io peer_io;
static struct sb_io stdin_io;
static struct sb_io listen_io[2];
static char line[1024];
static size_t line_len;

static void check(bool ok, const char *what)
{
	if (!ok) {
		(void)fprintf(stderr, "net_names: %s\n", what);
		_exit(2);
	}
}

static int add(void *arg, const struct sb_net_rule *r)
{
	return sb_net_rule_add(arg, r);
}

static void rule(const char *text, bool deny)
{
	struct sb_err err = { 0 };

	if (sb_net_rule_parse(text, strlen(text), deny, "test", add, &plan.net, &err) < 0)
		check(false, err.text);
}

static void compile(void)
{
	struct sb_err err = { 0 };

	(void)sb_netpol_free(sb_take(&g.pol));
	if (sb_netpol_new(&plan.net, &g.pol, &err) < 0)
		check(false, err.text);
}

static struct ask {
	struct ask *next;
	struct resolve q;
	char name[1024];
} *asks;

static void ask_free(struct ask *a)
{
	struct ask **at = &asks;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	resolve_cancel(&a->q);
	free(a);
}

static void on_result(struct resolve *q, const struct resolve_result *res)
{
	struct ask *a = q->owner;

	(void)printf("result %s %s", a->name, sb_net_reason_name(res->reason));
	for (size_t i = 0; i < res->n; i++) {
		char text[SB_ADDR_TEXT];

		sb_addr_format(&res->addrs[i], text);
		(void)printf(" %s", text);
	}
	(void)printf("%s%s\n", res->culprit[0] ? " | " : "", res->culprit);
	ask_free(a);
}

static void command(const char *text)
{
	if (strncmp(text, "resolve ", 8) == 0) {
		struct ask *a = calloc(1, sizeof(*a));

		check(a != NULL, "memory");
		a->next = asks;
		asks = a;
		(void)snprintf(a->name, sizeof(a->name), "%s", text + 8);
		if (resolve_start(g.resolver, &a->q, a->name, on_result, a) < 0)
			check(false, "resolve_start");
	} else if (strncmp(text, "deny ", 5) == 0) {
		rule(text + 5, true);
		compile();
		(void)printf("denied\n");
	} else if (strncmp(text, "local ", 6) == 0) {
		struct sb_addr a;

		check(sb_addr_parse(text + 6, strlen(text + 6), &a) == 0, text);
		(void)printf("local %s %d\n", text + 6, route_is_local(g.route, &a));
	} else {
		check(false, text);
	}
}

static void on_stdin(struct sb_io *io, uint32_t events)
{
	ssize_t n = read(0, line + line_len, sizeof(line) - 1 - line_len);
	char *end;

	(void)io;
	(void)events;
	if (n <= 0) {
		sb_loop_stop(g.loop, 0);
		return;
	}
	line_len += (size_t)n;
	line[line_len] = '\0';
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		command(line);
		line_len -= (size_t)(end + 1 - line);
		memmove(line, end + 1, line_len + 1);
	}
}

static void on_peer(struct sb_io *io, uint32_t events)
{
	struct sb_ipc_msg m = { 0 };
	const struct sb_ipc_net_event *ev;
	size_t n;

	(void)io;
	(void)events;
	if (sb_ipc_recv(peer, &m) != 0)
		check(false, "the gate's end");
	n = sb_ipc_get_events(&m, &ev);
	check(n > 0, "event");
	for (; n > 0; n--, ev++)
		(void)printf("event %u %s %s %u %llu %s\n", ev->kind, ev->allow ? "allow" : "deny",
			     ev->allow ? "ok" :
					 sb_net_reason_name((enum sb_net_reason)ev->reason),
			     ev->dns_type, (unsigned long long)ev->count,
			     ev->name[0] ? ev->name : "-");
	sb_ipc_msg_done(&m);
}

static void on_accept(struct sb_io *io, uint32_t events)
{
	int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bool tagged = io == &listen_io[1];

	(void)events;
	if (fd < 0)
		return;
	if ((tagged ? dns_add_tagged(g.dns, &fd) : dns_add_tcp(g.dns, &fd)) < 0)
		sb_fd_close(&fd);
}

static uint16_t socket_at_loopback(int family, int type, int *ret)
{
	struct sockaddr_in s4 = { .sin_family = AF_INET };
	struct sockaddr_in6 s6 = { .sin6_family = AF_INET6 };
	bool v4 = family == AF_INET;
	struct sockaddr *sa = v4 ? (struct sockaddr *)&s4 : (struct sockaddr *)&s6;
	socklen_t len = v4 ? sizeof(s4) : sizeof(s6);
	int one = 1;
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (type == SOCK_STREAM)
		s4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* as in a sandbox, where every address is local; elsewhere it may fail */
	if (type == SOCK_DGRAM)
		(void)setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
				 v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, &one, sizeof(one));
	if (fd < 0 || bind(fd, sa, len) < 0 || getsockname(fd, sa, &len) < 0) {
		sb_fd_close(&fd);
		return 0;
	}
	if (type == SOCK_STREAM)
		check(listen(fd, 128) == 0, "listen");
	else
		check(setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
				 v4 ? IP_PKTINFO : IPV6_RECVPKTINFO, &one, sizeof(one)) == 0,
		      "pktinfo");
	*ret = fd;
	return ntohs(v4 ? s4.sin_port : s6.sin6_port);
}

static void serve(void)
{
	uint16_t port[4];
	int fd[4] = { -1, -1, -1, -1 };

	port[0] = socket_at_loopback(AF_INET, SOCK_DGRAM, &fd[0]);
	port[1] = socket_at_loopback(AF_INET, SOCK_STREAM, &fd[1]);
	port[2] = socket_at_loopback(AF_INET, SOCK_STREAM, &fd[2]);
	port[3] = socket_at_loopback(AF_INET6, SOCK_DGRAM, &fd[3]);
	check(port[0] && port[1] && port[2], "sockets");
	check(dns_add_udp(g.dns, &fd[0]) == 0, "dns_add_udp");
	if (fd[3] >= 0)
		check(dns_add_udp(g.dns, &fd[3]) == 0, "dns_add_udp");
	for (size_t i = 0; i < 2; i++)
		check(sb_io_set(g.loop, &listen_io[i], fd[1 + i], EPOLLIN, on_accept, NULL) == 0,
		      "loop");
	(void)printf("ports %u %u %u %u\n", port[0], port[1], port[2], port[3]);
}

static void options(int argc, char **argv)
{
	static char *resolvers[SB_NET_MAX_RESOLVERS + 1];
	static char *types[SB_NET_MAX_TYPES + 1];
	static struct sb_net_pin pins[16];
	size_t n_resolvers = 0;
	size_t n_types = 0;

	plan.net.mode = SB_NET_FILTER;
	for (int i = 1; i < argc; i++) {
		char *v = strchr(argv[i], '=');

		check(v != NULL, argv[i]);
		*v++ = '\0';
		if (strcmp(argv[i], "resolver") == 0 && n_resolvers < SB_NET_MAX_RESOLVERS)
			resolvers[n_resolvers++] = v;
		else if (strcmp(argv[i], "type") == 0 && n_types < SB_NET_MAX_TYPES)
			types[n_types++] = v;
		else if (strcmp(argv[i], "allow") == 0 || strcmp(argv[i], "deny") == 0)
			rule(v, argv[i][0] == 'd');
		else if (strcmp(argv[i], "open") == 0)
			plan.net.mode = SB_NET_OPEN;
		else if (strcmp(argv[i], "strict") == 0)
			plan.net.cname_strict = true;
		else if (strcmp(argv[i], "queries") == 0)
			plan.net.dns_queries = (uint32_t)strtoul(v, NULL, 10);
		else if (strcmp(argv[i], "new") == 0)
			plan.net.dns_new_names = (uint32_t)strtoul(v, NULL, 10);
		else if (strcmp(argv[i], "pin") == 0 && plan.net.n_pins < SB_ARRAY_LEN(pins)) {
			pins[plan.net.n_pins].name = v;
			pins[plan.net.n_pins].addr = strchr(v, ',');
			check(pins[plan.net.n_pins].addr != NULL, v);
			*pins[plan.net.n_pins++].addr++ = '\0';
		} else
			check(false, argv[i]);
	}
	plan.net.resolvers = resolvers;
	plan.net.dns_types = types;
	plan.net.pins = pins;
}

int main(int argc, char **argv)
{
	struct sb_err err = { 0 };
	int sv[2];
	int r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	check(sb_crypto_init() == 0 && sb_loop_new(&g.loop) == 0, "start");
	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0, "socketpair");
	check(route_open(&g.route) == 0, "route_open");
	g.ipc = sv[0];
	peer = sv[1];
	g.plan = &plan;
	memcpy(g.session, "0123456789abcdef0123456789abcdef", 33);
	options(argc, argv);
	compile();
	check(names_new(&g.names) == 0 && dns_new(&g, &g.dns) == 0, "new");
	if (resolver_new(&g, &g.resolver, &err) < 0)
		check(false, err.text);
	check(sb_io_set(g.loop, &peer_io, peer, EPOLLIN, on_peer, NULL) == 0 &&
		      sb_io_set(g.loop, &stdin_io, 0, EPOLLIN, on_stdin, NULL) == 0,
	      "loop");
	serve();
	r = sb_loop_run(g.loop);
	while (asks)
		ask_free(asks);
	g.dns = dns_free(g.dns);
	g.resolver = resolver_free(g.resolver);
	g.names = names_free(g.names);
	g.pol = sb_netpol_free(g.pol);
	events_done(&g);
	g.loop = sb_loop_free(g.loop);
	return r;
}
