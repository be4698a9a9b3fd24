#ifndef SB_HOST_CLI_CMD_JUDGE_H
#define SB_HOST_CLI_CMD_JUDGE_H
/*
 * The command policy of a plan asked on the host: before a session starts, and by `policy test`.
 * It looks at the image and the shared folders as the guest will see them and decides with the code
 * that the guest uses. The guest's own decision is the one that counts.
 */
#include "config/config.h"
#include "conn/cmd_image.h"
#include "core/plan.h"
#include "provider/provider.h"

struct cmd_judge {
	const struct sb_plan *plan; /* borrowed */
	struct sb_cmd_image image;
	struct sb_cmd_files files; /* of the image, or with programs that it lacks */
	struct sb_cmdpol *pol;     /* NULL: the plan has no command policy */
	int root;                  /* owned */
};
struct cmd_answer {
	struct sb_cmd_verdict verdict;
	bool found;                     /* the program is there */
	char path[SB_CMD_PATH_MAX];     /* as it was judged; "" = not found */
	char text[1200];                /* the line for people */
};

/*
 * cmd_judge_open - compile the policy of @plan
 * @imagine: a program that the image lacks is judged as /usr/bin/NAME, so that a test of the rules
 *           does not depend on what is installed
 * @j must not move. Return: 0; -errno with text.
 */
SB_MUST_CHECK int cmd_judge_open(struct cmd_judge *j, const struct sb_plan *plan, bool imagine,
				 struct sb_err *err);
void cmd_judge_close(struct cmd_judge *j);
/* Decide on a command as `run` would start it. @argv: NULL-terminated. Return: 0; -errno. */
SB_MUST_CHECK int cmd_judge_decide(const struct cmd_judge *j, const char *const *argv,
				   struct cmd_answer *ret, struct sb_err *err);

/*
 * cmd_judge_start - may the plan's own command start?
 * For an "ask" rule: what was granted or denied before, the hook of @cfg (or NULL), the terminal when
 * @terminal; nobody there = refused. A refusal is on record.
 * @env: variables that are passed with it, "NAME=VALUE" or "NAME"
 * @session_dir: of the running session that it is one more command of, which decides then; -1 = none
 * Return: 0; -EACCES with text: refused; -errno.
 */
SB_MUST_CHECK int cmd_judge_start(const struct sb_dirs *d, const struct sb_plan *plan,
				  const struct cfg *cfg, bool terminal, int session_dir,
				  const char *const *env, size_t n_env, struct sb_err *err);

#endif
