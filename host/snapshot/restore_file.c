/*
 * One path of a restore. The folder is opened beneath the tree without following any link, then
 * everything happens in that descriptor: data under a temporary name, then a rename. So whoever
 * swaps a folder for a link meanwhile makes a step fail, and leads none anywhere else.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/rmtree.h"
#include "restore_i.h"

#define FD_PATH 40

int snap_open_beneath(int root, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(unsigned int)(flags | O_CLOEXEC),
				.resolve = (uint64_t)(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
					   RESOLVE_NO_XDEV) };
	int fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void fd_path(int fd, char out[FD_PATH])
{
	(void)snprintf(out, FD_PATH, "/proc/self/fd/%d", fd);
}

/* The folder of @path, kept open for the next one. @ret_name: the last component. */
static int parent_of(struct apply *a, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (a->dir >= 0 && strlen(a->dir_path) == n && strncmp(a->dir_path, path, n) == 0)
		return 0;
	sb_fd_close(&a->dir);
	memcpy(a->dir_path, path, n);
	a->dir_path[n] = '\0';
	fd = snap_open_beneath(a->c->tree->fd, a->dir_path, O_RDONLY | O_DIRECTORY);
	if (fd == -EACCES) { /* closed to its owner: open it, the folder's own step sets it right */
		sb_autofd int p = snap_open_beneath(a->c->tree->fd, a->dir_path, O_PATH | O_DIRECTORY);
		char name[FD_PATH];

		fd_path(p, name);
		if (p < 0 || fchmodat(AT_FDCWD, name, 0700, 0) < 0)
			return p < 0 ? p : -errno;
		fd = snap_open_beneath(a->c->tree->fd, a->dir_path, O_RDONLY | O_DIRECTORY);
	}
	if (fd < 0)
		return fd;
	a->dir = fd;
	return 0;
}

/* Make the folder writable for its owner. Return: 0: try again; -errno: it is another matter. */
static int open_for_owner(const struct apply *a, int code)
{
	struct stat st;

	if (code != -EACCES || fstat(a->dir, &st) < 0 || (st.st_mode & 0300) == 0300 ||
	    fchmod(a->dir, (st.st_mode & 07777) | 0700) < 0)
		return code;
	return 0;
}

/* Is what is there what was looked at? */
static int check_now(const struct apply *a, const struct op *o, const char *name)
{
	struct stat st;

	if (fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (o->now_kind == SB_SNAP_NONE)
		return o->kind == OP_HARD ? 0 : -ESTALE; /* there was nothing */
	if (o->now_kind == SB_SNAP_FILE &&
	    (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != o->now_size ||
	     st.st_mtim.tv_sec != o->now_s || (uint32_t)st.st_mtim.tv_nsec != o->now_ns))
		return -ESTALE;
	return (o->now_kind == SB_SNAP_LINK) == S_ISLNK(st.st_mode) ||
			       o->now_kind == SB_SNAP_OTHER
		       ? 0
		       : -ESTALE;
}

/* Is @st what was looked at, or what this restore made? Somebody may have renamed another one onto its name. */
static bool same_node(const struct apply *a, const struct op *o, const struct stat *st)
{
	if (o->now_kind == SB_SNAP_NONE || (o->kind == OP_DIR_META && o->now_kind != SB_SNAP_DIR)) /* made a moment ago; a file system may give it to its own owner */
		return !a->root || st->st_uid == geteuid() || st->st_uid == o->e.uid;
	if (st->st_uid != o->now_uid || st->st_gid != o->now_gid)
		return false;
	return o->kind == OP_DIR_META || /* its times and mode changed with what was done in it */
	       ((uint64_t)st->st_size == o->now_size && (st->st_mode & 07777) == o->now_mode &&
		st->st_mtim.tv_sec == o->now_s && (uint32_t)st->st_mtim.tv_nsec == o->now_ns);
}

/* --- metadata --- */

#define LIST_MAX 65536 /* the kernel's */

static int drop_xattrs(const char *path, const uint8_t *want, size_t len)
{
	sb_autofree char *list = malloc(LIST_MAX);
	ssize_t n = list ? listxattr(path, list, LIST_MAX) : 0;

	if (!list || (n < 0 && errno != ENOTSUP))
		return list ? -errno : -ENOMEM;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(list + at) + 1) {
		const uint8_t *value;
		struct sb_rd r;
		char name[256];
		uint32_t v_len;
		bool keep = strncmp(list + at, "security.", 9) == 0 || strncmp(list + at, "trusted.", 8) == 0;
		int k = want ? sb_snap_xattrs_open(&r, want, len) : -1;

		while (!keep && k == 0 && sb_snap_xattrs_next(&r, name, &value, &v_len) == 1)
			keep = strcmp(name, list + at) == 0;
		if (!keep && removexattr(path, list + at) < 0 && errno != ENODATA && errno != ENOTSUP)
			return -errno;
	}
	return 0;
}

