/* Attributes, their mapping to the guest, lookups and the requests that only read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "fs/fs.h"

static int64_t ns_of(const struct statx_timestamp *t)
{
	return (int64_t)((uint64_t)t->tv_sec * 1000000000ULL + t->tv_nsec);
}

static struct timespec ts_of(const struct statx_timestamp *t)
{
	return (struct timespec){ .tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec };
}

uint64_t fs_attr_ino(const struct fs *fs, dev_t dev, uint64_t ino)
{
	/* the guest sees one device: numbers of another one are moved out of the way */
	return dev == fs->root_dev ? ino : ino ^ ((uint64_t)dev + 1) * 0x9E3779B97F4A7C15ULL;
}

static uid_t map_uid(const struct fs_conf *c, uid_t uid)
{
	if (c->map_set && uid == c->map.host_uid)
		return c->map.guest_uid;
	return uid == 0 && c->root_is_root ? 0 : 65534;
}

static gid_t map_gid(const struct fs_conf *c, gid_t gid)
{
	if (c->map_set && gid == c->map.host_gid)
		return c->map.guest_gid;
	return gid == 0 && c->root_is_root ? 0 : 65534;
}

void fs_attr_known(struct fs_node *n, const struct statx *stx)
{
	n->known = (struct fs_known){ .mtime_ns = ns_of(&stx->stx_mtime),
				      .ctime_ns = ns_of(&stx->stx_ctime),
				      .size = (int64_t)stx->stx_size };
}

void fs_attr_refresh_known(struct fs *fs, struct fs_node *n)
{
	struct statx stx;

	if (fs->notify.fd >= 0 && n->fd >= 0 && fs_statx(n->fd, &stx) == 0)
		fs_attr_known(n, &stx);
}

void fs_attr_fill(struct fs *fs, struct fs_node *n, const struct statx *stx, struct stat *ret)
{
	*ret = (struct stat){
		.st_ino = fs_attr_ino(fs, n->id.dev, stx->stx_ino),
		/* a privilege bit of the host means nothing in here */
		.st_mode = stx->stx_mode & ~(mode_t)(S_ISDIR(stx->stx_mode) ? S_ISUID :
									     S_ISUID | S_ISGID),
		.st_nlink = stx->stx_nlink,
		.st_uid = map_uid(fs->conf, stx->stx_uid),
		.st_gid = map_gid(fs->conf, stx->stx_gid),
		.st_size = (off_t)stx->stx_size,
		.st_blksize = (blksize_t)stx->stx_blksize,
		.st_blocks = (blkcnt_t)stx->stx_blocks,
		.st_atim = ts_of(&stx->stx_atime),
		.st_mtim = ts_of(&stx->stx_mtime),
		.st_ctim = ts_of(&stx->stx_ctime),
	};
	fs_attr_known(n, stx);
}

static void fill_virtual(struct fs *fs, const struct fs_node *n, struct stat *ret)
{
	*ret = (struct stat){
		.st_ino = fs_attr_ino(fs, 1, n->id.ino),
		.st_mode = S_IFDIR | 0555,
		.st_nlink = 2,
		.st_blksize = 4096,
	};
	if (!fs->conf->root_is_root) {
		ret->st_uid = map_uid(fs->conf, 0);
		ret->st_gid = map_gid(fs->conf, 0);
	}
}

double fs_entry_timeout(const struct fs *fs, const struct fs_node *parent)
{
	if (fs->conf->cache == FS_CACHE_LONG || parent->virtual)
		return FS_TIMEOUT_LONG;
	return parent->wd >= 0 && !fs->notify.broken ? FS_TIMEOUT_WATCHED : FS_TIMEOUT_SHORT;
}

double fs_attr_timeout(const struct fs *fs, const struct fs_node *n, uint32_t nlink)
{
	const struct fs_node *watcher = S_ISDIR(n->id.type) ? n : n->parent;

	if (fs->conf->cache == FS_CACHE_LONG || n->virtual)
		return FS_TIMEOUT_LONG;
	/* a change through another name of the file is not told */
	if (!watcher || watcher->wd < 0 || fs->notify.broken ||
	    (!S_ISDIR(n->id.type) && nlink > 1))
		return FS_TIMEOUT_SHORT;
	return FS_TIMEOUT_WATCHED;
}

static int lookup_virtual(struct fs *fs, struct fs_node *parent, const char *name,
			  struct fuse_entry_param *e)
{
	for (size_t i = 0; i < parent->n_vents; i++) {
		struct fs_node *n = parent->vents[i].node;
		struct statx stx;
		int r;

		if (strcmp(parent->vents[i].name, name) != 0)
			continue;
		if (n->virtual) {
			fill_virtual(fs, n, &e->attr);
		} else {
			r = fs_statx(n->fd, &stx);
			if (r < 0)
				return r;
			fs_attr_fill(fs, n, &stx, &e->attr);
		}
		e->ino = fs_node_id(fs, n);
		e->generation = n->gen;
		e->attr_timeout = e->entry_timeout = FS_TIMEOUT_LONG;
		return 0;
	}
	return -ENOENT;
}

