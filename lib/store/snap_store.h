#ifndef SB_STORE_SNAP_STORE_H
#define SB_STORE_SNAP_STORE_H
/*
 * The folder of all snapshots of one user:
 *
 *   format      "sendbox-snapshots 1\n"
 *   lock        flock: shared by who adds or reads, exclusive for who removes
 *   packs/      objects, see snap_pack.h
 *   manifests/  one file a snapshot, its name its id
 *   cache/      what the last capture of a folder saw, see snap_cache.h; may be removed at any time
 *   undo/       what is being restored, see docs/protocol/snapshot.md
 *
 * sb_snap_store_has() and sb_snap_store_get() may be called by several threads.
 */
#include "base/err.h"
#include "store/snap_manifest.h"
#include "store/snap_pack.h"

struct sb_snap_store;

/* @dir: borrowed; empty at first. @exclusive waits for all others. Return: 0; -errno, @err is set. */
SB_MUST_CHECK int sb_snap_store_open(int dir, bool exclusive, struct sb_snap_store **ret,
				     struct sb_err *err);
struct sb_snap_store *sb_snap_store_free(struct sb_snap_store *s);
static inline void sb_snap_store_freep(struct sb_snap_store **s)
{
	*s = sb_snap_store_free(*s);
}
#define sb_autosnapstore SB_CLEANUP(sb_snap_store_freep)

enum sb_snap_part { SB_SNAP_PACKS = 0, SB_SNAP_MANIFESTS, SB_SNAP_CACHE, SB_SNAP_UNDO, SB_SNAP_PARTS };
int sb_snap_store_dir(const struct sb_snap_store *s, enum sb_snap_part part); /* borrowed */
struct sb_digest *sb_snap_store_digest(const struct sb_snap_store *s);        /* main thread's */
/* All packs; damaged ones are left out and counted. Return: 0; -errno. */
SB_MUST_CHECK int sb_snap_store_packs(struct sb_snap_store *s, const struct sb_pack *const **ret,
				      size_t *ret_n);
typedef void sb_snap_damage_fn(void *arg, const char *name, const char *why);
/* Tell of packs that are left out, as they are found. */
void sb_snap_store_on_damage(struct sb_snap_store *s, sb_snap_damage_fn *fn, void *arg);
/* Forget the packs that were loaded; others are there now. */
void sb_snap_store_reload(struct sb_snap_store *s);

/* Whether it is on the disk: what is staged does not count. Return: 1; 0; -errno. */
SB_MUST_CHECK int sb_snap_store_has(struct sb_snap_store *s, const uint8_t *hash);
/* Where an object is. Return: 0; -ENOENT; -errno. */
SB_MUST_CHECK int sb_snap_store_find(struct sb_snap_store *s, const uint8_t *hash, int *ret_fd,
				     uint64_t *ret_at, uint64_t *ret_len);
/*
 * sb_snap_store_get - a whole object of at most @cap bytes, its hash checked
 * @ret: malloc'd. Return: 0; -ENOENT: not there; -EBADMSG: damaged; -EFBIG; -errno.
 */
SB_MUST_CHECK int sb_snap_store_get(struct sb_snap_store *s, struct sb_digest *d, const uint8_t *hash,
				    size_t cap, uint8_t **ret, size_t *ret_len);

/*
 * sb_snap_store_stage - keep an object, or a manifest, in memory only: for a comparison when nothing can be
 * written. It can be read like others, until it is dropped; it never counts as stored. SB_SNAP_STAGE_MAX
 * bytes in all.
 * Return: 0; -ENOSPC; -ENOMEM.
 */
#define SB_SNAP_STAGE_MAX (1ULL << 30)
SB_MUST_CHECK int sb_snap_store_stage(struct sb_snap_store *s, const uint8_t *hash, const void *p, size_t len);
/* A snapshot, staged. @id: set. */
SB_MUST_CHECK int sb_snap_store_stage_manifest(struct sb_snap_store *s, const struct sb_snap_manifest *m,
					       uint8_t id[SB_SNAP_HASH]);

/* Forget all that was staged. Nobody uses the store at this moment. */
void sb_snap_store_unstage(struct sb_snap_store *s);

/* Add a snapshot. @id: set. Return: 0; -errno. */
SB_MUST_CHECK int sb_snap_store_put(struct sb_snap_store *s, const struct sb_snap_manifest *m, bool sync,
				    uint8_t id[SB_SNAP_HASH]);
/* A snapshot by its id, checked. @ret_bytes: malloc'd, borrowed by @ret. Return: 0; -ENOENT; -EBADMSG;
 * -EPROTONOSUPPORT; -errno. */
SB_MUST_CHECK int sb_snap_store_load(struct sb_snap_store *s, const uint8_t *id,
				     struct sb_snap_manifest *ret, uint8_t **ret_bytes);
/* All ids, malloc'd, in no order. Return: 0; -errno. */
SB_MUST_CHECK int sb_snap_store_list(struct sb_snap_store *s, uint8_t (**ret)[SB_SNAP_HASH],
				     size_t *ret_n);
/* Put @len bytes in place of @name, by a temporary file and a rename. */
SB_MUST_CHECK int sb_snap_store_write(int dir, const char *name, const void *p, size_t len, bool sync);

#define SB_SNAP_TREE_CAP (64U << 20) /* bytes of one folder: 700 000 files; each level of a comparison holds one */

#endif
