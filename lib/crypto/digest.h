#ifndef SB_CRYPTO_DIGEST_H
#define SB_CRYPTO_DIGEST_H
/*
 * SHA-256 of what comes piece by piece, with OpenSSL's code for this processor. In a library of its
 * own, for the programs that hash records and trees: nobody else links libcrypto for it.
 *
 * One thread at a time for each struct sb_digest.
 */
#include "base/mem.h"

#define SB_DIGEST_LEN 32

struct sb_digest;

/* Reads no configuration file. Return: 0; -ENOMEM; -EIO: the library has no SHA-256. */
SB_MUST_CHECK int sb_digest_new(struct sb_digest **ret);
struct sb_digest *sb_digest_free(struct sb_digest *d);
static inline void sb_digest_freep(struct sb_digest **d)
{
	*d = sb_digest_free(*d);
}
#define sb_autodigest SB_CLEANUP(sb_digest_freep)

/* Any number of times: start, then add, then end. */
void sb_digest_start(struct sb_digest *d);
void sb_digest_add(struct sb_digest *d, const void *p, size_t len);
void sb_digest_end(struct sb_digest *d, uint8_t out[SB_DIGEST_LEN]);

/* All three for what is in one piece. */
void sb_digest_of(struct sb_digest *d, const void *p, size_t len, uint8_t out[SB_DIGEST_LEN]);

#endif
