/* Commands and their streams, over a real channel, as a workload of another uid. */
#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* One command from start to end; the caller looks at h->cmd[0] and stops. */
static bool once(struct he *h, char **argv, const char *input)
{
	if (!he_start(h, argv, false, false, NULL) || !he_open(h, 0, "ioe"))
		return false;
	he_feed(h, 0, input, strlen(input), true);
	return he_run(h, 0, 0) && he_until_exited(h, 0);
}

#define EXIT_IS(h, n, k, v)                                                                        \
	do {                                                                                       \
		CHECK_EQ((h)->cmd[n].result.exit.kind, k);                                         \
		CHECK_EQ((h)->cmd[n].result.exit.value, v);                                        \
	} while (0)

TEST(cat_echoes_and_ends_at_eof)
{
	struct he h;

	if (!usable())
		return;
	CHECK(once(&h, ARGV(S("cat")), "hello\n"));
	CHECK_STR(he_text(&h, 0), "hello\n");
	CHECK(h.cmd[0].started);
	EXIT_IS(&h, 0, SB_EXIT_CODE, 0);
	CHECK(h.cmd[0].result.exit.max_rss > 0);
	CHECK_EQ(he_stop(&h), 0);
	CHECK(h.bye);
}

TEST(exit_status_is_passed_through)
{
	struct he h;

	if (!usable())
		return;
	CHECK(once(&h, ARGV(S("sh"), S("-c"), S("echo out; echo err >&2; exit 7")), ""));
	EXIT_IS(&h, 0, SB_EXIT_CODE, 7);
	CHECK_STR(he_text(&h, 0), "out\n");
	CHECK_EQ(h.cmd[0].err.len, 4);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(killed_by_a_signal)
{
	struct he h;

	if (!usable())
		return;
	CHECK(once(&h, ARGV(S("/bin/sh"), S("-c"), S("kill -9 $$")), ""));
	EXIT_IS(&h, 0, SB_EXIT_SIGNAL, SIGKILL);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(argv_is_exact)
{
	struct he h;

	if (!usable())
		return;
	CHECK(once(&h, ARGV(S("printf"), S("[%s]"), S("a b"), S(""), S("$x;*")), ""));
	CHECK_STR(he_text(&h, 0), "[a b][][$x;*]");
	CHECK_EQ(he_stop(&h), 0);
}

TEST(not_found_and_not_executable)
{
	struct he h;

	if (!usable())
		return;
	CHECK(once(&h, ARGV(S("no-such-program")), ""));
	EXIT_IS(&h, 0, SB_EXIT_NOT_FOUND, ENOENT);
	CHECK(!h.cmd[0].started);
	CHECK_EQ(he_stop(&h), 0);
	CHECK(once(&h, ARGV(S("/etc/passwd")), ""));
	EXIT_IS(&h, 0, SB_EXIT_NOT_EXEC, EACCES);
	CHECK_EQ(he_stop(&h), 0);
	CHECK(once(&h, ARGV(S("")), ""));
	EXIT_IS(&h, 0, SB_EXIT_NOT_FOUND, ENOENT);
	CHECK_EQ(he_stop(&h), 0);
}

static void put_file(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(fchmod(fd, mode) == 0);
	(void)close(fd);
}

TEST(scripts_links_and_lost_interpreters)
{
	struct he h;
	char path[128];

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("./script"), S("x y")), false, false, NULL));
	put_file(h.home, "real", "#!/bin/sh\necho \"$0|$1\"\n", 0755);
	(void)snprintf(path, sizeof(path), "%s/script", h.home);
	CHECK(symlink("real", path) == 0);
	put_file(h.home, "lost", "#!/no/such/interpreter\n", 0755);
	put_file(h.home, "binary", "\001\002\003\004", 0755);
	CHECK(he_open(&h, 0, "o"));
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_exited(&h, 0));
	CHECK_STR(he_text(&h, 0), "./script|x y\n");
	CHECK(he_exec(&h, 1, ARGV(S("./lost")), NULL, 0));
	CHECK(he_until_exited(&h, 1));
	EXIT_IS(&h, 1, SB_EXIT_NOT_EXEC, ENOENT);
	CHECK(he_exec(&h, 2, ARGV(S("./binary")), NULL, 0));
	CHECK(he_until_exited(&h, 2));
	EXIT_IS(&h, 2, SB_EXIT_NOT_EXEC, ENOEXEC);
	CHECK(he_open(&h, 3, "oe"));
	CHECK(he_exec(&h, 3, ARGV(S("true")), "/no/such/folder", 0));
	CHECK(he_until_exited(&h, 3));
	EXIT_IS(&h, 3, SB_EXIT_SETUP, ENOENT);
	CHECK(h.cmd[3].err.data && strstr((char *)h.cmd[3].err.data, "working directory"));
	CHECK_EQ(he_stop(&h), 0);
}