static int set_xattrs(struct apply *a, const char *path, const struct sb_snap_entry *e)
{
	sb_autofree uint8_t *want = NULL;
	const uint8_t *value;
	size_t len = 0;
	struct sb_rd rd;
	char name[256];
	uint32_t n;
	int r = 0;

	if (e->has_xattrs)
		r = sb_snap_store_get(a->c->store, a->digest, e->xattrs, SB_SNAP_XATTR_MAX, &want, &len);
	if (r == 0)
		r = drop_xattrs(path, want, len);
	if (r < 0 || !want)
		return r;
	r = sb_snap_xattrs_open(&rd, want, len);
	while (r == 0 && (r = sb_snap_xattrs_next(&rd, name, &value, &n)) == 1)
		r = setxattr(path, name, value, n, 0) < 0 ? -errno : 0;
	return r;
}

/* Owner, attributes, mode, times, in this order: each can undo the one before. */
static int set_meta(struct apply *a, int fd, const struct sb_snap_entry *e, bool fresh)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
				 { .tv_sec = e->mtime_s, .tv_nsec = e->mtime_ns } };
	char path[FD_PATH];
	struct stat st;
	int r = 0;

	fd_path(fd, path);
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != e->uid || st.st_gid != e->gid) &&
	    fchownat(fd, "", a->root ? e->uid : (uid_t)-1, e->gid, AT_EMPTY_PATH) < 0)
		r = -errno;
	if (r == 0 && (!fresh || e->has_xattrs))
		r = set_xattrs(a, path, e);
	if (r == 0 && (fstat(fd, &st) < 0 || ((st.st_mode & 07777) != e->mode &&
					      fchmodat(AT_FDCWD, path, e->mode, 0) < 0)))
		r = -errno;
	if (utimensat(fd, "", t, AT_EMPTY_PATH) < 0 && r == 0)
		r = -errno;
	return r;
}

/* --- data --- */

static int copy_part(int from, uint64_t *at, uint64_t len, int to, uint64_t to_at, struct sb_digest *d)
{
	uint8_t buf[65536];

	while (len > 0) {
		size_t n = SB_MIN((uint64_t)sizeof(buf), len);
		ssize_t got = sb_fd_read_at(from, buf, n, (off_t)*at);

		if (got != (ssize_t)n)
			return got < 0 ? (int)got : -EBADMSG;
		sb_digest_add(d, buf, n);
		for (size_t done = 0; to >= 0 && done < n;) {
			ssize_t w = pwrite(to, buf + done, n - done, (off_t)(to_at + done));

			if (w < 0 && errno == EINTR)
				continue;
			if (w <= 0)
				return w < 0 ? -errno : -EIO;
			done += (size_t)w;
		}
		*at += n;
		to_at += n;
		len -= n;
	}
	return 0;
}

