#ifndef SB_HOST_NET_HASH_H
#define SB_HOST_NET_HASH_H
/*
 * Keyed hash of names that a guest may choose: SipHash-1-3 (Aumasson, Bernstein), so that nobody
 * can make them collide on purpose.
 */
#include <string.h>

#include "base/mem.h"

static inline uint64_t hash_rotl(uint64_t v, int n)
{
	return v << n | v >> (64 - n);
}

static inline void hash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = hash_rotl(v[1], 13) ^ v[0];
	v[0] = hash_rotl(v[0], 32);
	v[2] += v[3];
	v[3] = hash_rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = hash_rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = hash_rotl(v[1], 17) ^ v[2];
	v[2] = hash_rotl(v[2], 32);
}

static inline uint64_t hash_name(const uint64_t key[2], const char *s)
{
	size_t len = strlen(s);
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU,
			  key[0] ^ 0x6c7967656e657261U, key[1] ^ 0x7465646279746573U };
	uint64_t last = (uint64_t)len << 56;
	uint64_t m;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&m, s + i, 8);
		v[3] ^= m;
		hash_round(v);
		v[0] ^= m;
	}
	for (size_t k = 0; i + k < len; k++)
		last |= (uint64_t)(uint8_t)s[i + k] << (8 * k);
	v[3] ^= last;
	hash_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int k = 0; k < 3; k++)
		hash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
