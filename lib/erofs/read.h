#ifndef SB_EROFS_READ_H
#define SB_EROFS_READ_H
/*
 * Reader of one EROFS file that lies in memory as a whole (mapped, or a fuzzer's bytes): what
 * sendbox and mkfs.erofs without compression write, see erofs_fs.h; everything else is refused.
 *
 * Pure: no descriptor, no allocation. No number of the file is believed: each answer lies within
 * the bytes given, and every call ends after work that is bounded by one directory (look-up: by its
 * logarithm) or one inode. What a directory says may still be nonsense (entries that lead back to
 * it, names twice): whoever walks must bound the walk.
 */
#include "erofs/erofs_fs.h"

struct sb_erofs {
	const uint8_t *p; /* borrowed for the life of all that comes from it */
	uint64_t len;     /* bytes that belong to the file system */
	uint64_t meta;    /* byte offset of inode 0 */
	uint64_t xattrs;  /* byte offset of the shared extended attributes */
	uint64_t root;    /* nid */
	uint64_t inodes;  /* as the file says; for statfs */
	uint64_t time;    /* s, of compact inodes */
	uint32_t time_nsec;
};

struct sb_erofs_node {
	uint64_t nid;
	uint64_t size;   /* bytes; device: 0 */
	uint64_t time;   /* s */
	uint32_t time_nsec;
	uint32_t mode;   /* with the type, as in stat */
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint32_t dev;    /* device: new_encode_dev, 0 = a whiteout of an overlay */
	/* Internal: offsets into the file, checked. */
	uint64_t data;   /* of byte 0 .. whole - 1 */
	uint64_t whole;  /* bytes at @data; the rest at @tail */
	uint64_t tail;
	uint64_t xattr;
	uint32_t xattr_len; /* 0 = none */
};

struct sb_erofs_entry {
	uint64_t nid;
	const char *name; /* not terminated; without '/' and NUL, not empty */
	size_t name_len;
	uint8_t type;     /* SB_EROFS_FT_*, as the directory says */
};

/* Return: 0; -EBADMSG: not such a file, or broken (reason in @why, static, may be NULL). */
SB_MUST_CHECK int sb_erofs_open(const uint8_t *p, size_t len, struct sb_erofs *ret,
				const char **why);

/* Return: 0; -ENOENT: no inode can stand there; -EBADMSG. */
SB_MUST_CHECK int sb_erofs_node(const struct sb_erofs *fs, uint64_t nid,
				struct sb_erofs_node *ret);

/*
 * sb_erofs_span - the longest run of consecutive bytes of @n from @at on
 * Return: its length, 0 at or after the end; the bytes are at @ret (unset at the end).
 */
size_t sb_erofs_span(const struct sb_erofs *fs, const struct sb_erofs_node *n, uint64_t at,
		     const uint8_t **ret);

/* Return: 0; -ENOENT; -ENOTDIR; -EBADMSG. */
SB_MUST_CHECK int sb_erofs_lookup(const struct sb_erofs *fs, const struct sb_erofs_node *dir,
				  const char *name, size_t len, struct sb_erofs_entry *ret);

/*
 * sb_erofs_next - entry by entry, "." and ".." among them
 * @pos: 0 at first; a value that this function stored goes on where it was stored
 * Return: 1 with @ret; 0 at the end; -EINVAL (no such position); -ENOTDIR; -EBADMSG.
 */
SB_MUST_CHECK int sb_erofs_next(const struct sb_erofs *fs, const struct sb_erofs_node *dir,
				uint64_t *pos, struct sb_erofs_entry *ret);

#define SB_EROFS_XATTR_NAME 300 /* longest prefix, 255 bytes, NUL */
struct sb_erofs_xattr {
	char name[SB_EROFS_XATTR_NAME]; /* whole, terminated */
	const uint8_t *value;
	size_t len;
};
/* sb_erofs_xattr - one after the other; @pos: 0 at first
 * Return: 1 with @ret; 0: there is none any more; 2: one of an unknown prefix was passed over, go
 * on; -EBADMSG. */
SB_MUST_CHECK int sb_erofs_xattr(const struct sb_erofs *fs, const struct sb_erofs_node *n,
				 uint64_t *pos, struct sb_erofs_xattr *ret);
/* Return: 0; -ENODATA; -EBADMSG. */
SB_MUST_CHECK int sb_erofs_xattr_get(const struct sb_erofs *fs, const struct sb_erofs_node *n,
				     const char *name, struct sb_erofs_xattr *ret);

#endif