int fs_lookup(struct fs *fs, struct fs_node *parent, const char *name, struct fuse_entry_param *e)
{
	const struct fs_rule *at = parent == fs->root ? &fs->conf->rules : parent->rule;
	const struct fs_rule *rule;
	sb_autofd int fd = -1;
	struct fs_node *n;
	struct statx stx;
	int dirfd;
	int r;

	*e = (struct fuse_entry_param){ 0 };
	r = fs_name_check(name);
	if (r < 0)
		return r;
	if (parent->virtual)
		return lookup_virtual(fs, parent, name, e);
	if (!S_ISDIR(parent->id.type))
		return -ENOTDIR;
	rule = fs->conf->n_rules > 0 ? fs_rule_sub(at, name) : NULL;
	if (rule && rule->hide)
		return -ENOENT;
	dirfd = fs_node_fd(fs, parent);
	if (dirfd < 0)
		return dirfd;
	r = fs_open_path(dirfd, name, &fd);
	if (r == 0)
		r = fs_statx(fd, &stx);
	if (r == 0 && fs_pin_hides(fs, &stx))
		r = -EACCES;
	if (r == 0)
		r = fs_node_enter(fs, parent, name, &fd, &stx, &n);
	if (r < 0)
		return r;
	fs_attr_fill(fs, n, &stx, &e->attr);
	e->ino = fs_node_id(fs, n);
	e->generation = n->gen;
	e->entry_timeout = fs_entry_timeout(fs, parent);
	e->attr_timeout = fs_attr_timeout(fs, n, stx.stx_nlink);
	return 0;
}

int fs_writable(const struct fs *fs, const struct fs_node *n)
{
	return fs->conf->ro || n->prot || n->virtual ? -EROFS : 0;
}

void fs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct fuse_entry_param e;
	int r;

	if (!p) {
		(void)fuse_reply_err(req, ESTALE);
		return;
	}
	if (!p->virtual && S_ISDIR(p->id.type))
		fs_notify_watch(fs, p);
	r = fs_lookup(fs, p, name, &e);
	if (r == -ENOENT) {
		e.ino = 0;
		e.entry_timeout = fs_entry_timeout(fs, p);
	} else if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	(void)fuse_reply_entry(req, &e);
}

void fs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	fs_node_forget(fs_of(req), ino, n);
	fuse_reply_none(req);
}

void fs_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *f)
{
	for (size_t i = 0; i < n; i++)
		fs_node_forget(fs_of(req), f[i].ino, f[i].nlookup);
	fuse_reply_none(req);
}

void fs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	struct stat st;
	struct statx stx = { 0 };
	int r = n ? 0 : -ESTALE;

	(void)fi;
	if (n && n->virtual) {
		fill_virtual(fs, n, &st);
		(void)fuse_reply_attr(req, &st, FS_TIMEOUT_LONG);
		return;
	}
	if (r == 0)
		r = fs_node_fd(fs, n);
	if (r >= 0)
		r = fs_statx(r, &stx);
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	if (S_ISDIR(n->id.type))
		fs_notify_watch(fs, n);
	fs_attr_fill(fs, n, &stx, &st);
	(void)fuse_reply_attr(req, &st, fs_attr_timeout(fs, n, stx.stx_nlink));
}

void fs_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	char buf[PATH_MAX + 1];
	ssize_t len;
	int r = -ESTALE;

	if (n)
		r = S_ISLNK(n->id.type) ? fs_node_fd(fs, n) : -EINVAL;
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	len = readlinkat(r, "", buf, PATH_MAX);
	if (len < 0) {
		(void)fuse_reply_err(req, errno);
		return;
	}
	buf[len] = '\0';
	(void)fuse_reply_readlink(req, buf);
}

void fs_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	struct statvfs v = { .f_bsize = 4096, .f_frsize = 4096, .f_namemax = FS_NAME_MAX };
	int r = n ? 0 : -ESTALE;

	if (n && !n->virtual) {
		r = fs_node_fd(fs, n);
		if (r >= 0)
			r = fstatvfs(r, &v) < 0 ? -errno : 0;
	}
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	fs_quota_statfs(fs, &v);
	(void)fuse_reply_statfs(req, &v);
}

