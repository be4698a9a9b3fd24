#ifndef SB_HOST_CLI_RETENTION_SNAPS_H
#define SB_HOST_CLI_RETENTION_SNAPS_H
/*
 * Snapshots that no session holds: those before an undo or a restore, and those of sessions that were
 * forgotten by hand. They go before any session does. Never: those made by hand (`sendbox snapshot create`),
 * the last one before an undo of each folder, and what a session that is kept, or runs, was undone from.
 */
#include <jansson.h>

#include "state/session_record.h"

struct retention_snaps {
	json_t *v; /* owned; objects of `sendbox snapshot ls --json` that may go, the oldest first */
};
void retention_snaps_done(struct retention_snaps *l);
SB_MUST_CHECK int retention_snaps_list(struct state *s, struct retention_snaps *ret, struct sb_err *err);
/* Remove the first @n. @removed: counted up. Return: 0; -errno with the text. */
SB_MUST_CHECK int retention_snaps_drop(struct retention_snaps *l, size_t n, size_t *removed, struct sb_err *err);
/* How many of them are older than @ns since 1970. */
size_t retention_snaps_older(const struct retention_snaps *l, uint64_t ns);

#endif
