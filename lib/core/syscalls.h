#ifndef SB_CORE_SYSCALLS_H
#define SB_CORE_SYSCALLS_H
/*
 * Names and numbers of the system calls of this machine. The table is made at build time; names
 * of a call that another supported machine has are known here too, without a number.
 */
#include "base/err.h"

#define SB_SYSCALL_ABSENT (-1) /* a call of another machine: there is nothing to refuse */

/* Number of the call called @name. Return: >= 0; SB_SYSCALL_ABSENT; -ENOENT: no such name. */
int sb_syscall_number(const char *name);
/* Name of call @nr, static; NULL when there is none. */
const char *sb_syscall_name(int nr);

/*
 * sb_syscall_may_deny - whether a plan may refuse @name beyond its profile
 * Refused are unknown names, and calls without which no program could run or end: execve, exit,
 * exit_group, rt_sigreturn.
 * Return: 0; -EINVAL with the text in @err (for an unknown name with the nearest known one).
 */
SB_MUST_CHECK int sb_syscall_may_deny(const char *name, struct sb_err *err);

#endif
