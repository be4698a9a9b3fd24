/*
 * The workload's seccomp filter, call by call: each denied one under the filter must fail with
 * exactly the errno of the filter, and without it (as root, with arguments that do no harm) with
 * anything else, or the case proves nothing.
 */
#include "t.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/controls.h"
#include "exec/filter.h"

#define HIGH 0x100000000UL /* garbage that the kernel does not look at */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static int shared_pty = -1;

struct call {
	const char *name;
	long nr;
	unsigned long arg[4];
	int error;    /* of the filter; 0 = must not be stopped */
	bool same_ok; /* the kernel may answer the same without the filter */
};

#define P 1 /* EPERM */
#define ALLOWED (-1)
/* What strict and build answer where they differ from the default below. */
static const struct {
	const char *name;
	int strict; /* errno; ALLOWED; 0 = as the default */
	int build;
} differences[] = {
	{ "ptrace", 0, ALLOWED },
	{ "process_vm_readv", 0, ALLOWED },
	{ "process_vm_writev", 0, ALLOWED },
	{ "personality ADDR_NO_RANDOMIZE", 0, ALLOWED },
	{ "netlink route", EAFNOSUPPORT, 0 },
	{ "netlink audit", EAFNOSUPPORT, 0 },
	{ "netlink netfilter + high", EAFNOSUPPORT, 0 },
	{ "memfd_create", P, 0 },
	{ "memfd_secret", P, 0 },
	{ "execveat", P, 0 },
	{ "shmget", P, 0 },
	{ "msgget", P, 0 },
	{ "semget", P, 0 },
	{ "mq_open", P, 0 },
	{ "io_setup", P, 0 },
};
static const struct call calls[] = {
	{ "ptrace", SYS_ptrace, { 0x4206, 1, 0, 0 }, P, true },
	{ "process_vm_readv", SYS_process_vm_readv, { 0, 0, 0, 0 }, P, false },
	{ "process_vm_writev", SYS_process_vm_writev, { 0, 0, 0, 0 }, P, false },
	{ "process_madvise", SYS_process_madvise, { ~0UL, 0, 0, 0 }, P, false },
	{ "kcmp", SYS_kcmp, { 0, 0, 99, 0 }, P, false },
	{ "pidfd_getfd", SYS_pidfd_getfd, { ~0UL, 0, 0, 0 }, P, false },
	{ "io_uring_setup", SYS_io_uring_setup, { 0, 0, 0, 0 }, P, true },
	{ "io_uring_enter", SYS_io_uring_enter, { ~0UL, 0, 0, 0 }, P, false },
	{ "io_uring_register", SYS_io_uring_register, { ~0UL, 0, 0, 0 }, P, false },
	{ "bpf", SYS_bpf, { 9999, 0, 0, 0 }, P, false },
	{ "userfaultfd", SYS_userfaultfd, { 0x7fff0000, 0, 0, 0 }, P, false },
	{ "perf_event_open", SYS_perf_event_open, { 0, 0, 0, 0 }, P, false },
	{ "vmsplice", SYS_vmsplice, { ~0UL, 0, 0, 0 }, P, false },
	{ "fanotify_init", SYS_fanotify_init, { ~0UL, 0, 0, 0 }, P, false },
	{ "mount", SYS_mount, { 0, 0, 0, 0 }, P, false },
	{ "umount2", SYS_umount2, { 0, ~0UL, 0, 0 }, P, false },
	{ "pivot_root", SYS_pivot_root, { 0, 0, 0, 0 }, P, false },
	{ "chroot", SYS_chroot, { 0, 0, 0, 0 }, P, false },
	{ "fsopen", SYS_fsopen, { 0, ~0UL, 0, 0 }, P, false },
	{ "fsconfig", SYS_fsconfig, { ~0UL, 0, 0, 0 }, P, false },
	{ "fsmount", SYS_fsmount, { ~0UL, 0, 0, 0 }, P, false },
	{ "fspick", SYS_fspick, { ~0UL, 0, ~0UL, 0 }, P, false },
	{ "move_mount", SYS_move_mount, { ~0UL, 0, ~0UL, 0 }, P, false },
	{ "open_tree", SYS_open_tree, { ~0UL, 0, ~0UL, 0 }, P, false },
	{ "mount_setattr", 442, { ~0UL, 0, ~0UL, 0 }, P, false },
	{ "unshare", SYS_unshare, { 0, 0, 0, 0 }, P, false },
	{ "setns", SYS_setns, { ~0UL, 0, 0, 0 }, P, false },
	{ "open_by_handle_at", SYS_open_by_handle_at, { ~0UL, 0, 0, 0 }, P, false },
	{ "name_to_handle_at", SYS_name_to_handle_at, { ~0UL, 0, 0, 0 }, P, false },
	{ "keyctl", SYS_keyctl, { 9999, 0, 0, 0 }, P, false },
	{ "add_key", SYS_add_key, { 0, 0, 0, 0 }, P, false },
	{ "request_key", SYS_request_key, { 0, 0, 0, 0 }, P, false },
	{ "init_module", SYS_init_module, { 0, 0, 0, 0 }, P, true },
	{ "finit_module", SYS_finit_module, { ~0UL, 0, 0, 0 }, P, true },
	{ "delete_module", SYS_delete_module, { 0, 0, 0, 0 }, P, true },
	{ "kexec_load", SYS_kexec_load, { 0, 0, 0, ~0UL }, P, true },
	{ "reboot", SYS_reboot, { 0, 0, 0, 0 }, P, true },
	{ "acct", SYS_acct, { 1, 0, 0, 0 }, P, true },
	{ "swapon", SYS_swapon, { 0, ~0UL, 0, 0 }, P, false },
	{ "swapoff", SYS_swapoff, { 0, 0, 0, 0 }, P, false },
	{ "quotactl", SYS_quotactl, { ~0UL, 0, 0, 0 }, P, false },
	{ "syslog", SYS_syslog, { 99, 0, 0, 0 }, P, false },
	{ "sethostname", SYS_sethostname, { 0, ~0UL, 0, 0 }, P, false },
	{ "clock_settime", SYS_clock_settime, { 999, 0, 0, 0 }, P, false },
	{ "set_mempolicy", SYS_set_mempolicy, { 999, 0, 0, 0 }, P, false },
	{ "mbind", SYS_mbind, { 1, 1, 999, 0 }, P, false },
	{ "move_pages", SYS_move_pages, { 0, 0, 0, 0 }, P, false },
	{ "migrate_pages", SYS_migrate_pages, { ~0UL, 0, 0, 0 }, P, false },
	{ "personality ADDR_NO_RANDOMIZE", SYS_personality, { 0x40000, 0, 0, 0 }, P, false },
	{ "personality PER_LINUX32 + high", SYS_personality, { HIGH | 8, 0, 0, 0 }, P, false },
	{ "personality query", SYS_personality, { 0xffffffff, 0, 0, 0 }, 0, false },
	{ "personality 0", SYS_personality, { 0, 0, 0, 0 }, 0, false },
	{ "clone3", SYS_clone3, { 0, 0, 0, 0 }, ENOSYS, false },
	{ "a call of the future", 467, { ~0UL, 0, 0, 0 }, ENOSYS, true },
	{ "clone NEWUSER", SYS_clone, { CLONE_NEWUSER | CLONE_FS, 0, 0, 0 }, P, false },
	{ "clone NEWNS", SYS_clone, { CLONE_NEWNS | CLONE_FS, 0, 0, 0 }, P, false },
	{ "clone NEWPID + high", SYS_clone,
	  { HIGH | CLONE_NEWPID | CLONE_SIGHAND, 0, 0, 0 }, P, false },
	{ "clone NEWNET", SYS_clone, { CLONE_NEWNET | CLONE_SIGHAND, 0, 0, 0 }, P, false },
	{ "clone NEWUTS", SYS_clone, { CLONE_NEWUTS | CLONE_SIGHAND, 0, 0, 0 }, P, false },
	{ "clone NEWIPC", SYS_clone, { CLONE_NEWIPC | CLONE_SIGHAND, 0, 0, 0 }, P, false },
	{ "clone NEWCGROUP", SYS_clone, { CLONE_NEWCGROUP | CLONE_SIGHAND, 0, 0, 0 }, P, false },
	{ "mknodat char", SYS_mknodat, { (unsigned long)AT_FDCWD, 0, S_IFCHR, 0 }, P, false },
	{ "mknodat block", SYS_mknodat, { (unsigned long)AT_FDCWD, 0, HIGH | S_IFBLK, 0 }, P,
	  false },
	{ "ioctl TIOCSTI", SYS_ioctl, { ~0UL, TIOCSTI, 0, 0 }, P, false },
	{ "ioctl TIOCSTI + high", SYS_ioctl, { ~0UL, HIGH | TIOCSTI, 0, 0 }, P, false },
	{ "ioctl TIOCLINUX", SYS_ioctl, { ~0UL, 0x541c, 0, 0 }, P, false },
	{ "ioctl TIOCSETD", SYS_ioctl, { ~0UL, TIOCSETD, 0, 0 }, P, false },
	{ "ioctl BTRFS_IOC_SUBVOL_CREATE", SYS_ioctl, { ~0UL, 0x5000940e, 0, 0 }, P, false },
	{ "ioctl BTRFS_IOC_SUBVOL_CREATE_V2", SYS_ioctl, { ~0UL, 0x50009418, 0, 0 }, P, false },
	{ "ioctl BTRFS_IOC_SNAP_CREATE", SYS_ioctl, { ~0UL, 0x50009401, 0, 0 }, P, false },
	{ "ioctl BTRFS_IOC_SNAP_CREATE_V2", SYS_ioctl, { ~0UL, HIGH | 0x50009417, 0, 0 }, P, false },
	{ "socket packet", SYS_socket, { 17, SOCK_RAW, 0, 0 }, EAFNOSUPPORT, false },
	{ "socket vsock", SYS_socket, { 40, 99, 0, 0 }, EAFNOSUPPORT, true },
	{ "socket alg", SYS_socket, { 38, 99, 0, 0 }, EAFNOSUPPORT, true },
	{ "socket key", SYS_socket, { 15, 99, 0, 0 }, EAFNOSUPPORT, true },
	{ "socket packet + high", SYS_socket, { HIGH | 17, SOCK_RAW, 0, 0 }, EAFNOSUPPORT, false },
	{ "socket raw", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_ICMP, 0 }, P, false },
	{ "socket raw 6", SYS_socket, { AF_INET6, SOCK_RAW | SOCK_CLOEXEC, 58, 0 }, P, false },
	{ "socket raw + high", SYS_socket, { AF_INET, HIGH | SOCK_RAW, 1, 0 }, P, false },
	{ "socket ping", SYS_socket, { AF_INET, SOCK_DGRAM, IPPROTO_ICMP, 0 }, P, false },
	{ "socket sctp", SYS_socket, { AF_INET, SOCK_SEQPACKET, 132, 0 }, P, false },
	{ "netlink audit", SYS_socket, { AF_NETLINK, SOCK_RAW, 9, 0 }, P, false },
	{ "netlink netfilter + high", SYS_socket, { AF_NETLINK, SOCK_RAW, HIGH | 12, 0 }, P, false },
	{ "socketpair vsock", SYS_socketpair, { 40, SOCK_STREAM, 0, 0 }, EAFNOSUPPORT, true },
	{ "socket tcp", SYS_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0 }, 0, false },
	{ "socket udp", SYS_socket, { HIGH | AF_INET6, SOCK_DGRAM, IPPROTO_UDP, 0 }, 0, false },
	{ "socket unix", SYS_socket, { AF_UNIX, SOCK_SEQPACKET, 0, 0 }, 0, false },
	{ "netlink route", SYS_socket, { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0, 0 }, 0, false },
	{ "memfd_create", SYS_memfd_create, { (unsigned long)"m", MFD_CLOEXEC, 0, 0 }, 0, false },
	{ "getpid", SYS_getpid, { 0, 0, 0, 0 }, 0, false },
	{ "pidfd_open", SYS_pidfd_open, { 1, 0, 0, 0 }, 0, false },
	{ "setuid family", SYS_setresuid, { ~0UL, ~0UL, ~0UL, 0 }, 0, false },
	{ "execveat", SYS_execveat, { ~0UL, 0, 0, 0 }, 0, false },
	{ "shmget", SYS_shmget, { 0, 0, 0, 0 }, 0, false },
	{ "msgget", SYS_msgget, { 0, 0, 0, 0 }, 0, false },
	{ "semget", SYS_semget, { 0, 0, 0, 0 }, 0, false },
	{ "mq_open", SYS_mq_open, { 0, 0, 0, 0 }, 0, false },
	{ "io_setup", SYS_io_setup, { 0, 0, 0, 0 }, 0, false },
	{ "openat2", SYS_openat2, { 0, 0, 0, 0 }, 0, false },
	{ "landlock_create_ruleset", 444, { 0, 0, 1, 0 }, 0, false },
	{ "seccomp query", SYS_seccomp, { SECCOMP_GET_ACTION_AVAIL, 0, 0, 0 }, 0, false },
	{ "mseal", 462, { 1, 1, 1, 0 }, 0, false },
	{ "process_mrelease", 448, { ~0UL, 0, 0, 0 }, 0, false },
	{ "memfd_secret", 447, { ~0UL, 0, 0, 0 }, 0, false },
	{ "fanotify_mark", SYS_fanotify_mark, { ~0UL, 0, 0, 0 }, P, false },
	{ "quotactl_fd", 443, { ~0UL, 0, 0, 0 }, P, false },
	{ "a number that no call has", 400, { ~0UL, 0, 0, 0 }, ENOSYS, true },
};

