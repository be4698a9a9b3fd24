/* Happy eyeballs against listeners on loopback, with a policy and a routing table of its own. */
#include "net/gate.h"
#include "t.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static const struct sb_net_rule rule_10 = { .deny = true };
static size_t judged; /* how many addresses the policy was asked about */

void sb_netpol_resolved(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
			struct sb_net_verdict *ret)
{
	(void)p;
	(void)port;
	judged++;
	*ret = (struct sb_net_verdict){ .allow = true };
	if (sb_addr_is_v4(a) && a->b[12] == 10)
		*ret = (struct sb_net_verdict){ .reason = SB_NET_ADDR_RESTRICTED, .rule = &rule_10 };
}

int route_is_local(int fd, const struct sb_addr *a)
{
	(void)fd;
	if (sb_addr_is_v4(a) && a->b[15] == 99)
		return 1; /* 127.x.x.99 stands for the host's own */
	return sb_addr_is_v4(a) && a->b[15] == 98 ? -EIO : 0;
}

struct run {
	struct gate g;
	struct dial *d;
	struct dial_result res;
	int calls;
	int before;
};

static void run_init(struct run *u)
{
	*u = (struct run){ .res.fd = -1, .before = t_open_fds() };
	sb_assert(sb_loop_new(&u->g.loop) == 0);
	judged = 0;
}

static void on_dialled(struct dial *d, struct dial_result *res)
{
	struct run *u = dial_owner(d);

	u->res = *res;
	u->d = NULL;
	u->calls++;
}

static void run_wait(struct run *u, unsigned int ms)
{
	uint64_t end = sb_now_ns() + ms * 1000000ULL;

	while (u->calls == 0 && sb_now_ns() < end)
		CHECK_EQ(sb_loop_turn(u->g.loop, 20), 0);
}

static void run_done(struct run *u)
{
	CHECK_EQ(sb_loop_turn(u->g.loop, 0), 0);
	sb_fd_close(&u->res.fd);
	u->g.loop = sb_loop_free(u->g.loop);
	CHECK_EQ(t_open_fds(), u->before);
}

static struct sb_addr addr(const char *text)
{
	struct sb_addr a = { { 0 } };

	sb_assert(sb_addr_parse(text, strlen(text), &a) == 0);
	return a;
}

/* A listener at @text; port 0 = any. Return: descriptor, or -1 when the family is not there. */
static int listener(const char *text, uint16_t *port, int backlog)
{
	struct sb_addr a = addr(text);
	struct sockaddr_in s4 = { .sin_family = AF_INET, .sin_port = htons(*port) };
	struct sockaddr_in6 s6 = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
	bool v4 = sb_addr_is_v4(&a);
	struct sockaddr *sa = v4 ? (struct sockaddr *)&s4 : (struct sockaddr *)&s6;
	socklen_t len = v4 ? sizeof(s4) : sizeof(s6);
	int one = 1;
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(&s4.sin_addr, a.b + 12, 4);
	memcpy(&s6.sin6_addr, a.b, 16);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, sa, len) < 0 || listen(fd, backlog) < 0 || getsockname(fd, sa, &len) < 0) {
		sb_fd_close(&fd);
		return -1;
	}
	*port = ntohs(v4 ? s4.sin_port : s6.sin6_port);
	return fd;
}

static void check_connected(const struct run *u, const char *want)
{
	char text[SB_ADDR_TEXT];
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	CHECK_EQ(u->calls, 1);
	CHECK_EQ(u->res.reason, SB_NET_OK);
	CHECK(u->res.fd >= 0);
	CHECK_EQ(getpeername(u->res.fd, (struct sockaddr *)&sa, &len), 0);
	sb_addr_format(&u->res.addr, text);
	CHECK_STR(text, want);
}

TEST(first_that_listens)
{
	/* .2 and .3 refuse, .4 listens; IPv6 goes first and refuses too */
	struct sb_addr addrs[] = { addr("127.0.0.2"), addr("127.0.0.3"), addr("127.0.0.4"),
				   addr("::1") };
	uint16_t port = 0;
	sb_autofd int fd = listener("127.0.0.4", &port, 8);
	struct run u;

	REQUIRE(fd >= 0);
	run_init(&u);
	CHECK_EQ(dial_start(&u.g, addrs, 4, port, false, on_dialled, &u, &u.d), 0);
	CHECK_EQ(u.calls, 0);
	run_wait(&u, 20000);
	check_connected(&u, "127.0.0.4");
	CHECK_EQ(judged, 4);
	run_done(&u);
}

