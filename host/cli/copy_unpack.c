/*
 * Theory of operation. Names are relative, of parts that are none of "", "." and "..", without control
 * characters, and all beneath the one top. A folder that an entry stands in was made by this archive, and is
 * opened with openat2 so that no link is passed even if somebody puts one there meanwhile (the target may lie
 * in a folder that the session shares). Files are made new, never opened. Links are made when they cannot
 * lead out: relative, ".." only at their beginning and no more of them than the link is deep. Permissions of
 * folders come last. Owners, set-id bits and attributes are dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "copy.h"
#include "wire/tar.h"

struct folder {
	char *path;
	uint16_t mode;
	int64_t mtime;
};
struct unpack {
	int to;
	const char *top;
	struct copy_counts n;
	uint64_t bytes_left;
	int file; /* being written; -1 = none */
	uint16_t mode;
	int64_t mtime;
	struct folder *folders;
	size_t n_folders;
	size_t room;
	struct sb_err *err;
};

static int refuse(struct unpack *u, const char *name, int code, const char *why)
{
	char shown[100];
	size_t n = strnlen(name, sizeof(shown) - 1);

	for (size_t i = 0; i < n; i++)
		shown[i] = name[i] > 0x20 && name[i] < 0x7f ? name[i] : '?';
	shown[n] = '\0';
	return sb_err_set(u->err, code, "entry \"%s\": %s", shown, why);
}

static bool name_ok(const char *name, const char *top)
{
	size_t n = strlen(top);

	if (strncmp(name, top, n) != 0 || (name[n] != '\0' && name[n] != '/'))
		return false;
	for (const char *p = name; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 0 || len > 255 || (len == 1 && p[0] == '.') || (len == 2 && memcmp(p, "..", 2) == 0))
			return false;
		for (size_t i = 0; i < len; i++)
			if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
				return false;
		p += len;
		if (*p == '/' && *++p == '\0')
			return false;
	}
	return true;
}

/* The folder that @name stands in. */
static int parent_of(struct unpack *u, const char *name, int *ret, const char **last)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	const char *slash = strrchr(name, '/');
	char dir[SB_TAR_MAX_PATH + 1] = ".";

	if (slash)
		copy_text(dir, sizeof(dir), name, (size_t)(slash - name));
	*last = slash ? slash + 1 : name;
	*ret = (int)syscall(SYS_openat2, u->to, dir, &how, sizeof(how));
	return *ret < 0 ? refuse(u, name, errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? -EBADMSG : -errno,
				 "it stands in no folder of this archive")
			: 0;
}

static int made(struct unpack *u, const char *name)
{
	return refuse(u, name, errno == EEXIST ? -EBADMSG : -errno,
		      errno == EEXIST ? "it is there twice" : strerror(errno));
}

static int folder(struct unpack *u, const struct sb_tar_entry *e, const char *name, int at, const char *last)
{
	if (mkdirat(at, last, 0700) < 0)
		return made(u, name);
	if (u->n_folders == u->room) {
		size_t room = u->room ? 2 * u->room : 256;
		struct folder *v = realloc(u->folders, room * sizeof(*v));

		if (!v)
			return refuse(u, name, -ENOMEM, "out of memory");
		u->folders = v;
		u->room = room;
	}
	u->folders[u->n_folders] = (struct folder){ strdup(name), e->mode & 0777, e->mtime };
	return u->folders[u->n_folders++].path ? 0 : refuse(u, name, -ENOMEM, "out of memory");
}

/* How deep @name is beneath the top. */
static size_t depth(const char *name)
{
	size_t n = 0;

	for (; *name; name++)
		n += *name == '/';
	return n;
}

static bool stays_inside(const char *name, const char *target)
{
	size_t up = 0;

	if (target[0] == '\0' || target[0] == '/')
		return false;
	for (; strncmp(target, "../", 3) == 0; target += 3)
		up++;
	if (strcmp(target, "..") == 0) {
		up++;
		target += 2;
	}
	for (const char *p = target; *p; p++) /* behind another part it may mean anything */
		if ((unsigned char)*p < 0x20 || *p == 0x7f ||
		    (strncmp(p, "..", 2) == 0 && (p == target || p[-1] == '/') && (p[2] == '/' || p[2] == '\0')))
			return false;
	return up < depth(name);
}

