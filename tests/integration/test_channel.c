/* sendbox-channel as a process: monitor and guest are played by the test. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/boot.h"
#include "conn/chan.h"
#include "os/spawn.h"
#include "t.h"
#include "wire/ctl.h"
#include "wire/ipc.h"

static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";

struct guest {
	uint64_t time_ns;
	struct sb_chan *c;
	struct sb_stream *in;
	struct sb_stream *out;
	struct sb_stream *err;
	struct sb_ctl ctl[32]; /* text not kept */
	size_t n_ctl;
	size_t got;
	char text[256];
	uint64_t flood; /* bytes still to send on stdout */
	bool in_eof;
	bool out_reset;
	bool closed;
	bool hold_input;
};

struct rig {
	struct sb_loop *loop;
	struct guest g;
	pid_t pid;
	int ipc;
	int carrier;
	uint8_t pub[SB_SIGN_PUBLIC_LEN];
	struct sb_boot boot;
	uint8_t prologue[SB_PROLOGUE_LEN];
	struct sb_ipc_msg msg;
};

/* --- the guest --- */

static void flood(struct guest *g)
{
	while (g->out && g->flood > 0) {
		void *to;
		size_t n = sb_stream_reserve(g->out, &to);

		if (n == 0)
			return;
		n = SB_MIN(n, g->flood);
		memset(to, 'x', n);
		sb_stream_commit(g->out, n);
		g->flood -= n;
	}
}

static size_t g_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct guest *g = sb_stream_owner(s);

	if (g->hold_input)
		return 0;
	for (size_t i = 0; i < len && g->got + i < sizeof(g->text) - 1; i++)
		g->text[g->got + i] = (char)p[i];
	g->got += len;
	return len;
}

static void g_eof(struct sb_stream *s)
{
	struct guest *g = sb_stream_owner(s);

	g->in_eof = true;
}

static void g_reset(struct sb_stream *s)
{
	struct guest *g = sb_stream_owner(s);

	if (s == g->out) {
		g->out_reset = true;
		g->out = NULL;
	}
	if (s == g->in)
		g->in = NULL;
	if (s == g->err)
		g->err = NULL;
}

static void g_writable(struct sb_stream *s)
{
	flood(sb_stream_owner(s));
}

static const struct sb_stream_ops g_stream = { g_data, g_eof, g_reset, g_writable };

static int g_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	struct guest *g = sb_chan_owner(c);

	struct sb_ctl m;
	int r = sb_ctl_parse(msg, len, &m);

	if (r < 0)
		return r;
	if (m.type == SB_CTL_TIME) { /* comes between the others, at its own pace */
		g->time_ns = m.time_ns;
		return 0;
	}
	if (g->n_ctl == SB_ARRAY_LEN(g->ctl))
		return -ENOBUFS;
	g->ctl[g->n_ctl++] = m;
	return 0;
}

static int g_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind, uint32_t cmd)
{
	struct guest *g = sb_chan_owner(c);

	(void)cmd;
	sb_stream_attach(s, &g_stream, g);
	if (kind == SB_STREAM_STDIN || kind == SB_STREAM_TERMINAL)
		g->in = s;
	if (kind == SB_STREAM_STDOUT || kind == SB_STREAM_TERMINAL)
		g->out = s;
	if (kind == SB_STREAM_STDERR)
		g->err = s;
	return 0;
}

static void g_closed(struct sb_chan *c, int err, const char *why)
{
	struct guest *g = sb_chan_owner(c);

	(void)err;
	(void)why;
	g->closed = true;
	g->in = g->out = g->err = NULL;
}

static const struct sb_chan_ops g_chan = { .control = g_control,
					   .opened = g_opened,
					   .closed = g_closed };

static int say(struct guest *g, const struct sb_ctl *m)
{
	sb_autobuf struct sb_buf b;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, m);
	return sb_chan_control(g->c, b.data, b.len);
}

