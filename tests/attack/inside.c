/*
 * The attacker's program: runs inside a session as the workload and tries what must not work.
 * One line a try: "refused NAME" or "OPEN NAME"; the last line counts. Static, so that any image
 * can run it.
 *
 *   inside calls     X04, X05, X11: namespaces, mounts, wide kernel interfaces, own terminal
 *   inside pid1      X08: the supervisor
 *   inside sockets   N27, N01, N26: raw and odd sockets, no way out
 *   inside forks     X10: processes; prints how many there could be
 *   inside memory    X10: all memory there is
 *   inside files     X10: descriptors; prints how many there could be
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int n_refused;
static int n_open;

static void verdict(const char *name, bool open)
{
	printf("%s %s\n", open ? "OPEN" : "refused", name);
	*(open ? &n_open : &n_refused) += 1;
}
/* A system call that must fail; the process must survive the success of any of them. */
static void call(const char *name, long nr, unsigned long a, unsigned long b, unsigned long c,
		 unsigned long d, unsigned long e)
{
	verdict(name, syscall(nr, a, b, c, d, e) >= 0);
}
static unsigned long at(const void *p)
{
	return (unsigned long)(uintptr_t)p;
}

static void clone_with(const char *name, unsigned long flag)
{
	struct clone_args args = { .flags = flag, .exit_signal = SIGCHLD };
	char text[64];
	long pid = syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	(void)snprintf(text, sizeof(text), "clone %s", name);
	verdict(text, pid > 0);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	(void)snprintf(text, sizeof(text), "clone3 %s", name);
	verdict(text, pid > 0);
	(void)snprintf(text, sizeof(text), "unshare %s", name);
	call(text, SYS_unshare, flag, 0, 0, 0, 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	verdict(path, fd >= 0 && write(fd, text, strlen(text)) > 0);
	if (fd >= 0)
		(void)close(fd);
}
static void read_from(const char *path)
{
	char c;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	verdict(path, fd >= 0 && read(fd, &c, 1) > 0);
	if (fd >= 0)
		(void)close(fd);
}

static void own_terminal(void)
{
	static const struct {
		const char *name;
		unsigned long request;
	} tries[] = {
		{ "TIOCSTI", TIOCSTI },
		{ "TIOCSTI with high bits", 0x100000000UL | TIOCSTI },
		{ "TIOCSETD", TIOCSETD },
		{ "TIOCLINUX", 0x541c },
	};
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	pid_t pid;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) {
		verdict("no terminal to try on", true);
		return;
	}
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		int fd;
		int bad = 0;
		int discipline = 2;
		char x[] = "x";

		(void)setsid();
		fd = open(ptsname(master), O_RDWR);
		(void)ioctl(fd, TIOCSCTTY, 0);
		for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
			bad += syscall(SYS_ioctl, fd, tries[i].request,
				       i == 2 ? (void *)&discipline : (void *)x) >= 0;
		_exit(bad);
	}
	{
		int status = 1;

		(void)waitpid(pid, &status, 0);
		verdict("typing into the own terminal", status != 0);
	}
	(void)close(master);
}

