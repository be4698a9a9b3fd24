/* A hostile other end, with and without the key: each case must kill the channel, and only it. */
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"
#include "wire/ctl.h"

static uint8_t zeros[SB_FRAME_DATA_MAX];

static void expect_dead(struct raw *r, int err, const char *why)
{
	for (int i = 0; i < 50 && !r->end->closed; i++)
		raw_turn(r);
	CHECK(r->end->closed);
	CHECK_EQ(r->end->err, err);
	CHECK_STR(r->end->why, why);
	raw_stop(r);
}

static void le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void open_stream(struct raw *r, uint32_t id, uint32_t kind)
{
	uint8_t b[8] = { 0 };

	le32(b, kind);
	raw_frame(r, SB_FRAME_OPEN, id, b, 8);
}

static void credit(struct raw *r, uint32_t id, uint32_t n)
{
	uint8_t b[4];

	le32(b, n);
	raw_frame(r, SB_FRAME_CREDIT, id, b, 4);
}

TEST(without_the_key)
{
	struct raw r;
	uint8_t rec[4 + 24 + 16] = { 40 };

	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	raw_bytes(&r, rec, sizeof(rec));
	expect_dead(&r, -EBADMSG, "record not authentic");
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	raw_bytes(&r, "\xff\xff\xff\x7f", 4); /* refused before anything is allocated or awaited */
	expect_dead(&r, -EBADMSG, "record length out of range");
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	raw_bytes(&r, "\x17\0\0\0", 4);
	expect_dead(&r, -EBADMSG, "record length out of range");
}

TEST(replay_reorder_truncate)
{
	uint8_t rec[3][SB_REC_HEAD_LEN + 9 + SB_REC_TAG_LEN];
	struct raw r;

	for (int mode = 0; mode < 4; mode++) {
		REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
		for (int i = 0; i < 3; i++) {
			uint8_t *text = rec[i] + SB_REC_HEAD_LEN;

			sb_rec_head_write(9 + SB_REC_TAG_LEN, rec[i]);
			sb_frame_head_write(SB_FRAME_CONTROL, 0, 1, text);
			text[8] = 'x';
			REQUIRE(sb_aead_seal(&r.tx, rec[i], SB_REC_HEAD_LEN, text, 9) == 0);
		}
		switch (mode) {
		case 0: /* replay */
			raw_bytes(&r, rec[0], sizeof(rec[0]));
			CHECK(!r.end->closed);
			raw_bytes(&r, rec[0], sizeof(rec[0]));
			break;
		case 1: /* a record left out */
			raw_bytes(&r, rec[1], sizeof(rec[1]));
			break;
		case 2: /* a flipped bit in the length: it is authenticated */
			rec[0][0] ^= 1;
			raw_bytes(&r, rec[0], sizeof(rec[0]));
			raw_bytes(&r, rec[1], sizeof(rec[1]));
			break;
		default: /* cut in the middle, then the end */
			raw_bytes(&r, rec[0], sizeof(rec[0]) - 1);
			CHECK(!r.end->closed);
			(void)close(r.fd);
			r.fd = -1;
			expect_dead(&r, -ECONNABORTED, "carrier ended inside a record");
			continue;
		}
		expect_dead(&r, -EBADMSG, "record not authentic");
	}
}

TEST(end_at_every_byte_of_the_handshake)
{
	for (size_t n = 0; n < SB_REC_HEAD_LEN + SB_NOISE_OVERHEAD; n++) {
		struct pair p = { 0 };
		uint8_t msg[SB_REC_HEAD_LEN + SB_NOISE_OVERHEAD] = { SB_NOISE_OVERHEAD };

		REQUIRE(sb_crypto_init() == 0);
		REQUIRE(pair_start(&p, false) == 0);
		p.host.c = sb_chan_free(p.host.c); /* the real host never speaks: we do */
		CHECK_EQ(send(p.host.fd, msg, n, MSG_NOSIGNAL), n);
		(void)shutdown(p.host.fd, SHUT_RDWR);
		for (int i = 0; i < 50 && !p.guest.closed; i++)
			REQUIRE(sb_loop_turn(p.loop, 1) == 0);
		CHECK(p.guest.closed);
		CHECK_EQ(p.guest.err, n == 0 ? 0 : -ECONNABORTED);
		pair_stop(&p);
	}
}