static void say_exited(struct guest *g, uint32_t code)
{
	struct sb_ctl m = { .type = SB_CTL_EXITED,
			    .exit = { .kind = SB_EXIT_CODE, .value = code } };

	CHECK_EQ(say(g, &m), 0);
}

/* --- the rig --- */

static int plan_memfd(bool tty, uint8_t sha_sig[SB_SIGN_LEN], uint8_t pub[SB_SIGN_PUBLIC_LEN])
{
	uint8_t sec[SB_SIGN_SECRET_LEN];
	char text[4096];
	int n = snprintf(
		text, sizeof(text),
		"{\"accel\":\"none\",\"argv\":[\"/bin/true\"],\"cpus\":2,\"cpus_asked\":false,"
		"\"created\":1000,\"cwd\":\"/w\",\"disk\":67108864,\"env\":[\"A=1\"],"
		"\"expires\":2000,\"format\":\"sendbox-plan\",\"gid\":1000,\"guest_sha256\":\"%s\","
		"\"home\":\"/home/user\",\"hostname\":\"sendbox\",\"image\":\"host\","
		"\"image_dev\":0,\"image_ino\":0,\"image_path\":null,"
		"\"initramfs_sha256\":\"%s\",\"kernel_release\":null,\"kernel_sha256\":\"%s\","
		"\"memory\":0,\"memory_asked\":false,\"mounts\":[],"
		"\"net\":{\"cname_strict\":false,\"dns_new_names\":0,\"dns_queries\":0,"
		"\"dns_types\":[],\"ech_outer\":false,\"host_bytes\":0,\"idle_ms\":0,"
		"\"max_connections\":0,\"mode\":\"none\",\"pins\":[],\"proxy_env\":false,"
		"\"resolvers\":[],\"rules\":[],\"session_bytes\":0},\"nofile\":1024,"
		"\"owner_gid\":1000,\"owner_uid\":1000,\"pids_asked\":false,\"pids_max\":512,"
		"\"provider\":\"namespace\",\"provider_reason\":\"asked for\","
		"\"separate_stderr\":false,\"session\":\"000102030405060708090a0b0c0d0e0f\","
		"\"term\":%s,\"test_root\":false,\"timeout_ms\":0,\"tty\":%s,\"uid\":1000,"
		"\"user\":\"user\",\"version\":1}",
		zeros, zeros, zeros, tty ? "\"xterm\"" : "null", tty ? "true" : "false");
	int fd = memfd_create("plan", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return -1;
	sb_sign_keypair(pub, sec);
	sb_sign(text, (size_t)n, sec, sha_sig);
	return fd;
}

static bool rig_spawn(struct rig *r, bool tty, uint32_t timeout_ms, bool bad_sig)
{
	static const char *const argv[] = { "sendbox-channel", NULL };
	struct sb_ipc_chan_start start = { .psk = { 7 }, .ready_timeout_ms = timeout_ms };
	struct sb_spawn_fd map[2] = { { .to = 3 }, { .from = 2, .to = 2 } };
	struct sb_spawn sp = { .path = CHANNEL_EXE, .argv = argv, .fds = map, .n_fds = 2 };
	int ipc[2];
	int carrier[2];
	int fds[2];
	struct sb_err err = { 0 };

	memset(r, 0, sizeof(*r));
	if (sb_crypto_init() < 0 || sb_loop_new(&r->loop) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ipc) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, carrier) < 0)
		return false;
	map[0].from = ipc[1];
	r->ipc = ipc[0];
	r->carrier = carrier[1];
	if (sb_spawn_start(&sp, &r->pid, NULL, &err) < 0) {
		t_fail(__FILE__, __LINE__, "%s", err.text);
		return false;
	}
	(void)close(ipc[1]);
	fds[0] = carrier[0];
	fds[1] = plan_memfd(tty, start.signature, start.public_key);
	memcpy(r->pub, start.public_key, sizeof(r->pub));
	if (bad_sig)
		start.signature[3] ^= 1;
	if (fds[1] < 0 ||
	    sb_ipc_send(r->ipc, SB_IPC_CHAN_START, &start, sizeof(start), fds, 2) < 0)
		return false;
	(void)close(fds[0]);
	(void)close(fds[1]);
	return true;
}

