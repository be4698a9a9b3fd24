/* Streams that the guest opens: two real ends, and a hostile guest or host at one of them. */
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crypto/crypto.h"
#include "raw.h"

#define KIB 1024ULL
#define MIB (1ULL << 20)
#define NET_WINDOW 262144U /* docs/protocol/channel.md */
#define FIRST 0x80000001U
#define MANY 1000

static uint8_t zeros[SB_FRAME_DATA_MAX];

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static bool got_eof(void *arg)
{
	const struct pipe_end *pe = arg;

	return pe->eof || pe->reset;
}

static bool was_reset(void *arg)
{
	const struct pipe_end *pe = arg;

	return pe->reset;
}

static bool host_closed(void *arg)
{
	const struct pair *p = arg;

	return p->host.closed;
}

static size_t heap(void)
{
	struct mallinfo2 mi = mallinfo2();

	return mi.uordblks + mi.hblkhd;
}

#define PAIR(p, max)                                                                               \
	struct pair p = { .max_net = (max) };                                                      \
	REQUIRE(sb_crypto_init() == 0);                                                            \
	REQUIRE(pair_start(&p, false) == 0);                                                       \
	REQUIRE(pair_until(&p, pair_ready, &p, 2000))

static bool opened(struct pair *p, size_t n)
{
	for (int i = 0; i < 500 && p->host.n_opened < n && !p->host.closed; i++)
		if (sb_loop_turn(p->loop, 5) < 0)
			return false;
	return p->host.n_opened == n;
}

TEST(bytes_both_ways)
{
	static const uint64_t lens[] = { 0, 1, 65536, 65537, NET_WINDOW, 3 * MIB + 5 };

	for (size_t i = 0; i < SB_ARRAY_LEN(lens); i++) {
		struct pipe_end g = { .to_send = lens[i], .allow = UINT64_MAX };
		struct pipe_end h[1] = { { .to_send = 2 * lens[i], .allow = UINT64_MAX } };
		PAIR(p, 4);

		p.host.pipes = h;
		p.host.n_pipes = 1;
		REQUIRE(pipe_open(&p.guest, &g, SB_STREAM_NET) == 0);
		pipe_pump(&g);
		REQUIRE(opened(&p, 1));
		CHECK_EQ(h[0].kind, SB_STREAM_NET);
		pipe_pump(&h[0]);
		CHECK(pair_until(&p, got_eof, &g, 10000));
		CHECK(pair_until(&p, got_eof, &h[0], 10000));
		CHECK_EQ(h[0].got, lens[i]);
		CHECK_EQ(g.got, 2 * lens[i]);
		CHECK(!g.bad && !h[0].bad && !g.reset && !h[0].reset);
		sb_stream_close(g.s);
		sb_stream_close(h[0].s);
		(void)pair_until(&p, never, NULL, 10);
		CHECK(!p.host.closed && !p.guest.closed);
		CHECK(sb_chan_flushed(p.host.c) && sb_chan_flushed(p.guest.c));
		pair_stop(&p);
	}
}

/* Many at once, all with data both ways; then again, so that every entry was forgotten. */
TEST(a_thousand)
{
	static struct pipe_end g[MANY];
	static struct pipe_end h[MANY];
	struct pipe_end extra = { 0 };
	size_t idle;
	PAIR(p, MANY);

	p.host.pipes = h;
	p.host.n_pipes = MANY;
	idle = heap();
	for (int round = 0; round < 3; round++) {
		memset(g, 0, sizeof(g));
		memset(h, 0, sizeof(h));
		p.host.n_opened = 0;
		for (uint64_t i = 0; i < MANY; i++) {
			g[i].to_send = 1 + i * 97 % 50000;
			g[i].allow = UINT64_MAX;
			h[i].allow = UINT64_MAX;
			h[i].to_send = 1 + i * 89 % 30000;
			REQUIRE(pipe_open(&p.guest, &g[i], SB_STREAM_NET) == 0);
			pipe_pump(&g[i]);
		}
		CHECK_EQ(pipe_open(&p.guest, &extra, SB_STREAM_NET), -ENOBUFS);
		REQUIRE(opened(&p, MANY));
		for (int i = 0; i < MANY; i++)
			pipe_pump(&h[i]);
		for (uint64_t i = 0; i < MANY; i++) {
			REQUIRE(pair_until(&p, got_eof, &g[i], 20000));
			REQUIRE(pair_until(&p, got_eof, &h[i], 20000));
			REQUIRE(h[i].got == 1 + i * 97 % 50000 && !h[i].bad && !h[i].reset);
			REQUIRE(g[i].got == 1 + i * 89 % 30000 && !g[i].bad && !g[i].reset);
		}
		for (int i = 0; i < MANY; i++) {
			sb_stream_close(g[i].s);
			sb_stream_close(h[i].s);
		}
		(void)pair_until(&p, never, NULL, 20);
		REQUIRE(!p.host.closed && !p.guest.closed);
	}
	CHECK(heap() < idle + 2 * MIB); /* spare records only */
	pair_stop(&p);
}

