#ifndef SB_STORE_SNAP_PACK_H
#define SB_STORE_SNAP_PACK_H
/*
 * Packs: files of many objects, one after the other, with an index at the end. Written once under a
 * temporary name, then renamed to the SHA-256 of the index; never changed. A pack whose end is not
 * whole is no pack. Bytes: docs/protocol/snapshot.md.
 *
 * Readers are immutable after opening. One packer is shared by threads; each has a block of its own.
 */
#include "crypto/digest.h"
#include "store/snap_tree.h"

#define SB_PACK_NAME 65            /* hex and NUL */
#define SB_PACK_BIG (8ULL << 20)   /* an object from here on gets a pack of its own */
#define SB_PACK_HEAD 8
#define SB_PACK_FOOT 56

struct sb_pack_entry {
	uint8_t hash[SB_SNAP_HASH];
	uint64_t at;
	uint64_t len;
};

struct sb_pack {
	int fd;
	char name[SB_PACK_NAME];
	uint64_t data_end;          /* where the index begins */
	struct sb_pack_entry *v;    /* ascending by hash */
	size_t n;
};
/* Return: 0; -EBADMSG: damaged, @why is set; -errno. */
SB_MUST_CHECK int sb_pack_open(int dir, const char *name, struct sb_digest *d, struct sb_pack **ret,
			       const char **why);
struct sb_pack *sb_pack_free(struct sb_pack *p);
const struct sb_pack_entry *sb_pack_find(const struct sb_pack *p, const uint8_t *hash);
/* Whether the objects lie one after the other, with nothing between them. */
bool sb_pack_tiles(const struct sb_pack *p);

struct sb_packer;
struct sb_pack_block { /* of one thread; zero it */
	struct sb_buf data;
	struct sb_pack_entry *v; /* at: in data */
	size_t n;
	size_t room;
};
/* @dir: borrowed. Nothing is made before the first object. */
SB_MUST_CHECK int sb_packer_new(int dir, struct sb_packer **ret);
struct sb_packer *sb_packer_free(struct sb_packer *p); /* removes what was not ended */
/* Return: 1: it is the caller's to add; 0: somebody has it, or did; -ENOMEM. */
SB_MUST_CHECK int sb_packer_claim(struct sb_packer *p, const uint8_t *hash);
/* A claimed object. Return: 0; -errno: the pack is lost. */
SB_MUST_CHECK int sb_packer_add(struct sb_packer *p, struct sb_pack_block *b, const uint8_t *hash,
				const void *data, size_t len);
SB_MUST_CHECK int sb_packer_flush(struct sb_packer *p, struct sb_pack_block *b);
void sb_pack_block_done(struct sb_pack_block *b);
/* Write the index and give the pack its name. All blocks are flushed. @sync: to the disk as well.
 * @ret_n, @ret_bytes: what is new. Return: 0; -errno. */
SB_MUST_CHECK int sb_packer_end(struct sb_packer *p, struct sb_digest *d, bool sync, size_t *ret_n,
				uint64_t *ret_bytes);

/* A big object: a pack with nothing else. */
struct sb_pack_big {
	int dir; /* borrowed */
	int fd;
	char tmp[32];
	uint64_t len;
};
SB_MUST_CHECK int sb_pack_big_start(int dir, struct sb_pack_big *b);
SB_MUST_CHECK int sb_pack_big_add(struct sb_pack_big *b, const void *p, size_t len);
SB_MUST_CHECK int sb_pack_big_end(struct sb_pack_big *b, const uint8_t *hash, struct sb_digest *d);
void sb_pack_big_drop(struct sb_pack_big *b); /* fine after the end, too */

#define SB_SNAP_TMP "tmp-" /* names of unfinished files begin so */
/* A new file for writing in @dir. @name: its name. Return: descriptor; -errno. */
SB_MUST_CHECK int sb_snap_tmp(int dir, char name[32]);

#endif
