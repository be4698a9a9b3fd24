/*
 * The judge of executions on the host's kernel. A world of a few programs in a folder; each case runs
 * tests/attack/exec_probe.c under the filter and reads its one line. "denied" ends with 66 where it
 * runs at all, "allowed" with 65, by the last byte of the file. As root and, where that is possible, in a user namespace.
 */
#include "t.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/plan_fd.h"
#include "crypto/crypto.h"
#include "exec/judge.h"

#define MAX_EVENTS 64
#define OTHER 51234U

static char dir[64];
static char probe[96];

struct world {
	struct sb_plan plan;
	struct sb_cmd_rule rules[8];
	struct sb_judge j;
	struct sb_judge_event ev[MAX_EVENTS];
	size_t n_ev;
	char out[4096];
	uid_t uid;
};

static const char *at(const char *name)
{
	static char text[8][128];
	static unsigned int n;
	char *t = text[n++ % 8];

	(void)snprintf(t, 128, "%s/%s", dir, name);
	return t;
}

/* @tail: what makes it another program than @from by its content. */
static bool copy_file(const char *from, const char *to, const char *tail)
{
	char cmd[4800];

	(void)snprintf(cmd, sizeof(cmd), "cp '%s' '%s' && printf '%s' >>'%s'", from, to, tail, to);
	return system(cmd) == 0 && chmod(to, 0755) == 0; /* NOLINT: names of our own */
}

static bool write_file(const char *to, const char *text, mode_t mode)
{
	FILE *f = fopen(to, "w");
	bool ok = f && fputs(text, f) >= 0;

	if (f)
		ok = fclose(f) == 0 && ok;
	return ok && chmod(to, mode) == 0;
}

static bool make_files(void)
{
	char text[256];
	char source[4200];
	ssize_t n = readlink("/proc/self/exe", source, sizeof(source) - 16);
	char *slash;

	if (dir[0])
		return true;
	if (n <= 0)
		return false;
	source[n] = '\0';
	slash = strrchr(source, '/');
	(void)memcpy(slash, "/exec-probe", sizeof("/exec-probe")); /* built beside this test */
	(void)snprintf(dir, sizeof(dir), "/tmp/judge.XXXXXX");
	if (!mkdtemp(dir) || chmod(dir, 0777) < 0)
		return false;
	(void)snprintf(probe, sizeof(probe), "%s/probe", dir);
	if (!copy_file(source, probe, "") ||
	    !copy_file(probe, at("denied"), "d") || !copy_file(probe, at("allowed"), "aa") ||
	    !copy_file(at("denied"), at("copy"), "") ||
	    symlink(at("denied"), at("link")) < 0 || symlink("/proc/self/exe", at("selflink")) < 0 ||
	    link(at("denied"), at("hard")) < 0 || mkdir(at("sub"), 0755) < 0)
		return false;
	(void)snprintf(text, sizeof(text), "#!%s\n", at("denied"));
	if (!write_file(at("script-denied"), text, 0755))
		return false;
	(void)snprintf(text, sizeof(text), "#! %s -x \n", at("script-denied"));
	if (!write_file(at("script-nested"), text, 0755))
		return false;
	(void)snprintf(text, sizeof(text), "#!%s arg\n", at("allowed"));
	return write_file(at("script-allowed"), text, 0755) &&
	       write_file(at("script-env"), "#!/usr/bin/env true\n", 0755) &&
	       write_file(at("garbage"), "neither this nor that\n", 0755) &&
	       write_file(at("plain"), "not executable\n", 0644);
}

/* Whether there is another user than this one: a user namespace of one id has none. */
static bool many_ids(void)
{
	unsigned int from = 0;
	unsigned int to = 0;
	unsigned int n = 0;
	FILE *f = fopen("/proc/self/uid_map", "r");

	if (f) {
		(void)!fscanf(f, "%u %u %u", &from, &to, &n);
		(void)fclose(f);
	}
	return n > OTHER;
}

