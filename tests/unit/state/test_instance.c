#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "dirs.h"

static const uint8_t session[16] = { 1, 2, 3 };
static const uint8_t digest[32] = { 9 };

static int claim(struct state *s, const char *name, int *lock, struct sb_err *err)
{
	struct instance want = { .name = (char *)(uintptr_t)name,
				 .runtime = (char *)(uintptr_t)"namespace",
				 .argv = (char *)(uintptr_t)"[\"sh\"]" };
	struct instance got = { 0 };
	bool resumed = false;
	int r = instance_claim(s, &want, &resumed, &got, lock, err);

	if (r == 0) {
		r = resumed ? 1 : 0;
		instance_done(&got);
	}
	return r;
}

static int count(void *arg, const struct instance *i)
{
	(void)i;
	(*(int *)arg)++;
	return 0;
}

TEST(names)
{
	char longest[66];

	memset(longest, 'a', sizeof(longest));
	longest[64] = '\0';
	CHECK(instance_name_ok("a"));
	CHECK(instance_name_ok("Web-1.2_x"));
	CHECK(instance_name_ok(longest));
	longest[64] = 'a';
	longest[65] = '\0';
	CHECK(!instance_name_ok(longest));
	CHECK(!instance_name_ok(""));
	CHECK(!instance_name_ok(".."));
	CHECK(!instance_name_ok("-x"));
	CHECK(!instance_name_ok("a/b"));
	CHECK(!instance_name_ok("a\nb"));
	CHECK(!instance_name_ok("\xc3\xa4"));
}

TEST(life)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct instance i = { 0 };
	struct stat st;
	char path[128];
	int lock = -1;
	int other = -1;
	int n = 0;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(claim(s, "web", &lock, &err), 0);
	CHECK_EQ(claim(s, "web", &other, &err), -EBUSY);
	CHECK(strstr(err.text, "attach web") != NULL);
	err.code = 0;
	CHECK_EQ(instance_get(s, "web", &i, &err), 0);
	CHECK_EQ(i.status, INSTANCE_STARTING);
	CHECK_EQ(i.exit_code, -1);
	CHECK_EQ(instance_started(s, i.id, session, digest, &err), 0);
	CHECK_EQ(instance_remove(s, "web", &err), -EBUSY);
	err.code = 0;
	CHECK_EQ(instance_stopped(s, i.id, 3, &err), 0);
	(void)close(lock);
	instance_done(&i);
	CHECK_EQ(instance_get(s, "web", &i, &err), 0);
	CHECK_EQ(i.status, INSTANCE_STOPPED);
	CHECK_EQ(i.exit_code, 3);
	CHECK(memcmp(i.session, session, 16) == 0);
	instance_done(&i);
	CHECK_EQ(claim(s, "web", &lock, &err), 1); /* resumed */
	(void)close(lock);
	CHECK_EQ(instance_get(s, "web", &i, &err), 0); /* and its holder is gone */
	CHECK_EQ(i.status, INSTANCE_CRASHED);
	(void)snprintf(path, sizeof(path), "%s/instances/%lld", p.state, (long long)i.id);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0700);
	instance_done(&i);
	CHECK_EQ(claim(s, "db", &lock, &err), 0);
	(void)close(lock);
	CHECK_EQ(instance_rename(s, "db", "web", &err), -EEXIST);
	err.code = 0;
	CHECK_EQ(instance_rename(s, "db", "a/b", &err), -EINVAL);
	err.code = 0;
	CHECK_EQ(instance_rename(s, "db", "pg", &err), 0);
	CHECK_EQ(instance_remove(s, "wep", &err), -ENOENT);
	CHECK(strstr(err.text, "did you mean \"web\"") != NULL);
	err.code = 0;
	CHECK_EQ(instance_remove(s, "web", &err), 0);
	CHECK(stat(path, &st) < 0);
	CHECK_EQ(instance_each(s, count, &n, &err), 0);
	CHECK_EQ(n, 1);
	(void)snprintf(path, sizeof(path), "%s/state.db", p.state);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0600);
	(void)state_close(s);
	place_done(&p);
}