TEST(six_before_four)
{
	struct sb_addr addrs[] = { addr("127.0.0.1"), addr("127.0.0.2"), addr("::1") };
	uint16_t port = 0;
	sb_autofd int six = listener("::1", &port, 8);
	sb_autofd int four = -1;
	struct run u;

	if (six < 0) {
		t_skip("no IPv6 here");
		return;
	}
	four = listener("127.0.0.1", &port, 8);
	REQUIRE(four >= 0);
	run_init(&u);
	CHECK_EQ(dial_start(&u.g, addrs, 3, port, false, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	check_connected(&u, "::1");
	CHECK_EQ(judged, 1); /* no address is judged before its turn */
	run_done(&u);
}

/* A listener whose queue is full swallows connects: the next address follows after 250 ms. */
TEST(silent_one_then_the_next)
{
	struct sb_addr addrs[] = { addr("127.0.0.5"), addr("127.0.0.6") };
	uint16_t port = 0;
	sb_autofd int silent = listener("127.0.0.5", &port, 0);
	sb_autofd int other = listener("127.0.0.6", &port, 8);
	int fill[4];
	struct run u;
	uint64_t start;
	uint64_t took;

	REQUIRE(silent >= 0 && other >= 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(fill); i++) {
		struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };

		sa.sin_addr.s_addr = htonl(0x7f000005);
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(fill[i], (const struct sockaddr *)&sa, sizeof(sa));
	}
	run_init(&u);
	start = sb_now_ns();
	CHECK_EQ(dial_start(&u.g, addrs, 2, port, false, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	took = (sb_now_ns() - start) / 1000000;
	check_connected(&u, "127.0.0.6");
	CHECK(took >= 240);
	run_done(&u);
	for (size_t i = 0; i < SB_ARRAY_LEN(fill); i++)
		sb_fd_close(&fill[i]);
}

TEST(refusals)
{
	static const struct {
		const char *text;
		enum sb_net_reason want;
		bool has_rule;
	} cases[] = {
		{ "10.0.0.1", SB_NET_ADDR_RESTRICTED, true },
		{ "127.0.0.99", SB_NET_ADDR_HOST, false },
		{ "127.0.0.98", SB_NET_ADDR_HOST, false }, /* the routing table cannot be asked */
		{ "127.0.0.7", SB_NET_CONNECT_FAILED, false },
	};
	uint16_t port = 0;
	sb_autofd int probe = listener("127.0.0.1", &port, 8); /* a port nobody else has */

	REQUIRE(probe >= 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		struct sb_addr a = addr(cases[i].text);
		struct run u;

		run_init(&u);
		CHECK_EQ(dial_start(&u.g, &a, 1, port, false, on_dialled, &u, &u.d), 0);
		run_wait(&u, 20000);
		CHECK_EQ(u.calls, 1);
		CHECK_EQ(u.res.fd, -1);
		CHECK_EQ(u.res.reason, cases[i].want);
		CHECK_EQ(u.res.rule != NULL, cases[i].has_rule);
		CHECK_MEM(&u.res.addr, &a, sizeof(a));
		if (cases[i].want == SB_NET_CONNECT_FAILED)
			CHECK_EQ(u.res.error, ECONNREFUSED);
		run_done(&u);
	}
}

/* The rebinding case: a refused address is passed over, the allowed one is taken. */
TEST(refused_ones_are_passed_over)
{
	struct sb_addr addrs[] = { addr("10.0.0.1"), addr("127.0.0.99"), addr("127.0.0.8") };
	uint16_t port = 0;
	sb_autofd int fd = listener("127.0.0.8", &port, 8);
	struct run u;

	REQUIRE(fd >= 0);
	run_init(&u);
	CHECK_EQ(dial_start(&u.g, addrs, 3, port, false, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	check_connected(&u, "127.0.0.8");
	run_done(&u);
}

TEST(judged_already_but_never_the_host)
{
	struct sb_addr addrs[] = { addr("127.0.0.99") };
	struct run u;

	run_init(&u);
	CHECK_EQ(dial_start(&u.g, addrs, 1, 9, true, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	CHECK_EQ(u.res.reason, SB_NET_ADDR_HOST);
	CHECK_EQ(judged, 0);
	run_done(&u);
}

TEST(no_address)
{
	struct run u;

	run_init(&u);
	CHECK_EQ(dial_start(&u.g, NULL, 0, 9, false, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	CHECK_EQ(u.res.reason, SB_NET_CONNECT_FAILED);
	CHECK_EQ(u.res.error, EHOSTUNREACH);
	run_done(&u);
}

TEST(port_of_the_host)
{
	uint16_t port = 0;
	sb_autofd int fd = listener("127.0.0.1", &port, 8);
	struct run u;

	REQUIRE(fd >= 0);
	run_init(&u);
	CHECK_EQ(dial_host(&u.g, port, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	check_connected(&u, "127.0.0.1");
	CHECK_EQ(judged, 0);
	run_done(&u);
	sb_fd_close(&fd);
	fd = listener("::1", &port, 8);
	if (fd < 0)
		return;
	run_init(&u);
	CHECK_EQ(dial_host(&u.g, port, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	check_connected(&u, "::1");
	run_done(&u);
}

TEST(cancelled)
{
	struct sb_addr a = addr("127.0.0.9");
	uint16_t port = 0;
	sb_autofd int fd = listener("127.0.0.9", &port, 8);
	struct run u;

	REQUIRE(fd >= 0);
	for (int turns = 0; turns < 2; turns++) {
		run_init(&u);
		CHECK_EQ(dial_start(&u.g, &a, 1, port, false, on_dialled, &u, &u.d), 0);
		for (int i = 0; i < turns; i++)
			CHECK_EQ(sb_loop_turn(u.g.loop, 0), 0);
		if (u.d)
			dial_cancel(u.d);
		CHECK_EQ(sb_loop_turn(u.g.loop, 20), 0);
		CHECK_EQ(u.calls, 0);
		run_done(&u);
	}
}

TEST(not_more_than_eight_attempts)
{
	struct sb_addr addrs[12];
	uint16_t port = 0;
	sb_autofd int fd = listener("127.0.1.11", &port, 8);
	struct run u;

	REQUIRE(fd >= 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(addrs); i++) {
		addrs[i] = addr("127.0.1.0");
		addrs[i].b[15] = (uint8_t)i;
	}
	run_init(&u);
	CHECK_EQ(dial_start(&u.g, addrs, 12, port, false, on_dialled, &u, &u.d), 0);
	run_wait(&u, 20000);
	CHECK_EQ(u.res.reason, SB_NET_CONNECT_FAILED);
	CHECK_EQ(judged, 8);
	run_done(&u);
}
