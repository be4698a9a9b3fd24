/* The data path: decision, dial, bytes both ways, ends, limits. */
#include "rig.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static struct rig r;

static bool begin(enum sb_provider_id provider, const char *rule)
{
	if (!rig_init(&r, provider))
		return false;
	return (!rule || rig_rule(&r, rule)) && rig_pin(&r, "web.example", WEB);
}

static void set_reset(int fd)
{
	struct linger l = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

static void echo_and_half_close(int (*dial)(struct rig *, const char *, uint16_t), const char *to)
{
	int srv = rig_serve(WEB, 5000);
	int cl = dial(&r, to, 5000);
	int up = rig_accept(&r, srv);
	char buf[64];

	CHECK(up >= 0);
	rig_say(&r, cl, "hell\n");
	CHECK(rig_expect(&r, up, "hell\n"));
	rig_say(&r, up, "world");
	CHECK(rig_expect(&r, cl, "world"));
	/* the guest's end reaches the server, and the server may go on */
	CHECK_EQ(shutdown(cl, SHUT_WR), 0);
	CHECK_EQ(rig_rest(&r, up, buf, sizeof(buf)), 0);
	rig_say(&r, up, "more");
	CHECK(rig_expect(&r, cl, "more"));
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 0);
	sb_fd_close(&up);
	CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
	CHECK_STR(buf, "");
	CHECK(rig_event(&r, SB_NET_EV_CLOSED, 0));
	sb_fd_close(&cl);
	sb_fd_close(&srv);
}

TEST(direct_address)
{
	const struct sb_ipc_net_event *ev;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	echo_and_half_close(rig_dial, WEB);
	ev = rig_event(&r, SB_NET_EV_CONNECT, 0);
	REQUIRE(ev);
	CHECK_EQ(ev->allow, 1);
	CHECK_EQ(ev->id, 1);
	CHECK_EQ(ev->via, SB_NET_VIA_DIRECT);
	CHECK_EQ(ev->proto, SB_PROTO_ANY);
	CHECK_EQ(ev->port, 5000);
	CHECK_STR(ev->name, WEB);
	CHECK_EQ(ev->has_addr, 1);
	ev = rig_event(&r, SB_NET_EV_CLOSED, 0);
	REQUIRE(ev);
	CHECK_EQ(ev->up, 5);
	CHECK_EQ(ev->down, 9);
	CHECK_EQ(ev->reason, SB_NET_OK);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CONNECT), 1);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 1);
	CHECK_EQ(r.g.n_conns, 0);
	rig_done(&r);
}

TEST(name_by_synthetic_address)
{
	const struct sb_ipc_net_event *ev;

	if (!begin(SB_PROVIDER_NAMESPACE, "web.example:5000"))
		return;
	REQUIRE(rig_start(&r));
	echo_and_half_close(rig_dial, "web.example");
	ev = rig_event(&r, SB_NET_EV_CONNECT, 0);
	REQUIRE(ev);
	CHECK_EQ(ev->allow, 1);
	CHECK_STR(ev->name, "web.example");
	CHECK_EQ(ev->proto, SB_PROTO_AUTO);
	CHECK_EQ(ev->addr[12], 93);
	rig_done(&r);
}

TEST(stream_of_a_microvm)
{
	if (!begin(SB_PROVIDER_MICROVM, "web.example:5000/any"))
		return;
	REQUIRE(rig_start(&r));
	echo_and_half_close(rig_stream, "web.example");
	rig_done(&r);
}