TEST(unknown_streams_and_states)
{
	static const uint8_t types[] = { SB_FRAME_DATA, SB_FRAME_EOF, SB_FRAME_RESET,
					 SB_FRAME_CREDIT };
	struct raw r;

	for (size_t i = 0; i < sizeof(types); i++) {
		uint32_t len = types[i] == SB_FRAME_DATA ? 1 : types[i] == SB_FRAME_CREDIT ? 4 : 0;

		REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
		raw_frame(&r, types[i], 7, "\x01\0\0\0", len);
		expect_dead(&r, -EBADMSG, "frame for an unknown stream");
		/* after RESET nothing more may come */
		REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
		open_stream(&r, 1, SB_STREAM_STDIN);
		raw_frame(&r, SB_FRAME_RESET, 1, NULL, 0);
		CHECK(!r.end->closed);
		raw_frame(&r, types[i], 1, "\x01\0\0\0", len);
		expect_dead(&r, -EBADMSG, "frame for an unknown stream");
	}
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	open_stream(&r, 1, SB_STREAM_STDIN);
	raw_frame(&r, SB_FRAME_EOF, 1, NULL, 0);
	raw_frame(&r, SB_FRAME_DATA, 1, "x", 1);
	expect_dead(&r, -EBADMSG, "DATA without credit or out of place");
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	open_stream(&r, 1, SB_STREAM_STDIN);
	raw_frame(&r, SB_FRAME_EOF, 1, NULL, 0);
	raw_frame(&r, SB_FRAME_EOF, 1, NULL, 0);
	expect_dead(&r, -EBADMSG, "EOF out of place");
	/* DATA the wrong way */
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	open_stream(&r, 1, SB_STREAM_STDOUT);
	raw_frame(&r, SB_FRAME_DATA, 1, "x", 1);
	expect_dead(&r, -EBADMSG, "DATA without credit or out of place");
}

TEST(bad_opens)
{
	struct raw r;

	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0); /* a guest opens nothing */
	open_stream(&r, 1, SB_STREAM_STDIN);
	expect_dead(&r, -EBADMSG, "bad OPEN");
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	open_stream(&r, 2, SB_STREAM_STDIN); /* not the next one */
	expect_dead(&r, -EBADMSG, "bad OPEN");
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	open_stream(&r, 1, 6);
	expect_dead(&r, -EBADMSG, "bad OPEN");
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	for (uint32_t i = 1; i <= SB_CHAN_MAX_STREAMS; i++)
		open_stream(&r, i, SB_STREAM_STDIN);
	CHECK(!r.end->closed);
	open_stream(&r, SB_CHAN_MAX_STREAMS + 1, SB_STREAM_STDIN);
	expect_dead(&r, -EBADMSG, "bad OPEN");
}

