/* Events to the monitor and to viewers: merged, bounded, and none lost without being counted. */
#include "net/gate.h"
#include "t.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

/* what the other files of the gate would do */
static size_t n_flows;
static struct sb_ipc_net_flow flow;
static size_t amended_len;
static int amend_result;

void conns_each(struct gate *g, void (*fn)(void *arg, const struct sb_ipc_net_flow *f), void *arg)
{
	(void)g;
	for (size_t i = 0; i < n_flows; i++) {
		flow.ev.id = i + 1;
		flow.open = i % 2 == 0;
		fn(arg, &flow);
	}
}

int gate_amend(struct gate *g, const uint8_t signature[64], const char *bytes, size_t len,
	       struct sb_err *err)
{
	(void)bytes;
	amended_len = len;
	if (signature[63] != 0x5a)
		return sb_err_set(err, -EKEYREJECTED, "signature");
	g->amended++;
	return amend_result;
}

void gate_fail(struct gate *g, const char *fmt, ...)
{
	(void)g;
	t_fail(__FILE__, __LINE__, "gate_fail: %s", fmt);
}

struct run {
	struct gate g;
	int peer; /* the monitor's end */
	int before;
};

static void run_init(struct run *u)
{
	int sv[2];

	*u = (struct run){ .before = t_open_fds() };
	sb_assert(sb_loop_new(&u->g.loop) == 0);
	sb_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	u->g.ipc = sv[0];
	u->peer = sv[1];
	sb_assert(sb_fd_set_nonblock(u->peer, true) == 0);
}

static void run_done(struct run *u)
{
	events_done(&u->g);
	viewers_done(&u->g);
	u->g.loop = sb_loop_free(u->g.loop);
	sb_fd_close(&u->g.ipc);
	sb_fd_close(&u->peer);
	CHECK_EQ(t_open_fds(), u->before);
}

static void turns(struct run *u, unsigned int ms)
{
	uint64_t end = sb_now_ns() + ms * 1000000ULL;

	do {
		CHECK_EQ(sb_loop_turn(u->g.loop, (int)ms), 0);
	} while (sb_now_ns() < end);
}

/* Return: 0; -EAGAIN when nothing is there. */
static int next(int sock, uint16_t type, void *out, size_t len)
{
	struct sb_ipc_msg m = { 0 };
	int r = sb_ipc_recv(sock, &m);

	if (r != 0)
		return r == SB_IPC_EOF ? -EPIPE : r;
	if (m.type != type || m.len != len)
		t_fail(__FILE__, __LINE__, "message %u of %u bytes", m.type, m.len);
	else
		memcpy(out, m.data, len);
	sb_ipc_msg_done(&m);
	return 0;
}

/* The rest of the last message of events, of one socket at a time. */
static struct {
	int sock;
	size_t at;
	size_t n;
	struct sb_ipc_net_event ev[SB_IPC_NET_EVENTS];
} batch;

static int next_event(int sock, struct sb_ipc_net_event *ev)
{
	if (batch.at == batch.n) {
		struct sb_ipc_msg m = { 0 };
		const struct sb_ipc_net_event *got;
		int r = sb_ipc_recv(sock, &m);

		if (r != 0)
			return r == SB_IPC_EOF ? -EPIPE : r;
		batch.sock = sock;
		batch.at = 0;
		batch.n = sb_ipc_get_events(&m, &got);
		if (batch.n == 0)
			t_fail(__FILE__, __LINE__, "message %u of %u bytes", m.type, m.len);
		memcpy(batch.ev, got, batch.n * sizeof(*got));
		sb_ipc_msg_done(&m);
	}
	sb_assert(batch.sock == sock);
	*ev = batch.ev[batch.at++];
	return 0;
}

static struct sb_ipc_net_event refusal(const char *name)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_CONNECT,
				       .reason = SB_NET_NAME_NOT_ALLOWED,
				       .port = 443 };

	(void)snprintf(ev.name, sizeof(ev.name), "%s", name);
	return ev;
}

#define BATCH_MS 5 /* longer than events gather */

