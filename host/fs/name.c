/* Requests that make, remove and move names. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fs/fs.h"
#include "fs/gitcfg.h"

static const struct fs_rule *rule_for(const struct fs *fs, const struct fs_node *p,
				      const char *name)
{
	if (fs->conf->n_rules == 0)
		return NULL;
	return fs_rule_sub(p == fs->root ? &fs->conf->rules : p->rule, name);
}

/*
 * May the guest make, replace or remove @name in @p? An inner name of a rule path must stay a
 * directory in its place: a link or a moved directory there would be a way around the rule.
 * @dir: the name is made by mkdir or removed by rmdir.
 * Return: the directory's descriptor; -errno.
 */
static int name_begin(struct fs *fs, struct fs_node *p, const char *name, bool dir)
{
	const struct fs_rule *rule;
	int r;

	if (!p)
		return -ESTALE;
	r = fs_name_check(name);
	if (r < 0)
		return r;
	if (!p->virtual && !S_ISDIR(p->id.type))
		return -ENOTDIR;
	r = fs_writable(fs, p);
	if (r < 0)
		return r;
	rule = rule_for(fs, p, name);
	if (rule && (rule->hide || rule->protect || !dir))
		return -EACCES;
	r = fs_node_fd(fs, p);
	if (r >= 0)
		fs_notify_expect(fs, p, name);
	return r;
}

/* name_begin for a name that is new: the directory may grow by it. */
static int grow_begin(struct fs *fs, struct fs_node *p, const char *name, bool dir,
		      struct fs_charge *charge)
{
	int r = name_begin(fs, p, name, dir);
	int q;

	if (r < 0)
		return r;
	q = fs_quota_room(fs);
	if (q == 0)
		q = fs_quota_begin(fs, r, 0, 0, charge);
	return q < 0 ? q : r;
}

static int make_begin(struct fs *fs, struct fs_node *p, const char *name, bool dir,
		      struct fs_charge *charge)
{
	int r = fs_quota_inode(fs);

	return r < 0 ? r : grow_begin(fs, p, name, dir, charge);
}

static void reply_made(fuse_req_t req, struct fs *fs, struct fs_node *p, const char *name, int r)
{
	struct fuse_entry_param e;

	if (r == 0) {
		r = fs_lookup(fs, p, name, &e);
		fs_quota_inode_added(fs, r == 0 ? (uint64_t)e.attr.st_blocks : 0);
	}
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else
		(void)fuse_reply_entry(req, &e);
}

void fs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct fuse_entry_param e;
	sb_autofd int fd = -1;
	struct fs_charge charge;
	int at = make_begin(fs, p, name, false, &charge);
	int r = SB_MIN(at, 0);

	(void)rdev;
	/* no device, no FIFO, no socket of the guest's making on the host */
	if (r == 0 && !S_ISREG(mode))
		r = -EPERM;
	if (r == 0) {
		fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
			    mode & 0777);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0) {
		fs_quota_end(fs, at, &charge);
		r = fs_lookup(fs, p, name, &e);
		fs_quota_inode_added(fs, r == 0 ? (uint64_t)e.attr.st_blocks : 0);
	}
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	if (S_ISREG(e.attr.st_mode)) {
		struct fs_node *n = fs_node_get(fs, e.ino);
		struct statx stx;
		struct fs_ident id;

		/* The descriptor writes even where the mode (git: 0444) would not let us open it
		 * again. The host may have swapped the name meanwhile: compare. */
		if (n && fs_statx(fd, &stx) == 0) {
			fs_ident_of(&stx, &id);
			if (fs_node_find(fs, &id) == n)
				fs_node_give_data(fs, n, &fd, true, (mode & 0600) != 0600);
		}
	}
	(void)fuse_reply_entry(req, &e);
}

void fs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct fs_charge charge;
	int at = make_begin(fs, p, name, true, &charge);
	int r = SB_MIN(at, 0);

	if (r == 0)
		r = mkdirat(at, name, mode & 01777) < 0 ? -errno : 0;
	if (r == 0)
		fs_quota_end(fs, at, &charge);
	reply_made(req, fs, p, name, r);
}

void fs_op_symlink(fuse_req_t req, const char *to, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct fs_charge charge;
	int at = make_begin(fs, p, name, false, &charge);
	int r = SB_MIN(at, 0);

	if (r == 0)
		r = symlinkat(to, at, name) < 0 ? -errno : 0;
	if (r == 0)
		fs_quota_end(fs, at, &charge);
	reply_made(req, fs, p, name, r);
}

