#ifndef SB_OS_JAIL_H
#define SB_OS_JAIL_H
/*
 * The jail of a helper program: entered once, after it opened what it needs, never left.
 *
 * Stages, in this order: close-on-death and dump protection, resource limits, capabilities
 * dropped, no_new_privs, Landlock (deny all, except beneath @root_fd), seccomp allow list with
 * KILL_PROCESS for everything else. A build with -DSB_JAIL_RELAXED (sanitizers, valgrind) leaves
 * out Landlock and seccomp; there is no run-time switch.
 *
 * The table comes from the file <program>.syscalls beside the code (one name a line) through
 * build-aux/gen-syscalls, which names it <program>_syscalls.
 */
#include "base/err.h"

/* Bits of sb_jail.flags */
#define SB_JAIL_ALLOW_EXEC_MAP 1U /* mmap/mprotect with PROT_EXEC stay allowed */
#define SB_JAIL_IOCTL_ISATTY 2U   /* a listed ioctl is TCGETS only */
#define SB_JAIL_SOCKET_PAIRS 4U   /* a listed socketpair is AF_UNIX only, setsockopt SO_SNDBUF only */
#define SB_JAIL_INET 8U           /* a listed socket is AF_INET or AF_INET6 only; Landlock leaves
				   * connect to seccomp (bind of TCP stays denied) */
#define SB_JAIL_THREADS 16U       /* threads may start: a listed clone is for threads only, a listed
				   * clone3 says ENOSYS, RLIMIT_NPROC stays as it is */

struct sb_jail {
	const int *syscalls; /* numbers; negative ones (not on this machine) are skipped */
	size_t n_syscalls;
	uint32_t flags;
	uint32_t nofile;    /* RLIMIT_NOFILE; 0 = leave */
	int root_fd;        /* directory beneath which files stay in reach; -1 = no file at all */
	bool root_writable; /* else only reading beneath it */
	const int *root_fds; /* more of them, directories or files, with the same access */
	size_t n_root_fds;
	const int *read_fds; /* the same, for reading only */
	size_t n_read_fds;
	uint64_t keep_caps; /* mask of 1 << CAP_x that stay effective and permitted */
};

/*
 * sb_jail_enter - confine the calling process for good
 *
 * Every stage must work; rights that an older Landlock does not know are left to seccomp. On
 * failure the process may be half confined: exit.
 *
 * Blocks: no. Return: 0; -errno with the stage in @err.
 */
SB_MUST_CHECK int sb_jail_enter(const struct sb_jail *j, struct sb_err *err);

#endif
