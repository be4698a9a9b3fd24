#include <linux/fuse.h>

#include "fs/fs.h"
#include "t.h"

static uint8_t msg[4096];

static size_t make(uint32_t op, const void *p, size_t len)
{
	struct fuse_in_header h = { .len = (uint32_t)(sizeof(h) + len), .opcode = op, .unique = 1,
				    .nodeid = 1 };

	memcpy(msg, &h, sizeof(h));
	if (len > 0)
		memcpy(msg + sizeof(h), p, len);
	return h.len;
}

TEST(names)
{
	char name[300];

	CHECK_EQ(fs_name_check("a"), 0);
	CHECK_EQ(fs_name_check("..."), 0);
	CHECK_EQ(fs_name_check(".a"), 0);
	CHECK_EQ(fs_name_check("..a"), 0);
	CHECK_EQ(fs_name_check("\xff\n"), 0);
	CHECK_EQ(fs_name_check(""), -EINVAL);
	CHECK_EQ(fs_name_check("."), -EINVAL);
	CHECK_EQ(fs_name_check(".."), -EINVAL);
	CHECK_EQ(fs_name_check("a/b"), -EINVAL);
	CHECK_EQ(fs_name_check("/"), -EINVAL);
	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	CHECK_EQ(fs_name_check(name), 0);
	name[255] = 'x';
	name[256] = '\0';
	CHECK_EQ(fs_name_check(name), -ENAMETOOLONG);
}

TEST(every_truncation_of_every_request)
{
	static const uint8_t zero[256];

	for (uint32_t op = 0; op < 60; op++) {
		bool was_good = false;

		if (fs_req_route(op) == FS_REQ_REFUSE || op == FUSE_INIT)
			continue;
		/* once long enough, longer is good as well: a zero rest is empty names and counts */
		for (size_t len = 0; len <= sizeof(zero); len++) {
			int r = fs_req_check(msg, make(op, zero, len), false);

			CHECK(r == 0 || r == -EBADMSG);
			CHECK(!was_good || r == 0);
			was_good = r == 0;
		}
		CHECK(was_good);
		CHECK_EQ(fs_req_check(msg, make(op, zero, sizeof(zero)), true), -EBADMSG);
	}
}

TEST(lengths)
{
	size_t len = make(FUSE_LOOKUP, "a", 2);
	uint32_t n;

	CHECK_EQ(fs_req_check(msg, len, false), 0);
	CHECK_EQ(fs_req_check(msg, len - 1, false), -EBADMSG);
	CHECK_EQ(fs_req_check(msg, len + 1, false), -EBADMSG);
	CHECK_EQ(fs_req_check(msg, 3, false), -EBADMSG);
	n = FS_MSG_MAX + 1;
	memcpy(msg, &n, sizeof(n));
	CHECK_EQ(fs_req_check(msg, n, false), -EBADMSG);
	CHECK_EQ(fs_req_check(msg, make(FUSE_LOOKUP, "ab", 2), false), -EBADMSG); /* no NUL */
	CHECK_EQ(fs_req_check(msg, make(FUSE_SYMLINK, "a\0b", 3), false), -EBADMSG);
	CHECK_EQ(fs_req_check(msg, make(FUSE_SYMLINK, "a\0b", 4), false), 0);
}

TEST(counts)
{
	struct fuse_write_in w = { .size = 1 };
	struct {
		struct fuse_batch_forget_in in;
		struct fuse_forget_one one[2];
	} f = { .in = { .count = 2 } };

	CHECK_EQ(fs_req_check(msg, make(FUSE_WRITE, &w, sizeof(w)), false), -EBADMSG);
	w.size = FS_MAX_IO + 1;
	CHECK_EQ(fs_req_check(msg, make(FUSE_WRITE, &w, sizeof(w)), false), -EBADMSG);
	w.size = 0;
	CHECK_EQ(fs_req_check(msg, make(FUSE_WRITE, &w, sizeof(w)), false), 0);
	CHECK_EQ(fs_req_check(msg, make(FUSE_BATCH_FORGET, &f, sizeof(f)), false), 0);
	f.in.count = 3;
	CHECK_EQ(fs_req_check(msg, make(FUSE_BATCH_FORGET, &f, sizeof(f)), false), -EBADMSG);
	f.in.count = UINT32_MAX;
	CHECK_EQ(fs_req_check(msg, make(FUSE_BATCH_FORGET, &f, sizeof(f)), false), -EBADMSG);
}

TEST(init)
{
	struct fuse_init_in in = { .major = 7, .minor = 31 };

	CHECK_EQ(fs_req_check(msg, make(FUSE_INIT, &in, sizeof(in)), true), 0);
	CHECK_EQ(fs_req_check(msg, make(FUSE_INIT, &in, 16), true), 0);
	CHECK_EQ(fs_req_check(msg, make(FUSE_INIT, &in, sizeof(in)), false), -EBADMSG);
	in.minor = 30;
	CHECK_EQ(fs_req_check(msg, make(FUSE_INIT, &in, sizeof(in)), true), -EBADMSG);
	in.minor = 38;
	in.major = 8;
	CHECK_EQ(fs_req_check(msg, make(FUSE_INIT, &in, sizeof(in)), true), -EBADMSG);
	in.major = 7;
	in.flags = FUSE_INIT_EXT;
	CHECK_EQ(fs_req_check(msg, make(FUSE_INIT, &in, 16), true), -EBADMSG);
}
