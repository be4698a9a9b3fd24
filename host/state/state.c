/*
 * The database file: opened, checked, made. Every change is one transaction that begins as the
 * only writer, so a process that is killed anywhere leaves either the old rows or the new ones.
 */
#include "state_i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

#define BUSY_MS 10000
#define LOG_PAGES "64" /* of state.db-wal: what the first of those that open it reads again */

static const char schema[] =
	"CREATE TABLE instances(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
	" agent TEXT, workspace TEXT, runtime TEXT NOT NULL, upper TEXT, layers TEXT, image TEXT,"
	" argv TEXT, options TEXT, session BLOB NOT NULL CHECK(length(session) = 16),"
	" plan_sha256 BLOB NOT NULL CHECK(length(plan_sha256) = 32),"
	" config_sha256 BLOB NOT NULL CHECK(length(config_sha256) = 32),"
	" status INTEGER NOT NULL CHECK(status BETWEEN 1 AND 4), cpus INTEGER NOT NULL,"
	" memory_bytes INTEGER NOT NULL, exit_code INTEGER NOT NULL, created_s INTEGER NOT NULL,"
	" started_s INTEGER NOT NULL, stopped_s INTEGER NOT NULL, base TEXT) STRICT;"
	"CREATE TABLE environments(key BLOB PRIMARY KEY CHECK(length(key) = 32), agent TEXT,"
	" base TEXT, layers BLOB NOT NULL CHECK(length(layers) % 32 = 0), bytes INTEGER NOT NULL,"
	" built_s INTEGER NOT NULL, used_s INTEGER NOT NULL) STRICT;"
	"PRAGMA user_version = 2;";
/* What later versions added: steps[v] is what a file of version v lacks to be one of v + 1; an empty
 * one begins at 2. */
static const char *const steps[STATE_SCHEMA] = {
	schema,
	"ALTER TABLE instances ADD COLUMN base TEXT;"
	"PRAGMA user_version = 2;",
	"CREATE TABLE sessions(id BLOB NOT NULL UNIQUE CHECK(length(id) = 16),"
	" kind INTEGER NOT NULL CHECK(kind BETWEEN 1 AND 3), project TEXT, agent TEXT, instance TEXT,"
	" provider TEXT, argv TEXT, plan_sha256 BLOB NOT NULL CHECK(length(plan_sha256) = 32),"
	" started_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL,"
	" outcome INTEGER NOT NULL CHECK(outcome BETWEEN 1 AND 6), exit_status INTEGER NOT NULL,"
	" audit_first INTEGER NOT NULL, audit_last INTEGER NOT NULL, kept INTEGER NOT NULL) STRICT;"
	"CREATE INDEX sessions_started ON sessions(started_ns);"
	"CREATE TABLE session_snapshots(session BLOB NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,"
	" source TEXT NOT NULL, before TEXT, after TEXT, PRIMARY KEY(session, source)) STRICT;"
	"PRAGMA user_version = 3;",
	"CREATE TABLE grants(id INTEGER PRIMARY KEY AUTOINCREMENT, deny INTEGER NOT NULL,"
	" pattern INTEGER NOT NULL, kind INTEGER NOT NULL, subject TEXT NOT NULL, rule TEXT NOT NULL,"
	" bound BLOB NOT NULL CHECK(length(bound) = 32), created_s INTEGER NOT NULL,"
	" expires_s INTEGER NOT NULL, uses INTEGER NOT NULL) STRICT;"
	"CREATE TABLE grants_generation(one INTEGER PRIMARY KEY CHECK(one = 1),"
	" generation INTEGER NOT NULL) STRICT;"
	"PRAGMA user_version = 4;",
	"ALTER TABLE session_snapshots ADD COLUMN quarantined TEXT;"
	"PRAGMA user_version = 5;",
};

static int code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
		return -EBADMSG;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

int state_fail(struct state *s, const char *what, struct sb_err *err)
{
	int code = s->db ? code_of(sqlite3_extended_errcode(s->db)) : -ENOMEM;
	const char *text = s->db ? sqlite3_errmsg(s->db) : "out of memory";

	if (code == -EBADMSG)
		return sb_err_set(err, code,
				  "%.150s/state.db is damaged (%.80s); nothing was changed. Move it away to "
				  "begin anew: the instances' files stay in %.100s/instances",
				  s->dir, text, s->dir);
	if (code == -EBUSY)
		return sb_err_set(err, code, "%.200s/state.db: another sendbox has kept it locked for "
					     "%d s", s->dir, BUSY_MS / 1000);
	return sb_err_set(err, code, "%.200s/state.db: %s: %.150s", s->dir, what, text);
}

static int exec(struct state *s, const char *sql, struct sb_err *err)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
								       : state_fail(s, "write", err);
}

int state_begin(struct state *s, struct sb_err *err)
{
	return exec(s, "BEGIN IMMEDIATE", err);
}

int state_commit(struct state *s, struct sb_err *err)
{
	int r = exec(s, "COMMIT", err);

	if (r < 0)
		state_rollback(s);
	return r;
}

