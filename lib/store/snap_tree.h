#ifndef SB_STORE_SNAP_TREE_H
#define SB_STORE_SNAP_TREE_H
/*
 * One folder of a snapshot as bytes: its entries in the order of their names. Pure: reads and writes
 * memory. Bytes: docs/protocol/snapshot.md. There is one way to write a folder, so that equal
 * folders are equal bytes and have the same SHA-256.
 */
#include "base/buf.h"

#define SB_SNAP_HASH 32
#define SB_SNAP_NAME_MAX 255
#define SB_SNAP_TARGET_MAX 4095
#define SB_SNAP_XATTR_MAX (1U << 20) /* bytes of one file's attributes together */

enum sb_snap_kind {
	SB_SNAP_NONE = 0,
	SB_SNAP_DIR = 1,
	SB_SNAP_FILE = 2,
	SB_SNAP_LINK = 3,
	SB_SNAP_OTHER = 4, /* listed, not kept */
};
/* Why an entry is listed only. */
enum sb_snap_why {
	SB_SNAP_KEPT = 0,
	SB_SNAP_FIFO = 1,
	SB_SNAP_SOCKET = 2,
	SB_SNAP_CHAR = 3,
	SB_SNAP_BLOCK = 4,
	SB_SNAP_MOUNT = 5,      /* another file system */
	SB_SNAP_UNREADABLE = 6, /* its owner's mode keeps the caller out */
	SB_SNAP_EXCLUDED = 7,   /* by a rule; nothing but the name is noted */
	SB_SNAP_DEEP = 8,       /* a folder deeper than SB_SNAP_DEPTH_MAX, or whose names might not fit a path */
	SB_SNAP_PIECES = 9,     /* a sparse file in more pieces than are kept */
};
#define SB_SNAP_WHY_LAST SB_SNAP_PIECES
#define SB_SNAP_DEPTH_MAX 1024

struct sb_snap_entry {
	const uint8_t *name; /* borrowed; no NUL after it */
	const uint8_t *target; /* LINK; borrowed */
	uint64_t size;         /* FILE: bytes */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t mode; /* & 07777 */
	uint32_t uid;
	uint32_t gid;
	uint16_t target_len;
	uint8_t name_len;
	uint8_t kind;
	uint8_t why;
	bool sparse;     /* FILE: the object is a list of extents, see snap_sparse below */
	bool has_xattrs; /* DIR, FILE */
	uint8_t hash[SB_SNAP_HASH];   /* DIR: of the folder; FILE: of the object */
	uint8_t xattrs[SB_SNAP_HASH]; /* of the object that holds them */
};

/* Names are given in ascending order of bytes, each once. */
void sb_snap_tree_start(struct sb_buf *to);
void sb_snap_tree_add(struct sb_buf *to, const struct sb_snap_entry *e);

struct sb_snap_reader {
	struct sb_rd rd;
	const uint8_t *last; /* the name before */
	uint8_t last_len;
};
/* @p: borrowed until the last entry was used. Return: 0; -EBADMSG: no folder. */
SB_MUST_CHECK int sb_snap_tree_open(struct sb_snap_reader *r, const void *p, size_t len);
/* Return: 1: *@ret is set, borrowing from the bytes; 0 at the end; -EBADMSG. */
SB_MUST_CHECK int sb_snap_tree_next(struct sb_snap_reader *r, struct sb_snap_entry *ret);

/* Whether everything but the name is the same. */
bool sb_snap_same(const struct sb_snap_entry *a, const struct sb_snap_entry *b);
/* Whether kind and content are the same (not mode, times, owner, attributes). */
bool sb_snap_same_content(const struct sb_snap_entry *a, const struct sb_snap_entry *b);
int sb_snap_name_cmp(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len);
/* Whether such a name can be in a folder: no slash, no NUL, not "." or "..". */
bool sb_snap_name_ok(const uint8_t *name, size_t len);

/* Extended attributes of one file: names in ascending order. */
void sb_snap_xattrs_start(struct sb_buf *to);
void sb_snap_xattrs_add(struct sb_buf *to, const char *name, const void *value, uint32_t len);
SB_MUST_CHECK int sb_snap_xattrs_open(struct sb_rd *r, const void *p, size_t len);
/* @name: 256 bytes, NUL-terminated. Return: 1; 0 at the end; -EBADMSG. */
SB_MUST_CHECK int sb_snap_xattrs_next(struct sb_rd *r, char name[256], const uint8_t **value,
				      uint32_t *len);

/* A sparse file's object: magic, number of extents (4 bytes), extents (offset, length: 8 bytes each),
 * ascending, then their data one after the other. */
#define SB_SNAP_EXTENTS_MAX (1U << 20)
#define SB_SNAP_SPARSE_HEAD 8
struct sb_snap_extent {
	uint64_t at;
	uint64_t len;
};
void sb_snap_sparse_head(struct sb_buf *to, const struct sb_snap_extent *v, uint32_t n);
/* @n: of the head's 8 bytes. Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_snap_sparse_count(const uint8_t head[SB_SNAP_SPARSE_HEAD], uint32_t *n);
/* One extent's 16 bytes; @min: where it may begin. Return: 0; -EBADMSG: beyond @size or before @min. */
SB_MUST_CHECK int sb_snap_sparse_extent(const uint8_t p[16], uint64_t min, uint64_t size,
					struct sb_snap_extent *ret);

#endif