/* All share the queue fairly: none is starved by those that opened first. */
TEST(round_robin)
{
	static struct pipe_end g[64];
	static struct pipe_end h[64];
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;
	uint64_t sum = 0;
	PAIR(p, 64);

	memset(g, 0, sizeof(g));
	memset(h, 0, sizeof(h));
	p.host.pipes = h;
	p.host.n_pipes = 64;
	for (int i = 0; i < 64; i++) {
		g[i].to_send = 100 * MIB;
		h[i].allow = UINT64_MAX;
		REQUIRE(pipe_open(&p.guest, &g[i], SB_STREAM_NET) == 0);
	}
	REQUIRE(opened(&p, 64));
	for (int i = 0; i < 64; i++)
		pipe_pump(&g[i]);
	while (sum < 128 * MIB) {
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
		sum = 0;
		for (int i = 0; i < 64; i++)
			sum += h[i].got;
	}
	for (int i = 0; i < 64; i++) {
		least = SB_MIN(least, h[i].got);
		most = SB_MAX(most, h[i].got);
	}
	printf("# of 2 MiB each: least %llu KiB, most %llu KiB\n",
	       (unsigned long long)(least / KIB), (unsigned long long)(most / KIB));
	CHECK(least * 2 >= most);
	pair_stop(&p);
}

/* A sink that takes nothing costs one window, and the other streams go on. */
TEST(one_stopped_sink)
{
	struct pipe_end g[2] = { { .to_send = 8 * MIB }, { .to_send = 8 * MIB } };
	struct pipe_end h[2] = { { .allow = 0 }, { .allow = UINT64_MAX } };
	size_t before;
	PAIR(p, 2);

	p.host.pipes = h;
	p.host.n_pipes = 2;
	before = heap();
	for (int i = 0; i < 2; i++) {
		REQUIRE(pipe_open(&p.guest, &g[i], SB_STREAM_NET) == 0);
		pipe_pump(&g[i]);
	}
	CHECK(pair_until(&p, got_eof, &h[1], 10000));
	CHECK_EQ(h[1].got, 8 * MIB);
	CHECK_EQ(g[0].sent, NET_WINDOW);
	CHECK_EQ(h[0].got, 0);
	CHECK(heap() - before < NET_WINDOW + 2 * MIB);
	pipe_allow(&h[0], UINT64_MAX);
	CHECK(pair_until(&p, got_eof, &h[0], 10000));
	CHECK_EQ(h[0].got, 8 * MIB);
	CHECK(!h[0].bad && !h[1].bad);
	pair_stop(&p);
}

TEST(resets_of_both_ends)
{
	struct pipe_end g[2] = { { .to_send = 100, .hold_eof = true },
				 { .to_send = 8 * MIB, .hold_eof = true } };
	struct pipe_end h[2] = { { .allow = 10 }, { .allow = 0 } };
	PAIR(p, 2);

	p.host.pipes = h;
	p.host.n_pipes = 2;
	for (int i = 0; i < 2; i++) {
		REQUIRE(pipe_open(&p.guest, &g[i], SB_STREAM_NET) == 0);
		pipe_pump(&g[i]);
	}
	REQUIRE(opened(&p, 2));
	(void)pair_until(&p, never, NULL, 20);
	CHECK_EQ(h[0].got, 10);
	sb_stream_close(g[0].s); /* the guest abandons it */
	CHECK(pair_until(&p, was_reset, &h[0], 2000));
	CHECK(!h[0].eof);
	sb_stream_close(h[1].s); /* the host abandons it, the guest blocked */
	CHECK(pair_until(&p, was_reset, &g[1], 2000));
	CHECK(!g[1].eof);
	(void)pair_until(&p, never, NULL, 20);
	CHECK(!p.host.closed && !p.guest.closed);
	/* both entries are free again */
	p.host.n_opened = 0;
	for (int i = 0; i < 2; i++)
		REQUIRE(pipe_open(&p.guest, &g[i], SB_STREAM_NET) == 0);
	REQUIRE(opened(&p, 2));
	pair_stop(&p);
}

