#ifndef SB_CRYPTO_CRYPTO_H
#define SB_CRYPTO_CRYPTO_H
/*
 * Hash, signature, randomness, wiping. lib/crypto is the only folder that names a crypto library
 * (libsodium). sb_crypto_init() must have succeeded before anything else is called.
 */
#include "base/mem.h"

#define SB_SHA256_LEN 32
#define SB_SIGN_PUBLIC_LEN 32
#define SB_SIGN_SECRET_LEN 64
#define SB_SIGN_LEN 64
#define SB_PSK_LEN 32

SB_MUST_CHECK int sb_crypto_init(void); /* Return: 0; -EIO */

void sb_sha256(const void *p, size_t len, uint8_t out[SB_SHA256_LEN]);
/* Hash all of @fd from offset 0 with pread; @len = bytes hashed. Return: 0; -errno. */
SB_MUST_CHECK int sb_sha256_fd(int fd, uint8_t out[SB_SHA256_LEN], uint64_t *len);
/* The same in pieces. */
struct sb_sha256 {
	uint64_t state[16]; /* crypto.c's alone */
	uint8_t part[64];
	size_t have;
	uint64_t total;
	bool fast;
};
void sb_sha256_start(struct sb_sha256 *s);
void sb_sha256_add(struct sb_sha256 *s, const void *p, size_t len);
void sb_sha256_end(struct sb_sha256 *s, uint8_t out[SB_SHA256_LEN]);

/* Ed25519 (RFC 8032). */
void sb_sign_keypair(uint8_t pub[SB_SIGN_PUBLIC_LEN], uint8_t sec[SB_SIGN_SECRET_LEN]);
void sb_sign_public(const uint8_t sec[SB_SIGN_SECRET_LEN], uint8_t pub[SB_SIGN_PUBLIC_LEN]);
void sb_sign(const void *p, size_t len, const uint8_t sec[SB_SIGN_SECRET_LEN],
	     uint8_t sig[SB_SIGN_LEN]);
/* Return: true only when the signature is valid. */
SB_MUST_CHECK bool sb_sign_verify(const void *p, size_t len, const uint8_t sig[SB_SIGN_LEN],
				  const uint8_t pub[SB_SIGN_PUBLIC_LEN]);

void sb_random(void *p, size_t len);
void sb_wipe(void *p, size_t len);
SB_MUST_CHECK bool sb_equal_ct(const void *a, const void *b, size_t len); /* constant time */

#endif
