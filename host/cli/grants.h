#ifndef SB_HOST_CLI_GRANTS_H
#define SB_HOST_CLI_GRANTS_H
/*
 * What was said for ever: rows of the state database that count only together with their signed head
 * (core/grant_head.h) in <state>/keys/grants.head. An old database, rows that nobody granted, a head
 * of another key: then no grant counts, and every deny rule that is there still does. Each change is
 * recorded in the audit log first; if it cannot be, nothing is changed.
 */
#include "approve_note.h"
#include "core/approval.h"
#include "provider/provider.h"

struct grants {
	struct sb_appr_grant *g; /* owned; by id */
	size_t n;
	uint64_t generation;
	bool sound;     /* the head covers them */
	char why[300];  /* not sound: why, and the remedy */
};
void grants_done(struct grants *g);
#define sb_autogrants SB_CLEANUP(grants_done)

/* Return: 0, also when they are not sound; -errno with text. */
SB_MUST_CHECK int grants_load(const struct sb_dirs *d, struct grants *ret, struct sb_err *err);
/* @ans: the answer that says it; on record with it, before it is stored. Return: 0; -ESTALE: not sound; -errno with
 * text. */
SB_MUST_CHECK int grants_add(const struct sb_dirs *d, const struct sb_appr_grant *g,
			     const struct approve_answer *ans, int64_t *ret_id, struct sb_err *err);
/* One use less of a grant that counts them, as the store has it now; with the last it goes. Return: 0; -ENOENT: it is
 * not there, or was used up meanwhile; -errno with text. */
SB_MUST_CHECK int grants_use(const struct sb_dirs *d, int64_t id, struct sb_err *err);
/* @id 0: all, also when they are not sound: the head begins anew. @ret_n: how many went.
 * Return: 0; -ENOENT; -ESTALE; -errno with text. */
SB_MUST_CHECK int grants_revoke(const struct sb_dirs *d, int64_t id, size_t *ret_n,
				struct sb_err *err);

/* A new key of this host, as cli_keys_rotate; grants that were sound stay so. */
SB_MUST_CHECK int grants_rotate(const struct sb_dirs *d, bool floor, uint8_t ret[32],
				struct sb_err *err);

#endif
