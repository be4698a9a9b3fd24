/* The log of an instance's output: two files at most, and the last bytes in memory. What cannot be
 * written is lost to the log alone; the session goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "hold.h"

static int open_file(struct hold_log *l)
{
	struct stat st;

	l->fd = openat(l->dir, "console.log",
		       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (l->fd < 0 || fstat(l->fd, &st) < 0)
		return -errno;
	l->len = (uint64_t)st.st_size;
	return 0;
}

int hold_log_open(struct hold_log *l, const char *dir, struct sb_err *err)
{
	int r;

	l->at = l->have = 0;
	l->fd = -1;
	l->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (l->dir < 0)
		return sb_err_set(err, -errno, "%.300s: %s", dir, strerror(errno));
	r = open_file(l);
	return r < 0 ? sb_err_set(err, r, "%.300s/console.log: %s", dir, strerror(-r)) : 0;
}

static void ring_add(struct hold_log *l, const char *p, size_t len)
{
	if (len > HOLD_RING) {
		p += len - HOLD_RING;
		len = HOLD_RING;
	}
	while (len > 0) {
		size_t n = SB_MIN(len, (size_t)HOLD_RING - l->at);

		memcpy(l->ring + l->at, p, n);
		l->at = (l->at + n) % HOLD_RING;
		l->have = SB_MIN(l->have + n, (size_t)HOLD_RING);
		p += n;
		len -= n;
	}
}

void hold_log_add(struct hold_log *l, const void *p, size_t len)
{
	ring_add(l, p, len);
	if (l->fd < 0)
		return;
	if (l->len + len > HOLD_LOG_MAX) {
		sb_fd_close(&l->fd);
		if (renameat(l->dir, "console.log", l->dir, "console.log.1") < 0 || open_file(l) < 0) {
			sb_fd_close(&l->fd);
			return;
		}
	}
	if (sb_fd_write_all(l->fd, p, len) == 0)
		l->len += len;
}

size_t hold_log_ring(const struct hold_log *l, char *to)
{
	size_t start = (l->at + HOLD_RING - l->have) % HOLD_RING;
	size_t first = SB_MIN(l->have, (size_t)HOLD_RING - start);

	memcpy(to, l->ring + start, first);
	memcpy(to + first, l->ring, l->have - first);
	return l->have;
}

void hold_log_close(struct hold_log *l)
{
	sb_fd_close(&l->fd);
	sb_fd_close(&l->dir);
}
