/* The relay of a micro-VM between real sockets and the host's end of a channel, on one loop. */
#include "relay/net_relay.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t.h"

#define STREAMS 8

struct far { /* one stream at the host's end */
	struct sb_stream *s;
	uint8_t data[6000];
	size_t kept;
	size_t len;
	size_t to_send; /* zeros, then EOF */
	bool stop;
	bool eof;
	bool reset;
};

static struct {
	struct sb_loop *loop;
	struct sb_chan *host;
	struct sb_chan *guest;
	struct sb_net_relay *relay;
	int carrier[2];
	int listen[4];
	uint16_t tcp;
	uint16_t udp;
	bool ready;
	struct far far[STREAMS];
	size_t n_far;
} w;

static void far_send(struct far *f)
{
	static const uint8_t zeros[65536];

	while (f->s && f->to_send > 0) {
		size_t n = sb_stream_space(f->s);

		if (n == 0)
			return;
		n = sb_stream_write(f->s, zeros, SB_MIN(SB_MIN(n, sizeof(zeros)), f->to_send));
		f->to_send -= n;
		if (f->to_send == 0)
			sb_stream_send_eof(f->s);
	}
}

static size_t far_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct far *f = sb_stream_owner(s);
	size_t n = SB_MIN(len, sizeof(f->data) - f->kept);

	if (f->stop)
		return 0;
	memcpy(f->data + f->kept, p, n);
	f->kept += n;
	f->len += len;
	return len;
}
static void far_eof(struct sb_stream *s)
{
	struct far *f = sb_stream_owner(s);

	f->eof = true;
}
static void far_reset(struct sb_stream *s)
{
	struct far *f = sb_stream_owner(s);

	f->reset = true;
	f->s = NULL;
}
static void far_writable(struct sb_stream *s)
{
	far_send(sb_stream_owner(s));
}
static const struct sb_stream_ops far_ops = { far_data, far_eof, far_reset, far_writable };

static void on_ready(struct sb_chan *c)
{
	(void)c;
	w.ready = true;
}
static int on_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	(void)c;
	(void)msg;
	(void)len;
	return 0;
}
static int on_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind, uint32_t cmd)
{
	struct far *f = &w.far[w.n_far++ % STREAMS];

	(void)c;
	(void)cmd;
	CHECK_EQ(kind, SB_STREAM_NET);
	*f = (struct far){ .s = s };
	sb_stream_attach(s, &far_ops, f);
	return 0;
}
static void on_closed(struct sb_chan *c, int err, const char *why)
{
	(void)err;
	(void)why;
	if (c == w.host)
		return;
	if (w.relay)
		sb_net_relay_channel(w.relay, NULL);
	w.guest = sb_chan_free(c);
}
static const struct sb_chan_ops chan_ops = { on_ready, on_control, on_opened, on_closed };

static void turns(int n)
{
	for (int i = 0; i < n; i++)
		(void)!sb_loop_turn(w.loop, 1);
}
#define UNTIL(cond)                                                                                \
	do {                                                                                       \
		for (int i_ = 0; i_ < 3000 && !(cond); i_++)                                       \
			turns(1);                                                                  \
		CHECK(cond);                                                                       \
	} while (0)

static int listener(int type, uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	const int on = 1;
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&a, len) < 0 || getsockname(fd, (void *)&a, &len) < 0)
		t_fail(__FILE__, __LINE__, "no listener");
	if (type == SOCK_STREAM && listen(fd, 16) < 0)
		t_fail(__FILE__, __LINE__, "no listener");
	*port = ntohs(a.sin_port);
	return fd;
}

