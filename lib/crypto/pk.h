#ifndef SB_CRYPTO_PK_H
#define SB_CRYPTO_PK_H
/*
 * Signatures of other people's keys (OpenSSL's libcrypto; Ed25519 is in crypto.h). A library of its
 * own, for the few programs that need it. Numbers are big-endian, as SSH writes them.
 */
#include "base/mem.h"

enum sb_pk_hash { SB_PK_SHA256 = 1, SB_PK_SHA384, SB_PK_SHA512 };
enum sb_pk_curve { SB_PK_P256 = 1, SB_PK_P384, SB_PK_P521 };
struct sb_pk_bytes {
	const uint8_t *p;
	size_t len;
};

/* Load what a jail would not let in later, and verify a known signature of each kind.
 * Return: 0; -EIO: the library does not do what it must. */
SB_MUST_CHECK int sb_pk_init(void);
/* RSASSA-PKCS1-v1_5; keys of 2048 to 16384 bits, e odd and at most 64 bits. */
SB_MUST_CHECK bool sb_pk_rsa(const struct sb_pk_bytes *e, const struct sb_pk_bytes *n,
			     enum sb_pk_hash hash, const struct sb_pk_bytes *sig, const void *msg,
			     size_t len);
/* @point: uncompressed (SEC 1). */
SB_MUST_CHECK bool sb_pk_ecdsa(enum sb_pk_curve curve, const struct sb_pk_bytes *point,
			       enum sb_pk_hash hash, const struct sb_pk_bytes *r,
			       const struct sb_pk_bytes *s, const void *msg, size_t len);

#endif
