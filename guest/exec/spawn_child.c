#include "exec/spawn_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "exec/export.h"
#include "exec/judge.h"

const char *sb_launch_stage_text(enum sb_launch_stage s)
{
	switch (s) {
	case SB_LAUNCH_SESSION:
		return "cannot make a session";
	case SB_LAUNCH_STDIO:
		return "cannot place standard streams";
	case SB_LAUNCH_LIMITS:
		return "cannot set limits";
	case SB_LAUNCH_IDENTITY:
		return "cannot become the user";
	case SB_LAUNCH_CWD:
		return "cannot change to the working directory";
	case SB_LAUNCH_WALLS:
		return "cannot confine";
	case SB_LAUNCH_NOT_FOUND:
		return "program not found";
	case SB_LAUNCH_NOT_EXEC:
		return "cannot execute";
	case SB_LAUNCH_OK:
	default:
		return "started";
	}
}

SB_NORETURN static void give_up(int report, enum sb_launch_stage stage, int error)
{
	struct sb_launch_report rep = { .stage = (int32_t)stage, .error = error };

	/* a pipe takes this whole; when it cannot, the exit status is all there is */
	(void)!write(report, &rep, sizeof(rep));
	_exit(125);
}

/*
 * As execvp does it, but never with a shell: go on after "no such file" and "permission denied",
 * stop at anything else. A file that exists while exec says ENOENT lacks its interpreter.
 */
SB_NORETURN static void exec_first(const struct sb_launch *l, int report)
{
	int found = 0;

	for (char *const *c = l->candidates; *c; c++) {
		int e;

		(void)execve(*c, l->argv, l->env);
		e = errno;
		if (e == ENOENT) {
			if (!found && faccessat(AT_FDCWD, *c, F_OK, 0) == 0)
				found = ENOENT;
		} else if (e == EACCES) {
			found = EACCES;
		} else if (e != ENOTDIR) {
			give_up(report, SB_LAUNCH_NOT_EXEC, e);
		}
	}
	if (found)
		give_up(report, SB_LAUNCH_NOT_EXEC, found);
	give_up(report, SB_LAUNCH_NOT_FOUND, ENOENT);
}

/* From here on the judge is asked, first about the command's own program. */
static int enter_judge(const struct sb_launch *l)
{
	if (l->judge < 0 || l->confine->asking.len > 0) /* the walls do it, with one filter for all */
		return 0;
	/* guest root (tests only) may set a filter without it */
	if (!l->confine->root && syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return sb_judge_enter(l->judge, l->cmd, NULL);
}

SB_NORETURN static void child(const struct sb_launch *l, int report)
{
	uint64_t no_signals = 0; /* the kernel's set: 64 bits */
	int r;

	if (setsid() < 0)
		give_up(report, SB_LAUNCH_SESSION, errno);
	if (l->tty && ioctl(l->stdio[0], TIOCSCTTY, 0) < 0)
		give_up(report, SB_LAUNCH_SESSION, errno);
	for (int i = 0; i < 3; i++)
		if (dup2(l->stdio[i], i) < 0)
			give_up(report, SB_LAUNCH_STDIO, errno);
	/* every descriptor is close-on-exec from birth; this holds if one is not */
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		give_up(report, SB_LAUNCH_STDIO, errno);
	r = sb_confine_limits(l->confine);
	if (r < 0)
		give_up(report, SB_LAUNCH_LIMITS, -r);
	r = sb_confine_identity(l->confine);
	if (r < 0)
		give_up(report, SB_LAUNCH_IDENTITY, -r);
	if (chdir(l->cwd) < 0) /* with the user's rights */
		give_up(report, SB_LAUNCH_CWD, errno);
	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals)) < 0)
		give_up(report, SB_LAUNCH_SESSION, errno);
	r = enter_judge(l);
	if (r == 0)
		r = sb_confine_walls(l->confine, l->judge, l->cmd);
	if (r < 0)
		give_up(report, SB_LAUNCH_WALLS, -r);
	exec_first(l, report);
}

/* Nothing of the workload's: no program, no identity. It reads one tree and writes to a pipe. */
SB_NORETURN static void export_child(const struct sb_launch *l, int report)
{
	struct sb_err err = { 0 };
	int upper = -1;

	if (setsid() < 0)
		give_up(report, SB_LAUNCH_SESSION, errno);
	for (int i = 0; i < 3; i++)
		if (dup2(l->stdio[i], i) < 0)
			give_up(report, SB_LAUNCH_STDIO, errno);
	upper = fcntl(l->export, F_DUPFD_CLOEXEC, 3);
	if (upper < 0 || dup2(upper, 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0) < 0)
		give_up(report, SB_LAUNCH_STDIO, errno);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(125);
	if (sb_export_run(l->export_plan, 3, STDOUT_FILENO, &err) == 0)
		_exit(0);
	(void)dprintf(STDERR_FILENO, "sendbox: %s\n", err.text);
	_exit(1);
}

static pid_t clone_child(const struct sb_launch *l)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long r;

	if (l->mark)
		args.flags |= (uint64_t)CLONE_NEWUTS;
	if (l->cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned int)l->cgroup;
	}
	r = syscall(SYS_clone3, &args, sizeof(args));
	if (r < 0 && errno == ENOSYS && l->cgroup < 0) /* an outer filter may forbid clone3 */
		r = syscall(SYS_clone, args.flags | (uint64_t)SIGCHLD, 0, 0, 0, 0);
	return (pid_t)r;
}

int sb_launch_start(const struct sb_launch *l, pid_t *ret_pid, int *ret_report)
{
	int p[2];
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	rd = p[0];
	wr = p[1];
	pid = clone_child(l);
	if (pid < 0)
		return -errno;
	if (pid == 0 && l->export_plan)
		export_child(l, wr);
	if (pid == 0)
		child(l, wr);
	*ret_pid = pid;
	*ret_report = sb_fd_take(&rd);
	return 0;
}

int sb_launch_result(int report, struct sb_launch_report *ret)
{
	struct sb_launch_report rep;
	ssize_t n = read(report, &rep, sizeof(rep));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return SB_LAUNCH_PENDING;
	if (n == (ssize_t)sizeof(rep))
		*ret = rep;
	else
		*ret = (struct sb_launch_report){ .stage = SB_LAUNCH_OK };
	return 0;
}
