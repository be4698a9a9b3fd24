/*
 * What the session adds is counted in allocated blocks and in names; what it frees is given back,
 * but room it gains by deleting what was there before is no credit. Blocks are counted wherever a
 * guest can make some: contents, directories that grow by names, new directories and links,
 * extended attributes. A name takes what it takes: with the quota used up no new one is made.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "fs/fs.h"

int fs_quota_begin(struct fs *fs, int fd, uint64_t off, uint64_t len, struct fs_charge *ret)
{
	uint64_t allocated;
	uint64_t end;
	uint64_t grow = 0;
	struct stat st;

	ret->on = fs->conf->quota_bytes > 0;
	if (!ret->on)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->blocks = st.st_blocks;
	if (len == 0)
		return 0;
	allocated = (uint64_t)st.st_blocks * 512;
	if (__builtin_add_overflow(off, len, &end))
		return -EFBIG;
	if (allocated < (uint64_t)st.st_size)
		grow = len; /* has holes: believe the worst */
	else if (end > allocated)
		grow = SB_MIN(end - allocated, len);
	if (grow > 0 && (fs->quota.bytes_used > fs->conf->quota_bytes ||
			 grow > fs->conf->quota_bytes - fs->quota.bytes_used))
		return -EDQUOT;
	return 0;
}

void fs_quota_end(struct fs *fs, int fd, const struct fs_charge *c)
{
	struct stat st;
	int64_t delta;

	if (!c->on || fstat(fd, &st) < 0)
		return;
	delta = ((int64_t)st.st_blocks - c->blocks) * 512;
	if (delta >= 0)
		fs->quota.bytes_used += (uint64_t)delta;
	else
		fs->quota.bytes_used -= SB_MIN(fs->quota.bytes_used, (uint64_t)-delta);
}

int fs_quota_room(const struct fs *fs)
{
	return fs->conf->quota_bytes > 0 && fs->quota.bytes_used >= fs->conf->quota_bytes ? -EDQUOT :
											    0;
}

int fs_quota_inode(const struct fs *fs)
{
	if (fs->conf->quota_inodes > 0 && fs->quota.inodes_used >= fs->conf->quota_inodes)
		return -EDQUOT;
	return 0;
}

void fs_quota_inode_added(struct fs *fs, uint64_t blocks512)
{
	fs->quota.inodes_used++;
	fs->quota.bytes_used += blocks512 * 512;
}

void fs_quota_gone(struct fs *fs, uint64_t blocks512)
{
	uint64_t bytes = blocks512 * 512;

	if (fs->quota.inodes_used > 0)
		fs->quota.inodes_used--;
	fs->quota.bytes_used -= SB_MIN(fs->quota.bytes_used, bytes);
}

void fs_quota_statfs(const struct fs *fs, struct statvfs *v)
{
	uint64_t unit = v->f_frsize > 0 ? v->f_frsize : 4096;

	if (fs->conf->quota_bytes > 0) {
		uint64_t all = fs->conf->quota_bytes / unit;
		uint64_t used = SB_MIN(fs->quota.bytes_used / unit, all);

		v->f_bavail = SB_MIN(v->f_bavail, all - used);
		v->f_bfree = SB_MIN(v->f_bfree, all - used);
		v->f_blocks = v->f_bfree + used;
	}
	if (fs->conf->quota_inodes > 0) {
		uint64_t all = fs->conf->quota_inodes;
		uint64_t used = SB_MIN(fs->quota.inodes_used, all);

		v->f_favail = SB_MIN(v->f_favail, all - used);
		v->f_ffree = SB_MIN(v->f_ffree, all - used);
		v->f_files = v->f_ffree + used;
	}
}
