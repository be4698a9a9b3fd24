/*
 * Speed of the channel's codec against the bare AEAD, and of a stream over a socket pair between
 * two processes against a plain copy. One JSON line a figure; medians of ROUNDS rounds, with the
 * compared thing in the same round. Usage: bench_codec [MiB for the stream, default 1024]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "conn/chan.h"
#include "crypto/noise.h"
#include "wire/record.h"

#define ROUNDS 9
#define FRAME (16U << 10)
#define CODEC_BYTES (256U << 20)
#define MIB (1024.0 * 1024.0)

static uint8_t payload[FRAME];
static uint8_t record[SB_REC_MAX];

static double mib_per_s(uint64_t bytes, uint64_t ns)
{
	return (double)bytes / MIB / ((double)ns / 1e9);
}

static double raw_aead(void)
{
	struct sb_aead tx = { .key = { 1 } };
	struct sb_aead rx = { .key = { 1 } };
	uint64_t from = sb_now_ns();

	for (uint32_t done = 0; done < CODEC_BYTES; done += FRAME)
		if (sb_aead_seal(&tx, NULL, 0, record, FRAME) < 0 ||
		    sb_aead_open(&rx, NULL, 0, record, FRAME + SB_AEAD_TAG_LEN) < 0)
			abort();
	return mib_per_s(CODEC_BYTES, sb_now_ns() - from);
}

static double codec(void)
{
	struct sb_aead tx = { .key = { 1 } };
	struct sb_aead rx = { .key = { 1 } };
	uint8_t *text = record + SB_REC_HEAD_LEN;
	uint64_t from = sb_now_ns();

	for (uint32_t done = 0; done < CODEC_BYTES; done += FRAME) {
		uint32_t len = SB_FRAME_HEAD_LEN + FRAME;
		struct sb_frame f;
		struct sb_rd rd;
		uint32_t body;

		sb_frame_head_write(SB_FRAME_DATA, 1, FRAME, text);
		memcpy(text + SB_FRAME_HEAD_LEN, payload, FRAME);
		sb_rec_head_write(len + SB_REC_TAG_LEN, record);
		if (sb_aead_seal(&tx, record, SB_REC_HEAD_LEN, text, len) < 0)
			abort();
		if (sb_rec_head_parse(record, SB_REC_HEAD_LEN, 0, &body) != 0 ||
		    sb_aead_open(&rx, record, SB_REC_HEAD_LEN, text, body) < 0)
			abort();
		rd = (struct sb_rd){ .p = text, .len = body - SB_REC_TAG_LEN };
		if (sb_frame_next(&rd, &f) != 0 || f.len != FRAME)
			abort();
	}
	return mib_per_s(CODEC_BYTES, sb_now_ns() - from);
}

/* --- a stream between two processes --- */

struct end {
	struct sb_loop *loop;
	struct sb_chan *c;
	struct sb_stream *s;
	int src;
	struct sb_io io;
	uint64_t total; /* guest: to send, host: expected */
	uint64_t done;
};

static void pump(struct end *e)
{
	while (e->done < e->total) {
		void *to;
		size_t n = sb_stream_reserve(e->s, &to);

		if (n == 0)
			return;
		n = SB_MIN(n, e->total - e->done);
		memset(to, 'x', n); /* what a read from a pipe would do */
		sb_stream_commit(e->s, n);
		e->done += n;
	}
	sb_stream_send_eof(e->s);
}

static size_t on_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct end *e = sb_stream_owner(s);

	(void)p;
	e->done += len;
	return len;
}

static void on_eof(struct sb_stream *s)
{
	struct end *e = sb_stream_owner(s);

	sb_loop_stop(e->loop, 0);
}

static void on_writable(struct sb_stream *s)
{
	pump(sb_stream_owner(s));
}

static const struct sb_stream_ops stream_ops = {
	.data = on_data, .eof = on_eof, .writable = on_writable
};

static void on_ready(struct sb_chan *c)
{
	struct end *e = sb_chan_owner(c);

	if (e->total == 0 && sb_stream_open(c, SB_STREAM_STDOUT, 0, &stream_ops, e, &e->s) < 0)
		abort();
}

static int on_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	(void)c;
	(void)msg;
	(void)len;
	return 0;
}

static int on_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind,
		     uint32_t cmd)
{
	struct end *e = sb_chan_owner(c);

	(void)kind;
	(void)cmd;
	e->s = s;
	sb_stream_attach(s, &stream_ops, e);
	pump(e);
	return 0;
}

