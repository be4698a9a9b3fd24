#ifndef SB_GUEST_INIT_INIT_H
#define SB_GUEST_INIT_INIT_H
/* PID 1 of a guest: from the first instruction to the end of the session. */
#include "core/plan.h"

/*
 * sb_init_namespace - PID 1 of a pid namespace on the host's kernel
 * @trees: the mount trees were handed over (lib/conn/inherit.h)
 * Return: exit status of the process.
 */
SB_MUST_CHECK int sb_init_namespace(bool trees);

/* sb_init_vm - PID 1 of a micro-VM; powers the machine off */
SB_NORETURN void sb_init_vm(void);

/* Parts. */

/* The loopback interface up. Return: 0; -errno. */
SB_MUST_CHECK int sb_init_lo_up(void);

/*
 * sb_init_sysctl - harden the kernel below @proc (an open /proc), each setting read back
 * @profile: what may be traced depends on it
 * @ret: lines for READY, "sysctl.NAME=value" or "=absent" where the kernel lacks it; borrowed
 * Return: 0; -errno when a setting exists and cannot be applied.
 */
SB_MUST_CHECK int sb_init_sysctl(int proc, enum sb_profile profile, const char **ret, struct sb_err *err);
/* sb_init_no_more_modules - close module loading; the last step of a boot */
SB_MUST_CHECK int sb_init_no_more_modules(int proc, struct sb_err *err);

/*
 * sb_init_modules - load the modules named in @order (one file name a line) from @dir
 * @skip: file name of one to leave out, or NULL
 * Return: 0; -errno naming the module. A module that finds no hardware is fine.
 */
SB_MUST_CHECK int sb_init_modules(const char *dir, const char *order, const char *skip,
				  struct sb_err *err);
/* One module by its file. Return: 0, also when it was there or the file is not; -errno. */
SB_MUST_CHECK int sb_init_module(const char *dir, const char *name, struct sb_err *err);

#endif