void state_rollback(struct state *s)
{
	if (!sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

int state_prepare(struct state *s, const char *sql, sqlite3_stmt **ret, struct sb_err *err)
{
	return sqlite3_prepare_v2(s->db, sql, -1, ret, NULL) == SQLITE_OK
		       ? 0
		       : state_fail(s, "prepare", err);
}

int state_done(struct state *s, sqlite3_stmt *st, struct sb_err *err)
{
	int rc;

	do {
		rc = sqlite3_step(st);
	} while (rc == SQLITE_ROW);
	return rc == SQLITE_DONE ? 0 : state_fail(s, "write", err);
}

static int version(struct state *s, int *ret, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "PRAGMA user_version", &st, err);

	if (r < 0)
		return r;
	if (sqlite3_step(st) != SQLITE_ROW)
		return state_fail(s, "read", err);
	*ret = sqlite3_column_int(st, 0);
	return 0;
}

/* A new file gets its tables, an older one what it lacks; of two at once the second one finds them. */
static int upgrade(struct state *s, struct sb_err *err)
{
	int v = 0;
	int r = version(s, &v, err);

	if (r == 0 && v >= 0 && v < STATE_SCHEMA) {
		r = state_begin(s, err);
		if (r == 0)
			r = version(s, &v, err);
		while (r == 0 && v >= 0 && v < STATE_SCHEMA) {
			r = exec(s, steps[v], err);
			if (r == 0)
				r = version(s, &v, err);
		}
		if (r == 0)
			r = state_commit(s, err);
		else
			state_rollback(s);
		if (r == 0)
			r = version(s, &v, err);
	}
	if (r == 0 && v != STATE_SCHEMA)
		return sb_err_set(err, -EPROTO, "%.200s/state.db was written by a newer sendbox (version "
						"%d, this one knows %d); nothing was changed", s->dir, v,
				  STATE_SCHEMA);
	return r;
}

/* The file is ours alone from its first moment; SQLite gives what it puts beside the same mode. */
static int make_file(const char *path, struct sb_err *err)
{
	struct stat st;
	sb_autofd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return sb_err_set(err, -EPERM, "%.300s: must be a file of yours that nobody else may "
					       "read or write (chmod 600)", path);
	return 0;
}

static int open_dirs(struct state *s, const struct sb_dirs *d, struct sb_err *err)
{
	sb_autofd int dir = open(d->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	s->dir = strdup(d->state);
	s->run = strdup(d->run);
	if (!s->dir || !s->run)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (dir < 0 || (mkdirat(dir, "instances", 0700) < 0 && errno != EEXIST))
		return sb_err_set(err, -errno, "%.300s: %s", d->state, strerror(errno));
	s->instances = openat(dir, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->instances < 0)
		return sb_err_set(err, -errno, "%.300s/instances: %s", d->state, strerror(errno));
	return 0;
}

int state_open(const struct sb_dirs *d, struct state **ret, struct sb_err *err)
{
	sb_autostate struct state *s = calloc(1, sizeof(*s));
	char path[4200];
	int r;

	if (!s)
		return sb_err_set(err, -ENOMEM, "out of memory");
	s->instances = -1;
	r = snprintf(path, sizeof(path), "%s/state.db", d->state);
	if (r < 0 || (size_t)r >= sizeof(path))
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", d->state);
	r = open_dirs(s, d, err);
	if (r == 0)
		r = make_file(path, err);
	if (r < 0)
		return r;
	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, NULL) !=
	    SQLITE_OK)
		return state_fail(s, "open", err);
	(void)sqlite3_busy_timeout(s->db, BUSY_MS);
	/* A start opens it several times. Each close would write the log back and remove it, each
	 * next change make it anew: five times waiting for the disk instead of once. */
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
	r = exec(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		    "PRAGMA wal_autocheckpoint = " LOG_PAGES ";"
		    "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;", err);
	if (r == 0)
		r = upgrade(s, err);
	if (r == 0)
		*ret = sb_take(&s);
	return r;
}

struct state *state_close(struct state *s)
{
	if (s) {
		(void)sqlite3_close_v2(s->db);
		sb_fd_close(&s->instances);
		free(s->dir);
		free(s->run);
		free(s);
	}
	return NULL;
}

/* ---- who runs ---- */

int state_lock(struct state *s, int64_t id, int *ret)
{
	char path[64];
	sb_autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "%lld/lock", (long long)id);
	fd = openat(s->instances, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*ret = sb_fd_take(&fd);
	return 0;
}

bool state_session_alive(struct state *s, const uint8_t session[16])
{
	static const uint8_t none[16];
	char hex[33];
	char path[4200];
	sb_autofd int fd = -1;
	int n;

	if (memcmp(session, none, sizeof(none)) == 0)
		return false;
	sb_hex_write(session, 16, hex);
	n = snprintf(path, sizeof(path), "%s/sessions/%s/lock", s->run, hex);
	if (n < 0 || (size_t)n >= sizeof(path))
		return true; /* cannot be told apart: the careful answer */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 ? flock(fd, LOCK_SH | LOCK_NB) < 0 : errno != ENOENT;
}

bool state_alive(struct state *s, int64_t id, const uint8_t session[16])
{
	sb_autofd int lock = -1;
	int r = state_lock(s, id, &lock);

	return r == -EBUSY || state_session_alive(s, session);
}
