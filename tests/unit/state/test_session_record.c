#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "dirs.h"
#include "state/session_record.h"

static const uint8_t one[16] = { 0xab, 0xcd, 0x01 };
static const uint8_t two[16] = { 0xab, 0xcd, 0x02 };
static const uint8_t other[16] = { 0x77 };

static int begin(struct state *s, const uint8_t id[16], const char *project, uint64_t at,
		 struct sb_err *err)
{
	struct session_record r = { .kind = SESSION_COMMAND,
				    .project = (char *)(uintptr_t)project,
				    .provider = (char *)(uintptr_t)"namespace",
				    .argv = (char *)(uintptr_t)"[\"sh\",\"-c\",\"x\"]",
				    .started_ns = at };

	memcpy(r.id, id, 16);
	r.plan_sha256[31] = 7;
	return session_record_begin(s, &r, err);
}

/* The session's directory with its lock held, as a session that runs has it. */
static int hold(const struct place *p, const uint8_t id[16])
{
	char path[200];
	char hex[33];
	int fd;

	for (int i = 0; i < 16; i++)
		(void)snprintf(hex + (size_t)2 * (size_t)i, 3, "%02x", id[i]);
	(void)snprintf(path, sizeof(path), "%s/sessions", p->run);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/sessions/%s", p->run, hex);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/sessions/%s/lock", p->run, hex);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	return fd;
}

static int first_id(void *arg, const struct session_record *r)
{
	uint8_t *got = arg;

	memcpy(got + 1 + (size_t)16 * got[0], r->id, 16);
	got[0]++;
	return got[0] == 3 ? 5 : 0;
}

TEST(life)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct session_record r = { 0 };
	bool used = false;
	int lock;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	lock = hold(&p, one);
	CHECK_EQ(begin(s, one, "/home/u/proj", 100, &err), 0);
	CHECK_EQ(begin(s, one, "/home/u/proj", 100, &err), -EEXIST);
	CHECK_EQ(session_record_get(s, "abcd", NULL, &r, &err), 0);
	CHECK_EQ(r.outcome, SESSION_RUNNING);
	CHECK_EQ(r.exit_status, -1);
	CHECK_EQ(r.audit_first, -1);
	CHECK_EQ(r.audit_last, -1);
	CHECK_EQ(r.plan_sha256[31], 7);
	CHECK_EQ(r.n_snapshots, 0);
	CHECK(r.agent == NULL && r.instance == NULL);
	CHECK_STR(r.argv, "[\"sh\",\"-c\",\"x\"]");
	session_record_done(&r);
	CHECK_EQ(session_record_snapshot(s, one, "/home/u/proj", "aa11", NULL, &err), 0);
	CHECK_EQ(session_record_snapshot(s, one, "/data", "bb22", NULL, &err), 0);
	CHECK_EQ(session_record_snapshot(s, one, "/home/u/proj", NULL, "cc33", &err), 0);
	CHECK_EQ(session_record_audit(s, one, 4, 19, &err), 0);
	CHECK_EQ(session_record_remove(s, one, &err), -EBUSY);
	CHECK_EQ(session_record_end(s, one, SESSION_ENDED, 3, 250, &err), 0);
	(void)close(lock);
	CHECK_EQ(session_record_get(s, NULL, "/home/u/proj/deep/er", &r, &err), 0);
	CHECK_EQ(r.outcome, SESSION_ENDED);
	CHECK_EQ(r.exit_status, 3);
	CHECK_EQ(r.ended_ns, 250);
	CHECK_EQ(r.audit_first, 4);
	CHECK_EQ(r.audit_last, 19);
	CHECK_EQ(r.n_snapshots, 2);
	CHECK_STR(r.snapshots[0].source, "/data");
	CHECK_STR(r.snapshots[0].before, "bb22");
	CHECK_STR(r.snapshots[0].after, "");
	CHECK_STR(r.snapshots[1].before, "aa11");
	CHECK_STR(r.snapshots[1].after, "cc33");
	session_record_done(&r);
	CHECK_EQ(session_record_uses(s, "cc33", &used, &err), 0);
	CHECK(used);
	CHECK_EQ(session_record_quarantine(s, one, "/data", "dd44", &err), 0);
	CHECK_EQ(session_record_quarantine(s, one, "/nothing", "dd44", NULL), -ENOENT);
	CHECK_EQ(session_record_uses(s, "dd44", &used, &err), 0);
	CHECK(used);
	CHECK_EQ(session_record_uses(s, "cc34", &used, &err), 0);
	CHECK(!used);
	CHECK_EQ(session_record_keep(s, one, true, &err), 0);
	CHECK_EQ(session_record_get(s, "abcd01", NULL, &r, &err), 0);
	CHECK(r.kept);
	session_record_done(&r);
	CHECK_EQ(session_record_remove(s, one, &err), 0);
	/* what it said of snapshots went with it */
	CHECK_EQ(session_record_uses(s, "bb22", &used, &err), 0);
	CHECK(!used);
	CHECK_EQ(session_record_remove(s, one, &err), -ENOENT);
	(void)state_close(s);
	place_done(&p);
}

