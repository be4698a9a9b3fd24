#ifndef SB_HOST_CLI_COPY_H
#define SB_HOST_CLI_COPY_H
/*
 * Files between this machine and a running instance, as tar streams. What comes from the instance is hostile:
 * nothing of it is written but beneath a new folder of ours, through no link, and it gets its place by one
 * rename when it is whole.
 */
#include <string.h>

#include "base/err.h"

#define COPY_MAX_ENTRIES 1000000U
#define COPY_MAX_BYTES (64ULL << 30)

/* @len bytes of @from and a NUL in @to, as far as there is room. */
static inline void copy_text(char *to, size_t cap, const char *from, size_t len)
{
	size_t n = SB_MIN(len, cap - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}

/* Open a local folder by a path that leads through no symbolic link and is none. Return: descriptor; -errno. */
SB_MUST_CHECK int copy_open_dir(const char *path);
/* Folder of a local path and the name in it; the path leads through no symbolic link. @ret_name: borrowed.
 * Return: 0; -EINVAL, -ELOOP with what to do; -errno. */
SB_MUST_CHECK int copy_place(const char *path, int *ret_dir, const char **ret_name, struct sb_err *err);

struct copy_counts {
	uint64_t entries;
	uint64_t left_out; /* links that lead out of what is copied */
};
/* Write what stands at @name in @dir to @out as an archive whose top is called @as. Blocks.
 * Return: 0; -errno with text. */
SB_MUST_CHECK int copy_pack(int dir, const char *name, const char *as, int out, struct sb_err *err);
/*
 * copy_unpack - read an archive of one file or folder called @top from @in to its end
 * @to: an empty folder of ours; @top is made in it
 * Return: 0; -EBADMSG: not such an archive, the text names the entry; -E2BIG, -EFBIG; -errno.
 */
SB_MUST_CHECK int copy_unpack(int in, int to, const char *top, struct copy_counts *ret, struct sb_err *err);

#endif
