#ifndef SB_STORE_SNAP_CACHE_H
#define SB_STORE_SNAP_CACHE_H
/*
 * What the last capture of a folder saw of each file, so that a file which looks the same is not
 * read again. A help, never a truth: it counts only while the snapshot that it came with exists, its
 * checksum fits and the file's change time is clearly before that capture. In this machine's own
 * byte order; may be removed at any time.
 */
#include "store/snap_store.h"

struct sb_snap_seen { /* as it lies in the file, the name follows */
	uint64_t ino;
	uint64_t size;
	int64_t mtime_ns; /* modulo 2^64 */
	int64_t ctime_ns;
	uint64_t child; /* DIR: offset of its record */
	uint32_t mode;  /* st_mode */
	uint32_t uid;
	uint32_t gid;
	uint8_t kind;
	uint8_t why;
	uint8_t flags;
	uint8_t name_len;
	uint8_t hash[SB_SNAP_HASH];
	uint8_t xattrs[SB_SNAP_HASH]; /* zeroes without SB_SNAP_SEEN_XATTRS */
} SB_PACKED;
#define SB_SNAP_SEEN_SPARSE 1U
#define SB_SNAP_SEEN_XATTRS 2U
#define SB_SNAP_SEEN_AGAIN 4U /* to be read again whatever it looks like */

struct sb_snap_cache;
/* @key: a name for the folder. Return: 0: *@ret is NULL when there is none that counts; -ENOMEM. */
SB_MUST_CHECK int sb_snap_cache_open(struct sb_snap_store *s, const char *key, uint64_t dev,
				     struct sb_snap_cache **ret);
struct sb_snap_cache *sb_snap_cache_free(struct sb_snap_cache *c);
uint64_t sb_snap_cache_root(const struct sb_snap_cache *c); /* offset of its record */
int64_t sb_snap_cache_before(const struct sb_snap_cache *c); /* ctimes from here on do not count */

struct sb_snap_seen_dir {
	const uint8_t *p; /* the next entry */
	const uint8_t *end;
	const uint8_t *hash; /* of the folder */
	uint32_t left;
};
/* Return: false: no such record. */
bool sb_snap_cache_dir(const struct sb_snap_cache *c, uint64_t at, struct sb_snap_seen_dir *ret);
/* Return: false at the end. @name: borrowed. */
bool sb_snap_cache_next(struct sb_snap_seen_dir *d, struct sb_snap_seen *ret, const uint8_t **name);

/* Writing: a folder's record after those of its folders. Safe for threads. */
struct sb_snap_cachew;
SB_MUST_CHECK int sb_snap_cachew_new(struct sb_snap_store *s, struct sb_snap_cachew **ret);
struct sb_snap_cachew *sb_snap_cachew_free(struct sb_snap_cachew *w); /* removes what was not ended */
void sb_snap_seen_start(struct sb_buf *to, const uint8_t *hash, uint32_t n);
void sb_snap_seen_add(struct sb_buf *to, const struct sb_snap_seen *e, const uint8_t *name);
/* Return: the record's offset; -errno. */
SB_MUST_CHECK int64_t sb_snap_cachew_add(struct sb_snap_cachew *w, const struct sb_buf *record);
SB_MUST_CHECK int sb_snap_cachew_end(struct sb_snap_cachew *w, const char *key, const uint8_t *manifest,
				     uint64_t dev, uint64_t root, int64_t before);

#endif
