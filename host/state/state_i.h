#ifndef SB_HOST_STATE_STATE_I_H
#define SB_HOST_STATE_STATE_I_H
/* What the parts of host/state share. */
#include <sqlite3.h>

#include "state.h"

#define STATE_SCHEMA 5 /* user_version */

struct state {
	sqlite3 *db;
	int instances; /* owned: <state>/instances */
	char *dir;     /* <state> */
	char *run;     /* <run> */
};

/* The text and errno of SQLite's last failure. Return: -errno. */
int state_fail(struct state *s, const char *what, struct sb_err *err);
/* One transaction that nobody else writes beside. */
SB_MUST_CHECK int state_begin(struct state *s, struct sb_err *err);
SB_MUST_CHECK int state_commit(struct state *s, struct sb_err *err);
void state_rollback(struct state *s);
SB_MUST_CHECK int state_prepare(struct state *s, const char *sql, sqlite3_stmt **ret,
				struct sb_err *err);
/* Run a statement to its end. */
SB_MUST_CHECK int state_done(struct state *s, sqlite3_stmt *st, struct sb_err *err);
static inline void state_finalizep(sqlite3_stmt **st)
{
	(void)sqlite3_finalize(*st);
}
#define sb_autostmt SB_CLEANUP(state_finalizep)

/* The lock of an instance's directory. Return: 0, held until @ret is closed; -EBUSY; -errno. */
SB_MUST_CHECK int state_lock(struct state *s, int64_t id, int *ret);
bool state_session_alive(struct state *s, const uint8_t session[16]);
/* Whether somebody holds an instance or the session that it was last started as. */
bool state_alive(struct state *s, int64_t id, const uint8_t session[16]);

#endif