static int try_call(const struct call *c)
{
	long r = syscall(c->nr, c->arg[0], c->arg[1], c->arg[2], c->arg[3]);

	return r < 0 ? errno : 0;
}

static enum sb_profile profile = SB_PROFILE_DEFAULT; /* of the filters below */

static bool install(void)
{
	struct sock_fprog f = sb_filter_profile(profile);

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) == 0;
}

/* Run fn(arg) in a child. Return: wait status. */
static int in_child(int (*fn)(const void *), const void *arg)
{
	int status = -1;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(fn(arg));
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static int under_filter(const void *arg)
{
	return install() ? try_call(arg) : 255;
}
static int without(const void *arg)
{
	return try_call(arg);
}

/* What @profile answers to @c; ALLOWED: anything the kernel says. */
static int expected(const struct call *c)
{
	int e = c->error;

	for (size_t i = 0; i < SB_ARRAY_LEN(differences); i++) {
		if (strcmp(differences[i].name, c->name) != 0)
			continue;
		if (profile == SB_PROFILE_STRICT && differences[i].strict)
			e = differences[i].strict;
		if (profile == SB_PROFILE_BUILD && differences[i].build)
			e = differences[i].build;
	}
	return e;
}

/* Allowed, so the kernel's own answer comes. */
static void check_allowed(const struct call *c, int with)
{
	int plain = in_child(without, c);

	if (!WIFEXITED(with) || !WIFEXITED(plain) || WEXITSTATUS(with) != WEXITSTATUS(plain))
		t_fail(__FILE__, __LINE__, "%s, %s: status %x under the filter, %x without it",
		       sb_plan_profile_name(profile), c->name, (unsigned int)with, (unsigned int)plain);
}

static void check_profile(enum sb_profile p)
{
	profile = p;
	for (size_t i = 0; i < SB_ARRAY_LEN(calls); i++) {
		int with = in_child(under_filter, &calls[i]);
		int e = expected(&calls[i]);

		if (e <= 0)
			check_allowed(&calls[i], with);
		else if (!WIFEXITED(with) || WEXITSTATUS(with) != e)
			t_fail(__FILE__, __LINE__, "%s, %s: status %x, want errno %d",
			       sb_plan_profile_name(p), calls[i].name, (unsigned int)with, e);
	}
	profile = SB_PROFILE_DEFAULT;
}

TEST(strict_decides_every_call)
{
	check_profile(SB_PROFILE_STRICT);
}
TEST(build_decides_every_call)
{
	check_profile(SB_PROFILE_BUILD);
}
TEST(default_decides_every_call)
{
	check_profile(SB_PROFILE_DEFAULT);
}

/* The judge of notifications answers by evaluation: it must say what the kernel says. */
TEST(the_evaluation_agrees_with_the_kernel)
{
	struct sock_fprog f = sb_filter_profile(SB_PROFILE_DEFAULT);

	for (size_t i = 0; i < SB_ARRAY_LEN(calls); i++) {
		const struct call *c = &calls[i];
		struct seccomp_data d = { .nr = (int)c->nr, .arch = ARCH };
		uint32_t want = c->error ? SECCOMP_RET_ERRNO | (uint32_t)c->error
					 : SECCOMP_RET_ALLOW;

		for (int a = 0; a < 4; a++)
			d.args[a] = c->arg[a];
		if (sb_filter_eval(&f, &d) != want)
			t_fail(__FILE__, __LINE__, "%s: %x", c->name, sb_filter_eval(&f, &d));
	}
}

TEST(a_plan_denies_more)
{
	char *names[] = { (char *)(uintptr_t)"chmod", (char *)(uintptr_t)"getpid", NULL };
	struct sb_plan plan = { .profile = SB_PROFILE_BUILD, .deny_syscalls = names };
	struct seccomp_data getpid_call = { .nr = SYS_getpid, .arch = ARCH };
	struct seccomp_data exec_call = { .nr = SYS_execve, .arch = ARCH };
	struct seccomp_data clone3_call = { .nr = SYS_clone3, .arch = ARCH };
	struct seccomp_data foreign = { .nr = SYS_getpid, .arch = ARCH ^ 1 };
	struct sock_fprog plain;
	struct sock_fprog asking;
	struct sb_err err = { 0 };

	REQUIRE(sb_filter_make(&plan, 0, &plain, &err) == 0);
	REQUIRE(sb_filter_make(&plan, SB_FILTER_ASK_REFUSED | SB_FILTER_ASK_EXEC, &asking, &err) ==
		0);
	CHECK_EQ(sb_filter_eval(&plain, &getpid_call), SECCOMP_RET_ERRNO | (uint32_t)EPERM);
	CHECK_EQ(sb_filter_eval(&asking, &getpid_call), SECCOMP_RET_USER_NOTIF);
	CHECK_EQ(sb_filter_eval(&plain, &exec_call), SECCOMP_RET_ALLOW);
	CHECK_EQ(sb_filter_eval(&asking, &exec_call), SECCOMP_RET_USER_NOTIF);
	/* absent and foreign calls are nothing to ask about */
	CHECK_EQ(sb_filter_eval(&asking, &clone3_call), SECCOMP_RET_ERRNO | (uint32_t)ENOSYS);
	CHECK_EQ(sb_filter_eval(&asking, &foreign), SECCOMP_RET_KILL_PROCESS);
	CHECK_EQ(sb_filter_eval(&plain, &foreign), SECCOMP_RET_KILL_PROCESS);
	free(plain.filter);
	free(asking.filter);
	names[0] = (char *)(uintptr_t)"no_such_call";
	CHECK_EQ(sb_filter_make(&plan, 0, &plain, &err), -ENOENT);
	CHECK(strstr(err.text, "no_such_call") != NULL);
	plan.profile = SB_PROFILE_NONE;
	CHECK_EQ(sb_filter_make(&plan, 0, &plain, NULL), -EINVAL);
}

/* The default filter, call by call, against the kernel without one. */
TEST(the_cases_can_tell)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(calls); i++) {
		const struct call *c = &calls[i];

		if (c->error && !c->same_ok && geteuid() == 0) {
			int plain = in_child(without, c);

			if (!WIFEXITED(plain) || WEXITSTATUS(plain) == c->error)
				t_fail(__FILE__, __LINE__, "%s: no difference without filter",
				       c->name);
		}
	}
}

