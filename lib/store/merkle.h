#ifndef SB_STORE_MERKLE_H
#define SB_STORE_MERKLE_H
/*
 * The tree of RFC 6962 with SHA-256: root, growth, proofs. Only the roots of the complete subtrees
 * are kept (at most 64), so a tree of any size costs 2 KiB. Embedded in its owner; no allocation.
 */
#include "base/mem.h"

#define SB_MERKLE_HASH 32
#define SB_MERKLE_PEAKS 64

struct sb_merkle {
	uint64_t n; /* leaves */
	uint8_t peak[SB_MERKLE_PEAKS][SB_MERKLE_HASH]; /* from the left: one for each bit of n */
};

/* SHA-256(0x00 || @p), SHA-256(0x01 || @left || @right) */
void sb_merkle_leaf(const void *p, size_t len, uint8_t ret[SB_MERKLE_HASH]);
void sb_merkle_node(const uint8_t left[SB_MERKLE_HASH], const uint8_t right[SB_MERKLE_HASH],
		    uint8_t ret[SB_MERKLE_HASH]);
void sb_merkle_add(struct sb_merkle *t, const uint8_t leaf[SB_MERKLE_HASH]);
void sb_merkle_root(const struct sb_merkle *t, uint8_t ret[SB_MERKLE_HASH]);
size_t sb_merkle_peaks(uint64_t n); /* how many a tree of @n leaves has */

/* Leaves from..to-1, whose root is one element of a proof. */
struct sb_merkle_range {
	uint64_t from;
	uint64_t to;
};
/* RFC 6962, 2.1.1: elements of the proof that leaf @m is in the tree of @n leaves, m < n; in order.
 * Return: their number. */
size_t sb_merkle_path(uint64_t m, uint64_t n, struct sb_merkle_range ret[SB_MERKLE_PEAKS]);
/* RFC 6962, 2.1.2: that the tree of @m leaves is the beginning of that of @n, 0 < m <= n. */
size_t sb_merkle_growth(uint64_t m, uint64_t n, struct sb_merkle_range ret[SB_MERKLE_PEAKS]);

/* RFC 9162, 2.1.3.2 and 2.1.4.2. Return: whether the proof proves it. */
SB_MUST_CHECK bool sb_merkle_has(const uint8_t leaf[SB_MERKLE_HASH], uint64_t m, uint64_t n,
				 const uint8_t root[SB_MERKLE_HASH],
				 const uint8_t (*proof)[SB_MERKLE_HASH], size_t n_proof);
SB_MUST_CHECK bool sb_merkle_grew(uint64_t m, const uint8_t old[SB_MERKLE_HASH], uint64_t n,
				  const uint8_t root[SB_MERKLE_HASH],
				  const uint8_t (*proof)[SB_MERKLE_HASH], size_t n_proof);

#endif
