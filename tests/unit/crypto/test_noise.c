/* Noise NNpsk0 and the primitives beneath it, against published vectors. */
#include <sodium.h>

#include "crypto/noise.h"
#include "t.h"
#include "vectors.h"

static uint8_t hex_digit(char c)
{
	return (uint8_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
}

static size_t unhex(const char *s, uint8_t *out, size_t cap)
{
	size_t n = strlen(s) / 2;

	if (n > cap)
		abort();
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(hex_digit(s[2 * i]) << 4 | hex_digit(s[2 * i + 1]));
	return n;
}

static void pair(struct sb_noise *a, struct sb_noise *b, const char *psk_b)
{
	uint8_t psk[32];
	uint8_t other[32];
	uint8_t ea[32];
	uint8_t eb[32];
	uint8_t pro[64];
	size_t n = unhex(noise_vector.prologue, pro, sizeof(pro));

	(void)unhex(noise_vector.psk, psk, 32);
	(void)unhex(psk_b ? psk_b : noise_vector.psk, other, 32);
	(void)unhex(noise_vector.init_e, ea, 32);
	(void)unhex(noise_vector.resp_e, eb, 32);
	sb_noise_init(a, SB_NOISE_INITIATOR, psk, pro, n, ea);
	sb_noise_init(b, SB_NOISE_RESPONDER, other, pro, n, eb);
}

static void one_message(struct sb_noise *from, struct sb_noise *to, const char *payload,
			const char *text)
{
	uint8_t clear[128];
	uint8_t want[256];
	uint8_t got[256];
	uint8_t back[128];
	size_t n = unhex(payload, clear, sizeof(clear));
	size_t m = unhex(text, want, sizeof(want));

	CHECK_EQ(sb_noise_write(from, clear, n, got), 0);
	CHECK_EQ(m, n + SB_NOISE_OVERHEAD);
	CHECK_MEM(got, want, m);
	CHECK_EQ(sb_noise_read(to, want, m, back), 0);
	CHECK_MEM(back, clear, n);
}

TEST(published_handshake)
{
	struct sb_noise a;
	struct sb_noise b;
	struct sb_aead at;
	struct sb_aead ar;
	struct sb_aead bt;
	struct sb_aead br;
	uint8_t hash[SB_NOISE_HASH_LEN];
	uint8_t want[SB_NOISE_HASH_LEN];

	REQUIRE(sb_crypto_init() == 0);
	pair(&a, &b, NULL);
	CHECK_EQ(sb_noise_split(&a, &at, &ar, NULL), -EPROTO);
	one_message(&a, &b, noise_vector.msg[0].payload, noise_vector.msg[0].text);
	one_message(&b, &a, noise_vector.msg[1].payload, noise_vector.msg[1].text);
	REQUIRE(sb_noise_split(&a, &at, &ar, hash) == 0);
	(void)unhex(noise_vector.hash, want, sizeof(want));
	CHECK_MEM(hash, want, sizeof(want));
	REQUIRE(sb_noise_split(&b, &bt, &br, hash) == 0);
	CHECK_MEM(hash, want, sizeof(want));
	for (size_t i = 2; i < SB_ARRAY_LEN(noise_vector.msg); i++) {
		uint8_t text[128];
		uint8_t clear[128];
		uint8_t sealed[128];
		size_t n = unhex(noise_vector.msg[i].payload, clear, sizeof(clear));
		size_t m = unhex(noise_vector.msg[i].text, sealed, sizeof(sealed));
		bool first = i % 2 == 0;

		CHECK_EQ(m, n + SB_AEAD_TAG_LEN);
		memcpy(text, clear, n);
		CHECK_EQ(sb_aead_seal(first ? &at : &bt, NULL, 0, text, n), 0);
		CHECK_MEM(text, sealed, m);
		CHECK_EQ(sb_aead_open(first ? &br : &ar, NULL, 0, text, m), 0);
		CHECK_MEM(text, clear, n);
	}
	/* used up: neither side can begin again */
	CHECK_EQ(sb_noise_write(&a, NULL, 0, want), -EPROTO);
	CHECK_EQ(sb_noise_split(&a, &at, &ar, NULL), -EPROTO);
}

TEST(wrong_key_prologue_and_bytes)
{
	struct sb_noise a;
	struct sb_noise b;
	uint8_t msg[SB_NOISE_OVERHEAD];

	REQUIRE(sb_crypto_init() == 0);
	pair(&a, &b, "00000000000000000000000000000000000000000000000000000000000000ff");
	REQUIRE(sb_noise_write(&a, NULL, 0, msg) == 0);
	CHECK_EQ(sb_noise_read(&b, msg, sizeof(msg), NULL), -EBADMSG);
	CHECK_EQ(sb_noise_read(&b, msg, sizeof(msg), NULL), -EPROTO);
	for (size_t bit = 0; bit < 8 * sizeof(msg); bit += 7) {
		pair(&a, &b, NULL);
		REQUIRE(sb_noise_write(&a, NULL, 0, msg) == 0);
		msg[bit / 8] = (uint8_t)(msg[bit / 8] ^ 1U << bit % 8);
		CHECK_EQ(sb_noise_read(&b, msg, sizeof(msg), NULL), -EBADMSG);
	}
	for (size_t bit = 0; bit < 8 * sizeof(msg); bit += 7) {
		pair(&a, &b, NULL);
		REQUIRE(sb_noise_write(&a, NULL, 0, msg) == 0);
		REQUIRE(sb_noise_read(&b, msg, sizeof(msg), NULL) == 0);
		REQUIRE(sb_noise_write(&b, NULL, 0, msg) == 0);
		msg[bit / 8] = (uint8_t)(msg[bit / 8] ^ 1U << bit % 8);
		/* the top bit of an X25519 key is ignored, but it is hashed */
		CHECK_EQ(sb_noise_read(&a, msg, sizeof(msg), NULL), -EBADMSG);
	}
	pair(&a, &b, NULL);
	CHECK_EQ(sb_noise_read(&b, msg, SB_NOISE_OVERHEAD - 1, NULL), -EMSGSIZE);
	pair(&a, &b, NULL);
	sb_noise_init(&b, SB_NOISE_RESPONDER, a.psk, "other", 5, NULL);
	REQUIRE(sb_noise_write(&a, NULL, 0, msg) == 0);
	CHECK_EQ(sb_noise_read(&b, msg, sizeof(msg), NULL), -EBADMSG);
}

TEST(zero_point_refused)
{
	struct sb_noise a;
	struct sb_noise b;
	uint8_t msg[SB_NOISE_OVERHEAD];

	REQUIRE(sb_crypto_init() == 0);
	pair(&a, &b, NULL);
	/* an initiator that knows the key but sends a point of small order */
	memset(a.e_pub, 0, sizeof(a.e_pub));
	REQUIRE(sb_noise_write(&a, NULL, 0, msg) == 0);
	REQUIRE(sb_noise_read(&b, msg, sizeof(msg), NULL) == 0);
	CHECK_EQ(sb_noise_write(&b, NULL, 0, msg), -EBADMSG);
}

TEST(sequence)
{
	struct sb_aead t = { .key = { 1 } };
	struct sb_aead r = { .key = { 1 } };
	uint8_t one[20] = "one";
	uint8_t two[20] = "two";
	uint8_t copy[20];

	REQUIRE(sb_crypto_init() == 0);
	CHECK_EQ(sb_aead_seal(&t, "ad", 2, one, 4), 0);
	CHECK_EQ(sb_aead_seal(&t, "ad", 2, two, 4), 0);
	memcpy(copy, two, sizeof(copy));
	CHECK_EQ(sb_aead_open(&r, "ad", 2, copy, 20), -EBADMSG); /* out of order */
	memcpy(copy, one, sizeof(copy));
	CHECK_EQ(sb_aead_open(&r, "aD", 2, copy, 20), -EBADMSG); /* other length field */
	memcpy(copy, one, sizeof(copy));
	CHECK_EQ(sb_aead_open(&r, "ad", 2, copy, 20), 0);
	memcpy(copy, one, sizeof(copy));
	CHECK_EQ(sb_aead_open(&r, "ad", 2, copy, 20), -EBADMSG); /* replay */
	CHECK_EQ(sb_aead_open(&r, "ad", 2, copy, 15), -EBADMSG); /* shorter than a tag */
	t.seq = UINT64_MAX;
	r.seq = UINT64_MAX;
	CHECK_EQ(sb_aead_seal(&t, NULL, 0, one, 4), -EOVERFLOW);
	CHECK_EQ(sb_aead_open(&r, NULL, 0, one, 20), -EOVERFLOW);
}

TEST(wycheproof_x25519)
{
	REQUIRE(sb_crypto_init() == 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(x25519_vectors); i++) {
		uint8_t sec[32];
		uint8_t pub[32];
		uint8_t want[32];
		uint8_t got[32] = { 0 };

		(void)unhex(x25519_vectors[i].sec, sec, 32);
		(void)unhex(x25519_vectors[i].pub, pub, 32);
		(void)unhex(x25519_vectors[i].shared, want, 32);
		CHECK_EQ(crypto_scalarmult(got, sec, pub), x25519_vectors[i].zero ? -1 : 0);
		if (memcmp(got, want, 32) != 0)
			t_fail(__FILE__, __LINE__, "case %d", x25519_vectors[i].id);
	}
}

TEST(wycheproof_aead)
{
	REQUIRE(sb_crypto_init() == 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(aead_vectors); i++) {
		uint8_t key[32];
		uint8_t iv[12];
		uint8_t ad[256];
		uint8_t text[512];
		uint8_t sealed[512];
		size_t ad_len = unhex(aead_vectors[i].ad, ad, sizeof(ad));
		size_t n = unhex(aead_vectors[i].text, text, sizeof(text));
		size_t m = unhex(aead_vectors[i].sealed, sealed, sizeof(sealed));
		int r;

		(void)unhex(aead_vectors[i].key, key, 32);
		(void)unhex(aead_vectors[i].iv, iv, 12);
		CHECK_EQ(m, n + 16);
		r = crypto_aead_chacha20poly1305_ietf_decrypt_detached(
			sealed, NULL, sealed, n, sealed + n, ad, ad_len, iv, key);
		if ((r == 0) != aead_vectors[i].valid)
			t_fail(__FILE__, __LINE__, "case %d: %d", aead_vectors[i].id, r);
		if (r == 0 && memcmp(sealed, text, n) != 0)
			t_fail(__FILE__, __LINE__, "case %d: text", aead_vectors[i].id);
	}
}
