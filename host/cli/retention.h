#ifndef SB_HOST_CLI_RETENTION_H
#define SB_HOST_CLI_RETENTION_H
/*
 * Which sessions are remembered, and with them their snapshots: retention.* of the configuration. Snapshots
 * that no session holds go first (retention_snaps.h), then the oldest sessions; one that runs or is kept
 * stays, and by age and size the last one of each folder does, too. Snapshots that a remaining session names
 * stay. The audit log is not touched.
 */
#include "config/config.h"
#include "dirs.h"
#include "state/session_record.h"

struct retention {
	uint64_t sessions; /* at most so many; 0 = any number */
	uint64_t age_ns;   /* 0 = any age */
	uint64_t bytes;    /* of all snapshots; 0 = any size */
};
/* @any: a project's file may say so, too (it was named by --config). @ignored: path of a key that a
 * project's file sets in vain, or NULL. */
void retention_of(const struct cfg *c, bool any, struct retention *ret, const char **ignored);

struct retention_done {
	size_t sessions;
	size_t snapshots; /* of these */
	size_t loose;     /* that no session holds */
};
/* Return: 0; -errno with text; what was done is in @ret in any case. */
SB_MUST_CHECK int retention_apply(const struct cli_dirs *d, struct state *s, const struct retention *r,
				  struct retention_done *ret, struct sb_err *err);

/* After a session: whether it is time to, which takes no time to find out; then in the background. */
void retention_after(const struct cli_dirs *d, struct state *s, const struct retention *r);

#endif