TEST(which)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct session_record r = { 0 };
	uint8_t got[1 + 4 * 16] = { 0 };
	const char *const bad[] = { "", "abc", "ABCD", "abcd_", "abcg", "abcd%", "' OR 1",
				    "abcdabcdabcdabcdabcdabcdabcdabcda" };

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(session_record_get(s, NULL, "/a", &r, &err), -ENOENT);
	CHECK(strstr(err.text, "/a") != NULL);
	err = (struct sb_err){ 0 };
	CHECK_EQ(session_record_get(s, NULL, NULL, &r, &err), -ENOENT);
	CHECK_EQ(begin(s, one, "/a", 10, &err), 0);
	CHECK_EQ(begin(s, two, "/a/b", 20, &err), 0);
	CHECK_EQ(begin(s, other, "/a", 30, &err), 0);
	err = (struct sb_err){ 0 };
	CHECK_EQ(session_record_get(s, "abcd", NULL, &r, &err), -ENOTUNIQ);
	CHECK(strstr(err.text, "more digits") != NULL);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		CHECK_EQ(session_record_get(s, bad[i], NULL, &r, NULL), -EINVAL);
	CHECK_EQ(session_record_get(s, "abce", NULL, &r, NULL), -ENOENT);
	CHECK_EQ(session_record_get(s, NULL, "a/b", &r, NULL), -EINVAL);
	/* the innermost project, and of it the last one */
	CHECK_EQ(session_record_get(s, NULL, "/a/b/c", &r, NULL), 0);
	CHECK_EQ(r.id[2], 2);
	session_record_done(&r);
	CHECK_EQ(session_record_get(s, NULL, "/a/bc", &r, NULL), 0);
	CHECK_EQ(r.id[0], 0x77);
	session_record_done(&r);
	CHECK_EQ(session_record_get(s, NULL, "/ab", &r, NULL), -ENOENT);
	CHECK_EQ(session_record_get(s, NULL, "/", &r, NULL), -ENOENT);
	/* newest first, and no further than wanted */
	CHECK_EQ(session_record_each(s, first_id, got, &err), 5);
	CHECK_EQ(got[0], 3);
	CHECK_EQ(got[1], 0x77);
	CHECK_EQ(got[1 + 16 + 2], 2);
	CHECK_EQ(got[1 + 32 + 2], 1);
	(void)state_close(s);
	place_done(&p);
}

TEST(refused)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	char path[32];
	char id[SESSION_SNAPSHOT_ROOM + 1];
	struct session_record none = { .kind = SESSION_KIND_NONE };

	memset(id, 'a', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(session_record_begin(s, &none, NULL), -EEXIST); /* a rule of the table */
	CHECK_EQ(session_record_snapshot(s, one, "/x", "aa", NULL, NULL), -ENOENT);
	CHECK_EQ(session_record_end(s, one, SESSION_ENDED, 0, 1, NULL), -ENOENT);
	CHECK_EQ(session_record_audit(s, one, 0, 1, NULL), -ENOENT);
	CHECK_EQ(begin(s, one, NULL, 1, &err), 0);
	CHECK_EQ(session_record_snapshot(s, one, "x", "aa", NULL, NULL), -EINVAL);
	CHECK_EQ(session_record_snapshot(s, one, "/x", id, NULL, NULL), -EINVAL);
	for (int i = 0; i < SESSION_MAX_SNAPSHOTS; i++) {
		(void)snprintf(path, sizeof(path), "/m/%d", i);
		CHECK_EQ(session_record_snapshot(s, one, path, "aa", NULL, &err), 0);
	}
	CHECK_EQ(session_record_snapshot(s, one, "/m/more", "aa", NULL, NULL), -E2BIG);
	CHECK_EQ(session_record_snapshot(s, one, "/m/63", NULL, "bb", &err), 0);
	(void)state_close(s);
	place_done(&p);
}

