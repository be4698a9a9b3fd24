/* The FUSE operations. No open and no opendir: libfuse answers them with ENOSYS, and the kernel
 * does without. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "imgfs.h"

#define DIRBUF (64U << 10)
#define NOBODY 65534U
#define MAX_ID 65535U

static void on_init(void *arg, struct fuse_conn_info *c)
{
	const unsigned int want = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS |
				  FUSE_CAP_READDIRPLUS | FUSE_CAP_CACHE_SYMLINKS |
				  FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT;

	(void)arg;
	c->max_readahead = IMGFS_MAX_READ;
	c->max_background = 64;
	c->congestion_threshold = 48;
	c->time_gran = 1;
	c->want = c->capable & want;
}

static uint32_t id_of(uint32_t id)
{
	return id <= MAX_ID ? id : NOBODY;
}

static void fill(const struct imgfs *fs, size_t layer, const struct sb_erofs_node *n,
		 struct stat *ret)
{
	*ret = (struct stat){
		.st_ino = imgfs_ino(layer, n->nid),
		.st_mode = n->mode,
		.st_nlink = SB_MAX(n->nlink, 1U),
		.st_uid = fs->one_owner ? fs->uid : id_of(n->uid),
		.st_gid = fs->one_owner ? fs->gid : id_of(n->gid),
		.st_size = (off_t)n->size,
		.st_blksize = SB_EROFS_BLOCK,
		.st_blocks = (blkcnt_t)((n->size + 511) / 512),
	};
	ret->st_mtim.tv_sec = (time_t)n->time;
	ret->st_mtim.tv_nsec = n->time_nsec;
	ret->st_ctim = ret->st_mtim;
	ret->st_atim = ret->st_mtim;
}

static void fill_top(const struct imgfs *fs, struct stat *ret)
{
	*ret = (struct stat){ .st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0755,
			      .st_nlink = (nlink_t)(2 + fs->n), .st_uid = fs->uid, .st_gid = fs->gid };
}

/* What the kernel is told of our errors: a broken layer is an I/O error. */
static void fail(fuse_req_t req, int e)
{
	(void)fuse_reply_err(req, e == -EBADMSG ? EIO : -e);
}

static int entry_of(const struct imgfs *fs, size_t layer, uint64_t nid, struct fuse_entry_param *e)
{
	struct sb_erofs_node n;
	int r = sb_erofs_node(&fs->layers[layer], nid, &n);

	if (r == -ENOENT) /* an entry that leads nowhere */
		return -EBADMSG;
	if (r < 0)
		return r;
	if (!imgfs_shown(&n))
		return -ENOENT;
	*e = (struct fuse_entry_param){ .ino = imgfs_ino(layer, nid),
					.attr_timeout = IMGFS_TIMEOUT,
					.entry_timeout = IMGFS_TIMEOUT };
	fill(fs, layer, &n, &e->attr);
	return 0;
}

static int lookup_top(const struct imgfs *fs, const char *name, struct fuse_entry_param *e)
{
	if (name[0] < '0' || name[0] > '9' || name[1] != '\0' || (size_t)(name[0] - '0') >= fs->n)
		return -ENOENT;
	return entry_of(fs, (size_t)(name[0] - '0'), fs->layers[name[0] - '0'].root, e);
}

static int lookup(const struct imgfs *fs, fuse_ino_t parent, const char *name,
		  struct fuse_entry_param *e)
{
	struct sb_erofs_entry found;
	struct sb_erofs_node dir;
	size_t layer;
	int r;

	if (parent == FUSE_ROOT_ID)
		return lookup_top(fs, name, e);
	r = imgfs_node(fs, parent, &layer, &dir);
	if (r == 0)
		r = sb_erofs_lookup(&fs->layers[layer], &dir, name, strlen(name), &found);
	return r < 0 ? r : entry_of(fs, layer, found.nid, e);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = { 0 };
	int r = lookup(fuse_req_userdata(req), parent, name, &e);

