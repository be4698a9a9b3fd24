/*
 * Theory of operation. A walk over the upper layer, folder by folder with descriptors, in the order in
 * which the file system gives its entries. What the overlay notes in its own way becomes the archive's:
 * a character device 0:0 a file ".wh.NAME", an opaque folder a file ".wh..wh..opq" in it. A name is one
 * step beneath an open folder and is never followed; what is opened is looked at again by its descriptor.
 *
 * Left out: kernel file systems and what lives for a session (dev, proc, sys, run, tmp, var/tmp), what
 * sendbox itself writes into etc at each start, and sockets. What cannot be said in an archive, or would
 * be read as something else (device nodes, names that begin with ".wh.", renamed folders that point
 * into a lower layer), ends the export: a layer that is not what was built is worth nothing.
 */
#include "exec/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "core/host_image.h"
#include "wire/tar_names.h"
#include "wire/tar_out.h"

#define MAX_DEPTH 512
#define MAX_HEADER (8U << 20)
#define MAX_XATTRS 64
#define MAX_XATTR_BYTES (1U << 20)
#define CHUNK (256U << 10)
#define WH ".wh."
#define SERVED "/run/host/etc/" /* of guest/rootfs/etc.c: links to what the host shows */

struct level {
	DIR *dir;
	size_t len; /* of the path up to this folder */
};
struct export {
	const struct sb_plan *plan;
	int out;
	struct sb_err *err;
	struct sb_buf head;
	uint8_t *chunk;
	struct sb_tar_names links;
	struct level levels[MAX_DEPTH];
	size_t depth;
	char path[SB_PLAN_MAX_PATH + 1]; /* of what is looked at, relative to the root */
	struct sb_tar_out_xattr xattrs[MAX_XATTRS];
	size_t n_xattrs;
	char names[4096]; /* of the xattrs */
	uint8_t *values;
};

static int refuse(struct export *x, int code, const char *why)
{
	return sb_err_set(x->err, code, "cannot export \"%.200s\": %s", x->path, why);
}

/* ---- output ---- */

static int put(struct export *x, const void *p, size_t len)
{
	int r = sb_fd_write_all(x->out, p, len);

	return r < 0 ? sb_err_set(x->err, r, "cannot write the archive: %s", strerror(-r)) : 0;
}

static int put_head(struct export *x, const struct sb_tar_out *e)
{
	int r;

	x->head.len = 0;
	r = sb_tar_out_header(&x->head, e);
	if (r < 0)
		return refuse(x, r, strerror(-r));
	return put(x, x->head.data, x->head.len);
}

static int put_empty(struct export *x, const char *name)
{
	const struct sb_tar_out e = { .type = SB_TAR_OUT_FILE, .path = name, .mode = 0600 };

	return put_head(x, &e);
}

/* Exactly @size bytes, as the header says: what grew is cut, what shrank is filled. */
static int put_content(struct export *x, int fd, uint64_t size)
{
	uint64_t padded = (size + SB_TAR_OUT_BLOCK - 1) / SB_TAR_OUT_BLOCK * SB_TAR_OUT_BLOCK;
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && at < padded) {
		size_t want = (size_t)SB_MIN(padded - at, (uint64_t)CHUNK);
		size_t data = at < size ? (size_t)SB_MIN(size - at, (uint64_t)want) : 0;
		ssize_t n = data > 0 ? pread(fd, x->chunk, data, (off_t)at) : 0;

		if (n < 0)
			return refuse(x, -errno, strerror(errno));
		if (data > 0 && n == 0)
			return refuse(x, -EIO, "it changes while it is read");
		if (data == 0 || (size_t)n == data) /* to the end of the block */
			memset(x->chunk + n, 0, want - (size_t)n);
		else
			want = (size_t)n;
		r = put(x, x->chunk, want);
		at += want;
	}
	return r;
}

/* ---- what is left out ---- */

static bool in_list(const char *const *list, const char *s)
{
	for (; *list; list++)
		if (strcmp(*list, s) == 0)
			return true;
	return false;
}

static bool left_out(const struct export *x)
{
	static const char *const always[] = {
		"dev", "proc", "sys", "run", "tmp", "var/tmp", "lost+found", "etc/hostname",
		"etc/hosts", "etc/resolv.conf", "etc/chromium/policies/managed/sendbox.json",
		"etc/opt/chrome/policies/managed/sendbox.json",
		"etc/opt/chrome_for_testing/policies/managed/sendbox.json",
		"etc/firefox/policies/policies.json", NULL
	};
	static const char *const host[] = { "etc/mtab", "etc/os-release", "etc/nsswitch.conf",
					    "etc/shells", NULL };

	if (in_list(always, x->path))
		return true;
	if (x->plan->image != SB_IMAGE_HOST)
		return false;
	return in_list(host, x->path) ||
	       (strncmp(x->path, "etc/", 4) == 0 && in_list(sb_host_etc, x->path + 4));
}

