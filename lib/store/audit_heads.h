#ifndef SB_STORE_AUDIT_HEADS_H
#define SB_STORE_AUDIT_HEADS_H
/*
 * Many signed heads, one behind the other: the file "heads" of a log, which says when what was signed,
 * and those that a user keeps elsewhere. Whatever is no head of the key is passed over.
 *
 * "heads" is history that nothing depends on, so it is thinned: of the older half of its heads every second
 * one is left out when there are SB_AUDIT_HEADS_KEEP of them, or SB_AUDIT_HEADS_BYTES. The first and the newest ones
 * stay, and the older, the wider apart. A file of any size is read in bounded memory.
 */
#include "base/err.h"
#include "store/audit_head.h"

#define SB_AUDIT_HEADS_KEEP 2048
#define SB_AUDIT_HEADS_BYTES (512U << 10)
#define SB_AUDIT_HEADS_MAX (1U << 20) /* of those that a user keeps: 40 MiB */

struct sb_audit_heads {
	struct sb_audit_head *list; /* owned */
	size_t n;
	size_t room;
};
void sb_audit_heads_done(struct sb_audit_heads *h);
#define sb_autoheads SB_CLEANUP(sb_audit_heads_done)

/*
 * sb_audit_heads_parse - the heads in a piece of text, added to @h
 * @last: nothing follows; else what may be the beginning of a head is left
 * @thin: more than SB_AUDIT_HEADS_KEEP are thinned; else more than SB_AUDIT_HEADS_MAX are -E2BIG
 * Return: 0 with the bytes used; -ENOMEM; -E2BIG.
 */
SB_MUST_CHECK int sb_audit_heads_parse(struct sb_audit_heads *h, const char *text, size_t len, bool last,
				       bool thin, const uint8_t pub[32], size_t *ret_used);
/* Those of a file, as above. Return: 0; -errno. */
SB_MUST_CHECK int sb_audit_heads_read(struct sb_audit_heads *h, int dir, const char *path, bool thin,
				      const uint8_t pub[32]);
void sb_audit_heads_sort(struct sb_audit_heads *h); /* by size */

/* One more in "heads" of a log, whose lock is held; what is too long is thinned. Return: 0; -errno. */
SB_MUST_CHECK int sb_audit_heads_add(int dir, const char *text, size_t len);

#endif
