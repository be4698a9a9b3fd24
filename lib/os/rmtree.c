#include "os/rmtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define MAX_DEPTH 64

static int remove_at(int dirfd, const char *name, dev_t dev, int depth);

static int remove_contents(int fd, dev_t dev, int depth)
{
	DIR *d = fdopendir(fd); /* takes fd */
	struct dirent *e;
	int first = 0;

	if (!d) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	while ((e = readdir(d))) {
		int r;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = remove_at(dirfd(d), e->d_name, dev, depth + 1);
		if (r < 0 && first == 0)
			first = r;
	}
	(void)closedir(d);
	return first;
}

/* A directory of ours that lets nobody in, as the work directory of an overlay. The mode is changed
 * through O_PATH: never of what a link points to. */
static int open_up(int dirfd, const char *name)
{
	char path[32];
	struct stat st;
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = -EACCES;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && chmod(path, 0700) == 0)
		r = 0;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int remove_at(int dirfd, const char *name, dev_t dev, int depth)
{
	struct stat st;
	int fd;
	int r = 0;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > MAX_DEPTH)
		return -ELOOP;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && open_up(dirfd, name) == 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0 || st.st_dev != dev) {
		(void)close(fd);
		return -EXDEV;
	}
	r = remove_contents(fd, dev, depth);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT && r == 0)
		r = -errno;
	return r;
}

int sb_rmtree(int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return remove_at(dirfd, name, st.st_dev, 0);
}
