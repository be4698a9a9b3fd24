#include "base/buf.h"
#include "t.h"

TEST(write_then_read)
{
	struct sb_buf b;
	struct sb_rd r;

	sb_buf_init(&b, 64);
	sb_buf_add_u8(&b, 1);
	sb_buf_add_le16(&b, 0x0203);
	sb_buf_add_le32(&b, 0x04050607);
	sb_buf_add_le64(&b, 0x08090a0b0c0d0e0fULL);
	sb_buf_addf(&b, "%d!", 42);
	CHECK_EQ(sb_buf_error(&b), 0);
	CHECK_EQ(b.len, 18);
	CHECK_MEM(b.data, "\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08" "42!", 18);
	r = (struct sb_rd){ .p = b.data, .len = b.len };
	CHECK_EQ(sb_rd_u8(&r), 1);
	CHECK_EQ(sb_rd_le16(&r), 0x0203);
	CHECK_EQ(sb_rd_le32(&r), 0x04050607);
	CHECK(sb_rd_le64(&r) == 0x08090a0b0c0d0e0fULL);
	CHECK_EQ(sb_rd_end(&r), -EBADMSG); /* three bytes left over */
	CHECK(sb_rd_bytes(&r, 3) != NULL);
	CHECK_EQ(sb_rd_end(&r), 0);
	CHECK_EQ(sb_rd_u8(&r), 0);
	CHECK_EQ(sb_rd_end(&r), -EBADMSG); /* read past the end */
	sb_buf_done(&b);
}

TEST(cap_is_hard)
{
	struct sb_buf b;

	sb_buf_init(&b, 4);
	sb_buf_add(&b, "abcd", 4);
	CHECK_EQ(sb_buf_error(&b), 0);
	sb_buf_add_u8(&b, 'e');
	CHECK_EQ(sb_buf_error(&b), -EFBIG);
	CHECK_EQ(b.len, 4);
	sb_buf_drop(&b, 4);
	sb_buf_add_u8(&b, 'f'); /* errors stick */
	CHECK_EQ(b.len, 0);
	sb_buf_done(&b);
}

TEST(drop_front)
{
	struct sb_buf b;

	sb_buf_init(&b, 64);
	sb_buf_add(&b, "abcdef", 6);
	sb_buf_drop(&b, 2);
	CHECK_EQ(b.len, 4);
	CHECK_MEM(b.data, "cdef", 4);
	sb_buf_done(&b);
}