TEST(refused_at_once)
{
	static const struct {
		const char *to;
		uint16_t port;
		enum sb_net_reason reason;
	} cases[] = {
		{ WEB, 80, SB_NET_ADDR_NOT_ALLOWED },
		{ WEB, 25, SB_NET_ADDR_NOT_ALLOWED },
		{ "denied.example", 443, SB_NET_NAME_DENIED },
		{ "web.example", 22, SB_NET_PORT_NOT_ALLOWED },
		{ "other.example", 443, SB_NET_NAME_NOT_ALLOWED },
		{ "198.18.7.7", 443, SB_NET_NAME_UNKNOWN },
		{ LAN, 443, SB_NET_ADDR_RESTRICTED },
		{ "169.254.169.254", 80, SB_NET_ADDR_FORBIDDEN },
		{ "127.0.0.1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "127.0.0.2", SB_NET_PROXY_PORT, SB_NET_ADDR_FORBIDDEN },
		{ "192.0.2.1", 443, SB_NET_ADDR_RESTRICTED },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		int cl;

		if (!begin(SB_PROVIDER_NAMESPACE, "web.example") ||
		    !rig_rule(&r, "deny denied.example"))
			return;
		REQUIRE(rig_start(&r));
		cl = rig_dial(&r, cases[i].to, cases[i].port);
		CHECK(rig_is_reset(&r, cl));
		if (!rig_refused(&r, cases[i].reason))
			printf("# case %zu\n", i);
		sb_fd_close(&cl);
		rig_done(&r);
	}
}

TEST(stream_refused)
{
	int cl;

	if (!begin(SB_PROVIDER_MICROVM, "web.example"))
		return;
	REQUIRE(rig_start(&r));
	cl = rig_stream(&r, "other.example", 443);
	CHECK(rig_ready(&r, cl, POLLHUP, 500));
	CHECK(rig_refused(&r, SB_NET_NAME_NOT_ALLOWED));
	sb_fd_close(&cl);
	rig_done(&r);
}

/* An allowed name whose address is in the LAN, or nowhere. */
TEST(resolved_addresses_are_judged)
{
	int cl;

	if (!begin(SB_PROVIDER_NAMESPACE, "lan.example:5000") || !rig_rule(&r, "gone.example:5000"))
		return;
	(void)rig_pin(&r, "lan.example", LAN);
	REQUIRE(rig_start(&r));
	cl = rig_dial(&r, "lan.example", 5000);
	CHECK(rig_is_reset(&r, cl));
	CHECK(rig_refused(&r, SB_NET_ADDR_RESTRICTED));
	sb_fd_close(&cl);
	cl = rig_dial(&r, "gone.example", 5000);
	CHECK(rig_is_reset(&r, cl));
	CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 1)->reason, SB_NET_RESOLVE_FAILED);
	sb_fd_close(&cl);
	rig_done(&r);
}

TEST(nobody_listens)
{
	int cl;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5999/any"))
		return;
	REQUIRE(rig_start(&r));
	cl = rig_dial(&r, WEB, 5999);
	CHECK(rig_is_reset(&r, cl));
	CHECK(rig_refused(&r, SB_NET_CONNECT_FAILED));
	sb_fd_close(&cl);
	rig_done(&r);
}

/* A reset goes through both ways, and what the server sent before it arrives first. */
TEST(resets)
{
	int srv;
	int cl;
	int up;
	char buf[64];

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, "x");
	CHECK(rig_expect(&r, up, "x"));
	set_reset(cl);
	sb_fd_close(&cl);
	CHECK(rig_is_reset(&r, up));
	sb_fd_close(&up);

	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	rig_say(&r, up, "last words");
	CHECK(rig_expect(&r, cl, "last words"));
	set_reset(up);
	sb_fd_close(&up);
	CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), -ECONNRESET);
	sb_fd_close(&cl);
	CHECK(rig_event(&r, SB_NET_EV_CLOSED, 1));
	CHECK_EQ(r.g.n_conns, 0);
	sb_fd_close(&srv);
	rig_done(&r);
}