TEST(the_workload_is_confined)
{
	static const char script[] =
		"id -u; id -g; id -G; umask; ulimit -n; ulimit -c; "
		"grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' "
		"/proc/self/status | tr -d '\\t'; ls /proc/self/fd | wc -l; "
		"echo $HOME $USER $LOGNAME $TMPDIR $LANG; cat /etc/shadow 2>&1 | tail -c 18; "
		"cat /proc/self/oom_score_adj; pwd";
	struct he h;
	char want[512];

	if (!usable())
		return;
	CHECK(once(&h, ARGV(S("sh"), S("-c"), S(script)), ""));
	(void)snprintf(want, sizeof(want),
		       "51234\n51234\n51234\n0022\n1024\n0\n"
		       "CapInh:0000000000000000\nCapPrm:0000000000000000\n"
		       "CapEff:0000000000000000\nCapBnd:0000000000000000\n"
		       "CapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n4\n"
		       "%s agent agent /tmp C.UTF-8\nPermission denied\n0\n%s\n",
		       h.home, h.home);
	CHECK_STR(he_text(&h, 0), want);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(background_processes_die_with_the_command)
{
	struct he h;

	if (!usable())
		return;
	/* one that keeps the pipe, one that left session and group and double-forked */
	CHECK(once(&h,
		   ARGV(S("sh"), S("-c"),
			S("sleep 987651 & setsid sh -c 'sleep 987652 & sleep 987653' & "
			  "sleep 0.2; echo done")),
		   ""));
	CHECK_STR(he_text(&h, 0), "done\n");
	EXIT_IS(&h, 0, SB_EXIT_CODE, 0);
	CHECK_EQ(WEXITSTATUS(system("pgrep -f 'sleep 98765[123]' >/dev/null")), 1);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(two_commands_side_by_side)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("cat")), false, false, NULL));
	CHECK(he_open(&h, 0, "io"));
	CHECK(he_run(&h, 0, 0));
	CHECK(he_open(&h, 1, "io"));
	CHECK(he_exec(&h, 1, ARGV(S("sh"), S("-c"), S("sleep 987654 & cat; echo $A")), "/", 0));
	he_feed(&h, 1, "one", 3, true);
	CHECK(he_until_exited(&h, 1));
	CHECK_STR(he_text(&h, 1), "oneb\n");
	CHECK(!h.cmd[0].exited);
	CHECK_EQ(WEXITSTATUS(system("pgrep -f 'sleep 98765[4]' >/dev/null")), 1);
	he_feed(&h, 0, "zero", 4, true);
	CHECK(he_until_exited(&h, 0));
	CHECK_STR(he_text(&h, 0), "zero");
	EXIT_IS(&h, 0, SB_EXIT_CODE, 0);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(signal_and_kill)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("sh"), S("-c"),
				  S("trap 'echo got; exit 3' USR1; echo up; "
				    "while :; do sleep 0.05; done")),
			 false, false, NULL));
	CHECK(he_open(&h, 0, "o"));
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_text(&h, 0, "up"));
	he_ctl(&h, SB_CTL_SIGNAL, 0, SIGUSR1, 0, 0);
	CHECK(he_until_exited(&h, 0));
	EXIT_IS(&h, 0, SB_EXIT_CODE, 3);
	CHECK(he_open(&h, 1, "o"));
	CHECK(he_exec(&h, 1, ARGV(S("sh"), S("-c"), S("sleep 987655 & echo up; wait")), NULL, 0));
	CHECK(he_until_text(&h, 1, "up"));
	he_ctl(&h, SB_CTL_KILL, 1, 0, 0, 0);
	CHECK(he_until_exited(&h, 1));
	EXIT_IS(&h, 1, SB_EXIT_SIGNAL, SIGKILL);
	CHECK_EQ(WEXITSTATUS(system("pgrep -f 'sleep 98765[5]' >/dev/null")), 1);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(sixty_four_mebibytes_each_way)
{
	const size_t len = 64U << 20;
	struct he h;
	uint64_t sum = HE_SUM_INIT;
	uint8_t chunk[8192];

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("cat")), false, false, NULL));
	CHECK(he_open(&h, 0, "io"));
	he_feed(&h, 0, NULL, len, true); /* before the program exists */
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_exited(&h, 0));
	for (size_t at = 0; at < len; at += sizeof(chunk)) {
		he_pattern(chunk, at, sizeof(chunk));
		sum = he_sum(sum, chunk, sizeof(chunk));
	}
	CHECK_EQ(h.cmd[0].out.len, len);
	CHECK(h.cmd[0].out.sum == sum);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(a_reader_that_stops_and_goes_on)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("head"), S("-c"), S("32M"), S("/dev/zero")), false, false,
			 NULL));
	h.cmd[0].out.stop = true;
	CHECK(he_open(&h, 0, "o"));
	CHECK(he_run(&h, 0, 0));
	for (int i = 0; i < 30; i++)
		he_turn(&h, 10);
	CHECK_EQ(h.cmd[0].out.len, 0);
	CHECK(!h.cmd[0].exited);
	h.cmd[0].out.stop = false;
	sb_stream_resume(h.cmd[0].out.s);
	CHECK(he_until_exited(&h, 0));
	CHECK_EQ(h.cmd[0].out.len, 32 << 20);
	CHECK_EQ(he_stop(&h), 0);
}