TEST(crashed)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct session_record r = { 0 };
	size_t n = 0;
	int lock;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	lock = hold(&p, one);
	CHECK_EQ(begin(s, one, "/a", 10, &err), 0);
	CHECK_EQ(begin(s, two, "/a", 11, &err), 0); /* its session is gone */
	CHECK_EQ(begin(s, other, "/a", 12, &err), 0);
	CHECK_EQ(session_record_end(s, other, SESSION_TIMEOUT, 122, 13, &err), 0);
	/* told before gc has been there */
	CHECK_EQ(session_record_get(s, "abcd02", NULL, &r, &err), 0);
	CHECK_EQ(r.outcome, SESSION_CRASHED);
	CHECK_EQ(r.ended_ns, 0);
	session_record_done(&r);
	CHECK_EQ(session_record_gc(s, &n, &err), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(session_record_gc(s, &n, &err), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(session_record_get(s, "abcd01", NULL, &r, &err), 0);
	CHECK_EQ(r.outcome, SESSION_RUNNING);
	session_record_done(&r);
	CHECK_EQ(session_record_get(s, "7700", NULL, &r, &err), 0);
	CHECK_EQ(r.outcome, SESSION_TIMEOUT);
	session_record_done(&r);
	/* its lock is let go before it says how it ended: whoever looks meanwhile does no harm */
	(void)close(lock);
	CHECK_EQ(session_record_gc(s, &n, &err), 0);
	CHECK_EQ(n, 2);
	CHECK_EQ(session_record_end(s, one, SESSION_ENDED, 0, 20, &err), 0);
	CHECK_EQ(session_record_get(s, "abcd01", NULL, &r, &err), 0);
	CHECK_EQ(r.outcome, SESSION_ENDED);
	session_record_done(&r);
	(void)state_close(s);
	place_done(&p);
}

/* A database of the version before has its rows still, and room for sessions. */
TEST(older)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct instance want = { .name = (char *)(uintptr_t)"was", .runtime = (char *)(uintptr_t)"namespace" };
	struct instance i = { 0 };
	struct session_record r = { 0 };
	sqlite3 *db = NULL;
	char path[128];

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(instance_add(s, &want, &err), 0);
	(void)state_close(s);
	s = NULL;
	(void)snprintf(path, sizeof(path), "%s/state.db", p.state);
	CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_EQ(sqlite3_exec(db, "DROP TABLE grants; DROP TABLE grants_generation; DROP TABLE session_snapshots; DROP TABLE sessions; "
				  "ALTER TABLE instances DROP COLUMN base; PRAGMA user_version = 1",
			      NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(begin(s, one, "/a", 10, &err), 0);
	CHECK_EQ(session_record_get(s, "abcd", NULL, &r, &err), 0);
	session_record_done(&r);
	CHECK_EQ(instance_get(s, "was", &i, &err), 0);
	instance_done(&i);
	(void)state_close(s);
	place_done(&p);
}

SB_NORETURN static void churn(const struct place *p)
{
	struct state *s = NULL;
	struct sb_err err = { 0 };

	if (state_open(&p->d, &s, &err) < 0)
		_exit(9);
	for (;;)
		if (begin(s, two, "/k", 5, &err) < 0 ||
		    session_record_snapshot(s, two, "/k", "aa", NULL, &err) < 0 ||
		    session_record_end(s, two, SESSION_ENDED, 1, 6, &err) < 0 ||
		    session_record_snapshot(s, two, "/k", NULL, "bb", &err) < 0 ||
		    session_record_remove(s, two, &err) < 0)
			_exit(8);
}

/* Killed anywhere: what was there before is there, and the row is whole or absent. */
TEST(killed)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(begin(s, one, "/kept", 1, &err), 0);
	CHECK_EQ(session_record_snapshot(s, one, "/kept", "k1", "k2", &err), 0);
	for (unsigned int k = 0; k < 20; k++) {
		struct session_record r = { 0 };
		int st = 0;
		pid_t pid = fork();
		int got;

		if (pid == 0)
			churn(&p);
		REQUIRE(pid > 0);
		(void)usleep(2000 + k * 1300);
		(void)kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &st, 0), pid);
		CHECK(WIFSIGNALED(st));
		CHECK_EQ(session_record_get(s, "abcd01", NULL, &r, &err), 0);
		CHECK_EQ(r.n_snapshots, 1);
		CHECK_STR(r.snapshots[0].after, "k2");
		session_record_done(&r);
		got = session_record_get(s, "abcd02", NULL, &r, NULL);
		CHECK(got == 0 || got == -ENOENT);
		if (got == 0) {
			CHECK(r.outcome == SESSION_CRASHED || r.outcome == SESSION_ENDED);
			CHECK(r.n_snapshots <= 1);
			session_record_done(&r);
			CHECK_EQ(session_record_remove(s, two, &err), 0);
		}
	}
	(void)state_close(s);
	place_done(&p);
}