/* The end of a stream without an orderly end is a reset for the server. */
TEST(stream_ends_abruptly)
{
	int srv;
	int cl;
	int up;

	if (!begin(SB_PROVIDER_MICROVM, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	cl = rig_stream(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, "x");
	CHECK(rig_expect(&r, up, "x"));
	sb_fd_close(&cl);
	CHECK(rig_is_reset(&r, up));
	sb_fd_close(&up);
	sb_fd_close(&srv);
	rig_done(&r);
}

static void fill_pattern(uint8_t *p, size_t len, size_t from)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((from + i) * 2654435761U >> 13);
}

/* @len bytes from @from to @to with a reader that pauses; every byte arrives in its place. */
static void transfer(int from, int to, size_t len, size_t stall_at)
{
	static uint8_t out[65536];
	static uint8_t in[65536];
	static uint8_t want[65536];
	size_t sent = 0;
	size_t got = 0;
	uint64_t end = sb_now_ns() + 20000000000ULL;

	while (got < len && sb_now_ns() < end) {
		ssize_t n;

		if (sent < len) {
			size_t k = SB_MIN(len - sent, sizeof(out));

			fill_pattern(out, k, sent);
			n = send(from, out, k, MSG_NOSIGNAL);
			if (n > 0)
				sent += (size_t)n;
		}
		if (sent >= stall_at || sent == len) {
			n = recv(to, in, sizeof(in), 0);
			if (n > 0) {
				fill_pattern(want, (size_t)n, got);
				if (memcmp(in, want, (size_t)n) != 0) {
					t_fail(__FILE__, __LINE__, "bytes differ at %zu", got);
					return;
				}
				got += (size_t)n;
			}
		} else if (sb_loop_turn(r.g.loop, 0) == 0 && sent + (64U << 20) < len) {
			t_fail(__FILE__, __LINE__, "no back pressure");
		}
		if (sb_loop_turn(r.g.loop, 0) < 0)
			return;
	}
	CHECK_EQ(got, len);
}

TEST(much_both_ways)
{
	int srv;
	int cl;
	int up;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	transfer(up, cl, 24U << 20, 0);
	transfer(cl, up, 24U << 20, 0);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	rig_spin(&r, 20);
	sb_fd_close(&srv);
	rig_done(&r);
}

/* A reader that does not read holds the sender, costs no processor time, and loses nothing. */
TEST(back_pressure)
{
	static uint8_t buf[65536];
	size_t sent = 0;
	size_t got = 0;
	int turns = 0;
	int srv;
	int cl;
	int up;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	for (int idle = 0; idle < 50;) {
		ssize_t n = send(up, buf, sizeof(buf), MSG_NOSIGNAL);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		CHECK_EQ(sb_loop_turn(r.g.loop, 1), 0);
	}
	CHECK(sent < 64U << 20);
	for (uint64_t end = sb_now_ns() + 100000000U; sb_now_ns() < end; turns++)
		CHECK_EQ(sb_loop_turn(r.g.loop, 20), 0);
	CHECK(turns < 20); /* nothing spins */
	sb_fd_close(&up); /* the end comes behind the bytes */
	for (;;) {
		ssize_t n = recv(cl, buf, sizeof(buf), 0);

		if (n == 0)
			break;
		if (n < 0 && (errno != EAGAIN || !rig_ready(&r, cl, POLLIN, 1000))) {
			t_fail(__FILE__, __LINE__, "errno %d after %zu", errno, got);
			break;
		}
		got += n > 0 ? (size_t)n : 0;
	}
	CHECK_EQ(got, sent);
	sb_fd_close(&cl);
	rig_spin(&r, 20);
	CHECK_EQ(r.g.n_conns, 0);
	sb_fd_close(&srv);
	rig_done(&r);
}

/* Half-closed both ways with bytes that nobody takes: a hang-up that epoll repeats. */
TEST(ended_but_full)
{
	static uint8_t buf[65536];
	size_t sent = 0;
	int turns = 0;
	int srv;
	int cl;
	int up;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	CHECK_EQ(shutdown(up, SHUT_WR), 0);
	rig_spin(&r, 20);
	for (int idle = 0; idle < 50;) {
		ssize_t n = send(cl, buf, sizeof(buf), MSG_NOSIGNAL);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		CHECK_EQ(sb_loop_turn(r.g.loop, 1), 0);
	}
	CHECK_EQ(shutdown(cl, SHUT_WR), 0);
	for (uint64_t end = sb_now_ns() + 100000000U; sb_now_ns() < end; turns++)
		CHECK_EQ(sb_loop_turn(r.g.loop, 20), 0);
	CHECK(turns < 20);
	while (sent > 0 && rig_ready(&r, up, POLLIN, 1000)) {
		ssize_t n = recv(up, buf, sizeof(buf), 0);

		if (n <= 0)
			break;
		sent -= (size_t)n;
	}
	CHECK_EQ(sent, 0);
	sb_fd_close(&up);
	sb_fd_close(&cl);
	rig_spin(&r, 20);
	CHECK_EQ(r.g.n_conns, 0);
	sb_fd_close(&srv);
	rig_done(&r);
}

static size_t read_to_end(int fd, int *error)
{
	static uint8_t buf[65536];
	size_t got = 0;

	for (*error = 0;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n == 0)
			return got;
		if (n < 0 && errno != EAGAIN)
			*error = errno;
		if (n < 0 && (errno != EAGAIN || !rig_ready(&r, fd, POLLIN, 500)))
			return got;
		got += n > 0 ? (size_t)n : 0;
	}
}