static long guest_rss_kib(const struct he *h)
{
	char path[64];
	char line[256];
	long kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", h->guest);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	if (f)
		(void)fclose(f);
	return kib;
}

TEST(a_paste_that_nobody_reads_while_output_floods)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("sh"), S("-c"), S("head -c 256M /dev/zero; exec sleep 0.3")),
			 false, false, NULL));
	CHECK(he_open(&h, 0, "io"));
	he_feed(&h, 0, NULL, 50U << 20, true);
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_exited(&h, 0));
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
	CHECK(guest_rss_kib(&h) < 16 * 1024);
#else
	CHECK(guest_rss_kib(&h) > 0);
#endif
	CHECK_EQ(h.cmd[0].out.len, 256 << 20);
	CHECK(h.cmd[0].in.sent < 8U << 20);
	EXIT_IS(&h, 0, SB_EXIT_CODE, 0);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(a_closed_reader_breaks_the_pipe)
{
	struct he h;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("yes")), false, false, NULL));
	CHECK(he_open(&h, 0, "o"));
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_text(&h, 0, "y\n"));
	sb_stream_close(h.cmd[0].out.s);
	h.cmd[0].out.s = NULL;
	CHECK(he_until_exited(&h, 0));
	EXIT_IS(&h, 0, SB_EXIT_SIGNAL, SIGPIPE);
	CHECK_EQ(he_stop(&h), 0);
}