TEST(credit_overrun)
{
	struct pipe_end out = { 0 };
	struct raw r;

	/* more DATA than the window */
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	REQUIRE(pipe_open(r.end, &out, SB_STREAM_STDOUT) == 0);
	for (uint32_t n = 0; n < SB_CHAN_WINDOW; n += SB_FRAME_DATA_MAX)
		raw_frame(&r, SB_FRAME_DATA, 1, zeros, SB_FRAME_DATA_MAX);
	for (int i = 0; i < 20; i++)
		raw_turn(&r);
	CHECK(!r.end->closed);
	raw_frame(&r, SB_FRAME_DATA, 1, zeros, 1);
	expect_dead(&r, -EBADMSG, "DATA without credit or out of place");
	/* the same into a stream that we gave up: it is dropped, but counted */
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	REQUIRE(pipe_open(r.end, &out, SB_STREAM_STDOUT) == 0);
	sb_stream_close(out.s);
	for (uint32_t n = 0; n < SB_CHAN_WINDOW; n += SB_FRAME_DATA_MAX)
		raw_frame(&r, SB_FRAME_DATA, 1, zeros, SB_FRAME_DATA_MAX);
	for (int i = 0; i < 20; i++)
		raw_turn(&r);
	CHECK(!r.end->closed);
	raw_frame(&r, SB_FRAME_DATA, 1, zeros, 1);
	expect_dead(&r, -EBADMSG, "DATA without credit or out of place");
	/* more credit than the window, and credit for what we never send */
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	REQUIRE(pipe_open(r.end, &out, SB_STREAM_STDIN) == 0);
	credit(&r, 1, 1);
	expect_dead(&r, -EBADMSG, "CREDIT beyond the window or out of place");
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	REQUIRE(pipe_open(r.end, &out, SB_STREAM_STDIN) == 0);
	CHECK_EQ(sb_stream_write(out.s, zeros, 10), 10);
	credit(&r, 1, 10);
	CHECK(!r.end->closed);
	credit(&r, 1, UINT32_MAX);
	expect_dead(&r, -EBADMSG, "CREDIT beyond the window or out of place");
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	REQUIRE(pipe_open(r.end, &out, SB_STREAM_STDOUT) == 0);
	credit(&r, 1, 1);
	expect_dead(&r, -EBADMSG, "CREDIT beyond the window or out of place");
}

TEST(control_garbage)
{
	struct raw r;

	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	for (int i = 0; i < 4; i++)
		raw_frame(&r, SB_FRAME_CONTROL_MORE, 0, zeros, SB_FRAME_DATA_MAX);
	CHECK(!r.end->closed); /* exactly SB_CTL_MAX so far */
	raw_frame(&r, SB_FRAME_CONTROL, 0, zeros, 1);
	expect_dead(&r, -EBADMSG, "control message too long");
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	for (int i = 0; i < 3; i++)
		raw_frame(&r, SB_FRAME_CONTROL_MORE, 0, zeros, SB_FRAME_DATA_MAX);
	raw_frame(&r, SB_FRAME_CONTROL, 0, zeros, SB_FRAME_DATA_MAX);
	for (int i = 0; i < 10; i++)
		raw_turn(&r);
	CHECK_EQ(r.end->n_control, 1);
	CHECK_EQ(r.end->control_len, SB_CTL_MAX);
	r.end->control_ret = -EBADMSG;
	raw_frame(&r, SB_FRAME_CONTROL, 0, zeros, 1);
	expect_dead(&r, -EBADMSG, "control message refused");
	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	raw_send(&r, zeros, 8);
	expect_dead(&r, -EBADMSG, "malformed frame");
}

/* Many small frames and a stream that comes and goes for ever: nothing grows, nothing hangs. */
TEST(flood)
{
	struct raw r;
	static uint8_t text[SB_REC_TEXT_MAX];
	size_t n = 0;

	REQUIRE(raw_start(&r, SB_CHAN_HOST) == 0);
	for (; n + 9 <= sizeof(text); n += 9) {
		sb_frame_head_write(SB_FRAME_CONTROL, 0, 1, text + n);
		text[n + 8] = 'x';
	}
	for (int i = 0; i < 50; i++)
		raw_send(&r, text, n);
	for (int i = 0; i < 200; i++)
		raw_turn(&r);
	CHECK(!r.end->closed);
	CHECK_EQ(r.end->n_control, 50 * (n / 9));
	raw_stop(&r);

	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	for (uint32_t i = 1; i < 2000; i++) {
		open_stream(&r, i, SB_STREAM_STDIN);
		raw_frame(&r, SB_FRAME_RESET, i, NULL, 0);
		CHECK(raw_drain(&r, NULL) >= 0);
	}
	CHECK(!r.end->closed);
	raw_stop(&r);
	/* the same without ever reading: the table bounds it, the channel dies */
	REQUIRE(raw_start(&r, SB_CHAN_GUEST) == 0);
	for (uint32_t i = 1; i < 200000 && !r.end->closed; i++) {
		open_stream(&r, i, SB_STREAM_STDIN);
		raw_frame(&r, SB_FRAME_RESET, i, NULL, 0);
	}
	expect_dead(&r, -EBADMSG, "bad OPEN");
}
