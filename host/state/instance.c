/* Rows of instances, and the directory that each one has: <state>/instances/<id>. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/near.h"
#include "os/rmtree.h"
#include "state_i.h"

#define COLUMNS                                                                                    \
	"id, name, agent, workspace, runtime, upper, layers, image, argv, options, session, "      \
	"plan_sha256, config_sha256, status, cpus, memory_bytes, exit_code, created_s, started_s, " \
	"stopped_s, base"

bool instance_name_ok(const char *name)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t n = strlen(name);

	if (n < 1 || n > 64 || !strchr(first, name[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr(first, name[i]) && !strchr("._-", name[i]))
			return false;
	return true;
}

static int bad_name(const char *name, struct sb_err *err)
{
	char shown[65];
	size_t n = strnlen(name, sizeof(shown) - 1);

	for (size_t i = 0; i < n; i++)
		shown[i] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
	shown[n] = '\0';
	return sb_err_set(err, -EINVAL, "\"%s%s\" is no name of an instance: 1 to 64 letters, digits, "
					"\".\", \"_\" and \"-\", first a letter or digit", shown,
			  strlen(name) > n ? "..." : "");
}

static void free_strings(struct instance *i)
{
	free(i->name);
	free(i->agent);
	free(i->workspace);
	free(i->runtime);
	free(i->upper);
	free(i->layers);
	free(i->image);
	free(i->argv);
	free(i->options);
	free(i->base);
}

void instance_done(struct instance *i)
{
	free_strings(i);
	*i = (struct instance){ 0 };
}

static char *text(sqlite3_stmt *st, int col)
{
	const unsigned char *p = sqlite3_column_text(st, col);

	return p ? strdup((const char *)p) : NULL;
}

static void blob(sqlite3_stmt *st, int col, uint8_t *to, size_t len)
{
	const void *p = sqlite3_column_blob(st, col);

	if (p && (size_t)sqlite3_column_bytes(st, col) == len)
		memcpy(to, p, len);
}

/* Fill @i from a row; what the table says of running is believed only when a lock says it too. */
static int read_row(struct state *s, sqlite3_stmt *st, struct instance *i)
{
	char **strings[] = { &i->name,  &i->agent, &i->workspace, &i->runtime, &i->upper,
			     &i->layers, &i->image, &i->argv,     &i->options };

	*i = (struct instance){ .id = sqlite3_column_int64(st, 0) };
	for (int c = 0; c < (int)SB_ARRAY_LEN(strings); c++) {
		*strings[c] = text(st, c + 1);
		if (!*strings[c] && sqlite3_column_type(st, c + 1) != SQLITE_NULL) {
			instance_done(i);
			return -ENOMEM;
		}
	}
	i->base = text(st, 20);
	if (!i->base && sqlite3_column_type(st, 20) != SQLITE_NULL) {
		instance_done(i);
		return -ENOMEM;
	}
	blob(st, 10, i->session, sizeof(i->session));
	blob(st, 11, i->plan_sha256, sizeof(i->plan_sha256));
	blob(st, 12, i->config_sha256, sizeof(i->config_sha256));
	i->status = (enum instance_status)sqlite3_column_int(st, 13);
	i->cpus = (uint32_t)sqlite3_column_int64(st, 14);
	i->memory_bytes = (uint64_t)sqlite3_column_int64(st, 15);
	i->exit_code = sqlite3_column_int(st, 16);
	i->created_s = sqlite3_column_int64(st, 17);
	i->started_s = sqlite3_column_int64(st, 18);
	i->stopped_s = sqlite3_column_int64(st, 19);
	if ((i->status == INSTANCE_RUNNING || i->status == INSTANCE_STARTING) &&
	    !state_alive(s, i->id, i->session))
		i->status = INSTANCE_CRASHED;
	return 0;
}

