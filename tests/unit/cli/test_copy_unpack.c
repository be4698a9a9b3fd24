/* Archives that a session says its files are (`sendbox cp`): what is written, and where. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "copy.h"
#include "os/rmtree.h"
#include "t.h"
#include "tar_make.h"

static struct tar_make t;
static struct sb_err err;
static struct copy_counts counts;
static char top[64];
static int place = -1; /* top/in: what is unpacked into; top/outside must stay what it is */

static void start(void)
{
	t.len = 0;
	err = (struct sb_err){ 0 };
	(void)snprintf(top, sizeof(top), "/tmp/test-copy.XXXXXX");
	REQUIRE(mkdtemp(top) != NULL);
	REQUIRE(chdir(top) == 0 && mkdir("in", 0700) == 0 && mkdir("outside", 0700) == 0);
	place = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(place >= 0);
}

/* Unpack what was made. Return: as copy_unpack. */
static int unpack(void)
{
	sb_autofd int in = memfd_create("tar", MFD_CLOEXEC);
	int r;

	tar_close(&t);
	CHECK_EQ(sb_fd_write_all(in, t.p, t.len), 0);
	CHECK_EQ(lseek(in, 0, SEEK_SET), 0);
	r = copy_unpack(in, place, "got", &counts, &err);
	CHECK_EQ(rmdir("outside"), 0); /* still empty */
	return r;
}

static void done(void)
{
	sb_autofd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	sb_fd_close(&place);
	CHECK_EQ(chdir("/"), 0);
	CHECK_EQ(sb_rmtree(tmp, top + 5), 0);
}

TEST(a_folder)
{
	struct stat st;
	char to[32] = "";

	start();
	tar_dir(&t, "got/");
	tar_dir(&t, "got/sub/");
	tar_file(&t, "got/sub/file", "text");
	(void)tar_head(&t, '0', "got/set-id", NULL, 06755, 0);
	tar_link(&t, '2', "got/sub/link", "../set-id");
	tar_link(&t, '1', "got/hard", "got/sub/file");
	CHECK_EQ(unpack(), 0);
	CHECK_EQ(counts.entries, 6);
	CHECK_EQ(counts.left_out, 0);
	REQUIRE(fstatat(place, "got/sub/file", &st, 0) == 0);
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(st.st_nlink, 2);
	CHECK_EQ(st.st_mtime, 1000);
	REQUIRE(fstatat(place, "got/set-id", &st, 0) == 0);
	CHECK_EQ(st.st_mode & 07777, 0755);
	CHECK_EQ(readlinkat(place, "got/sub/link", to, sizeof(to)), 9);
	done();
}

TEST(names)
{
	static const char *const bad[] = {
		"other", "gotx", "/got", "got/../x", "got/..", "got//x", "got/./x", "../got", "got/a\033b",
		"got/a\177",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		start();
		tar_dir(&t, "got");
		tar_file(&t, bad[i], "x");
		CHECK_EQ(unpack(), -EBADMSG);
		CHECK(strstr(err.text, "not a name beneath") != NULL);
		done();
	}
}

/* Links that lead out, or might, are left out; one that an entry stands beneath is passed by nobody. */
TEST(links)
{
	static const char *const out[] = { "/etc/passwd", "..", "../x", "a/../..", "../../outside", "b/../../c" };

	for (size_t i = 0; i < SB_ARRAY_LEN(out); i++) {
		start();
		tar_dir(&t, "got");
		tar_link(&t, '2', "got/l", out[i]);
		CHECK_EQ(unpack(), 0);
		CHECK_EQ(counts.left_out, 1);
		CHECK(faccessat(place, "got/l", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
		done();
	}
	start();
	tar_dir(&t, "got");
	tar_dir(&t, "got/d");
	tar_link(&t, '2', "got/l", "d");
	tar_file(&t, "got/l/x", "x");
	CHECK(unpack() < 0);
	CHECK(faccessat(place, "got/d/x", F_OK, 0) < 0);
	done();
	start();
	tar_link(&t, '2', "got", "outside");
	CHECK_EQ(unpack(), -EINVAL);
	done();
}

TEST(hard_links)
{
	static const char *const bad[] = { "/etc/passwd", "got/../../outside", "got", "got/none", "got/l" };

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		start();
		tar_dir(&t, "got");
		tar_link(&t, '2', "got/l", "d");
		tar_link(&t, '1', "got/h", bad[i]);
		CHECK(unpack() < 0);
		CHECK(faccessat(place, "got/h", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
		done();
	}
}

TEST(kinds_twice_and_nothing)
{
	static const char kinds[] = { '3', '4', '6' };

	for (size_t i = 0; i < sizeof(kinds); i++) {
		start();
		tar_dir(&t, "got");
		tar_link(&t, kinds[i], "got/x", "");
		CHECK_EQ(unpack(), -EBADMSG);
		done();
	}
	start();
	tar_file(&t, "got", "one");
	tar_file(&t, "got", "two");
	CHECK(unpack() < 0);
	done();
	start();
	CHECK_EQ(unpack(), -EBADMSG);
	CHECK(strstr(err.text, "empty") != NULL);
	done();
}
