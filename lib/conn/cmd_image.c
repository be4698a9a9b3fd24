#include "conn/cmd_image.h"

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
#include "crypto/crypto.h"

#define LINK_TRIES 16 /* openat2 answers EAGAIN when something is renamed meanwhile */

static const char *const program_folders[SB_CMD_IMAGE_FOLDERS] = {
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
};

static int open_in(int root, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT,
	};

	for (int i = 0; i < LINK_TRIES; i++) {
		int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

static int fd_text(int fd, char *out, size_t cap)
{
	char link[40];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, cap);
	if (n < 0)
		return -errno;
	if ((size_t)n >= cap)
		return -ENAMETOOLONG;
	out[n] = '\0';
	return 0;
}

/* Whether @path inside @root is the file that @st is of. */
static bool is_there(int root, const char *path, const struct stat *st)
{
	sb_autofd int fd = open_in(root, path, O_PATH | O_NOFOLLOW);
	struct stat now;

	return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

int sb_cmd_fd_path(int root_fd, int fd, char *path, size_t cap)
{
	char root[SB_CMD_PATH_MAX];
	char full[SB_CMD_PATH_MAX];
	static const char gone[] = " (deleted)";
	struct stat st;
	size_t len;
	size_t n;
	int r = fd_text(root_fd, root, sizeof(root));

	if (r == 0)
		r = fd_text(fd, full, sizeof(full));
	if (r < 0)
		return r;
	n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(full, root, n) != 0 || (full[n] != '/' && full[n] != '\0'))
		return -ENOENT;
	len = (size_t)snprintf(path, cap, "%s", full[n] ? full + n : "/");
	if (len >= cap)
		return -ENAMETOOLONG;
	/* What a removed file's text ends in may be part of a name, too. */
	if (len < sizeof(gone) || strcmp(path + len - (sizeof(gone) - 1), gone) != 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	return is_there(root_fd, path, &st) ? 0 : -ENOENT;
}

static void identity(const struct stat *st, struct sb_cmd_file *ret)
{
	*ret = (struct sb_cmd_file){ (uint64_t)st->st_dev, (uint64_t)st->st_ino,
				     (uint64_t)st->st_size };
}

int sb_cmd_resolve(int root_fd, const char *cwd, const char *name, char *path, size_t cap,
		   struct sb_cmd_file *file, int *fd)
{
	char joined[2 * SB_CMD_PATH_MAX + 2];
	sb_autofd int f = -1;
	struct stat st;
	int r;

	if (name[0] == '\0')
		return -ENOENT;
	if (strlen(name) >= SB_CMD_PATH_MAX || (name[0] != '/' && strlen(cwd) >= SB_CMD_PATH_MAX))
		return -ENAMETOOLONG;
	if (name[0] == '/')
		(void)snprintf(joined, sizeof(joined), "%s", name);
	else
		(void)snprintf(joined, sizeof(joined), "%s/%s", cwd, name);
	f = open_in(root_fd, joined, O_PATH);
	if (f < 0)
		return f;
	if (fstat(f, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		return -EACCES;
	r = sb_cmd_fd_path(root_fd, f, path, cap);
	if (r < 0)
		return r;
	identity(&st, file);
	if (fd)
		*fd = sb_fd_take(&f);
	return 0;
}

/* A descriptor that can be read for one that may be O_PATH. */
static int open_again(int fd)
{
	char link[40];
	int r;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	r = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return r < 0 ? -errno : r;
}

int sb_cmd_read_head(int fd, char head[SB_CMD_HEAD])
{
	sb_autofd int f = open_again(fd);

	return f < 0 ? f : (int)sb_fd_read_at(f, head, SB_CMD_HEAD, 0);
}

/* ---- struct sb_cmd_files ---- */

/* @path as it is, a folder too. */
static int find_path(const struct sb_cmd_image *i, const char *name, char *path, size_t cap,
		     struct sb_cmd_file *ret)
{
	sb_autofd int f = open_in(i->root, name, O_PATH);
	struct stat st;

	if (f < 0)
		return f;
	if (fstat(f, &st) < 0)
		return -errno;
	identity(&st, ret);
	return sb_cmd_fd_path(i->root, f, path, cap);
}

/* What is not there, or cannot be looked at by who asks, is not there. */
static bool is_missing(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ELOOP || r == -EXDEV ||
	       r == -ENAMETOOLONG;
}

static int image_find(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		      struct sb_cmd_file *ret)
{
	struct sb_cmd_image *i = arg;
	char full[SB_CMD_PATH_MAX];
	unsigned int k = 0;
	unsigned int at = 0;
	int r;

	if (strchr(name, '/')) {
		r = nth == 0 ? find_path(i, name, path, cap, ret) : -ENOENT;
		return is_missing(r) ? -ENOENT : r;
	}
	if (strlen(name) >= sizeof(i->last))
		return -ENOENT; /* no file system has such a name */
	if (nth > 0 && nth == i->last_nth + 1 && strcmp(name, i->last) == 0) {
		k = i->last_folder + 1;
		at = nth;
	}
	for (; k < i->n_folders; k++) {
		size_t n = (size_t)snprintf(full, sizeof(full), "%s/%s", i->folder[k], name);

		if (n >= sizeof(full))
			return -ENOENT;
		r = sb_cmd_resolve(i->root, "/", full, path, cap, ret, NULL);
		if (r < 0 && !is_missing(r))
			return r;
		if (r == 0 && at++ == nth) {
			memcpy(i->last, name, strlen(name) + 1);
			i->last_nth = nth;
			i->last_folder = k;
			return 0;
		}
	}
	return -ENOENT;
}

static int list_folder(const struct sb_cmd_image *i, const char *folder,
		       int (*each)(void *each_arg, const char *name), void *each_arg)
{
	int fd = open_in(i->root, folder, O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int r = 0;

	if (!d) {
		r = fd < 0 ? fd : -errno;
		sb_fd_close(&fd);
		return is_missing(r) ? 0 : r;
	}
	while (r >= 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = each(each_arg, e->d_name);
	(void)closedir(d);
	return r < 0 ? r : 0;
}

static int image_list(void *arg, int (*each)(void *each_arg, const char *name), void *each_arg)
{
	const struct sb_cmd_image *i = arg;
	int r = 0;

	for (unsigned int k = 0; k < i->n_folders && r == 0; k++)
		r = list_folder(i, i->folder[k], each, each_arg);
	return r;
}

static int image_digest(void *arg, const char *path, int fd, uint8_t ret[32])
{
	const struct sb_cmd_image *i = arg;
	sb_autofd int f = fd >= 0 ? open_again(fd) :
				    open_in(i->root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	uint64_t len;

	if (f < 0)
		return f;
	return sb_sha256_fd(f, ret, &len);
}

int sb_cmd_image_init(struct sb_cmd_image *i, int root_fd)
{
	struct sb_cmd_file seen[SB_CMD_IMAGE_FOLDERS];

	*i = (struct sb_cmd_image){ .root = root_fd };
	i->files = (struct sb_cmd_files){ image_find, image_list, image_digest, i };
	for (size_t k = 0; k < SB_CMD_IMAGE_FOLDERS; k++) {
		char path[SB_CMD_PATH_MAX];
		struct sb_cmd_file *f = &seen[i->n_folders];
		unsigned int same = 0;
		int r = find_path(i, program_folders[k], path, sizeof(path), f);

		if (is_missing(r))
			continue;
		if (r < 0)
			return r;
		while (same < i->n_folders &&
		       (seen[same].dev != f->dev || seen[same].ino != f->ino))
			same++;
		if (same == i->n_folders)
			i->folder[i->n_folders++] = program_folders[k];
	}
	return 0;
}
