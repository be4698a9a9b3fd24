#include "store/merkle.h"

#include <string.h>

#include "crypto/crypto.h"

/* The records are short: the code of lib/crypto that uses the processor's instructions directly costs
 * a quarter of what a library's context does for each of them. */
void sb_merkle_leaf(const void *p, size_t len, uint8_t ret[SB_MERKLE_HASH])
{
	struct sb_sha256 s;

	sb_sha256_start(&s);
	sb_sha256_add(&s, "", 1);
	sb_sha256_add(&s, p, len);
	sb_sha256_end(&s, ret);
}

void sb_merkle_node(const uint8_t left[SB_MERKLE_HASH], const uint8_t right[SB_MERKLE_HASH],
		    uint8_t ret[SB_MERKLE_HASH])
{
	uint8_t both[1 + 2 * SB_MERKLE_HASH];
	struct sb_sha256 s;

	both[0] = 1;
	memcpy(both + 1, left, SB_MERKLE_HASH);
	memcpy(both + 1 + SB_MERKLE_HASH, right, SB_MERKLE_HASH);
	sb_sha256_start(&s);
	sb_sha256_add(&s, both, sizeof(both));
	sb_sha256_end(&s, ret);
}

size_t sb_merkle_peaks(uint64_t n)
{
	return (size_t)__builtin_popcountll(n);
}

void sb_merkle_add(struct sb_merkle *t, const uint8_t leaf[SB_MERKLE_HASH])
{
	size_t at = sb_merkle_peaks(t->n);
	uint8_t h[SB_MERKLE_HASH];

	memcpy(h, leaf, sizeof(h));
	for (uint64_t bit = t->n; (bit & 1) != 0; bit >>= 1)
		sb_merkle_node(t->peak[--at], h, h);
	sb_assert(at < SB_MERKLE_PEAKS && t->n < UINT64_MAX);
	memcpy(t->peak[at], h, sizeof(h));
	t->n++;
}

void sb_merkle_root(const struct sb_merkle *t, uint8_t ret[SB_MERKLE_HASH])
{
	size_t at = sb_merkle_peaks(t->n);

	if (at == 0) {
		sb_sha256("", 0, ret);
		return;
	}
	memcpy(ret, t->peak[--at], SB_MERKLE_HASH);
	while (at > 0)
		sb_merkle_node(t->peak[--at], ret, ret);
}

/* ---- proofs ---- */

/* The largest power of two below @n, which is at least 2. */
static uint64_t split(uint64_t n)
{
	return 1ULL << (63 - __builtin_clzll(n - 1));
}

/* The recursions of the RFC give their elements from the inside out. */
static size_t turn(struct sb_merkle_range *r, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct sb_merkle_range x = r[i];

		r[i] = r[n - 1 - i];
		r[n - 1 - i] = x;
	}
	return n;
}

size_t sb_merkle_path(uint64_t m, uint64_t n, struct sb_merkle_range ret[SB_MERKLE_PEAKS])
{
	uint64_t from = 0;
	uint64_t to = n;
	size_t k = 0;

	sb_assert(m < n);
	while (to - from > 1) {
		uint64_t mid = from + split(to - from);

		if (m < mid) {
			ret[k++] = (struct sb_merkle_range){ mid, to };
			to = mid;
		} else {
			ret[k++] = (struct sb_merkle_range){ from, mid };
			from = mid;
		}
	}
	return turn(ret, k);
}

size_t sb_merkle_growth(uint64_t m, uint64_t n, struct sb_merkle_range ret[SB_MERKLE_PEAKS])
{
	uint64_t from = 0;
	uint64_t to = n;
	size_t k = 0;

	sb_assert(m > 0 && m <= n);
	while (m != to) {
		uint64_t mid = from + split(to - from);

		if (m <= mid) {
			ret[k++] = (struct sb_merkle_range){ mid, to };
			to = mid;
		} else {
			ret[k++] = (struct sb_merkle_range){ from, mid };
			from = mid;
		}
	}
	if (from > 0) /* else it is the old tree itself, whose root is known */
		ret[k++] = (struct sb_merkle_range){ from, to };
	return turn(ret, k);
}

bool sb_merkle_has(const uint8_t leaf[SB_MERKLE_HASH], uint64_t m, uint64_t n,
		   const uint8_t root[SB_MERKLE_HASH], const uint8_t (*proof)[SB_MERKLE_HASH],
		   size_t n_proof)
{
	uint8_t h[SB_MERKLE_HASH];
	uint64_t sn;

	if (m >= n)
		return false;
	sn = n - 1;
	memcpy(h, leaf, sizeof(h));
	for (size_t i = 0; i < n_proof; i++) {
		if (sn == 0)
			return false;
		if ((m & 1) != 0 || m == sn) {
			sb_merkle_node(proof[i], h, h);
			while ((m & 1) == 0 && m != 0) {
				m >>= 1;
				sn >>= 1;
			}
		} else {
			sb_merkle_node(h, proof[i], h);
		}
		m >>= 1;
		sn >>= 1;
	}
	return sn == 0 && memcmp(h, root, sizeof(h)) == 0;
}

bool sb_merkle_grew(uint64_t m, const uint8_t old[SB_MERKLE_HASH], uint64_t n,
		    const uint8_t root[SB_MERKLE_HASH], const uint8_t (*proof)[SB_MERKLE_HASH],
		    size_t n_proof)
{
	const uint8_t *first = old;
	uint8_t fr[SB_MERKLE_HASH];
	uint8_t sr[SB_MERKLE_HASH];
	uint64_t fn = m - 1;
	uint64_t sn = n - 1;
	size_t i = 0;

	if (m == 0 || m > n)
		return false;
	if (m == n)
		return n_proof == 0 && memcmp(old, root, SB_MERKLE_HASH) == 0;
	while ((fn & 1) != 0) {
		fn >>= 1;
		sn >>= 1;
	}
	if ((m & (m - 1)) != 0) {
		if (n_proof == 0)
			return false;
		first = proof[i++];
	}
	memcpy(fr, first, sizeof(fr));
	memcpy(sr, first, sizeof(sr));
	for (; i < n_proof; i++) {
		if (sn == 0)
			return false;
		if ((fn & 1) != 0 || fn == sn) {
			sb_merkle_node(proof[i], fr, fr);
			sb_merkle_node(proof[i], sr, sr);
			while ((fn & 1) == 0 && fn != 0) {
				fn >>= 1;
				sn >>= 1;
			}
		} else {
			sb_merkle_node(sr, proof[i], sr);
		}
		fn >>= 1;
		sn >>= 1;
	}
	return sn == 0 && memcmp(fr, old, sizeof(fr)) == 0 && memcmp(sr, root, sizeof(sr)) == 0;
}
