/* sendbox-channel as a process: commands, their streams, and a guest that breaks the rules. */
#include <pty.h>
#include <termios.h>

#include "channel_rig.h"

/* --- tests --- */

/* A guest in which a control is not in force is refused, and nothing is run in it. */
TEST(missing_control_refuses_the_session)
{
	static const char *const reports[][2] = {
		{ "kernel=6.1\n", "control profile is not in force as asked (asked: default; "
				  "in force: not reported)" },
		{ "profile=default\nuid=1000\ngid=1000\ncapabilities=CapEff\n",
		  "control capabilities is not in force as asked (asked: none; in force: CapEff)" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(reports); i++) {
		struct rig r;
		const struct sb_ipc_failed *f;

		CHECK(rig_reports(&r, reports[i][0]));
		f = (const struct sb_ipc_failed *)(const void *)r.msg.data;
		CHECK_EQ(f->fail, SB_FAIL_GUEST);
		CHECK(strstr(f->text, reports[i][1]) != NULL);
		CHECK(rig_stop(&r) >= 0);
	}
}

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

TEST(drift_is_refused)
{
	struct rig r;

	for (int env = 0; env < 2; env++) {
		REQUIRE(rig_spawn_drifted(&r, env));
		CHECK_EQ(rig_message(&r, 2000), SB_IPC_FAILED);
		CHECK(strstr(((struct sb_ipc_failed *)(void *)r.msg.data)->text,
			     env ? "the value of A is not the one of the plan"
				 : "the plan is of another session"));
		CHECK(rig_stop(&r) != 0);
	}
}

TEST(bad_start)
{
	struct rig r;

	REQUIRE(rig_spawn(&r, false, 1000, true));
	FAILED_WITH(&r, SB_FAIL_INTERNAL);
	CHECK(rig_stop(&r) != 0);
}
