/* The hash of files against the library's hash of memory, and against FIPS 180-4's examples. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/num.h"
#include "crypto/crypto.h"
#include "t.h"

static void both(const uint8_t *p, size_t len)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t a[SB_SHA256_LEN];
	uint8_t b[SB_SHA256_LEN];
	uint64_t n = 0;

	REQUIRE(fd >= 0);
	CHECK_EQ(write(fd, p, len), (ssize_t)len);
	CHECK_EQ(sb_sha256_fd(fd, a, &n), 0);
	CHECK_EQ(n, len);
	sb_sha256(p, len, b);
	CHECK_MEM(a, b, sizeof(a));
	(void)close(fd);
}

TEST(lengths_around_every_edge)
{
	static uint8_t data[(1U << 18) * 2 + 200];

	REQUIRE(sb_crypto_init() == 0);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t len = 0; len <= 260; len++)
		both(data, len);
	for (size_t d = 0; d < 130; d += 5) {
		both(data, (1U << 18) - 65 + d);
		both(data, (1U << 19) - 65 + d);
	}
}

TEST(published_examples)
{
	static const struct {
		const char *text;
		const char *hex;
	} v[] = {
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};

	REQUIRE(sb_crypto_init() == 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(v); i++) {
		int fd = memfd_create("t", MFD_CLOEXEC);
		uint8_t sum[SB_SHA256_LEN];
		char hex[2 * SB_SHA256_LEN + 1] = "";
		uint64_t n;

		REQUIRE(fd >= 0);
		CHECK_EQ(write(fd, v[i].text, strlen(v[i].text)), (ssize_t)strlen(v[i].text));
		CHECK_EQ(sb_sha256_fd(fd, sum, &n), 0);
		sb_hex_write(sum, sizeof(sum), hex);
		hex[2 * SB_SHA256_LEN] = '\0';
		CHECK_STR(hex, v[i].hex);
		(void)close(fd);
	}
}

/* FIPS 180-4 examples, in pieces of every size. */
TEST(pieces)
{
	static const char text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static const uint8_t want[32] = {
		0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8, 0xe5, 0xc0, 0x26, 0x93, 0x0c, 0x3e, 0x60, 0x39,
		0xa3, 0x3c, 0xe4, 0x59, 0x64, 0xff, 0x21, 0x67, 0xf6, 0xec, 0xed, 0xd4, 0x19, 0xdb, 0x06, 0xc1,
	};
	uint8_t big[1000];
	uint8_t whole[32];
	uint8_t got[32];
	struct sb_sha256 s;

	CHECK_EQ(sb_crypto_init(), 0);
	memset(big, 'x', sizeof(big));
	sb_sha256(big, sizeof(big), whole);
	for (size_t piece = 1; piece < 200; piece++) {
		sb_sha256_start(&s);
		for (size_t at = 0; at < sizeof(text) - 1; at += piece)
			sb_sha256_add(&s, text + at, SB_MIN(piece, sizeof(text) - 1 - at));
		sb_sha256_end(&s, got);
		CHECK_MEM(got, want, 32);
		sb_sha256_start(&s);
		for (size_t at = 0; at < sizeof(big); at += piece)
			sb_sha256_add(&s, big + at, SB_MIN(piece, sizeof(big) - at));
		sb_sha256_end(&s, got);
		CHECK_MEM(got, whole, 32);
	}
}
