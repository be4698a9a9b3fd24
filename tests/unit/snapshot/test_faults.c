/*
 * A capture in which every call that can fail fails once, one whose disk fills up, and one that is killed
 * at any place: the snapshot that was there before can be read, to the last byte, and the next capture works.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/rmtree.h"
#include "snapshot/snapshot.h"
#include "t.h"

#define BIG (9U << 20) /* a pack of its own */

struct place {
	char path[64];
	int store;
	int tree;
	uint8_t first[SB_SNAP_HASH];
};

static int write_file(int dir, const char *name, char c, size_t len)
{
	sb_autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char part[4096];
	int r = fd < 0 ? fd : 0;

	memset(part, c, sizeof(part));
	for (size_t at = 0; r == 0 && at < len; at += SB_MIN(len - at, sizeof(part)))
		r = sb_fd_write_all(fd, part, SB_MIN(len - at, sizeof(part)));
	return r;
}

static int capture(const struct place *p, bool sync, uint8_t id[SB_SNAP_HASH], struct sb_err *err)
{
	struct sb_snap_store *s = NULL;
	struct snap_rules rules = { .n = 0 };
	struct snap_captured got = { 0 };
	struct snap_tree tree;
	struct snap_capture c = { .tree = &tree, .rules = &rules, .label = "", .sync = sync,
				  .role = SB_SNAP_ROLE_MANUAL };
	int r = sb_snap_store_open(p->store, false, &s, err);

	if (r < 0)
		return r;
	snap_tree_init(&tree, p->tree, p->path);
	c.store = s;
	r = snap_capture(&c, &got, err);
	if (r == 0)
		memcpy(id, got.id, SB_SNAP_HASH);
	(void)sb_snap_store_free(s);
	return r;
}

/* Findings about what snapshot @id needs, in a store that is opened anew; -1: it cannot be told. */
static int64_t findings(const struct place *p, const uint8_t *id)
{
	struct sb_snap_store *s = NULL;
	FILE *null = fopen("/dev/null", "w");
	struct sb_err err = { 0 };
	int64_t r = -1;

	if (null && sb_snap_store_open(p->store, false, &s, &err) == 0)
		r = snap_verify(s, id, null, false, &err);
	if (null)
		(void)fclose(null);
	(void)sb_snap_store_free(s);
	return r;
}

static void begin(struct place *p)
{
	(void)snprintf(p->path, sizeof(p->path), "/tmp/snap-fault.XXXXXX");
	REQUIRE(mkdtemp(p->path));
	sb_autofd int top = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(top >= 0 && mkdirat(top, "store", 0700) == 0 && mkdirat(top, "tree", 0700) == 0);
	p->store = openat(top, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->tree = openat(top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(p->store >= 0 && p->tree >= 0);
	REQUIRE(mkdirat(p->tree, "d", 0700) == 0 && write_file(p->tree, "d/a", 'a', 5000) == 0 &&
		write_file(p->tree, "b", 'b', 10) == 0);
	REQUIRE(capture(p, false, p->first, NULL) == 0);
}

static void end(struct place *p)
{
	sb_autofd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	sb_fd_close(&p->store);
	sb_fd_close(&p->tree);
	CHECK_EQ(sb_rmtree(tmp, p->path + 5), 0);
}

/* The next one works, and both are whole. */
static void check_after(const struct place *p, unsigned int n)
{
	uint8_t id[SB_SNAP_HASH];
	struct sb_err err = { 0 };

	if (findings(p, p->first) != 0)
		t_fail(__FILE__, __LINE__, "fault %u: the snapshot before is not whole any more", n);
	if (capture(p, true, id, &err) != 0)
		t_fail(__FILE__, __LINE__, "fault %u: the next capture: %s", n, err.text);
	else if (findings(p, id) != 0 || findings(p, NULL) != 0)
		t_fail(__FILE__, __LINE__, "fault %u: the next capture is not whole", n);
}

static void every_failure(bool sync, size_t big)
{
	unsigned int failed = 0;

	T_EVERY_FAULT(n)
	{
		struct place p;
		struct sb_err err = { 0 };
		uint8_t id[SB_SNAP_HASH];
		int fds;
		bool fired;
		int r;

		begin(&p);
		REQUIRE(write_file(p.tree, "d/new", 'n', 3000) == 0 && write_file(p.tree, "big", 'g', big) == 0);
		fds = t_open_fds();
		t_fault_arm(n);
		r = capture(&p, sync, id, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK_EQ(t_open_fds(), fds);
		if (r < 0)
			CHECK(err.text[0]);
		else if (findings(&p, id) != 0)
			t_fail(__FILE__, __LINE__, "fault %u: told as taken, and not whole", n);
		failed += r < 0;
		check_after(&p, n);
		end(&p);
		if (!fired)
			break;
	}
	CHECK(failed > 8);
}

TEST(failures)
{
	every_failure(false, 100);
}

TEST(failures_of_one_that_lasts)
{
	every_failure(true, 100);
}

TEST(failures_of_a_large_file)
{
	every_failure(true, BIG);
}

TEST(short_writes)
{
	for (size_t chunk = 1; chunk < 4096; chunk = chunk * 3 + 4) {
		uint8_t id[SB_SNAP_HASH];
		struct sb_err err = { 0 };
		struct place p;

		begin(&p);
		REQUIRE(write_file(p.tree, "d/new", 'n', 3000) == 0);
		t_disk_chunk = chunk;
		if (capture(&p, true, id, &err) != 0)
			t_fail(__FILE__, __LINE__, "%zu bytes at a time: %s", chunk, err.text);
		t_disk_chunk = 0;
		CHECK_EQ(findings(&p, id), 0);
		check_after(&p, 0);
		end(&p);
	}
}

/* No file may grow beyond so many bytes. */
TEST(no_room)
{
	for (unsigned int room = 0; room < 6000; room += 397) {
		struct rlimit was;
		struct rlimit less;
		struct sb_err err = { 0 };
		uint8_t id[SB_SNAP_HASH];
		struct place p;
		int r;

		begin(&p);
		REQUIRE(write_file(p.tree, "d/new", 'n', 3000) == 0);
		REQUIRE(getrlimit(RLIMIT_FSIZE, &was) == 0);
		less = was;
		less.rlim_cur = room;
		(void)signal(SIGXFSZ, SIG_IGN);
		REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
		r = capture(&p, true, id, &err);
		REQUIRE(setrlimit(RLIMIT_FSIZE, &was) == 0);
		CHECK(r == 0 ? findings(&p, id) == 0 : err.text[0] != 0);
		check_after(&p, room);
		end(&p);
	}
}

TEST(killed)
{
	struct place p;

	begin(&p);
	for (unsigned int i = 0; i < 30; i++) {
		uint8_t id[SB_SNAP_HASH];
		pid_t pid = fork();

		if (pid == 0) {
			for (unsigned int k = 0;; k++)
				if (write_file(p.tree, "d/new", (char)('a' + k % 26), 3000 + k) < 0 ||
				    capture(&p, k % 2, id, NULL) < 0)
					_exit(1);
		}
		REQUIRE(pid > 0);
		(void)usleep(1000 + 731 * i);
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		CHECK_EQ(findings(&p, p.first), 0);
	}
	check_after(&p, 0);
	end(&p);
}