/* A session's lock counts even when the instance's own is free: its monitor still clears up. */
TEST(session_lock)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct instance i = { 0 };
	char path[160];
	int lock = -1;
	int held;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(claim(s, "web", &lock, &err), 0);
	CHECK_EQ(instance_started(s, 1, session, digest, &err), 0);
	(void)close(lock);
	(void)snprintf(path, sizeof(path), "%s/sessions", p.run);
	CHECK_EQ(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/sessions/01020300000000000000000000000000", p.run);
	CHECK_EQ(mkdir(path, 0700), 0);
	memcpy(path + strlen(path), "/lock", 6);
	held = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK_EQ(flock(held, LOCK_EX), 0);
	CHECK_EQ(claim(s, "web", &lock, &err), -EBUSY);
	(void)close(held);
	err.code = 0;
	CHECK_EQ(instance_get(s, "web", &i, &err), 0);
	CHECK_EQ(i.status, INSTANCE_CRASHED);
	instance_done(&i);
	CHECK_EQ(claim(s, "web", &lock, &err), 1);
	(void)close(lock);
	(void)state_close(s);
	place_done(&p);
}

static int racer(const struct place *p, int go)
{
	struct state *s = NULL;
	struct sb_err err = { 0 };
	int lock = -1;
	char c;
	int r;

	if (state_open(&p->d, &s, &err) < 0 || read(go, &c, 1) < 0)
		return 9;
	r = claim(s, "one", &lock, &err);
	if (r == 0)
		(void)usleep(200000);
	return r == 0 ? 0 : r == -EBUSY ? 1 : 2;
}

TEST(race)
{
	struct place p;
	int go[2];
	int won = 0;
	int busy = 0;

	place_make(&p);
	CHECK_EQ(pipe(go), 0);
	for (int i = 0; i < 6; i++)
		if (fork() == 0) {
			(void)close(go[1]);
			_exit(racer(&p, go[0]));
		}
	(void)close(go[0]);
	(void)usleep(50000);
	(void)close(go[1]);
	for (int i = 0; i < 6; i++) {
		int st = 0;

		CHECK(wait(&st) > 0);
		won += WIFEXITED(st) && WEXITSTATUS(st) == 0;
		busy += WIFEXITED(st) && WEXITSTATUS(st) == 1;
	}
	CHECK_EQ(won, 1);
	CHECK_EQ(busy, 5);
	place_done(&p);
}

SB_NORETURN static void churn(const struct place *p)
{
	struct state *s = NULL;
	struct sb_err err = { 0 };

	for (;;) {
		struct instance i = { 0 };
		int lock = -1;

		if (!s && state_open(&p->d, &s, &err) < 0)
			_exit(9);
		if (claim(s, "k", &lock, &err) >= 0 && instance_get(s, "k", &i, &err) == 0 &&
		    instance_started(s, i.id, session, digest, &err) == 0 &&
		    instance_stopped(s, i.id, 0, &err) == 0) {
			(void)close(lock);
			if (instance_remove(s, "k", &err) < 0)
				_exit(8);
		} else {
			_exit(7);
		}
		instance_done(&i);
	}
}

/* Killed anywhere: the rows are whole, and the name can be had again. */
TEST(killed)
{
	struct place p;

	place_make(&p);
	for (unsigned int k = 0; k < 25; k++) {
		struct state *s = NULL;
		struct sb_err err = { 0 };
		int lock = -1;
		int st = 0;
		pid_t pid = fork();

		if (pid == 0)
			churn(&p);
		REQUIRE(pid > 0);
		(void)usleep(1000 + k * 1700);
		(void)kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &st, 0), pid);
		CHECK(WIFSIGNALED(st));
		CHECK_EQ(state_open(&p.d, &s, &err), 0);
		CHECK(claim(s, "k", &lock, &err) >= 0);
		(void)close(lock);
		CHECK_EQ(instance_remove(s, "k", &err), 0);
		(void)state_close(s);
	}
	place_done(&p);
}

static void scribble(const struct place *p, const char *bytes, size_t len)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/state.db", p->state);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK_EQ(write(fd, bytes, len), (ssize_t)len);
	(void)close(fd);
}

TEST(damaged)
{
	static char junk[8192];
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct stat st;
	char path[128];

	place_make(&p);
	memset(junk, 'x', sizeof(junk));
	scribble(&p, junk, sizeof(junk));
	CHECK_EQ(state_open(&p.d, &s, &err), -EBADMSG);
	CHECK(strstr(err.text, "damaged") != NULL && strstr(err.text, "nothing was changed") != NULL);
	(void)snprintf(path, sizeof(path), "%s/state.db", p.state);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_size, (off_t)sizeof(junk)); /* nothing is lost */
	place_done(&p);
}

