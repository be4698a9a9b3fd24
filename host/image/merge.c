/*
 * Theory of operation. entry->layer says which layer touched an entry last, parents included, so a
 * whiteout of layer N removes exactly what has a smaller number: wherever it stands in its
 * archive it acts on the layers below alone. entry->purged makes a second whiteout of one place
 * free, so the work is bounded by entries times layers.
 *
 * Who made the archive controls names, their order, links and sizes. What is created is charged:
 * every entry (parents that no entry names too) against max_entries, every name and attribute
 * against max_memory, data against max_bytes.
 */
#include "image/merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WH ".wh."
#define WH_LEN 4
#define WH_OPAQUE ".wh..wh..opq"
#define NAME_MAX_ 255

const struct image_limits image_limits_default = {
	.max_entries = 2000000,
	.max_bytes = 64ULL << 30,
	.max_memory = (size_t)768 << 20,
	.free_ratio = 256ULL << 20,
	.max_ratio = 256,
};

int image_merge_fail(struct image_merge *m, int code, const char *fmt, ...)
{
	char text[SB_ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (m->entry[0])
		return sb_err_set(m->err, code, "layer %u: entry \"%s\": %s", m->layer, m->entry,
				  text);
	return sb_err_set(m->err, code, "layer %u: %s", m->layer, text);
}

static int fail_errno(struct image_merge *m, int r)
{
	const struct image_limits *l = m->limits;

	if (r == -E2BIG)
		return image_merge_fail(m, r, "more than %llu entries",
					(unsigned long long)l->max_entries);
	if (r == -ENOMEM)
		return image_merge_fail(m, -E2BIG, "names and attributes of more than %zu MiB",
					l->max_memory >> 20);
	if (r == -EFBIG)
		return image_merge_fail(m, r, "the image is larger than %llu MiB",
					(unsigned long long)(l->max_bytes >> 20));
	return image_merge_fail(m, r, "%s", strerror(-r));
}

static void dropped(void *arg, const struct sb_erofs_inode *i)
{
	const struct image_merge *m = arg;

	sb_erofs_data_drop(m->w, i);
}

int image_merge_init(struct image_merge *m, enum image_mode mode, const struct image_limits *limits,
		     int out, int spool, struct sb_err *err)
{
	int r;

	*m = (struct image_merge){ .mode = mode, .limits = limits, .err = err };
	r = sb_erofs_tree_init(&m->tree, limits->max_entries, limits->max_memory);
	if (r == 0)
		r = sb_erofs_new(out, spool, limits->max_bytes, &m->w);
	if (r < 0) {
		image_merge_done(m);
		return sb_err_set(err, r, "no memory");
	}
	m->tree.dropped = dropped;
	m->tree.arg = m;
	return 0;
}

void image_merge_done(struct image_merge *m)
{
	m->w = sb_erofs_free(m->w);
	sb_erofs_tree_done(&m->tree);
}

/* Next part of a path; skips "/" and ".". Return: its length; 0 at the end; -EBADMSG. */
static int next_part(struct image_merge *m, const char **at, const char **ret)
{
	const char *p = *at;
	size_t len;

	for (;;) {
		while (*p == '/')
			p++;
		len = strcspn(p, "/");
		if (len != 1 || p[0] != '.')
			break;
		p++;
	}
	if (len == 2 && p[0] == '.' && p[1] == '.')
		return image_merge_fail(m, -EBADMSG, "a name with \"..\"");
	if (len > NAME_MAX_)
		return image_merge_fail(m, -EBADMSG, "a name of %zu bytes, at most %d", len,
					NAME_MAX_);
	*ret = p;
	*at = p + len;
	return (int)len;
}

static bool last_part(const char *at)
{
	for (;;) {
		while (*at == '/')
			at++;
		if (at[0] != '.' || (at[1] != '/' && at[1] != '\0'))
			return *at == '\0';
		at++;
	}
}

static bool is_whiteout_name(const char *name, size_t len)
{
	return len >= WH_LEN && memcmp(name, WH, WH_LEN) == 0;
}

static bool is_dir(const struct sb_erofs_entry *e)
{
	return S_ISDIR(e->inode->mode);
}

static bool is_whiteout(const struct sb_erofs_entry *e)
{
	return S_ISCHR(e->inode->mode); /* other devices are never made */
}

static int new_entry(struct image_merge *m, struct sb_erofs_entry *dir, const char *name, size_t len,
		     uint16_t mode, struct sb_erofs_entry **ret)
{
	struct sb_erofs_inode *i = sb_erofs_inode_new(&m->tree);
	int r;

	if (!i)
		return fail_errno(m, -ENOMEM);
	i->mode = mode;
	r = sb_erofs_link(&m->tree, dir, name, len, i, ret);
	if (r < 0)
		return fail_errno(m, r);
	(*ret)->layer = m->layer;
	return 0;
}

/*
 * The directory that holds the last part of @path.
 * @make: make what is missing, and mark all of it as touched by this layer
 * @name, @len: the last part; @len 0: the path is the root's
 * Return: 0; 1: there is no such directory (only without @make); -errno.
 */
static int find_parent(struct image_merge *m, const char *path, bool make,
		       struct sb_erofs_entry **ret, const char **name, size_t *len)
{
	struct sb_erofs_entry *dir = m->tree.root;

	for (;;) {
		const char *part = NULL;
		struct sb_erofs_entry *e;
		int n = next_part(m, &path, &part);

		if (n < 0)
			return n;
		if (make)
			dir->layer = m->layer;
		if (n == 0 || last_part(path)) {
			*ret = dir;
			*name = part;
			*len = (size_t)n;
			return 0;
		}
		if (is_whiteout_name(part, (size_t)n))
			return image_merge_fail(m, -EBADMSG, "a directory with a reserved name (%s)",
						WH);
		e = sb_erofs_lookup(&m->tree, dir, part, (size_t)n);
		if (e && S_ISLNK(e->inode->mode))
			return image_merge_fail(m, -EBADMSG,
						"it lies beneath \"%.*s\", which is a symbolic link",
						SB_MIN(n, 64), part);
		if (e && make && is_whiteout(e)) {
			/* the directory below is gone, this one is new */
			sb_erofs_unlink(&m->tree, e);
			n = new_entry(m, dir, part, (size_t)n, S_IFDIR | 0755, &e);
			if (n < 0)
				return n;
			e->opaque = true;
		} else if (!e && make) {
			n = new_entry(m, dir, part, (size_t)n, S_IFDIR | 0755, &e);
			if (n < 0)
				return n;
		} else if (!e || (!is_dir(e) && !make)) {
			return 1;
		} else if (!is_dir(e)) {
			return image_merge_fail(m, -EBADMSG,
						"it lies beneath \"%.*s\", which is no directory",
						SB_MIN(n, 64), part);
		}
		dir = e;
	}
}

/* What layers below this one put into @top goes. */
static void purge(struct image_merge *m, struct sb_erofs_entry *top)
{
	struct sb_erofs_entry *e;

	if (top->purged == m->layer)
		return;
	top->purged = m->layer;
	e = sb_erofs_walk(top, top);
	while (e) {
		struct sb_erofs_entry *next = sb_erofs_skip(top, e);

		if (e->layer < m->layer)
			sb_erofs_unlink(&m->tree, e);
		else if (is_dir(e) && e->purged != m->layer) {
			e->purged = m->layer;
			next = sb_erofs_walk(top, e);
		}
		e = next;
	}
}

static int keep_whiteout(struct image_merge *m, const char *path, const char *name, size_t len)
{
	struct sb_erofs_entry *dir = NULL;
	struct sb_erofs_entry *e;
	const char *last;
	size_t last_len;
	int r = find_parent(m, path, true, &dir, &last, &last_len);

	if (r < 0)
		return r;
	if (!name) {
		dir->opaque = true;
		return 0;
	}
	e = sb_erofs_lookup(&m->tree, dir, name, len);
	if (e) { /* replaced: what is there hides what is below; a directory only when opaque */
		e->opaque = e->opaque || is_dir(e);
		return 0;
	}
	return new_entry(m, dir, name, len, S_IFCHR, &e);
}

/* @name: the last part of @path, begins with ".wh." */
static int whiteout(struct image_merge *m, const char *path, const char *name, size_t len)
{
	bool opaque = len == sizeof(WH_OPAQUE) - 1 && memcmp(name, WH_OPAQUE, len) == 0;
	struct sb_erofs_entry *dir = NULL;
	struct sb_erofs_entry *e;
	int r;

	if (!opaque && len >= 2 * WH_LEN && memcmp(name + WH_LEN, WH, WH_LEN) == 0)
		return 0; /* notes of aufs to itself */
	name += WH_LEN;
	len -= WH_LEN;
	if (!opaque && (len == 0 || (len == 1 && name[0] == '.') ||
			(len == 2 && name[0] == '.' && name[1] == '.')))
		return image_merge_fail(m, -EBADMSG, "a whiteout of nothing");
	if (m->mode == IMAGE_MODE_LAYER)
		return keep_whiteout(m, path, opaque ? NULL : name, len);
	r = find_parent(m, path, false, &dir, &(const char *){ NULL }, &(size_t){ 0 });
	if (r != 0)
		return r < 0 ? r : 0;
	if (opaque) {
		purge(m, dir);
		return 0;
	}
	e = sb_erofs_lookup(&m->tree, dir, name, len);
	if (e && e->layer < m->layer)
		sb_erofs_unlink(&m->tree, e);
	else if (e && is_dir(e))
		purge(m, e);
	return 0;
}

#define STARTS(x, lit) ((x)->name_len > sizeof(lit) - 1 && \
			memcmp((x)->name, lit, sizeof(lit) - 1) == 0)