TEST(byte_budgets)
{
	static uint8_t buf[8192];
	const struct sb_ipc_net_event *ev;
	int error;
	int srv;
	int cl;
	int up;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any") || !rig_rule(&r, OTHER ":5000/any"))
		return;
	r.plan->net.host_bytes = 10000;
	r.plan->net.session_bytes = 15000;
	REQUIRE(rig_start(&r));
	srv = rig_serve("0.0.0.0", 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	rig_send(&r, up, buf, 8000);
	CHECK_EQ(rig_read(&r, cl, buf, 8000), 8000);
	rig_send(&r, up, buf, 8000);
	CHECK_EQ(read_to_end(cl, &error), 2000);
	CHECK_EQ(error, ECONNRESET);
	ev = rig_event(&r, SB_NET_EV_CLOSED, 0);
	REQUIRE(ev);
	CHECK_EQ(ev->reason, SB_NET_BUDGET);
	CHECK_EQ(ev->down, 10000);
	sb_fd_close(&cl);
	sb_fd_close(&up);

	cl = rig_dial(&r, WEB, 5000); /* used up for good */
	CHECK(rig_is_reset(&r, cl));
	CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 1)->reason, SB_NET_BUDGET);
	sb_fd_close(&cl);

	cl = rig_dial(&r, OTHER, 5000); /* 5000 are left for the session */
	up = rig_accept(&r, srv);
	rig_send(&r, cl, buf, 5000);
	CHECK_EQ(rig_read(&r, up, buf, 5000), 5000);
	CHECK_EQ(shutdown(cl, SHUT_WR), 0); /* an end is no byte */
	CHECK_EQ(read_to_end(up, &error), 0);
	CHECK_EQ(error, 0);
	rig_say(&r, up, "x");
	CHECK_EQ(read_to_end(cl, &error), 0);
	CHECK_EQ(error, ECONNRESET);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 2);
	sb_fd_close(&srv);
	rig_done(&r);
}

TEST(idle_time)
{
	int srv;
	int cl;
	int up;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	r.plan->net.idle_ms = 200;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	for (int i = 0; i < 5; i++) {
		rig_spin(&r, 100);
		rig_say(&r, up, ".");
	}
	CHECK(rig_expect(&r, cl, "....."));
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 0);
	CHECK(rig_is_reset(&r, cl));
	CHECK_EQ(rig_event(&r, SB_NET_EV_CLOSED, 0)->reason, SB_NET_IDLE);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	sb_fd_close(&srv);
	rig_done(&r);
}

TEST(too_many)
{
	int srv;
	int cl[3];
	int up;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	r.plan->net.max_connections = 2;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	for (int i = 0; i < 3; i++)
		cl[i] = rig_dial(&r, WEB, 5000);
	CHECK(rig_is_reset(&r, cl[2]));
	CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 0)->reason, SB_NET_TOO_MANY);
	up = rig_accept(&r, srv);
	sb_fd_close(&cl[0]);
	sb_fd_close(&up);
	rig_spin(&r, 50);
	CHECK_EQ(r.g.n_conns, 1);
	sb_fd_close(&cl[2]);
	cl[2] = rig_dial(&r, WEB, 5000); /* there is room again */
	up = rig_accept(&r, srv);
	CHECK(up >= 0);
	sb_fd_close(&up);
	up = rig_accept(&r, srv);
	rig_say(&r, up, "in");
	CHECK(rig_expect(&r, cl[2], "in"));
	sb_fd_close(&cl[1]);
	sb_fd_close(&cl[2]);
	sb_fd_close(&up);
	sb_fd_close(&srv);
	rig_done(&r);
}

