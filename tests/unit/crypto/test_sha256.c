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