#define IS(x, lit) ((x)->name_len == sizeof(lit) - 1 && \
		    memcmp((x)->name, lit, sizeof(lit) - 1) == 0)

static bool takes_xattr(const struct sb_tar_xattr *x)
{
	if (STARTS(x, "trusted.overlay.") || STARTS(x, "user.overlay."))
		return false; /* would steer the overlay that the image is put under */
	return STARTS(x, "user.") || STARTS(x, "trusted.") || IS(x, "security.capability") ||
	       IS(x, "system.posix_acl_access") || IS(x, "system.posix_acl_default");
}

static int set_meta(struct image_merge *m, struct sb_erofs_inode *i, const struct sb_tar_entry *t)
{
	int r = 0;

	i->mode = (uint16_t)((i->mode & S_IFMT) | t->mode);
	i->uid = t->uid;
	i->gid = t->gid;
	i->mtime = t->mtime;
	i->mtime_nsec = t->mtime_nsec;
	i->xattrs = NULL;
	i->xattrs_len = 0;
	for (size_t k = 0; r == 0 && k < t->n_xattrs; k++) {
		const struct sb_tar_xattr *x = &t->xattrs[k];

		if (takes_xattr(x))
			r = sb_erofs_xattr_add(m->w, x->name, x->name_len, x->value, x->value_len);
		else
			m->counts.xattrs++;
	}
	if (r == -E2BIG)
		return image_merge_fail(m, -EBADMSG, "extended attributes of more than %u bytes",
					SB_EROFS_MAX_XATTRS);
	if (r == 0)
		r = sb_erofs_xattr_set(m->w, &m->tree, i);
	return r < 0 ? fail_errno(m, r) : 0;
}

