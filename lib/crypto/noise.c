/*
 * Theory of operation. The symmetric state of the Noise specification (section 5.2) with the
 * token sequence of NNpsk0 spelled out. Under a pre-shared key the token "e" mixes the public key
 * into the chaining key as well (section 9.2). Any error leaves the state failed: a handshake is
 * never resumed.
 *
 * An attacker on the carrier controls every byte that sb_noise_read sees; lengths are checked by
 * the caller's framing and again here.
 */
#include "crypto/noise.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

static const char protocol[] = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b";

#define BLOCK_LEN 128 /* BLAKE2b */

static void nonce_write(uint64_t seq, uint8_t out[12])
{
	memset(out, 0, 4);
	for (size_t i = 0; i < 8; i++)
		out[4 + i] = (uint8_t)(seq >> (8 * i));
}

int sb_aead_seal(struct sb_aead *a, const void *ad, size_t ad_len, uint8_t *p, size_t len)
{
	uint8_t nonce[12];

	if (a->seq == UINT64_MAX)
		return -EOVERFLOW;
	nonce_write(a->seq++, nonce);
	(void)crypto_aead_chacha20poly1305_ietf_encrypt_detached(p, p + len, NULL, p, len, ad,
								 ad_len, NULL, nonce, a->key);
	return 0;
}

int sb_aead_open(struct sb_aead *a, const void *ad, size_t ad_len, uint8_t *p, size_t len)
{
	uint8_t nonce[12];

	if (len < SB_AEAD_TAG_LEN)
		return -EBADMSG;
	if (a->seq == UINT64_MAX)
		return -EOVERFLOW;
	len -= SB_AEAD_TAG_LEN;
	nonce_write(a->seq, nonce);
	if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(p, NULL, p, len, p + len, ad,
							       ad_len, nonce, a->key) != 0)
		return -EBADMSG;
	a->seq++;
	return 0;
}

void sb_aead_done(struct sb_aead *a)
{
	sodium_memzero(a, sizeof(*a));
}

/* HMAC-BLAKE2b of two parts (RFC 2104 with the hash's 128-byte block). */
static void hmac(const uint8_t key[SB_NOISE_HASH_LEN], const void *a, size_t a_len, const void *b,
		 size_t b_len, uint8_t out[SB_NOISE_HASH_LEN])
{
	crypto_generichash_state st;
	uint8_t pad[BLOCK_LEN];
	uint8_t inner[SB_NOISE_HASH_LEN];

	memset(pad, 0x36, sizeof(pad));
	for (size_t i = 0; i < SB_NOISE_HASH_LEN; i++)
		pad[i] = (uint8_t)(key[i] ^ 0x36U);
	(void)crypto_generichash_init(&st, NULL, 0, SB_NOISE_HASH_LEN);
	(void)crypto_generichash_update(&st, pad, sizeof(pad));
	(void)crypto_generichash_update(&st, a, a_len);
	(void)crypto_generichash_update(&st, b, b_len);
	(void)crypto_generichash_final(&st, inner, sizeof(inner));
	memset(pad, 0x5c, sizeof(pad));
	for (size_t i = 0; i < SB_NOISE_HASH_LEN; i++)
		pad[i] = (uint8_t)(key[i] ^ 0x5cU);
	(void)crypto_generichash_init(&st, NULL, 0, SB_NOISE_HASH_LEN);
	(void)crypto_generichash_update(&st, pad, sizeof(pad));
	(void)crypto_generichash_update(&st, inner, sizeof(inner));
	(void)crypto_generichash_final(&st, out, SB_NOISE_HASH_LEN);
	sodium_memzero(&st, sizeof(st));
	sodium_memzero(pad, sizeof(pad));
	sodium_memzero(inner, sizeof(inner));
}

