#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/rmtree.h"
#include "provider/microvm/cache.h"
#include "provider/microvm/cpio.h"
#include "t.h"

static char dir[64];

static int fresh_dir(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/sb-cache-XXXXXX");
	if (sb_crypto_init() < 0 || !mkdtemp(dir))
		return -1;
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void unpack_is_hello(const char *what, const char *p, size_t len)
{
	uint8_t *out = NULL;
	size_t out_len = 0;
	int r = sb_unpack(p, len, 100, &out, &out_len);

	if (r < 0 || out_len != 5 || memcmp(out, "hello", 5) != 0)
		t_fail(__FILE__, __LINE__, "%s: %d, %zu bytes", what, r, out_len);
	free(out);
}

/* gzip and xz by Python's modules, zstd and lz4 by hand from their format descriptions. */
static const char gz[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86"
			 "\xa6\x10\x36\x05\x00\x00\x00";
static const char xz[] =
	"\xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f"
	"\xe5\xa3\x01\x00\x04\x68\x65\x6c\x6c\x6f\x00\x00\x00\x00\x86\xa6\x10\x36\x00\x01\x19\x05"
	"\xbc\xe8\xec\xcb\x90\x42\x99\x0d\x01\x00\x00\x00\x00\x01\x59\x5a";
static const char zst[] = "\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello";
static const char lz4[] = "\x02\x21\x4c\x18\x06\x00\x00\x00\x50hello";

TEST(unpack)
{
	uint8_t *out = NULL;
	size_t len;

	unpack_is_hello("gzip", gz, sizeof(gz) - 1);
	unpack_is_hello("xz", xz, sizeof(xz) - 1);
	unpack_is_hello("zstd", zst, sizeof(zst) - 1);
	unpack_is_hello("lz4", lz4, sizeof(lz4) - 1);
	CHECK_EQ(sb_unpack(gz, sizeof(gz) - 1, 4, &out, &len), -EFBIG);
	CHECK_EQ(sb_unpack(gz, 15, 100, &out, &len), -EBADMSG);
	CHECK_EQ(sb_unpack("plain text", 10, 100, &out, &len), -EBADMSG);
	CHECK_EQ(sb_unpack("", 0, 100, &out, &len), -EBADMSG);
	CHECK(!out);
}

TEST(cpio_bytes)
{
	static const char want[] =
		"070701000000010000416D0000000000000000000000020000000000000000000000000000000000"
		"000000000000000000000400000000dev\0\0\0"
		"0707010000000200002180000000000000000000000001000000000000000000000000000000000000"
		"0005000000010000000C00000000dev/console\0\0\0"
		"07070100000003000081240000000000000000000000010000000000000005000000000000000000000000"
		"000000000000000200000000x\0hello\0\0\0"
		"07070100000000000000000000000000000000000000010000000000000000000000000000000000000000"
		"000000000000000B00000000TRAILER!!!\0\0\0\0";
	struct sb_buf b;
	struct sb_cpio c = { .out = &b };

	sb_buf_init(&b, 4096);
	sb_cpio_dir(&c, "dev", 0555);
	sb_cpio_chardev(&c, "dev/console", 0600, 5, 1);
	sb_cpio_file(&c, "x", 0444, "hello", 5);
	sb_cpio_end(&c);
	CHECK_EQ(sb_buf_error(&b), 0);
	CHECK_EQ(b.len, sizeof(want) - 1);
	CHECK(b.len == sizeof(want) - 1 && memcmp(b.data, want, b.len) == 0);
	sb_buf_done(&b);
}

static void drop_dir(int top)
{
	(void)close(top);
	CHECK_EQ(sb_rmtree(AT_FDCWD, dir), 0);
}

/* A stamp needs an old change time, which only time can make. */
static void wait_till_old(void)
{
	struct timespec rest = { .tv_sec = 2, .tv_nsec = 50000000 };

	(void)nanosleep(&rest, NULL);
}

static bool has_stamp(int top, int fd)
{
	struct stat st;
	char name[128];

	if (fstat(fd, &st) < 0)
		return false;
	(void)snprintf(name, sizeof(name), "stamps/%llx-%llx", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	return faccessat(top, name, F_OK, 0) == 0;
}

TEST(stamps)
{
	/* SHA-256 of "hello" and of "jello" by sha256sum */
	static const char hello[] = "\x2c\xf2\x4d\xba\x5f\xb0\xa3\x0e\x26\xe8\x3b\x2a\xc5\xb9\xe2\x9e";
	uint8_t sha[32];
	uint8_t again[32];
	struct stat st;
	struct timespec times[2];
	int top = fresh_dir();
	int fd;

	REQUIRE(top >= 0);
	fd = openat(top, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0 && write(fd, "hello", 5) == 5);
	CHECK_EQ(sb_cache_sha256(dir, fd, sha, NULL), 0);
	CHECK_MEM(sha, hello, 16);
	CHECK(!has_stamp(top, fd)); /* too young: a second write could have the same time */
	wait_till_old();
	CHECK_EQ(sb_cache_sha256(dir, fd, sha, &st), 0);
	CHECK(has_stamp(top, fd));
	CHECK_EQ(sb_cache_sha256(dir, fd, again, NULL), 0);
	CHECK_MEM(sha, again, 32);
	/* same size, and the modification time put back */
	CHECK(pwrite(fd, "j", 1, 0) == 1);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	CHECK_EQ(futimens(fd, times), 0);
	CHECK_EQ(sb_cache_sha256(dir, fd, again, NULL), 0);
	CHECK(memcmp(sha, again, 32) != 0);
	CHECK_EQ(sb_cache_sha256(dir, top, again, NULL), -EINVAL);
	(void)close(fd);
	drop_dir(top);
}

TEST(write_and_prune)
{
	int top = fresh_dir();
	struct stat st;

	REQUIRE(top >= 0);
	for (int i = 0; i < 5; i++) {
		char name[16];
		struct timespec t[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };

		(void)snprintf(name, sizeof(name), "%d.elf", i);
		CHECK_EQ(sb_cache_write(top, name, "x", 1), 0);
		CHECK_EQ(utimensat(top, name, t, 0), 0);
	}
	CHECK_EQ(sb_cache_write(top, "other", "x", 1), 0);
	CHECK_EQ(fstatat(top, "0.elf", &st, 0), 0);
	CHECK_EQ(st.st_mode & 07777, 0444);
	sb_cache_prune(top, ".elf", 2);
	CHECK_EQ(faccessat(top, "2.elf", F_OK, 0), -1);
	CHECK_EQ(faccessat(top, "3.elf", F_OK, 0), 0);
	CHECK_EQ(faccessat(top, "4.elf", F_OK, 0), 0);
	CHECK_EQ(faccessat(top, "other", F_OK, 0), 0);
	drop_dir(top);
}
