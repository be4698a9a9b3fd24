#ifndef SB_HOST_CLI_ASKING_H
#define SB_HOST_CLI_ASKING_H
/* Approvals of a session that this process drives itself, at its own terminal: the session is held
 * back while a question shows. And the first command, before there is a session, and one more of another. */
#include "approvals.h"

struct run;
struct asking;

/* Return: 0, with *ret NULL when the plan never asks; -errno with text. */
SB_MUST_CHECK int asking_new(struct run *r, struct asking **ret, struct sb_err *err);
struct asking *asking_free(struct asking *k);
/* A message of the monitor. Return: whether it was about approvals. */
bool asking_message(struct asking *k, const struct sb_ipc_msg *msg);

/*
 * asking_command - a verdict of "ask" for a command that this process is about to start
 * @rule: text of the rule and its place; @terminal: whether somebody may be asked there
 * @cfg: or NULL; @env: variables that are passed with it, "NAME=VALUE" or "NAME"
 * Return: 0: allowed; -EACCES with text; -errno.
 */
SB_MUST_CHECK int asking_command(const struct sb_dirs *d, const struct sb_plan *plan,
				 const struct cfg *cfg, const char *rule, bool terminal,
				 const char *const *env, size_t n_env, struct sb_err *err);
/* The same for one more command in the running session of @session_dir, whose settings count: its holder
 * decides, and this terminal is one that may answer. */
SB_MUST_CHECK int asking_exec(int session_dir, const struct sb_plan *plan, const char *rule,
			      bool terminal, const char *const *env, size_t n_env, struct sb_err *err);
#define ASKING_TOO_LONG "command refused: a rule asks first, and the command is too long to ask about"
/* The answer to the monitor's request. */
void asking_answer(int sock, uint32_t source, uint64_t id, const struct sb_appr_result *res);

#endif
