/* Rows of environments. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "state_i.h"

#define COLUMNS "key, agent, base, layers, bytes, built_s, used_s"

void environment_done(struct environment *e)
{
	free(e->agent);
	free(e->base);
	*e = (struct environment){ 0 };
}

static int read_row(sqlite3_stmt *st, struct environment *e)
{
	const void *key = sqlite3_column_blob(st, 0);
	const void *layers = sqlite3_column_blob(st, 3);
	size_t n = (size_t)sqlite3_column_bytes(st, 3);
	const char *agent = (const char *)sqlite3_column_text(st, 1);
	const char *base = (const char *)sqlite3_column_text(st, 2);

	*e = (struct environment){ 0 };
	if (!key || n > sizeof(e->layers))
		return -EBADMSG;
	memcpy(e->key, key, sizeof(e->key));
	if (layers)
		memcpy(e->layers, layers, n);
	e->n_layers = n / sizeof(e->layers[0]);
	e->agent = agent ? strdup(agent) : NULL;
	e->base = base ? strdup(base) : NULL;
	if ((agent && !e->agent) || (base && !e->base)) {
		environment_done(e);
		return -ENOMEM;
	}
	e->bytes = (uint64_t)sqlite3_column_int64(st, 4);
	e->built_s = sqlite3_column_int64(st, 5);
	e->used_s = sqlite3_column_int64(st, 6);
	return 0;
}

static int row_failed(int r, struct sb_err *err)
{
	return sb_err_set(err, r, "an environment's row cannot be read: %s", strerror(-r));
}

int environment_get(struct state *s, const uint8_t key[32], struct environment *ret,
		    struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT " COLUMNS " FROM environments WHERE key = ?1", &st, err);
	int rc;

	if (r < 0)
		return r;
	(void)sqlite3_bind_blob(st, 1, key, 32, SQLITE_TRANSIENT);
	rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return sb_err_set(err, -ENOENT, "there is no such environment");
	if (rc != SQLITE_ROW)
		return state_fail(s, "read", err);
	r = read_row(st, ret);
	return r < 0 ? row_failed(r, err) : 0;
}

int environment_put(struct state *s, const struct environment *e, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r;

	if (e->n_layers > SB_PLAN_MAX_LAYERS)
		return sb_err_set(err, -E2BIG, "an environment of %zu layers", e->n_layers);
	r = state_prepare(s, "INSERT OR REPLACE INTO environments(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, "
			     "?5, ?6, ?7)", &st, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_blob(st, 1, e->key, 32, SQLITE_TRANSIENT);
	if (e->agent)
		(void)sqlite3_bind_text(st, 2, e->agent, -1, SQLITE_TRANSIENT);
	if (e->base)
		(void)sqlite3_bind_text(st, 3, e->base, -1, SQLITE_TRANSIENT);
	(void)sqlite3_bind_blob(st, 4, e->layers, (int)(e->n_layers * 32), SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 5, (int64_t)e->bytes);
	(void)sqlite3_bind_int64(st, 6, e->built_s);
	(void)sqlite3_bind_int64(st, 7, e->used_s);
	return state_done(s, st, err);
}

int environment_each(struct state *s, int (*fn)(void *arg, const struct environment *e), void *arg,
		     struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT " COLUMNS " FROM environments ORDER BY built_s DESC", &st, err);
	int rc = SQLITE_DONE;

	while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct environment e;

		r = read_row(st, &e);
		if (r < 0)
			return row_failed(r, err);
		r = fn(arg, &e);
		environment_done(&e);
	}
	return r == 0 && rc != SQLITE_DONE ? state_fail(s, "read", err) : r;
}

int environment_remove(struct state *s, const uint8_t key[32], struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "DELETE FROM environments WHERE key = ?1", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_blob(st, 1, key, 32, SQLITE_TRANSIENT);
	return state_done(s, st, err);
}
