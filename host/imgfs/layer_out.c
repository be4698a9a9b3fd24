/*
 * Theory of operation. A walk in the order of the names, one level of a stack for each folder, so memory
 * and depth are bounded; what a folder says may be nonsense (it may lead back to itself), so the number of
 * entries is, too. Overlay's notes become OCI's: a character device 0:0 a file ".wh.NAME", an opaque folder
 * a file ".wh..wh..opq" in it. A file with several names is a hard link from its second name on.
 */
#include "layer_out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "wire/tar_names.h"
#include "wire/tar_out.h"

#define MAX_DEPTH 512
#define MAX_PATH 4095
#define MAX_HEADER (8U << 20)
#define MAX_XATTRS 64
#define WH ".wh."

struct level {
	struct sb_erofs_node dir;
	uint64_t pos;
	size_t len; /* of the path up to this folder */
};
struct out {
	const struct sb_erofs *fs;
	const struct layer_out_sink *to;
	struct sb_err *err;
	struct sb_buf head;
	uint64_t entries_left;
	uint64_t bytes_left;
	struct sb_tar_names links;
	size_t depth;
	struct level levels[MAX_DEPTH];
	char path[MAX_PATH + 1];
	char target[MAX_PATH + 1];
	size_t n_xattrs;
	struct sb_tar_out_xattr xattrs[MAX_XATTRS];
	char names[MAX_XATTRS][SB_EROFS_XATTR_NAME];
};

static int refuse(struct out *o, int code, const char *why)
{
	return sb_err_set(o->err, code, "entry \"%.100s\": %s", o->path, why);
}

static int put(struct out *o, const void *p, size_t len)
{
	if (len > o->bytes_left)
		return refuse(o, -EFBIG, "the archive gets too large");
	o->bytes_left -= len;
	return o->to->put(o->to->arg, p, len);
}

static int put_head(struct out *o, const struct sb_tar_out *e)
{
	int r;

	o->head.len = 0;
	r = sb_tar_out_header(&o->head, e);
	return r < 0 ? refuse(o, r, strerror(-r)) : put(o, o->head.data, o->head.len);
}

static int put_data(struct out *o, const struct sb_erofs_node *n)
{
	static const uint8_t zero[SB_TAR_OUT_BLOCK];
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && at < n->size) {
		const uint8_t *p = NULL;
		size_t len = sb_erofs_span(o->fs, n, at, &p);

		if (len == 0)
			return refuse(o, -EBADMSG, "its content is not there");
		r = put(o, p, len);
		at += len;
	}
	return r < 0 ? r : put(o, zero, (size_t)(-n->size & (SB_TAR_OUT_BLOCK - 1)));
}

/* ---- files with several names ---- */

/* @ret: the name under which it is in the archive already, or NULL. */
static int first_name(struct out *o, const struct sb_erofs_node *n, const char **ret)
{
	int r;

	*ret = NULL;
	if (n->nlink < 2)
		return 0;
	r = sb_tar_names_first(&o->links, n->nid, o->path, ret);
	return r < 0 ? refuse(o, r, r == -E2BIG ? "too many files with several names" : strerror(-r)) : 0;
}

/* ---- attributes ---- */

static bool of_overlay(const char *name)
{
	return strncmp(name, "trusted.overlay.", 16) == 0 || strncmp(name, "user.overlay.", 13) == 0;
}

static int read_xattrs(struct out *o, const struct sb_erofs_node *n, bool *opaque)
{
	struct sb_erofs_xattr x;
	uint64_t pos = 0;
	int r;

	o->n_xattrs = 0;
	*opaque = false;
	while ((r = sb_erofs_xattr(o->fs, n, &pos, &x)) > 0) {
		if (r == 2)
			continue;
		if (of_overlay(x.name)) {
			*opaque |= strstr(x.name, ".opaque") != NULL && x.len == 1 && x.value[0] == 'y';
			continue;
		}
		if (o->n_xattrs == MAX_XATTRS)
			return refuse(o, -E2BIG, "more than 64 extended attributes");
		(void)snprintf(o->names[o->n_xattrs], sizeof(o->names[0]), "%s", x.name);
		o->xattrs[o->n_xattrs] = (struct sb_tar_out_xattr){ o->names[o->n_xattrs], x.value, x.len };
		o->n_xattrs++;
	}
	return r < 0 ? refuse(o, r, "its attributes are broken") : 0;
}

/* ---- entries ---- */

static struct sb_tar_out entry(const struct out *o, enum sb_tar_out_type type,
			       const struct sb_erofs_node *n)
{
	return (struct sb_tar_out){ .type = type, .path = o->path, .mode = n->mode & 07777,
				    .uid = n->uid, .gid = n->gid, .mtime_s = (int64_t)n->time,
				    .xattrs = o->xattrs, .n_xattrs = o->n_xattrs };
}

static int put_whiteout(struct out *o, size_t len, const char *name, size_t name_len)
{
	char path[MAX_PATH + 1];
	const struct sb_tar_out e = { .type = SB_TAR_OUT_FILE, .path = path, .mode = 0600 };
	size_t at = len + (len ? 1 : 0);

	if (at + sizeof(WH) - 1 + name_len > MAX_PATH)
		return refuse(o, -ENAMETOOLONG, "a path of more than 4095 bytes");
	memcpy(path, o->path, len);
	if (len)
		path[len] = '/';
	memcpy(path + at, WH, sizeof(WH) - 1);
	memcpy(path + at + sizeof(WH) - 1, name, name_len);
	path[at + sizeof(WH) - 1 + name_len] = '\0';
	return put_head(o, &e);
}