static bool rig_boot(struct rig *r)
{
	struct sb_chan_config cfg = { .loop = r->loop,
				      .role = SB_CHAN_GUEST,
				      .fd_in = r->carrier,
				      .fd_out = r->carrier,
				      .prologue = r->prologue,
				      .prologue_len = sizeof(r->prologue),
				      .ops = &g_chan,
				      .owner = &r->g };
	struct sb_err err = { 0 };

	if (sb_boot_read(r->carrier, r->pub, 1500, 3000, &r->boot, &err) < 0) {
		t_fail(__FILE__, __LINE__, "%s", err.text);
		return false;
	}
	sb_boot_prologue(r->boot.session, r->boot.plan_sha256, r->prologue);
	memcpy(cfg.psk, r->boot.psk, sizeof(cfg.psk));
	return sb_chan_new(&cfg, &r->g.c) == 0;
}

/* Let the guest's loop run until the monitor gets a message. Return: its type; 0 = EOF; -1. */
static int rig_message(struct rig *r, int ms)
{
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	while (sb_now_ns() < end) {
		struct pollfd p = { .fd = r->ipc, .events = POLLIN };

		if (sb_loop_turn(r->loop, 5) < 0)
			return -1;
		if (poll(&p, 1, 0) > 0) {
			int q = sb_ipc_recv(r->ipc, &r->msg);

			return q == 0 ? r->msg.type : q == SB_IPC_EOF ? 0 : -1;
		}
	}
	return -1;
}

static bool rig_turn_until(struct rig *r, const bool *flag, int ms)
{
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	while (!*flag && sb_now_ns() < end)
		if (sb_loop_turn(r->loop, 5) < 0)
			return false;
	return *flag;
}

static bool rig_ready(struct rig *r, bool tty)
{
	struct sb_ctl m = { .type = SB_CTL_READY, .text = "6.1", .text_len = 3 };

	if (!rig_spawn(r, tty, 5000, false) || !rig_boot(r))
		return false;
	for (int i = 0; i < 1000 && say(&r->g, &m) == -ENOTCONN; i++)
		if (sb_loop_turn(r->loop, 5) < 0)
			return false;
	return rig_message(r, 3000) == SB_IPC_READY;
}

static bool rig_run(struct rig *r, int in, int out, int err)
{
	struct sb_ipc_run run = { .cmd = 0, .rows = 24, .cols = 80 };
	int fds[3] = { in, out, err };

	if (sb_ipc_send(r->ipc, SB_IPC_CHAN_RUN, &run, sizeof(run), fds, 3) < 0)
		return false;
	for (int i = 0; i < 1000 && r->g.n_ctl == 0; i++)
		if (sb_loop_turn(r->loop, 5) < 0)
			return false;
	/* the guest knows the time before its first command: 2020 to 2100 */
	return r->g.n_ctl == 1 && r->g.ctl[0].type == SB_CTL_RUN &&
	       r->g.time_ns > 1577836800000000000U && r->g.time_ns < 4102444800000000000U;
}

/* Ends the process by closing its ipc socket. Return: its wait status. */
static int rig_stop(struct rig *r)
{
	int st = -1;

	(void)close(r->ipc);
	(void)waitpid(r->pid, &st, 0);
	r->g.c = sb_chan_free(r->g.c);
	(void)close(r->carrier);
	sb_boot_done(&r->boot);
	r->loop = sb_loop_free(r->loop);
	return st;
}

#define FAILED_WITH(r, want)                                                                       \
	do {                                                                                       \
		CHECK_EQ(rig_message(r, 3000), SB_IPC_FAILED);                                     \
		CHECK_EQ(((struct sb_ipc_failed *)(void *)(r)->msg.data)->fail, want);             \
	} while (0)