/* Rules: "ACTION PATTERN". */
static bool start(struct world *w, enum sb_cmd_action fallback, const char *const *rules)
{
	struct sb_judge_config cfg = { .plan = &w->plan };
	struct sb_err err = { 0 };

	memset(w, 0, sizeof(*w));
	if (!make_files())
		return false;
	w->j.sock = -1;
	w->uid = many_ids() ? OTHER : 0;
	w->plan.uid = w->uid;
	w->plan.gid = w->uid;
	w->plan.cwd = dir;
	w->plan.commands.scope = SB_CMD_SCOPE_TREE;
	w->plan.commands.fallback = fallback;
	w->plan.commands.log_blocked = true;
	w->plan.commands.rules = w->rules;
	for (; *rules; rules++) {
		struct sb_cmd_rule *r = &w->rules[w->plan.commands.n_rules++];
		const char *blank = strchr(*rules, ' ');

		r->action = (*rules)[0] == 'd'   ? SB_CMD_DENY
			    : (*rules)[0] == 'l' ? SB_CMD_LOG
						 : SB_CMD_ALLOW;
		r->scope = SB_CMD_SCOPE_TREE;
		r->pattern = strdup(blank + 1);
		r->from = strdup("test:1");
	}
	if (sb_judge_start(&cfg, &w->j, &err) < 0) {
		printf("# %s\n", err.text);
		return false;
	}
	return true;
}

static void events(struct world *w)
{
	for (int i = 0; i < 200; i++) {
		struct sb_judge_event ev;
		int r = sb_judge_next(&w->j, &ev);

		if (r == SB_JUDGE_FLUSHED)
			return;
		if (r == 0) {
			if (w->n_ev < MAX_EVENTS)
				w->ev[w->n_ev++] = ev;
			i = 0;
			continue;
		}
		(void)usleep(5000);
	}
}

static void stop(struct world *w)
{
	if (sb_judge_flush(&w->j) == 0)
		events(w);
	sb_judge_stop(&w->j);
	for (size_t i = 0; i < w->plan.commands.n_rules; i++) {
		free(w->rules[i].pattern);
		free(w->rules[i].from);
	}
}

/* The workload's user; and no capabilities, also where it is the only user. */
static void become(const struct world *w)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	if ((w->uid && (fchown(1, w->uid, w->uid) < 0 || setgroups(0, NULL) < 0)) ||
	    setresgid(w->uid, w->uid, w->uid) < 0 || setresuid(w->uid, w->uid, w->uid) < 0 ||
	    (syscall(SYS_prctl, PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0) < 0 && !w->uid) ||
	    syscall(SYS_capset, &hdr, none) < 0)
		_exit(123);
}

static pid_t spawn(struct world *w, char *const *argv, int out, int err)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)dup2(out, 1);
	(void)dup2(err, 2);
	(void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	become(w);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    sb_judge_enter(w->j.sock, 7, NULL) < 0)
		_exit(124);
	execv(argv[0], argv);
	_exit(errno == EACCES ? 126 : 125);
}

