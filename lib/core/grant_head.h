#ifndef SB_CORE_GRANT_HEAD_H
#define SB_CORE_GRANT_HEAD_H
/*
 * The head of the grants in the state database: which generation of them counts, and its digest.
 * A signed file beside the database, so that an old database, or rows that nobody granted, are seen:
 *
 *     sendbox-grants-head-v1
 *     GENERATION SHA256
 *     [GENERATION + 1 SHA256]      a change is under way: either counts until it is done
 *     key PUBLIC-KEY
 *     sig SIGNATURE                Ed25519 over all before this line
 */
#include "core/approval.h"

#define SB_GRANT_HEAD_MAX 512

struct sb_grant_state {
	uint64_t generation;
	uint8_t sha256[32];
};
struct sb_grant_head {
	struct sb_grant_state now;
	bool changing;
	struct sb_grant_state next;
	uint8_t key[32];
	uint8_t sig[64];
	size_t signed_len; /* of the bytes, from the first */
};

/* The bytes without the last line, which the caller signs. Return: their length. */
size_t sb_grant_head_signed(const struct sb_grant_head *h, char out[SB_GRANT_HEAD_MAX]);
/* All of them. Return: length. */
size_t sb_grant_head_write(const struct sb_grant_head *h, char out[SB_GRANT_HEAD_MAX]);
/* Return: 0; -EBADMSG: not exactly what sb_grant_head_write makes. The signature is not checked. */
SB_MUST_CHECK int sb_grant_head_parse(const char *bytes, size_t len, struct sb_grant_head *ret);
/* Whether rows of this state count. */
bool sb_grant_head_covers(const struct sb_grant_head *h, const struct sb_grant_state *s);

/* One line of what the digest is over; the lines of all rows in the order of their ids. */
#define SB_GRANT_LINE_MAX (SB_APPR_SUBJECT_MAX + SB_APPR_RULE_MAX + 256)
size_t sb_grant_line(const struct sb_appr_grant *g, char out[SB_GRANT_LINE_MAX]);

#endif