/* Return: 0; -ENOENT without text; -errno with text. */
static int find(struct state *s, const char *name, struct instance *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT " COLUMNS " FROM instances WHERE name = ?1", &st, err);
	int rc;

	if (r < 0)
		return r;
	if (sqlite3_bind_text(st, 1, name, -1, SQLITE_TRANSIENT) != SQLITE_OK)
		return state_fail(s, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return -ENOENT;
	if (rc != SQLITE_ROW)
		return state_fail(s, "read", err);
	r = read_row(s, st, ret);
	return r < 0 ? sb_err_set(err, r, "out of memory") : 0;
}

static int not_found(struct state *s, const char *name, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	char near[65] = "";
	unsigned int best = sb_near_max(name) + 1;
	int r = state_prepare(s, "SELECT name FROM instances ORDER BY id DESC", &st, err);

	while (r == 0 && sqlite3_step(st) == SQLITE_ROW) {
		const char *one = (const char *)sqlite3_column_text(st, 0);
		unsigned int d = one ? sb_near(name, one, best) : 99;

		if (one && (d < best || (near[0] == '\0' && strlen(name) >= 3 &&
					 strncmp(one, name, strlen(name)) == 0))) {
			best = SB_MIN(d, best);
			(void)snprintf(near, sizeof(near), "%.64s", one);
		}
	}
	if (r < 0)
		return r;
	if (near[0] != '\0')
		return sb_err_set(err, -ENOENT, "no instance \"%.64s\"; did you mean \"%s\"?", name, near);
	return sb_err_set(err, -ENOENT, "no instance \"%.64s\"; sendbox ls lists them", name);
}

int instance_get(struct state *s, const char *name, struct instance *ret, struct sb_err *err)
{
	int r;

	if (!instance_name_ok(name))
		return bad_name(name, err);
	r = find(s, name, ret, err);
	return r == -ENOENT ? not_found(s, name, err) : r;
}

int instance_each(struct state *s, int (*fn)(void *arg, const struct instance *i), void *arg,
		  struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT " COLUMNS " FROM instances ORDER BY created_s DESC, id DESC",
			      &st, err);
	int rc = SQLITE_DONE;

	while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct instance i;

		r = read_row(s, st, &i);
		if (r < 0)
			return sb_err_set(err, r, "out of memory");
		r = fn(arg, &i);
		instance_done(&i);
	}
	if (r == 0 && rc != SQLITE_DONE)
		return state_fail(s, "read", err);
	return r;
}

/* ---- claim ---- */

static void bind(sqlite3_stmt *st, int n, const char *p)
{
	if (p)
		(void)sqlite3_bind_text(st, n, p, -1, SQLITE_TRANSIENT);
}

static int insert(struct state *s, const struct instance *w, int64_t *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int64_t now = (int64_t)time(NULL);
	int r = state_prepare(s,
			      "INSERT INTO instances(name, agent, workspace, runtime, upper, layers, "
			      "image, argv, options, session, plan_sha256, config_sha256, status, cpus, "
			      "memory_bytes, exit_code, created_s, started_s, stopped_s, base) VALUES(?1, ?2, "
			      "?3, ?4, ?5, ?6, ?7, ?8, ?9, zeroblob(16), zeroblob(32), ?10, ?14, ?11, "
			      "?12, -1, ?13, ?13, 0, ?15)",
			      &st, err);

	if (r < 0)
		return r;
	bind(st, 1, w->name);
	bind(st, 2, w->agent);
	bind(st, 3, w->workspace);
	bind(st, 4, w->runtime ? w->runtime : "");
	bind(st, 5, w->upper);
	bind(st, 6, w->layers);
	bind(st, 7, w->image);
	bind(st, 8, w->argv);
	bind(st, 9, w->options);
	(void)sqlite3_bind_blob(st, 10, w->config_sha256, sizeof(w->config_sha256), SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 11, w->cpus);
	(void)sqlite3_bind_int64(st, 12, (int64_t)w->memory_bytes);
	(void)sqlite3_bind_int64(st, 13, now);
	(void)sqlite3_bind_int(st, 14, w->status ? (int)w->status : INSTANCE_STARTING);
	bind(st, 15, w->base);
	r = state_done(s, st, err);
	if (r == 0)
		*ret = sqlite3_last_insert_rowid(s->db);
	return r;
}

