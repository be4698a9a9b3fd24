/* The bridge of sendbox-channel: streams of the guest, and a net gate that the test plays. */
#include <dirent.h>

#include "channel_rig.h"

#define MIB (1ULL << 20)
#define WINDOW 262144U
/* in flight towards a gate that does not read: window, both queues, carrier, socket buffer */
#define FLIGHT_MAX (4 * MIB)

/* The guest's end of one connection. */
struct net {
	struct sb_stream *s;
	uint64_t to_send;
	uint64_t sent;
	uint64_t got;
	uint64_t allow;
	char text[64]; /* the first bytes that came */
	bool bad;
	bool eof;
	bool reset;
	bool no_eof; /* do not end after to_send */
};

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 167 + (at >> 8) * 13 + (at >> 16) * 7 + 3);
}

static void n_pump(struct net *n)
{
	while (n->s && n->sent < n->to_send) {
		void *to;
		size_t room = sb_stream_reserve(n->s, &to);

		if (room == 0)
			return;
		room = (size_t)SB_MIN((uint64_t)room, n->to_send - n->sent);
		for (size_t i = 0; i < room; i++)
			((uint8_t *)to)[i] = pattern(n->sent + i);
		sb_stream_commit(n->s, room);
		n->sent += room;
	}
	if (n->s && !n->no_eof)
		sb_stream_send_eof(n->s);
}

static size_t n_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct net *n = sb_stream_owner(s);

	len = (size_t)SB_MIN((uint64_t)len, n->allow - n->got);
	for (size_t i = 0; i < len; i++) {
		if (n->got + i < sizeof(n->text) - 1)
			n->text[n->got + i] = (char)p[i];
		n->bad |= p[i] != pattern(n->got + i);
	}
	n->got += len;
	return len;
}

static void n_eof(struct sb_stream *s)
{
	struct net *n = sb_stream_owner(s);

	n->eof = true;
}

static void n_reset(struct sb_stream *s)
{
	struct net *n = sb_stream_owner(s);

	n->reset = true;
	n->s = NULL;
}

static void n_writable(struct sb_stream *s)
{
	n_pump(sb_stream_owner(s));
}

static const struct sb_stream_ops n_ops = { n_data, n_eof, n_reset, n_writable };

static bool n_open(struct rig *r, struct net *n)
{
	return sb_stream_open(r->g.c, SB_STREAM_NET, 0, &n_ops, n, &n->s) == 0;
}

static void n_close(struct net *n)
{
	if (n->s)
		sb_stream_close(n->s);
	n->s = NULL;
}

static void turns(struct rig *r, int n)
{
	while (n-- > 0)
		if (sb_loop_turn(r->loop, 5) < 0)
			return;
}

/* The next descriptor for the gate. Return: it; -1. */
static int take(struct rig *r, int ms)
{
	for (int i = 0; i <= ms / 5; i++) {
		int q = sb_ipc_recv(r->front, &r->msg);

		if (q == 0) {
			int fd = sb_ipc_get(&r->msg, 0, 1) ? sb_fd_take(&r->msg.fds[0]) : -1;

			CHECK_EQ(r->msg.type, SB_IPC_NET_STREAM);
			sb_ipc_msg_done(&r->msg);
			return fd;
		}
		if (q != -EAGAIN || sb_loop_turn(r->loop, i == 0 ? 0 : 5) < 0)
			return -1;
	}
	return -1;
}

/* Read until @want bytes or the end. Return: bytes; -1 = wrong bytes. */
static int64_t gate_read(struct rig *r, int fd, uint64_t at, uint64_t want)
{
	static uint8_t buf[1 << 16];
	uint64_t end = sb_now_ns() + 20000000000U;
	uint64_t got = 0;

	while (got < want && sb_now_ns() < end) {
		ssize_t n = recv(fd, buf, (size_t)SB_MIN(want - got, sizeof(buf)), MSG_DONTWAIT);

		if (n == 0)
			break;
		if (n < 0) {
			if (errno != EAGAIN || sb_loop_turn(r->loop, 1) < 0)
				break;
			continue;
		}
		for (ssize_t i = 0; i < n; i++)
			if (buf[i] != pattern(at + got + (uint64_t)i))
				return -1;
		got += (uint64_t)n;
	}
	return (int64_t)got;
}