/* EOF and RESET while the sink was full: it gets everything, then eof(), then reset(). */
TEST(eof_and_reset_while_full)
{
	struct pipe_end g = { .to_send = 1000 };
	struct pipe_end h[1] = { { .allow = 10, .to_send = 0, .hold_eof = true } };
	PAIR(p, 1);

	p.host.pipes = h;
	p.host.n_pipes = 1;
	REQUIRE(pipe_open(&p.guest, &g, SB_STREAM_NET) == 0);
	pipe_pump(&g);
	sb_stream_close(g.s);
	REQUIRE(opened(&p, 1));
	(void)pair_until(&p, never, NULL, 20);
	CHECK(!h[0].eof && !h[0].reset);
	pipe_allow(&h[0], UINT64_MAX);
	CHECK(h[0].eof && h[0].reset);
	CHECK_EQ(h[0].got, 1000);
	(void)pair_until(&p, never, NULL, 20);
	CHECK(!p.host.closed && !p.guest.closed);
	REQUIRE(pipe_open(&p.guest, &g, SB_STREAM_NET) == 0);
	pair_stop(&p);
}

TEST(no_network)
{
	struct pipe_end g = { 0 };
	PAIR(p, 0);

	CHECK_EQ(pipe_open(&p.guest, &g, SB_STREAM_NET), -ENOBUFS);
	pair_stop(&p);
}

TEST(host_refuses)
{
	struct pipe_end g = { 0 };
	PAIR(p, 1);

	p.host.opened_ret = -EPERM;
	REQUIRE(pipe_open(&p.guest, &g, SB_STREAM_NET) == 0);
	CHECK(pair_until(&p, host_closed, &p, 1000));
	CHECK_STR(p.host.why, "stream refused");
	pair_stop(&p);
}

TEST(failure_at_every_call)
{
	int fds = t_open_fds();

	REQUIRE(sb_crypto_init() == 0);
	T_EVERY_FAULT(n)
	{
		struct pipe_end g = { .to_send = 300000, .allow = UINT64_MAX };
		struct pipe_end h[1] = { { .allow = 100 } };
		struct pair p = { .max_net = 3 };
		bool all = false;
		bool fired;

		t_fault_arm(n);
		if (pair_start(&p, false) == 0) {
			(void)pair_until(&p, pair_ready, &p, 50);
			p.host.pipes = h;
			p.host.n_pipes = 1;
			if (p.guest.ready && pipe_open(&p.guest, &g, SB_STREAM_NET) == 0) {
				pipe_pump(&g);
				for (int i = 0; i < 200 && !h[0].eof && !p.host.closed &&
						!p.guest.closed;
				     i++) {
					pipe_allow(&h[0], 50000);
					if (sb_loop_turn(p.loop, 1) < 0)
						break;
				}
				all = h[0].got == 300000;
			}
		}
		fired = t_fault_fired();
		if (!fired)
			CHECK(all);
		else if (!all && p.host.ready && p.guest.ready)
			CHECK(p.host.closed || p.guest.closed || !g.s);
		CHECK(!h[0].bad);
		pair_stop(&p);
		CHECK_EQ(t_open_fds(), fds);
		if (!fired)
			break;
	}
}

/* --- a hostile guest --- */

static void le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void open_stream(struct raw *r, uint32_t id, uint32_t kind, uint32_t cmd)
{
	uint8_t b[8];

	le32(b, kind);
	le32(b + 4, cmd);
	raw_frame(r, SB_FRAME_OPEN, id, b, 8);
}

static void expect_dead(struct raw *r, const char *why)
{
	for (int i = 0; i < 50 && !r->end->closed; i++)
		raw_turn(r);
	CHECK(r->end->closed);
	CHECK_EQ(r->end->err, -EBADMSG);
	CHECK_STR(r->end->why, why);
	raw_stop(r);
}

