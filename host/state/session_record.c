/* Rows of sessions. */
#include "session_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "state_i.h"

#define COLUMNS                                                                                    \
	"id, kind, project, agent, instance, provider, argv, plan_sha256, started_ns, ended_ns, "   \
	"outcome, exit_status, audit_first, audit_last, kept"
#define PREFIX_MIN 4

const char *session_outcome_name(enum session_outcome o)
{
	static const char *const names[] = { "none",	  "running", "ended",  "failed",
					     "cancelled", "timeout", "crashed" };

	return o < SB_ARRAY_LEN(names) ? names[o] : "none";
}

const char *session_kind_name(enum session_kind k)
{
	static const char *const names[] = { "none", "command", "build", "export" };

	return k < SB_ARRAY_LEN(names) ? names[k] : "none";
}

void session_record_done(struct session_record *r)
{
	for (size_t i = 0; i < r->n_snapshots; i++)
		free(r->snapshots[i].source);
	free(r->snapshots);
	free(r->project);
	free(r->agent);
	free(r->instance);
	free(r->provider);
	free(r->argv);
	*r = (struct session_record){ 0 };
}

/* ---- reading ---- */

static int text(sqlite3_stmt *st, int n, char **ret)
{
	const char *p = (const char *)sqlite3_column_text(st, n);

	*ret = p ? strdup(p) : NULL;
	return *ret || sqlite3_column_type(st, n) == SQLITE_NULL ? 0 : -ENOMEM;
}

static void id_text(sqlite3_stmt *st, int n, char out[SESSION_SNAPSHOT_ROOM])
{
	const char *p = (const char *)sqlite3_column_text(st, n);

	(void)snprintf(out, SESSION_SNAPSHOT_ROOM, "%s", p ? p : "");
}

static int read_snapshots(struct state *s, struct session_record *r, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int rc = SQLITE_DONE;
	int k = state_prepare(s, "SELECT source, before, after, quarantined FROM session_snapshots WHERE session = "
				 "?1 ORDER BY source LIMIT 64", &st, err);

	if (k < 0)
		return k;
	(void)sqlite3_bind_blob(st, 1, r->id, sizeof(r->id), SQLITE_TRANSIENT);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct session_snapshot *v =
			realloc(r->snapshots, (r->n_snapshots + 1) * sizeof(*v));

		if (!v)
			return sb_err_set(err, -ENOMEM, "out of memory");
		r->snapshots = v;
		v += r->n_snapshots;
		if (text(st, 0, &v->source) < 0 || !v->source)
			return sb_err_set(err, -ENOMEM, "out of memory");
		id_text(st, 1, v->before);
		id_text(st, 2, v->after);
		id_text(st, 3, v->quarantined);
		r->n_snapshots++;
	}
	return rc == SQLITE_DONE ? 0 : state_fail(s, "read", err);
}

static int read_row(struct state *s, sqlite3_stmt *st, struct session_record *ret,
		    struct sb_err *err)
{
	sb_autosession struct session_record r = { .kind = SESSION_KIND_NONE };
	char **const strings[] = { &r.project, &r.agent, &r.instance, &r.provider, &r.argv };
	const void *id = sqlite3_column_blob(st, 0);
	const void *plan = sqlite3_column_blob(st, 7);

	if (!id || !plan)
		return sb_err_set(err, -ENOMEM, "out of memory");
	memcpy(r.id, id, sizeof(r.id));
	memcpy(r.plan_sha256, plan, sizeof(r.plan_sha256));
	for (size_t i = 0; i < SB_ARRAY_LEN(strings); i++)
		if (text(st, (int)i + 2, strings[i]) < 0)
			return sb_err_set(err, -ENOMEM, "out of memory");
	r.kind = (enum session_kind)sqlite3_column_int(st, 1);
	r.started_ns = (uint64_t)sqlite3_column_int64(st, 8);
	r.ended_ns = (uint64_t)sqlite3_column_int64(st, 9);
	r.outcome = (enum session_outcome)sqlite3_column_int(st, 10);
	r.exit_status = sqlite3_column_int(st, 11);
	r.audit_first = sqlite3_column_int64(st, 12);
	r.audit_last = sqlite3_column_int64(st, 13);
	r.kept = sqlite3_column_int(st, 14) != 0;
	if (r.outcome == SESSION_RUNNING && !state_session_alive(s, r.id))
		r.outcome = SESSION_CRASHED;
	if (read_snapshots(s, &r, err) < 0)
		return err && err->code < 0 ? err->code : -EIO;
	*ret = r;
	r = (struct session_record){ 0 };
	return 0;
}