/* Run it; its output in w->out. Return: wait status; -1 when it took too long. */
static int run_argv(struct world *w, char *const *argv)
{
	int p[2];
	pid_t pid;
	size_t len = 0;
	int status = -1;

	w->out[0] = '\0';
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	pid = spawn(w, argv, p[1], 2);
	if (pid < 0)
		return -1;
	(void)close(p[1]);
	for (;;) {
		struct pollfd pfd = { .fd = p[0], .events = POLLIN };
		ssize_t n = -1;

		if (poll(&pfd, 1, 60000) == 1)
			n = read(p[0], w->out + len, sizeof(w->out) - 1 - len);
		if (n < 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			(void)close(p[0]);
			return -1;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	w->out[len] = '\0';
	if (len > 0 && w->out[len - 1] == '\n')
		w->out[len - 1] = '\0';
	(void)close(p[0]);
	(void)waitpid(pid, &status, 0);
	return status;
}

#define RUN(w, ...) run_argv(w, (char *[]){ probe, __VA_ARGS__, NULL })
static char *p_(const char *s)
{
	return (char *)(uintptr_t)s;
}
#define A(name) p_(at(name))

static bool can_be_here(void)
{
	struct sb_err err = { 0 };

	if (sb_judge_probe(&err) < 0) {
		t_skip("kernel without seccomp notifications that wait");
		return false;
	}
	if (geteuid() != 0) {
		t_skip("needs root");
		return false;
	}
	return true;
}

static const char *const *deny_denied(void)
{
	static char rule[160];
	static const char *rules[2];

	(void)make_files();
	(void)snprintf(rule, sizeof(rule), "d %s **", at("denied"));
	rules[0] = rule;
	return rules;
}

#define START(w, fallback, rules)                                                                  \
	if (!can_be_here())                                                                        \
		return;                                                                            \
	REQUIRE(start(w, fallback, rules))

/* --- cases --- */

static struct world W;

TEST(every_way_to_a_denied_program_is_refused)
{
	static const char *const ways[] = {
		"run",	     "at",	 "relative", "empty", "fexecve", "nofollow", "self-fd",
		"dev-fd",    "proc-root", "proc-cwd", "null",  "spawn",	  "thread",   "threads",
	};

	START(&W, SB_CMD_ALLOW, deny_denied());
	for (size_t i = 0; i < SB_ARRAY_LEN(ways); i++) {
		(void)RUN(&W, p_(ways[i]), A("denied"), p_("x"));
		if (strcmp(W.out, "errno=EACCES") != 0)
			t_fail(__FILE__, __LINE__, "%s: %s", ways[i], W.out);
		(void)RUN(&W, p_(ways[i]), A("allowed"), p_("x"));
		if (strcmp(W.out, "exit=65") != 0)
			t_fail(__FILE__, __LINE__, "%s of allowed: %s", ways[i], W.out);
	}
	stop(&W);
	CHECK(W.n_ev >= 1);
	CHECK_EQ(W.ev[0].action, SB_CMD_DENY);
	CHECK_EQ(W.ev[0].rule, 0);
	CHECK_EQ(W.ev[0].cmd, 7);
	CHECK_STR(W.ev[0].path, at("denied"));
	CHECK_STR(W.ev[0].argv, at("denied"));
	CHECK_EQ(W.ev[0].n_argv, 2);
	CHECK_STR(W.ev[0].why, "rule");
}

TEST(other_names_of_it_are_refused)
{
	START(&W, SB_CMD_ALLOW, deny_denied());
	(void)RUN(&W, p_("run"), A("link"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), A("sub/../denied"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("nofollow"), A("link"));
	CHECK_STR(W.out, "errno=ELOOP");
	(void)RUN(&W, p_("run"), A("hard"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), A("copy"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("memfd"), A("denied"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("memfd-path"), A("denied"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("memfd"), A("allowed"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("run"), p_("/lib64/ld-linux-x86-64.so.2"), A("denied"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), A("script-denied"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), A("script-nested"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), A("script-allowed"), p_("more"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("dev-fd"), A("script-allowed"), p_("more"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("at"), A("script-allowed"), p_("more"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("fexecve"), A("script-allowed"), p_("more"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("run"), A("script-env"));
	CHECK_STR(W.out, "exit=0");
	stop(&W);
}

TEST(itself_by_its_own_link)
{
	static char rule[2][160];
	const char *rules[3] = { rule[0], rule[1], NULL };

	if (!can_be_here() || !make_files())
		return;
	(void)snprintf(rule[0], sizeof(rule[0]), "d %s run second **", at("probe"));
	(void)snprintf(rule[1], sizeof(rule[1]), "d %s second **", at("probe"));
	REQUIRE(start(&W, SB_CMD_ALLOW, rules));
	/* /proc/self/exe is the caller's, not the judge's */
	(void)RUN(&W, p_("run"), p_("/proc/self/exe"), p_("first"));
	CHECK_STR(W.out, "exit=2");
	(void)RUN(&W, p_("run"), p_("/proc/self/exe"), p_("second"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), A("selflink"), p_("second"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), p_("/proc/thread-self/exe"), p_("second"));
	CHECK_STR(W.out, "errno=EACCES");
	stop(&W);
}

TEST(default_deny_admits_what_is_listed)
{
	static char rule[3][160];
	const char *rules[4] = { rule[0], rule[1], rule[2], NULL };
	int first = 0;

	if (!can_be_here() || !make_files())
		return;
	(void)snprintf(rule[0], sizeof(rule[0]), "a %s **", at("probe"));
	(void)snprintf(rule[1], sizeof(rule[1]), "a %s one", at("allowed"));
	(void)snprintf(rule[2], sizeof(rule[2]), "l %s two", at("allowed"));
	REQUIRE(start(&W, SB_CMD_DENY, rules));
	(void)RUN(&W, p_("run"), A("allowed"), p_("one"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("run"), A("allowed"), p_("two"));
	CHECK_STR(W.out, "exit=65");
	(void)RUN(&W, p_("run"), A("allowed"), p_("three"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("memfd"), A("allowed"), p_("one"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("memfd-path"), A("allowed"), p_("one"));
	CHECK_STR(W.out, "errno=EACCES");
	(void)RUN(&W, p_("run"), p_("/lib64/ld-linux-x86-64.so.2"), A("allowed"));
	CHECK_STR(W.out, "errno=EACCES");
	/* the command's own program is judged as the first */
	CHECK_EQ(WEXITSTATUS(run_argv(&W, (char *[]){ A("denied"), NULL })), 126);
	stop(&W);
	REQUIRE(W.n_ev >= 2);
	CHECK_EQ(W.ev[0].action, SB_CMD_LOG);
	CHECK_EQ(W.ev[0].rule, 2);
	CHECK_EQ(W.ev[0].top_level, 0);
	for (size_t i = 0; i < W.n_ev; i++)
		first += W.ev[i].top_level && strcmp(W.ev[i].why, "default") == 0;
	CHECK_EQ(first, 1);
}

TEST(errors_are_the_kernels)
{
	static const struct {
		const char *way;
		const char *name;
		const char *want;
	} cases[] = {
		{ "run", "nothing", "errno=ENOENT" },	   { "run", "denied/x", "errno=ENOTDIR" },
		{ "run", "plain", "errno=EACCES" },	   { "run", "sub", "errno=EACCES" },
		{ "run", "garbage", "errno=ENOEXEC" },	   { "at", "nothing", "errno=ENOENT" },
		{ "run", "probe/", "errno=ENOTDIR" },
	};

	START(&W, SB_CMD_ALLOW, deny_denied());
	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		(void)RUN(&W, p_(cases[i].way), A(cases[i].name));
		CHECK_STR(W.out, cases[i].want);
	}
	(void)RUN(&W, p_("failing"), p_("20"), A("garbage"));
	CHECK_STR(W.out, "bad=0");
	stop(&W);
}

TEST(long_argv)
{
	char *argv[1005];
	static char big[100000];

	START(&W, SB_CMD_ALLOW, deny_denied());
	memset(big, 'x', sizeof(big) - 1);
	argv[0] = probe;
	argv[1] = p_("run");
	argv[2] = A("allowed");
	for (int i = 3; i < 1000; i++)
		argv[i] = p_(i % 7 ? "word" : "");
	argv[1000] = big;
	argv[1001] = NULL;
	(void)run_argv(&W, argv);
	CHECK_STR(W.out, "exit=65");
	argv[2] = A("denied");
	(void)run_argv(&W, argv);
	CHECK_STR(W.out, "errno=EACCES");
	stop(&W);
	REQUIRE(W.n_ev == 1);
	CHECK_EQ(W.ev[0].cut, 1);
}

static unsigned int number(const char *out, const char *key)
{
	const char *p = strstr(out, key);

	return p ? (unsigned int)strtoul(p + strlen(key), NULL, 10) : 9999;
}

/* first and second differ in their last bytes alone, and a thread swaps them all the time. */
TEST(a_race_for_the_path_is_lost)
{
	unsigned int second = 0;
	char line[256];
	FILE *f;

	START(&W, SB_CMD_ALLOW, deny_denied());
	/* control: without the judge the second one does run */
	(void)snprintf(line, sizeof(line), "%s race %s a %s a 300", probe, at("allowed"),
		       at("denied"));
	f = popen(line, "r"); /* NOLINT: names of our own */
	REQUIRE(f && fgets(line, sizeof(line), f));
	(void)pclose(f);
	CHECK(number(line, "second=") > 0);
	for (int i = 0; i < 5; i++) {
		(void)RUN(&W, p_("race"), A("allowed"), p_("a"), A("denied"), p_("a"), p_("200"));
		second += number(W.out, "second=");
		if (i == 0)
			printf("# control %s# judged %s\n", line, W.out);
	}
	CHECK_EQ(second, 0);
	stop(&W);
}

TEST(a_race_for_a_word_is_lost)
{
	static char rule[160];
	const char *rules[2] = { rule, NULL };

	if (!can_be_here() || !make_files())
		return;
	(void)snprintf(rule, sizeof(rule), "d %s push", at("allowed"));
	REQUIRE(start(&W, SB_CMD_ALLOW, rules));
	(void)RUN(&W, p_("race"), A("allowed"), p_("pull"), A("allowed"), p_("push"), p_("500"));
	/* all that ran was "pull": what was judged as pull and became push was killed */
	printf("# %s\n", W.out);
	CHECK(number(W.out, "killed=") + number(W.out, "first=") + number(W.out, "refused=") >=
	      400);
	stop(&W);
	for (size_t i = 0; i < W.n_ev; i++)
		CHECK(W.ev[i].action == SB_CMD_DENY);
}

TEST(storms_and_deaths)
{
	START(&W, SB_CMD_ALLOW, deny_denied());
	(void)RUN(&W, p_("storm"), p_("200"), A("allowed"));
	CHECK_STR(W.out, "good=200 other=0");
	(void)RUN(&W, p_("deaths"), p_("500"), A("allowed"));
	CHECK_STR(W.out, "all=1");
	(void)RUN(&W, p_("run"), A("allowed"));
	CHECK_STR(W.out, "exit=65");
	stop(&W);
}

TEST(many_at_once)
{
	START(&W, SB_CMD_ALLOW, deny_denied());
	(void)RUN(&W, p_("many"), p_("200"), A("allowed"));
	CHECK_STR(W.out, "killed=0 65=200");
	(void)RUN(&W, p_("many"), p_("200"), A("denied"));
	CHECK_STR(W.out, "killed=0 141=200"); /* 128 + EACCES */
	stop(&W);
	{
		uint64_t n = 0;

		for (size_t i = 0; i < W.n_ev; i++)
			n += W.ev[i].count;
		CHECK_EQ(n, 200);
		CHECK(W.n_ev < 60);
	}
}

TEST(a_dead_judge_lets_nothing_start)
{
	START(&W, SB_CMD_ALLOW, deny_denied());
	{
		int p[2];
		char *argv[] = { p_("/bin/sh"), p_("-c"),
				 p_("read x; /bin/true; echo $?; exec /bin/echo ran"), NULL };
		int in[2];
		char c = '\n';
		char text[64] = "";
		pid_t pid;
		int status;

		REQUIRE(pipe2(p, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0);
		pid = fork();
		if (pid == 0) {
			(void)dup2(in[0], 0);
			(void)dup2(p[1], 1);
			(void)dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 2);
			become(&W);
			(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			if (sb_judge_enter(W.j.sock, 1, NULL) < 0)
				_exit(124);
			execv(argv[0], argv);
			_exit(125);
		}
		(void)usleep(200000);
		(void)kill(W.j.pid, SIGKILL);
		(void)waitpid(W.j.pid, NULL, 0);
		W.j.pid = 0;
		(void)!write(in[1], &c, 1);
		(void)close(p[1]);
		(void)close(in[1]);
		(void)close(in[0]);
		(void)!read(p[0], text, sizeof(text) - 1);
		(void)close(p[0]);
		(void)waitpid(pid, &status, 0);
		CHECK(strncmp(text, "126", 3) == 0 || strncmp(text, "127", 3) == 0);
		CHECK(!strstr(text, "ran"));
	}
	stop(&W);
}

TEST(the_refused_process_is_told)
{
	char text[2048] = "";
	int p[2];
	int status;
	int null;
	pid_t pid;

	START(&W, SB_CMD_ALLOW, deny_denied());
	{
		char cmd[256];
		/* a pipe of its own, not the one that the command was given */
		char *argv[] = { p_("/bin/sh"), p_("-c"), cmd, NULL };

		(void)snprintf(cmd, sizeof(cmd), "%s 2>&1 | cat", at("denied"));
		REQUIRE(pipe2(p, O_CLOEXEC) == 0);
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		pid = spawn(&W, argv, p[1], null);
		(void)close(null);
		(void)close(p[1]);
		for (size_t len = 0;;) {
			ssize_t n = read(p[0], text + len, sizeof(text) - 1 - len);

			if (n <= 0)
				break;
			len += (size_t)n;
		}
		(void)close(p[0]);
		(void)waitpid(pid, &status, 0);
	}
	CHECK(strncmp(text, "sendbox: refused to run ", 24) == 0);
	CHECK(strstr(text, at("denied")));
	CHECK(strstr(text, "denied\n") || strstr(text, "ermission denied"));
	stop(&W);
}

TEST(no_descriptors_are_left)
{
	int before;

	START(&W, SB_CMD_ALLOW, deny_denied());
	stop(&W);
	before = t_open_fds();
	START(&W, SB_CMD_ALLOW, deny_denied());
	stop(&W);
	CHECK_EQ(t_open_fds(), before);
}
