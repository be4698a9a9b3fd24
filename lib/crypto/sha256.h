#ifndef SB_CRYPTO_SHA256_H
#define SB_CRYPTO_SHA256_H
/*
 * SHA-256 compression with the processor's own instructions (x86 SHA extensions), for the files
 * of some megabytes that are hashed at every start: the library's portable code takes 3 ms for
 * one, these 0.6 ms. Inside lib/crypto only; everything else (padding, other processors) is the
 * library's.
 */
#include "base/mem.h"

/* Whether this processor has the instructions. */
bool sb_sha256_fast(void);
/*
 * sb_sha256_fast_fd - hash all of @fd from offset 0 (call only if sb_sha256_fast())
 * @buf: @cap bytes of scratch, a multiple of 64
 * Return: 0; -errno.
 */
SB_MUST_CHECK int sb_sha256_fast_fd(int fd, uint8_t *buf, size_t cap, uint8_t out[32],
				    uint64_t *len);

/* The pieces, for hashing what does not come from a file. */
void sb_sha256_fast_start(uint32_t h[8]);
void sb_sha256_fast_blocks(uint32_t h[8], const uint8_t *p, size_t n); /* n blocks of 64 */
void sb_sha256_fast_finish(uint32_t h[8], const uint8_t *rest, size_t n, uint64_t total,
			   uint8_t out[32]);

#endif