static int hard_link(struct image_merge *m, struct sb_erofs_entry *dir, const char *name, size_t len,
		     const char *target, struct sb_erofs_entry *old)
{
	struct sb_erofs_entry *at = NULL;
	struct sb_erofs_entry *e;
	struct sb_erofs_inode *i;
	const char *last = NULL;
	size_t last_len = 0;
	int r = find_parent(m, target, false, &at, &last, &last_len);

	if (r < 0)
		return r;
	e = r == 0 && last_len > 0 ? sb_erofs_lookup(&m->tree, at, last, last_len) : NULL;
	if (!e || is_whiteout(e))
		return image_merge_fail(m, -EBADMSG, "a hard link to \"%.64s\", which is not there",
					target);
	if (is_dir(e))
		return image_merge_fail(m, -EBADMSG, "a hard link to \"%.64s\", a directory", target);
	if (e == old)
		return image_merge_fail(m, -EBADMSG, "a hard link to itself");
	i = e->inode;
	if (old)
		sb_erofs_unlink(&m->tree, old);
	if (i->nlink == 0)
		return image_merge_fail(m, -EBADMSG,
					"a hard link to \"%.64s\", which it replaces", target);
	r = sb_erofs_link(&m->tree, dir, name, len, i, &e);
	if (r < 0)
		return fail_errno(m, r);
	e->layer = m->layer;
	return 0;
}

