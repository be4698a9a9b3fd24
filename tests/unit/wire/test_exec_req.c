/* A further command as bytes: the bytes themselves, and what is no such request. */
#include "t.h"
#include "wire/exec_req.h"

#define ARGV "ls\0-l\0"
#define ENV "A=1\0"

static const uint8_t literal[] = "sxeq" "\1\0\0\0" "\4\0\0\0" "\2\0\0\0" "\6\0\0\0" "\1\0\0\0" "\4\0\0\0"
				 "/tmp" ARGV ENV;
#define LEN (sizeof(literal) - 1)

TEST(written)
{
	const struct sb_exec_req r = { .flags = SB_EXEC_REQ_TTY, .cwd = "/tmp", .cwd_len = 4,
				       .argv = ARGV, .argv_len = 6, .n_argv = 2,
				       .env = ENV, .env_len = 4, .n_env = 1 };
	sb_autobuf struct sb_buf b;

	sb_buf_init(&b, SB_EXEC_REQ_MAX);
	sb_exec_req_write(&b, &r);
	CHECK_EQ(sb_buf_error(&b), 0);
	REQUIRE(b.len == LEN);
	CHECK_MEM(b.data, literal, LEN);
}

TEST(parsed)
{
	struct sb_exec_req r = { 0 };

	REQUIRE(sb_exec_req_parse(literal, LEN, &r) == 0);
	CHECK_EQ(r.flags, SB_EXEC_REQ_TTY);
	CHECK(r.cwd_len == 4 && memcmp(r.cwd, "/tmp", 4) == 0);
	CHECK(r.n_argv == 2 && r.argv_len == 6 && memcmp(r.argv, ARGV, 6) == 0);
	CHECK(r.n_env == 1 && r.env_len == 4 && memcmp(r.env, ENV, 4) == 0);
}

static int with(size_t at, uint8_t value)
{
	uint8_t bytes[LEN];
	struct sb_exec_req r = { .flags = 77 };
	int k;

	memcpy(bytes, literal, LEN);
	bytes[at] = value;
	k = sb_exec_req_parse(bytes, LEN, &r);
	if (k < 0)
		CHECK_EQ(r.flags, 77); /* untouched */
	return k;
}

TEST(refused)
{
	uint8_t longer[LEN + 1] = { 0 };
	struct sb_exec_req r;

	for (size_t len = 0; len < LEN; len++)
		CHECK_EQ(sb_exec_req_parse(literal, len, &r), -EBADMSG);
	memcpy(longer, literal, LEN);
	CHECK_EQ(sb_exec_req_parse(longer, LEN + 1, &r), -EBADMSG);
	CHECK_EQ(with(0, 'S'), -EBADMSG);
	CHECK_EQ(with(4, 0), 0);
	CHECK_EQ(with(4, 3), 0);
	CHECK_EQ(with(4, 2), -EBADMSG); /* apart, with no terminal */
	CHECK_EQ(with(4, 4), -EBADMSG);
	CHECK_EQ(with(7, 1), -EBADMSG);
	CHECK_EQ(with(28, 't'), -EBADMSG); /* not from the root */
	CHECK_EQ(with(30, 0), -EBADMSG);
	/* numbers of strings and what is there */
	CHECK_EQ(with(12, 1), -EBADMSG);
	CHECK_EQ(with(12, 3), -EBADMSG);
	CHECK_EQ(with(15, 0xff), -EBADMSG);
	CHECK_EQ(with(20, 0), -EBADMSG);
	CHECK_EQ(with(20, 2), -EBADMSG);
	CHECK_EQ(with(LEN - 1, 'x'), -EBADMSG); /* the last one does not end */
	/* lengths: of one part more, of another less; beyond everything */
	CHECK_EQ(with(8, 5), -EBADMSG);
	CHECK_EQ(with(11, 0xff), -EBADMSG);
	CHECK_EQ(with(19, 0xff), -EBADMSG);
	CHECK_EQ(with(27, 0xff), -EBADMSG);
}

static int built(uint32_t cwd_len, uint32_t n_argv, uint32_t env_len)
{
	static char cwd[8192];
	static char argv[8192];
	static char env[SB_EXEC_REQ_MAX];
	const struct sb_exec_req r = { .cwd = cwd, .cwd_len = cwd_len, .argv = argv, .argv_len = n_argv,
				       .n_argv = n_argv, .env = env, .env_len = env_len,
				       .n_env = env_len ? 1 : 0 };
	struct sb_exec_req back;
	sb_autobuf struct sb_buf b;

	memset(cwd, '/', sizeof(cwd));
	memset(env, 'e', sizeof(env));
	if (env_len > 0)
		env[env_len - 1] = '\0';
	sb_buf_init(&b, 2U * SB_EXEC_REQ_MAX);
	sb_exec_req_write(&b, &r);
	return sb_exec_req_parse(b.data, b.len, &back);
}

TEST(bounds)
{
	CHECK_EQ(built(0, 1, 0), 0);
	CHECK_EQ(built(0, 0, 0), -EBADMSG); /* nothing to run */
	CHECK_EQ(built(4095, 1, 0), 0);
	CHECK_EQ(built(4096, 1, 0), -EBADMSG);
	CHECK_EQ(built(1, 4096, 0), 0);
	CHECK_EQ(built(1, 4097, 0), -EBADMSG);
	CHECK_EQ(built(1, 1, SB_EXEC_REQ_MAX - 30), 0);
	CHECK_EQ(built(1, 1, SB_EXEC_REQ_MAX - 29), -EBADMSG);
}
