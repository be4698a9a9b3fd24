#include "crypto/sha256.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static const uint32_t start[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};
/* FIPS 180-4, section 4.2.2 */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static bool probe(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1U << 29)); /* SHA */
}

/* Asked once: within a virtual machine cpuid leaves it, and takes longer than to hash a record. */
bool sb_sha256_fast(void)
{
	static int known;

	if (known == 0)
		known = probe() ? 1 : -1;
	return known > 0;
}

static inline __m128i load128(const void *p)
{
	__m128i v;

	memcpy(&v, p, sizeof(v));
	return v;
}

__attribute__((__target__("sha,sse4.1,ssse3"))) static void blocks(uint32_t h[8], const uint8_t *p,
								     size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
	__m128i t = _mm_shuffle_epi32(load128(h), 0xb1);
	__m128i s1 = _mm_shuffle_epi32(load128(h + 4), 0x1b);
	__m128i s0 = _mm_alignr_epi8(t, s1, 8); /* ABEF */

	s1 = _mm_blend_epi16(s1, t, 0xf0); /* CDGH */
	for (; n > 0; n--, p += 64) {
		const __m128i old0 = s0;
		const __m128i old1 = s1;
		__m128i m[4];

		for (size_t i = 0; i < 4; i++)
			m[i] = _mm_shuffle_epi8(load128(p + 16 * i), swap);
#pragma GCC unroll 16
		for (size_t i = 0; i < 16; i++) {
			__m128i w = m[i & 3];

			if (i >= 4) {
				w = _mm_sha256msg1_epu32(w, m[(i + 1) & 3]);
				w = _mm_add_epi32(w, _mm_alignr_epi8(m[(i + 3) & 3],
								     m[(i + 2) & 3], 4));
				w = _mm_sha256msg2_epu32(w, m[(i + 3) & 3]);
				m[i & 3] = w;
			}
			w = _mm_add_epi32(w, load128(k + 4 * i));
			s1 = _mm_sha256rnds2_epu32(s1, s0, w);
			s0 = _mm_sha256rnds2_epu32(s0, s1, _mm_shuffle_epi32(w, 0x0e));
		}
		s0 = _mm_add_epi32(s0, old0);
		s1 = _mm_add_epi32(s1, old1);
	}
	t = _mm_shuffle_epi32(s0, 0x1b);
	s1 = _mm_shuffle_epi32(s1, 0xb1);
	s0 = _mm_blend_epi16(t, s1, 0xf0);
	s1 = _mm_alignr_epi8(s1, t, 8);
	memcpy(h, &s0, sizeof(s0));
	memcpy(h + 4, &s1, sizeof(s1));
}

/* The last block or two: what is left, 0x80, zeroes, length in bits. */
static void finish(uint32_t h[8], const uint8_t *rest, size_t n, uint64_t total, uint8_t out[32])
{
	uint8_t last[128] = { 0 };
	size_t len = n < 56 ? 64 : 128;

	memcpy(last, rest, n);
	last[n] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[len - 1 - i] = (uint8_t)((total * 8) >> (8 * i));
	blocks(h, last, len / 64);
	for (size_t i = 0; i < 8; i++)
		for (size_t j = 0; j < 4; j++)
			out[4 * i + j] = (uint8_t)(h[i] >> (24 - 8 * j));
}

int sb_sha256_fast_fd(int fd, uint8_t *buf, size_t cap, uint8_t out[32], uint64_t *len)
{
	uint64_t total = 0;
	size_t have = 0;
	uint32_t h[8];

	sb_assert(cap >= 64 && cap % 64 == 0);
	memcpy(h, start, sizeof(h));
	for (;;) {
		ssize_t n = pread(fd, buf + have, cap - have, (off_t)total);
		size_t whole;

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		total += (uint64_t)n;
		have += (size_t)n;
		whole = have / 64;
		blocks(h, buf, whole);
		have -= whole * 64;
		memmove(buf, buf + whole * 64, have);
	}
	finish(h, buf, have, total, out);
	*len = total;
	return 0;
}

void sb_sha256_fast_start(uint32_t h[8])
{
	memcpy(h, start, sizeof(start));
}

void sb_sha256_fast_blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
	blocks(h, p, n);
}

void sb_sha256_fast_finish(uint32_t h[8], const uint8_t *rest, size_t n, uint64_t total,
			   uint8_t out[32])
{
	finish(h, rest, n, total, out);
}

#else

bool sb_sha256_fast(void)
{
	return false;
}

int sb_sha256_fast_fd(int fd, uint8_t *buf, size_t cap, uint8_t out[32], uint64_t *len)
{
	(void)fd;
	(void)buf;
	(void)cap;
	(void)out;
	(void)len;
	return -ENOSYS;
}

void sb_sha256_fast_start(uint32_t h[8])
{
	(void)h;
}

void sb_sha256_fast_blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
	(void)h;
	(void)p;
	(void)n;
}

void sb_sha256_fast_finish(uint32_t h[8], const uint8_t *rest, size_t n, uint64_t total,
			   uint8_t out[32])
{
	(void)h;
	(void)rest;
	(void)n;
	(void)total;
	(void)out;
}

#endif
