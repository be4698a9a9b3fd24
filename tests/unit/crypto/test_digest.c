/* Expected values: FIPS 180-4 examples and the million of a's, from NIST's files. */
#include "base/num.h"
#include "crypto/digest.h"
#include "t.h"

static void hex_of(struct sb_digest *d, const char *text, char out[65])
{
	uint8_t h[SB_DIGEST_LEN];

	sb_digest_of(d, text, strlen(text), h);
	sb_hex_write(h, sizeof(h), out);
}

TEST(known)
{
	sb_autodigest struct sb_digest *d = NULL;
	char hex[65];

	REQUIRE(sb_digest_new(&d) == 0);
	hex_of(d, "", hex);
	CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hex_of(d, "abc", hex);
	CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hex_of(d, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", hex);
	CHECK_STR(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(pieces)
{
	sb_autodigest struct sb_digest *d = NULL;
	uint8_t h[SB_DIGEST_LEN];
	char chunk[1000];
	char hex[65];

	REQUIRE(sb_digest_new(&d) == 0);
	memset(chunk, 'a', sizeof(chunk));
	for (int round = 0; round < 2; round++) { /* a second use starts afresh */
		sb_digest_start(d);
		for (int i = 0; i < 999; i++)
			sb_digest_add(d, chunk, sizeof(chunk));
		sb_digest_add(d, chunk, 1);
		sb_digest_add(d, chunk, 0);
		sb_digest_add(d, chunk, 999);
		sb_digest_end(d, h);
		sb_hex_write(h, sizeof(h), hex);
		CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}