/* --- tests --- */

TEST(whole_session)
{
	struct sb_ctl started = { .type = SB_CTL_STARTED };
	struct sb_ctl bye = { .type = SB_CTL_BYE };
	struct sb_ipc_resize size = { .rows = 50, .cols = 132 };
	struct sb_ipc_signal sig = { .signo = SIGINT };
	struct rig r;
	int in[2];
	int out[2];
	char buf[64] = { 0 };

	REQUIRE(rig_ready(&r, false));
	REQUIRE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	CHECK_EQ(write(in[1], "hello", 5), 5);
	(void)close(in[1]);
	REQUIRE(rig_run(&r, in[0], out[1], out[1]));
	(void)close(in[0]);
	(void)close(out[1]);
	CHECK_EQ(r.g.ctl[0].rows, 24);
	CHECK_EQ(say(&r.g, &started), 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_STARTED);
	CHECK(rig_turn_until(&r, &r.g.in_eof, 2000));
	CHECK_STR(r.g.text, "hello");
	CHECK_EQ(sb_ipc_send(r.ipc, SB_IPC_RESIZE, &size, sizeof(size), NULL, 0), 0);
	CHECK_EQ(sb_ipc_send(r.ipc, SB_IPC_SIGNAL, &sig, sizeof(sig), NULL, 0), 0);
	CHECK_EQ(sb_ipc_send(r.ipc, SB_IPC_CHAN_KILL, &sig, sizeof(sig), NULL, 0), 0);
	for (int i = 0; i < 400 && r.g.n_ctl < 4; i++)
		REQUIRE(sb_loop_turn(r.loop, 5) == 0);
	REQUIRE(r.g.n_ctl == 4);
	CHECK_EQ(r.g.ctl[1].type, SB_CTL_RESIZE);
	CHECK_EQ(r.g.ctl[1].cols, 132);
	CHECK_EQ(r.g.ctl[2].type, SB_CTL_SIGNAL);
	CHECK_EQ(r.g.ctl[2].value, SIGINT);
	CHECK_EQ(r.g.ctl[3].type, SB_CTL_KILL);
	CHECK_EQ(sb_stream_write(r.g.out, "out\n", 4), 4);
	CHECK_EQ(sb_stream_write(r.g.err, "err\n", 4), 4);
	say_exited(&r.g, 3); /* overtakes the output: must still come last */
	CHECK_EQ(rig_message(&r, 100), -1);
	sb_stream_send_eof(r.g.out);
	sb_stream_send_eof(r.g.err);
	sb_stream_close(r.g.out);
	sb_stream_close(r.g.err);
	sb_stream_close(r.g.in);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_EXITED);
	CHECK_EQ(((struct sb_ipc_exited *)(void *)r.msg.data)->value, 3);
	CHECK_EQ(read(out[0], buf, sizeof(buf)), 8);
	CHECK(strstr(buf, "out\n") && strstr(buf, "err\n"));
	CHECK_EQ(read(out[0], buf, sizeof(buf)), 0); /* the descriptors were closed */
	CHECK_EQ(sb_ipc_send(r.ipc, SB_IPC_CHAN_CLOSE, NULL, 0, NULL, 0), 0);
	for (int i = 0; i < 400 && r.g.n_ctl < 5; i++)
		REQUIRE(sb_loop_turn(r.loop, 5) == 0);
	CHECK_EQ(r.g.ctl[4].type, SB_CTL_SHUTDOWN);
	CHECK_EQ(say(&r.g, &bye), 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_CLOSED);
	CHECK_EQ(rig_stop(&r), 0);
	(void)close(out[0]);
}

static void check_resident(const struct rig *r, long limit_kib)
{
	char path[64];
	char line[256];
	long kib = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)r->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = atol(line + 6);
	if (f)
		(void)fclose(f);
	printf("# resident: %ld KiB\n", kib);
	CHECK(kib > 0);
