#include "t.h"
#include "wire/tar_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What GNU tar, which shares no code with us, says of the header. */
static bool tar_says(const struct sb_tar_out *e, const char *want)
{
	sb_autobuf struct sb_buf b = { 0 };
	char path[] = "/tmp/sb-tar-out.XXXXXX";
	char cmd[128];
	char got[1024] = "";
	int fd = mkstemp(path);
	FILE *f;
	bool good;

	sb_buf_init(&b, 1U << 20);
	if (fd < 0 || sb_tar_out_header(&b, e) < 0)
		return false;
	sb_buf_add(&b, (const uint8_t[1024]){ 0 }, 1024);
	good = write(fd, b.data, b.len) == (ssize_t)b.len;
	(void)close(fd);
	(void)snprintf(cmd, sizeof(cmd), "LC_ALL=C TZ=UTC tar --xattrs-include='*' -tvvf %s 2>&1", path);
	f = popen(cmd, "r");
	if (f) {
		size_t n = fread(got, 1, sizeof(got) - 1, f);

		got[n] = '\0';
		good &= pclose(f) == 0;
	}
	(void)unlink(path);
	if (!good || !strstr(got, want))
		t_fail(__FILE__, __LINE__, "want \"%s\", tar says: %s", want, got);
	return good && strstr(got, want);
}

TEST(plain)
{
	const struct sb_tar_out dir = { .type = SB_TAR_OUT_DIR, .path = "usr/lib", .mode = 01755,
					.uid = 3, .gid = 4, .mtime_s = 86400 };
	const struct sb_tar_out link = { .type = SB_TAR_OUT_SYMLINK, .path = "a", .link = "../b",
					 .mode = 0777 };
	const struct sb_tar_out hard = { .type = SB_TAR_OUT_HARDLINK, .path = "a", .link = "b/c",
					 .mode = 0644 };
	const struct sb_tar_out fifo = { .type = SB_TAR_OUT_FIFO, .path = "f", .mode = 0600 };

	CHECK(tar_says(&dir, "drwxr-xr-t  3/4               0 1970-01-02 00:00 usr/lib/"));
	CHECK(tar_says(&link, "a -> ../b"));
	CHECK(tar_says(&hard, "a link to b/c"));
	CHECK(tar_says(&fifo, "prw-------"));
}

TEST(one_block_where_ustar_is_enough)
{
	const struct sb_tar_out e = { .type = SB_TAR_OUT_FILE, .path = "x", .size = 1 };
	sb_autobuf struct sb_buf b = { 0 };

	sb_buf_init(&b, 1U << 20);
	REQUIRE(sb_tar_out_header(&b, &e) == 0);
	CHECK_EQ(b.len, SB_TAR_OUT_BLOCK);
}

TEST(what_ustar_cannot_say)
{
	char path[301];
	char link[201];
	const struct sb_tar_out e = { .type = SB_TAR_OUT_SYMLINK, .path = path, .link = link,
				      .uid = 3000000000U, .gid = 2097152, .mtime_s = -86400 };
	const struct sb_tar_out big = { .type = SB_TAR_OUT_FILE, .path = "big",
					.size = 20ULL << 30 };

	memset(path, 'p', 300);
	memset(link, 'l', 200);
	path[100] = '/';
	path[300] = link[200] = '\0';
	CHECK(tar_says(&e, "3000000000/2097152"));
	CHECK(tar_says(&e, "1969-12-31"));
	CHECK(tar_says(&e, path));
	CHECK(tar_says(&e, link));
	CHECK(tar_says(&e, " -> "));
	(void)big; /* tar would look for its content: see the export of the topic 50-layers */
}

/* A record counts its own length: at each border of a digit. */
TEST(lengths_of_records)
{
	for (size_t len = 101; len < 1100; len++) {
		char path[1101];
		const struct sb_tar_out e = { .type = SB_TAR_OUT_FILE, .path = path };
		sb_autobuf struct sb_buf b = { 0 };
		const char *rec;

		memset(path, 'p', len);
		path[len] = '\0';
		sb_buf_init(&b, 1U << 20);
		REQUIRE(sb_tar_out_header(&b, &e) == 0);
		rec = (const char *)b.data + SB_TAR_OUT_BLOCK;
		CHECK_EQ(rec[strtoul(rec, NULL, 10) - 1], '\n');
		CHECK_EQ(strtoul(rec, NULL, 10), strtoul((const char *)b.data + 124, NULL, 8));
	}
}

TEST(xattrs)
{
	const struct sb_tar_out_xattr x[] = { { "user.note", "h\0i", 3 },
					      { "security.capability", "cap", 3 } };
	const struct sb_tar_out e = { .type = SB_TAR_OUT_FILE, .path = "x", .xattrs = x,
				      .n_xattrs = 2 };
	const struct sb_tar_out huge = { .type = SB_TAR_OUT_FILE, .path = "x", .n_xattrs = 1,
		.xattrs = &(const struct sb_tar_out_xattr){ "user.big", x, 64U << 20 } };
	sb_autobuf struct sb_buf b = { 0 };

	sb_buf_init(&b, 1U << 20);
	CHECK(tar_says(&e, "user.note"));
	CHECK(tar_says(&e, "security.capability"));
	CHECK(sb_tar_out_header(&b, &huge) < 0);
	CHECK_EQ(b.len, 0);
}
