#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define MAX_FDS 64
#define HIGH_FD 200 /* above every `to` number, below any sane RLIMIT_NOFILE */

struct report {
	int code;
	char stage[32];
};

int sb_spawn_die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

int sb_close_others(const int *keep, size_t n_keep)
{
	unsigned int from = 3;

	for (;;) {
		int next = -1;

		for (size_t i = 0; i < n_keep; i++)
			if (keep[i] >= (int)from && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next < 0)
			return close_range(from, ~0U, 0) < 0 ? -errno : 0;
		if ((unsigned int)next > from && close_range(from, (unsigned int)next - 1, 0) < 0)
			return -errno;
		from = (unsigned int)next + 1;
	}
}

static int place_fds(const struct sb_spawn *s, int report_fd, int *exe)
{
	int high[MAX_FDS];
	int keep[MAX_FDS + 2];
	size_t n;
	int null;

	for (size_t i = 0; i < s->n_fds; i++) {
		high[i] = fcntl(s->fds[i].from, F_DUPFD_CLOEXEC, HIGH_FD);
		if (high[i] < 0)
			return -errno;
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	if (s->exe > 0 && (*exe = fcntl(s->exe, F_DUPFD_CLOEXEC, HIGH_FD)) < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	for (size_t i = 0; i < s->n_fds; i++) {
		if (dup2(high[i], s->fds[i].to) < 0)
			return -errno;
		keep[i] = s->fds[i].to;
	}
	n = s->n_fds;
	keep[n++] = report_fd;
	if (*exe >= 0)
		keep[n++] = *exe;
	return sb_close_others(keep, n);
}

/* @deaf: to what a terminal, or who ends a group of processes, sends to all of them. */
static void reset_signals(bool deaf)
{
	static const int to_all[] = { SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	for (size_t i = 0; deaf && i < SB_ARRAY_LEN(to_all); i++)
		(void)sigaction(to_all[i], &sa, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* what waited meanwhile comes now */
}

void sb_spawn_reset_signals(void)
{
	reset_signals(false);
}

SB_NORETURN static void child(const struct sb_spawn *s, pid_t parent, int report_fd)
{
	static const char *const no_env[] = { NULL };
	struct report rep = { 0 };
	const char *stage = "parent-death signal";
	char *const *argv = (char *const *)(uintptr_t)s->argv;
	char *const *env = (char *const *)(uintptr_t)(s->env ? s->env : no_env);
	int exe = -1;
	int r;

	reset_signals(s->deaf);
	r = s->outlive_parent ? 0 : sb_spawn_die_with(parent);
	if (r == 0 && s->new_session) {
		stage = "setsid";
		r = setsid() < 0 ? -errno : 0;
	}
	if (r == 0) {
		stage = "descriptors";
		r = place_fds(s, report_fd, &exe);
	}
	if (r == 0 && s->pre_exec) {
		stage = "set-up";
		r = s->pre_exec(s->arg);
	}
	if (r == 0) {
		stage = "exec";
		if (exe >= 0)
			(void)execveat(exe, "", argv, env, AT_EMPTY_PATH);
		else
			(void)execve(s->path, argv, env);
		r = -errno;
	}
	rep.code = r;
	(void)snprintf(rep.stage, sizeof(rep.stage), "%s", stage);
	if (sb_fd_write_all(report_fd, &rep, sizeof(rep)) < 0)
		_exit(126);
	_exit(127);
}

int sb_spawn_start(const struct sb_spawn *s, pid_t *ret_pid, int *ret_pidfd, struct sb_err *err)
{
	struct report rep;
	int p[2];
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	sb_autofd int pidfd = -1;
	pid_t parent = getpid();
	pid_t pid;
	int r;

	sb_assert(s->n_fds <= MAX_FDS);
	if (pipe2(p, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "cannot start %s: pipe: %s", s->path,
				  strerror(errno));
	rd = p[0];
	wr = p[1];
	if (wr < HIGH_FD) { /* out of the way of the child's table */
		int up = fcntl(wr, F_DUPFD_CLOEXEC, HIGH_FD);

		if (up < 0)
			return sb_err_set(err, -errno, "cannot start %s: %s", s->path,
					  strerror(errno));
		sb_fd_close(&wr);
		wr = up;
	}
	pid = fork();
	if (pid < 0)
		return sb_err_set(err, -errno, "cannot start %s: fork: %s", s->path,
				  strerror(errno));
	if (pid == 0)
		child(s, parent, wr);
	sb_fd_close(&wr);
	if (ret_pidfd) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd < 0) {
			r = sb_err_set(err, -errno, "cannot start %s: pidfd_open: %s", s->path,
				       strerror(errno));
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return r;
		}
	}
	r = sb_fd_read_all(rd, &rep, sizeof(rep));
	if (r == 0) { /* a report means that exec did not happen */
		(void)waitpid(pid, NULL, 0);
		return sb_err_set(err, rep.code, "cannot start %s: %.31s: %s", s->path, rep.stage,
				  strerror(-rep.code));
	}
	if (r != -ENODATA) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return sb_err_set(err, r, "cannot start %s: %s", s->path, strerror(-r));
	}
	*ret_pid = pid;
	if (ret_pidfd)
		*ret_pidfd = sb_fd_take(&pidfd);
	return 0;
}