static int make_dir(struct state *s, int64_t id, struct sb_err *err)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%lld", (long long)id);
	/* one that is there already is left over from a claim that was not committed */
	if (mkdirat(s->instances, name, 0700) < 0 && errno == EEXIST &&
	    (sb_rmtree(s->instances, name) < 0 || mkdirat(s->instances, name, 0700) < 0))
		return sb_err_set(err, -errno, "%.300s/instances/%s: %s", s->dir, name,
				  strerror(errno));
	if (faccessat(s->instances, name, W_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_err_set(err, -errno, "%.300s/instances/%s: %s", s->dir, name,
				  strerror(errno));
	return 0;
}

static int busy(const char *name, enum instance_status status, struct sb_err *err)
{
	return sb_err_set(err, -EBUSY, "instance \"%s\" %s; sendbox attach %s joins it, sendbox stop %s "
				       "ends it", name,
			  status == INSTANCE_STARTING ? "is being started" : "runs already", name, name);
}

static int resume(struct state *s, const struct instance *w, const struct instance *row, int *lock,
		  struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r;

	if (row->status == INSTANCE_RUNNING || row->status == INSTANCE_STARTING)
		return busy(row->name, row->status, err);
	r = state_lock(s, row->id, lock);
	if (r < 0)
		return r == -EBUSY ? busy(row->name, INSTANCE_STARTING, err)
				   : sb_err_set(err, r, "%.300s/instances/%lld/lock: %s; its files are gone: "
							"remove it with sendbox rm", s->dir,
						(long long)row->id, strerror(-r));
	r = state_prepare(s, "UPDATE instances SET status = 2, session = zeroblob(16), started_s = ?2, "
			     "argv = coalesce(?3, argv) WHERE id = ?1", &st, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, row->id);
	(void)sqlite3_bind_int64(st, 2, (int64_t)time(NULL));
	bind(st, 3, w->argv);
	return state_done(s, st, err);
}

static int claim(struct state *s, const struct instance *w, bool *ret_resumed, int *lock,
		 struct sb_err *err)
{
	struct instance row = { 0 };
	int64_t id = 0;
	int r = find(s, w->name, &row, err);

	*ret_resumed = r == 0;
	if (r == 0) {
		r = resume(s, w, &row, lock, err);
		instance_done(&row);
		return r;
	}
	if (r != -ENOENT)
		return r;
	r = insert(s, w, &id, err);
	if (r == 0)
		r = make_dir(s, id, err);
	if (r == 0) {
		r = state_lock(s, id, lock);
		if (r < 0)
			(void)sb_err_set(err, r, "%.300s/instances/%lld: %s", s->dir, (long long)id,
					 strerror(-r));
	}
	return r;
}

int instance_claim(struct state *s, const struct instance *want, bool *ret_resumed,
		   struct instance *ret, int *ret_lock, struct sb_err *err)
{
	sb_autofd int lock = -1;
	bool resumed = false;
	int r;

	if (!want->name || !instance_name_ok(want->name))
		return bad_name(want->name ? want->name : "", err);
	r = state_begin(s, err);
	if (r < 0)
		return r;
	r = claim(s, want, &resumed, &lock, err);
	if (r == 0)
		r = find(s, want->name, ret, err);
	if (r == 0) {
		r = state_commit(s, err);
		if (r < 0)
			instance_done(ret);
	}
	if (r < 0) {
		state_rollback(s);
		return r;
	}
	*ret_resumed = resumed;
	*ret_lock = sb_fd_take(&lock);
	return 0;
}

int instance_hold(struct state *s, const char *name, struct instance *ret, int *ret_lock,
		  struct sb_err *err)
{
	struct instance i = { 0 };
	sb_autofd int lock = -1;
	int r = instance_get(s, name, &i, err);

	if (r < 0)
		return r;
	if (i.status == INSTANCE_RUNNING || i.status == INSTANCE_STARTING)
		r = sb_err_set(err, -EBUSY, "instance \"%s\" runs; end it first: sendbox stop %s", name, name);
	if (r == 0) {
		r = state_lock(s, i.id, &lock);
		if (r < 0)
			(void)sb_err_set(err, r, "instance \"%s\" %s", name,
					 r == -EBUSY ? "is in use" : "has no files any more: sendbox rm");
	}
	if (r < 0) {
		instance_done(&i);
		return r;
	}
	*ret = i;
	*ret_lock = sb_fd_take(&lock);
	return 0;
}

int instance_add(struct state *s, const struct instance *want, struct sb_err *err)
{
	struct instance row = *want;
	struct instance there = { 0 };
	int64_t id = 0;
	int r;

	if (!want->name || !instance_name_ok(want->name))
		return bad_name(want->name ? want->name : "", err);
	row.status = INSTANCE_STOPPED;
	r = state_begin(s, err);
	if (r < 0)
		return r;
	r = find(s, want->name, &there, err);
	instance_done(&there);
	r = r == 0 ? sb_err_set(err, -EEXIST, "there is an instance \"%s\" already: take another --name",
				want->name)
	    : r == -ENOENT ? insert(s, &row, &id, err)
			   : r;
	if (r == 0)
		r = make_dir(s, id, err);
	if (r == 0)
		r = state_commit(s, err);
	if (r < 0)
		state_rollback(s);
	return r;
}

/* ---- changes ---- */

static int changed_one(struct state *s, sqlite3_stmt *st, int64_t id, struct sb_err *err)
{
	int r = state_done(s, st, err);

	if (r == 0 && sqlite3_changes(s->db) != 1)
		return sb_err_set(err, -ENOENT, "the instance with number %lld is gone", (long long)id);
	return r;
}

int instance_started(struct state *s, int64_t id, const uint8_t session[16],
		     const uint8_t plan_sha256[32], struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "UPDATE instances SET status = 3, session = ?2, plan_sha256 = ?3, "
				 "started_s = ?4, exit_code = -1 WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, id);
	(void)sqlite3_bind_blob(st, 2, session, 16, SQLITE_TRANSIENT);
	(void)sqlite3_bind_blob(st, 3, plan_sha256, 32, SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 4, (int64_t)time(NULL));
	return changed_one(s, st, id, err);
}

int instance_made(struct state *s, int64_t id, const struct instance *made, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "UPDATE instances SET runtime = ?2, upper = ?3, layers = ?4, image = ?5, "
				 "workspace = ?6, cpus = ?7, memory_bytes = ?8, config_sha256 = ?9, "
				 "base = ?10, options = coalesce(?11, options) WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, id);
	bind(st, 2, made->runtime);
	bind(st, 3, made->upper);
	bind(st, 4, made->layers);
	bind(st, 5, made->image);
	bind(st, 6, made->workspace);
	(void)sqlite3_bind_int64(st, 7, made->cpus);
	(void)sqlite3_bind_int64(st, 8, (int64_t)made->memory_bytes);
	(void)sqlite3_bind_blob(st, 9, made->config_sha256, 32, SQLITE_TRANSIENT);
	bind(st, 10, made->base);
	bind(st, 11, made->options);
	return changed_one(s, st, id, err);
}

int instance_stopped(struct state *s, int64_t id, int exit_code, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "UPDATE instances SET status = ?4, exit_code = ?2, stopped_s = ?3 "
				 "WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, id);
	(void)sqlite3_bind_int(st, 2, exit_code);
	(void)sqlite3_bind_int64(st, 3, (int64_t)time(NULL));
	(void)sqlite3_bind_int(st, 4, exit_code < 0 ? INSTANCE_CRASHED : INSTANCE_STOPPED);
	return changed_one(s, st, id, err);
}

/* The row first: what a killed removal leaves is a directory that no row names, which gc clears. */
static int remove_row(struct state *s, const char *name, int64_t *ret, int *lock,
		      struct sb_err *err)
{
	struct instance i = { 0 };
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = instance_get(s, name, &i, err);

	if (r < 0)
		return r;
	*ret = i.id;
	if (i.status == INSTANCE_RUNNING || i.status == INSTANCE_STARTING)
		r = sb_err_set(err, -EBUSY, "instance \"%s\" runs; end it first: sendbox stop %s", name,
			       name);
	if (r == 0 && state_lock(s, i.id, lock) == -EBUSY)
		r = sb_err_set(err, -EBUSY, "instance \"%s\" is in use", name);
	instance_done(&i);
	if (r == 0)
		r = state_prepare(s, "DELETE FROM instances WHERE id = ?1", &st, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, *ret);
	return changed_one(s, st, *ret, err);
}

static int remove_dir(struct state *s, int64_t id, struct sb_err *err)
{
	char dir[32];
	int r;

	(void)snprintf(dir, sizeof(dir), "%lld", (long long)id);
	r = sb_rmtree(s->instances, dir);
	return r < 0 ? sb_err_set(err, r, "%.200s/instances/%s cannot be removed: %s", s->dir, dir,
				  strerror(-r))
		     : 0;
}

int instance_remove(struct state *s, const char *name, struct sb_err *err)
{
	sb_autofd int lock = -1;
	int64_t id = 0;
	int r = state_begin(s, err);

	if (r < 0)
		return r;
	r = remove_row(s, name, &id, &lock, err);
	if (r == 0)
		r = state_commit(s, err);
	if (r < 0) {
		state_rollback(s);
		return r;
	}
	return remove_dir(s, id, err);
}

int instance_forget(struct state *s, int64_t id, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "DELETE FROM instances WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, id);
	r = state_done(s, st, err);
	return r < 0 ? r : remove_dir(s, id, err);
}

int instance_rename(struct state *s, const char *from, const char *to, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	struct instance i = { 0 };
	int r;

	if (!instance_name_ok(to))
		return bad_name(to, err);
	r = state_begin(s, err);
	if (r < 0)
		return r;
	r = instance_get(s, from, &i, err);
	instance_done(&i);
	if (r == 0) {
		r = find(s, to, &i, err);
		instance_done(&i);
		r = r == 0 ? sb_err_set(err, -EEXIST, "there is an instance \"%s\" already", to)
		    : r == -ENOENT ? 0
				   : r;
	}
	if (r == 0)
		r = state_prepare(s, "UPDATE instances SET name = ?2 WHERE name = ?1", &st, err);
	if (r == 0) {
		bind(st, 1, from);
		bind(st, 2, to);
		r = state_done(s, st, err);
	}
	if (r == 0)
		r = state_commit(s, err);
	if (r < 0)
		state_rollback(s);
	return r;
}

int instance_dir(struct state *s, int64_t id, char *path, size_t cap, int *ret_dir,
		 struct sb_err *err)
{
	int n = snprintf(path, cap, "%s/instances/%lld", s->dir, (long long)id);

	if (n < 0 || (size_t)n >= cap)
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", s->dir);
	*ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_dir < 0 ? sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno)) : 0;
}