TEST(the_end_of_the_channel_kills_everything)
{
	struct he h;
	uint64_t dl;
	int status = 0;
	pid_t r = 0;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("sh"), S("-c"), S("sleep 987656 & echo up; wait")), false,
			 false, NULL));
	CHECK(he_open(&h, 0, "o"));
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_text(&h, 0, "up"));
	CHECK(shutdown(h.carrier, SHUT_RDWR) == 0);
	dl = sb_now_ns() + 5000000000ULL;
	while ((r = waitpid(h.guest, &status, WNOHANG)) == 0 && sb_now_ns() < dl)
		(void)usleep(10000);
	CHECK_EQ(r, h.guest);
	CHECK_EQ(WEXITSTATUS(status), 1);
	h.guest = 0;
	CHECK_EQ(WEXITSTATUS(system("pgrep -f 'sleep 98765[6]' >/dev/null")), 1);
	(void)he_stop(&h);
}

static void no_landlock_home(struct sb_plan *p)
{
	p->home = S("/no/such/home");
}
static void as_root(struct sb_plan *p)
{
	p->test_root = true;
}
TEST(walls_that_cannot_be_built_are_refused)
{
	struct he h;

	if (!usable())
		return;
	CHECK(!he_start(&h, ARGV(S("true")), false, false, no_landlock_home));
	CHECK(strstr(h.failed, "Landlock"));
	CHECK_EQ(he_stop(&h), 1);
	CHECK(!he_start(&h, ARGV(S("true")), false, false, as_root));
	CHECK(strstr(h.failed, "virtual machine"));
	CHECK_EQ(he_stop(&h), 1);
}

static void hard_plan(struct sb_plan *p)
{
	static char *denied[] = { S("chmod"), S("fchmodat"), S("sched_yield"), NULL };

	p->profile = SB_PROFILE_STRICT;
	p->deny_syscalls = denied;
	p->rlimits.fsize = 1 << 20;
	p->rlimits.as = 1ULL << 30;
	p->rlimits.stack = 4 << 20;
	p->rlimits.cpu = 77;
	p->rlimits.memlock = 4096;
	p->rlimits.data = 512 << 20;
}
TEST(ready_tells_what_is_in_force)
{
	static const char *const want[] = {
		"kernel=test\n", "user_namespaces=closed\n", "\nprofile=strict\n", "\nuid=51234\n",
		"\ngid=51234\n", "\ncapabilities=none\n", "\nno_new_privs=1\n",
		"\nseccomp=filter\n", "\nlandlock=in force\n", "\nrlimit.core=1\n",
		"\nrlimit.nofile=1024\n", "\nrlimit.fsize=1048576\n", "\nrlimit.as=1073741824\n",
		"\nrlimit.stack=4194304\n", "\nrlimit.cpu=77\n", "\nrlimit.memlock=4096\n",
		"\nrlimit.data=536870912\n", "\npids=256\n", "\ndenied=chmod,fchmodat,sched_yield\n",
		"\nrefused=mount,unshare,setns,bpf,keyctl,perf_event_open,io_uring_setup,clone3,"
		"packet-socket,tiocsti,ptrace,process_vm_readv,memfd_create,execveat,netlink-socket\n",
	};
	struct he h;

	if (!usable())
		return;
	REQUIRE(he_start(&h, ARGV(S("sh"), S("-c"),
				  S("ulimit -f; ulimit -v; ulimit -s; ulimit -t; ulimit -l; ulimit -d;"
				    "touch f; chmod 600 f 2>&1 | grep -o 'not permitted'")),
			 false, false, hard_plan));
	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++)
		if (!strstr(h.report, want[i]))
			t_fail(__FILE__, __LINE__, "no \"%s\" in:\n%s", want[i], h.report);
	/* and the command has the same */
	CHECK(he_open(&h, 0, "o"));
	CHECK(he_run(&h, 0, 0));
	CHECK(he_until_exited(&h, 0));
	CHECK_STR(he_text(&h, 0), "2048\n1048576\n4096\n77\n4\n524288\nnot permitted\n");
	CHECK_EQ(he_stop(&h), 0);
}