/* ---- extended attributes ---- */

static bool wanted(const char *name)
{
	return strcmp(name, "security.capability") == 0 ||
	       (strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0);
}

/* Whether the overlay has noted @what ("opaque") on @fd. */
static bool noted(int fd, const char *what, char *ret, size_t cap)
{
	static const char *const spaces[] = { "trusted", "user" };

	for (size_t i = 0; i < SB_ARRAY_LEN(spaces); i++) {
		char name[64];
		ssize_t n;

		(void)snprintf(name, sizeof(name), "%s.overlay.%s", spaces[i], what);
		n = fgetxattr(fd, name, ret, cap - 1);
		if (n >= 0 || errno == ERANGE) {
			ret[n < 0 ? 0 : n] = '\0';
			return true;
		}
	}
	return false;
}

static int read_xattrs(struct export *x, int fd)
{
	ssize_t len = flistxattr(fd, x->names, sizeof(x->names));
	size_t used = 0;
	char v[8];

	x->n_xattrs = 0;
	if (len < 0)
		return errno == ENOTSUP ? 0 : refuse(x, -errno, strerror(errno));
	if (noted(fd, "redirect", v, sizeof(v)) || noted(fd, "metacopy", v, sizeof(v)))
		return refuse(x, -EBADMSG, "a part of it lies in another layer");
	for (const char *n = x->names; n < x->names + len; n += strlen(n) + 1) {
		ssize_t got;

		if (!wanted(n))
			continue;
		if (x->n_xattrs == MAX_XATTRS)
			return refuse(x, -E2BIG, "more than 64 extended attributes");
		got = fgetxattr(fd, n, x->values + used, MAX_XATTR_BYTES - used);
		if (got < 0)
			return refuse(x, -errno, strerror(errno));
		x->xattrs[x->n_xattrs++] = (struct sb_tar_out_xattr){ n, x->values + used,
								       (size_t)got };
		used += (size_t)got;
	}
	return 0;
}

/* ---- files with several names ---- */

/* @ret: the name under which it is in the archive already, or NULL. */
static int first_name(struct export *x, const struct stat *st, const char **ret)
{
	int r;

	*ret = NULL;
	if (st->st_nlink < 2)
		return 0;
	r = sb_tar_names_first(&x->links, st->st_ino, x->path, ret);
	return r < 0 ? refuse(x, r, r == -E2BIG ? "too many files with several names" : strerror(-r)) : 0;
}

/* ---- entries ---- */

static struct sb_tar_out entry(const struct export *x, enum sb_tar_out_type type,
			       const struct stat *st)
{
	/* where there is but one identity, the builder's root had it */
	bool alone = geteuid() != 0;

	return (struct sb_tar_out){ .type = type, .path = x->path, .mode = st->st_mode & 07777,
				    .uid = alone ? 0 : st->st_uid, .gid = alone ? 0 : st->st_gid,
				    .mtime_s = st->st_mtim.tv_sec };
}

static int put_file(struct export *x, int at, const char *name, const struct stat *seen)
{
	sb_autofd int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct sb_tar_out e;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(x, -errno, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_ino != seen->st_ino)
		return refuse(x, -EBADMSG, "it changes while it is read");
	e = entry(x, SB_TAR_OUT_FILE, &st);
	r = first_name(x, &st, &e.link);
	if (r < 0)
		return r;
	if (e.link) {
		e.type = SB_TAR_OUT_HARDLINK;
		return put_head(x, &e);
	}
	r = read_xattrs(x, fd);
	e.size = (uint64_t)st.st_size;
	e.xattrs = x->xattrs;
	e.n_xattrs = x->n_xattrs;
	if (r == 0)
		r = put_head(x, &e);
	return r < 0 ? r : put_content(x, fd, e.size);
}

static int put_symlink(struct export *x, int at, const char *name, const struct stat *st)
{
	struct sb_tar_out e = entry(x, SB_TAR_OUT_SYMLINK, st);
	char to[SB_PLAN_MAX_PATH + 1];
	ssize_t n = readlinkat(at, name, to, sizeof(to) - 1);

	if (n < 0)
		return refuse(x, -errno, strerror(errno));
	to[n] = '\0';
	if (strncmp(x->path, "etc/", 4) == 0 && strncmp(to, SERVED, sizeof(SERVED) - 1) == 0)
		return 0;
	e.link = to;
	return put_head(x, &e);
}

/* A whiteout; @len: of the path of the folder that holds it. */
static int put_whiteout(struct export *x, size_t len, const char *name)
{
	char path[SB_PLAN_MAX_PATH + sizeof(WH) + 1];

	(void)snprintf(path, sizeof(path), "%.*s%s" WH "%s", (int)len, x->path, len ? "/" : "", name);
	return put_empty(x, path);
}