	if (r == -ENOENT) { /* to be remembered as well */
		e = (struct fuse_entry_param){ .entry_timeout = IMGFS_TIMEOUT };
		r = 0;
	}
	if (r < 0)
		fail(req, r);
	else
		(void)fuse_reply_entry(req, &e);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	(void)ino;
	(void)n;
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	(void)count;
	(void)forgets;
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	struct sb_erofs_node n;
	struct stat st;
	size_t layer;
	int r = 0;

	(void)fi;
	if (ino == FUSE_ROOT_ID) {
		fill_top(fs, &st);
	} else {
		r = imgfs_node(fs, ino, &layer, &n);
		if (r == 0)
			fill(fs, layer, &n, &st);
	}
	if (r < 0)
		fail(req, r);
	else
		(void)fuse_reply_attr(req, &st, IMGFS_TIMEOUT);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	char text[SB_EROFS_BLOCK];
	const uint8_t *p = NULL;
	struct sb_erofs_node n;
	size_t layer;
	size_t len;
	int r = imgfs_node(fs, ino, &layer, &n);

	if (r == 0 && !S_ISLNK(n.mode))
		r = -EINVAL;
	if (r < 0) {
		fail(req, r);
		return;
	}
	len = sb_erofs_span(&fs->layers[layer], &n, 0, &p); /* below one block: in one piece */
	if (len == 0 || len >= sizeof(text) || memchr(p, 0, len)) {
		(void)fuse_reply_err(req, EIO);
		return;
	}
	memcpy(text, p, len);
	text[len] = '\0';
	(void)fuse_reply_readlink(req, text);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	struct iovec iov[2]; /* whole blocks, tail */
	struct sb_erofs_node n;
	size_t layer;
	int count = 0;
	int r = imgfs_node(fs, ino, &layer, &n);

	(void)fi;
	if (r == 0 && (!S_ISREG(n.mode) || off < 0))
		r = -EINVAL;
	if (r < 0) {
		fail(req, r);
		return;
	}
	size = SB_MIN(size, (size_t)IMGFS_MAX_READ);
	while (size > 0 && count < 2) {
		const uint8_t *p = NULL;
		size_t len = sb_erofs_span(&fs->layers[layer], &n, (uint64_t)off, &p);

		len = SB_MIN(len, size);
		if (len == 0)
			break;
		iov[count++] = (struct iovec){ (void *)(uintptr_t)p, len };
		off += (off_t)len;
		size -= len;
	}
	(void)fuse_reply_iov(req, iov, count);
}

struct listing {
	fuse_req_t req;
	const struct imgfs *fs;
	size_t layer;
	bool plus;
	char *buf;
	size_t used;
	size_t cap;
};

/* Return: 1 = full; 0. */
static int add(struct listing *l, const char *name, const struct fuse_entry_param *e, uint64_t next)
{
	size_t left = l->cap - l->used;
	size_t n = l->plus ? fuse_add_direntry_plus(l->req, l->buf + l->used, left, name, e,
						    (off_t)next)
			   : fuse_add_direntry(l->req, l->buf + l->used, left, name, &e->attr,
					       (off_t)next);

	if (n > left)
		return 1;
	l->used += n;
	return 0;
}

static int list_top(struct listing *l, uint64_t off)
{
	for (uint64_t i = off; i < l->fs->n; i++) {
		const char name[2] = { (char)('0' + i), '\0' };
		struct fuse_entry_param e;
		int r = entry_of(l->fs, (size_t)i, l->fs->layers[i].root, &e);

		if (r < 0)
			return r;
		if (add(l, name, &e, i + 1) > 0)
			break;
	}
	return 0;
}

/* "." and ".." get no references: the kernel wants none. */
static bool is_dots(const struct sb_erofs_entry *e)
{
	return e->name[0] == '.' && (e->name_len == 1 || (e->name_len == 2 && e->name[1] == '.'));
}