#ifndef SB_JAIL_RELAXED
	CHECK(kib <= limit_kib);
#else
	(void)limit_kib;
#endif
}

TEST(idle_memory)
{
	struct rig r;

	REQUIRE(rig_ready(&r, false));
	check_resident(&r, 3 * 1024);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(reader_that_stops_and_goes)
{
	struct rig r;
	int out[2];
	int nul = open("/dev/null", O_RDWR | O_CLOEXEC);

	REQUIRE(rig_ready(&r, false));
	REQUIRE(nul >= 0 && pipe2(out, O_CLOEXEC) == 0);
	REQUIRE(rig_run(&r, nul, out[1], nul));
	(void)close(out[1]);
	r.g.flood = 64U << 20;
	flood(&r.g);
	CHECK_EQ(rig_message(&r, 500), -1);
	/* window, both queues, the pipe */
	CHECK(r.g.flood >= (64U << 20) - (3U << 20));
	check_resident(&r, 5 * 1024);
	(void)close(out[0]);
	CHECK(rig_turn_until(&r, &r.g.out_reset, 3000));
	sb_stream_send_eof(r.g.err);
	say_exited(&r.g, 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_EXITED);
	CHECK_EQ(rig_stop(&r), 0);
	(void)close(nul);
}

/* Blocking sockets, as the command line passes them for descriptors that it cannot reopen. */
TEST(blocking_sockets)
{
	struct rig r;
	int in[2];
	int out[2];
	char buf[16] = { 0 };

	REQUIRE(rig_ready(&r, false));
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0);
	REQUIRE(rig_run(&r, in[0], out[0], out[0]));
	(void)close(in[0]);
	(void)close(out[0]);
	CHECK_EQ(write(in[1], "abc", 3), 3);
	for (int i = 0; i < 400 && r.g.got < 3; i++)
		REQUIRE(sb_loop_turn(r.loop, 5) == 0);
	CHECK_STR(r.g.text, "abc");
	r.g.flood = 8U << 20;
	flood(&r.g);
	CHECK_EQ(rig_message(&r, 100), -1); /* full, and still answering: */
	(void)close(in[1]);
	CHECK(rig_turn_until(&r, &r.g.in_eof, 2000));
	CHECK_EQ(read(out[1], buf, 8), 8);
	CHECK_STR(buf, "xxxxxxxx");
	(void)close(out[1]);
	CHECK(rig_turn_until(&r, &r.g.out_reset, 3000));
	sb_stream_send_eof(r.g.err);
	say_exited(&r.g, 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_EXITED);
	CHECK_EQ(rig_stop(&r), 0);
}

/* 50 MiB of input for a program that never reads, and 64 MiB of output, at the same time. */
TEST(paste_and_flood)
{
	struct rig r;
	int out[2];
	int nul = open("/dev/null", O_RDWR | O_CLOEXEC);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	static char buf[1 << 16];
	uint64_t got = 0;

	REQUIRE(rig_ready(&r, false));
	REQUIRE(nul >= 0 && zero >= 0 && pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0);
	r.g.hold_input = true;
	REQUIRE(rig_run(&r, zero, out[1], nul));
	(void)close(out[1]);
	r.g.flood = 64U << 20;
	flood(&r.g);
	for (int i = 0; i < 100000 && got < 64U << 20; i++) {
		ssize_t n = read(out[0], buf, sizeof(buf));

		if (n > 0)
			got += (uint64_t)n;
		else
			REQUIRE(sb_loop_turn(r.loop, 1) == 0);
	}
	CHECK_EQ(got, 64U << 20);
	check_resident(&r, 5 * 1024);
	sb_stream_close(r.g.in);
	sb_stream_send_eof(r.g.out);
	sb_stream_send_eof(r.g.err);
	say_exited(&r.g, 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_EXITED);
	CHECK_EQ(rig_stop(&r), 0);
	(void)close(out[0]);
	(void)close(nul);
	(void)close(zero);
}

