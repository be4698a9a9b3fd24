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
 * cli_session_find - open the directory of a running session of the caller
 * @prefix: the beginning of its id, which no other running session has, or its instance; NULL = the only one
 * @ret_plan: owned by the caller
 *
 * Return: 0; CLI_SESSION_NONE, CLI_SESSION_MANY; -errno with text.
 */
#define CLI_SESSION_NONE 1
#define CLI_SESSION_MANY 2
SB_MUST_CHECK int cli_session_find(const struct sb_dirs *d, const char *prefix, int *ret_dir,
				   struct sb_plan **ret_plan, struct sb_err *err);
/* Call @fn for each running session. Return: 0; -errno with text. */
SB_MUST_CHECK int cli_session_each(const struct sb_dirs *d,
				   void (*fn)(void *arg, int dir, const struct sb_plan *plan),
				   void *arg, struct sb_err *err);

/*
 * cli_gc - clear the remains of sessions that nobody owns
 * @all: kept ones too
 * @ret_n: sessions cleared
 */
SB_MUST_CHECK int cli_gc(const struct sb_dirs *d, bool all, size_t *ret_n, struct sb_err *err);

#endif
