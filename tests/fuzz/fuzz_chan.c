/*
 * A hostile peer with the session key. The input is a list of actions for it and for the
 * application of the real end: {u8 what, u8 a, u8 b}, sealed or raw bytes. Whatever happens, the
 * real end neither crashes nor leaks (sanitizers), holds no more than its windows, speaks
 * well-formed frames, and tells its death once.
 */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit/conn/raw.h"

#define N_PIPES 8
#define MAX_NET 24
#define ACTIONS_MAX 400

/* What the peer opens is taken from the front, what the application opens from the back. */
static struct pipe_end pipes[SB_CHAN_MAX_STREAMS + MAX_NET + N_PIPES];
static size_t n_pipes;

static void app_action(struct raw *r, uint8_t what, uint8_t a, uint8_t b)
{
	struct pipe_end *pe = &pipes[a % SB_ARRAY_LEN(pipes)];

	switch (what) {
	case 0:
		if (n_pipes < SB_ARRAY_LEN(pipes))
			(void)!pipe_open(r->end, &pipes[SB_ARRAY_LEN(pipes) - ++n_pipes],
					 r->end == &r->pair.host ?
						 (enum sb_stream_kind)(2 + b % 4) :
						 SB_STREAM_NET);
		break;
	case 1:
		pe->to_send += (uint64_t)b * 1021;
		pe->hold_eof = true;
		pipe_pump(pe);
		break;
	case 2:
		pipe_allow(pe, (uint64_t)b * 977);
		break;
	case 3:
		if (pe->s)
			sb_stream_send_eof(pe->s);
		break;
	case 4:
		if (pe->s) {
			struct sb_stream *s = pe->s;

			pe->s = NULL;
			sb_stream_close(s);
		}
		break;
	default:
		(void)!sb_chan_control(r->end->c, (const uint8_t *)"control", 1 + b % 7);
		break;
	}
}

static void peer_action(struct raw *r, uint8_t what, uint8_t a, uint8_t b)
{
	static uint8_t bytes[SB_FRAME_DATA_MAX];
	uint8_t body[8] = { 0 };
	uint32_t len = (uint32_t)b * 257;
	uint32_t id = a < 128 ? a : 0x80000000U + (a & 127U);

	switch (what) {
	case SB_FRAME_OPEN:
		body[0] = b & 7;
		raw_frame(r, what, id, body, 8);
		break;
	case SB_FRAME_CREDIT:
		body[b & 3] = b;
		raw_frame(r, what, id, body, 4);
		break;
	case SB_FRAME_DATA:
		raw_frame(r, what, id, bytes, len);
		break;
	case SB_FRAME_EOF:
	case SB_FRAME_RESET:
		raw_frame(r, what, id, bytes, b == 255);
		break;
	case SB_FRAME_CONTROL:
	case SB_FRAME_CONTROL_MORE:
		raw_frame(r, what, a == 255, bytes, SB_MIN(len, SB_FRAME_DATA_MAX));
		break;
	case 8:
		raw_frame(r, a, b, bytes, 1);
		break;
	case 9:
		(void)raw_drain(r, NULL);
		break;
	case 10:
		body[0] = a;
		body[1] = b;
		raw_bytes(r, body, 1 + b % 8);
		break;
	case 11:
		raw_send(r, bytes, (size_t)b * 3);
		break;
	default:
		raw_turn(r);
		break;
	}
}

static size_t heap(void)
{
	struct mallinfo2 mi = mallinfo2();

	return mi.uordblks + mi.hblkhd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct raw r;
	size_t before;
	size_t windows;

	if (size < 4)
		return 0;
	memset(pipes, 0, sizeof(pipes));
	n_pipes = 0;
	if (raw_start_net(&r, data[0] & 1 ? SB_CHAN_HOST : SB_CHAN_GUEST,
			  data[0] & 2 ? 0 : MAX_NET) < 0)
		abort();
	r.end->pipes = pipes;
	r.end->n_pipes = SB_ARRAY_LEN(pipes);
	before = heap();
	for (size_t i = 1; i + 3 <= size && i < (size_t)3 * ACTIONS_MAX; i += 3) {
		if (data[i] & 0x80)
			app_action(&r, data[i] % 6, data[i + 1], data[i + 2]);
		else
			peer_action(&r, data[i] & 15, data[i + 1], data[i + 2]);
	}
	raw_turn(&r);
	windows = (size_t)SB_CHAN_MAX_STREAMS * SB_CHAN_WINDOW +
		  (size_t)MAX_NET * SB_CHAN_NET_WINDOW + (4U << 20);
	if (heap() > before + windows)
		abort();
	if (!r.end->closed && raw_drain(&r, NULL) < 0)
		abort();
	raw_stop(&r);
	return 0;
}
