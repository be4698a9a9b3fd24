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
