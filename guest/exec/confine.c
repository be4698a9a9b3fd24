#include "exec/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/controls.h"
#include "exec/filter.h"
#include "exec/judge.h"
#include "exec/setid.h"
#include "os/landlock.h"

static int allow_all(int rs, const char *const *paths, enum sb_landlock_class c, const char **at)
{
	/* Links that the root filesystem makes (tty, ptmx) are followed. Missing ones are no
	 * error: there is nothing to open then. */
	for (; *paths; paths++) {
		int r = sb_landlock_allow(rs, *paths, c);

		*at = *paths;
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

static int landlock_plan(const struct sb_plan *plan, int rs, struct sb_err *err)
{
	static const char *const devices[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
		"/dev/tty",  "/dev/ptmx", "/dev/pts", NULL,
	};
	char run_user[64];
	const char *const shared[] = { "/var/tmp", "/dev/shm", "/dev/mqueue", run_user, NULL };
	static const char *const tmp[] = { "/tmp", NULL };
	static const char *const lasting[] = { "/etc", "/home", "/mnt", "/opt", "/root",
					       "/srv", "/usr",	"/var", NULL };
	const char *path = "/";
	int r;

	(void)snprintf(run_user, sizeof(run_user), "/run/user/%u", plan->uid);
	r = sb_landlock_allow(rs, path, plan->builder ? SB_LANDLOCK_FULL : SB_LANDLOCK_READ);
	/* what the permissions of the files let it change, where changes are kept */
	if (r == 0 && plan->upper.kind != SB_UPPER_TMPFS && plan->profile != SB_PROFILE_STRICT)
		r = allow_all(rs, lasting, SB_LANDLOCK_FULL, &path);
	if (r == 0)
		r = allow_all(rs, devices, SB_LANDLOCK_DEVICE, &path);
	if (r == 0)
		r = allow_all(rs, tmp, SB_LANDLOCK_FULL, &path);
	if (r == 0 && plan->profile != SB_PROFILE_STRICT)
		r = allow_all(rs, shared, SB_LANDLOCK_FULL, &path);
	if (r == 0) {
		path = plan->home;
		r = sb_landlock_allow(rs, path, SB_LANDLOCK_FULL);
	}
	for (size_t i = 0; r == 0 && i < plan->n_mounts; i++) {
		if (plan->mounts[i].mode != SB_MOUNT_RW)
			continue;
		path = plan->mounts[i].guest;
		r = sb_landlock_allow(rs, path, SB_LANDLOCK_FULL);
	}
	if (r < 0)
		return sb_err_set(err, r, "Landlock rule for %s: %s", path, strerror(-r));
	return 0;
}

static int make_landlock(const struct sb_plan *plan, struct sb_confine *c, struct sb_err *err)
{
	sb_autofd int rs = -1;
	int r = sb_landlock_new(&rs);

	if (r < 0)
		return sb_err_set(err, r,
				  "the kernel offers no usable Landlock (version 2 or later): %s",
				  strerror(-r));
	r = landlock_plan(plan, rs, err);
	if (r < 0)
		return r;
	c->landlock = sb_fd_take(&rs);
	return 0;
}

/* Supplementary groups are dropped once, here; a rootless user namespace may forbid it. */
static int drop_groups(struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r;

	if (getgroups(0, NULL) == 0 || setgroups(0, NULL) == 0)
		return 0;
	r = -errno;
	/* "deny" is the kernel's condition for a group map without privilege: the groups stay,
	 * unmapped, with the rights that the caller has anyway */
	if (r == -EPERM && sb_fd_read_file(AT_FDCWD, "/proc/thread-self/setgroups", 64, &text,
					   &len) == 0 &&
	    len >= 4 && memcmp(text, "deny", 4) == 0)
		return 0;
	return sb_err_set(err, r, "dropping supplementary groups: %s", strerror(-r));
}

static bool keeps(bool builder, unsigned long cap)
{
	return builder && cap < 64 && (SB_BUILDER_CAPS >> cap & 1U);
}

/* A builder stays root over exec, with what is left of the bounding set. */
static int drop_bounding(bool builder, struct sb_err *err)
{
	const unsigned long bits = (builder ? 0 : (unsigned long)SECBIT_NOROOT) |
				   (builder ? 0 : (unsigned long)SECBIT_KEEP_CAPS_LOCKED) |
				   SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return sb_err_set(err, -errno, "secure bits: %s", strerror(errno));
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!keeps(builder, cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return sb_err_set(err, -errno, "bounding set: %s", strerror(errno));
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return sb_err_set(err, -errno, "ambient set: %s", strerror(errno));
	return 0;
}

/* Limits that every command shares, so that a child inherits them. */
static int set_limits(const struct sb_plan *plan, bool vm, struct sb_confine *c, struct sb_err *err)
{
	static const int open_up[] = { RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU,
				       RLIMIT_RSS };
	struct rlimit core;
	/* no core file either way; one byte is the kernel's word for no crash handler too, and where
	 * the kernel is the host's, the handler is one of the host */
	struct rlimit rl = { vm ? 0 : 1, vm ? 0 : 1 };

	if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max < rl.rlim_max)
		rl = (struct rlimit){ core.rlim_max, core.rlim_max };
	if (setrlimit(RLIMIT_CORE, &rl) < 0)
		return sb_err_set(err, -errno, "core limit: %s", strerror(errno));
	for (size_t i = 0; i < SB_ARRAY_LEN(open_up); i++) {
		rl = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
		if (setrlimit((__rlimit_resource_t)open_up[i], &rl) == 0)
			continue;
		if (getrlimit((__rlimit_resource_t)open_up[i], &rl) < 0)
			return sb_err_set(err, -errno, "limits: %s", strerror(errno));
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit((__rlimit_resource_t)open_up[i], &rl) < 0)
			return sb_err_set(err, -errno, "limits: %s", strerror(errno));
	}
	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return sb_err_set(err, -errno, "file limit: %s", strerror(errno));
	c->nofile = plan->nofile ? plan->nofile : rl.rlim_max;
	if (c->nofile > rl.rlim_max) {
		struct rlimit up = { rl.rlim_cur, c->nofile };

		/* without the privilege to raise it, what the caller has is the most there is */
		if (setrlimit(RLIMIT_NOFILE, &up) < 0)
			c->nofile = rl.rlim_max;
	}
	return 0;
}

static bool guard_from_oom(void)
{
	sb_autofd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && sb_fd_write_all(fd, "-1000", 5) == 0;
}

/* What the plan asks for beyond the file and process limits; the stricter of it and what is. */
static int take_limits(const struct sb_plan *plan, struct sb_confine *c, struct sb_err *err)
{
	const struct {
		int resource;
		uint64_t value;
	} asked[] = {
		{ RLIMIT_FSIZE, plan->rlimits.fsize },	 { RLIMIT_AS, plan->rlimits.as },
		{ RLIMIT_DATA, plan->rlimits.data },	 { RLIMIT_STACK, plan->rlimits.stack },
		{ RLIMIT_CPU, plan->rlimits.cpu },	 { RLIMIT_MEMLOCK, plan->rlimits.memlock },
	};

	_Static_assert(SB_ARRAY_LEN(asked) == SB_CONFINE_LIMITS, "one row each");
	for (size_t i = 0; i < SB_ARRAY_LEN(asked); i++) {
		struct sb_confine_limit *l = &c->limits[c->n_limits];
		struct rlimit now;

		if (asked[i].value == SB_PLAN_NO_LIMIT)
			continue;
		if (getrlimit((__rlimit_resource_t)asked[i].resource, &now) < 0)
			return sb_err_set(err, -errno, "limits: %s", strerror(errno));
		l->resource = asked[i].resource;
		l->soft = SB_MIN(asked[i].value, (uint64_t)now.rlim_max);
		/* a second between the signal that says so and the kill */
		l->hard = SB_MIN(l->soft + (l->resource == RLIMIT_CPU), (uint64_t)now.rlim_max);
		c->n_limits++;
	}
	return 0;
}

int sb_confine_prepare(const struct sb_plan *plan, bool vm, bool has_cgroup,
		       struct sb_confine *ret, struct sb_err *err)
{
	struct sb_confine c = {
		.uid = plan->uid, .gid = plan->gid, .root = plan->test_root, .builder = plan->builder,
		.landlock = -1
	};
	int r;

	if (c.root && !vm)
		return sb_err_set(err, -EPERM, "guest root exists in a virtual machine only");
	if (!c.root && !c.builder && c.uid == 0)
		return sb_err_set(err, -EPERM, "the workload must not be root");
	/* A child is the workload's user for a moment while it holds a copy of this memory. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return sb_err_set(err, -errno, "dump protection: %s", strerror(errno));
	r = drop_groups(err);
	if (r == 0)
		r = set_limits(plan, vm, &c, err);
	if (r == 0)
		r = take_limits(plan, &c, err);
	if (r < 0)
		return r;
	if (vm)
		c.reset_oom = guard_from_oom();
	if (!has_cgroup)
		c.nproc = plan->pids_max;
	if (!c.root) {
		r = drop_bounding(c.builder, err);
		if (r == 0)
			r = make_landlock(plan, &c, err);
		if (r < 0)
			return r;
		r = sb_filter_make(plan, 0, &c.filter, err);
		if (r == 0 && plan->log_blocked)
			r = sb_filter_make(plan, SB_FILTER_ASK_REFUSED |
						 (plan->commands.scope == SB_CMD_SCOPE_TREE
							  ? SB_FILTER_ASK_EXEC : 0),
					   &c.asking, err);
		if (r < 0) {
			sb_confine_done(&c);
			return r;
		}
		if (!vm)
			c.setid = sb_setid_filter();
	}
	(void)umask(022);
	*ret = c;
	return 0;
}

void sb_confine_done(struct sb_confine *c)
{
	sb_fd_close(&c->landlock);
	free(c->filter.filter);
	free(c->asking.filter);
	c->filter = (struct sock_fprog){ 0 };
	c->asking = c->filter;
}

int sb_confine_limits(const struct sb_confine *c)
{
	struct rlimit64 rl = { c->nofile, c->nofile };

	if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &rl, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < c->n_limits; i++) {
		const struct rlimit64 l = { c->limits[i].soft, c->limits[i].hard };

		if (syscall(SYS_prlimit64, 0, c->limits[i].resource, &l, NULL) < 0)
			return -errno;
	}
	if (c->nproc) {
		struct rlimit64 was;

		if (syscall(SYS_prlimit64, 0, RLIMIT_NPROC, NULL, &was) < 0)
			return -errno;
		rl.rlim_cur = SB_MIN(c->nproc, (uint64_t)was.rlim_max);
		rl.rlim_max = rl.rlim_cur;
		if (syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &rl, NULL) < 0)
			return -errno;
	}
	if (c->reset_oom) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj",
				      O_WRONLY | O_CLOEXEC);

		if (fd < 0 || syscall(SYS_write, fd, "0", 1) != 1)
			return -errno;
		(void)syscall(SYS_close, fd);
	}
	return 0;
}

int sb_confine_identity(const struct sb_confine *c)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 }, { 0 } };

	if (c->root) {
		if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
			return -errno;
		return 0;
	}
	/* raw calls: the C library's would look for threads that a forked child has not */
	if (syscall(SYS_setresgid, c->gid, c->gid, c->gid) < 0 ||
	    syscall(SYS_setresuid, c->uid, c->uid, c->uid) < 0)
		return -errno;
	if (c->builder)
		for (unsigned int i = 0; i < 2; i++)
			caps[i].effective = caps[i].permitted =
				(uint32_t)(SB_BUILDER_CAPS >> 32 * i & UINT32_MAX);
	/* when the supervisor has the workload's uid (rootless), no change took them away */
	if (syscall(SYS_capset, &hdr, caps) < 0)
		return -errno;
	return 0;
}

int sb_confine_walls(const struct sb_confine *c, int judge, uint32_t cmd)
{
	int r;

	if (c->root)
		return 0;
	if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = sb_landlock_enter(c->landlock);
	if (r < 0)
		return r;
	/* the main filter comes last: it closes seccomp(2) */
	if (c->setid.len > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &c->setid) < 0)
		return -errno;
	if (c->asking.len > 0)
		return sb_judge_enter(judge, cmd, &c->asking);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &c->filter) < 0)
		return -errno;
	return 0;
}