static int by_prefix(struct state *s, const char *prefix, struct session_record *ret,
		     struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	size_t len = strlen(prefix);
	int rc;
	int r;

	if (len < PREFIX_MIN || len > 32 || prefix[strspn(prefix, "0123456789abcdef")] != '\0')
		return sb_err_set(err, -EINVAL, "\"%.60s\": a session is named by the first hex digits of "
						"its id, at least %d: see sendbox session ls", prefix,
				  PREFIX_MIN);
	r = state_prepare(s, "SELECT " COLUMNS " FROM sessions WHERE substr(lower(hex(id)), 1, ?2) = ?1 "
			     "LIMIT 2", &st, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, prefix, -1, SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 2, (sqlite3_int64)len);
	rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return sb_err_set(err, -ENOENT, "no session's id begins with \"%.40s\"; sendbox session ls "
						"lists them", prefix);
	if (rc != SQLITE_ROW)
		return state_fail(s, "read", err);
	r = read_row(s, st, ret, err);
	if (r < 0)
		return r;
	rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return 0;
	session_record_done(ret);
	return rc == SQLITE_ROW ? sb_err_set(err, -ENOTUNIQ, "more than one session's id begins with "
							     "\"%.40s\": give more digits", prefix)
				: state_fail(s, "read", err);
}

/* The nearest folder, upwards from @path, that is some session's project. */
static int of_project(struct state *s, char *path, struct session_record *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT " COLUMNS " FROM sessions WHERE kind = 1 AND (?1 IS NULL OR "
				 "project = ?1) ORDER BY started_ns DESC, rowid DESC LIMIT 1", &st, err);
	bool last = false;

	while (r == 0) {
		int rc;

		(void)sqlite3_reset(st);
		if (path)
			(void)sqlite3_bind_text(st, 1, path[0] ? path : "/", -1, SQLITE_TRANSIENT);
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			return read_row(s, st, ret, err);
		if (rc != SQLITE_DONE)
			return state_fail(s, "read", err);
		if (!path || last)
			return -ENOENT;
		*strrchr(path, '/') = '\0';
		last = path[0] == '\0';
	}
	return r;
}

int session_record_get(struct state *s, const char *prefix, const char *project,
		       struct session_record *ret, struct sb_err *err)
{
	sb_autofree char *path = project ? strdup(project) : NULL;
	int r;

	if (prefix)
		return by_prefix(s, prefix, ret, err);
	if (project && (!path || path[0] != '/'))
		return sb_err_set(err, path ? -EINVAL : -ENOMEM, "not an absolute path: %.200s", project);
	r = of_project(s, path, ret, err);
	if (r != -ENOENT || (err && err->code))
		return r;
	return project ? sb_err_set(err, -ENOENT, "no session of %.300s is remembered; sendbox session ls "
						  "lists those of other folders", project)
		       : sb_err_set(err, -ENOENT, "no session is remembered");
}

int session_record_each(struct state *s, int (*fn)(void *arg, const struct session_record *r),
			void *arg, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int rc = SQLITE_DONE;
	int r = state_prepare(s, "SELECT " COLUMNS " FROM sessions ORDER BY started_ns DESC, rowid DESC",
			      &st, err);

	while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		sb_autosession struct session_record one = { .kind = SESSION_KIND_NONE };

		r = read_row(s, st, &one, err);
		if (r == 0)
			r = fn(arg, &one);
	}
	return r == 0 && rc != SQLITE_DONE ? state_fail(s, "read", err) : r;
}

