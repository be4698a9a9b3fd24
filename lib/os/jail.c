/*
 * Theory of operation. Everything irreversible happens in one function, from the mildest stage to
 * the strictest, so that a later stage cannot undo an earlier one. seccomp comes last because the
 * other stages need calls that no helper needs afterwards. Some calls that a helper does need are
 * narrowed: mmap and mprotect lose PROT_EXEC, others what the flags say.
 *
 * Landlock's constants are spelled out: the kernel headers of Debian 12 stop at version 2.
 */
#include "os/jail.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/landlock.h"

#define LL_CREATE_RULESET_VERSION 1U
#define LL_RULE_PATH_BENEATH 1
/* Access bits, in the order in which the versions brought them. */
#define LL_FS_EXECUTE (1ULL << 0)
#define LL_FS_WRITE_FILE (1ULL << 1)
#define LL_FS_READ_FILE (1ULL << 2)
#define LL_FS_READ_DIR (1ULL << 3)
#define LL_FS_V1 ((1ULL << 13) - 1)
#define LL_FS_REFER (1ULL << 13)     /* version 2 */
#define LL_FS_TRUNCATE (1ULL << 14)  /* version 3 */
#define LL_FS_IOCTL_DEV (1ULL << 15) /* version 5 */
#define LL_FS_MAKE_CHAR (1ULL << 6)
#define LL_FS_MAKE_BLOCK (1ULL << 11)
#define LL_NET_BIND_TCP 1ULL         /* version 4 */
#define LL_NET_CONNECT_TCP 2ULL
#define LL_SCOPE 3ULL                /* version 6: abstract sockets, signals */

struct ll_ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scope;
};

struct ll_beneath {
	uint64_t access;
	int32_t fd;
} SB_PACKED;

#ifndef SB_JAIL_RELAXED
static int add_beneath(int ruleset, int fd, uint64_t handled, bool writable, struct sb_err *err)
{
	struct ll_beneath rule = { .fd = fd, .access = LL_FS_READ_FILE | LL_FS_READ_DIR };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "jail: root: errno %d", errno);
	if (writable)
		rule.access = handled & ~(LL_FS_EXECUTE | LL_FS_MAKE_CHAR | LL_FS_MAKE_BLOCK |
					  LL_FS_IOCTL_DEV);
	if (!S_ISDIR(st.st_mode))
		rule.access &= LL_FS_READ_FILE | LL_FS_WRITE_FILE | LL_FS_TRUNCATE;
	if (syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0) < 0)
		return sb_err_set(err, -errno, "jail: landlock rule: errno %d", errno);
	return 0;
}