/* Section 4.3: @n outputs of HKDF(@ck, @ikm), 2 or 3, one after the other in @out. */
static void hkdf(const uint8_t ck[SB_NOISE_HASH_LEN], const void *ikm, size_t ikm_len, size_t n,
		 uint8_t *out)
{
	uint8_t temp[SB_NOISE_HASH_LEN];

	hmac(ck, ikm, ikm_len, NULL, 0, temp);
	for (size_t i = 0; i < n; i++) {
		uint8_t counter = (uint8_t)(i + 1);
		uint8_t *to = out + i * SB_NOISE_HASH_LEN;

		hmac(temp, i > 0 ? to - SB_NOISE_HASH_LEN : NULL, i > 0 ? SB_NOISE_HASH_LEN : 0,
		     &counter, 1, to);
	}
	sodium_memzero(temp, sizeof(temp));
}

static void mix_hash(struct sb_noise *n, const void *p, size_t len)
{
	crypto_generichash_state st;

	(void)crypto_generichash_init(&st, NULL, 0, SB_NOISE_HASH_LEN);
	(void)crypto_generichash_update(&st, n->h, sizeof(n->h));
	(void)crypto_generichash_update(&st, p, len);
	(void)crypto_generichash_final(&st, n->h, sizeof(n->h));
}

static void set_key(struct sb_noise *n, const uint8_t *key)
{
	memcpy(n->cipher.key, key, sizeof(n->cipher.key));
	n->cipher.seq = 0;
	n->has_key = true;
}

static void mix_key(struct sb_noise *n, const void *p, size_t len)
{
	uint8_t out[2 * SB_NOISE_HASH_LEN];

	hkdf(n->ck, p, len, 2, out);
	memcpy(n->ck, out, sizeof(n->ck));
	set_key(n, out + SB_NOISE_HASH_LEN);
	sodium_memzero(out, sizeof(out));
}

static void mix_psk(struct sb_noise *n)
{
	uint8_t out[3 * SB_NOISE_HASH_LEN];

	hkdf(n->ck, n->psk, sizeof(n->psk), 3, out);
	memcpy(n->ck, out, sizeof(n->ck));
	mix_hash(n, out + SB_NOISE_HASH_LEN, SB_NOISE_HASH_LEN);
	set_key(n, out + 2 * (size_t)SB_NOISE_HASH_LEN);
	sodium_memzero(out, sizeof(out));
	sodium_memzero(n->psk, sizeof(n->psk));
}

static void mix_e(struct sb_noise *n, const uint8_t pub[32])
{
	mix_hash(n, pub, 32);
	mix_key(n, pub, 32);
}

static int mix_ee(struct sb_noise *n)
{
	uint8_t shared[32];
	int r = -EBADMSG;

	/* refuses the points of small order, whose result is all zero */
	if (crypto_scalarmult(shared, n->e_sec, n->peer) == 0) {
		mix_key(n, shared, sizeof(shared));
		r = 0;
	}
	sodium_memzero(shared, sizeof(shared));
	return r;
}

void sb_noise_init(struct sb_noise *n, enum sb_noise_role role, const uint8_t psk[SB_PSK_LEN],
		   const void *prologue, size_t prologue_len, const uint8_t ephemeral[32])
{
	*n = (struct sb_noise){ .role = (uint8_t)role };
	memcpy(n->psk, psk, sizeof(n->psk));
	if (ephemeral)
		memcpy(n->e_sec, ephemeral, sizeof(n->e_sec));
	else
		randombytes_buf(n->e_sec, sizeof(n->e_sec));
	(void)crypto_scalarmult_base(n->e_pub, n->e_sec);
	/* the name is shorter than a hash: zero-padded, not hashed */
	memcpy(n->h, protocol, sizeof(protocol) - 1);
	memcpy(n->ck, n->h, sizeof(n->ck));
	mix_hash(n, prologue, prologue_len);
}

void sb_noise_done(struct sb_noise *n)
{
	sodium_memzero(n, sizeof(*n));
}

