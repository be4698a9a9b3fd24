/* Control messages: what is written comes back, and nothing else is accepted. */
#include <stdlib.h>

#include "t.h"
#include "wire/ctl.h"

static void same_bytes(const struct sb_ctl *m, const char *want, size_t len)
{
	struct sb_buf b;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, m);
	CHECK_EQ(sb_buf_error(&b), 0);
	CHECK_EQ(b.len, len);
	if (b.len == len)
		CHECK_MEM(b.data, want, len);
	sb_buf_done(&b);
}

static int parse(const char *p, size_t len, struct sb_ctl *m)
{
	return sb_ctl_parse((const uint8_t *)p, len, m);
}

TEST(bytes_by_hand)
{
	struct sb_ctl run = { .type = SB_CTL_RUN, .cmd = 1, .flags = 3, .rows = 24, .cols = 80 };
	struct sb_ctl sig = { .type = SB_CTL_SIGNAL, .cmd = 2, .value = 15 };
	struct sb_ctl ready = { .type = SB_CTL_READY, .text = "6.1", .text_len = 3 };
	struct sb_ctl bye = { .type = SB_CTL_BYE };
	struct sb_ctl now = { .type = SB_CTL_TIME, .time_ns = 0x0102030405060708 };
	struct sb_ctl m;

	same_bytes(&run, "\x01\x01\0\0\0\x03\0\0\0\x18\0\x50\0", 13);
	same_bytes(&sig, "\x03\x02\0\0\0\x0f\0\0\0", 9);
	same_bytes(&ready, "\x20\x03\0\0\0"
			   "6.1",
		   8);
	same_bytes(&bye, "\x24", 1);
	same_bytes(&now, "\x07\x08\x07\x06\x05\x04\x03\x02\x01", 9);
	CHECK_EQ(parse("\x07\0\0\0\0\0\0\0\0", 9, &m), -EBADMSG);
	CHECK_EQ(parse("\x07\0\0\0\0\0\0\0\x80", 9, &m), -EBADMSG);
	CHECK_EQ(parse("\x01\x01\0\0\0\x03\0\0\0\x18\0\x50\0", 13, &m), 0);
	CHECK_EQ(m.cols, 80);
	CHECK_EQ(m.flags, SB_CTL_F_TTY | SB_CTL_F_SEPARATE_STDERR);
}

TEST(exec_event)
{
	static const char bytes[] = "\x25\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff\x03\0\0\0\0\x05"
				    "\x04\0\0\0rule\x02\0\0\0/x\x02\0\0\0\x04\0\0\0x\0y";
	struct sb_ctl m = { .type = SB_CTL_EXEC_EVENT,
			    .cmd = 1,
			    .text = "/x",
			    .text_len = 2,
			    .argv = "x\0y",
			    .argv_len = 4,
			    .n_argv = 2,
			    .event = { .pid = 2,
				       .rule = SB_CTL_NO_RULE,
				       .count = 3,
				       .action = 0,
				       .top_level = true,
				       .cut = true,
				       .why = "rule",
				       .why_len = 4 } };
	char copy[sizeof(bytes)];
	struct sb_ctl got;

	same_bytes(&m, bytes, sizeof(bytes));
	CHECK_EQ(parse(bytes, sizeof(bytes), &got), 0);
	CHECK_EQ(got.event.count, 3);
	CHECK(got.event.top_level && !got.event.killed && got.event.cut);
	CHECK_EQ(got.n_argv, 2);
	CHECK_MEM(got.text, "/x", 2);
	for (size_t len = 0; len < sizeof(bytes); len++)
		CHECK_EQ(parse(bytes, len, &got), -EBADMSG);
	for (size_t i = 0; i < 4; i++) {
		static const struct {
			size_t at;
			char to;
		} bad[] = { { 13, 0 }, { 17, 3 }, { 18, 8 }, { 23, 'R' } };

		memcpy(copy, bytes, sizeof(copy));
		copy[bad[i].at] = bad[i].to;
		CHECK_EQ(parse(copy, sizeof(copy), &got), -EBADMSG);
	}
	memcpy(copy, bytes, sizeof(copy));
	copy[31] = '\0'; /* a NUL in the path */
	CHECK_EQ(parse(copy, sizeof(copy), &got), -EBADMSG);
}

