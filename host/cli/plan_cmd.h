#ifndef SB_HOST_CLI_PLAN_CMD_H
#define SB_HOST_CLI_PLAN_CMD_H
/* The command policy of a plan, from policy.commands. */
#include "core/cmd_policy.h"
#include "plan_conf.h"

/*
 * plan_commands_make - the rules of every layer
 * @project: guest path that "./" stands for; it is put in its place here
 * Return: 0; -EINVAL with text that names FILE:LINE; -ENOMEM.
 */
SB_MUST_CHECK int plan_commands_make(const struct plan_input *in, const char *project,
				     struct sb_plan_commands *ret, struct sb_err *err);

#endif