static int more(struct state *s, struct sb_err *err)
{
	int r = begin(s, two, "/more", 2, err);

	if (r == 0)
		r = session_record_snapshot(s, one, "/kept", "no", NULL, err);
	if (r == 0)
		r = session_record_end(s, one, SESSION_FAILED, 9, 9, err);
	return r == 0 ? session_record_remove(s, one, err) : r;
}

/* The disk is full at any point of a write: an error with a text, and what was there is intact. */
TEST(disk_full)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	int failed = 0;

	place_make(&p);
	for (rlim_t limit = 0; limit <= 36864; limit += 2048) {
		struct session_record r = { 0 };
		int st = 0;
		pid_t pid;
		int got;

		CHECK_EQ(state_open(&p.d, &s, &err), 0);
		got = session_record_get(s, "abcd01", NULL, &r, NULL);
		if (got == 0)
			session_record_done(&r);
		else
			CHECK_EQ(begin(s, one, "/kept", 1, &err), 0);
		if (session_record_get(s, "abcd02", NULL, &r, NULL) == 0) {
			session_record_done(&r);
			CHECK_EQ(session_record_remove(s, two, &err), 0);
		}
		CHECK_EQ(session_record_end(s, one, SESSION_ENDED, 1, 2, &err), 0);
		(void)state_close(s);
		s = NULL;
		pid = fork();
		if (pid == 0) {
			const struct rlimit none = { limit, limit };
			int k = state_open(&p.d, &s, &err);

			(void)signal(SIGXFSZ, SIG_IGN);
			if (k < 0 || setrlimit(RLIMIT_FSIZE, &none) < 0)
				_exit(9);
			k = more(s, &err);
			_exit(k == 0 ? 0 : err.text[0] ? 1 : 2);
		}
		CHECK_EQ(waitpid(pid, &st, 0), pid);
		CHECK(WIFEXITED(st) && WEXITSTATUS(st) <= 1);
		failed += WIFEXITED(st) && WEXITSTATUS(st) == 1;
		CHECK_EQ(state_open(&p.d, &s, &err), 0);
		got = session_record_get(s, "abcd01", NULL, &r, NULL);
		CHECK(got == 0 || (got == -ENOENT && WEXITSTATUS(st) == 0));
		if (got == 0) {
			CHECK(r.exit_status == 1 || r.exit_status == 9);
			CHECK_STR(r.project, "/kept");
			session_record_done(&r);
		}
		(void)state_close(s);
		s = NULL;
	}
	CHECK(failed >= 3); /* the limits did cut writes */
	place_done(&p);
}

/* Two at once: both rows are there. */
TEST(together)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct session_record r = { 0 };
	int st = 0;
	pid_t pid;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	(void)state_close(s);
	s = NULL;
	pid = fork();
	for (int i = 0; i < 40; i++) {
		uint8_t id[16] = { 0 };

		id[0] = pid == 0 ? 0xc0 : 0xd0;
		id[1] = (uint8_t)i;
		if (!s && state_open(&p.d, &s, &err) < 0)
			_exit(9);
		if (begin(s, id, "/t", (uint64_t)i, &err) < 0 ||
		    session_record_snapshot(s, id, "/t", "aa", "bb", &err) < 0)
			_exit(8);
	}
	if (pid == 0)
		_exit(0);
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	for (int i = 0; i < 40; i++) {
		char hex[9];

		for (int w = 0; w < 2; w++) {
			(void)snprintf(hex, sizeof(hex), "%s%02x", w ? "c0" : "d0", (unsigned int)i);
			CHECK_EQ(session_record_get(s, hex, NULL, &r, &err), 0);
			CHECK_EQ(r.n_snapshots, 1);
			session_record_done(&r);
		}
	}
	(void)state_close(s);
	place_done(&p);
}
