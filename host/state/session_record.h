#ifndef SB_HOST_STATE_SESSION_RECORD_H
#define SB_HOST_STATE_SESSION_RECORD_H
/*
 * What is remembered of each session: one row of `sessions` in state.db, and one of
 * `session_snapshots` for each writable mount of which there is a snapshot.
 *
 * A row is written while the guest starts and completed when the session has ended. What says that a
 * session runs is its lock, as for instances: a row whose session is gone reads as crashed, and gc
 * makes it so. The durable account of a session is the audit log: these rows are written without
 * waiting for the disk (a power cut may take the last ones, never damage them).
 */
#include "state/state.h"

enum session_outcome {
	SESSION_NONE = 0,
	SESSION_RUNNING = 1,
	SESSION_ENDED = 2,     /* the command ended: exit_status is its own */
	SESSION_FAILED = 3,    /* sendbox ended it: exit_status tells why */
	SESSION_CANCELLED = 4,
	SESSION_TIMEOUT = 5,
	SESSION_CRASHED = 6,   /* nobody knows how it ended */
};
enum session_kind {
	SESSION_KIND_NONE = 0,
	SESSION_COMMAND = 1,
	SESSION_BUILD = 2,  /* of an environment */
	SESSION_EXPORT = 3, /* of an instance */
};
#define SESSION_ARGV_MAX (16U << 10) /* of the JSON text; further words are left out */
#define SESSION_MAX_SNAPSHOTS 64
#define SESSION_SNAPSHOT_ROOM 72

struct session_snapshot {
	char *source; /* host path of the mount; owned */
	char before[SESSION_SNAPSHOT_ROOM]; /* id, or "" */
	char after[SESSION_SNAPSHOT_ROOM];
	char quarantined[SESSION_SNAPSHOT_ROOM]; /* has what was put back at the session's end, as the session left it */
};
struct session_record { /* owned strings, NULL where there is none */
	uint8_t id[16];
	enum session_kind kind;
	char *project;  /* host path; NULL: it shares no folder */
	char *agent;
	char *instance;
	char *provider; /* "microvm", "namespace" */
	char *argv;     /* JSON list */
	uint8_t plan_sha256[32];
	uint64_t started_ns; /* since 1970 */
	uint64_t ended_ns;   /* 0 = not, or nobody knows */
	enum session_outcome outcome;
	int exit_status; /* -1 = none */
	int64_t audit_first, audit_last; /* sequence numbers; -1 = none */
	bool kept; /* retention leaves it alone */
	struct session_snapshot *snapshots; /* owned, by source */
	size_t n_snapshots;
};
void session_record_done(struct session_record *r);
#define sb_autosession SB_CLEANUP(session_record_done)

const char *session_outcome_name(enum session_outcome o); /* "running", "ended", ... */
const char *session_kind_name(enum session_kind k);       /* "command", "build", "export" */

/* id, kind, strings, plan_sha256 and started_ns of @r; the rest is as of a session that runs.
 * Return: 0; -EEXIST; -errno with text. */
SB_MUST_CHECK int session_record_begin(struct state *s, const struct session_record *r,
				       struct sb_err *err);
/* @before, @after: NULL or "" = as it is; at most 71 bytes. Return: 0; -ENOENT: no such session;
 * -EINVAL; -E2BIG; -errno. */
SB_MUST_CHECK int session_record_snapshot(struct state *s, const uint8_t id[16], const char *source,
					  const char *before, const char *after, struct sb_err *err);
/* What was put in quarantine of @source, of which there are snapshots, is in @snapshot. */
SB_MUST_CHECK int session_record_quarantine(struct state *s, const uint8_t id[16], const char *source,
					    const char *snapshot, struct sb_err *err);
/* The records of the session in the audit log: from @first to @last, others' may be between. */
SB_MUST_CHECK int session_record_audit(struct state *s, const uint8_t id[16], int64_t first,
				       int64_t last, struct sb_err *err);
/* @exit_status: -1 = none. -ENOENT: no such session. */
SB_MUST_CHECK int session_record_end(struct state *s, const uint8_t id[16],
				     enum session_outcome outcome, int exit_status,
				     uint64_t ended_ns, struct sb_err *err);
SB_MUST_CHECK int session_record_keep(struct state *s, const uint8_t id[16], bool kept,
				      struct sb_err *err);
/*
 * session_record_get - one session
 * @prefix: first hex digits of its id, at least 4; NULL = the last one of kind COMMAND whose project
 *          is @project or the nearest folder above it that has one
 * @project: absolute path; NULL with no prefix = the last one of all
 *
 * Return: 0; -ENOENT; -ENOTUNIQ; -EINVAL: no prefix; -errno. The text is in @err.
 */
SB_MUST_CHECK int session_record_get(struct state *s, const char *prefix, const char *project,
				     struct session_record *ret, struct sb_err *err);
/* Newest first, until @fn returns non-zero, which is returned. @fn may remove the one it is shown. */
SB_MUST_CHECK int session_record_each(struct state *s,
				      int (*fn)(void *arg, const struct session_record *r),
				      void *arg, struct sb_err *err);
/* Whether some row names the snapshot @id. */
SB_MUST_CHECK int session_record_uses(struct state *s, const char *snapshot, bool *ret,
				      struct sb_err *err);
SB_MUST_CHECK int session_record_count(struct state *s, uint64_t *ret, struct sb_err *err);
/* The row goes, and with it what it says of snapshots. -EBUSY: it runs; -ENOENT. */
SB_MUST_CHECK int session_record_remove(struct state *s, const uint8_t id[16], struct sb_err *err);
/* Whether its processes hold its lock: from before it has a row. */
bool session_record_alive(struct state *s, const uint8_t id[16]);
/* Rows of sessions that are gone become crashed. @n: counted up. */
SB_MUST_CHECK int session_record_gc(struct state *s, size_t *n, struct sb_err *err);

#endif