TEST(first_soon_others_merged)
{
	struct sb_ipc_net_event ev = refusal("a.example");
	struct sb_ipc_net_event other = refusal("a.example");
	struct sb_ipc_net_event got;
	struct run u;

	other.port = 80;
	run_init(&u);
	for (int i = 0; i < 1000; i++)
		event_send(&u.g, &ev);
	event_send(&u.g, &other);
	CHECK_EQ(next_event(u.peer, &got), -EAGAIN);
	turns(&u, BATCH_MS);
	REQUIRE(next_event(u.peer, &got) == 0);
	CHECK_EQ(got.count, 1);
	CHECK_EQ(got.port, 443);
	CHECK_STR(got.name, "a.example");
	CHECK(got.time_ns > 1700000000000000000U);
	REQUIRE(next_event(u.peer, &got) == 0);
	CHECK_EQ(got.port, 80);
	CHECK_EQ(got.count, 1);
	CHECK_EQ(next_event(u.peer, &got), -EAGAIN);
	turns(&u, 300);
	REQUIRE(next_event(u.peer, &got) == 0);
	CHECK_EQ(got.count, 999);
	CHECK_EQ(got.port, 443);
	CHECK_EQ(next_event(u.peer, &got), -EAGAIN);
	turns(&u, 300); /* the window is over: told by itself again */
	event_send(&u.g, &ev);
	turns(&u, BATCH_MS);
	REQUIRE(next_event(u.peer, &got) == 0);
	CHECK_EQ(got.count, 1);
	run_done(&u);
}

TEST(what_is_merged_is_told_at_the_end)
{
	struct sb_ipc_net_event ev = refusal("a.example");
	struct sb_ipc_net_event got;
	struct run u;

	run_init(&u);
	for (int i = 0; i < 3; i++)
		event_send(&u.g, &ev);
	turns(&u, BATCH_MS);
	REQUIRE(next_event(u.peer, &got) == 0);
	events_done(&u.g);
	REQUIRE(next_event(u.peer, &got) == 0);
	CHECK_EQ(got.count, 2);
	run_done(&u);
}

TEST(allowed_connections_are_never_merged)
{
	struct sb_ipc_net_event ev = refusal("a.example");
	struct sb_ipc_net_event got;
	struct run u;

	ev.allow = 1;
	ev.reason = SB_NET_OK;
	run_init(&u);
	for (unsigned int i = 1; i <= 3; i++) {
		ev.id = i;
		event_send(&u.g, &ev);
	}
	turns(&u, BATCH_MS);
	for (unsigned int i = 1; i <= 3; i++) {
		REQUIRE(next_event(u.peer, &got) == 0);
		CHECK_EQ(got.id, i);
	}
	run_done(&u);
}

/* A thousand refusals by one rule, one by another among them, and a monitor that does not read. */
TEST(a_flood_hides_no_refusal_of_another_kind)
{
	struct sb_ipc_net_event ev = refusal("");
	struct sb_ipc_net_event got;
	uint64_t seen = 0;
	uint64_t all = 0;
	struct run u;

	run_init(&u);
	for (unsigned int i = 0; i < 5000; i++) {
		(void)snprintf(ev.name, sizeof(ev.name), "n%u.example", i);
		(void)snprintf(ev.rule, sizeof(ev.rule), "%s", i == 4000 ? "chosen" : "flood");
		event_send(&u.g, &ev);
	}
	for (int i = 0; i < 30; i++) {
		while (next_event(u.peer, &got) == 0) {
			seen += strcmp(got.rule, "chosen") == 0 && strcmp(got.name, "n4000.example") == 0;
			all += got.count;
		}
		turns(&u, 25);
	}
	CHECK_EQ(seen, 1);
	CHECK_EQ(all, 5000);
	run_done(&u);
}