int session_record_uses(struct state *s, const char *snapshot, bool *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int rc;
	int r = state_prepare(s, "SELECT 1 FROM session_snapshots WHERE ?1 IN (before, after, quarantined) "
				 "LIMIT 1", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, snapshot, -1, SQLITE_TRANSIENT);
	rc = sqlite3_step(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return state_fail(s, "read", err);
	*ret = rc == SQLITE_ROW;
	return 0;
}

int session_record_count(struct state *s, uint64_t *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT count(*) FROM sessions", &st, err);

	if (r < 0)
		return r;
	if (sqlite3_step(st) != SQLITE_ROW)
		return state_fail(s, "read", err);
	*ret = (uint64_t)sqlite3_column_int64(st, 0);
	return 0;
}

/* ---- writing ---- */

/* The audit log is what waits for the disk. */
static int relax(struct state *s, struct sb_err *err)
{
	return sqlite3_exec(s->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : state_fail(s, "write", err);
}

static int prepare(struct state *s, const char *sql, sqlite3_stmt **ret, struct sb_err *err)
{
	int r = relax(s, err);

	return r < 0 ? r : state_prepare(s, sql, ret, err);
}

static void bind_id(sqlite3_stmt *st, const uint8_t id[16])
{
	(void)sqlite3_bind_blob(st, 1, id, 16, SQLITE_TRANSIENT);
}

static void bind_text(sqlite3_stmt *st, int n, const char *p)
{
	if (p)
		(void)sqlite3_bind_text(st, n, p, -1, SQLITE_TRANSIENT);
}

static int gone(const uint8_t id[16], struct sb_err *err)
{
	char hex[33];

	sb_hex_write(id, 16, hex);
	return sb_err_set(err, -ENOENT, "session %s is not remembered", hex);
}

static int change(struct state *s, sqlite3_stmt *st, const uint8_t id[16], struct sb_err *err)
{
	int r = state_done(s, st, err);

	return r == 0 && sqlite3_changes(s->db) != 1 ? gone(id, err) : r;
}

int session_record_begin(struct state *s, const struct session_record *w, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int rc;
	int r = prepare(s, "INSERT INTO sessions(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
			   "?9, 0, 1, -1, -1, -1, ?10)", &st, err);

	if (r < 0)
		return r;
	bind_id(st, w->id);
	(void)sqlite3_bind_int(st, 2, (int)w->kind);
	bind_text(st, 3, w->project);
	bind_text(st, 4, w->agent);
	bind_text(st, 5, w->instance);
	bind_text(st, 6, w->provider);
	bind_text(st, 7, w->argv);
	(void)sqlite3_bind_blob(st, 8, w->plan_sha256, sizeof(w->plan_sha256), SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 9, (sqlite3_int64)w->started_ns);
	(void)sqlite3_bind_int(st, 10, w->kept);
	rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return 0;
	if ((rc & 0xff) == SQLITE_CONSTRAINT)
		return sb_err_set(err, -EEXIST, "the session is remembered already, or its row is against "
						"a rule");
	return state_fail(s, "write", err);
}

/* Under the database's lock. */
static int put_snapshot(struct state *s, const uint8_t id[16], const char *source,
			const char *const which[2], struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *count = NULL;
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT (SELECT count(*) FROM sessions WHERE id = ?1), (SELECT count(*) "
				 "FROM session_snapshots WHERE session = ?1 AND source <> ?2)", &count,
			      err);

	if (r < 0)
		return r;
	bind_id(count, id);
	bind_text(count, 2, source);
	if (sqlite3_step(count) != SQLITE_ROW)
		return state_fail(s, "read", err);
	if (sqlite3_column_int(count, 0) == 0)
		return gone(id, err);
	if (sqlite3_column_int(count, 1) >= SESSION_MAX_SNAPSHOTS)
		return sb_err_set(err, -E2BIG, "a session with snapshots of more than %d folders",
				  SESSION_MAX_SNAPSHOTS);
	r = state_prepare(s, "INSERT INTO session_snapshots(session, source, before, after) VALUES(?1, "
			     "?2, ?3, ?4) ON CONFLICT(session, source) DO UPDATE SET before = "
			     "coalesce(?3, before), after = coalesce(?4, after)", &st, err);
	if (r < 0)
		return r;
	bind_id(st, id);
	bind_text(st, 2, source);
	bind_text(st, 3, which[0]);
	bind_text(st, 4, which[1]);
	return state_done(s, st, err);
}

int session_record_snapshot(struct state *s, const uint8_t id[16], const char *source,
			    const char *before, const char *after, struct sb_err *err)
{
	const char *which[2] = { before && before[0] ? before : NULL, after && after[0] ? after : NULL };
	int r;

	for (int i = 0; i < 2; i++)
		if (which[i] && strlen(which[i]) >= SESSION_SNAPSHOT_ROOM)
			return sb_err_set(err, -EINVAL, "\"%.80s\" is no snapshot's id", which[i]);
	if (source[0] != '/')
		return sb_err_set(err, -EINVAL, "not an absolute path: %.200s", source);
	r = relax(s, err);
	if (r == 0)
		r = state_begin(s, err);
	if (r == 0)
		r = put_snapshot(s, id, source, which, err);
	if (r == 0)
		r = state_commit(s, err);
	if (r < 0)
		state_rollback(s);
	return r;
}

int session_record_quarantine(struct state *s, const uint8_t id[16], const char *source,
			      const char *snapshot, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = strlen(snapshot) >= SESSION_SNAPSHOT_ROOM
			? sb_err_set(err, -EINVAL, "\"%.80s\" is no snapshot's id", snapshot)
			: prepare(s, "UPDATE session_snapshots SET quarantined = ?3 WHERE session = ?1 AND source = ?2",
				  &st, err);

	if (r < 0)
		return r;
	bind_id(st, id);
	bind_text(st, 2, source);
	bind_text(st, 3, snapshot);
	return change(s, st, id, err);
}

int session_record_audit(struct state *s, const uint8_t id[16], int64_t first, int64_t last,
			 struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = prepare(s, "UPDATE sessions SET audit_first = ?2, audit_last = ?3 WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	bind_id(st, id);
	(void)sqlite3_bind_int64(st, 2, first);
	(void)sqlite3_bind_int64(st, 3, last);
	return change(s, st, id, err);
}

int session_record_end(struct state *s, const uint8_t id[16], enum session_outcome outcome,
		       int exit_status, uint64_t ended_ns, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = prepare(s, "UPDATE sessions SET outcome = ?2, exit_status = ?3, ended_ns = ?4 WHERE id = "
			   "?1", &st, err);

	if (r < 0)
		return r;
	bind_id(st, id);
	(void)sqlite3_bind_int(st, 2, (int)outcome);
	(void)sqlite3_bind_int(st, 3, exit_status);
	(void)sqlite3_bind_int64(st, 4, (sqlite3_int64)ended_ns);
	return change(s, st, id, err);
}

int session_record_keep(struct state *s, const uint8_t id[16], bool kept, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = prepare(s, "UPDATE sessions SET kept = ?2 WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	bind_id(st, id);
	(void)sqlite3_bind_int(st, 2, kept);
	return change(s, st, id, err);
}

int session_record_remove(struct state *s, const uint8_t id[16], struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	char hex[33];
	int r;

	if (state_session_alive(s, id)) {
		sb_hex_write(id, 16, hex);
		return sb_err_set(err, -EBUSY, "session %.12s runs: end it first", hex);
	}
	r = prepare(s, "DELETE FROM sessions WHERE id = ?1", &st, err);
	if (r < 0)
		return r;
	bind_id(st, id);
	return change(s, st, id, err);
}

/* ---- what killed runs left ---- */

bool session_record_alive(struct state *s, const uint8_t id[16])
{
	return state_session_alive(s, id);
}

int session_record_gc(struct state *s, size_t *n, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	sb_autostmt sqlite3_stmt *mark = NULL;
	int rc = SQLITE_DONE;
	int r = prepare(s, "SELECT id FROM sessions WHERE outcome = 1", &st, err);

	/* only as long as nobody else has told how it ended */
	if (r == 0)
		r = state_prepare(s, "UPDATE sessions SET outcome = 6 WHERE id = ?1 AND outcome = 1", &mark,
				  err);
	while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const void *id = sqlite3_column_blob(st, 0);

		if (!id || state_session_alive(s, id))
			continue;
		(void)sqlite3_reset(mark);
		bind_id(mark, id);
		r = state_done(s, mark, err);
		*n += r == 0 && sqlite3_changes(s->db) == 1;
	}
	return r == 0 && rc != SQLITE_DONE ? state_fail(s, "read", err) : r;
}
