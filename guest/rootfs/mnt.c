#include "rootfs/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

int sb_mnt_clone(int dirfd, const char *path, uint64_t attrs, int *ret)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };
	sb_autofd int fd = -1;
	unsigned int flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;

	if (path[0] == '\0')
		flags |= AT_EMPTY_PATH;
	fd = open_tree(dirfd, path, flags | AT_SYMLINK_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	*ret = sb_fd_take(&fd);
	return 0;
}

int sb_mnt_new(const char *type, const struct sb_mnt_opt *opts, size_t n, uint64_t attrs, int *ret)
{
	sb_autofd int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		unsigned int cmd = opts[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (fsconfig(fs, cmd, opts[i].key, opts[i].value, 0) < 0)
			return -errno;
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned int)attrs);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

int sb_mnt_attach(int tree, int at)
{
	if (move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int sb_mnt_attach_path(int tree, int dirfd, const char *path)
{
	return move_mount(tree, "", dirfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int sb_mnt_restrict(int mnt, uint64_t attrs, bool recursive)
{
	struct mount_attr attr = { .attr_set = attrs };
	unsigned int flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U);

	return mount_setattr(mnt, "", flags, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int sb_mnt_open(int dirfd, const char *path, int flags, int *ret)
{
	struct open_how how = {
		.flags = (unsigned int)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (dirfd != AT_FDCWD)
		how.resolve |= (unsigned int)RESOLVE_BENEATH;
	fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	*ret = (int)fd;
	return 0;
}
