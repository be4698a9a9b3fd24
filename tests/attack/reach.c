/*
 * What the workload can do to the processes beside it that are not its own: PID 1, the judge, the
 * pumps. One line a try that succeeds: "NAME WAY"; and "NAME seen" for each of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char name[64];

static void got(const char *way)
{
	printf("%s %s\n", name, way);
}

static void open_file(pid_t pid, const char *file, int flags)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	(void)close(fd);
	got(file);
}

static void limits(pid_t pid)
{
	struct rlimit64 was;

	if (syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, NULL, &was) < 0)
		return;
	got("prlimit-read");
	if (syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &was, NULL) == 0)
		got("prlimit-write");
}

static void memory(pid_t pid)
{
	char byte = 0;
	struct iovec here = { &byte, 1 };
	struct iovec there = { (void *)0x10000, 1 };
	int fd;

	if (syscall(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT)
		got("process_vm_readv");
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) {
		got("ptrace");
		(void)ptrace(PTRACE_DETACH, pid, 0, 0);
	}
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return;
	if (syscall(SYS_pidfd_getfd, fd, 0, 0) >= 0)
		got("pidfd_getfd");
	if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0)
		got("pidfd-signal");
	(void)close(fd);
}

static void try(pid_t pid)
{
	static const char *const readable[] = { "environ", "maps", "auxv", "syscall", "stack", "exe", "cwd",
						"root", "fd/0", "fdinfo/0", "map_files", "io", "personality" };
	static const char *const writable[] = { "mem", "oom_score_adj", "coredump_filter", "comm",
						"clear_refs", "setgroups", "uid_map", "attr/current",
						"timerslack_ns", "autogroup", "loginuid" };
	struct sched_param p = { 0 };

	got("seen");
	for (size_t i = 0; i < sizeof(readable) / sizeof(*readable); i++)
		open_file(pid, readable[i], O_RDONLY);
	for (size_t i = 0; i < sizeof(writable) / sizeof(*writable); i++)
		open_file(pid, writable[i], O_WRONLY);
	limits(pid);
	memory(pid);
	if (sched_setscheduler(pid, sched_getscheduler(pid), &p) == 0)
		got("scheduler");
	if (setpriority(PRIO_PROCESS, (id_t)pid, getpriority(PRIO_PROCESS, (id_t)pid)) == 0)
		got("priority");
	if (kill(pid, 0) == 0)
		got("kill");
	if (syscall(SYS_tgkill, pid, pid, 0) == 0)
		got("tgkill");
}

/* /proc hides them (hidepid): their numbers do not. The judge is told from PID 1 and the pumps by what
 * the test knows of the order of starts; here they are numbers. */
int main(int argc, char **argv)
{
	int signo = argc > 1 ? atoi(argv[1]) : 0;

	for (pid_t pid = 1; pid < 400; pid++) {
		pid_t sid = getsid(pid);

		if (sid < 0 || sid == getsid(0))
			continue;
		(void)snprintf(name, sizeof(name), "%d", pid);
		if (signo > 0 && pid > 1) {
			printf("%d %s\n", pid, kill(pid, signo) == 0 ? "signalled" : strerrorname_np(errno));
			continue;
		}
		if (signo == 0)
			try(pid);
	}
	return 0;
}