static int copy_sparse(struct apply *a, int from, uint64_t at, uint64_t len, uint64_t size, int to)
{
	const uint64_t start = at;
	uint8_t head[SB_SNAP_SPARSE_HEAD];
	sb_autofree struct sb_snap_extent *x = NULL;
	uint64_t min = 0;
	uint32_t n = 0;
	int r = 0;

	if (len < sizeof(head) || sb_fd_read_at(from, head, sizeof(head), (off_t)at) != (ssize_t)sizeof(head) ||
	    sb_snap_sparse_count(head, &n) < 0)
		return -EBADMSG;
	sb_digest_add(a->digest, head, sizeof(head));
	at += sizeof(head);
	x = calloc((size_t)n + 1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++, at += 16) {
		uint8_t raw[16];

		if (sb_fd_read_at(from, raw, sizeof(raw), (off_t)at) != (ssize_t)sizeof(raw) ||
		    sb_snap_sparse_extent(raw, min, size, &x[i]) < 0)
			return -EBADMSG;
		sb_digest_add(a->digest, raw, sizeof(raw));
		min = x[i].at + x[i].len;
	}
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = copy_part(from, &at, x[i].len, to, x[i].at, a->digest);
	if (r == 0 && at - start != len)
		r = -EBADMSG;
	return r == 0 && ftruncate(to, (off_t)size) < 0 ? -errno : r;
}

static int copy_object(struct apply *a, const struct sb_snap_entry *e, int to)
{
	uint8_t got[SB_SNAP_HASH];
	uint64_t at = 0;
	uint64_t len = 0;
	int from = -1;
	int r = sb_snap_store_find(a->c->store, e->hash, &from, &at, &len);

	if (r < 0)
		return r == -ENOENT ? -ENODATA : r;
	sb_digest_start(a->digest);
	r = e->sparse ? copy_sparse(a, from, at, len, e->size, to)
		      : len != e->size ? -EBADMSG : copy_part(from, &at, len, to, 0, a->digest);
	sb_digest_end(a->digest, got);
	return r == 0 && memcmp(got, e->hash, sizeof(got)) != 0 ? -EBADMSG : r;
}

/* --- one path --- */