static uint16_t type_bits(enum sb_tar_type t)
{
	switch (t) {
	case SB_TAR_DIR:
		return S_IFDIR;
	case SB_TAR_SYMLINK:
		return S_IFLNK;
	case SB_TAR_FIFO:
		return S_IFIFO;
	case SB_TAR_NONE:
	case SB_TAR_REG:
	case SB_TAR_HARD_LINK:
	case SB_TAR_CHR:
	case SB_TAR_BLK:
	default:
		return S_IFREG;
	}
}

static int fill(struct image_merge *m, struct sb_erofs_inode *i, const struct sb_tar_entry *t)
{
	int r = set_meta(m, i, t);

	if (r < 0)
		return r;
	if (t->type == SB_TAR_SYMLINK) {
		size_t len = strlen(t->link);
		char *target = sb_erofs_alloc(&m->tree, len + 1);

		if (!target)
			return fail_errno(m, -ENOMEM);
		memcpy(target, t->link, len + 1);
		i->mode = S_IFLNK | 0777;
		i->target = target;
		i->size = len;
	}
	if (t->type == SB_TAR_REG) {
		i->size = t->size;
		r = t->size > m->limits->max_bytes - m->counts.bytes ?
			    -EFBIG : sb_erofs_data_begin(m->w, i);
		if (r < 0)
			return fail_errno(m, r);
		m->counts.bytes += t->size;
	}
	return 0;
}

static int put(struct image_merge *m, const struct sb_tar_entry *t, struct sb_erofs_entry *dir,
	       const char *name, size_t len)
{
	struct sb_erofs_entry *e = sb_erofs_lookup(&m->tree, dir, name, len);
	bool over_whiteout = e && is_whiteout(e);
	int r;

	if (e && t->type == SB_TAR_DIR && is_dir(e)) {
		e->layer = m->layer;
		return set_meta(m, e->inode, t);
	}
	if (e && e->layer == m->layer && !over_whiteout)
		return image_merge_fail(m, -EBADMSG, "it is there twice in one layer");
	if (t->type == SB_TAR_HARD_LINK)
		return hard_link(m, dir, name, len, t->link, e);
	if (e)
		sb_erofs_unlink(&m->tree, e);
	r = new_entry(m, dir, name, len, type_bits(t->type), &e);
	if (r < 0)
		return r;
	e->opaque = over_whiteout && is_dir(e);
	return fill(m, e->inode, t);
}

static void remember(struct image_merge *m, const char *path)
{
	size_t len = strlen(path);
	bool cut = len >= sizeof(m->entry);

	/* the end of a path says more than its beginning */
	(void)snprintf(m->entry, sizeof(m->entry), "%s%s", cut ? "..." : "",
		       cut ? path + len - (sizeof(m->entry) - 4) : path);
}

static int final_part(struct image_merge *m, const char *path, const char **name, size_t *len)
{
	const char *part = NULL;
	int n;

	while ((n = next_part(m, &path, &part)) > 0) {
		*name = part;
		*len = (size_t)n;
	}
	return n;
}