static bool gate_write(struct rig *r, int fd, uint64_t at, uint64_t len)
{
	static uint8_t buf[1 << 16];
	uint64_t end = sb_now_ns() + 20000000000U;
	uint64_t done = 0;

	while (done < len && sb_now_ns() < end) {
		size_t part = (size_t)SB_MIN(len - done, sizeof(buf));
		ssize_t n;

		for (size_t i = 0; i < part; i++)
			buf[i] = pattern(at + done + i);
		n = send(fd, buf, part, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno != EAGAIN || sb_loop_turn(r->loop, 1) < 0))
			return false;
		done += n > 0 ? (uint64_t)n : 0;
	}
	return done == len;
}

static short gate_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };

	(void)poll(&p, 1, 0);
	return p.revents;
}

static int fds_of(const struct rig *r)
{
	char path[64];
	int n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)r->pid);
	d = opendir(path);
	if (!d)
		return -1; /* not root: the jail hides it */
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

TEST(half_close_both_ways)
{
	static const char hello[] = "hello";
	struct net n = { .allow = UINT64_MAX, .no_eof = true };
	struct rig r;
	char buf[16];
	int fd;

	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	REQUIRE(n_open(&r, &n));
	CHECK_EQ(sb_stream_write(n.s, hello, 5), 5);
	fd = take(&r, 2000);
	REQUIRE(fd >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	turns(&r, 10);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 5);
	CHECK(memcmp(buf, hello, 5) == 0);
	/* the guest ends first: the other direction goes on */
	sb_stream_send_eof(n.s);
	CHECK(rig_turn_until(&r, &n.bad, 50) == false);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 0);
	CHECK(!(gate_poll(fd) & POLLHUP));
	CHECK(gate_write(&r, fd, 0, 3 * MIB));
	(void)shutdown(fd, SHUT_WR);
	CHECK(rig_turn_until(&r, &n.eof, 3000));
	CHECK_EQ(n.got, 3 * MIB);
	CHECK(!n.bad && !n.reset);
	turns(&r, 3);
	CHECK(gate_poll(fd) & POLLHUP); /* both ends: closed */
	n_close(&n);
	(void)close(fd);
	/* the gate ends first */
	n = (struct net){ .allow = UINT64_MAX, .no_eof = true };
	REQUIRE(n_open(&r, &n));
	fd = take(&r, 2000);
	REQUIRE(fd >= 0);
	CHECK(gate_write(&r, fd, 0, 10));
	(void)shutdown(fd, SHUT_WR);
	CHECK(rig_turn_until(&r, &n.eof, 2000));
	CHECK_EQ(n.got, 10);
	turns(&r, 3);
	CHECK(!n.reset && !(gate_poll(fd) & POLLHUP));
	n.no_eof = false;
	n.to_send = MIB + 3;
	n_pump(&n);
	CHECK_EQ(gate_read(&r, fd, 0, 2 * MIB), MIB + 3);
	turns(&r, 3);
	CHECK(!n.reset);
	n_close(&n);
	(void)close(fd);
	turns(&r, 5);
	CHECK_EQ(rig_stop(&r), 0);
}

