/* The store of format 1 (tests/data/snapshot-1), byte by byte; texts; guarded names. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/guarded.h"
#include "os/rmtree.h"
#include "snapshot/capture_i.h"
#include "snapshot/snapshot.h"
#include "t.h"

#define GOLDEN "de57aa1a488f42475c6e17ab016dbe12ebbdc86d2cfc9763eeb217e882c0536b"
#define PACK "b1ea4118df1dbee44cbe602a8c12b82835a968b69586e837bfab19cdef828ce2"

static int copy(int to, const char *name)
{
	char path[600];
	char *p = NULL;
	size_t len = 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", getenv("SNAPSHOT_DATA"), name);
	r = sb_fd_read_file(AT_FDCWD, path, 1U << 20, &p, &len);
	if (r == 0)
		r = sb_snap_store_write(to, name, p, len, false);
	free(p);
	return r;
}

static int golden(char dir[64])
{
	int fd = -1;

	(void)snprintf(dir, 64, "/tmp/snap-test.XXXXXX");
	if (!mkdtemp(dir) || (fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -1;
	if (mkdirat(fd, "packs", 0700) < 0 || mkdirat(fd, "manifests", 0700) < 0 ||
	    copy(fd, "format") < 0 || copy(fd, "packs/" PACK) < 0 || copy(fd, "manifests/" GOLDEN) < 0)
		sb_fd_close(&fd);
	return fd;
}

static void clear(const char *dir)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_EQ(sb_rmtree(tmp, dir + 5), 0);
	sb_fd_close(&tmp);
}

/* Findings; what they say in @text. -errno: it does not even open. */
static int64_t verify(int dir, char **text)
{
	struct sb_snap_store *s = NULL;
	struct sb_err err = { 0 };
	size_t len = 0;
	FILE *out = open_memstream(text, &len);
	int64_t n = sb_snap_store_open(dir, false, &s, &err);

	if (n == 0)
		n = snap_verify(s, NULL, out, false, &err);
	(void)sb_snap_store_free(s);
	(void)fclose(out);
	return n;
}

TEST(whole)
{
	sb_autofree char *text = NULL;
	char dir[64];
	int fd = golden(dir);

	REQUIRE(fd >= 0);
	CHECK_EQ(verify(fd, &text), 0);
	sb_fd_close(&fd);
	clear(dir);
}

static void each_byte(int dir, const char *name, const char *said)
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC);
	struct stat st;

	REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 0; at < st.st_size; at++) {
		char *text = NULL;
		uint8_t was;
		uint8_t is;
		int64_t n;

		REQUIRE(pread(fd, &was, 1, at) == 1);
		is = was ^ 0x55;
		REQUIRE(pwrite(fd, &is, 1, at) == 1);
		n = verify(dir, &text);
		if (n == 0 || (n > 0 && !strstr(text, said)))
			t_fail(__FILE__, __LINE__, "%s, byte %lld: %lld: %s", name, (long long)at,
			       (long long)n, text);
		free(text);
		REQUIRE(pwrite(fd, &was, 1, at) == 1);
	}
	sb_fd_close(&fd);
}

TEST(mutated)
{
	sb_autofree char *text = NULL;
	char dir[64];
	int fd = golden(dir);

	REQUIRE(fd >= 0);
	each_byte(fd, "format", "format");
	each_byte(fd, "manifests/" GOLDEN, GOLDEN);
	each_byte(fd, "packs/" PACK, PACK);
	CHECK_EQ(verify(fd, &text), 0); /* all was put back */
	sb_fd_close(&fd);
	clear(dir);
}

TEST(cut)
{
	char dir[64];
	int fd = golden(dir);
	int pack;

	REQUIRE(fd >= 0);
	pack = openat(fd, "packs/" PACK, O_RDWR | O_CLOEXEC);
	REQUIRE(pack >= 0);
	for (off_t n = 5160; n >= 0; n -= 43) {
		char *text = NULL;

		REQUIRE(ftruncate(pack, n) == 0);
		CHECK(verify(fd, &text) > 0);
		CHECK(strstr(text, PACK));
		CHECK(strstr(text, "de57aa1a488f: .")); /* and who suffers */
		free(text);
	}
	sb_fd_close(&pack);
	sb_fd_close(&fd);
	clear(dir);
}

