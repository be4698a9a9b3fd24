#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sb_fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int sb_fd_write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int sb_fd_read_all(int fd, void *buf, size_t len)
{
	char *p = buf;

	while (len > 0) {
		ssize_t n = read(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return -ENODATA;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int set_flag(int fd, int get, int set, int bit, bool on)
{
	int fl = fcntl(fd, get);

	if (fl < 0)
		return -errno;
	fl = on ? fl | bit : fl & ~bit;
	return fcntl(fd, set, fl) < 0 ? -errno : 0;
}

/* @at: NULL = where the descriptor stands */
static ssize_t read_until_end(int fd, void *buf, size_t len, const off_t *at)
{
	size_t have = 0;

	while (have < len) {
		char *to = (char *)buf + have;
		ssize_t n = at ? pread(fd, to, len - have, *at + (off_t)have) : read(fd, to, len - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

ssize_t sb_fd_read_most(int fd, void *buf, size_t len)
{
	return read_until_end(fd, buf, len, NULL);
}

ssize_t sb_fd_read_at(int fd, void *buf, size_t len, off_t at)
{
	return read_until_end(fd, buf, len, &at);
}

int sb_fd_set_nonblock(int fd, bool on)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int sb_fd_set_cloexec(int fd, bool on)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

static int read_whole(int fd, const struct stat *st, size_t cap, char **ret, size_t *ret_len)
{
	sb_autofree char *buf = NULL;
	size_t have = 0;
	size_t room = 4096;

	if (S_ISREG(st->st_mode) && st->st_size > 0 && (uint64_t)st->st_size <= cap)
		room = (size_t)st->st_size + 1;
	for (;;) {
		ssize_t n;

		if (!buf || have == room) {
			char *bigger;

			room = buf ? SB_MIN(room * 2, cap + 1) : SB_MIN(room, cap + 1);
			bigger = realloc(buf, room + 1);
			if (!bigger)
				return -ENOMEM;
			buf = bigger;
		}
		n = read(fd, buf + have, room - have);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		have += (size_t)n;
		if (have > cap)
			return -EFBIG;
	}
	buf[have] = '\0';
	*ret = sb_take(&buf);
	*ret_len = have;
	return 0;
}

int sb_fd_read_file(int dirfd, const char *path, size_t cap, char **ret, size_t *ret_len)
{
	/* a FIFO in a project would be waited for, for ever */
	sb_autofd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISBLK(st.st_mode))
		return -EINVAL;
	return read_whole(fd, &st, cap, ret, ret_len);
}

int sb_fd_read_own(int dirfd, const char *path, size_t cap, char **ret, size_t *ret_len)
{
	sb_autofd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
				  O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return -EPERM;
	return read_whole(fd, &st, cap, ret, ret_len);
}

int sb_fd_write_file(int dirfd, const char *name, const void *buf, size_t len, mode_t mode)
{
	char tmp[300];
	sb_autofd int fd = -1;
	int r;

	r = snprintf(tmp, sizeof(tmp), ".%.200s.%ld.tmp", name, (long)getpid());
	if (r < 0 || (size_t)r >= sizeof(tmp))
		return -ENAMETOOLONG;
	(void)unlinkat(dirfd, tmp, 0);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	r = sb_fd_write_all(fd, buf, len);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dirfd, tmp, 0);
		return r;
	}
	(void)fsync(dirfd);
	return 0;
}