/* 24 MiB each way, at the same time, the gate as an echo. */
TEST(bulk)
{
	static uint8_t buf[1 << 16];
	struct net n = { .allow = UINT64_MAX, .to_send = 24 * MIB };
	struct rig r;
	size_t have = 0;
	size_t at = 0;
	bool end = false;
	int fd;

	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	REQUIRE(n_open(&r, &n));
	n_pump(&n);
	fd = take(&r, 2000);
	REQUIRE(fd >= 0);
	for (int i = 0; i < 200000 && !n.eof && !n.reset; i++) {
		ssize_t k;

		if (have == at && !end) {
			k = read(fd, buf, sizeof(buf));
			at = 0;
			have = k > 0 ? (size_t)k : 0;
			end = k == 0;
			if (end)
				(void)shutdown(fd, SHUT_WR);
		}
		k = have > at ? send(fd, buf + at, have - at, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		at += k > 0 ? (size_t)k : 0;
		REQUIRE(sb_loop_turn(r.loop, 0) == 0);
	}
	CHECK(n.eof && !n.bad && !n.reset);
	CHECK_EQ(n.got, 24 * MIB);
	check_resident(&r, 6 * 1024);
	(void)close(fd);
	n_close(&n);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(resets)
{
	struct net n[5];
	struct rig r;
	int fd[5];

	memset(n, 0, sizeof(n));
	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	for (int i = 0; i < 5; i++) {
		n[i].allow = UINT64_MAX;
		n[i].no_eof = true;
		REQUIRE(n_open(&r, &n[i]));
		fd[i] = take(&r, 2000);
		REQUIRE(fd[i] >= 0);
	}
	/* the guest abandons it */
	n_close(&n[0]);
	turns(&r, 5);
	CHECK(gate_poll(fd[0]) & POLLHUP);
	/* the gate abandons it */
	(void)close(fd[1]);
	CHECK(rig_turn_until(&r, &n[1].reset, 2000));
	CHECK(!n[1].eof);
	/* after its own EOF, without waiting for the guest's */
	(void)shutdown(fd[2], SHUT_WR);
	CHECK(rig_turn_until(&r, &n[2].eof, 2000));
	CHECK(!n[2].reset);
	(void)close(fd[2]);
	CHECK(rig_turn_until(&r, &n[2].reset, 2000));
	/* while the guest floods it */
	n[3].to_send = 64 * MIB;
	n_pump(&n[3]);
	turns(&r, 50);
	CHECK(n[3].sent < FLIGHT_MAX);
	(void)close(fd[3]);
	CHECK(rig_turn_until(&r, &n[3].reset, 2000));
	CHECK(!n[3].eof);
	/* the same, but with last words */
	n[4].to_send = 64 * MIB;
	n_pump(&n[4]);
	turns(&r, 50);
	CHECK(gate_write(&r, fd[4], 0, 50));
	(void)shutdown(fd[4], SHUT_WR);
	(void)close(fd[4]);
	CHECK(rig_turn_until(&r, &n[4].reset, 2000));
	CHECK_EQ(n[4].got, 50);
	CHECK(!r.g.closed);
	(void)close(fd[0]);
	CHECK_EQ(rig_stop(&r), 0);
}

/* One gate end that is not read costs its window and holds up nobody. */
TEST(stalled_gate_and_stalled_guest)
{
	struct net a = { .to_send = 16 * MIB };
	struct net b = { .to_send = 4 * MIB, .allow = UINT64_MAX };
	struct rig r;
	int fa;
	int fb;

	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	REQUIRE(n_open(&r, &a) && n_open(&r, &b));
	n_pump(&a);
	fa = take(&r, 2000);
	fb = take(&r, 2000);
	REQUIRE(fa >= 0 && fb >= 0);
	turns(&r, 50);
	printf("# sent into a stalled gate: %llu KiB\n", (unsigned long long)(a.sent >> 10));
	CHECK(a.sent >= WINDOW && a.sent < FLIGHT_MAX);
	n_pump(&b);
	CHECK_EQ(gate_read(&r, fb, 0, 5 * MIB), 4 * MIB);
	/* towards a guest that takes nothing: one window and the buffers */
	for (int i = 0; i < 2000; i++)
		if (!gate_write(&r, fa, (uint64_t)i * 4096, 4096))
			break;
		else if (i == 40)
			break;
	turns(&r, 20);
	CHECK_EQ(a.got, 0);
	check_resident(&r, 6 * 1024);
	CHECK_EQ(gate_read(&r, fa, 0, 17 * MIB), 16 * MIB);
	a.allow = UINT64_MAX;
	sb_stream_resume(a.s);
	CHECK(!a.bad && !b.bad);
	(void)close(fa);
	(void)close(fb);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(many)
{
	static struct net n[RIG_MAX_NET];
	static int fd[RIG_MAX_NET];
	struct rig r;
	int fds;

	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	fds = fds_of(&r);
	for (int round = 0; round < 2; round++) {
		memset(n, 0, sizeof(n));
		for (int i = 0; i < RIG_MAX_NET; i++) {
			n[i].allow = UINT64_MAX;
			n[i].to_send = 30;
			REQUIRE(n_open(&r, &n[i]));
			n_pump(&n[i]);
			fd[i] = take(&r, 2000);
			REQUIRE(fd[i] >= 0);
		}
		check_resident(&r, 5 * 1024);
		for (int i = 0; i < RIG_MAX_NET; i++) {
			REQUIRE(gate_read(&r, fd[i], 0, 100) == 30);
			REQUIRE(gate_write(&r, fd[i], 0, 40));
			(void)shutdown(fd[i], SHUT_WR);
		}
		for (int i = 0; i < RIG_MAX_NET; i++) {
			REQUIRE(rig_turn_until(&r, &n[i].eof, 3000));
			CHECK(n[i].got == 40 && !n[i].bad && !n[i].reset);
			n_close(&n[i]);
			(void)close(fd[i]);
		}
		turns(&r, 20);
		CHECK_EQ(fds_of(&r), fds);
	}
	CHECK_EQ(rig_stop(&r), 0);
}

/* A gate that takes no descriptors: a few hundred wait, the rest is reset, nothing is lost. */
TEST(gate_takes_none)
{
	static struct net n[RIG_MAX_NET];
	struct rig r;
	int passed = 0;
	int reset = 0;
	int fds;
	int fd;

	memset(n, 0, sizeof(n));
	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	fds = fds_of(&r);
	for (int i = 0; i < RIG_MAX_NET; i++) {
		n[i].no_eof = true;
		REQUIRE(n_open(&r, &n[i]));
	}
	turns(&r, 50);
	for (int i = 0; i < RIG_MAX_NET; i++)
		reset += n[i].reset;
	n_close(&n[2]); /* one that waits perhaps */
	n_close(&n[200]);
	turns(&r, 5);
	while ((fd = take(&r, 100)) >= 0) {
		passed++;
		(void)close(fd);
	}
	printf("# of %d: %d passed on, %d reset\n", RIG_MAX_NET, passed, reset);
	CHECK(passed >= 256 && passed + reset <= RIG_MAX_NET && passed + reset >= RIG_MAX_NET - 2);
	for (int i = 0; i < RIG_MAX_NET; i++)
		CHECK(!n[i].s || rig_turn_until(&r, &n[i].reset, 2000));
	turns(&r, 20);
	CHECK_EQ(fds_of(&r), fds);
	CHECK(!r.g.closed);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(open_reset_flood)
{
	struct net n = { 0 };
	struct rig r;
	int got = 0;
	int fds;
	int fd;

	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	fds = fds_of(&r);
	for (int i = 0; i < 20000; i++) {
		for (int k = 0; sb_stream_open(r.g.c, SB_STREAM_NET, 0, &n_ops, &n, &n.s) < 0; k++)
			REQUIRE(k < 1000 && sb_loop_turn(r.loop, 5) == 0);
		if (i % 3 == 0)
			(void)sb_stream_write(n.s, "GET", 3);
		n_close(&n);
		if (i % 8 == 0)
			REQUIRE(sb_loop_turn(r.loop, 0) == 0);
		while (i % 50 == 0 && (fd = take(&r, 0)) >= 0) {
			got++;
			(void)close(fd);
		}
	}
	turns(&r, 30);
	while ((fd = take(&r, 50)) >= 0)
		(void)close(fd);
	turns(&r, 10);
	printf("# %d reached the gate\n", got);
	CHECK(!r.g.closed);
	check_resident(&r, 6 * 1024);
	CHECK_EQ(fds_of(&r), fds);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(gate_ends)
{
	struct net n = { .no_eof = true };
	struct rig r;

	REQUIRE(rig_ready_net(&r, RIG_MAX_NET));
	REQUIRE(n_open(&r, &n));
	turns(&r, 5);
	(void)close(r.front);
	r.front = -1;
	FAILED_WITH(&r, SB_FAIL_INTERNAL);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(guest_breaks_the_rules)
{
	static struct net n[RIG_MAX_NET + 1];
	struct rig r;
	int fd;

	memset(n, 0, sizeof(n));
	/* no network */
	REQUIRE(rig_ready(&r, false));
	REQUIRE(n_open(&r, &n[0]));
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
	/* one more than the plan allows */
	REQUIRE(rig_ready_net(&r, RIG_MAX_NET + 1));
	for (int i = 0; i < RIG_MAX_NET; i++) {
		REQUIRE(n_open(&r, &n[i]));
		fd = take(&r, 2000);
		REQUIRE(fd >= 0);
		(void)close(fd);
		n[i].no_eof = true;
	}
	turns(&r, 10);
	CHECK(!r.g.closed);
	for (int i = 0; i <= RIG_MAX_NET; i++)
		REQUIRE(n_open(&r, &n[i]));
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(plan_and_front_socket_agree)
{
	struct rig r;

	for (int net = 0; net < 2; net++) {
		REQUIRE(rig_spawn_mismatch(&r, net));
		FAILED_WITH(&r, SB_FAIL_INTERNAL);
		CHECK(rig_stop(&r) != 0);
	}
}