/* --- text --- */

static void differ(const char *a, const char *b, const char *want)
{
	struct snap_lines n;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	CHECK_EQ(snap_diff_text(out, true, (const uint8_t *)a, strlen(a), (const uint8_t *)b, strlen(b), &n), 0);
	(void)fclose(out);
	CHECK_STR(text, want);
	free(text);
}

/* A file of @n pieces, each @step from the next. */
static int pieces(int dir, const char *name, int n, off_t step)
{
	sb_autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char part[4096];
	int r = fd < 0 ? -1 : 0;

	memset(part, 'x', sizeof(part));
	for (int i = 0; r == 0 && i < n; i++)
		r = pwrite(fd, part, sizeof(part), i * step) == (ssize_t)sizeof(part) ? 0 : -1;
	return r == 0 ? ftruncate(fd, (n + 1) * step) : -1;
}

/* More pieces than are kept: joined when that costs little, listed only when it would cost the holes. */
TEST(splinters)
{
	struct sb_snap_store *s = NULL;
	struct snap_captured got = { 0 };
	struct snap_loaded l = { 0 };
	struct sb_snap_entry e;
	struct sb_err err = { 0 };
	struct snap_tree tree;
	struct snap_capture c = { .tree = &tree, .label = "", .role = SB_SNAP_ROLE_MANUAL, .max_extents = 16 };
	char dir[64] = "/tmp/snap-test.XXXXXX";
	sb_autofd int top = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	sb_autofd int store = -1;
	sb_autofd int at = -1;

	REQUIRE(top >= 0 && mkdirat(top, "s", 0700) == 0 && mkdirat(top, "t", 0700) == 0);
	store = openat(top, "s", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	at = openat(top, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(pieces(at, "near", 40, 16384) == 0 && pieces(at, "far", 40, 1LL << 36) == 0 &&
		pieces(at, "few", 3, 1LL << 40) == 0);
	snap_tree_init(&tree, at, "/x");
	REQUIRE(sb_snap_store_open(store, false, &s, &err) == 0);
	c.store = s;
	CHECK_EQ(snap_capture(&c, &got, &err), 0);
	REQUIRE(snap_load(s, got.id, &l, &err) == 0);
	CHECK(snap_lookup(s, &l.m, "near", &e) == 0 && e.kind == SB_SNAP_FILE && e.sparse && e.size == 41 * 16384);
	CHECK(snap_lookup(s, &l.m, "few", &e) == 0 && e.kind == SB_SNAP_FILE && e.sparse && e.size == 4ULL << 40);
	CHECK(snap_lookup(s, &l.m, "far", &e) == 0 && e.kind == SB_SNAP_OTHER && e.why == SB_SNAP_PIECES);
	CHECK_EQ(got.unreadable, 1);
	CHECK(got.new_bytes < 2U << 20);
	snap_loaded_done(&l);
	(void)sb_snap_store_free(s);
	clear(dir);
}

/* --- folders of very many names --- */

struct there {
	char dir[64];
	int store;
	int at;
	struct snap_tree tree;
};

static void there_begin(struct there *t)
{
	sb_autofd int top = -1;

	*t = (struct there){ .dir = "/tmp/snap-test.XXXXXX" };
	top = mkdtemp(t->dir) ? open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	REQUIRE(top >= 0 && mkdirat(top, "s", 0700) == 0 && mkdirat(top, "t", 0755) == 0);
	t->store = openat(top, "s", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->at = openat(top, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(t->store >= 0 && t->at >= 0);
	snap_tree_init(&t->tree, t->at, "/x");
}

static void there_end(struct there *t)
{
	sb_fd_close(&t->store);
	sb_fd_close(&t->at);
	clear(t->dir);
}

/* @n links with the longest targets that there are, near enough. */
static int long_links(int dir, const char *prefix, int n)
{
	char target[4001];
	char name[32];
	int r = 0;

	memset(target, 'x', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	for (int i = 0; r == 0 && i < n; i++) {
		(void)snprintf(name, sizeof(name), "%s%04d", prefix, i);
		r = symlinkat(target, dir, name);
	}
	return r;
}

/* A capture with a store of its own, and what one of @path is in it, read back. Return: the capture's. */
static int capture_of(const struct there *t, struct snap_capture c, struct snap_captured *got, const char *path,
		      struct sb_snap_entry *e)
{
	struct sb_snap_store *s = NULL;
	struct snap_loaded l = { 0 };
	struct sb_err err = { 0 };
	int r = sb_snap_store_open(t->store, false, &s, &err);

	c.store = s;
	c.tree = &t->tree;
	c.label = "";
	c.role = SB_SNAP_ROLE_MANUAL;
	if (r == 0)
		r = snap_capture(&c, got, &err);
	if (r == 0)
		r = snap_load(s, got->id, &l, &err);
	if (r == 0 && snap_lookup(s, &l.m, path, e) < 0)
		*e = (struct sb_snap_entry){ 0 };
	snap_loaded_done(&l);
	(void)sb_snap_store_free(s);
	if (r < 0)
		(void)fprintf(stderr, "# %s\n", err.text);
	return r;
}

TEST(a_long_list)
{
	sb_autofree char *text = NULL;
	struct snap_captured got;
	struct sb_snap_entry e;
	struct there t;
	sb_autofd int src = -1;

	there_begin(&t);
	REQUIRE(mkdirat(t.at, "src", 0755) == 0);
	src = openat(t.at, "src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(src >= 0 && long_links(src, "l", 2600) == 0); /* more than a block holds */
	for (int i = 0; i < 2; i++) { /* then the root, too, and nothing else is new */
		CHECK_EQ(capture_of(&t, (struct snap_capture){ 0 }, &got, i ? "m2599" : "src/l2599", &e), 0);
		CHECK(e.kind == SB_SNAP_LINK);
		CHECK_EQ(got.counts.links, i ? 5200 : 2600);
		REQUIRE(i == 1 || long_links(t.at, "m", 2600) == 0);
	}
	CHECK_EQ(verify(t.store, &text), 0);
	there_end(&t);
}

/* Of a path of any length the failure shows the beginning: somebody must find what to remove. */
TEST(a_failure_says_where)
{
	struct cap *c = calloc(1, sizeof(*c));
	struct cap_dir d[5] = { 0 };
	struct cap_entry e[4] = { 0 };
	char name[201];

	REQUIRE(c && pthread_mutex_init(&c->lock, NULL) == 0);
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < 4; i++) {
		e[i].name = name;
		d[i].v = &e[i];
		d[i + 1].parent = &d[i];
	}
	CHECK_EQ(cap_fail(c, &d[4], "f", -EIO), -EIO);
	CHECK(strncmp(c->text, "\"dddddd", 7) == 0 && strstr(c->text, "...\": Input/output error"));
	c->error = 0;
	CHECK_EQ(cap_fail(c, &d[1], "f", -EIO), -EIO);
	CHECK(strstr(c->text, "dd/f\": Input/output error") && !strstr(c->text, "..."));
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

/* The shared folder is never left out as a whole; others are, and are seen. */
TEST(a_list_that_does_not_fit)
{
	const struct snap_capture small = { .max_tree = 40000 };
	sb_autofree char *text = NULL;
	struct snap_captured got;
	struct sb_snap_entry e;
	struct there t;
	sb_autofd int src = -1;

	there_begin(&t);
	REQUIRE(mkdirat(t.at, "src", 0755) == 0 && long_links(t.at, "a", 3) == 0);
	src = openat(t.at, "src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_EQ(capture_of(&t, small, &got, "a0002", &e), 0);
	CHECK(e.kind == SB_SNAP_LINK);
	CHECK_EQ(got.unreadable, 0);
	REQUIRE(src >= 0 && long_links(src, "l", 12) == 0);
	CHECK_EQ(capture_of(&t, small, &got, "src", &e), 0);
	CHECK(e.kind == SB_SNAP_OTHER && e.why == SB_SNAP_DEEP);
	CHECK_EQ(got.unreadable, 1);
	REQUIRE(long_links(t.at, "b", 12) == 0 && symlinkat("b0000", t.at, "Makefile") == 0);
	CHECK_EQ(capture_of(&t, small, &got, "Makefile", &e), 0);
	CHECK(e.kind == SB_SNAP_LINK);
	CHECK_EQ(got.unreadable, 2);
	CHECK_EQ(got.counts.links, 4); /* those from before, and what is guarded */
	CHECK_EQ(capture_of(&t, small, &got, "a0002", &e), 0);
	CHECK(e.kind == SB_SNAP_LINK);
	CHECK_EQ(capture_of(&t, small, &got, "b0000", &e), 0);
	CHECK(e.kind == SB_SNAP_NONE);
	CHECK_EQ(verify(t.store, &text), 0);
	there_end(&t);
}

/* What is in memory for a comparison is not in the store: a snapshot that follows holds it. */
TEST(staged_is_not_stored)
{
	struct snap_captured got;
	struct sb_snap_store *s = NULL;
	struct snap_capture c = { .label = "", .role = SB_SNAP_ROLE_AFTER, .stage = true };
	struct snap_loaded l = { 0 };
	sb_autofree char *text = NULL;
	struct sb_err err = { 0 };
	struct there t;

	there_begin(&t);
	REQUIRE(mkdirat(t.at, "src", 0755) == 0 && symlinkat("x", t.at, "src/l") == 0);
	REQUIRE(sb_snap_store_open(t.store, false, &s, &err) == 0);
	c.store = s;
	c.tree = &t.tree;
	CHECK_EQ(snap_capture(&c, &got, &err), 0);
	CHECK_EQ(snap_load(s, got.id, &l, &err), 0);
	CHECK_EQ(sb_snap_store_has(s, got.root), 0);
	snap_loaded_done(&l);
	c.stage = false;
	CHECK_EQ(snap_capture(&c, &got, &err), 0);
	CHECK_EQ(verify(t.store, &text), 0); /* by a store of its own */
	c.stage = true;
	REQUIRE(symlinkat("x", t.at, "src/m") == 0);
	CHECK_EQ(snap_capture(&c, &got, &err), 0);
	sb_snap_store_unstage(s);
	CHECK_EQ(snap_load(s, got.id, &l, &err), -ENOENT);
	(void)sb_snap_store_free(s);
	there_end(&t);
}

/* Links that a manifest has no room for are files of their own, and counted. */
TEST(too_many_linked)
{
	const struct snap_capture small = { .max_groups = 200 };
	sb_autofree char *text = NULL;
	struct snap_captured got;
	struct sb_snap_entry e;
	struct there t;
	char name[32];
	char other[32];

	there_begin(&t);
	for (int i = 0; i < 60; i++) {
		(void)snprintf(name, sizeof(name), "file%02d", i / 2);
		if (i % 2 == 0) {
			sb_autofd int fd = openat(t.at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

			REQUIRE(fd >= 0);
		} else {
			(void)snprintf(other, sizeof(other), "file%02d-too", i / 2);
			REQUIRE(linkat(t.at, name, t.at, other, 0) == 0);
		}
	}
	CHECK_EQ(capture_of(&t, (struct snap_capture){ 0 }, &got, "file29-too", &e), 0);
	CHECK_EQ(got.unreadable, 0);
	CHECK_EQ(capture_of(&t, small, &got, "file29-too", &e), 0);
	CHECK(e.kind == SB_SNAP_FILE);
	CHECK(got.unreadable > 30 && got.unreadable < 60);
	CHECK_EQ(verify(t.store, &text), 0);
	there_end(&t);
}

/* As an ordinary user, by a descriptor from before. Return: 0 when the link in it was seen. */
static int as_somebody(const struct there *t)
{
	struct snap_captured got;
	struct sb_snap_entry e;
	int status = -1;
	pid_t pid;

	if (geteuid() == 0)
		CHECK(fchown(t->store, 65534, 65534) == 0 && fchown(t->at, 65534, 65534) == 0);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		_exit(capture_of(t, (struct snap_capture){ 0 }, &got, "l", &e) == 0 && e.kind == SB_SNAP_LINK ? 0 : 1);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

TEST(a_closed_root)
{
	static const mode_t modes[] = { 0755, 0500, 0, 0311, 0300, 0400, 0111, 0600 };

	for (size_t i = 0; i < SB_ARRAY_LEN(modes); i++) {
		const mode_t want = (modes[i] & 0500) == 0500 ? modes[i] : modes[i] | 0700;
		struct stat st;
		struct there t;

		there_begin(&t);
		REQUIRE(symlinkat("x", t.at, "l") == 0 && fchmod(t.at, modes[i]) == 0);
		if (as_somebody(&t) != 0)
			t_fail(__FILE__, __LINE__, "mode %o", (unsigned int)modes[i]);
		CHECK(fstat(t.at, &st) == 0 && (st.st_mode & 07777) == want);
		there_end(&t);
	}
}

/*
 * A page that was written once is written again through its mapping, and no time changes (on file systems that do
 * not write it back in between, as here): the cache of a capture in between is not believed by the session's own.
 */
TEST(a_mapping_hides_nothing)
{
	struct snap_captured before;
	struct snap_captured got;
	struct sb_snap_entry a;
	struct sb_snap_entry e;
	const struct timespec slack = { .tv_nsec = 60000000 };
	sb_autofd int fd = -1;
	struct there t;
	char *p;

	there_begin(&t);
	fd = openat(t.at, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0 && write(fd, "good", 4) == 4);
	p = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(p != MAP_FAILED);
	CHECK_EQ(capture_of(&t, (struct snap_capture){ 0 }, &before, "f", &a), 0);
	(void)nanosleep(&slack, NULL);
	p[3] = 'D';
	(void)nanosleep(&slack, NULL);
	CHECK_EQ(capture_of(&t, (struct snap_capture){ 0 }, &got, "f", &a), 0); /* somebody's */
	CHECK_EQ(got.read_files, 1);
	(void)nanosleep(&slack, NULL);
	CHECK_EQ(capture_of(&t, (struct snap_capture){ 0 }, &got, "f", &e), 0);
	CHECK_EQ(got.read_files, 0); /* the control: the cache is believed */
	memcpy(p, "evil", 4);
	CHECK_EQ(capture_of(&t, (struct snap_capture){ .since_ns = before.time_ns }, &got, "f", &e), 0);
	CHECK_EQ(got.read_files, 1);
	CHECK(memcmp(a.hash, e.hash, sizeof(e.hash)) != 0);
	(void)munmap(p, 4);
	there_end(&t);
}

TEST(text)
{
	differ("a\nb\n", "a\nb\n", "");
	differ("", "x\n", "@@ -0,0 +1,1 @@\n+x\n");
	differ("x\n", "", "@@ -1,1 +0,0 @@\n-x\n");
	differ("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
	differ("a\n", "a", "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n");
	differ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n13\n",
	       "@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+13\n");
	differ("a\n", "\033[2J\n", "@@ -1,1 +1,1 @@\n-a\n+\\033[2J\n");
}

TEST(names)
{
	char out[64];

	snap_text((const uint8_t *)"a\nb\\\xff\xc3\xa4", 7, out, sizeof(out));
	CHECK_STR(out, "a\\012b\\\\\\377\xc3\xa4");
	snap_text((const uint8_t *)"\xe2\x80\xae!", 4, out, sizeof(out)); /* text from the right */
	CHECK_STR(out, "\\342\\200\\256!");
	snap_text((const uint8_t *)"\xc0\xaf", 2, out, sizeof(out));
	CHECK_STR(out, "\\300\\257");
}

TEST(guarded)
{
	static const char *const yes[] = { ".git/hooks/pre-commit", "a/b/.git/config", ".GIT/Hooks/x",
					   ".git/modules/m/hooks/post-checkout", "bare.git/hooks/update",
					   ".vscode/tasks.json", "sub/.claude/settings.json", "Makefile",
					   "x/package.json", ".github/workflows/a/b.yml", "rules.mk",
					   ".gitmodules", ".git/worktrees/w/config" };
	static const char *const no[] = { "src/main.c", ".git/HEAD", ".git/objects/aa/bb", "hooks/readme",
					  "makefile.txt", ".github/ISSUE.md", "vscode/x",
					  ".git/hooks/pre-commit.sample", "a.git/config.txt" };

	for (size_t i = 0; i < SB_ARRAY_LEN(yes); i++)
		if (sb_guarded(yes[i]) == SB_GUARDED_NO)
			t_fail(__FILE__, __LINE__, "%s is not guarded", yes[i]);
	for (size_t i = 0; i < SB_ARRAY_LEN(no); i++)
		if (sb_guarded(no[i]) != SB_GUARDED_NO)
			t_fail(__FILE__, __LINE__, "%s is guarded", no[i]);
}
