#include "os/spawn.h"
#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

static int run(const char *script, const struct sb_spawn_fd *fds, size_t n)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct sb_err err = { 0 };
	int status = -1;
	pid_t pid;
	int r = sb_spawn_start(&(struct sb_spawn){ .path = "/bin/sh",
						   .argv = argv,
						   .fds = fds,
						   .n_fds = n },
			       &pid, NULL, &err);

	if (r < 0)
		return r;
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(exact_descriptors)
{
	int p[2];
	int extra;
	char out[8] = { 0 };

	REQUIRE(pipe(p) == 0);
	extra = open("/etc/passwd", O_RDONLY); /* not close-on-exec: must not arrive */
	/* swap: 3 goes to 4 and 4 to 3 in the child, whatever the numbers are here */
	CHECK_EQ(run("echo hi >&4; for f in /proc/self/fd/*; do :; done; [ -e /proc/self/fd/5 ] && exit 9; "
		     "[ \"$(readlink /proc/self/fd/0)\" = /dev/null ] || exit 8; exit 3",
		     (const struct sb_spawn_fd[]){ { p[1], 4 }, { p[0], 3 } }, 2),
		 3);
	CHECK_EQ(read(p[0], out, sizeof(out)), 3);
	CHECK_STR(out, "hi\n");
	(void)close(extra);
	(void)close(p[0]);
	(void)close(p[1]);
}

TEST(empty_environment)
{
	CHECK_EQ(run("[ -z \"$HOME\" ] && exit 4", NULL, 0), 4);
}

/* What a group of processes is sent kills a helper that is not deaf. */
TEST(deaf)
{
	static const int v[] = { SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTERM };
	static const char *const names[] = { "INT", "QUIT", "HUP", "TSTP", "TERM" };
	char script[100];

	for (size_t i = 0; i < SB_ARRAY_LEN(v); i++) {
		const char *argv[] = { "sh", "-c", script, NULL };
		struct sb_spawn s = { .path = "/bin/sh", .argv = argv, .deaf = true };
		int status = -1;
		pid_t pid;

		(void)snprintf(script, sizeof(script), "kill -%s $$; exit 7", names[i]);
		REQUIRE(sb_spawn_start(&s, &pid, NULL, NULL) == 0);
		REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		if (WIFSTOPPED(status))
			(void)kill(pid, SIGKILL);
	}
	CHECK_EQ(run("kill -INT $$; exit 7", NULL, 0), 1000 + SIGINT);
	CHECK_EQ(run("kill -TERM $$; exit 7", NULL, 0), 1000 + SIGTERM);
}

TEST(exec_failure_is_told)
{
	const char *argv[] = { "x", NULL };
	struct sb_err err = { 0 };
	pid_t pid = -7;

	CHECK_EQ(sb_spawn_start(&(struct sb_spawn){ .path = "/nonexistent/x", .argv = argv }, &pid,
				NULL, &err),
		 -ENOENT);
	CHECK_EQ(pid, -7);
	CHECK(strstr(err.text, "/nonexistent/x") && strstr(err.text, "exec"));
}

static int refuse(void *arg)
{
	(void)arg;
	return -EPERM;
}

/* What is opened runs, whatever lies at the path by then; and it gets no descriptor of it. */
TEST(by_descriptor)
{
	const char *argv[] = { "sh", "-c", "n=0; for f in /proc/self/fd/*; do n=$((n + 1)); done; "
				     "exit $((n + 40))", NULL };
	char name[] = "/tmp/sb-spawn-XXXXXX";
	int fd = mkstemp(name);
	struct sb_spawn s = { .path = name, .argv = argv, .exe = open("/bin/sh", O_RDONLY | O_CLOEXEC) };
	int status = -1;
	pid_t pid;

	REQUIRE(fd >= 0 && s.exe > 0);
	CHECK_EQ(sb_spawn_start(&s, &pid, NULL, NULL), 0);
	(void)waitpid(pid, &status, 0);
	CHECK_EQ(WEXITSTATUS(status), 44); /* 0, 1, 2 and the listing itself */
	(void)close(s.exe);
	s.exe = fd; /* no program */
	CHECK_EQ(sb_spawn_start(&s, &pid, NULL, NULL), -EACCES);
	(void)close(fd);
	(void)unlink(name);
}

TEST(set_up_failure_is_told)
{
	const char *argv[] = { "x", NULL };
	pid_t pid = -7;

	CHECK_EQ(sb_spawn_start(&(struct sb_spawn){ .path = "/bin/true",
						    .argv = argv,
						    .pre_exec = refuse },
				&pid, NULL, NULL),
		 -EPERM);
	CHECK_EQ(pid, -7);
}

/* A grandchild must die with the child that started it. */
TEST(parent_death)
{
	int p[2];
	char c;
	pid_t mid;

	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	mid = fork();
	if (mid == 0) {
		const char *argv[] = { "sleep", "100", NULL };
		const struct sb_spawn_fd fds[] = { { p[1], 5 } };
		pid_t pid;

		if (sb_spawn_start(&(struct sb_spawn){ .path = "/bin/sleep",
						       .argv = argv,
						       .fds = fds,
						       .n_fds = 1 },
				   &pid, NULL, NULL) < 0)
			_exit(1);
		(void)kill(getpid(), SIGKILL);
	}
	(void)waitpid(mid, NULL, 0);
	(void)close(p[1]);
	(void)alarm(20);
	CHECK_EQ(read(p[0], &c, 1), 0); /* end of file: nobody holds the writing end */
	(void)alarm(0);
	(void)close(p[0]);
}

TEST(every_failure)
{
	T_EVERY_FAULT(n)
	{
		const char *argv[] = { "true", NULL };
		int before = t_open_fds();
		int pidfd = -1;
		pid_t pid = -7;
		int r;

		t_fault_arm(n);
		r = sb_spawn_start(&(struct sb_spawn){ .path = "/bin/true", .argv = argv }, &pid,
				   &pidfd, NULL);
		t_fault_disarm();
		CHECK_EQ(r == 0, pid > 0);
		CHECK_EQ(r == 0, fcntl(pidfd, F_GETFD) >= 0);
		sb_fd_close(&pidfd);
		if (r == 0)
			(void)waitpid(pid, NULL, 0);
		CHECK_EQ(t_open_fds(), before);
		if (r == 0)
			return;
	}
}
