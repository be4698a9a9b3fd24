#ifndef SB_HOST_CLI_CONF_CMD_H
#define SB_HOST_CLI_CONF_CMD_H
/* What the commands that look at the configuration without a session share. */
#include "conf_fail.h"
#include "conf_load.h"
#include "core/plan.h"

struct conf_cmd {
	struct run_options opt; /* config, no_config and project are used */
	const char *agent; /* the layer of this agent's definition, too; NULL = none */
	bool json;
	struct cli_dirs dirs;
	struct conf conf;
	struct sb_plan *plan; /* the policy alone; see conf_cmd_plan */
};

/* Load the configuration. Return: 0; else an exit status, told. conf_cmd_done in every case. */
SB_MUST_CHECK int conf_cmd_load(struct conf_cmd *c);
/* Make the rules of a plan from it. Return: 0; else an exit status, told. */
SB_MUST_CHECK int conf_cmd_plan(struct conf_cmd *c);
void conf_cmd_done(struct conf_cmd *c);
/* The file that the project's settings come from, or "". */
const char *conf_cmd_file(const struct conf_cmd *c);

/* Result of one policy test, or of `policy test`. */
struct policy_answer {
	const char *verdict; /* "allow", "deny", "log", "ask" */
	const char *why;     /* machine-readable */
	char rule[4200];     /* "" = the default */
	char from[600];      /* where the rule or the default is written */
	char text[1200];     /* the line for people */
	char note[200];      /* "" = none */
};
/* Ask the code of the gates. @target: NAME:PORT. Return: 0; -errno with text. */
SB_MUST_CHECK int policy_ask_command(const struct conf_cmd *c, const char *const *argv,
				     struct policy_answer *ret, struct sb_err *err);
SB_MUST_CHECK int policy_ask_connect(const struct conf_cmd *c, const char *target,
				     struct policy_answer *ret, struct sb_err *err);

/*
 * policy_tests_run - the entries of policy_tests
 * @list: NULL, or an array that gets an object for each
 * @ret_failed: how many did not come out as expected; told on stderr unless @list
 * Return: how many there are; -errno with text.
 */
SB_MUST_CHECK int policy_tests_run(const struct conf_cmd *c, json_t *list, size_t *ret_failed,
				   struct sb_err *err);

#endif