TEST(bad_opens)
{
	static const struct {
		enum sb_chan_role victim;
		uint32_t max_net;
		uint32_t id;
		uint32_t kind;
		uint32_t cmd;
	} cases[] = {
		{ SB_CHAN_HOST, 0, FIRST, SB_STREAM_NET, 0 },     /* no network */
		{ SB_CHAN_HOST, 4, FIRST + 1, SB_STREAM_NET, 0 }, /* not the next one */
		{ SB_CHAN_HOST, 4, 1, SB_STREAM_NET, 0 },         /* of the host's */
		{ SB_CHAN_HOST, 4, 0x80000000U, SB_STREAM_NET, 0 },
		{ SB_CHAN_HOST, 4, FIRST, SB_STREAM_NET, 1 }, /* belongs to no command */
		{ SB_CHAN_HOST, 4, FIRST, SB_STREAM_STDOUT, 0 },
		{ SB_CHAN_HOST, 4, FIRST, SB_STREAM_NONE, 0 },
		{ SB_CHAN_HOST, 0, FIRST, SB_STREAM_SSH, 0 },
		{ SB_CHAN_HOST, 4, FIRST, SB_STREAM_SSH, 1 },
		{ SB_CHAN_HOST, 4, FIRST, 8, 0 },
		{ SB_CHAN_GUEST, 4, FIRST, SB_STREAM_SSH, 0 },
		{ SB_CHAN_GUEST, 4, FIRST, SB_STREAM_NET, 0 }, /* the host opens no such thing */
		{ SB_CHAN_GUEST, 4, 1, SB_STREAM_NET, 0 },
		{ SB_CHAN_GUEST, 4, FIRST, SB_STREAM_STDIN, 0 },
	};
	struct raw r;

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		REQUIRE(raw_start_net(&r, cases[i].victim, cases[i].max_net) == 0);
		open_stream(&r, cases[i].id, cases[i].kind, cases[i].cmd);
		expect_dead(&r, "bad OPEN");
	}
	/* the same one again, and one more than may live */
	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 4) == 0);
	open_stream(&r, FIRST, SB_STREAM_NET, 0);
	CHECK(!r.end->closed);
	open_stream(&r, FIRST, SB_STREAM_NET, 0);
	expect_dead(&r, "bad OPEN");
	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 4) == 0);
	for (uint32_t i = 0; i < 4; i++)
		open_stream(&r, FIRST + i, SB_STREAM_NET, 0);
	CHECK(!r.end->closed);
	open_stream(&r, FIRST + 4, SB_STREAM_NET, 0);
	expect_dead(&r, "bad OPEN");
}

TEST(without_credit)
{
	uint8_t b[4];
	struct raw r;

	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 1) == 0);
	open_stream(&r, FIRST, SB_STREAM_NET, 0); /* its sink takes nothing */
	for (uint32_t n = 0; n < NET_WINDOW; n += SB_FRAME_DATA_MAX)
		raw_frame(&r, SB_FRAME_DATA, FIRST, zeros, SB_FRAME_DATA_MAX);
	for (int i = 0; i < 5; i++)
		raw_turn(&r);
	CHECK(!r.end->closed);
	raw_frame(&r, SB_FRAME_DATA, FIRST, zeros, 1);
	expect_dead(&r, "DATA without credit or out of place");
	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 1) == 0);
	open_stream(&r, FIRST, SB_STREAM_NET, 0);
	le32(b, 1);
	raw_frame(&r, SB_FRAME_CREDIT, FIRST, b, 4);
	expect_dead(&r, "CREDIT beyond the window or out of place");
}

/* OPEN and RESET for ever. A guest that reads gets its answers; nothing grows. */
TEST(open_reset_flood)
{
	struct raw r;
	size_t before = 0;
	uint32_t i = 0;

	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 8) == 0);
	for (; i < 20000 && !r.end->closed; i++) {
		open_stream(&r, FIRST + i, SB_STREAM_NET, 0);
		raw_frame(&r, SB_FRAME_RESET, FIRST + i, NULL, 0);
		CHECK(raw_drain(&r, NULL) >= 0);
		if (i == 100)
			before = heap();
	}
	CHECK(!r.end->closed);
	CHECK(heap() <= before + 64 * KIB);
	raw_stop(&r);
	/* one that does not read runs into the limit */
	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 8) == 0);
	before = heap();
	for (i = 0; i < 200000 && !r.end->closed; i++) {
		open_stream(&r, FIRST + i, SB_STREAM_NET, 0);
		raw_frame(&r, SB_FRAME_RESET, FIRST + i, NULL, 0);
	}
	CHECK(heap() <= before + MIB);
	expect_dead(&r, "bad OPEN");
}

/*
 * It sends, the sink takes everything, and it never reads its credit: the host's queue stays
 * short, and credit that was not sent does not count.
 */
TEST(credit_is_not_piled_up)
{
	struct pipe_end h[1] = { { .allow = UINT64_MAX } };
	const int small = 65536;
	struct raw r;
	size_t before;
	uint32_t i;

	REQUIRE(raw_start_net(&r, SB_CHAN_HOST, 1) == 0);
	REQUIRE(setsockopt(r.end->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
	r.end->pipes = h;
	r.end->n_pipes = 1;
	open_stream(&r, FIRST, SB_STREAM_NET, 0);
	before = heap();
	for (i = 0; i < 20000 && !r.end->closed; i++)
		raw_frame(&r, SB_FRAME_DATA, FIRST, zeros, SB_FRAME_DATA_MAX);
	CHECK(heap() <= before + MIB);
	expect_dead(&r, "DATA without credit or out of place");
}
