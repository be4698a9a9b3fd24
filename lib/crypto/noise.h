#ifndef SB_CRYPTO_NOISE_H
#define SB_CRYPTO_NOISE_H
/*
 * Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b (noiseprotocol.org, revision 34) and the AEAD of the two
 * directions that it yields. No descriptor, no allocation; embedded in its owner. The state holds
 * secrets: sb_noise_done / sb_aead_done wipe it.
 *
 *	-> psk, e      (48 bytes with an empty payload)
 *	<- e, ee       (48 bytes with an empty payload)
 */
#include "crypto/crypto.h"

#define SB_NOISE_KEY_LEN 32
#define SB_NOISE_HASH_LEN 64
#define SB_AEAD_TAG_LEN 16
#define SB_NOISE_OVERHEAD (SB_NOISE_KEY_LEN + SB_AEAD_TAG_LEN) /* message minus payload */
#define SB_NOISE_MAX_PAYLOAD 240                               /* the channel sends none */

/* One direction: key and the strict sequence number that is the nonce. */
struct sb_aead {
	uint8_t key[32];
	uint64_t seq; /* of the next record; UINT64_MAX is never used */
};

/*
 * sb_aead_seal - encrypt @len bytes at @p in place; the tag follows, so @p has room for it
 * Return: 0; -EOVERFLOW when the sequence numbers are used up.
 */
SB_MUST_CHECK int sb_aead_seal(struct sb_aead *a, const void *ad, size_t ad_len, uint8_t *p,
			       size_t len);
/*
 * sb_aead_open - verify and decrypt in place; @len includes the tag
 * Return: 0 with len - SB_AEAD_TAG_LEN bytes of text at @p; -EBADMSG; -EOVERFLOW.
 */
SB_MUST_CHECK int sb_aead_open(struct sb_aead *a, const void *ad, size_t ad_len, uint8_t *p,
			       size_t len);
void sb_aead_done(struct sb_aead *a);

enum sb_noise_role {
	SB_NOISE_NONE = 0,
	SB_NOISE_INITIATOR = 1,
	SB_NOISE_RESPONDER = 2,
};

struct sb_noise {
	uint8_t role;  /* enum sb_noise_role */
	uint8_t step;  /* messages done, 0..2 */
	bool failed;   /* an error ended the handshake for good */
	bool has_key;
	uint8_t psk[SB_PSK_LEN];
	uint8_t e_sec[32];
	uint8_t e_pub[32];
	uint8_t peer[32]; /* the other side's ephemeral key */
	uint8_t ck[SB_NOISE_HASH_LEN];
	uint8_t h[SB_NOISE_HASH_LEN];
	struct sb_aead cipher;
};

/*
 * sb_noise_init - begin a handshake
 * @ephemeral: secret of the ephemeral key, for test vectors only; NULL = fresh and random
 */
void sb_noise_init(struct sb_noise *n, enum sb_noise_role role, const uint8_t psk[SB_PSK_LEN],
		   const void *prologue, size_t prologue_len, const uint8_t ephemeral[32]);
void sb_noise_done(struct sb_noise *n);

/*
 * sb_noise_write - make this side's message: @len bytes of payload + SB_NOISE_OVERHEAD at @out
 * Return: 0; -EPROTO out of turn or after a failure; -EMSGSIZE; -EBADMSG (peer's key is weak).
 */
SB_MUST_CHECK int sb_noise_write(struct sb_noise *n, const void *payload, size_t len,
				 uint8_t *out);
/*
 * sb_noise_read - take the peer's message; the payload (@len - SB_NOISE_OVERHEAD) goes to @payload
 * @len: SB_NOISE_OVERHEAD .. SB_NOISE_OVERHEAD + SB_NOISE_MAX_PAYLOAD
 * Return: 0; -EPROTO out of turn; -EMSGSIZE; -EBADMSG wrong key, prologue or bytes.
 */
SB_MUST_CHECK int sb_noise_read(struct sb_noise *n, const uint8_t *msg, size_t len,
				void *payload);
/* After both messages. @hash may be NULL. Return: 0; -EPROTO. */
SB_MUST_CHECK int sb_noise_split(struct sb_noise *n, struct sb_aead *tx, struct sb_aead *rx,
				 uint8_t hash[SB_NOISE_HASH_LEN]);

#endif