static void start(uint32_t max_net)
{
	struct sb_chan_config cfg = { .role = SB_CHAN_HOST, .max_net = max_net, .ops = &chan_ops,
				      .prologue = "p", .prologue_len = 1, .owner = &w };

	memset(&w, 0, sizeof(w));
	CHECK_EQ(sb_loop_new(&w.loop), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w.carrier), 0);
	w.listen[0] = listener(SOCK_STREAM, &w.tcp);
	w.listen[2] = listener(SOCK_DGRAM, &w.udp);
	w.listen[1] = w.listen[3] = -1;
	cfg.loop = w.loop;
	cfg.fd_in = cfg.fd_out = w.carrier[0];
	CHECK_EQ(sb_chan_new(&cfg, &w.host), 0);
	cfg.role = SB_CHAN_GUEST;
	cfg.fd_in = cfg.fd_out = w.carrier[1];
	CHECK_EQ(sb_net_relay_new(w.loop, w.listen, -1, 16, &w.relay), 0);
	CHECK_EQ(sb_chan_new(&cfg, &w.guest), 0);
	sb_net_relay_channel(w.relay, w.guest);
	UNTIL(w.ready);
	turns(5);
}

static void stop(void)
{
	w.relay = sb_net_relay_free(w.relay);
	w.guest = sb_chan_free(w.guest);
	w.host = sb_chan_free(w.host);
	for (int i = 0; i < 4; i++)
		if (w.listen[i] >= 0)
			(void)close(w.listen[i]);
	(void)close(w.carrier[0]);
	(void)close(w.carrier[1]);
	w.loop = sb_loop_free(w.loop);
}

static int dial(int type, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	CHECK_EQ(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* What the next read gives, waiting for it. Return: bytes; -errno. */
static ssize_t get(int fd, void *p, size_t len)
{
	for (int i = 0; i < 3000; i++) {
		ssize_t n = read(fd, p, len);

		if (n >= 0 || errno != EAGAIN)
			return n < 0 ? -errno : n;
		turns(1);
	}
	return -ETIMEDOUT;
}

TEST(bytes_and_ends_both_ways)
{
	uint8_t hello[20] = { 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 };
	char got[16];
	int fds = t_open_fds();
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	hello[2] = (uint8_t)w.tcp;
	hello[3] = (uint8_t)(w.tcp >> 8);
	UNTIL(w.far[0].len == 20); /* before the program says anything */
	CHECK_MEM(w.far[0].data, hello, 20);
	CHECK_EQ(write(c, "question", 8), 8);
	UNTIL(w.far[0].len == 28);
	CHECK_MEM(w.far[0].data + 20, "question", 8);
	CHECK(!w.far[0].eof);
	CHECK_EQ(shutdown(c, SHUT_WR), 0);
	UNTIL(w.far[0].eof);
	CHECK_EQ(sb_stream_write(w.far[0].s, "answer", 6), 6);
	CHECK_EQ(get(c, got, sizeof(got)), 6);
	CHECK_MEM(got, "answer", 6);
	CHECK_EQ(sb_stream_write(w.far[0].s, "more", 4), 4);
	sb_stream_send_eof(w.far[0].s);
	CHECK_EQ(get(c, got, sizeof(got)), 4);
	CHECK_EQ(get(c, got, sizeof(got)), 0);
	sb_stream_close(w.far[0].s);
	(void)close(c);
	turns(5);
	stop();
	CHECK_EQ(t_open_fds(), fds);
}

TEST(the_host_ends_first)
{
	char got[4];
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[0].len == 20);
	sb_stream_send_eof(w.far[0].s);
	CHECK_EQ(get(c, got, sizeof(got)), 0);
	CHECK_EQ(write(c, "still", 5), 5);
	UNTIL(w.far[0].len == 25);
	(void)close(c);
	UNTIL(w.far[0].eof);
	CHECK(!w.far[0].reset);
	stop();
}

TEST(resets)
{
	const struct linger now = { .l_onoff = 1 };
	char got[4];
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[0].len == 20);
	(void)setsockopt(c, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(c);
	UNTIL(w.far[0].reset);
	CHECK(!w.far[0].eof);

	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[1].len == 20);
	sb_stream_close(w.far[1].s);
	CHECK_EQ(get(c, got, sizeof(got)), -ECONNRESET);
	(void)close(c);
	stop();
}

/* A program that is reset while nobody reads what it sent. */
TEST(reset_while_blocked)
{
	static uint8_t block[65536];
	const struct linger now = { .l_onoff = 1 };
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[0].len == 20);
	w.far[0].stop = true;
	for (int i = 0; i < 200; i++) {
		(void)!write(c, block, sizeof(block));
		turns(1);
	}
	(void)setsockopt(c, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(c);
	UNTIL(w.far[0].reset);
	stop();
}

