/* Two ends of a channel: streams, credit, endings, control messages, floods. */
#include <malloc.h>
#include <unistd.h>

#include "crypto/crypto.h"
#include "peer.h"
#include "wire/ctl.h"

#define MIB (1ULL << 20)

static bool ctl_arrived(void *arg)
{
	const struct pair *p = arg;

	return p->guest.n_control > 0 || p->guest.closed;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static bool both_closed(void *arg)
{
	const struct pair *p = arg;

	return p->host.closed && p->guest.closed;
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

#define PAIR(p)                                                                                    \
	struct pair p = { 0 };                                                                     \
	REQUIRE(sb_crypto_init() == 0);                                                            \
	REQUIRE(pair_start(&p, false) == 0);                                                       \
	REQUIRE(pair_until(&p, pair_ready, &p, 2000))

TEST(handshake_and_control)
{
	static uint8_t big[SB_CTL_MAX];
	uint8_t sum = 0;
	PAIR(p);

	for (size_t i = 0; i < sizeof(big); i++) {
		big[i] = pattern(i);
		sum = (uint8_t)(sum + big[i]);
	}
	CHECK_EQ(sb_chan_control(p.host.c, big, 0), -EMSGSIZE);
	CHECK_EQ(sb_chan_control(p.host.c, big, sizeof(big) + 1), -EMSGSIZE);
	CHECK_EQ(sb_chan_control(p.host.c, big, sizeof(big)), 0);
	CHECK(!sb_chan_flushed(p.host.c));
	REQUIRE(pair_until(&p, ctl_arrived, &p, 2000));
	CHECK_EQ(p.guest.control_len, sizeof(big));
	CHECK_EQ(p.guest.control_sum, sum);
	CHECK(sb_chan_flushed(p.host.c));
	CHECK_EQ(sb_chan_control(p.host.c, big, sizeof(big)), 0);
	CHECK_EQ(sb_chan_control(p.host.c, big, 128U << 10), 0);
	CHECK_EQ(sb_chan_control(p.host.c, big, sizeof(big)), -ENOBUFS);
	pair_stop(&p);
}

TEST(wrong_key_closes_both)
{
	struct pair p = { 0 };

	REQUIRE(sb_crypto_init() == 0);
	REQUIRE(pair_start(&p, true) == 0);
	(void)pair_until(&p, pair_ready, &p, 100);
	CHECK(!p.host.ready && !p.guest.ready);
	CHECK(p.guest.closed);
	CHECK_EQ(p.guest.err, -EBADMSG);
	CHECK_STR(p.guest.why, "handshake refused");
	CHECK_EQ(sb_chan_control(p.guest.c, (const uint8_t *)"x", 1), -ENOTCONN);
	pair_stop(&p);
}

TEST(carrier_end_closes)
{
	PAIR(p);

	p.guest.c = sb_chan_free(p.guest.c);
	(void)close(p.guest.fd);
	p.guest.fd = -1;
	p.guest.closed = true;
	REQUIRE(pair_until(&p, both_closed, &p, 2000));
	CHECK_EQ(p.host.err, 0);
	pair_stop(&p);
}

static void both_ways(uint64_t len)
{
	struct pipe_end in = { .to_send = len };
	struct pipe_end out = { .allow = UINT64_MAX };
	struct pipe_end err = { .allow = UINT64_MAX };
	struct pipe_end g[3] = { { .allow = UINT64_MAX }, { .to_send = len }, { .to_send = len } };
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 3;
	REQUIRE(pipe_open(&p.host, &in, SB_STREAM_STDIN) == 0);
	REQUIRE(pipe_open(&p.host, &out, SB_STREAM_STDOUT) == 0);
	REQUIRE(pipe_open(&p.host, &err, SB_STREAM_STDERR) == 0);
	pipe_pump(&in);
	while (p.guest.n_opened < 3)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	pipe_pump(&g[1]);
	pipe_pump(&g[2]);
	CHECK(pair_until(&p, got_eof, &out, 20000));
	CHECK(pair_until(&p, got_eof, &err, 20000));
	CHECK(pair_until(&p, got_eof, &g[0], 20000));
	CHECK_EQ(out.got, len);
	CHECK_EQ(err.got, len);
	CHECK_EQ(g[0].got, len);
	CHECK(!out.bad && !err.bad && !g[0].bad);
	CHECK(!p.host.closed && !p.guest.closed);
	sb_stream_close(in.s);
	sb_stream_close(out.s);
	sb_stream_close(err.s);
	for (int i = 0; i < 3; i++)
		sb_stream_close(g[i].s);
	(void)pair_until(&p, never, NULL, 30);
	CHECK(!p.host.closed && !p.guest.closed);
	CHECK(sb_chan_flushed(p.host.c) && sb_chan_flushed(p.guest.c));
	pair_stop(&p);
}

TEST(bytes_both_ways)
{
	both_ways(0);
	both_ways(1);
	both_ways(65536);
	both_ways(65537);
	both_ways(SB_CHAN_WINDOW);
	both_ways(5 * MIB + 17);
}

static size_t heap(void)
{
	struct mallinfo2 mi = mallinfo2();

	return mi.uordblks + mi.hblkhd;
}

/* 50 MiB into a stream that nobody reads, 64 MiB the other way with a sink that stops, at once. */
TEST(stopped_sinks)
{
	struct pipe_end in = { .to_send = 50 * MIB };
	struct pipe_end out = { .allow = 3 * MIB };
	struct pipe_end g[2] = { { .allow = 0 }, { .to_send = 64 * MIB } };
	size_t before;
	PAIR(p);

	before = heap();
	p.guest.pipes = g;
	p.guest.n_pipes = 2;
	REQUIRE(pipe_open(&p.host, &in, SB_STREAM_STDIN) == 0);
	REQUIRE(pipe_open(&p.host, &out, SB_STREAM_STDOUT) == 0);
	pipe_pump(&in);
	while (p.guest.n_opened < 2)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	pipe_pump(&g[1]);
	(void)pair_until(&p, never, NULL, 300);
	CHECK_EQ(in.sent, SB_CHAN_WINDOW);
	CHECK_EQ(g[0].got, 0);
	CHECK_EQ(out.got, 3 * MIB);
	CHECK(g[1].sent <= 3 * MIB + SB_CHAN_WINDOW);
	/* two windows and the queues of both ends */
	if (heap() - before > 2 * SB_CHAN_WINDOW + 2 * MIB)
		t_fail(__FILE__, __LINE__, "heap grew by %zu", heap() - before);
	/* control still gets through */
	CHECK_EQ(sb_chan_control(p.host.c, (const uint8_t *)"x", 1), 0);
	CHECK(pair_until(&p, ctl_arrived, &p, 2000));
	pipe_allow(&g[0], UINT64_MAX);
	pipe_allow(&out, UINT64_MAX);
	CHECK(pair_until(&p, got_eof, &out, 60000));
	CHECK(pair_until(&p, got_eof, &g[0], 60000));
	CHECK_EQ(out.got, 64 * MIB);
	CHECK_EQ(g[0].got, 50 * MIB);
	CHECK(!out.bad && !g[0].bad);
	pair_stop(&p);
}

/* A sink that takes a little at a time: partial acceptance at every boundary. */
TEST(trickle_sink)
{
	struct pipe_end out = { 0 };
	struct pipe_end g[1] = { { .to_send = 3 * MIB + 5 } };
	uint64_t step = 1;
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 1;
	REQUIRE(pipe_open(&p.host, &out, SB_STREAM_STDOUT) == 0);
	while (p.guest.n_opened < 1)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	pipe_pump(&g[0]);
	for (int i = 0; i < 4000 && !out.eof; i++) {
		pipe_allow(&out, step);
		step = step * 7 % 9973 + 1;
		REQUIRE(sb_loop_turn(p.loop, 1) == 0);
	}
	CHECK(out.eof);
	CHECK_EQ(out.got, 3 * MIB + 5);
	CHECK(!out.bad);
	pair_stop(&p);
}

/* A control message overtakes a full queue of output. */
TEST(control_overtakes_output)
{
	struct pipe_end out = { .allow = UINT64_MAX };
	struct pipe_end g[1] = { { .to_send = 64 * MIB } };
	uint64_t at_control;
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 1;
	REQUIRE(pipe_open(&p.host, &out, SB_STREAM_STDOUT) == 0);
	while (p.guest.n_opened < 1)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	pipe_pump(&g[0]);
	while (out.got < 4 * MIB)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	at_control = g[0].sent;
	CHECK_EQ(sb_chan_control(p.guest.c, (const uint8_t *)"x", 1), 0);
	while (p.host.n_control == 0)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	/* before: what was sealed or in the socket; the queue itself was overtaken */
	CHECK(out.got < at_control + 256 * 1024);
	CHECK(out.got < 64 * MIB);
	pair_stop(&p);
}

TEST(reset_by_receiver)
{
	struct pipe_end out = { .allow = 100 };
	struct pipe_end g[1] = { { .to_send = 64 * MIB } };
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 1;
	REQUIRE(pipe_open(&p.host, &out, SB_STREAM_STDOUT) == 0);
	while (out.got < 100) {
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
		if (g[0].s)
			pipe_pump(&g[0]);
	}
	sb_stream_close(out.s);
	CHECK(pair_until(&p, was_reset, &g[0], 2000));
	(void)pair_until(&p, never, NULL, 20);
	CHECK(!p.host.closed && !p.guest.closed);
	pair_stop(&p);
}

TEST(reset_by_sender)
{
	struct pipe_end in = { .to_send = 100, .hold_eof = true };
	struct pipe_end g[1] = { { .allow = 10 } };
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 1;
	REQUIRE(pipe_open(&p.host, &in, SB_STREAM_STDIN) == 0);
	pipe_pump(&in);
	while (g[0].got < 10)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	sb_stream_close(in.s);
	CHECK(pair_until(&p, was_reset, &g[0], 2000));
	CHECK(!g[0].eof);
	CHECK(!p.host.closed && !p.guest.closed);
	pair_stop(&p);
}

/* EOF, then close at once: nothing may be lost at the slow receiver. */
TEST(close_after_eof_loses_nothing)
{
	struct pipe_end in = { .to_send = 100000 };
	struct pipe_end g[1] = { { .allow = 10 } };
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 1;
	REQUIRE(pipe_open(&p.host, &in, SB_STREAM_STDIN) == 0);
	pipe_pump(&in);
	CHECK_EQ(in.sent, 100000);
	sb_stream_close(in.s);
	(void)pair_until(&p, never, NULL, 20);
	CHECK_EQ(g[0].got, 10);
	CHECK(!g[0].eof && !g[0].reset);
	pipe_allow(&g[0], UINT64_MAX);
	CHECK(g[0].eof);
	CHECK_EQ(g[0].got, 100000);
	sb_stream_close(g[0].s);
	(void)pair_until(&p, never, NULL, 20);
	CHECK(!p.host.closed && !p.guest.closed);
	pair_stop(&p);
}

TEST(terminal_both_directions)
{
	struct pipe_end t = { .to_send = 300000, .allow = UINT64_MAX };
	struct pipe_end g[1] = { { .to_send = 5 * MIB, .allow = UINT64_MAX } };
	PAIR(p);

	p.guest.pipes = g;
	p.guest.n_pipes = 1;
	REQUIRE(pipe_open(&p.host, &t, SB_STREAM_TERMINAL) == 0);
	pipe_pump(&t);
	while (p.guest.n_opened < 1)
		REQUIRE(sb_loop_turn(p.loop, 20) == 0);
	pipe_pump(&g[0]);
	CHECK(pair_until(&p, got_eof, &t, 10000));
	CHECK(pair_until(&p, got_eof, &g[0], 10000));
	CHECK_EQ(t.got, 5 * MIB);
	CHECK_EQ(g[0].got, 300000);
	CHECK(!t.bad && !g[0].bad);
	pair_stop(&p);
}

/* Open and close far more streams than the table holds. */
TEST(many_streams)
{
	struct pipe_end in[SB_CHAN_MAX_STREAMS];
	struct pipe_end g[SB_CHAN_MAX_STREAMS];
	struct pipe_end extra = { 0 };
	PAIR(p);

	for (int round = 0; round < 20; round++) {
		memset(in, 0, sizeof(in));
		memset(g, 0, sizeof(g));
		p.guest.pipes = g;
		p.guest.n_pipes = SB_CHAN_MAX_STREAMS;
		p.guest.n_opened = 0;
		for (int i = 0; i < SB_CHAN_MAX_STREAMS; i++) {
			in[i].to_send = 10;
			g[i].allow = UINT64_MAX;
			REQUIRE(pipe_open(&p.host, &in[i], SB_STREAM_STDIN) == 0);
			pipe_pump(&in[i]);
		}
		CHECK_EQ(pipe_open(&p.host, &extra, SB_STREAM_STDIN), -ENOBUFS);
		for (int i = 0; i < SB_CHAN_MAX_STREAMS; i++)
			sb_stream_close(in[i].s);
		while (p.guest.n_opened < SB_CHAN_MAX_STREAMS && !p.guest.closed)
			REQUIRE(sb_loop_turn(p.loop, 20) == 0);
		for (int i = 0; i < SB_CHAN_MAX_STREAMS; i++) {
			CHECK(pair_until(&p, got_eof, &g[i], 1000));
			CHECK_EQ(g[i].got, 10);
			if (g[i].s)
				sb_stream_close(g[i].s);
		}
		(void)pair_until(&p, never, NULL, 10);
		REQUIRE(!p.host.closed && !p.guest.closed);
	}
	pair_stop(&p);
}

TEST(refusals_kill_the_channel)
{
	struct pipe_end in = { 0 };
	PAIR(p);

	p.guest.opened_ret = -EPERM;
	REQUIRE(pipe_open(&p.host, &in, SB_STREAM_STDIN) == 0);
	REQUIRE(pair_until(&p, both_closed, &p, 100) || p.guest.closed);
	CHECK_EQ(p.guest.err, -EPERM);
	CHECK_STR(p.guest.why, "stream refused");
	pair_stop(&p);
}

TEST(failure_at_every_call)
{
	int fds = t_open_fds();

	REQUIRE(sb_crypto_init() == 0);
	T_EVERY_FAULT(n)
	{
		struct pipe_end in = { .to_send = 200000 };
		struct pipe_end out = { .allow = UINT64_MAX };
		struct pipe_end g[2] = { { .allow = UINT64_MAX }, { .to_send = 200000 } };
		struct pair p = { 0 };
		bool all = false;
		bool fired;

		t_fault_arm(n);
		if (pair_start(&p, false) == 0) {
			(void)pair_until(&p, pair_ready, &p, 50);
			p.guest.pipes = g;
			p.guest.n_pipes = 2;
			if (p.host.ready && pipe_open(&p.host, &in, SB_STREAM_STDIN) == 0 &&
			    pipe_open(&p.host, &out, SB_STREAM_STDOUT) == 0) {
				pipe_pump(&in);
				for (int i = 0; i < 200 && !(g[0].eof && out.eof) &&
						!p.host.closed && !p.guest.closed;
				     i++) {
					if (g[1].s)
						pipe_pump(&g[1]);
					if (sb_loop_turn(p.loop, 1) < 0)
						break;
				}
				all = g[0].got == 200000 && out.got == 200000;
			}
		}
		fired = t_fault_fired();
		if (!fired)
			CHECK(all);
		else if (!all && p.host.ready && p.guest.ready)
			CHECK(p.host.closed || p.guest.closed || !in.s || !out.s);
		CHECK(!in.reset && !out.bad && !g[0].bad);
		pair_stop(&p);
		CHECK_EQ(t_open_fds(), fds);
		if (!fired)
			break;
	}
}