TEST(listening_sockets_of_a_namespace)
{
	int srv;
	int cl;
	int up;
	int fds[2];

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	fds[0] = rig_guest_socket(SOCK_STREAM, 5000);
	fds[1] = rig_guest_socket(SOCK_DGRAM, 53);
	CHECK_EQ(sb_ipc_send(r.front, SB_IPC_NET_LISTEN, NULL, 0, fds, 2), 0);
	sb_fd_close(&fds[0]);
	sb_fd_close(&fds[1]);
	rig_spin(&r, 10);
	CHECK(!r.stopped);
	CHECK_EQ(r.g.front, -1);
	CHECK(r.g.listeners[0] >= 0);
	srv = rig_serve(WEB, 5000);
	cl = rig_guest_connect(WEB, 5000);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, "through");
	CHECK(rig_expect(&r, up, "through"));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	sb_fd_close(&srv);
	rig_done(&r);
}

/* What the front socket brings is checked; anything else ends the session. */
TEST(hostile_front)
{
	for (int i = 0; i < 7; i++) {
		enum sb_provider_id p = i < 5 ? SB_PROVIDER_NAMESPACE : SB_PROVIDER_MICROVM;
		uint16_t type = i == 0 || i >= 6 ? SB_IPC_NET_STREAM : SB_IPC_NET_LISTEN;
		size_t n = 2;
		int fds[4];

		if (!begin(p, WEB ":5000/any"))
			return;
		REQUIRE(rig_start(&r));
		fds[0] = rig_guest_socket(SOCK_STREAM, 5000);
		fds[1] = rig_guest_socket(SOCK_DGRAM, 53);
		switch (i) {
		case 0: /* a stream where there is a namespace */
		case 6: /* a listening socket as a stream */
			n = 1;
			break;
		case 1: /* in the wrong order */
			fds[2] = fds[0];
			fds[0] = fds[1];
			fds[1] = fds[2];
			break;
		case 2: /* one too few */
			n = 1;
			break;
		case 3: /* no sockets at all */
			n = 0;
			break;
		case 4: /* not a socket */
			sb_fd_close(&fds[1]);
			fds[1] = dup(0);
			break;
		default: /* 5: listening sockets where there is a micro-VM */
			break;
		}
		CHECK_EQ(sb_ipc_send(r.front, type, "x", i == 3 ? 1 : 0, fds, n), 0);
		rig_spin(&r, 20);
		if (!r.stopped)
			t_fail(__FILE__, __LINE__, "case %d: accepted", i);
		CHECK_EQ(r.g.listeners[0], -1);
		CHECK_EQ(r.g.n_conns, 0);
		sb_fd_close(&fds[0]);
		sb_fd_close(&fds[1]);
		rig_done(&r);
	}
}