static int set_owner(const struct fs_conf *c, int fd, const struct stat *a, int valid,
		     const struct statx *now)
{
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	/* every file is the user's whatever the guest claims; only "to me" and "as it is" pass */
	if ((valid & FUSE_SET_ATTR_UID) && a->st_uid != map_uid(c, now->stx_uid)) {
		if (!c->map_set || a->st_uid != c->map.guest_uid)
			return -EPERM;
		uid = c->map.host_uid;
	}
	if ((valid & FUSE_SET_ATTR_GID) && a->st_gid != map_gid(c, now->stx_gid)) {
		if (!c->map_set || a->st_gid != c->map.guest_gid)
			return -EPERM;
		gid = c->map.host_gid;
	}
	if (uid == (uid_t)-1 && gid == (gid_t)-1)
		return 0;
	return fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int set_mode(struct fs *fs, struct fs_node *n, mode_t mode, const struct statx *now)
{
	char path[16];
	int r;

	if (S_ISLNK(n->id.type))
		return -EOPNOTSUPP;
	mode &= 01777;
	if (S_ISDIR(n->id.type))
		mode |= now->stx_mode & S_ISGID; /* inheritance of the group stays as it was */
	if (S_ISREG(n->id.type) && (mode & 0600) != 0600 && fs_writable(fs, n) == 0) {
		/* a program that has it open goes on using it, so must we */
		sb_autofd int copy = -1;

		r = fs_node_data(fs, n, false);
		if (r >= 0 && !n->data_kept)
			copy = fcntl(r, F_DUPFD_CLOEXEC, 3);
		if (copy >= 0)
			fs_node_give_data(fs, n, &copy, n->data_rw, true);
	}
	r = fs_node_fd(fs, n);
	if (r < 0)
		return r;
	fs_fd_name(r, path);
	return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? -errno : 0;
}

static int set_size(struct fs *fs, struct fs_node *n, off_t size)
{
	struct fs_charge charge;
	int fd = fs_node_data(fs, n, true);
	int r;

	if (fd < 0)
		return fd;
	if (size < 0)
		return -EINVAL;
	r = fs_quota_begin(fs, fd, 0, 0, &charge);
	if (r < 0)
		return r;
	r = ftruncate(fd, size) < 0 ? -errno : 0;
	fs_quota_end(fs, fd, &charge);
	return r;
}

static int set_times(int fd, const struct stat *a, int valid)
{
	struct timespec t[2] = { { 0, UTIME_OMIT }, { 0, UTIME_OMIT } };

	if (valid & FUSE_SET_ATTR_ATIME_NOW)
		t[0].tv_nsec = UTIME_NOW;
	else if (valid & FUSE_SET_ATTR_ATIME)
		t[0] = a->st_atim;
	if (valid & FUSE_SET_ATTR_MTIME_NOW)
		t[1].tv_nsec = UTIME_NOW;
	else if (valid & FUSE_SET_ATTR_MTIME)
		t[1] = a->st_mtim;
	for (int i = 0; i < 2; i++) /* the special values are ours to give, not the guest's */
		if ((t[i].tv_nsec < 0 || t[i].tv_nsec > 999999999L) &&
		    t[i].tv_nsec != UTIME_NOW && t[i].tv_nsec != UTIME_OMIT)
			return -EINVAL;
	return utimensat(fd, "", t, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* git init tries whether modes hold on the configuration it has just written: they are no content. */
static bool only_mode(const struct fs *fs, const struct fs_node *n, const struct stat *a, int valid)
{
	const int other = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_SIZE |
			  FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME;

	return !fs->conf->ro && n->rule && n->rule->git && S_ISREG(n->id.type) && !(valid & other) &&
	       (a->st_mode & 0600) == 0600;
}

static int setattr(struct fs *fs, struct fs_node *n, const struct stat *a, int valid)
{
	struct statx now;
	int r = only_mode(fs, n, a, valid) ? 0 : fs_writable(fs, n);

	if (r < 0)
		return r;
	r = fs_node_fd(fs, n);
	if (r >= 0)
		r = fs_statx(r, &now);
	if (r == 0 && (valid & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		r = set_owner(fs->conf, n->fd, a, valid, &now);
	if (r == 0 && (valid & FUSE_SET_ATTR_MODE))
		r = set_mode(fs, n, a->st_mode, &now);
	if (r == 0 && (valid & FUSE_SET_ATTR_SIZE))
		r = set_size(fs, n, a->st_size);
	if (r == 0 && (valid & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME))) {
		r = fs_node_fd(fs, n);
		if (r >= 0)
			r = set_times(r, a, valid);
	}
	return r;
}

void fs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *a, int valid,
		   struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	int r = n ? setattr(fs, n, a, valid) : -ESTALE;

	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else
		fs_op_getattr(req, ino, fi);
}