static int enter_landlock(const struct sb_jail *j, struct sb_err *err)
{
	int abi = sb_landlock_abi();
	struct ll_ruleset rs = { .fs = LL_FS_V1 };
	size_t len = sizeof(rs.fs);
	sb_autofd int fd = -1;

	if (abi <= 0)
		return sb_err_set(err, -ENOSYS,
				  "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK "
				  "and landlock among lsm=, as Debian's has");
	if (abi >= 2)
		rs.fs |= LL_FS_REFER;
	if (abi >= 3)
		rs.fs |= LL_FS_TRUNCATE;
	if (abi >= 5)
		rs.fs |= LL_FS_IOCTL_DEV;
	if (abi >= 4) {
		rs.net = LL_NET_BIND_TCP;
		if (!(j->flags & SB_JAIL_INET))
			rs.net |= LL_NET_CONNECT_TCP;
		len += sizeof(rs.net);
	}
	if (abi >= 6) {
		rs.scope = LL_SCOPE;
		len += sizeof(rs.scope);
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &rs, len, 0);
	if (fd < 0)
		return sb_err_set(err, -errno, "jail: landlock ruleset: errno %d", errno);
	if (j->root_fd >= 0) {
		int r = add_beneath(fd, j->root_fd, rs.fs, j->root_writable, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < j->n_root_fds; i++) {
		int r = add_beneath(fd, j->root_fds[i], rs.fs, j->root_writable, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < j->n_read_fds; i++) {
		int r = add_beneath(fd, j->read_fds[i], rs.fs, false, err);

		if (r < 0)
			return r;
	}
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return sb_err_set(err, -errno, "jail: landlock restrict: errno %d", errno);
	return 0;
}

static int add_call(scmp_filter_ctx ctx, int nr, uint32_t flags)
{
	bool maps = nr == SCMP_SYS(mmap) || nr == SCMP_SYS(mprotect);

	if (maps && !(flags & SB_JAIL_ALLOW_EXEC_MAP))
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (nr == SCMP_SYS(ioctl) && (flags & SB_JAIL_IOCTL_ISATTY))
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TCGETS));
	if (nr == SCMP_SYS(clone3) && (flags & SB_JAIL_THREADS)) /* its flags lie in memory */
		return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
	if (nr == SCMP_SYS(clone) && (flags & SB_JAIL_THREADS))
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (nr == SCMP_SYS(socketpair) && (flags & SB_JAIL_SOCKET_PAIRS))
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_UNIX));
	if (nr == SCMP_SYS(setsockopt) && (flags & SB_JAIL_SOCKET_PAIRS))
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 2,
					SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, SOL_SOCKET),
					SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, SO_SNDBUF));
	if (nr == SCMP_SYS(socket) && (flags & SB_JAIL_INET)) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					 SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_INET));

		if (r < 0)
			return r;
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_INET6));
	}
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
}

static int enter_seccomp(const struct sb_jail *j, struct sb_err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r;

	if (!ctx)
		return sb_err_set(err, -ENOMEM, "jail: seccomp: no memory");
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* a balanced tree instead of a list: the data path makes few calls, all of them hot */
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; r == 0 && i < j->n_syscalls; i++) {
		if (j->syscalls[i] < 0)
			continue;
		r = add_call(ctx, j->syscalls[i], j->flags);
		if (r == -EEXIST)
			r = 0;
	}
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r < 0 ? sb_err_set(err, r, "jail: seccomp: errno %d", -r) : 0;
}
#endif

static int limit(int what, rlim_t to)
{
	struct rlimit rl;

	/* never above the hard limit: raising it would need a privilege */
	if (getrlimit((__rlimit_resource_t)what, &rl) < 0)
		return -errno;
	if (rl.rlim_max < to)
		to = rl.rlim_max;
	rl = (struct rlimit){ .rlim_cur = to, .rlim_max = to };
	return setrlimit((__rlimit_resource_t)what, &rl) < 0 ? -errno : 0;
}

static int drop_caps(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(keep >> (32 * i));

		data[i].permitted &= mask;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	/* a set that is a subset of the present one needs no privilege */
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int sb_jail_enter(const struct sb_jail *j, struct sb_err *err)
{
	int r;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return sb_err_set(err, -errno, "jail: dumpable: errno %d", errno);
	r = limit(RLIMIT_CORE, 0);
	if (r == 0 && !(j->flags & SB_JAIL_THREADS))
		r = limit(RLIMIT_NPROC, 0);
	if (r == 0)
		r = limit(RLIMIT_MSGQUEUE, 0);
	if (r == 0 && j->nofile > 0)
		r = limit(RLIMIT_NOFILE, j->nofile);
	if (r < 0)
		return sb_err_set(err, r, "jail: limits: errno %d", -r);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	r = drop_caps(j->keep_caps);
	if (r < 0)
		return sb_err_set(err, r, "jail: capabilities: errno %d", -r);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sb_err_set(err, -errno, "jail: no_new_privs: errno %d", errno);
#ifndef SB_JAIL_RELAXED
	r = enter_landlock(j, err);
	if (r < 0)
		return r;
	r = enter_seccomp(j, err);
	if (r < 0)
		return r;
#endif
	return 0;
}
