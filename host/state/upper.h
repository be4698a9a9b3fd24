#ifndef SB_HOST_STATE_UPPER_H
#define SB_HOST_STATE_UPPER_H
/* The layer that an instance writes to: for a micro-VM <dir>/disk.ext4, sparse; for a namespace the
 * directory <dir>/upper. */
#include "core/plan.h"

#define UPPER_DISK_BYTES (16ULL << 30) /* apparent size where nobody says another */

/*
 * upper_make - make it unless it is there
 * @path: SB_PLAN_MAX_PATH + 1 bytes
 * @made: whether this call made it; may be NULL
 * The disk is made beside and renamed: one that is there is whole. Nothing of an existing one is read.
 * Return: 0; -errno with text.
 */
SB_MUST_CHECK int upper_make(const char *dir, enum sb_provider_id provider, uint64_t bytes,
			     char *path, enum sb_upper_kind *ret_kind, bool *made,
			     struct sb_err *err);

#endif
