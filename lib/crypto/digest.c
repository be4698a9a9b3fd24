#include "crypto/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

struct sb_digest {
	EVP_MD *md;
	EVP_MD_CTX *ctx;
};

int sb_digest_new(struct sb_digest **ret)
{
	sb_autodigest struct sb_digest *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
		return -EIO;
	d->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	d->ctx = EVP_MD_CTX_new();
	/* what can fail later is proven here: the buffers are there, the algorithm works */
	if (!d->md || !d->ctx || EVP_DigestInit_ex2(d->ctx, d->md, NULL) != 1)
		return -EIO;
	*ret = sb_take(&d);
	return 0;
}

struct sb_digest *sb_digest_free(struct sb_digest *d)
{
	if (d) {
		EVP_MD_CTX_free(d->ctx);
		EVP_MD_free(d->md);
	}
	free(d);
	return NULL;
}

void sb_digest_start(struct sb_digest *d)
{
	sb_assert(EVP_DigestInit_ex2(d->ctx, NULL, NULL) == 1);
}

void sb_digest_add(struct sb_digest *d, const void *p, size_t len)
{
	if (len > 0)
		sb_assert(EVP_DigestUpdate(d->ctx, p, len) == 1);
}

void sb_digest_end(struct sb_digest *d, uint8_t out[SB_DIGEST_LEN])
{
	unsigned int n = 0;

	sb_assert(EVP_DigestFinal_ex(d->ctx, out, &n) == 1 && n == SB_DIGEST_LEN);
}

void sb_digest_of(struct sb_digest *d, const void *p, size_t len, uint8_t out[SB_DIGEST_LEN])
{
	sb_digest_start(d);
	sb_digest_add(d, p, len);
	sb_digest_end(d, out);
}
