#ifndef SB_EROFS_TREE_H
#define SB_EROFS_TREE_H
/*
 * A file system in memory: entries (a name in a directory) and inodes (what it names; a hard link
 * is a second entry). Nothing is resolved through links. Memory comes from an arena with a cap and
 * is given back all at once; what was removed still counts, so the cap bounds what an archive can
 * cost.
 */
#include "base/mem.h"

struct sb_erofs_inode {
	uint64_t size;       /* regular files, links */
	int64_t mtime;
	uint64_t nid;        /* set by sb_erofs_finish */
	uint64_t tail;       /* regular: where the bytes after the last whole block are spooled */
	const char *target;  /* symbolic link */
	const uint8_t *xattrs; /* entries as on disk, without the header */
	uint32_t xattrs_len;
	uint32_t block;      /* first block of the data */
	uint32_t mtime_nsec;
	uint32_t uid;
	uint32_t gid;
	uint32_t nlink;
	uint32_t rdev;       /* as on disk */
	uint16_t mode;       /* with type */
	bool inlined;        /* the tail stands with the inode */
	bool placed;         /* has its nid */
	bool written;
};
struct sb_erofs_entry {
	struct sb_erofs_entry *parent; /* the root: itself */
	struct sb_erofs_entry *hash_next;
	struct sb_erofs_entry *next;   /* siblings */
	struct sb_erofs_entry *prev;
	struct sb_erofs_entry *child;  /* directory: the first one */
	struct sb_erofs_inode *inode;
	uint32_t n_children;
	uint32_t layer;                /* for the caller: which layer touched it last */
	uint32_t purged;               /* for the caller: which layer removed what was in it */
	uint16_t name_len;
	bool opaque;                   /* for the caller */
	char name[];                   /* not terminated */
};
struct sb_erofs_tree {
	struct sb_erofs_entry *root;
	struct sb_erofs_entry **slots;
	size_t n_slots;                /* a power of two */
	uint64_t n_entries;            /* ever made */
	uint64_t n_live;
	uint64_t max_entries;
	size_t used;
	size_t max_bytes;
	struct sb_erofs_chunk *chunks;
	/* Called when the last entry of an inode was removed; may be NULL. */
	void (*dropped)(void *arg, const struct sb_erofs_inode *i);
	void *arg;
};

/* Return: 0, with a root directory 0755 of 0:0; -ENOMEM. */
SB_MUST_CHECK int sb_erofs_tree_init(struct sb_erofs_tree *t, uint64_t max_entries, size_t max_bytes);
void sb_erofs_tree_done(struct sb_erofs_tree *t);

/* Memory that lives as long as the tree. Return: NULL at the cap or without memory. */
SB_MUST_CHECK void *sb_erofs_alloc(struct sb_erofs_tree *t, size_t len);
/* A zeroed inode with nlink 0. */
SB_MUST_CHECK struct sb_erofs_inode *sb_erofs_inode_new(struct sb_erofs_tree *t);

SB_MUST_CHECK struct sb_erofs_entry *sb_erofs_lookup(const struct sb_erofs_tree *t,
						     const struct sb_erofs_entry *dir,
						     const char *name, size_t len);
/*
 * sb_erofs_link - a new entry @name (1 to 255 bytes, not there yet) in @dir
 * Return: 0; -E2BIG: too many entries; -ENOMEM: at the cap; -EMLINK.
 */
SB_MUST_CHECK int sb_erofs_link(struct sb_erofs_tree *t, struct sb_erofs_entry *dir,
				const char *name, size_t len, struct sb_erofs_inode *inode,
				struct sb_erofs_entry **ret);
/* Remove @e and everything beneath it; never the root. */
void sb_erofs_unlink(struct sb_erofs_tree *t, struct sb_erofs_entry *e);
/* Next in a walk of @top: what is in it, else what follows; NULL at the end. No recursion. */
SB_MUST_CHECK struct sb_erofs_entry *sb_erofs_walk(const struct sb_erofs_entry *top,
						   struct sb_erofs_entry *at);
/* The same without what is in @at. */
SB_MUST_CHECK struct sb_erofs_entry *sb_erofs_skip(const struct sb_erofs_entry *top,
						   struct sb_erofs_entry *at);
/* Order the names of @dir by unsigned bytes. */
void sb_erofs_sort(struct sb_erofs_entry *dir);
/* < 0, 0, > 0 */
int sb_erofs_name_cmp(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
