#include "crypto/crypto.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "crypto/sha256.h"

int sb_crypto_init(void)
{
	return sodium_init() < 0 ? -EIO : 0;
}

void sb_sha256(const void *p, size_t len, uint8_t out[SB_SHA256_LEN])
{
	(void)crypto_hash_sha256(out, p, len);
}

int sb_sha256_fd(int fd, uint8_t out[SB_SHA256_LEN], uint64_t *len)
{
	sb_autofree uint8_t *buf = malloc(1U << 18);
	crypto_hash_sha256_state st;
	uint64_t at = 0;

	if (!buf)
		return -ENOMEM;
	if (sb_sha256_fast())
		return sb_sha256_fast_fd(fd, buf, 1U << 18, out, len);
	(void)crypto_hash_sha256_init(&st);
	for (;;) {
		ssize_t n = pread(fd, buf, 1U << 18, (off_t)at);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		(void)crypto_hash_sha256_update(&st, buf, (size_t)n);
		at += (size_t)n;
	}
	(void)crypto_hash_sha256_final(&st, out);
	*len = at;
	return 0;
}

_Static_assert(sizeof(crypto_hash_sha256_state) <= sizeof(((struct sb_sha256 *)0)->state),
	       "the library's state fits");

void sb_sha256_start(struct sb_sha256 *s)
{
	*s = (struct sb_sha256){ .fast = sb_sha256_fast() };
	if (s->fast)
		sb_sha256_fast_start((uint32_t *)s->state);
	else
		(void)crypto_hash_sha256_init((crypto_hash_sha256_state *)s->state);
}

void sb_sha256_add(struct sb_sha256 *s, const void *p, size_t len)
{
	const uint8_t *from = p;
	size_t whole;

	if (!s->fast) {
		(void)crypto_hash_sha256_update((crypto_hash_sha256_state *)s->state, from, len);
		return;
	}
	s->total += len;
	if (s->have > 0) {
		size_t n = SB_MIN(len, sizeof(s->part) - s->have);

		memcpy(s->part + s->have, from, n);
		s->have += n;
		from += n;
		len -= n;
		if (s->have < sizeof(s->part))
			return;
		sb_sha256_fast_blocks((uint32_t *)s->state, s->part, 1);
	}
	whole = len / 64;
	sb_sha256_fast_blocks((uint32_t *)s->state, from, whole);
	s->have = len % 64;
	memcpy(s->part, from + whole * 64, s->have);
}

void sb_sha256_end(struct sb_sha256 *s, uint8_t out[SB_SHA256_LEN])
{
	if (s->fast)
		sb_sha256_fast_finish((uint32_t *)s->state, s->part, s->have, s->total, out);
	else
		(void)crypto_hash_sha256_final((crypto_hash_sha256_state *)s->state, out);
}

void sb_sign_keypair(uint8_t pub[SB_SIGN_PUBLIC_LEN], uint8_t sec[SB_SIGN_SECRET_LEN])
{
	(void)crypto_sign_keypair(pub, sec);
}

void sb_sign_public(const uint8_t sec[SB_SIGN_SECRET_LEN], uint8_t pub[SB_SIGN_PUBLIC_LEN])
{
	(void)crypto_sign_ed25519_sk_to_pk(pub, sec);
}

void sb_sign(const void *p, size_t len, const uint8_t sec[SB_SIGN_SECRET_LEN],
	     uint8_t sig[SB_SIGN_LEN])
{
	(void)crypto_sign_detached(sig, NULL, p, len, sec);
}

bool sb_sign_verify(const void *p, size_t len, const uint8_t sig[SB_SIGN_LEN],
		    const uint8_t pub[SB_SIGN_PUBLIC_LEN])
{
	return crypto_sign_verify_detached(sig, p, len, pub) == 0;
}

void sb_random(void *p, size_t len)
{
	randombytes_buf(p, len);
}

void sb_wipe(void *p, size_t len)
{
	sodium_memzero(p, len);
}

bool sb_equal_ct(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}
