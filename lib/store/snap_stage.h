#ifndef SB_STORE_SNAP_STAGE_H
#define SB_STORE_SNAP_STAGE_H
/* Objects in memory, by their hash; bounded. May be used by several threads. */
#include "store/snap_tree.h"

struct sb_snap_stage;
SB_MUST_CHECK int sb_snap_stage_new(uint64_t cap, struct sb_snap_stage **ret);
struct sb_snap_stage *sb_snap_stage_free(struct sb_snap_stage *s);
/* What is there already is fine. Return: 0; -ENOSPC: more than @cap bytes; -ENOMEM. */
SB_MUST_CHECK int sb_snap_stage_add(struct sb_snap_stage *s, const uint8_t *hash, const void *p, size_t len);
void sb_snap_stage_drop(struct sb_snap_stage *s); /* all of them */
/* @ret: borrowed until @s is dropped or freed; may be NULL. */
bool sb_snap_stage_get(struct sb_snap_stage *s, const uint8_t *hash, const void **ret, size_t *ret_len);

#endif
