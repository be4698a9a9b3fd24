/* Terminals: size, signals by keyboard, job control, end of file, flow. */
#include "t.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "host_end.h"

#define ARGV(...) ((char *[]){ __VA_ARGS__, NULL })
#define S(x) ((char *)(uintptr_t)(x))

static bool usable(void)
{
	if (geteuid() == 0)
		return true;
	t_skip("needs root");
	return false;
}

static bool start(struct he *h, char **argv, const char *streams)
{
	return he_start(h, argv, true, strchr(streams, 'e') != NULL, NULL) &&
	       he_open(h, 0, streams) && he_run(h, 24, 80);
}

TEST(size_and_resize)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(start(&h, ARGV(S("sh"), S("-c"),
			       S("trap 'stty size; exit 0' WINCH; stty size; tty; echo $TERM; "
				 "echo up; while :; do sleep 0.05; done")),
		      "t"));
	CHECK(he_until_text(&h, 0, "up\r\n"));
	CHECK(strstr(he_text(&h, 0), "24 80\r\n/dev/pts/"));
	CHECK(strstr(he_text(&h, 0), "xterm\r\n"));
	he_ctl(&h, SB_CTL_RESIZE, 0, 0, 33, 101);
	CHECK(he_until_exited(&h, 0));
	CHECK(strstr(he_text(&h, 0), "33 101\r\n"));
	CHECK_EQ(he_stop(&h), 0);
}

TEST(control_c_reaches_the_inner_program)
{
	struct he h;

	if (!usable())
		return;
	/* the shell survives, its child does not */
	REQUIRE(start(&h, ARGV(S("bash"), S("--norc"), S("-i")), "t"));
	CHECK(he_until_text(&h, 0, "$ ")); /* typing ahead of readline's set-up is another story */
	he_feed(&h, 0, "PS1=; echo u''p; sleep 987661; echo st=$?\n", 42, false);
	CHECK(he_until_text(&h, 0, "up\r\n"));
	for (int i = 0; i < 20; i++)
		he_turn(&h, 20);
	he_feed(&h, 0, "\003", 1, false);
	CHECK(he_until_text(&h, 0, "^C"));
	he_feed(&h, 0, "echo al''ive\n", 13, false);
	CHECK(he_until_text(&h, 0, "alive\r\n"));
	/* job control: stop, list, continue in the background */
	he_feed(&h, 0, "sleep 987662\n", 13, false);
	for (int i = 0; i < 20; i++)
		he_turn(&h, 20);
	he_feed(&h, 0, "\032", 1, false);
	CHECK(he_until_text(&h, 0, "Stopped"));
	he_feed(&h, 0, "bg; jobs; kill %1; wait; echo j''obs\n", 37, false);
	CHECK(he_until_text(&h, 0, "Running"));
	CHECK(he_until_text(&h, 0, "jobs\r\n"));
	CHECK(!strstr(he_text(&h, 0), "no job control"));
	he_feed(&h, 0, "exit 5\n", 7, false);
	CHECK(he_until_exited(&h, 0));
	CHECK_EQ(h.cmd[0].result.exit.value, 5);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(signal_goes_to_the_foreground_group)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(start(&h, ARGV(S("bash"), S("--norc"), S("-i")), "t"));
	CHECK(he_until_text(&h, 0, "$ ")); /* typing ahead of readline's set-up is another story */
	he_feed(&h, 0, "PS1=; echo u''p; (trap 'echo in''ner; exit' TERM; echo rea''dy; while :; do sleep 0.05; done)\n",
		94, false);
	CHECK(he_until_text(&h, 0, "ready\r\n"));
	he_ctl(&h, SB_CTL_SIGNAL, 0, SIGTERM, 0, 0);
	CHECK(he_until_text(&h, 0, "inner\r\n"));
	he_feed(&h, 0, "exit 0\n", 7, false);
	CHECK(he_until_exited(&h, 0));
	CHECK_EQ(he_stop(&h), 0);
}

TEST(end_of_file_is_typed)
{
	struct he h;

	if (!usable())
		return;
	/* an unfinished line: one end-of-file to push it, one to end */
	REQUIRE(start(&h, ARGV(S("sh"), S("-c"), S("stty -echo; echo up; cat; echo '|end'")), "t"));
	CHECK(he_until_text(&h, 0, "up\r\n"));
	he_feed(&h, 0, "two\nhalf", 8, true);
	CHECK(he_until_exited(&h, 0));
	CHECK(strstr(he_text(&h, 0), "two\r\nhalf|end\r\n"));
	CHECK_EQ(he_stop(&h), 0);
}

TEST(stderr_of_its_own_is_a_terminal_too)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(start(&h, ARGV(S("sh"), S("-c"),
			       S("echo out; test -t 2 && echo err >&2; stty size <&2 >&2")),
		      "te"));
	CHECK(he_until_exited(&h, 0));
	CHECK_STR(he_text(&h, 0), "out\r\n");
	CHECK_STR((char *)h.cmd[0].err.data, "err\r\n24 80\r\n");
	CHECK_EQ(he_stop(&h), 0);
}

TEST(a_large_paste_into_a_raw_terminal)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(start(&h, ARGV(S("sh"), S("-c"),
			       S("stty raw -echo; echo up; sleep 0.3; head -c 8M | wc -c")),
		      "t"));
	CHECK(he_until_text(&h, 0, "up"));
	he_feed(&h, 0, NULL, 8U << 20, false);
	CHECK(he_until_exited(&h, 0));
	CHECK(strstr(he_text(&h, 0), "8388608"));
	CHECK_EQ(he_stop(&h), 0);
}

TEST(a_paste_that_nobody_reads)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(start(&h, ARGV(S("sh"), S("-c"),
			       S("stty raw -echo; echo up; head -c 64M /dev/zero; sleep 0.2")),
		      "t"));
	CHECK(he_until_text(&h, 0, "up"));
	he_feed(&h, 0, NULL, 50U << 20, true);
	CHECK(he_until_exited(&h, 0));
	CHECK_EQ(h.cmd[0].out.len, (64 << 20) + 3);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(letting_go_of_the_terminal_hangs_up)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(start(&h, ARGV(S("sh"), S("-c"), S("echo up; sleep 987663")), "t"));
	CHECK(he_until_text(&h, 0, "up"));
	sb_stream_close(h.cmd[0].out.s);
	h.cmd[0].out.s = h.cmd[0].in.s = NULL;
	CHECK(he_until_exited(&h, 0));
	CHECK_EQ(h.cmd[0].result.exit.kind, SB_EXIT_SIGNAL);
	CHECK_EQ(h.cmd[0].result.exit.value, SIGHUP);
	CHECK_EQ(he_stop(&h), 0);
}