static int hard_link(struct unpack *u, const struct sb_tar_entry *e, const char *name, int at, const char *last)
{
	const char *to = strncmp(e->link, "./", 2) == 0 ? e->link + 2 : e->link;
	sb_autofd int from = -1;
	const char *first;
	struct stat st;
	int r;

	if (!name_ok(to, u->top))
		return refuse(u, name, -EBADMSG, "a hard link to something else than this archive's");
	r = parent_of(u, to, &from, &first);
	if (r < 0)
		return r;
	if (fstatat(from, first, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return refuse(u, name, -EBADMSG, "a hard link to no file");
	return linkat(from, first, at, last, 0) < 0 ? made(u, name) : 0;
}

static int entry(void *arg, const struct sb_tar_entry *e)
{
	struct unpack *u = arg;
	const char *given = strncmp(e->path, "./", 2) == 0 ? e->path + 2 : e->path;
	char name[SB_TAR_MAX_PATH + 1];
	size_t len = strlen(given);
	sb_autofd int at = -1;
	const char *last;
	int r;

	(void)snprintf(name, sizeof(name), "%s", given);
	if (e->type == SB_TAR_DIR && len > 1 && name[len - 1] == '/')
		name[len - 1] = '\0';
	if (!name_ok(name, u->top))
		return refuse(u, e->path, -EBADMSG, "not a name beneath what was asked for");
	if (++u->n.entries > COPY_MAX_ENTRIES)
		return refuse(u, name, -E2BIG, "more than 1000000 entries");
	r = parent_of(u, name, &at, &last);
	if (r < 0)
		return r;
	switch (e->type) {
	case SB_TAR_DIR:
		return folder(u, e, name, at, last);
	case SB_TAR_REG:
		if (e->size > u->bytes_left)
			return refuse(u, name, -EFBIG, "more than 64 GiB");
		u->bytes_left -= e->size;
		u->mode = e->mode & 0777;
		u->mtime = e->mtime;
		u->file = openat(at, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		return u->file < 0 ? made(u, name) : 0;
	case SB_TAR_SYMLINK:
		if (depth(name) == 0)
			return refuse(u, name, -EINVAL, "it is a symbolic link: name what it leads to");
		if (!stays_inside(name, e->link)) {
			u->n.left_out++;
			return 0;
		}
		return symlinkat(e->link, at, last) < 0 ? made(u, name) : 0;
	case SB_TAR_HARD_LINK:
		return hard_link(u, e, name, at, last);
	case SB_TAR_NONE:
	case SB_TAR_CHR:
	case SB_TAR_BLK:
	case SB_TAR_FIFO:
	default:
		return refuse(u, name, -EBADMSG, "a device or a pipe");
	}
}

static int data(void *arg, const uint8_t *p, size_t len)
{
	struct unpack *u = arg;
	int r = sb_fd_write_all(u->file, p, len);

	return r < 0 ? sb_err_set(u->err, r, "cannot write: %s", strerror(-r)) : 0;
}

static int end(void *arg)
{
	struct unpack *u = arg;
	const struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = u->mtime } };
	int r = fchmod(u->file, u->mode) < 0 || futimens(u->file, t) < 0 ? -errno : 0;

	sb_fd_close(&u->file);
	return r < 0 ? sb_err_set(u->err, r, "cannot write: %s", strerror(-r)) : 0;
}

/* From the innermost: one that nobody may write is finished by then. */
static int finish_folders(struct unpack *u)
{
	for (size_t i = u->n_folders; i-- > 0;) {
		const struct folder *f = &u->folders[i];
		const struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = f->mtime } };
		sb_autofd int at = -1;
		sb_autofd int fd = -1;
		const char *last;
		int r = parent_of(u, f->path, &at, &last);

		if (r < 0)
			return r;
		fd = openat(at, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || futimens(fd, t) < 0 || fchmod(fd, f->mode) < 0)
			return refuse(u, f->path, -errno, strerror(errno));
	}
	return 0;
}

static int read_all(struct unpack *u, int in, struct sb_tar *t)
{
	static uint8_t buf[65536];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(in, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? sb_err_set(u->err, -errno, "read: %s", strerror(errno))
			  : sb_tar_push(t, buf, (size_t)n, u->err);
	}
	if (r == 0)
		r = sb_tar_end(t, u->err);
	if (r == 0 && u->n.entries == 0)
		r = sb_err_set(u->err, -EBADMSG, "the archive is empty");
	return r;
}

int copy_unpack(int in, int to, const char *top, struct copy_counts *ret, struct sb_err *err)
{
	static const struct sb_tar_ops ops = { .entry = entry, .data = data, .end = end };
	struct unpack u = { .to = to, .top = top, .bytes_left = COPY_MAX_BYTES, .file = -1, .err = err };
	sb_autotar struct sb_tar *t = NULL;
	int r = sb_tar_new(&ops, &u, &t);

	if (r == 0)
		r = read_all(&u, in, t);
	if (r == 0)
		r = finish_folders(&u);
	sb_fd_close(&u.file);
	for (size_t i = 0; i < u.n_folders; i++)
		free(u.folders[i].path);
	free(u.folders);
	if (r == 0)
		*ret = u.n;
	return r;
}
