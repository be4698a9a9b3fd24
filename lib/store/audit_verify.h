#ifndef SB_STORE_AUDIT_VERIFY_H
#define SB_STORE_AUDIT_VERIFY_H
/*
 * Whether a log is the one that its heads were signed for, and proofs from it. Needs the segments and
 * the heads, nothing of this host.
 */
#include "store/audit_read.h"

struct sb_audit_report {
	bool good;
	uint64_t first;  /* number of the first record that is kept */
	uint64_t n;      /* records so far, those that are gone included */
	uint8_t root[SB_MERKLE_HASH];
	size_t rest;     /* bytes of a record that is not whole yet */
	uint64_t bad;    /* not good: number of the first bad record ... */
	uint64_t bad_from; /* ... unless all from this one on were written anew */
	uint64_t good_n; /* the largest head that fits */
	char file[SB_AUDIT_FILE_NAME_ROOM]; /* and where it stands, or should */
	uint64_t offset;
	char text[256];  /* what is wrong with it */
};
/*
 * sb_audit_verify - read the whole log and compare it with @heads
 * @heads: ascending by size
 * @from: records before this one may be gone; 0: all have to be there
 * Return: 0: see @ret; -errno with text: it could not be read.
 */
SB_MUST_CHECK int sb_audit_verify(int dir, const struct sb_audit_head *heads, size_t n_heads,
				  uint64_t from, struct sb_audit_report *ret, struct sb_err *err);

/*
 * sb_audit_hashes - roots of ranges of records, for a proof in the tree of @n records
 * @leaf: with record @m's leaf hash; NULL: not wanted. @line: @m's line, malloc'd; may be NULL
 * Return: 0; -ENODATA: pruned, or there are fewer; -EBADMSG; -errno; with text.
 */
SB_MUST_CHECK int sb_audit_hashes(int dir, uint64_t n, const struct sb_merkle_range *ranges,
				  size_t n_ranges, uint8_t (*ret)[SB_MERKLE_HASH], uint64_t m,
				  uint8_t *leaf, char **line, struct sb_err *err);

#endif
