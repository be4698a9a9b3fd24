#include "crypto/pk.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#define MIN_RSA_BITS 2048
#define MAX_RSA_BITS 16384
#define MAX_POINT 133  /* P-521: 1 + 2 * 66 */
#define MAX_SCALAR 67  /* and a leading zero */

static const char *const digests[] = { NULL, "SHA256", "SHA384", "SHA512" };
static const char *const curves[] = { NULL, "P-256", "P-384", "P-521" };

static EVP_PKEY *make_key(const char *type, OSSL_PARAM_BLD *bld)
{
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(bld);
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	EVP_PKEY *key = NULL;

	if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	EVP_PKEY_CTX_free(ctx);
	OSSL_PARAM_free(params);
	return key;
}

static bool verify(EVP_PKEY *key, enum sb_pk_hash hash, const uint8_t *sig, size_t sig_len,
		   const void *msg, size_t len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx &&
		  EVP_DigestVerifyInit_ex(ctx, NULL, digests[hash], NULL, NULL, key, NULL) == 1 &&
		  EVP_DigestVerify(ctx, sig, sig_len, msg, len) == 1;

	EVP_MD_CTX_free(ctx);
	return ok;
}

static BIGNUM *number(const struct sb_pk_bytes *b, size_t max)
{
	/* an SSH mpint is never negative here */
	if (b->len == 0 || b->len > max || (b->p[0] & 0x80) != 0)
		return NULL;
	return BN_bin2bn(b->p, (int)b->len, NULL);
}

bool sb_pk_rsa(const struct sb_pk_bytes *e, const struct sb_pk_bytes *n, enum sb_pk_hash hash,
	       const struct sb_pk_bytes *sig, const void *msg, size_t len)
{
	BIGNUM *bn_e = number(e, 8 + 1);
	BIGNUM *bn_n = number(n, MAX_RSA_BITS / 8 + 1);
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;
	bool ok = false;

	if (bn_e && bn_n && bld && BN_is_odd(bn_e) && BN_num_bits(bn_n) >= MIN_RSA_BITS &&
	    BN_num_bits(bn_n) <= MAX_RSA_BITS &&
	    OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, bn_n) == 1 &&
	    OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, bn_e) == 1)
		key = make_key("RSA", bld);
	ok = key && verify(key, hash, sig->p, sig->len, msg, len);
	EVP_PKEY_free(key);
	OSSL_PARAM_BLD_free(bld);
	BN_free(bn_n);
	BN_free(bn_e);
	return ok;
}

static unsigned char *der_signature(const struct sb_pk_bytes *r, const struct sb_pk_bytes *s,
				    int *ret_len)
{
	BIGNUM *bn_r = number(r, MAX_SCALAR);
	BIGNUM *bn_s = number(s, MAX_SCALAR);
	ECDSA_SIG *sig = bn_r && bn_s ? ECDSA_SIG_new() : NULL;
	unsigned char *der = NULL;

	if (!sig || ECDSA_SIG_set0(sig, bn_r, bn_s) != 1) {
		BN_free(bn_r);
		BN_free(bn_s);
	} else {
		*ret_len = i2d_ECDSA_SIG(sig, &der);
	}
	ECDSA_SIG_free(sig);
	return der;
}

bool sb_pk_ecdsa(enum sb_pk_curve curve, const struct sb_pk_bytes *point, enum sb_pk_hash hash,
		 const struct sb_pk_bytes *r, const struct sb_pk_bytes *s, const void *msg,
		 size_t len)
{
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	int der_len = 0;
	unsigned char *der = der_signature(r, s, &der_len);
	EVP_PKEY *key = NULL;
	bool ok;

	if (bld && point->len > 0 && point->len <= MAX_POINT && point->p[0] == 4 &&
	    OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME, curves[curve], 0) == 1 &&
	    OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point->p,
					     point->len) == 1)
		key = make_key("EC", bld);
	ok = key && der && der_len > 0 && verify(key, hash, der, (size_t)der_len, msg, len);
	EVP_PKEY_free(key);
	OPENSSL_free(der);
	OSSL_PARAM_BLD_free(bld);
	return ok;
}

#include "pk_known.h"

int sb_pk_init(void)
{
	bool ok = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1;

	for (size_t i = 0; ok && i < SB_ARRAY_LEN(known); i++) {
		const struct known *k = &known[i];

		ok = k->curve ? sb_pk_ecdsa(k->curve, &k->a, k->hash, &k->r, &k->s, known_text,
					    sizeof(known_text) - 1)
			      : sb_pk_rsa(&k->a, &k->b, k->hash, &k->r, known_text,
					  sizeof(known_text) - 1);
	}
	return ok ? 0 : -EIO;
}