TEST(malformed_hello)
{
	uint8_t hello[20] = { 2, 1, 0x88, 0x13 };
	int cl;

	if (!begin(SB_PROVIDER_MICROVM, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	cl = rig_front_stream(&r);
	rig_send(&r, cl, hello, sizeof(hello));
	CHECK(rig_ready(&r, cl, POLLHUP, 500));
	sb_fd_close(&cl);
	cl = rig_front_stream(&r); /* an early end */
	rig_send(&r, cl, hello, 5);
	CHECK_EQ(shutdown(cl, SHUT_WR), 0);
	CHECK(rig_ready(&r, cl, POLLHUP, 500));
	sb_fd_close(&cl);
	CHECK(!r.stopped);
	CHECK_EQ(r.g.n_conns, 0);
	rig_done(&r);
}

TEST(amendments)
{
	const struct sb_ipc_net_event *ev;
	int srv;
	int srv2;
	int cl;
	int cl2;
	int up;
	int up2;

	if (!begin(SB_PROVIDER_NAMESPACE, WEB ":5000/any"))
		return;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 5000);
	srv2 = rig_serve(OTHER, 5000);
	cl = rig_dial(&r, WEB, 5000);
	up = rig_accept(&r, srv);
	cl2 = rig_dial(&r, OTHER, 5000);
	CHECK(rig_is_reset(&r, cl2));
	sb_fd_close(&cl2);

	CHECK_EQ(rig_amend(&r, 2, OTHER ":5000/any", NULL), -ESTALE);
	CHECK_EQ(rig_amend(&r, 1, OTHER ":5000/any", NULL), 0);
	CHECK_EQ(rig_amend(&r, 1, OTHER ":5000/any", NULL), -ESTALE);
	cl2 = rig_dial(&r, OTHER, 5000);
	up2 = rig_accept(&r, srv2);
	rig_say(&r, cl2, "new");
	CHECK(rig_expect(&r, up2, "new"));

	CHECK_EQ(rig_amend(&r, 2, NULL, "nobody.example"), -ENOENT);
	CHECK_EQ(rig_amend(&r, 2, NULL, WEB ":5000/any"), 0);
	CHECK(rig_is_reset(&r, cl));
	CHECK(rig_is_reset(&r, up));
	ev = rig_event(&r, SB_NET_EV_CLOSED, 0);
	REQUIRE(ev);
	CHECK_EQ(ev->reason, SB_NET_REVOKED);
	rig_say(&r, up2, "still here");
	CHECK(rig_expect(&r, cl2, "still here"));
	ev = rig_event(&r, SB_NET_EV_AMEND, 1);
	REQUIRE(ev);
	CHECK_EQ(ev->count, 2);
	CHECK_EQ(ev->allow, 0);
	CHECK_STR(ev->name, WEB);
	CHECK_EQ(strncmp(ev->rule, WEB ":5000", strlen(WEB ":5000")), 0);
	CHECK_EQ(rig_count(&r, SB_NET_EV_AMEND), 2);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	sb_fd_close(&cl2);
	sb_fd_close(&up2);
	sb_fd_close(&srv);
	sb_fd_close(&srv2);
	rig_done(&r);
}

static uint32_t seed;

static uint32_t dice(uint32_t n)
{
	seed = seed * 1664525U + 1013904223U;
	return (seed >> 8) % n;
}

static void random_tls(int fd)
{
	/* a server that wants another hello, and what may come before that */
	static const uint8_t retry[] = {
		22,   3,    3,	  0,	44,   2,    0,	  0,	40,   3,    3,	  0xcf, 0x21, 0xad,
		0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
		0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33,
		0x9c, 0,    0x13, 1,	0,    0,    0,	  20,	3,    3,    0,	  1,	1,
	};
	uint8_t hello[600];
	size_t len = rig_hello(dice(6) ? "web.example" : "evil.example", false, hello, sizeof(hello));

	switch (dice(5)) {
	case 0:
		(void)send(fd, retry, sizeof(retry), MSG_NOSIGNAL);
		break;
	case 1:
		(void)send(fd, retry, dice(sizeof(retry)), MSG_NOSIGNAL);
		break;
	case 2:
		(void)send(fd, hello, dice((uint32_t)len), MSG_NOSIGNAL);
		break;
	default:
		(void)send(fd, hello, len, MSG_NOSIGNAL);
		break;
	}
}

static void random_bytes(int fd)
{
	static const char *const texts[] = {
		"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 70000\r\n\r\n",
		"GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n",
		"GET http://two.example/ HTTP/1.1\r\nHost: two.example\r\n\r\n",
		"CONNECT web.example:5000 HTTP/1.1\r\nHost: web.example:5000\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"\x16\x03\x01",
		"\x05\x01",
	};
	static const uint8_t zero[70000];
	const char *t = texts[dice(SB_ARRAY_LEN(texts))];
	size_t len = strlen(t);

	if (dice(3) == 0)
		random_tls(fd);
	else if (dice(6) == 0)
		(void)send(fd, zero, dice(sizeof(zero)), MSG_NOSIGNAL);
	else
		(void)send(fd, t, dice(4) ? len : dice((uint32_t)len + 1), MSG_NOSIGNAL);
}

static void random_act(int *fd)
{
	static uint8_t buf[30000];

	if (*fd < 0)
		return;
	switch (dice(12)) {
	case 0:
		set_reset(*fd);
		sb_fd_close(fd);
		break;
	case 1:
		sb_fd_close(fd);
		break;
	case 2:
		(void)shutdown(*fd, SHUT_WR);
		break;
	case 3:
	case 4:
	case 5:
		(void)recv(*fd, buf, sizeof(buf), 0);
		break;
	default:
		random_bytes(*fd);
		break;
	}
}

/* Whatever both ends do in whatever order: nothing is left, and each connection is told once. */
static void chaos(enum sb_provider_id provider, uint32_t first)
{
	static const uint16_t ports[] = { 80, 443, 5000, 8000, SB_NET_PROXY_PORT, 9, 25 };
	static const char *const to[] = { "web.example", "two.example", WEB, "evil.example" };
	int srv[4];
	int cl[24];
	int up[24];
	uint64_t opened = 0;

	seed = first;
	if (!begin(provider, "web.example:80+443+8000") || !rig_rule(&r, "web.example:5000/any") ||
	    !rig_rule(&r, "two.example") || !rig_rule(&r, WEB ":5000/any") ||
	    !rig_rule(&r, "web.example:9/any"))
		return;
	(void)rig_pin(&r, "two.example", OTHER);
	r.plan->net.host_bytes = 3U << 20;
	REQUIRE(rig_start(&r));
	for (size_t i = 0; i < 4; i++)
		srv[i] = rig_serve("0.0.0.0", ports[i]);
	memset(cl, -1, sizeof(cl));
	memset(up, -1, sizeof(up));
	for (int step = 0; step < 6000; step++) {
		uint32_t i = dice(24);

		if (cl[i] < 0 && dice(4) == 0) {
			uint16_t port = ports[dice(SB_ARRAY_LEN(ports))];
			const char *host = port == SB_NET_PROXY_PORT ? "127.0.0.1" :
								       to[dice(SB_ARRAY_LEN(to))];

			cl[i] = (provider == SB_PROVIDER_MICROVM ? rig_stream : rig_dial)(&r, host,
											  port);
			opened++;
		}
		random_act(&cl[i]);
		i = dice(24);
		if (up[i] < 0)
			up[i] = accept4(srv[dice(4)], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		random_act(&up[i]);
		if (dice(3) == 0)
			rig_spin(&r, 0);
	}
	for (size_t i = 0; i < 24; i++) {
		sb_fd_close(&cl[i]);
		sb_fd_close(&up[i]);
	}
	for (size_t i = 0; i < 4; i++)
		sb_fd_close(&srv[i]);
	rig_spin(&r, 400);
	for (const struct conn *c = r.g.conns; c; c = c->next)
		t_fail(__FILE__, __LINE__,
		       "left: %s:%u phase %u, up %u wait %d eof %d ended %d len %u, down %u eof %d "
		       "ended %d len %u, client shut %d, server fd %d gone %d shut %d",
		       c->ev.name, c->ev.port, c->phase, c->up.mode, c->up.wait, c->up.eof,
		       c->up.ended, c->up.len, c->down.mode, c->down.eof, c->down.ended,
		       c->down.len, c->client.shut, c->server.fd, c->server.gone, c->server.shut);
	CHECK_EQ(r.g.n_conns, 0);
	CHECK(!r.stopped);
	CHECK(opened > 100);
	CHECK_EQ(r.told[SB_NET_EV_LOST][0] + r.told[SB_NET_EV_LOST][1], 0);
	CHECK_EQ(r.told[SB_NET_EV_CLOSED][1], r.told[SB_NET_EV_CONNECT][1]);
	rig_done(&r);
}

TEST(anything)
{
	const char *first = getenv("SB_SEED"); /* another run than the usual one */
	uint32_t n = first ? (uint32_t)strtoul(first, NULL, 10) : 1;

	chaos(SB_PROVIDER_NAMESPACE, n);
	chaos(SB_PROVIDER_MICROVM, n + 1);
}
