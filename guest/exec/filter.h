#ifndef SB_GUEST_EXEC_FILTER_H
#define SB_GUEST_EXEC_FILTER_H
/*
 * The workload's seccomp filter: one of three made at build time (gen_seccomp.c, profile_calls.h),
 * with what the plan adds in front. Pure: nothing here asks the kernel.
 *
 * Two forms of the same decisions. The plain one answers a refused call with its errno. The asking
 * one answers with SECCOMP_RET_USER_NOTIF, so that whoever holds the listener can count the call
 * and give it the errno of the plain one (sb_filter_eval); calls that are absent (ENOSYS) and
 * foreign ones (killed) are not asked about. When the listener is gone such a call fails with
 * ENOSYS: it is refused either way.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "core/plan.h"

/* The profile's filter alone; static. @profile must be one of the three. */
struct sock_fprog sb_filter_profile(enum sb_profile profile);

/* The judge's own filter; static. What it does not need kills it, which ends the session. */
struct sock_fprog sb_filter_judge(void);

#define SB_FILTER_ASK_REFUSED 1U /* refused calls are told to a listener */
#define SB_FILTER_ASK_EXEC 2U    /* execve, and execveat where it is allowed, too */

/*
 * sb_filter_make - the filter of a plan: deny_syscalls, then the profile
 * @flags: SB_FILTER_ASK_* bits; 0 = the plain form
 * @ret:   ret->filter is malloc'd, caller frees
 * Return: 0; -ENOENT (a name in deny_syscalls that this machine does not know); -ENOTSUP
 * (SB_FILTER_ASK_REFUSED and a call without which the listener could not be handed over); -ENOMEM.
 */
SB_MUST_CHECK int sb_filter_make(const struct sb_plan *plan, unsigned int flags,
				 struct sock_fprog *ret, struct sb_err *err);

/* What @f answers to @d: a SECCOMP_RET_* value with its data. An instruction that no filter of
 * this file has, or a jump out of it, is answered with SECCOMP_RET_KILL_PROCESS. */
uint32_t sb_filter_eval(const struct sock_fprog *f, const struct seccomp_data *d);

#endif
