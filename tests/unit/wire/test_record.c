/* Record and frame headers against bytes written by hand. */
#include "t.h"
#include "wire/record.h"

TEST(record_header)
{
	uint8_t h[SB_REC_HEAD_LEN];
	uint32_t n = 77;

	sb_rec_head_write(0x00010203, h);
	CHECK_MEM(h, "\x03\x02\x01\x00", 4);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x18\x00\x00\x00", 4, 0, &n), 0);
	CHECK_EQ(n, 24);
	n = 77;
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x18\x00\x00", 3, 0, &n), SB_REC_MORE);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x17\x00\x00\x00", 4, 0, &n), -EBADMSG);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x00\x00\x00\x00", 4, 0, &n), -EBADMSG);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\xff\xff\xff\xff", 4, 0, &n), -EBADMSG);
	/* 65536 + 8 + 16, and one more */
	CHECK_EQ(n, 77);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x18\x00\x01\x00", 4, 0, &n), 0);
	CHECK_EQ(n, 65560);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x19\x00\x01\x00", 4, 0, &n), -EBADMSG);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x30\x00\x00\x00", 4, 48, &n), 0);
	CHECK_EQ(sb_rec_head_parse((const uint8_t *)"\x31\x00\x00\x00", 4, 48, &n), -EBADMSG);
}

static int one(const char *bytes, size_t len, struct sb_frame *f)
{
	struct sb_rd rd = { .p = (const uint8_t *)bytes, .len = len };
	int r = sb_frame_next(&rd, f);

	return r == 0 && rd.len > 0 ? 100 : r;
}

TEST(frames)
{
	struct sb_frame f;
	uint8_t h[SB_FRAME_HEAD_LEN];

	sb_frame_head_write(SB_FRAME_DATA, 0x01020304, 0x010000, h);
	CHECK_MEM(h, "\x00\x00\x01\x02\x04\x03\x02\x01", 8);
	CHECK_EQ(one("", 0, &f), SB_FRAME_END);
	CHECK_EQ(one("\x01\x00\x00\x02\x05\x00\x00\x00z", 9, &f), 0);
	CHECK_EQ(f.type, SB_FRAME_DATA);
	CHECK_EQ(f.stream, 5);
	CHECK_EQ(f.len, 1);
	CHECK_EQ(f.p[0], 'z');
	CHECK_EQ(one("\x08\x00\x00\x01\x01\x00\x00\x00\x03\x00\x00\x00\x07\x00\x00\x00", 16, &f),
		 0);
	CHECK_EQ(f.value[0], 3);
	CHECK_EQ(f.value[1], 7);
	CHECK_EQ(one("\x04\x00\x00\x05\x01\x00\x00\x00\x00\x00\x10\x00", 12, &f), 0);
	CHECK_EQ(f.value[0], 1 << 20);
}

TEST(frames_refused)
{
	struct sb_frame f;

	CHECK_EQ(one("\x01\x00\x00\x02\x05\x00\x00", 7, &f), -EBADMSG);         /* short header */
	CHECK_EQ(one("\x02\x00\x00\x02\x05\x00\x00\x00z", 9, &f), -EBADMSG);    /* short payload */
	CHECK_EQ(one("\x00\x00\x00\x02\x05\x00\x00\x00", 8, &f), -EBADMSG);     /* empty DATA */
	CHECK_EQ(one("\x00\x00\x00\x00\x05\x00\x00\x00", 8, &f), -EBADMSG);     /* type 0 */
	CHECK_EQ(one("\x00\x00\x00\x08\x05\x00\x00\x00", 8, &f), -EBADMSG);     /* type 8 */
	CHECK_EQ(one("\x00\x00\x00\x03\x00\x00\x00\x00", 8, &f), -EBADMSG);     /* stream 0 */
	CHECK_EQ(one("\x01\x00\x00\x06\x01\x00\x00\x00z", 9, &f), -EBADMSG);    /* CONTROL on 1 */
	CHECK_EQ(one("\x01\x00\x00\x03\x01\x00\x00\x00z", 9, &f), -EBADMSG);    /* EOF with bytes */
	CHECK_EQ(one("\x04\x00\x00\x05\x01\x00\x00\x00\0\0\0\0", 12, &f), -EBADMSG); /* no bytes */
	CHECK_EQ(one("\x00\x00\x00\x06\x00\x00\x00\x00", 8, &f), -EBADMSG); /* empty CONTROL */
}