/* 5000 different refusals and 5000 allowed connections against a monitor that does not read. */
TEST(flood_is_counted)
{
	struct sb_ipc_net_event ev = refusal("");
	struct sb_ipc_net_event got;
	uint64_t kept[2] = { 0 };
	uint64_t lost[2] = { 0 };
	struct run u;

	run_init(&u);
	for (unsigned int i = 0; i < 10000; i++) {
		(void)snprintf(ev.name, sizeof(ev.name), "n%u.example", i);
		ev.allow = i % 2;
		event_send(&u.g, &ev);
	}
	for (int i = 0; i < 30; i++) {
		while (next_event(u.peer, &got) == 0) {
			if (got.kind == SB_NET_EV_LOST)
				lost[got.allow] += got.count;
			else
				kept[got.allow] += got.count;
		}
		turns(&u, 20);
	}
	CHECK_EQ(kept[0] + lost[0], 5000);
	CHECK_EQ(kept[1] + lost[1], 5000);
	CHECK(lost[0] > 0 && lost[1] > 0);
	CHECK(kept[0] + kept[1] >= 256);
	event_send(&u.g, &ev); /* and it works again */
	turns(&u, BATCH_MS);
	CHECK_EQ(next_event(u.peer, &got), 0);
	run_done(&u);
}

TEST(dead_monitor)
{
	struct sb_ipc_net_event ev = refusal("a.example");
	struct run u;

	run_init(&u);
	sb_fd_close(&u.peer);
	ev.allow = 1;
	for (int i = 0; i < 1000; i++)
		event_send(&u.g, &ev);
	run_done(&u);
}

static int viewer(struct run *u)
{
	int sv[2];

	sb_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	sb_assert(sb_fd_set_nonblock(sv[1], true) == 0);
	if (viewer_new(&u->g, &sv[0]) < 0)
		sb_fd_close(&sv[0]);
	CHECK_EQ(sv[0], -1);
	return sv[1];
}

static void watch(int v, bool follow)
{
	struct sb_ipc_net_watch w = { .follow = follow };

	CHECK_EQ(sb_ipc_send(v, SB_IPC_NET_WATCH, &w, sizeof(w), NULL, 0), 0);
}

/* The list is longer than any socket buffer, and the viewer reads late. */
TEST(list_then_events)
{
	struct sb_ipc_net_event ev = refusal("later.example");
	struct sb_ipc_net_flow got;
	struct sb_ipc_net_event got_ev;
	struct sb_ipc_net_end end;
	struct run u;
	int v;

	run_init(&u);
	u.g.amended = 7;
	n_flows = 3000;
	flow = (struct sb_ipc_net_flow){ .opened_ns = 42 };
	flow.ev = refusal("flow.example");
	(void)snprintf(flow.ev.rule, sizeof(flow.ev.rule), "flow.example:443/https");
	v = viewer(&u);
	watch(v, true);
	turns(&u, 10);
	event_send(&u.g, &ev);
	for (size_t i = 0; i < n_flows; i++) {
		int r = next(v, SB_IPC_NET_FLOW, &got, sizeof(got));

		if (r == -EAGAIN) {
			turns(&u, 1);
			i--;
			continue;
		}
		REQUIRE(r == 0);
		REQUIRE(got.ev.id == i + 1 && got.opened_ns == 42);
		REQUIRE(got.open == (i % 2 == 0));
		CHECK_STR(got.ev.name, "flow.example");
		CHECK_STR(got.ev.rule, "flow.example:443/https");
		CHECK_EQ(got.ev.port, 443);
	}
	turns(&u, 5);
	REQUIRE(next(v, SB_IPC_NET_END, &end, sizeof(end)) == 0);
	CHECK_EQ(end.fail, 0);
	CHECK_EQ(end.seq, 7);
	REQUIRE(next_event(v, &got_ev) == 0);
	CHECK_STR(got_ev.name, "later.example");
	CHECK_EQ(next_event(v, &got_ev), -EAGAIN);
	sb_fd_close(&v);
	turns(&u, 5);
	CHECK(!u.g.viewers);
	run_done(&u);
}