TEST(a_slow_host_stops_the_program)
{
	static uint8_t block[65536];
	size_t sent = 0;
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[0].len == 20);
	w.far[0].stop = true;
	for (int i = 0; i < 300; i++) {
		ssize_t n = write(c, block, sizeof(block));

		if (n > 0)
			sent += (size_t)n;
		turns(1);
	}
	CHECK_EQ(write(c, block, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(sent < 300 * sizeof(block));
	w.far[0].stop = false;
	sb_stream_resume(w.far[0].s);
	UNTIL(w.far[0].len == sent + 20);
	(void)close(c);
	UNTIL(w.far[0].eof);
	stop();
}

TEST(a_slow_program_stops_the_host)
{
	static uint8_t block[65536];
	size_t len = 32U << 20;
	size_t got = 0;
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[0].len == 20);
	w.far[0].to_send = len;
	far_send(&w.far[0]);
	turns(500);
	CHECK(w.far[0].to_send > 0);
	for (;;) {
		ssize_t n = get(c, block, sizeof(block));

		if (n <= 0) {
			CHECK_EQ(n, 0);
			break;
		}
		got += (size_t)n;
	}
	CHECK_EQ(got, len);
	(void)close(c);
	UNTIL(w.far[0].eof);
	CHECK(!w.far[0].reset);
	stop();
}

TEST(one_too_many)
{
	char got[4];
	int c[3];

	start(2);
	c[0] = dial(SOCK_STREAM, w.tcp);
	c[1] = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.n_far == 2);
	c[2] = dial(SOCK_STREAM, w.tcp);
	CHECK_EQ(get(c[2], got, sizeof(got)), -ECONNRESET);
	(void)close(c[2]);
	CHECK_EQ(write(c[1], "x", 1), 1);
	UNTIL(w.far[1].len == 21);
	/* one ends, one comes */
	(void)close(c[0]);
	UNTIL(w.far[0].eof);
	sb_stream_close(w.far[0].s);
	turns(20);
	c[0] = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.n_far == 3);
	(void)close(c[0]);
	(void)close(c[1]);
	stop();
}

TEST(the_channel_dies)
{
	char got[4];
	int c;

	start(4);
	c = dial(SOCK_STREAM, w.tcp);
	UNTIL(w.far[0].len == 20);
	w.host = sb_chan_free(w.host);
	CHECK_EQ(shutdown(w.carrier[0], SHUT_RDWR), 0);
	CHECK_EQ(get(c, got, sizeof(got)), -ECONNRESET);
	(void)close(c);
	CHECK(w.guest == NULL);
	c = dial(SOCK_STREAM, w.tcp);
	CHECK_EQ(get(c, got, sizeof(got)), -ECONNRESET);
	(void)close(c);
	c = dial(SOCK_DGRAM, w.udp);
	CHECK_EQ(write(c, "?", 1), 1);
	turns(5);
	(void)close(c);
	stop();
}

static const uint8_t dns_hello[20] = { 1, 2 };

