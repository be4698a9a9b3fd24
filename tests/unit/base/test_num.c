#include "base/num.h"
#include "t.h"

TEST(u64)
{
	uint64_t v = 7;

	CHECK_EQ(sb_num_u64("0", 0, 10, &v), 0);
	CHECK_EQ(v, 0);
	CHECK_EQ(sb_num_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	CHECK(v == UINT64_MAX);
	v = 7;
	CHECK_EQ(sb_num_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	CHECK_EQ(sb_num_u64("11", 0, 10, &v), -ERANGE);
	CHECK_EQ(sb_num_u64("", 0, 10, &v), -EINVAL);
	CHECK_EQ(sb_num_u64("01", 0, 10, &v), -EINVAL);
	CHECK_EQ(sb_num_u64("+1", 0, 10, &v), -EINVAL);
	CHECK_EQ(sb_num_u64(" 1", 0, 10, &v), -EINVAL);
	CHECK_EQ(sb_num_u64("1 ", 0, 10, &v), -EINVAL);
	CHECK_EQ(sb_num_u64("1e1", 0, 10, &v), -EINVAL);
	CHECK_EQ(v, 7);
}

TEST(size)
{
	static const struct {
		const char *s;
		int r;
		uint64_t v;
	} cases[] = {
		{ "512", 0, 536870912 },	 { "4g", 0, 4294967296 },
		{ "1.5GB", 0, 1610612736 },	 { "64K", 0, 65536 },
		{ "1b", 0, 1 },			 { "0", -ERANGE, 0 },
		{ "0.5b", -ERANGE, 0 },		 { "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },		 { "1x", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },		 { ".5g", -EINVAL, 0 },
		{ "1 g", -EINVAL, 0 },		 { "99999999t", -ERANGE, 0 },
		{ "0.000000001t", 0, 1099 },	 { "1.0000000001g", -EINVAL, 0 },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		uint64_t v = 0;

		CHECK_EQ(sb_num_size(cases[i].s, &v), cases[i].r);
		CHECK_EQ(v, cases[i].v);
	}
}

TEST(duration)
{
	uint64_t v = 0;

	CHECK_EQ(sb_num_duration_ms("2", &v), 0);
	CHECK_EQ(v, 2000);
	CHECK_EQ(sb_num_duration_ms("1.5s", &v), 0);
	CHECK_EQ(v, 1500);
	CHECK_EQ(sb_num_duration_ms("250ms", &v), 0);
	CHECK_EQ(v, 250);
	CHECK_EQ(sb_num_duration_ms("2h", &v), 0);
	CHECK_EQ(v, 7200000);
	CHECK_EQ(sb_num_duration_ms("0", &v), -ERANGE);
	CHECK_EQ(sb_num_duration_ms("400d", &v), -ERANGE);
	CHECK_EQ(sb_num_duration_ms("5 s", &v), -EINVAL);
}

TEST(hex)
{
	uint8_t b[3] = { 0 };
	char s[7];

	CHECK_EQ(sb_hex_parse("00ffa5", b, 3), 0);
	CHECK_MEM(b, "\x00\xff\xa5", 3);
	sb_hex_write(b, 3, s);
	CHECK_STR(s, "00ffa5");
	CHECK_EQ(sb_hex_parse("00FFA5", b, 3), -EINVAL);
	CHECK_EQ(sb_hex_parse("00ffa", b, 3), -EINVAL);
	CHECK_EQ(sb_hex_parse("00ffa55", b, 3), -EINVAL);
}
