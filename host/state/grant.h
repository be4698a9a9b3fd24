#ifndef SB_HOST_STATE_GRANT_H
#define SB_HOST_STATE_GRANT_H
/* Grants and deny rules in the state database. One change is grants_begin, what it consists of, and
 * grants_commit with the next generation. */
#include "core/approval.h"
#include "state.h"

SB_MUST_CHECK int grants_begin(struct state *s, struct sb_err *err);
SB_MUST_CHECK int grants_commit(struct state *s, uint64_t generation, struct sb_err *err);
void grants_rollback(struct state *s);
/* 0: there never was a change. */
SB_MUST_CHECK int grants_generation(struct state *s, uint64_t *ret, struct sb_err *err);
/* By id. Return: 0; -EBADMSG: a row that nobody of ours wrote; what @fn returned. */
SB_MUST_CHECK int grants_each(struct state *s, int (*fn)(void *arg, const struct sb_appr_grant *g),
			      void *arg, struct sb_err *err);
SB_MUST_CHECK int grants_insert(struct state *s, const struct sb_appr_grant *g, int64_t *ret_id,
				struct sb_err *err);
/* Never more than there were. */
SB_MUST_CHECK int grants_uses(struct state *s, int64_t id, uint32_t left, struct sb_err *err);
/* @id 0: all. @ret_n: rows that went */
SB_MUST_CHECK int grants_delete(struct state *s, int64_t id, size_t *ret_n, struct sb_err *err);

#endif
