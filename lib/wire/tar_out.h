#ifndef SB_WIRE_TAR_OUT_H
#define SB_WIRE_TAR_OUT_H
/*
 * Writer of tar headers: POSIX.1-2001 (pax) with a ustar header, which alone is used where it holds
 * everything. Contents follow, padded to whole blocks; two empty blocks end the archive.
 */
#include "base/buf.h"

#define SB_TAR_OUT_BLOCK 512U

enum sb_tar_out_type {
	SB_TAR_OUT_FILE = '0',
	SB_TAR_OUT_HARDLINK = '1',
	SB_TAR_OUT_SYMLINK = '2',
	SB_TAR_OUT_DIR = '5',
	SB_TAR_OUT_FIFO = '6',
};

struct sb_tar_out_xattr {
	const char *name;
	const void *value;
	size_t len;
};
struct sb_tar_out { /* all borrowed */
	enum sb_tar_out_type type;
	const char *path; /* relative, bytes; a folder's without a slash at the end */
	const char *link; /* HARDLINK, SYMLINK; else NULL */
	uint32_t mode;    /* permission bits */
	uint32_t uid;
	uint32_t gid;
	uint64_t size;    /* of a FILE's content */
	int64_t mtime_s;
	const struct sb_tar_out_xattr *xattrs;
	size_t n_xattrs;
};

/* Append the header's blocks to @out. Return: 0; -E2BIG: xattrs of megabytes; -ENOMEM. */
SB_MUST_CHECK int sb_tar_out_header(struct sb_buf *out, const struct sb_tar_out *e);

#endif