TEST(slow_viewer_loses_counted)
{
	struct sb_ipc_net_event ev = refusal("a.example");
	struct sb_ipc_net_event got;
	struct sb_ipc_net_end end;
	uint64_t n = 0;
	uint64_t lost = 0;
	struct run u;
	int v;

	run_init(&u);
	n_flows = 0;
	v = viewer(&u);
	watch(v, true);
	turns(&u, 5);
	REQUIRE(next(v, SB_IPC_NET_END, &end, sizeof(end)) == 0);
	ev.allow = 1;
	for (int i = 0; i < 20000; i++) {
		event_send(&u.g, &ev);
		while (next_event(u.peer, &got) == 0)
			;
		if (i % 100 == 0)
			CHECK_EQ(sb_loop_turn(u.g.loop, 0), 0);
	}
	for (int i = 0; i < 30; i++) {
		while (next_event(v, &got) == 0) {
			n += got.count;
			if (got.kind == SB_NET_EV_LOST)
				lost += got.count;
		}
		turns(&u, 1);
	}
	CHECK_EQ(n, 20000);
	CHECK(lost > 0 && lost < 20000);
	sb_fd_close(&v);
	run_done(&u);
}

TEST(amendments)
{
	struct {
		struct sb_ipc_net_amend a;
		char bytes[10];
	} msg = { 0 };
	struct sb_ipc_net_end end;
	struct run u;
	int v;

	run_init(&u);
	v = viewer(&u);
	CHECK_EQ(sb_ipc_send(v, SB_IPC_NET_AMEND, &msg, sizeof(msg.a) + 10, NULL, 0), 0);
	turns(&u, 5);
	REQUIRE(next(v, SB_IPC_NET_END, &end, sizeof(end)) == 0);
	CHECK_EQ(end.fail, EKEYREJECTED);
	CHECK_STR(end.text, "signature");
	CHECK_EQ(amended_len, 10);
	msg.a.signature[63] = 0x5a;
	CHECK_EQ(sb_ipc_send(v, SB_IPC_NET_AMEND, &msg, sizeof(msg.a) + 3, NULL, 0), 0);
	turns(&u, 5);
	REQUIRE(next(v, SB_IPC_NET_END, &end, sizeof(end)) == 0);
	CHECK_EQ(end.fail, 0);
	CHECK_EQ(end.seq, 1);
	CHECK_EQ(amended_len, 3);
	amend_result = -ESTALE;
	CHECK_EQ(sb_ipc_send(v, SB_IPC_NET_AMEND, &msg, sizeof(msg.a) + 3, NULL, 0), 0);
	turns(&u, 5);
	REQUIRE(next(v, SB_IPC_NET_END, &end, sizeof(end)) == 0);
	CHECK_EQ(end.fail, ESTALE);
	CHECK(end.text[0] != '\0');
	amend_result = 0;
	sb_fd_close(&v);
	run_done(&u);
}

TEST(nonsense_ends_the_viewer)
{
	static const struct {
		uint16_t type;
		size_t len;
	} cases[] = {
		{ SB_IPC_NET_WATCH, 7 },  { SB_IPC_NET_WATCH, 0 }, { SB_IPC_NET_AMEND, 63 },
		{ SB_IPC_NET_EVENT, 8 },  { SB_IPC_NET_START, 96 }, { 0, 0 },
	};
	static const uint8_t zero[128];
	struct run u;

	run_init(&u);
	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		int v = viewer(&u);
		char c;

		CHECK_EQ(sb_ipc_send(v, cases[i].type, zero, cases[i].len, NULL, 0), 0);
		turns(&u, 2);
		CHECK_EQ(recv(v, &c, 1, 0), 0);
		CHECK(!u.g.viewers);
		sb_fd_close(&v);
	}
	run_done(&u);
}

TEST(not_more_than_eight)
{
	struct sb_ipc_net_end end;
	struct run u;
	int v[8];
	int sv[2];

	run_init(&u);
	for (size_t i = 0; i < SB_ARRAY_LEN(v); i++)
		v[i] = viewer(&u);
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	CHECK_EQ(viewer_new(&u.g, &sv[0]), -EBUSY);
	CHECK(sv[0] >= 0);
	REQUIRE(next(sv[1], SB_IPC_NET_END, &end, sizeof(end)) == 0);
	CHECK_EQ(end.fail, EBUSY);
	sb_fd_close(&v[3]);
	turns(&u, 2);
	CHECK_EQ(viewer_new(&u.g, &sv[0]), 0);
	sb_fd_close(&sv[1]);
	for (size_t i = 0; i < SB_ARRAY_LEN(v); i++)
		sb_fd_close(&v[i]);
	run_done(&u);
}
