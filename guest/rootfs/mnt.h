#ifndef SB_GUEST_ROOTFS_MNT_H
#define SB_GUEST_ROOTFS_MNT_H
/*
 * The descriptor-based mount interface (Linux 5.12 and later) in the shape this program needs.
 * A "tree" is a descriptor of a mount that is attached nowhere yet; closing it drops the mount.
 * Descriptors are O_PATH and close-on-exec. @attrs: MOUNT_ATTR_* bits to set, never cleared.
 */
#include <sys/mount.h>

#include "base/mem.h"

#define SB_MNT_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/*
 * sb_mnt_clone - copy the mount tree at @path, with all that is mounted below, and make the copy
 * private (no mount events from its origin)
 * Return: 0; -errno.
 */
SB_MUST_CHECK int sb_mnt_clone(int dirfd, const char *path, uint64_t attrs, int *ret);

/* One parameter of a new file system; @value NULL = a flag. */
struct sb_mnt_opt {
	const char *key;
	const char *value;
};
/* sb_mnt_new - a new file system of type @type. Return: 0; -ENODEV (kernel lacks it); -errno. */
SB_MUST_CHECK int sb_mnt_new(const char *type, const struct sb_mnt_opt *opts, size_t n,
			     uint64_t attrs, int *ret);

/* sb_mnt_attach - put @tree onto the directory or file that @at refers to */
SB_MUST_CHECK int sb_mnt_attach(int tree, int at);
/* sb_mnt_attach_path - the same by path below @dirfd; a last symbolic link is not followed */
SB_MUST_CHECK int sb_mnt_attach_path(int tree, int dirfd, const char *path);
/* sb_mnt_restrict - set @attrs on one mount (@recursive: and on all below it) */
SB_MUST_CHECK int sb_mnt_restrict(int mnt, uint64_t attrs, bool recursive);

/*
 * sb_mnt_open - open @path below @dirfd as O_PATH without following any symbolic link
 * @dirfd: a directory, or AT_FDCWD with an absolute path
 * @flags: O_DIRECTORY or 0
 */
SB_MUST_CHECK int sb_mnt_open(int dirfd, const char *path, int flags, int *ret);

#endif
