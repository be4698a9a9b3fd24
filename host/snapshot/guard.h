#ifndef SB_HOST_SNAPSHOT_GUARD_H
#define SB_HOST_SNAPSHOT_GUARD_H
/* Which changes between two snapshots are for the review: the one place for diff, session and quarantine. */
#include "core/guarded.h"
#include "snapshot.h"

struct snap_guard;
/* Of two snapshots of one folder; borrows from @before. Return: 0; -errno with the text. */
SB_MUST_CHECK int snap_guard_new(struct sb_snap_store *s, const struct sb_snap_manifest *before,
				 const struct sb_snap_manifest *after, struct snap_guard **ret, struct sb_err *err);
struct snap_guard *snap_guard_free(struct snap_guard *g);
/* Of a path where @at->v[before] was and @at->v[after] is. */
enum sb_guarded snap_guard_of(const struct snap_guard *g, const struct snap_at *at, size_t before, size_t after);

#endif
