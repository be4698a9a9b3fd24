/*
 * Further calls that fail, for what writes to disks: as t_fault.c, with wraps of its own. The names are
 * those that a build with 64-bit offsets calls.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#include "t.h"

int __real_fdatasync(int f);
int __wrap_fdatasync(int f);
int __wrap_fdatasync(int f)
{
	return t_fault_hit(EIO) ? -1 : __real_fdatasync(f);
}

int __real_ftruncate64(int f, off_t n);
int __wrap_ftruncate64(int f, off_t n);
int __wrap_ftruncate64(int f, off_t n)
{
	return t_fault_hit(EIO) ? -1 : __real_ftruncate64(f, n);
}

ssize_t __real_pread64(int f, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int f, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int f, void *p, size_t n, off_t at)
{
	return t_fault_hit(EIO) ? -1 : __real_pread64(f, p, n, at);
}

/* A disk that fills up: half of it is written. Or, without a failure, a few bytes at a time. */
size_t t_disk_chunk;
ssize_t __real_pwrite64(int f, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int f, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int f, const void *p, size_t n, off_t at)
{
	if (t_fault_hit(ENOSPC)) {
		if (__real_pwrite64(f, p, n / 2, at) >= 0)
			errno = ENOSPC;
		return -1;
	}
	return __real_pwrite64(f, p, t_disk_chunk > 0 && n > t_disk_chunk ? t_disk_chunk : n, at);
}
