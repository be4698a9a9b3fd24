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
#define MAX_ROUNDS 65536U

/*
 * A descriptor is open for each level. What lies deeper than MAX_DEPTH is moved up into the top first, under
 * a name of ours, and removed in one of the next rounds: what a session made may be as deep as it likes.
 */
struct removal {
	dev_t dev;
	int top; /* borrowed */
	unsigned int n; /* for names */
	bool moved;
};

static int remove_at(struct removal *m, int dirfd, const char *name, int depth);

static int remove_entries(struct removal *m, DIR *d, int depth)
{
	const struct dirent *e;
	int first = 0;

	while ((e = readdir(d))) {
		int r;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = remove_at(m, dirfd(d), e->d_name, depth + 1);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

static int remove_contents(struct removal *m, int fd, int depth)
{
	DIR *d = fdopendir(fd); /* takes fd */
	unsigned int rounds = 0;
	int r;

	if (!d) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	if (depth > 0) {
		r = remove_entries(m, d, depth);
		(void)closedir(d);
		return r;
	}
	m->top = dirfd(d);
	do { /* somebody who still writes there does not keep us for ever */
		m->moved = false;
		rewinddir(d);
		r = remove_entries(m, d, depth);
	} while (r == 0 && m->moved && ++rounds < MAX_ROUNDS);
	(void)closedir(d);
	return r;
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

/* Another parent is written into the directory itself. */
static int move_up(struct removal *m, int dirfd, const char *name)
{
	char to[32];
	int r;

	do {
		(void)snprintf(to, sizeof(to), ".deep-%u", m->n++);
		r = renameat2(dirfd, name, m->top, to, RENAME_NOREPLACE);
		if (r < 0 && errno == EACCES && open_up(dirfd, name) == 0)
			r = renameat2(dirfd, name, m->top, to, RENAME_NOREPLACE);
	} while (r < 0 && errno == EEXIST && m->n != 0);
	if (r < 0)
		return errno == ENOENT ? 0 : -errno;
	m->moved = true;
	return 0;
}

static int open_folder(const struct removal *m, int dirfd, const char *name, int *ret)
{
	struct stat st;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = 0;

	if (fd < 0 && errno == EACCES && open_up(dirfd, name) == 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		r = -errno;
	else if (st.st_dev != m->dev)
		r = -EXDEV;
	else if (st.st_uid == geteuid() && (st.st_mode & 0700) != 0700 && fchmod(fd, 0700) < 0)
		r = -errno; /* nothing can be removed from one that is read-only */
	if (r < 0 && fd >= 0)
		(void)close(fd);
	*ret = fd;
	return r;
}

static int remove_at(struct removal *m, int dirfd, const char *name, int depth)
{
	int fd = -1;
	int r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > MAX_DEPTH)
		return move_up(m, dirfd, name);
	r = open_folder(m, dirfd, name, &fd);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = remove_contents(m, fd, depth);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT && r == 0)
		r = -errno;
	return r;
}

int sb_rmtree(int dirfd, const char *name)
{
	struct removal m = { .top = -1 };
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	m.dev = st.st_dev;
	return remove_at(&m, dirfd, name, 0);
}
