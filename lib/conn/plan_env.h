#ifndef SB_CONN_PLAN_ENV_H
#define SB_CONN_PLAN_ENV_H
/*
 * The environment of a plan. Its names and the SHA-256 of each value are in the plan's bytes; the
 * values travel beside it as a block (each value and a NUL, in the plan's order) and are held in
 * memory only, wiped when the plan is released. The digest of a short or guessable value gives the
 * value away: the environment is no place for secrets.
 */
#include "core/plan.h"
#include "crypto/crypto.h"

/*
 * sb_plan_env_set - set variable @name (@name_len bytes) to @value; replaces an earlier value
 * Return: 0; -E2BIG: more than SB_PLAN_MAX_ARGS; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_env_set(struct sb_plan *p, const char *name, size_t name_len,
				  const char *value);

/*
 * sb_plan_env_pack - the block of all values
 * @ret: malloc'd, caller wipes and frees; not NULL also when it is empty
 * Return: 0; -E2BIG: larger than SB_PLAN_MAX_ARG_BYTES; -EINVAL: a value is missing; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_env_pack(const struct sb_plan *p, uint8_t **ret, size_t *ret_len);

/*
 * sb_plan_env_fill - take the values from a block after checking each digest
 * @p: as parsed, without values; unchanged on failure
 * Return: 0; -EKEYREJECTED: a value is not the one of the plan; -EBADMSG: malformed; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_env_fill(struct sb_plan *p, const uint8_t *block, size_t len,
				   struct sb_err *err);

/*
 * sb_plan_env_vector - "NAME=value" strings and NULL, in one allocation of @ret_len bytes
 * @ret: malloc'd, caller wipes and frees. Values that are not there are left out.
 */
SB_MUST_CHECK int sb_plan_env_vector(const struct sb_plan *p, char ***ret, size_t *ret_len);

/* Wipe and forget the values; the plan's bytes stay the same. */
void sb_plan_env_wipe(struct sb_plan *p);

#endif
