/* Real limits on this machine's hierarchies; skipped where there is no control over them. */
#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/cgroup.h"

static char name[64];

static bool usable(enum sb_cgroup_controller c)
{
	struct sb_cgroup_probe p;

	(void)snprintf(name, sizeof(name), "test-%d", getpid());
	sb_cgroup_probe(&p);
	if (p.controller[c].usable)
		return true;
	CHECK(p.controller[c].remedy[0] != '\0');
	t_skip("needs root or a delegated control group");
	return false;
}

static pid_t child_in(const struct sb_cgroup *cg, int (*fn)(void))
{
	int p[2];
	char c;
	pid_t pid;

	if (pipe(p) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)close(p[1]);
		_exit(read(p[0], &c, 1) == 1 ? fn() : 99);
	}
	(void)close(p[0]);
	CHECK_EQ(sb_cgroup_add(cg, pid), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	(void)close(p[1]);
	return pid;
}

static int forks(void)
{
	int n = 0;

	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
		n += pid > 0;
	}
	return n;
}

TEST(forks_stop_at_the_limit)
{
	const struct sb_cgroup_limits l = { .pids_max = 10 };
	struct sb_cgroup *cg = NULL;
	struct sb_err err = { 0 };
	int status = 0;
	char *text = NULL;

	if (!usable(SB_CGROUP_PIDS))
		return;
	REQUIRE(sb_cgroup_new(name, &l, &cg, &err) == 0);
	CHECK_EQ(waitpid(child_in(cg, forks), &status, 0) > 0, 1);
	CHECK_EQ(WEXITSTATUS(status), 9);
	CHECK_EQ(sb_cgroup_describe(cg, &text), 0);
	CHECK(strstr(text, "/sendbox-test-"));
	/* children are left in it */
	CHECK_EQ(sb_cgroup_kill(cg), 0);
	CHECK_EQ(sb_cgroup_remove(cg), 0);
	text[strcspn(text, "\n")] = '\0';
	CHECK(access(text, F_OK) < 0);
	free(text);
	(void)sb_cgroup_free(cg);
}

static int eats(void)
{
	size_t len = 256U << 20;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 1;
	memset(p, 1, len);
	return 0;
}

TEST(memory_stops_at_the_limit)
{
	const struct sb_cgroup_limits l = { .memory_bytes = 32U << 20 };
	struct sb_cgroup *cg = NULL;
	struct sb_err err = { 0 };
	int status = 0;

	if (!usable(SB_CGROUP_MEMORY))
		return;
	REQUIRE(sb_cgroup_new(name, &l, &cg, &err) == 0);
	CHECK(!sb_cgroup_oom(cg));
	CHECK(waitpid(child_in(cg, eats), &status, 0) > 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(sb_cgroup_oom(cg));
	CHECK_EQ(sb_cgroup_remove(cg), 0);
	(void)sb_cgroup_free(cg);
	/* the same without the limit */
	CHECK_EQ(eats(), 0);
}

static int waits(void)
{
	(void)pause();
	return 0;
}

TEST(all_limits_and_gc)
{
	const struct sb_cgroup_limits l = { .cpus = 1, .memory_bytes = 64U << 20, .pids_max = 5 };
	struct sb_cgroup *cg = NULL;
	struct sb_err err = { 0 };
	char *text = NULL;
	int status = 0;
	pid_t pid;

	if (!usable(SB_CGROUP_CPU) || !usable(SB_CGROUP_MEMORY) || !usable(SB_CGROUP_PIDS))
		return;
	REQUIRE(sb_cgroup_new(name, &l, &cg, &err) == 0);
	CHECK_EQ(sb_cgroup_new(name, &l, &(struct sb_cgroup *){ NULL }, &err), -EEXIST);
	pid = child_in(cg, waits);
	CHECK_EQ(sb_cgroup_describe(cg, &text), 0);
	(void)sb_cgroup_free(cg);
	(void)signal(SIGCHLD, SIG_IGN); /* reaped by the kernel, as the next start would see it */
	CHECK_EQ(sb_cgroup_gc(text), 0);
	(void)signal(SIGCHLD, SIG_DFL);
	CHECK(waitpid(pid, &status, 0) < 0);
	CHECK_EQ(sb_cgroup_gc(text), 0); /* again: nothing there */
	free(text);
}

TEST(gc_touches_nothing_else)
{
	CHECK_EQ(sb_cgroup_gc(""), 0);
	CHECK_EQ(sb_cgroup_gc("/tmp\n"), -EINVAL);
	CHECK_EQ(sb_cgroup_gc("/sys/fs/cgroup/../sendbox-x\n"), -EINVAL);
	CHECK_EQ(sb_cgroup_gc("relative/sendbox-x\n"), -EINVAL);
	CHECK_EQ(sb_cgroup_gc("sendbox-x\n"), -EINVAL);
	CHECK(mkdir("/tmp/sendbox-t-cgroup", 0700) == 0);
	CHECK_EQ(sb_cgroup_gc("/tmp/sendbox-t-cgroup\n"), -EINVAL);
	CHECK(rmdir("/tmp/sendbox-t-cgroup") == 0);
}

TEST(no_limits_no_groups)
{
	const struct sb_cgroup_limits l = { 0 };
	struct sb_cgroup *cg = NULL;

	CHECK_EQ(sb_cgroup_new("x", &l, &cg, NULL), 0);
	CHECK_EQ(sb_cgroup_add(cg, getpid()), 0);
	CHECK_EQ(sb_cgroup_kill(cg), 0);
	CHECK_EQ(sb_cgroup_remove(cg), 0);
	(void)sb_cgroup_free(cg);
	CHECK_EQ(sb_cgroup_new("a/b", &l, &cg, NULL), -EINVAL);
	CHECK_EQ(sb_cgroup_new("", &l, &cg, NULL), -EINVAL);
}
