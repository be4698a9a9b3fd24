#ifndef SB_CORE_PLAN_I_H
#define SB_CORE_PLAN_I_H
/* The nested parts of a plan: what it was compiled from, features, guards, limits. */
#include "core/json_i.h"
#include "core/plan.h"

/* Set their keys in @o. Return: 0; -ENOMEM (also for what cannot be written). */
SB_MUST_CHECK int sb_plan_parts_add(json_t *o, const struct sb_plan *p);
/* Return: 0; -EBADMSG; -ENOMEM. What was read is in @p, also on failure. */
SB_MUST_CHECK int sb_plan_parts_get(const json_t *o, struct sb_plan *p, struct sb_err *err);
void sb_plan_parts_done(struct sb_plan *p);

/* plan_root.c: layers, upper, instance, task, builder; as above */
SB_MUST_CHECK int sb_plan_root_add(json_t *o, const struct sb_plan *p);
SB_MUST_CHECK int sb_plan_root_get(const json_t *o, struct sb_plan *p, struct sb_err *err);
void sb_plan_root_done(struct sb_plan *p);
SB_MUST_CHECK int sb_plan_root_check(const struct sb_plan *p, struct sb_err *err);

/* plan_ssh.c: the plan's "ssh" object. NULL: out of memory. */
json_t *sb_plan_ssh_json(const struct sb_plan_ssh *s);
SB_MUST_CHECK int sb_plan_ssh_json_get(const json_t *o, struct sb_plan_ssh *ret,
				       struct sb_err *err);

/* plan_check_parts.c; @err is set. Return: 0; -EINVAL. */
SB_MUST_CHECK int sb_plan_parts_check(const struct sb_plan *p, struct sb_err *err);
/* Profile, limits, guards, commands. */
SB_MUST_CHECK int sb_plan_confinement_check(const struct sb_plan *p, struct sb_err *err);
/* Absolute, normalised, bounded, no control characters. */
SB_MUST_CHECK int sb_plan_check_path(const char *what, const char *path, struct sb_err *err);
SB_MUST_CHECK int sb_plan_refuse(struct sb_err *err, const char *what, const char *value,
				 const char *rule);

#endif
