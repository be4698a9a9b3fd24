/* Rows of grants and deny rules. What they are worth is said by the head beside the database, which
 * the callers keep (host/cli/grants.h). */
#include <errno.h>
#include <string.h>

#include "grant.h"
#include "state_i.h"

#define COLUMNS "id, deny, pattern, kind, subject, rule, bound, created_s, expires_s, uses"

int grants_begin(struct state *s, struct sb_err *err)
{
	return state_begin(s, err);
}

int grants_commit(struct state *s, uint64_t generation, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "INSERT OR REPLACE INTO grants_generation(one, generation) VALUES(1, ?1)",
			      &st, err);

	if (r == 0) {
		(void)sqlite3_bind_int64(st, 1, (int64_t)generation);
		r = state_done(s, st, err);
	}
	if (r == 0)
		return state_commit(s, err);
	state_rollback(s);
	return r;
}

void grants_rollback(struct state *s)
{
	state_rollback(s);
}

int grants_generation(struct state *s, uint64_t *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT generation FROM grants_generation", &st, err);
	int rc;

	if (r < 0)
		return r;
	rc = sqlite3_step(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return state_fail(s, "read", err);
	*ret = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	return 0;
}

static bool take_text(sqlite3_stmt *st, int col, char *out, size_t cap)
{
	const char *text = (const char *)sqlite3_column_text(st, col);
	size_t n = (size_t)sqlite3_column_bytes(st, col);

	if (!text || n >= cap || memchr(text, 0, n))
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static bool read_row(sqlite3_stmt *st, struct sb_appr_grant *g)
{
	const void *bound = sqlite3_column_blob(st, 6);
	int64_t kind = sqlite3_column_int64(st, 3);
	int64_t uses = sqlite3_column_int64(st, 9);

	if (!bound || sqlite3_column_bytes(st, 6) != 32 || kind < 0 || kind >= SB_APPR_N_KINDS ||
	    uses < 0 || uses > UINT32_MAX || !take_text(st, 4, g->subject, sizeof(g->subject)) ||
	    !take_text(st, 5, g->rule, sizeof(g->rule)))
		return false;
	g->id = sqlite3_column_int64(st, 0);
	g->deny = sqlite3_column_int(st, 1) != 0;
	g->pattern = sqlite3_column_int(st, 2) != 0;
	g->kind = (enum sb_appr_kind)kind;
	memcpy(g->bound, bound, 32);
	g->created_s = (uint64_t)sqlite3_column_int64(st, 7);
	g->expires_s = (uint64_t)sqlite3_column_int64(st, 8);
	g->uses = (uint32_t)uses;
	return true;
}

int grants_each(struct state *s, int (*fn)(void *arg, const struct sb_appr_grant *g), void *arg,
		struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	sb_autofree struct sb_appr_grant *g = malloc(sizeof(*g));
	int r = g ? state_prepare(s, "SELECT " COLUMNS " FROM grants ORDER BY id", &st, err)
		  : sb_err_set(err, -ENOMEM, "out of memory");
	int rc = SQLITE_DONE;

	while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		*g = (struct sb_appr_grant){ 0 };
		if (!read_row(st, g))
			return sb_err_set(err, -EBADMSG, "a grant's row cannot be read: sendbox grants "
							 "revoke --all begins anew");
		r = fn(arg, g);
	}
	return r == 0 && rc != SQLITE_DONE ? state_fail(s, "read", err) : r;
}

int grants_insert(struct state *s, const struct sb_appr_grant *g, int64_t *ret_id, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "INSERT INTO grants(deny, pattern, kind, subject, rule, bound, created_s, "
				 "expires_s, uses) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int(st, 1, g->deny);
	(void)sqlite3_bind_int(st, 2, g->pattern);
	(void)sqlite3_bind_int(st, 3, (int)g->kind);
	(void)sqlite3_bind_text(st, 4, g->subject, -1, SQLITE_TRANSIENT);
	(void)sqlite3_bind_text(st, 5, g->rule, -1, SQLITE_TRANSIENT);
	(void)sqlite3_bind_blob(st, 6, g->bound, 32, SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 7, (int64_t)g->created_s);
	(void)sqlite3_bind_int64(st, 8, (int64_t)g->expires_s);
	(void)sqlite3_bind_int64(st, 9, (int64_t)g->uses);
	r = state_done(s, st, err);
	if (r == 0)
		*ret_id = sqlite3_last_insert_rowid(s->db);
	return r;
}

int grants_uses(struct state *s, int64_t id, uint32_t left, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "UPDATE grants SET uses = ?2 WHERE id = ?1 AND uses > ?2", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, id);
	(void)sqlite3_bind_int64(st, 2, (int64_t)left);
	return state_done(s, st, err);
}

int grants_delete(struct state *s, int64_t id, size_t *ret_n, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "DELETE FROM grants WHERE id = ?1 OR ?1 = 0", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, id);
	r = state_done(s, st, err);
	if (r == 0)
		*ret_n = (size_t)sqlite3_changes(s->db);
	return r;
}