static int put_file(struct out *o, const struct sb_erofs_node *n)
{
	struct sb_tar_out e = entry(o, SB_TAR_OUT_FILE, n);
	int r = first_name(o, n, &e.link);

	if (r == 0 && e.link) {
		e.type = SB_TAR_OUT_HARDLINK;
		e.n_xattrs = 0;
		return put_head(o, &e);
	}
	e.size = n->size;
	if (r == 0)
		r = put_head(o, &e);
	return r < 0 ? r : put_data(o, n);
}

static int put_symlink(struct out *o, const struct sb_erofs_node *n)
{
	struct sb_tar_out e = entry(o, SB_TAR_OUT_SYMLINK, n);
	uint64_t at = 0;

	if (n->size == 0 || n->size > MAX_PATH)
		return refuse(o, -EBADMSG, "the target of the link is too long, or empty");
	while (at < n->size) {
		const uint8_t *p = NULL;
		size_t len = sb_erofs_span(o->fs, n, at, &p);

		if (len == 0 || memchr(p, 0, len))
			return refuse(o, -EBADMSG, "the target of the link is broken");
		memcpy(o->target + at, p, len);
		at += len;
	}
	o->target[n->size] = '\0';
	e.link = o->target;
	return put_head(o, &e);
}

static int enter(struct out *o, const struct sb_erofs_node *n, bool opaque)
{
	struct sb_tar_out e = entry(o, SB_TAR_OUT_DIR, n);
	size_t len = strlen(o->path);
	int r = 0;

	if (o->depth == MAX_DEPTH)
		return refuse(o, -ELOOP, "folders are nested too deeply");
	if (len > 0)
		r = put_head(o, &e);
	if (r == 0 && len > 0 && opaque)
		r = put_whiteout(o, len, WH ".opq", sizeof(WH ".opq") - 1);
	o->levels[o->depth++] = (struct level){ .dir = *n, .len = len };
	return r;
}

static int one(struct out *o, const struct level *l, const struct sb_erofs_entry *d)
{
	size_t sep = l->len ? 1 : 0;
	struct sb_erofs_node n;
	bool opaque = false;
	int r;

	if (l->len + sep + d->name_len > MAX_PATH)
		return refuse(o, -ENAMETOOLONG, "a path of more than 4095 bytes");
	if (sep)
		o->path[l->len] = '/';
	memcpy(o->path + l->len + sep, d->name, d->name_len);
	o->path[l->len + sep + d->name_len] = '\0';
	if (o->entries_left == 0)
		return refuse(o, -E2BIG, "too many entries");
	o->entries_left--;
	if (d->name_len >= 4 && memcmp(d->name, WH, 4) == 0)
		return refuse(o, -EBADMSG, "its name would be read as a removal");
	r = sb_erofs_node(o->fs, d->nid, &n);
	if (r == 0)
		r = read_xattrs(o, &n, &opaque);
	if (r < 0)
		return refuse(o, -EBADMSG, "it is broken");
	switch (n.mode & S_IFMT) {
	case S_IFDIR:
		return enter(o, &n, opaque);
	case S_IFREG:
		return put_file(o, &n);
	case S_IFLNK:
		return put_symlink(o, &n);
	case S_IFIFO: {
		const struct sb_tar_out e = entry(o, SB_TAR_OUT_FIFO, &n);

		return put_head(o, &e);
	}
	case S_IFCHR:
		if (n.dev == 0)
			return put_whiteout(o, l->len, d->name, d->name_len);
		return refuse(o, -EPERM, "a device node");
	case S_IFSOCK: /* means nothing without its process */
		return 0;
	default:
		return refuse(o, -EPERM, "a device node");
	}
}

static int walk(struct out *o)
{
	struct sb_erofs_node root;
	int r = sb_erofs_node(o->fs, o->fs->root, &root);

	if (r < 0 || !S_ISDIR(root.mode))
		return refuse(o, -EBADMSG, "there is no root folder");
	r = enter(o, &root, false);
	while (r == 0 && o->depth > 0) {
		struct level *l = &o->levels[o->depth - 1];
		struct sb_erofs_entry d;

		r = sb_erofs_next(o->fs, &l->dir, &l->pos, &d);
		o->path[l->len] = '\0';
		if (r < 0)
			return refuse(o, -EBADMSG, "the folder is broken");
		if (r == 0) {
			o->depth--;
			continue;
		}
		r = 0;
		if ((d.name_len == 1 && d.name[0] == '.') ||
		    (d.name_len == 2 && memcmp(d.name, "..", 2) == 0))
			continue;
		r = one(o, l, &d);
	}
	return r;
}

static void done(struct out **po)
{
	struct out *o = *po;

	if (!o)
		return;
	sb_tar_names_done(&o->links);
	sb_buf_done(&o->head);
	free(o);
}

int layer_out(const struct sb_erofs *fs, uint64_t max_entries, uint64_t max_bytes,
	      const struct layer_out_sink *to, struct sb_err *err)
{
	static const uint8_t end[2 * SB_TAR_OUT_BLOCK];
	SB_CLEANUP(done) struct out *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return sb_err_set(err, -ENOMEM, "out of memory");
	sb_buf_init(&o->head, MAX_HEADER);
	o->fs = fs;
	o->to = to;
	o->err = err;
	o->entries_left = max_entries;
	o->bytes_left = max_bytes;
	r = walk(o);
	return r < 0 ? r : put(o, end, sizeof(end));
}
