/* A local file or folder as an archive. No link is followed: the folder may be one that a session can write. */
#include <dirent.h>
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
#include "wire/tar_out.h"

#define MAX_DEPTH 128
#define MAX_PATH 4095

int copy_open_dir(const char *path)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int copy_place(const char *path, int *ret_dir, const char **ret_name, struct sb_err *err)
{
	const char *slash = strrchr(path, '/');
	char dir[MAX_PATH + 1] = ".";
	size_t len = slash ? (size_t)(slash - path) : 0;

	*ret_name = slash ? slash + 1 : path;
	if (**ret_name == '\0' || strcmp(*ret_name, ".") == 0 || strcmp(*ret_name, "..") == 0 || len > MAX_PATH)
		return sb_err_set(err, -EINVAL, "\"%.200s\": give the name of a file or folder", path);
	if (slash)
		copy_text(dir, sizeof(dir), path, len ? len : 1);
	*ret_dir = copy_open_dir(dir);
	if (*ret_dir == -ELOOP)
		return sb_err_set(err, -ELOOP, "\"%.200s\" leads through a symbolic link, which a session may have "
					       "made: give the path that it stands for (realpath)", path);
	return *ret_dir < 0 ? sb_err_set(err, *ret_dir, "%.200s: %s", dir, strerror(-*ret_dir)) : 0;
}

struct pack {
	int out;
	uint64_t entries;
	struct sb_buf head;
	char path[MAX_PATH + 1];
	struct sb_err *err;
};

static int fail(struct pack *k, int code)
{
	return sb_err_set(k->err, code, "%.200s: %s", k->path, strerror(-code));
}

static int put(struct pack *k, const void *p, size_t len)
{
	int r = sb_fd_write_all(k->out, p, len);

	return r < 0 ? sb_err_set(k->err, r, "the instance takes no more: %s", strerror(-r)) : 0;
}

static int put_head(struct pack *k, const struct stat *st, enum sb_tar_out_type type, const char *link,
		    uint64_t size)
{
	const struct sb_tar_out e = { .type = type, .path = k->path, .link = link, .mode = st->st_mode & 0777,
				      .size = size, .mtime_s = st->st_mtim.tv_sec };
	int r;

	k->head.len = 0;
	r = sb_tar_out_header(&k->head, &e);
	return r < 0 ? fail(k, r) : put(k, k->head.data, k->head.len);
}

/* As many bytes as the header says: what grew is cut, what shrank ends the copy. */
static int pack_file(struct pack *k, int fd, const struct stat *st)
{
	static uint8_t buf[65536];
	static const uint8_t zero[SB_TAR_OUT_BLOCK];
	uint64_t left = (uint64_t)st->st_size;
	int r = put_head(k, st, SB_TAR_OUT_FILE, NULL, left);

	while (r == 0 && left > 0) {
		size_t n = (size_t)SB_MIN(left, (uint64_t)sizeof(buf));

		r = sb_fd_read_all(fd, buf, n);
		if (r < 0)
			return fail(k, r == -ENODATA ? -EIO : r);
		r = put(k, buf, n);
		left -= n;
	}
	return r < 0 ? r : put(k, zero, (size_t)(-(uint64_t)st->st_size & (SB_TAR_OUT_BLOCK - 1)));
}

static int pack_one(struct pack *k, int at, const char *name, unsigned int depth);

static int pack_folder(struct pack *k, int *fd, const struct stat *st, unsigned int depth)
{
	size_t len = strlen(k->path);
	const struct dirent *e;
	DIR *d;
	int r = put_head(k, st, SB_TAR_OUT_DIR, NULL, 0);

	if (r < 0)
		return r;
	d = depth < MAX_DEPTH ? fdopendir(*fd) : NULL;
	if (!d)
		return fail(k, depth < MAX_DEPTH ? -errno : -ELOOP);
	(void)sb_fd_take(fd);
	while (r == 0 && (e = readdir(d)) != NULL) {
		int n;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n = snprintf(k->path + len, sizeof(k->path) - len, "/%s", e->d_name);
		r = n < 0 || (size_t)n >= sizeof(k->path) - len ? fail(k, -ENAMETOOLONG)
								 : pack_one(k, dirfd(d), e->d_name, depth + 1);
		k->path[len] = '\0';
	}
	(void)closedir(d);
	return r;
}

static int pack_one(struct pack *k, int at, const char *name, unsigned int depth)
{
	char target[MAX_PATH + 1];
	sb_autofd int fd = -1;
	struct stat st;
	ssize_t n;

	if (++k->entries > COPY_MAX_ENTRIES)
		return fail(k, -E2BIG);
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(k, -errno);
	if (S_ISLNK(st.st_mode)) {
		if (depth == 0)
			return sb_err_set(k->err, -EINVAL, "%.200s: it is a symbolic link: name what it leads to", name);
		n = readlinkat(at, name, target, sizeof(target) - 1);
		if (n < 0)
			return fail(k, -errno);
		target[n] = '\0';
		return put_head(k, &st, SB_TAR_OUT_SYMLINK, target, 0);
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) /* sockets, pipes, devices */
		return depth > 0 ? 0 : fail(k, -EINVAL);
	fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(k, -errno);
	if (S_ISDIR(st.st_mode))
		return pack_folder(k, &fd, &st, depth);
	return S_ISREG(st.st_mode) ? pack_file(k, fd, &st) : fail(k, -EBADMSG);
}

int copy_pack(int dir, const char *name, const char *as, int out, struct sb_err *err)
{
	static struct pack k;
	static const uint8_t end[2 * SB_TAR_OUT_BLOCK];
	int r;

	k = (struct pack){ .out = out, .err = err };
	sb_buf_init(&k.head, 1U << 20);
	(void)snprintf(k.path, sizeof(k.path), "%s", as);
	r = pack_one(&k, dir, name, 0);
	if (r == 0)
		r = put(&k, end, sizeof(end));
	sb_buf_done(&k.head);
	return r;
}