static int on_entry(void *arg, const struct sb_tar_entry *t)
{
	struct image_merge *m = arg;
	struct sb_erofs_entry *dir = NULL;
	const char *name = NULL;
	size_t len = 0;
	int r;

	remember(m, t->path);
	if (++m->counts.entries > m->limits->max_entries)
		return fail_errno(m, -E2BIG);
	r = final_part(m, t->path, &name, &len);
	if (r < 0)
		return r;
	if (t->type == SB_TAR_CHR || t->type == SB_TAR_BLK) {
		m->counts.devices++;
		return 0;
	}
	if (len > 0 && is_whiteout_name(name, len))
		return t->type == SB_TAR_REG && t->size == 0 ?
			       whiteout(m, t->path, name, len) :
			       image_merge_fail(m, -EBADMSG, "a whiteout that is no empty file");
	r = find_parent(m, t->path, true, &dir, &name, &len);
	if (r < 0)
		return r;
	if (len > 0)
		return put(m, t, dir, name, len);
	if (t->type != SB_TAR_DIR)
		return image_merge_fail(m, -EBADMSG, "the root must be a directory");
	return set_meta(m, m->tree.root->inode, t);
}

static bool in_file(const struct image_merge *m)
{
	return sb_erofs_in_data(m->w);
}

static int on_data(void *arg, const uint8_t *p, size_t len)
{
	struct image_merge *m = arg;
	int r;

	if (!in_file(m))
		return 0;
	r = sb_erofs_data_add(m->w, p, len);
	return r < 0 ? fail_errno(m, r) : 0;
}

static int on_end(void *arg)
{
	struct image_merge *m = arg;
	int r;

	if (!in_file(m))
		return 0;
	r = sb_erofs_data_end(m->w);
	return r < 0 ? fail_errno(m, r) : 0;
}

int image_merge_layer(struct image_merge *m, struct sb_tar **ret)
{
	static const struct sb_tar_ops ops = { .entry = on_entry, .data = on_data, .end = on_end };

	m->layer++;
	m->entry[0] = '\0';
	if (m->mode == IMAGE_MODE_LAYER && m->layer > 1)
		return image_merge_fail(m, -EBADMSG, "one archive was expected");
	return sb_tar_new(&ops, m, ret);
}

int image_merge_push(struct image_merge *m, struct sb_tar *t, const uint8_t *p, size_t len)
{
	struct sb_err err = { 0 };
	int r = sb_tar_push(t, p, len, &err);

	/* the entry named is the last good one: the broken one has no name yet */
	if (r < 0 && err.code)
		return image_merge_fail(m, r, "%s%s", m->entry[0] ? "after it: " : "", err.text);
	return r;
}

int image_merge_end(struct image_merge *m, struct sb_tar *t)
{
	struct sb_err err = { 0 };
	/* layers of an image have digests, so nothing is missing; tools exist that write no end marker */
	int r = m->mode == IMAGE_MODE_IMAGE && sb_tar_between(t) ? 0 : sb_tar_end(t, &err);

	return r < 0 ? image_merge_fail(m, r, "%s", err.text) : 0;
}

/* Directories that hide what is below them say so to both kinds of overlay. */
static int mark_opaque(struct image_merge *m)
{
	static const char *const names[] = { "trusted.overlay.opaque", "user.overlay.opaque" };
	struct sb_erofs_entry *e;
	int r = 0;

	for (e = m->tree.root; r == 0 && e; e = sb_erofs_walk(m->tree.root, e)) {
		if (!e->opaque)
			continue;
		for (size_t k = 0; r == 0 && k < SB_ARRAY_LEN(names); k++)
			r = sb_erofs_xattr_add(m->w, names[k], strlen(names[k]), "y", 1);
		if (r == 0)
			r = sb_erofs_xattr_set(m->w, &m->tree, e->inode);
	}
	return r;
}

int image_merge_finish(struct image_merge *m)
{
	int r = 0;

	m->entry[0] = '\0';
	if (m->mode == IMAGE_MODE_LAYER)
		r = mark_opaque(m);
	if (r == 0)
		r = sb_erofs_finish(m->w, &m->tree);
	return r < 0 ? fail_errno(m, r) : 0;
}