static int list(struct listing *l, const struct sb_erofs_node *dir, uint64_t pos)
{
	for (;;) {
		char name[SB_EROFS_NAME_MAX + 1];
		struct fuse_entry_param e = { 0 };
		struct sb_erofs_entry found;
		int r = sb_erofs_next(&l->fs->layers[l->layer], dir, &pos, &found);

		if (r <= 0)
			return r;
		if (is_dots(&found)) {
			e.attr.st_mode = S_IFDIR;
			e.attr.st_ino = imgfs_ino(l->layer, found.nid);
		} else {
			r = entry_of(l->fs, l->layer, found.nid, &e);
		}
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		memcpy(name, found.name, found.name_len);
		name[found.name_len] = '\0';
		if (add(l, name, &e, pos) > 0)
			return 0;
	}
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	static char buf[DIRBUF];
	struct listing l = { .req = req, .fs = fs, .plus = plus, .buf = buf,
			     .cap = SB_MIN(size, sizeof(buf)) };
	struct sb_erofs_node dir;
	int r;

	if (ino == FUSE_ROOT_ID) {
		r = list_top(&l, (uint64_t)off);
	} else {
		r = imgfs_node(fs, ino, &l.layer, &dir);
		if (r == 0)
			r = list(&l, &dir, (uint64_t)off);
	}
	if (r < 0)
		fail(req, r);
	else
		(void)fuse_reply_buf(req, buf, l.used);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, size, off, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, size, off, true);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	struct statvfs st = { .f_bsize = SB_EROFS_BLOCK, .f_frsize = SB_EROFS_BLOCK,
			      .f_namemax = SB_EROFS_NAME_MAX };

	(void)ino;
	for (size_t i = 0; i < fs->n; i++) {
		st.f_blocks += fs->layers[i].len / SB_EROFS_BLOCK;
		st.f_files += fs->layers[i].inodes;
	}
	(void)fuse_reply_statfs(req, &st);
}

static void reply_xattr(fuse_req_t req, const void *p, size_t len, size_t size)
{
	if (size == 0)
		(void)fuse_reply_xattr(req, len);
	else if (size < len)
		(void)fuse_reply_err(req, ERANGE);
	else
		(void)fuse_reply_buf(req, p, len);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	struct sb_erofs_xattr x;
	struct sb_erofs_node n;
	size_t layer;
	int r = -ENODATA;

	if (imgfs_xattr_shown(name) && ino != FUSE_ROOT_ID) {
		r = imgfs_node(fs, ino, &layer, &n);
		if (r == 0)
			r = sb_erofs_xattr_get(&fs->layers[layer], &n, name, &x);
	}
	if (r < 0)
		fail(req, r);
	else
		reply_xattr(req, x.value, x.len, size);
}

static int list_names(const struct sb_erofs *e, const struct sb_erofs_node *n, char *buf,
		      size_t cap, size_t *ret)
{
	uint64_t pos = 0;
	size_t used = 0;

	for (;;) {
		struct sb_erofs_xattr x;
		int r = sb_erofs_xattr(e, n, &pos, &x);
		size_t len;

		if (r <= 0) {
			*ret = used;
			return r;
		}
		if (r == 2 || !imgfs_xattr_shown(x.name))
			continue;
		len = strlen(x.name) + 1;
		if (len > cap - used)
			return -E2BIG;
		memcpy(buf + used, x.name, len);
		used += len;
	}
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	const struct imgfs *fs = fuse_req_userdata(req);
	static char buf[DIRBUF];
	struct sb_erofs_node n;
	size_t layer;
	size_t used = 0;
	int r = 0;

	if (ino != FUSE_ROOT_ID) {
		r = imgfs_node(fs, ino, &layer, &n);
		if (r == 0)
			r = list_names(&fs->layers[layer], &n, buf, sizeof(buf), &used);
	}
	if (r < 0)
		fail(req, r);
	else
		reply_xattr(req, buf, used, size);
}

const struct fuse_lowlevel_ops imgfs_ops = {
	.init = on_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.read = op_read,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
};