TEST(terminal_is_filtered)
{
	static const char text[] = "a\x1b]52;c;aGk=\x07"
				   "b\x1b[31mc\x1b[21t\x05"
				   "d\n";
	struct termios tio;
	struct rig r;
	int pm;
	int ps;
	char buf[64] = { 0 };

	REQUIRE(openpty(&pm, &ps, NULL, NULL, NULL) == 0);
	REQUIRE(tcgetattr(ps, &tio) == 0);
	cfmakeraw(&tio);
	REQUIRE(tcsetattr(ps, TCSANOW, &tio) == 0);
	REQUIRE(sb_fd_set_nonblock(ps, true) == 0);
	REQUIRE(rig_ready(&r, true));
	REQUIRE(rig_run(&r, ps, ps, ps));
	CHECK_EQ(r.g.ctl[0].flags, SB_CTL_F_TTY);
	CHECK(r.g.in && r.g.in == r.g.out && !r.g.err);
	CHECK_EQ(write(pm, "k", 1), 1);
	for (int i = 0; i < 400 && r.g.got == 0; i++)
		REQUIRE(sb_loop_turn(r.loop, 5) == 0);
	CHECK_STR(r.g.text, "k");
	CHECK_EQ(sb_stream_write(r.g.out, text, sizeof(text) - 1), sizeof(text) - 1);
	sb_stream_send_eof(r.g.out);
	say_exited(&r.g, 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_EXITED);
	CHECK(read(pm, buf, sizeof(buf) - 1) > 0);
	CHECK_STR(buf, "ab\x1b[31mcd\n");
	CHECK_EQ(rig_stop(&r), 0);
	(void)close(pm);
	(void)close(ps);
}

TEST(guest_breaks_the_rules)
{
	struct sb_ctl early = { .type = SB_CTL_STARTED };
	struct rig r;
	int null;

	/* not ready in time */
	REQUIRE(rig_spawn(&r, false, 100, false));
	FAILED_WITH(&r, SB_FAIL_TIMEOUT);
	CHECK_EQ(rig_stop(&r), 0);
	/* gone before the handshake */
	REQUIRE(rig_spawn(&r, false, 5000, false));
	REQUIRE(rig_boot(&r));
	r.g.c = sb_chan_free(r.g.c);
	(void)shutdown(r.carrier, SHUT_RDWR);
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
	/* something else before READY */
	REQUIRE(rig_spawn(&r, false, 5000, false));
	REQUIRE(rig_boot(&r));
	for (int i = 0; i < 1000 && say(&r.g, &early) == -ENOTCONN; i++)
		REQUIRE(sb_loop_turn(r.loop, 5) == 0);
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
	/* EXITED of a command that does not exist */
	REQUIRE(rig_ready(&r, false));
	say_exited(&r.g, 0);
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
	/* STARTED again: a time-out is counted from it */
	REQUIRE(rig_ready(&r, false));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	REQUIRE(null >= 0 && rig_run(&r, null, null, null));
	(void)close(null);
	CHECK_EQ(say(&r.g, &early), 0);
	CHECK_EQ(rig_message(&r, 2000), SB_IPC_STARTED);
	CHECK_EQ(say(&r.g, &early), 0);
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
	/* BYE out of place, then a garbage control message */
	REQUIRE(rig_ready(&r, false));
	CHECK_EQ(sb_chan_control(r.g.c, (const uint8_t *)"\x24", 1), 0);
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
	REQUIRE(rig_ready(&r, false));
	CHECK_EQ(sb_chan_control(r.g.c, (const uint8_t *)"\xff\xff", 2), 0);
	FAILED_WITH(&r, SB_FAIL_GUEST);
	CHECK_EQ(rig_stop(&r), 0);
}

TEST(bad_start)
{
	struct rig r;

	REQUIRE(rig_spawn(&r, false, 1000, true));
	FAILED_WITH(&r, SB_FAIL_INTERNAL);
	CHECK(rig_stop(&r) != 0);
}