void fs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct fs_node *n = fs_node_get(fs, ino);
	struct fuse_entry_param e;
	struct fs_charge charge;
	char path[16];
	int at = grow_begin(fs, p, name, false, &charge);
	int r = SB_MIN(at, 0);

	if (r == 0)
		r = n ? fs_writable(fs, n) : -ESTALE;
	if (r == 0 && S_ISDIR(n->id.type))
		r = -EPERM;
	if (r == 0)
		r = fs_node_fd(fs, n);
	if (r >= 0 && p->fd < 0)
		r = -ENFILE; /* evicted by the second */
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	fs_fd_name(r, path);
	r = linkat(AT_FDCWD, path, p->fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
	if (r == 0) {
		fs_quota_end(fs, p->fd, &charge);
		n->orphan = false; /* an O_TMPFILE got its name */
		r = fs_lookup(fs, p, name, &e);
	}
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else
		(void)fuse_reply_entry(req, &e);
}

struct victim { /* what a name stands for before it goes */
	bool there;
	bool last; /* its last name */
	uint64_t blocks;
	struct fs_node *node; /* NULL: the guest has no reference */
};

static int victim_begin(struct fs *fs, int dirfd, const char *name, struct victim *v)
{
	struct fs_ident id;
	struct statx stx;
	int r;

	*v = (struct victim){ 0 };
	if (fs_statx_at(dirfd, name, &stx) < 0)
		return 0; /* the call itself will tell */
	fs_ident_of(&stx, &id);
	v->there = true;
	v->last = S_ISDIR(stx.stx_mode) || stx.stx_nlink <= 1;
	v->blocks = stx.stx_blocks;
	v->node = fs_node_find(fs, &id);
	if (!v->node || v->node->nlookup == 0)
		return 0;
	/* A program may have it open and go on. Beyond the budget such a one gets ESTALE. */
	r = fs_node_pin(fs, v->node);
	return r == -ESTALE || r == -ENFILE ? 0 : r;
}

static void victim_done(struct fs *fs, const struct victim *v)
{
	if (!v->there || !v->last)
		return;
	if (v->node && (v->node->fd >= 0 || v->node->data >= 0) && v->node->nlookup > 0) {
		v->node->orphan = true; /* given back when the guest lets go */
		return;
	}
	fs_quota_gone(fs, v->blocks);
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name, bool dir)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct victim v;
	int at = name_begin(fs, p, name, dir);
	int r = SB_MIN(at, 0);

	if (r == 0)
		r = victim_begin(fs, at, name, &v);
	if (r == 0)
		r = fs_node_fd(fs, p);
	if (r >= 0)
		r = unlinkat(r, name, dir ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
	if (r == 0)
		victim_done(fs, &v);
	(void)fuse_reply_err(req, -r);
}

void fs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, false);
}

void fs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, true);
}

static struct fs_node *node_at(struct fs *fs, int dirfd, const char *name)
{
	struct fs_ident id;
	struct statx stx;

	if (fs_statx_at(dirfd, name, &stx) < 0)
		return NULL;
	fs_ident_of(&stx, &id);
	return fs_node_find(fs, &id);
}

static int rename_in(struct fs *fs, struct fs_node *p, const char *name, struct fs_node *q,
		     const char *newname, unsigned int flags)
{
	struct fs_node *from;
	struct fs_node *to = NULL;
	struct victim v = { 0 };
	struct fs_charge charge;
	int r;

	from = node_at(fs, p->fd, name);
	if (from && from->prot)
		return -EACCES;
	if (flags & RENAME_EXCHANGE) {
		to = node_at(fs, q->fd, newname);
		if (to && to->prot)
			return -EACCES;
	} else if (!(flags & RENAME_NOREPLACE)) {
		r = victim_begin(fs, q->fd, newname, &v);
		if (r < 0)
			return r;
		if (v.node && v.node == from)
			v.there = false; /* two names of one file: nothing happens */
	}
	if (fs_node_fd(fs, p) < 0 || fs_node_fd(fs, q) < 0 || p->fd < 0)
		return -ESTALE;
	r = fs_quota_begin(fs, q->fd, 0, 0, &charge);
	/* a name that goes elsewhere or gets longer takes room there and leaves none here */
	if (r == 0 && (p != q || strlen(newname) > strlen(name)))
		r = fs_quota_room(fs);
	if (r < 0)
		return r;
	if (renameat2(p->fd, name, q->fd, newname, flags) < 0)
		return -errno;
	fs_quota_end(fs, q->fd, &charge);
	victim_done(fs, &v);
	if (from && node_at(fs, q->fd, newname) == from)
		fs_node_moved(fs, from, q, newname);
	if (to && node_at(fs, p->fd, name) == to)
		fs_node_moved(fs, to, p, name);
	return 0;
}