/* Open what is new under the temporary name. */
static int open_tmp(struct apply *a)
{
	int fd = openat(a->dir, a->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && open_for_owner(a, -errno) == 0)
		fd = openat(a->dir, a->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int into_place(struct apply *a, const char *name)
{
	if (renameat(a->dir, a->tmp, a->dir, name) == 0)
		return 0;
	return -errno;
}

static int write_file(struct apply *a, const struct op *o, const char *name)
{
	sb_autofd int fd = open_tmp(a);
	int r = fd < 0 ? fd : copy_object(a, &o->e, fd);

	if (fd < 0)
		return r;
	if (r == 0)
		r = set_meta(a, fd, &o->e, true);
	if (r == 0)
		r = into_place(a, name);
	if (r < 0)
		(void)unlinkat(a->dir, a->tmp, 0);
	return r;
}

bool snap_shrinks(const struct op *o)
{
	return o->kind == OP_FILE && o->now_kind == SB_SNAP_FILE && o->now_size > o->e.size;
}

/* On a full disk what is there goes first when it takes more room than what comes: the snapshot of what is
 * there has it, and who is killed between the two finds nothing there, and goes on. */
static int do_file(struct apply *a, const struct op *o, const char *name)
{
	int r = write_file(a, o, name);
	struct stat st;

	if ((r != -ENOSPC && r != -EDQUOT) || !snap_shrinks(o) ||
	    fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_blocks * 512 < o->e.size || unlinkat(a->dir, name, 0) < 0)
		return r;
	return write_file(a, o, name);
}

static int do_link(struct apply *a, const struct op *o, const char *name)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
				 { .tv_sec = o->e.mtime_s, .tv_nsec = o->e.mtime_ns } };
	int r = symlinkat(o->target, a->dir, a->tmp) < 0 ? -errno : 0;

	if (r < 0 && open_for_owner(a, r) == 0)
		r = symlinkat(o->target, a->dir, a->tmp) < 0 ? -errno : 0;
	if (r < 0)
		return r;
	if (a->root && fchownat(a->dir, a->tmp, o->e.uid, o->e.gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (utimensat(a->dir, a->tmp, t, AT_SYMLINK_NOFOLLOW) < 0 && r == 0)
		r = -errno;
	if (r == 0)
		r = into_place(a, name);
	if (r < 0)
		(void)unlinkat(a->dir, a->tmp, 0);
	return r;
}

static int do_hard(struct apply *a, const struct op *o, const char *name)
{
	const char *slash = strrchr(o->target, '/');
	char path[SB_SNAP_PATH_MAX + 1];
	sb_autofd int other = -1;
	size_t n = slash ? (size_t)(slash - o->target) : 0;
	int r;

	memcpy(path, o->target, n);
	path[n] = '\0';
	other = snap_open_beneath(a->c->tree->fd, path, O_PATH | O_DIRECTORY);
	if (other < 0)
		return other;
	r = linkat(other, slash ? slash + 1 : o->target, a->dir, a->tmp, 0) < 0 ? -errno : 0;
	if (r < 0 && open_for_owner(a, r) == 0)
		r = linkat(other, slash ? slash + 1 : o->target, a->dir, a->tmp, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = into_place(a, name);
	(void)unlinkat(a->dir, a->tmp, 0); /* of two names of one file a rename does nothing */
	return r;
}

static int do_dir(struct apply *a, const struct op *o, const char *name)
{
	int r = mkdirat(a->dir, name, (o->e.mode & 0777) | 0700) < 0 ? -errno : 0;

	if (r < 0 && open_for_owner(a, r) == 0)
		r = mkdirat(a->dir, name, (o->e.mode & 0777) | 0700) < 0 ? -errno : 0;
	return r == -EEXIST ? 0 : r; /* what is there is opened as a folder, or refused */
}

static int do_remove(struct apply *a, const struct op *o, const char *name)
{
	int r = unlinkat(a->dir, name, o->was_dir ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;

	if (r < 0 && open_for_owner(a, r) == 0)
		r = unlinkat(a->dir, name, o->was_dir ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
	if (r == -ENOTDIR && o->was_dir && o->e.kind == SB_SNAP_OTHER) /* closed: it was not known */
		r = unlinkat(a->dir, name, 0) < 0 ? -errno : 0;
	return r == -ENOENT ? 0 : r;
}

static int do_meta(struct apply *a, const struct op *o)
{
	bool dir = o->kind == OP_DIR_META;
	sb_autofd int fd = snap_open_beneath(a->c->tree->fd, o->path,
					     O_PATH | O_NOFOLLOW | (dir ? O_DIRECTORY : 0));
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((!dir && !S_ISREG(st.st_mode)) || !same_node(a, o, &st))
		return -ESTALE;
	return set_meta(a, fd, &o->e, false);
}

int snap_apply(struct apply *a, const struct op *o)
{
	const char *name = NULL;
	int r;

	if (o->kind == OP_META || o->kind == OP_DIR_META)
		return do_meta(a, o);
	r = parent_of(a, o->path, &name);
	if (r < 0)
		return r == -ENOENT && o->kind == OP_REMOVE ? 0 : r;
	if (!a->c->force && (o->kind == OP_FILE || o->kind == OP_LINK || o->kind == OP_REMOVE) && !o->was_dir) {
		r = check_now(a, o, name);
		if (r < 0)
			return r;
	}
	switch (o->kind) {
	case OP_FILE:
		return do_file(a, o, name);
	case OP_LINK:
		return do_link(a, o, name);
	case OP_HARD:
		return do_hard(a, o, name);
	case OP_DIR:
		return do_dir(a, o, name);
	case OP_REMOVE:
		return do_remove(a, o, name);
	case OP_META:
	case OP_DIR_META:
	case OP_NONE:
	case OP_LEFT:
	default:
		return 0;
	}
}