static void calls(void)
{
	struct iovec iov = { &iov, 1 };
	char params[120] = { 0 };
	int ns = open("/proc/1/ns/mnt", O_RDONLY);
	int own = open("/proc/self/ns/net", O_RDONLY);
	pid_t child;

	clone_with("user", CLONE_NEWUSER);
	clone_with("user+mount", CLONE_NEWUSER | CLONE_NEWNS);
	clone_with("mount", CLONE_NEWNS);
	clone_with("pid", CLONE_NEWPID);
	clone_with("net", CLONE_NEWNET);
	verdict("supervisor's mount namespace", ns >= 0 && syscall(SYS_setns, ns, 0) == 0);
	call("setns own", SYS_setns, (unsigned long)own, 0, 0, 0, 0);
	call("mount tmpfs", SYS_mount, at("x"), at("/tmp"), at("tmpfs"), 0, 0);
	call("bind mount", SYS_mount, at("/"), at("/tmp"), 0, MS_BIND, 0);
	call("remount", SYS_mount, 0, at("/usr"), 0, MS_REMOUNT | MS_BIND, 0);
	call("umount", SYS_umount2, at("/tmp"), MNT_DETACH, 0, 0, 0);
	call("fsopen", SYS_fsopen, at("tmpfs"), 0, 0, 0, 0);
	call("open_tree", SYS_open_tree, (unsigned long)AT_FDCWD, at("/"), 1, 0, 0);
	call("move_mount", SYS_move_mount, 0, at("/"), 0, at("/tmp"), 0);
	call("pivot_root", SYS_pivot_root, at("/tmp"), at("/tmp"), 0, 0, 0);
	call("chroot", SYS_chroot, at("/tmp"), 0, 0, 0, 0);
	call("io_uring_setup", SYS_io_uring_setup, 1, at(params), 0, 0, 0);
	call("userfaultfd", SYS_userfaultfd, 1, 0, 0, 0, 0);
	call("bpf", SYS_bpf, 0, at(params), sizeof(params), 0, 0);
	call("perf_event_open", SYS_perf_event_open, at(params), 0, (unsigned long)-1,
	     (unsigned long)-1, 0);
	call("keyctl", SYS_keyctl, 1, 0, 0, 0, 0);
	call("add_key", SYS_add_key, at("user"), at("d"), at("x"), 1, (unsigned long)-3);
	call("ptrace", SYS_ptrace, PTRACE_TRACEME, 0, 0, 0, 0);
	call("syslog", SYS_syslog, 3, at(params), sizeof(params), 0, 0);
	call("personality", SYS_personality, 0x0400000, 0, 0, 0, 0);
	call("mknod", SYS_mknodat, (unsigned long)AT_FDCWD, at("/tmp/mem"), S_IFCHR | 0666, 0x101, 0);
	call("setuid root", SYS_setresuid, 0, 0, 0, 0, 0);
	call("setgid root", SYS_setresgid, 0, 0, 0, 0, 0);
	call("init_module", SYS_init_module, at(params), sizeof(params), at(""), 0, 0);
	call("reboot", SYS_reboot, 0xfee1dead, 672274793, 0x4321fedc, 0, 0);
	call("sethostname", SYS_sethostname, at("x"), 1, 0, 0, 0);
	call("swapon", SYS_swapon, at("/tmp/x"), 0, 0, 0, 0);
	child = fork();
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	if (child > 0) { /* not where the calls before it left no way to fork: -1 would be everybody */
		call("process_vm_readv", SYS_process_vm_readv, (unsigned long)child, at(&iov), 1, at(&iov), 1);
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	write_to("/proc/sys/kernel/core_pattern", "|/tmp/x");
	write_to("/proc/sys/vm/overcommit_memory", "0");
	write_to("/proc/sysrq-trigger", "h");
	write_to("/sys/fs/cgroup/cgroup.procs", "0");
	write_to("/usr/bin/env", "x");
	write_to("/etc/passwd", "x");
	read_from("/proc/kcore");
	read_from("/dev/mem");
	read_from("/dev/kmsg");
	read_from("/etc/shadow");
	own_terminal();
}

static void pid1(void)
{
	char path[32];
	int n = 0;

	read_from("/proc/1/environ");
	read_from("/proc/1/mem");
	read_from("/proc/1/maps");
	write_to("/proc/1/mem", "x");
	write_to("/proc/1/oom_score_adj", "1000");
	verdict("/proc/1/root", open("/proc/1/root", O_PATH | O_CLOEXEC) >= 0);
	for (int fd = 0; fd < 64; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/1/fd/%d", fd);
		n += open(path, O_RDONLY | O_CLOEXEC) >= 0;
	}
	verdict("descriptors of the supervisor", n > 0);
	call("pidfd_getfd", SYS_pidfd_getfd, (unsigned long)syscall(SYS_pidfd_open, 1, 0), 3, 0, 0, 0);
	call("ptrace attach", SYS_ptrace, PTRACE_SEIZE, 1, 0, 0, 0);
	/* these may be accepted where rootless has one uid only; then they must change nothing,
	 * which the caller sees by the session going on */
	(void)kill(1, SIGSTOP);
	(void)kill(1, SIGKILL);
	(void)kill(1, SIGSEGV);
	(void)kill(1, SIGCONT);
}

static void sock(const char *name, int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);

	verdict(name, fd >= 0);
	if (fd >= 0)
		(void)close(fd);
}

static void sockets(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(53) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(443) };
	int fd;

	sock("packet raw", 17, SOCK_RAW, htons(3));
	sock("packet dgram", 17, SOCK_DGRAM, htons(3));
	sock("icmp raw", AF_INET, SOCK_RAW, IPPROTO_ICMP);
	sock("icmp6 raw", AF_INET6, SOCK_RAW, 58);
	sock("ip raw", AF_INET, SOCK_RAW, IPPROTO_RAW);
	sock("icmp ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	sock("inet packet", AF_INET, SOCK_PACKET, 0);
	sock("sctp", AF_INET, SOCK_STREAM, 132);
	sock("udplite", AF_INET, SOCK_DGRAM, 136);
	sock("vsock", 40, SOCK_STREAM, 0);
	sock("alg", 38, SOCK_SEQPACKET, 0);
	sock("key", 15, SOCK_RAW, 2);
	sock("xdp", 44, SOCK_RAW, 0);
	sock("bluetooth", 31, SOCK_RAW, 1);
	sock("netlink netfilter", AF_NETLINK, SOCK_RAW, 12);
	sock("netlink audit", AF_NETLINK, SOCK_RAW, 9);
	sock("netlink uevent", AF_NETLINK, SOCK_RAW, 15);
	(void)inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
	(void)inet_pton(AF_INET6, "2001:db8::1", &to6.sin6_addr);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	verdict("udp out", sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) >= 0);
	to.sin_addr.s_addr = htonl(0xe00000fb); /* mDNS */
	verdict("multicast out", sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) >= 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	(void)inet_pton(AF_INET, "169.254.169.254", &to.sin_addr);
	verdict("tcp out", connect(fd, (struct sockaddr *)&to, sizeof(to)) >= 0);
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	verdict("tcp6 out", connect(fd, (struct sockaddr *)&to6, sizeof(to6)) >= 0);
}

static int forks(void)
{
	int n = 0;

	while (n < 1000000) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			(void)setsid(); /* out of reach of the group */
			(void)pause();
			_exit(0);
		}
		n++;
	}
	printf("%d %s\n", n, n < 1000000 ? strerror(errno) : "no limit");
	return 0;
}

static int memory(void)
{
	const size_t step = 1 << 20;

	for (size_t i = 0; i < 1 << 20; i++) {
		char *p = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return 3;
		memset(p, 1, step);
	}
	return 4;
}

static int files(void)
{
	int n = 0;

	while (n < 10000000 && open("/dev/null", O_RDONLY) >= 0)
		n++;
	printf("%d %s\n", n, strerror(errno));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (strcmp(what, "forks") == 0)
		return forks();
	if (strcmp(what, "memory") == 0)
		return memory();
	if (strcmp(what, "files") == 0)
		return files();
	if (strcmp(what, "calls") == 0)
		calls();
	else if (strcmp(what, "pid1") == 0)
		pid1();
	else if (strcmp(what, "sockets") == 0)
		sockets();
	else
		return 2;
	printf("%d refused, %d open\n", n_refused, n_open);
	return n_open > 0;
}