#ifdef __x86_64__
static int x32_call(const void *arg)
{
	(void)arg;
	if (!install())
		return 1;
	(void)syscall(0x40000000L + SYS_getpid);
	return 2;
}
static int i386_call(const void *arg)
{
	long r = 20; /* getpid */

	(void)arg;
	(void)signal(SIGSEGV, SIG_DFL); /* not a sanitizer's */
	if (!install())
		return 1;
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return 2;
}
TEST(foreign_calls_kill)
{
	int s = in_child(x32_call, NULL);

	CHECK(WIFSIGNALED(s) && WTERMSIG(s) == SIGSYS);
	s = in_child(i386_call, NULL);
	/* SIGSEGV: a kernel without 32-bit entry */
	CHECK(WIFSIGNALED(s) && (WTERMSIG(s) == SIGSYS || WTERMSIG(s) == SIGSEGV));
}
#endif

static int type_into(const void *arg)
{
	(void)arg;
	if (setsid() < 0 || ioctl(shared_pty, TIOCSCTTY, 0) < 0)
		return 1;
	if (!install())
		return 2;
	return ioctl(shared_pty, TIOCSTI, "x") < 0 && errno == EPERM ? 0 : 3;
}

TEST(nothing_is_typed_into_the_own_terminal)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int s;

	REQUIRE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	shared_pty = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	REQUIRE(shared_pty >= 0);
	s = in_child(type_into, NULL);
	CHECK_EQ(WEXITSTATUS(s), 0);
	(void)close(shared_pty);
	(void)close(master);
}
