#ifndef SB_CORE_CMD_JSON_H
#define SB_CORE_CMD_JSON_H
/* The plan's "commands" object, in the manner of json_i.h. */
#include "core/cmd_policy.h"
#include "core/json_i.h"

/* Return: NULL when out of memory, or for what sb_plan_commands_check refuses. */
json_t *sb_cmd_json(const struct sb_plan_commands *c);
/* Fill the zeroed @ret from @o's @key; on failure what was read remains in it, for
 * sb_plan_commands_done. Return: 0; -EBADMSG; -ENOMEM. */
SB_MUST_CHECK int sb_cmd_json_get(const json_t *o, const char *key, struct sb_plan_commands *ret,
				  struct sb_err *err);

#endif
