#include "store/snap_unsynced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define LIST ".unsynced"
#define NAME_LEN 64
#define LINE_LEN (NAME_LEN + 1)

/* Open and locked: who adds and who empties exclude each other. */
static int open_list(int dir)
{
	int fd = openat(dir, LIST, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = 0;

	if (fd < 0)
		return -errno;
	while (r == 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			r = -errno;
	if (r < 0) {
		sb_fd_close(&fd);
		return r;
	}
	return fd;
}

int sb_snap_unsynced_note(int dir, const char *name)
{
	sb_autofd int fd = open_list(dir);
	char line[LINE_LEN + 1];
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* a line that was cut, by a kill or a full disk, counts for none */
	if (st.st_size % LINE_LEN != 0 && ftruncate(fd, st.st_size - st.st_size % LINE_LEN) < 0)
		return -errno;
	(void)snprintf(line, sizeof(line), "%.64s\n", name);
	r = sb_fd_write_all(fd, line, strlen(line));
	return r;
}

static int settle_one(int dir, const char *name)
{
	sb_autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* it never got its name, or was removed */
	return fdatasync(fd) < 0 ? -errno : 0;
}

int sb_snap_unsynced_settle(int dir, bool *any)
{
	sb_autofd int fd = open_list(dir);
	char line[LINE_LEN];
	ssize_t n = 0;
	int r = 0;

	*any = false;
	if (fd < 0)
		return fd;
	for (off_t at = 0; r == 0 && (n = sb_fd_read_at(fd, line, sizeof(line), at)) == LINE_LEN; at += LINE_LEN) {
		line[NAME_LEN] = '\0';
		*any = true;
		if (strspn(line, "0123456789abcdef") == NAME_LEN)
			r = settle_one(dir, line);
	}
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0 && *any && (fsync(dir) < 0 || ftruncate(fd, 0) < 0))
		r = -errno;
	return r;
}
