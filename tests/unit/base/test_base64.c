#include "base/base64.h"
#include "t.h"

/* RFC 4648 section 10 */
static const char *const vectors[][2] = {
	{ "", "" },	       { "f", "Zg==" },	     { "fo", "Zm8=" },	       { "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
};

TEST(rfc4648)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(vectors); i++) {
		char out[16];
		uint8_t back[16];
		size_t n = 99;

		sb_base64_write(vectors[i][0], strlen(vectors[i][0]), out);
		CHECK_STR(out, vectors[i][1]);
		CHECK_EQ(sb_base64_parse(out, strlen(out), back, &n), 0);
		CHECK_EQ(n, strlen(vectors[i][0]));
		CHECK_MEM(back, vectors[i][0], n);
	}
}

TEST(strict)
{
	static const char *const bad[] = { "Zg=",  "Zg",   "Z===", "====", "Zh==", "Zm9=",
					   "Zg==Zg==", "Z g=", "Zm9v\n", "Zm-v" };
	uint8_t out[16];
	size_t n;

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		CHECK_EQ(sb_base64_parse(bad[i], strlen(bad[i]), out, &n), -EINVAL);
}
