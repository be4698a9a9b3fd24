#ifndef SB_GUEST_EXEC_CONFINE_H
#define SB_GUEST_EXEC_CONFINE_H
/*
 * What stands between a command and the rest of the guest: identity, capabilities, Landlock,
 * seccomp, limits. Everything that can be made once per session is made by sb_confine_prepare;
 * the child only applies it, with a handful of system calls.
 */
#include <linux/filter.h>
#include <sys/types.h>

#include "core/plan.h"

#define SB_CONFINE_LIMITS 6

struct sb_confine_limit {
	int resource; /* RLIMIT_* */
	uint64_t soft;
	uint64_t hard;
};

struct sb_confine {
	uid_t uid;
	gid_t gid;
	bool root;               /* tests only: guest root, nothing dropped, nothing filtered */
	bool builder;            /* root with SB_BUILDER_CAPS, behind the same walls */
	bool reset_oom;          /* the supervisor is protected from the OOM killer: children not */
	int landlock;            /* ruleset, owned; -1 with root */
	struct sock_fprog filter; /* of the plan, plain form; owned; len 0 with root */
	/* log_blocked: installed instead, by way of the judge; owned; len 0 = not */
	struct sock_fprog asking;
	struct sock_fprog setid;  /* static; len 0 where no file of the host is in reach */
	uint64_t nofile;         /* RLIMIT_NOFILE, already cut to what can be had */
	uint64_t nproc;          /* RLIMIT_NPROC; 0 = leave: a cgroup counts */
	struct sb_confine_limit limits[SB_CONFINE_LIMITS]; /* what the plan asks for */
	size_t n_limits;
};

/*
 * sb_confine_prepare - lower the supervisor itself as far as children inherit it, and make the
 * parts that each child applies
 * @vm: the kernel is the guest's own: the supervisor is kept from the OOM killer
 * @has_cgroup: a cgroup enforces the number of processes
 * @ret: release with sb_confine_done
 *
 * Supplementary groups, bounding set, no-root bits, dump protection and resource limits of the
 * calling process change for good. Return: 0; -EPERM (test root outside a VM); -errno with text.
 */
SB_MUST_CHECK int sb_confine_prepare(const struct sb_plan *plan, bool vm, bool has_cgroup,
				     struct sb_confine *ret, struct sb_err *err);
void sb_confine_done(struct sb_confine *c);

/*
 * Child side, in this order; async-signal-safe, raw system calls only. Return: 0; -errno.
 * sb_confine_limits needs the privileges that sb_confine_identity gives up. After sb_confine_walls
 * only exec and exit are left to do. @judge, @cmd: as of sb_judge_enter; for c->asking alone.
 */
SB_MUST_CHECK int sb_confine_limits(const struct sb_confine *c);
SB_MUST_CHECK int sb_confine_identity(const struct sb_confine *c);
SB_MUST_CHECK int sb_confine_walls(const struct sb_confine *c, int judge, uint32_t cmd);

#endif