static void on_closed(struct sb_chan *c, int err, const char *why)
{
	struct end *e = sb_chan_owner(c);

	if (err < 0)
		(void)fprintf(stderr, "closed: %d %s\n", err, why);
	sb_loop_stop(e->loop, err < 0 ? 1 : 0);
}

static const struct sb_chan_ops chan_ops = { on_ready, on_control, on_opened, on_closed };

static uint64_t run_end(int fd, enum sb_chan_role role, uint64_t total)
{
	struct end e = { .total = total };
	struct sb_chan_config cfg = { .role = role, .fd_in = fd, .fd_out = fd, .psk = { 9 },
				      .ops = &chan_ops, .owner = &e };

	if (sb_loop_new(&e.loop) < 0)
		abort();
	cfg.loop = e.loop;
	if (sb_chan_new(&cfg, &e.c) < 0 || sb_loop_run(e.loop) != 0)
		abort();
	(void)sb_chan_free(e.c);
	(void)sb_loop_free(e.loop);
	return e.done;
}

static double stream(uint64_t bytes)
{
	const int size = 1 << 20; /* as the monitor sets it */
	uint64_t from;
	uint64_t got;
	pid_t pid;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		(void)setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	from = sb_now_ns();
	pid = fork();
	if (pid == 0) {
		(void)close(sv[0]);
		(void)run_end(sv[1], SB_CHAN_GUEST, bytes);
		_exit(0);
	}
	(void)close(sv[1]);
	got = run_end(sv[0], SB_CHAN_HOST, 0);
	(void)close(sv[0]);
	(void)waitpid(pid, NULL, 0);
	if (got != bytes)
		abort();
	return mib_per_s(bytes, sb_now_ns() - from);
}

static double plain_copy(uint64_t bytes)
{
	static uint8_t buf[64U << 10];
	const int size = 1 << 20;
	uint64_t from;
	uint64_t got = 0;
	pid_t pid;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		(void)setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	from = sb_now_ns();
	pid = fork();
	if (pid == 0) {
		for (uint64_t n = 0; n < bytes;) {
			ssize_t w;

			memset(buf, 'x', sizeof(buf));
			w = write(sv[1], buf, sizeof(buf));
			if (w <= 0)
				_exit(1);
			n += (uint64_t)w;
		}
		_exit(0);
	}
	(void)close(sv[1]);
	for (;;) {
		ssize_t n = read(sv[0], buf, sizeof(buf));

		if (n <= 0)
			break;
		got += (uint64_t)n;
	}
	(void)close(sv[0]);
	(void)waitpid(pid, NULL, 0);
	return mib_per_s(got, sb_now_ns() - from);
}

/* --- figures --- */

static double median(double *v, size_t n, double *low, double *high)
{
	qsort(v, n, sizeof(*v), bench_by_value);
	*low = v[0];
	*high = v[n - 1];
	return v[n / 2];
}

static double report(const char *name, double *v, size_t n)
{
	double low;
	double high;
	double m = median(v, n, &low, &high);

	(void)printf("{\"bench\":\"%s\",\"unit\":\"MiB/s\",\"median\":%.0f,\"min\":%.0f,"
		     "\"max\":%.0f,\"rounds\":%zu}\n",
		     name, m, low, high, n);
	return m;
}

int main(int argc, char **argv)
{
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024;
	double a[ROUNDS];
	double b[ROUNDS];
	size_t n = ROUNDS;
	double bare;

	if (sb_crypto_init() < 0 || mib == 0)
		return 1;
	(void)signal(SIGPIPE, SIG_IGN);
	memset(payload, 'x', sizeof(payload));
	(void)raw_aead(); /* warm */
	for (size_t i = 0; i < n; i++) {
		a[i] = raw_aead();
		b[i] = codec();
	}
	bare = report("aead_16k", a, n);
	(void)printf("{\"bench\":\"codec_to_aead\",\"unit\":\"ratio\",\"median\":%.3f}\n",
		     report("codec_16k", b, n) / bare);
	n = 5;
	for (size_t i = 0; i < n; i++) {
		a[i] = plain_copy(mib << 20);
		b[i] = stream(mib << 20);
	}
	bare = report("socketpair_copy", a, n);
	(void)printf("{\"bench\":\"channel_to_copy\",\"unit\":\"ratio\",\"median\":%.3f}\n",
		     report("channel_stdout", b, n) / bare);
	return 0;
}