/*
 * A file that takes the place of git's configuration, as git itself does it: "config.lock" beside
 * it. From the rename on it is protected itself, by its node, so what was read here is what stays:
 * it has no other name, and nobody serves this folder a second time (the plan's maker sees to that).
 * Return: the directory's descriptor; -errno.
 */
static int git_begin(struct fs *fs, struct fs_node *p, const char *name, struct fs_node *q,
		     const char *newname, unsigned int flags)
{
	int r;

	if (!q)
		return -ESTALE;
	r = fs_writable(fs, q);
	if (r == 0 && (p != q || flags != 0))
		r = -EACCES;
	if (r == 0)
		r = fs_node_fd(fs, q);
	if (r < 0)
		return r;
	if (fs_gitcfg_replace(r, name, newname) < 0)
		return -EACCES;
	fs_notify_expect(fs, q, newname);
	return r;
}

static int target_begin(struct fs *fs, struct fs_node *p, const char *name, struct fs_node *q,
			const char *newname, unsigned int flags)
{
	const struct fs_rule *rule = q && fs_name_check(newname) == 0 ? rule_for(fs, q, newname) : NULL;

	return rule && rule->git ? git_begin(fs, p, name, q, newname, flags)
				 : name_begin(fs, q, newname, false);
}

void fs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		  const char *newname, unsigned int flags)
{
	struct fs *fs = fs_of(req);
	struct fs_node *p = fs_node_get(fs, parent);
	struct fs_node *q = fs_node_get(fs, newparent);
	int r = 0;

	if (flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		r = -EINVAL; /* whiteouts are device nodes */
	if (r == 0)
		r = name_begin(fs, p, name, false);
	if (r >= 0)
		r = target_begin(fs, p, name, q, newname, flags);
	if (r >= 0)
		r = fs_node_fd(fs, p);
	if (r >= 0 && q->fd < 0)
		r = -ENFILE;
	if (r >= 0)
		r = rename_in(fs, p, name, q, newname, flags);
	(void)fuse_reply_err(req, -r);
}

static int tmpfile_in(struct fs *fs, struct fs_node *p, uint32_t mode, struct fs_node **ret,
		      struct statx *stx)
{
	sb_autofd int fd = -1;
	sb_autofd int path_fd = -1;
	struct fs_node *n;
	char path[16];
	int r = fs_quota_inode(fs);

	if (r == 0 && (p->virtual || !S_ISDIR(p->id.type)))
		r = -EROFS;
	if (r == 0)
		r = fs_writable(fs, p);
	if (r == 0)
		r = fs_node_fd(fs, p);
	if (r < 0)
		return r;
	fd = openat(r, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode & 0777);
	if (fd < 0)
		return -errno;
	fs_fd_name(fd, path);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	r = fs_statx(path_fd, stx);
	if (r < 0)
		return r;
	/* no name holds a '/', so this one never opens again: the node is pinned */
	r = fs_node_enter(fs, p, "/", &path_fd, stx, &n);
	if (r < 0)
		return r;
	r = fs_node_pin(fs, n);
	if (r < 0) {
		fs_node_forget(fs, fs_node_id(fs, n), 1);
		return r;
	}
	fs_node_give_data(fs, n, &fd, true, true);
	n->orphan = true; /* blocks are given back when it is dropped unnamed */
	fs_quota_inode_added(fs, stx->stx_blocks);
	*ret = n;
	return 0;
}

void fs_op_tmpfile(struct fs *fs, uint64_t unique, uint64_t parent, uint32_t mode)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { 0 };
	struct fs_node *p = fs_node_get(fs, parent);
	struct fs_node *n;
	struct statx stx;
	struct stat st;
	int r = p ? tmpfile_in(fs, p, mode, &n, &stx) : -ESTALE;

	if (r < 0) {
		fs_io_reply_raw(fs, unique, r, NULL, 0);
		return;
	}
	fs_attr_fill(fs, n, &stx, &st);
	out.entry.nodeid = fs_node_id(fs, n);
	out.entry.generation = n->gen;
	out.entry.attr_valid = 1;
	out.entry.attr = (struct fuse_attr){
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.blocks = (uint64_t)st.st_blocks,
		.atime = (uint64_t)st.st_atim.tv_sec,
		.mtime = (uint64_t)st.st_mtim.tv_sec,
		.ctime = (uint64_t)st.st_ctim.tv_sec,
		.atimensec = (uint32_t)st.st_atim.tv_nsec,
		.mtimensec = (uint32_t)st.st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st.st_ctim.tv_nsec,
		.mode = st.st_mode,
		.nlink = (uint32_t)st.st_nlink,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.blksize = (uint32_t)st.st_blksize,
	};
	out.open.open_flags = FOPEN_KEEP_CACHE;
	fs_io_reply_raw(fs, unique, 0, &out, sizeof(out));
}
