#ifndef SB_OS_LANDLOCK_H
#define SB_OS_LANDLOCK_H
/*
 * Landlock rulesets: made once, applied by each child to itself.
 *
 * Every file right that the running kernel can control is handled (version 2 to 7 of the
 * interface), so what no rule names is refused. Constants newer than Debian 12's headers are
 * defined in the .c file. Rights are given as one of the three classes below; what the kernel is
 * too old to know is left out of a class.
 */
#include "base/mem.h"

enum sb_landlock_class {
	SB_LANDLOCK_NONE = 0,
	SB_LANDLOCK_READ = 1,   /* read files and directories, execute */
	SB_LANDLOCK_DEVICE = 2, /* open for reading and writing, ioctl; nothing made or removed */
	SB_LANDLOCK_FULL = 3,   /* everything but device nodes; renames between such places */
};

/*
 * sb_landlock_abi - which version of the interface the kernel has
 * Return: > 0; -EOPNOTSUPP (compiled in, switched off at boot); -ENOSYS; -errno.
 */
SB_MUST_CHECK int sb_landlock_abi(void);

/*
 * sb_landlock_new - start a ruleset that allows nothing
 * @ret: descriptor, CLOEXEC; caller closes
 * Return: 0; -EOPNOTSUPP, -ENOSYS, or -EPROTO when the kernel's version is below 2 (renames
 * between directories could not be allowed); -errno.
 */
SB_MUST_CHECK int sb_landlock_new(int *ret);

/*
 * sb_landlock_allow - add a class of rights for @path and what is beneath it
 * @path: absolute; links are followed
 * Return: 0; -ENOENT when there is no such path; -errno.
 */
SB_MUST_CHECK int sb_landlock_allow(int ruleset, const char *path, enum sb_landlock_class c);

/* Confine the caller. Needs no_new_privs. Async-signal-safe. Return: 0; -errno. */
SB_MUST_CHECK int sb_landlock_enter(int ruleset);

#define SB_LANDLOCK_ABI_SCOPE 6
/*
 * sb_landlock_scope_signals - from here on the caller and all that it starts send signals to each
 * other only; who was there before, and is not of them, gets none. Files are as they were.
 * Needs no_new_privs. Return: 0; -EOPNOTSUPP, -ENOSYS: the kernel cannot; -errno.
 */
SB_MUST_CHECK int sb_landlock_scope_signals(void);

#endif
