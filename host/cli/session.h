#ifndef SB_HOST_CLI_SESSION_H
#define SB_HOST_CLI_SESSION_H
/*
 * The directory of one session, <run>/sessions/<id>: lock, plan.json, console.log, pids, keep.
 * Whoever holds the flock on "lock" owns the session; a directory whose lock is free belongs to
 * nobody and is cleared by gc.
 */
#include "provider/provider.h"

struct cli_session {
	char path[4096];
	int dir;  /* owned */
	int lock; /* owned; shared with the monitor */
};

SB_MUST_CHECK int cli_session_new(const struct sb_dirs *d, const uint8_t id[16],
				  struct cli_session *ret, struct sb_err *err);
void cli_session_done(struct cli_session *s); /* closes; the directory stays */

/*
 * cli_gc - clear the remains of sessions that nobody owns
 * @all: kept ones too
 * @ret_n: sessions cleared
 */
SB_MUST_CHECK int cli_gc(const struct sb_dirs *d, bool all, size_t *ret_n, struct sb_err *err);

#endif
