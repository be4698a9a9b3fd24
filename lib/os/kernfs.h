#ifndef SB_OS_KERNFS_H
#define SB_OS_KERNFS_H
/*
 * The kernel's own file systems (proc, sysfs, cgroup, ...). They show and steer the host, not files
 * of a user, so no folder that is shared may be one or hold one.
 */
#include <stddef.h>

#include "base/mem.h"

/* sb_kernfs_check - is the object behind @fd (O_PATH will do) in one?
 * Return: 0 = no; -EACCES = yes; -errno. */
SB_MUST_CHECK int sb_kernfs_check(int fd);

/* sb_kernfs_below - the first place at or below the absolute @path where one is mounted
 * @ret: the place, cut to @cap bytes; on 1 only
 * Return: 0 = none; 1 = found; -errno. Source: proc(5), /proc/self/mountinfo. */
SB_MUST_CHECK int sb_kernfs_below(const char *path, char *ret, size_t cap);

#endif
