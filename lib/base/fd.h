#ifndef SB_BASE_FD_H
#define SB_BASE_FD_H
/* Descriptors: an empty slot is -1; close-on-exec from birth. */
#include <sys/types.h>

#include "base/mem.h"

static inline int sb_fd_take(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

/* sb_fd_close - close *fd if set and empty the slot; errno is kept */
void sb_fd_close(int *fd);
#define sb_autofd SB_CLEANUP(sb_fd_close)

/* Whole transfers on blocking descriptors. Return: 0, -errno; read: -ENODATA at an early end. */
SB_MUST_CHECK int sb_fd_write_all(int fd, const void *buf, size_t len);
SB_MUST_CHECK int sb_fd_read_all(int fd, void *buf, size_t len);

/* What comes until the end, at most @len bytes. Return: their number, less than @len at the end alone; -errno. */
SB_MUST_CHECK ssize_t sb_fd_read_most(int fd, void *buf, size_t len);
/* What is there at @at, at most @len bytes. Return: their number, less than @len at the end of the
 * file alone; -errno. */
SB_MUST_CHECK ssize_t sb_fd_read_at(int fd, void *buf, size_t len, off_t at);

SB_MUST_CHECK int sb_fd_set_nonblock(int fd, bool on);
SB_MUST_CHECK int sb_fd_set_cloexec(int fd, bool on);

/*
 * sb_fd_read_file - read a whole file of at most @cap bytes
 * @dirfd/@path: as for openat(2), opened O_NOFOLLOW
 * @ret:  malloc'd, NUL-terminated one past @ret_len; caller frees
 *
 * Return: 0; -EFBIG when the file is larger than @cap; -EINVAL: a FIFO, or the like; -errno.
 */
SB_MUST_CHECK int sb_fd_read_file(int dirfd, const char *path, size_t cap, char **ret,
				  size_t *ret_len);
/* The same of a file that decides something, so that only the caller can have written it. Return:
 * also -EPERM: no regular file, another's, or writable by others; SB_FD_NOT_OWN says so. */
SB_MUST_CHECK int sb_fd_read_own(int dirfd, const char *path, size_t cap, char **ret,
				 size_t *ret_len);
#define SB_FD_NOT_OWN "it must be a regular file of the caller that nobody else can write; if nobody " \
		      "did, give it to the caller with mode 0600, else move it away"

/*
 * sb_fd_write_file - replace @name in @dirfd durably: temporary file, fsync, rename, fsync of dir
 * Return: 0; -errno with the old file untouched.
 */
SB_MUST_CHECK int sb_fd_write_file(int dirfd, const char *name, const void *buf, size_t len,
				   mode_t mode);

#endif