TEST(exec_round_trip)
{
	struct sb_ctl m = { .type = SB_CTL_EXEC,
			    .cmd = 9,
			    .text = "/w",
			    .text_len = 2,
			    .argv = "sh\0-c\0\0",
			    .argv_len = 7,
			    .n_argv = 3,
			    .env = "A=1",
			    .env_len = 4,
			    .n_env = 1 };
	struct sb_ctl got;
	struct sb_buf b;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, &m);
	REQUIRE(sb_ctl_parse(b.data, b.len, &got) == 0);
	CHECK_EQ(got.cmd, 9);
	CHECK_EQ(got.n_argv, 3);
	CHECK_EQ(got.argv_len, 7);
	CHECK_MEM(got.argv, "sh\0-c\0\0", 7);
	CHECK_MEM(got.text, "/w", 2);
	CHECK_MEM(got.env, "A=1", 4);
	/* every shorter or longer form is refused */
	for (size_t n = 0; n < b.len; n++)
		CHECK_EQ(sb_ctl_parse(b.data, n, &got), -EBADMSG);
	sb_buf_add_u8(&b, 0);
	CHECK_EQ(sb_ctl_parse(b.data, b.len, &got), -EBADMSG);
	sb_buf_done(&b);
}

TEST(exited)
{
	struct sb_ctl m = { .type = SB_CTL_EXITED,
			    .cmd = 1,
			    .exit = { .kind = SB_EXIT_SIGNAL,
				      .value = 9,
				      .oom = true,
				      .user_us = 1,
				      .sys_us = 2,
				      .max_rss = 3 } };
	struct sb_ctl got;
	struct sb_buf b;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, &m);
	REQUIRE(sb_ctl_parse(b.data, b.len, &got) == 0);
	CHECK_EQ(got.exit.value, 9);
	CHECK(got.exit.oom);
	CHECK_EQ(got.exit.max_rss, 3);
	b.data[5] = 0; /* kind unknown */
	CHECK_EQ(sb_ctl_parse(b.data, b.len, &got), -EBADMSG);
	b.data[5] = SB_EXIT_CODE;
	b.data[8] = 1; /* 256 and more is no exit status */
	CHECK_EQ(sb_ctl_parse(b.data, b.len, &got), -EBADMSG);
	b.data[8] = 0;
	b.data[6] = 2; /* a flag is 0 or 1 */
	CHECK_EQ(sb_ctl_parse(b.data, b.len, &got), -EBADMSG);
	sb_buf_done(&b);
}

TEST(refused)
{
	struct sb_ctl m;
	char *big = calloc(1, SB_CTL_MAX + 1);

	CHECK_EQ(parse("", 0, &m), -EBADMSG);
	CHECK_EQ(parse("\x00", 1, &m), -EBADMSG);
	CHECK_EQ(parse("\x25", 1, &m), -EBADMSG);
	CHECK_EQ(parse("\x06\x00", 2, &m), -EBADMSG);
	CHECK_EQ(parse("\x01\x01\0\0\0\x04\0\0\0\x18\0\x50\0", 13, &m), -EBADMSG); /* flag */
	CHECK_EQ(parse("\x03\x02\0\0\0\0\0\0\0", 9, &m), -EBADMSG);                /* signal 0 */
	CHECK_EQ(parse("\x03\x02\0\0\0\x41\0\0\0", 9, &m), -EBADMSG);              /* 65 */
	CHECK_EQ(parse("\x20\xff\xff\xff\xff"
		       "abc",
		       8, &m),
		 -EBADMSG);
	/* EXEC: no argv; a string without its NUL; fewer strings than said; NUL in the cwd */
	CHECK_EQ(parse("\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 33,
		       &m),
		 -EBADMSG);
	CHECK_EQ(parse("\x02\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0a\0\0\0\0",
		       34, &m),
		 -EBADMSG);
	CHECK_EQ(parse("\x02\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0a\0\0\0\0\0",
		       35, &m),
		 -EBADMSG);
	CHECK_EQ(parse("\x02\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\x02\0\0\0a\0\0\0\0\0",
		       36, &m),
		 -EBADMSG);
	REQUIRE(big);
	big[0] = SB_CTL_BYE;
	CHECK_EQ(parse(big, SB_CTL_MAX + 1, &m), -EBADMSG);
	free(big);
}

TEST(too_long_to_write)
{
	char *big = calloc(1, SB_CTL_MAX);
	struct sb_ctl m = { .type = SB_CTL_READY, .text = big, .text_len = SB_CTL_MAX };
	struct sb_buf b;

	REQUIRE(big);
	sb_buf_init(&b, 2 * SB_CTL_MAX);
	sb_ctl_write(&b, &m);
	CHECK_EQ(sb_buf_error(&b), -EFBIG);
	sb_buf_done(&b);
	free(big);
}