static int fail(struct sb_noise *n, int r)
{
	sb_noise_done(n);
	n->failed = true;
	return r;
}

static bool my_turn_to_write(const struct sb_noise *n)
{
	return !n->failed && ((n->role == SB_NOISE_INITIATOR && n->step == 0) ||
			      (n->role == SB_NOISE_RESPONDER && n->step == 1));
}

static bool my_turn_to_read(const struct sb_noise *n)
{
	return !n->failed && ((n->role == SB_NOISE_RESPONDER && n->step == 0) ||
			      (n->role == SB_NOISE_INITIATOR && n->step == 1));
}

int sb_noise_write(struct sb_noise *n, const void *payload, size_t len, uint8_t *out)
{
	uint8_t *body = out + SB_NOISE_KEY_LEN;
	int r;

	if (!my_turn_to_write(n))
		return -EPROTO;
	if (len > SB_NOISE_MAX_PAYLOAD)
		return -EMSGSIZE;
	if (n->step == 0)
		mix_psk(n);
	memcpy(out, n->e_pub, SB_NOISE_KEY_LEN);
	if (n->step == 0) {
		mix_e(n, n->e_pub);
	} else {
		mix_e(n, n->e_pub);
		r = mix_ee(n);
		if (r < 0)
			return fail(n, r);
	}
	if (len > 0)
		memcpy(body, payload, len);
	r = sb_aead_seal(&n->cipher, n->h, sizeof(n->h), body, len);
	if (r < 0)
		return fail(n, r);
	mix_hash(n, body, len + SB_AEAD_TAG_LEN);
	n->step++;
	return 0;
}

int sb_noise_read(struct sb_noise *n, const uint8_t *msg, size_t len, void *payload)
{
	uint8_t ad[SB_NOISE_HASH_LEN];
	uint8_t body[SB_NOISE_MAX_PAYLOAD + SB_AEAD_TAG_LEN];
	size_t body_len;
	int r;

	if (!my_turn_to_read(n))
		return -EPROTO;
	if (len < SB_NOISE_OVERHEAD || len > SB_NOISE_OVERHEAD + SB_NOISE_MAX_PAYLOAD)
		return fail(n, -EMSGSIZE);
	body_len = len - SB_NOISE_KEY_LEN;
	memcpy(n->peer, msg, sizeof(n->peer));
	if (n->step == 0) {
		mix_psk(n);
		mix_e(n, n->peer);
	} else {
		mix_e(n, n->peer);
		r = mix_ee(n);
		if (r < 0)
			return fail(n, r);
	}
	memcpy(ad, n->h, sizeof(ad));
	memcpy(body, msg + SB_NOISE_KEY_LEN, body_len);
	mix_hash(n, body, body_len);
	r = sb_aead_open(&n->cipher, ad, sizeof(ad), body, body_len);
	if (r < 0)
		return fail(n, r);
	if (body_len > SB_AEAD_TAG_LEN)
		memcpy(payload, body, body_len - SB_AEAD_TAG_LEN);
	sodium_memzero(body, sizeof(body));
	n->step++;
	return 0;
}

int sb_noise_split(struct sb_noise *n, struct sb_aead *tx, struct sb_aead *rx,
		   uint8_t hash[SB_NOISE_HASH_LEN])
{
	uint8_t out[2 * SB_NOISE_HASH_LEN];
	bool first = n->role == SB_NOISE_INITIATOR;

	if (n->failed || n->step != 2)
		return -EPROTO;
	hkdf(n->ck, NULL, 0, 2, out);
	memcpy(first ? tx->key : rx->key, out, 32);
	memcpy(first ? rx->key : tx->key, out + SB_NOISE_HASH_LEN, 32);
	tx->seq = 0;
	rx->seq = 0;
	if (hash)
		memcpy(hash, n->h, SB_NOISE_HASH_LEN);
	sodium_memzero(out, sizeof(out));
	(void)fail(n, 0);
	return 0;
}
