#include "os/rmtree.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(removes_a_tree_and_follows_no_link)
{
	char name[] = "/tmp/sb-rmtree-XXXXXX";
	int dir;

	REQUIRE(mkdtemp(name));
	dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(dir >= 0);
	CHECK_EQ(mkdirat(dir, "keep", 0700), 0);
	(void)close(openat(dir, "keep/file", O_WRONLY | O_CREAT, 0600));
	CHECK_EQ(mkdirat(dir, "gone", 0700), 0);
	CHECK_EQ(mkdirat(dir, "gone/sub", 0700), 0);
	(void)close(openat(dir, "gone/sub/f", O_WRONLY | O_CREAT, 0600));
	CHECK_EQ(symlinkat("../keep", dir, "gone/link"), 0);
	CHECK_EQ(sb_rmtree(dir, "gone"), 0);
	CHECK_EQ(faccessat(dir, "gone", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	CHECK_EQ(faccessat(dir, "keep/file", F_OK, 0), 0);
	CHECK_EQ(sb_rmtree(dir, "gone"), 0); /* not there is fine */
	CHECK_EQ(symlinkat("keep", dir, "l"), 0);
	CHECK_EQ(sb_rmtree(dir, "l"), 0);
	CHECK_EQ(faccessat(dir, "keep/file", F_OK, 0), 0);
	CHECK_EQ(sb_rmtree(dir, "keep"), 0);
	(void)close(dir);
	CHECK_EQ(rmdir(name), 0);
}

/* What a session made: deeper than there are descriptors, with the names that are used for moving. */
TEST(removes_what_is_deep_read_only_or_closed)
{
	char name[] = "/tmp/sb-rmtree-XXXXXX";
	int top;
	int at;

	REQUIRE(mkdtemp(name));
	top = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(top >= 0);
	CHECK_EQ(mkdirat(top, "gone", 0700), 0);
	CHECK_EQ(mkdirat(top, "gone/.deep-0", 0700), 0);
	at = openat(top, "gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3000 && at >= 0; i++) {
		int below = -1;

		(void)close(openat(at, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		CHECK_EQ(symlinkat("/etc/passwd", at, "l"), 0);
		if (mkdirat(at, "d", 0700) == 0)
			below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK_EQ(fchmod(at, i % 3 == 0 ? 0700 : i % 3 == 1 ? 0500 : 0), 0);
		(void)close(at);
		at = below;
	}
	CHECK(at >= 0);
	(void)close(at);
	CHECK_EQ(sb_rmtree(top, "gone"), 0);
	CHECK_EQ(faccessat(top, "gone", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	CHECK_EQ(faccessat(AT_FDCWD, "/etc/passwd", F_OK, 0), 0);
	(void)close(top);
	CHECK_EQ(rmdir(name), 0);
}