TEST(questions_and_answers)
{
	static uint8_t long_one[4097];
	uint8_t frame[16] = { 5, 0 };
	char got[5000];
	struct far *f = &w.far[0];
	int a;
	int b;

	start(4);
	a = dial(SOCK_DGRAM, w.udp);
	b = dial(SOCK_DGRAM, w.udp);
	CHECK_EQ(write(a, "what?", 5), 5);
	UNTIL(f->len == 29);
	CHECK_EQ(write(b, long_one, sizeof(long_one)), 4097); /* dropped */
	CHECK_EQ(write(b, "", 0), 0);                         /* too */
	CHECK_EQ(write(b, "who?", 4), 4);
	UNTIL(f->len == 37);
	CHECK_EQ(w.n_far, 1);
	CHECK_MEM(f->data, dns_hello, 20);
	CHECK_MEM(f->data + 20, "\5\0", 2);
	CHECK_MEM(f->data + 24, "what?", 5);
	CHECK_MEM(f->data + 29, "\4\0", 2);
	CHECK_MEM(f->data + 33, "who?", 4);
	CHECK(memcmp(f->data + 22, f->data + 31, 2) != 0);
	/* the second one is answered first, in pieces; then an unknown tag, then the first */
	memcpy(frame + 2, f->data + 31, 2);
	memcpy(frame + 4, "me!!!", 5);
	CHECK_EQ(sb_stream_write(f->s, frame, 3), 3);
	turns(5);
	CHECK_EQ(sb_stream_write(f->s, frame + 3, 4), 4);
	turns(5);
	CHECK_EQ(sb_stream_write(f->s, frame + 7, 2), 2);
	CHECK_EQ(get(b, got, sizeof(got)), 5);
	CHECK_MEM(got, "me!!!", 5);
	CHECK_EQ(sb_stream_write(f->s, frame, 9), 9); /* again: unknown */
	memcpy(frame + 2, f->data + 22, 2);
	memcpy(frame + 4, "that!", 5);
	CHECK_EQ(sb_stream_write(f->s, frame, 9), 9);
	CHECK_EQ(get(a, got, sizeof(got)), 5);
	CHECK_MEM(got, "that!", 5);
	CHECK_EQ(read(b, got, sizeof(got)), -1);
	/* the longest that may be */
	CHECK_EQ(write(a, long_one, 4096), 4096);
	UNTIL(f->len == 37 + 4100);
	CHECK_MEM(f->data + 37, "\0\x10", 2);
	CHECK_EQ(sb_stream_write(f->s, f->data + 37, 4100), 4100);
	CHECK_EQ(get(a, got, sizeof(got)), 4096);
	(void)close(a);
	(void)close(b);
	stop();
}

TEST(a_stream_that_breaks_is_opened_anew)
{
	static const uint8_t bad[4] = { 1, 0x10, 0, 0 }; /* 4097 */
	int a;

	start(4);
	a = dial(SOCK_DGRAM, w.udp);
	CHECK_EQ(write(a, "1", 1), 1);
	UNTIL(w.far[0].len == 25);
	CHECK_EQ(sb_stream_write(w.far[0].s, bad, 4), 4);
	UNTIL(w.far[0].reset);
	CHECK_EQ(write(a, "2", 1), 1);
	turns(50);
	CHECK_EQ(w.n_far, 1); /* not at once */
	(void)usleep(1100000);
	CHECK_EQ(write(a, "3", 1), 1);
	UNTIL(w.far[1].len == 25);
	CHECK_MEM(w.far[1].data, dns_hello, 20);
	CHECK_EQ(w.far[1].data[24], '3');
	(void)close(a);
	stop();
}

TEST(every_failure_of_the_start)
{
	struct sb_net_relay *r = NULL;
	int fds;

	start(4);
	w.relay = sb_net_relay_free(w.relay);
	fds = t_open_fds();
	T_EVERY_FAULT(n) {
		int e;

		t_fault_arm(n);
		e = sb_net_relay_new(w.loop, w.listen, -1, 4, &r);
		if (!t_fault_fired()) {
			CHECK_EQ(e, 0);
			break;
		}
		CHECK(e < 0);
		CHECK(r == NULL);
		CHECK_EQ(t_open_fds(), fds);
	}
	w.relay = r;
	stop();
}

/* Whatever fails while a connection comes and goes: it is reset, and the relay goes on. */
TEST(every_failure_of_a_connection)
{
	T_EVERY_FAULT(n) {
		char got[4];
		bool fired;
		int c;

		start(4);
		c = dial(SOCK_STREAM, w.tcp);
		t_fault_arm(n);
		turns(10);
		fired = t_fault_fired();
		t_fault_disarm();
		if (w.guest && w.n_far > 0 && w.far[0].s) {
			(void)!write(c, "x", 1);
			turns(10);
		}
		if (!fired)
			CHECK_EQ(w.far[0].len, 21);
		else if (w.n_far == 0 && w.guest)
			CHECK(get(c, got, sizeof(got)) <= 0);
		(void)close(c);
		turns(5);
		stop();
		if (!fired)
			break;
	}
}