TEST(newer)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	sqlite3 *db = NULL;
	char path[128];

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	(void)state_close(s);
	s = NULL;
	(void)snprintf(path, sizeof(path), "%s/state.db", p.state);
	CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_EQ(sqlite3_exec(db, "PRAGMA user_version = 7", NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
	CHECK_EQ(state_open(&p.d, &s, &err), -EPROTO);
	CHECK(strstr(err.text, "newer") != NULL);
	place_done(&p);
}

TEST(older)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct instance got = { 0 };
	sqlite3 *db = NULL;
	char path[128];
	int lock = -1;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(claim(s, "a", &lock, &err), 0);
	(void)close(lock);
	(void)state_close(s);
	s = NULL;
	(void)snprintf(path, sizeof(path), "%s/state.db", p.state);
	CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_EQ(sqlite3_exec(db, "DROP TABLE grants; DROP TABLE grants_generation; DROP TABLE session_snapshots; DROP TABLE sessions; ALTER TABLE instances DROP "
				  "COLUMN base; PRAGMA user_version = 1", NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(instance_get(s, "a", &got, &err), 0);
	CHECK(got.base == NULL);
	instance_done(&got);
	(void)state_close(s);
	place_done(&p);
}

TEST(added)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct instance want = { .name = (char *)(uintptr_t)"in", .layers = (char *)(uintptr_t)"[]",
				 .base = (char *)(uintptr_t)"{}" };
	struct instance got = { 0 };
	char path[160];
	size_t n = 0;
	int lock = -1;
	int other = -1;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(instance_add(s, &want, &err), 0);
	CHECK_EQ(instance_add(s, &want, &err), -EEXIST);
	want.name = (char *)(uintptr_t)"../in";
	CHECK_EQ(instance_add(s, &want, &err), -EINVAL);
	CHECK_EQ(instance_hold(s, "in", &got, &lock, &err), 0);
	CHECK_EQ(got.status, INSTANCE_STOPPED);
	CHECK_STR(got.base, "{}");
	instance_done(&got);
	CHECK_EQ(instance_hold(s, "in", &got, &other, &err), -EBUSY);
	CHECK_EQ(claim(s, "in", &other, &err), -EBUSY);
	CHECK_EQ(instance_remove(s, "in", &err), -EBUSY);
	(void)close(lock);
	CHECK_EQ(claim(s, "in", &lock, &err), 1);
	CHECK_EQ(instance_hold(s, "in", &got, &other, &err), -EBUSY);
	/* folders without a row go, others stay */
	(void)snprintf(path, sizeof(path), "%s/instances/77", p.state);
	CHECK_EQ(mkdir(path, 0700), 0);
	CHECK_EQ(instance_gc(s, &n, &err), 0);
	CHECK_EQ(n, 1);
	CHECK(access(path, F_OK) < 0);
	(void)close(lock);
	CHECK_EQ(claim(s, "in", &lock, &err), 1);
	(void)close(lock);
	(void)state_close(s);
	place_done(&p);
}

TEST(open_to_others)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	char path[128];

	place_make(&p);
	scribble(&p, "", 0);
	(void)snprintf(path, sizeof(path), "%s/state.db", p.state);
	CHECK_EQ(chmod(path, 0644), 0);
	CHECK_EQ(state_open(&p.d, &s, &err), -EPERM);
	place_done(&p);
}

/* No room on the disk: an error, and what was there is still there. */
TEST(disk_full)
{
	struct place p;
	struct sb_err err = { 0 };
	struct state *s = NULL;
	struct instance i = { 0 };
	int lock = -1;
	int st = 0;
	pid_t pid;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(claim(s, "kept", &lock, &err), 0);
	(void)close(lock);
	(void)state_close(s);
	s = NULL;
	pid = fork();
	if (pid == 0) {
		const struct rlimit none = { 4096, 4096 };
		int r = state_open(&p.d, &s, &err);

		(void)signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &none) < 0)
			_exit(9);
		if (r == 0)
			r = claim(s, "more", &lock, &err);
		_exit(r < 0 && err.text[0] ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(instance_get(s, "kept", &i, &err), 0);
	instance_done(&i);
	CHECK_EQ(instance_get(s, "more", &i, &err), -ENOENT);
	(void)state_close(s);
	place_done(&p);
}