/* Go into a folder: its own entry, its note of being opaque, then its names. */
static int enter(struct export *x, int *fd)
{
	struct sb_tar_out e;
	struct stat st;
	char v[8] = "";
	int r;

	if (x->depth == MAX_DEPTH)
		return refuse(x, -ELOOP, "folders are nested too deeply");
	if (fstat(*fd, &st) < 0)
		return refuse(x, -errno, strerror(errno));
	r = read_xattrs(x, *fd);
	e = entry(x, SB_TAR_OUT_DIR, &st);
	e.xattrs = x->xattrs;
	e.n_xattrs = x->n_xattrs;
	if (r == 0 && x->path[0])
		r = put_head(x, &e);
	if (r == 0 && x->path[0] && noted(*fd, "opaque", v, sizeof(v)) && strcmp(v, "y") == 0)
		r = put_whiteout(x, strlen(x->path), WH ".opq");
	if (r < 0)
		return r;
	x->levels[x->depth].dir = fdopendir(*fd);
	if (!x->levels[x->depth].dir)
		return refuse(x, -errno, strerror(errno));
	(void)sb_fd_take(fd);
	x->levels[x->depth++].len = strlen(x->path);
	return 0;
}

static int put_dir(struct export *x, int at, const char *name)
{
	sb_autofd int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? refuse(x, -errno, strerror(errno)) : enter(x, &fd);
}

static int put_other(struct export *x, size_t len, const char *name, const struct stat *st)
{
	struct sb_tar_out e = entry(x, SB_TAR_OUT_FIFO, st);

	if (S_ISFIFO(st->st_mode))
		return put_head(x, &e);
	if (S_ISSOCK(st->st_mode)) /* means nothing without its process */
		return 0;
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0))
		return put_whiteout(x, len, name);
	return refuse(x, -EPERM, "a device node");
}

static int one(struct export *x, const struct level *l, const char *name)
{
	int at = dirfd(l->dir);
	struct stat st;
	int n = snprintf(x->path + l->len, sizeof(x->path) - l->len, "%s%s", l->len ? "/" : "", name);

	if (n < 0 || (size_t)n >= sizeof(x->path) - l->len)
		return refuse(x, -ENAMETOOLONG, "its path is longer than 4095 bytes");
	if (left_out(x))
		return 0;
	if (strncmp(name, WH, sizeof(WH) - 1) == 0)
		return refuse(x, -EBADMSG, "its name would be read as a removal");
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return refuse(x, -errno, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return put_dir(x, at, name);
	if (S_ISREG(st.st_mode))
		return put_file(x, at, name, &st);
	if (S_ISLNK(st.st_mode))
		return put_symlink(x, at, name, &st);
	return put_other(x, l->len, name, &st);
}

/* The tree at @name of @upper, as @prefix of the archive. */
static int walk(struct export *x, int upper, const char *name, const char *prefix)
{
	sb_autofd int fd = openat(upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	(void)snprintf(x->path, sizeof(x->path), "%s", prefix);
	if (fd < 0)
		return errno == ENOENT ? 0 : refuse(x, -errno, strerror(errno));
	r = enter(x, &fd);
	while (r == 0 && x->depth > 0) {
		const struct level *l = &x->levels[x->depth - 1];
		struct dirent *d;

		errno = 0;
		d = readdir(l->dir);
		x->path[l->len] = '\0';
		if (!d && errno != 0)
			r = refuse(x, -errno, strerror(errno));
		else if (!d)
			(void)closedir(x->levels[--x->depth].dir);
		else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = one(x, l, d->d_name);
	}
	while (x->depth > 0)
		(void)closedir(x->levels[--x->depth].dir);
	return r;
}

static void done(struct export **px)
{
	struct export *x = *px;

	if (!x)
		return;
	sb_tar_names_done(&x->links);
	free(x->chunk);
	free(x->values);
	sb_buf_done(&x->head);
	free(x);
}

int sb_export_run(const struct sb_plan *plan, int upper, int out, struct sb_err *err)
{
	SB_CLEANUP(done) struct export *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return sb_err_set(err, -ENOMEM, "out of memory");
	sb_buf_init(&x->head, MAX_HEADER);
	x->plan = plan;
	x->out = out;
	x->err = err;
	x->chunk = malloc(CHUNK);
	x->values = malloc(MAX_XATTR_BYTES);
	if (!x->chunk || !x->values)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = walk(x, upper, "over", "");
	/* over the host's /usr the changes of /usr are apart */
	if (r == 0 && plan->image == SB_IMAGE_HOST)
		r = walk(x, upper, "usr", "usr");
	if (r == 0) {
		memset(x->chunk, 0, 2 * (size_t)SB_TAR_OUT_BLOCK);
		r = put(x, x->chunk, 2 * (size_t)SB_TAR_OUT_BLOCK);
	}
	return r;
}
