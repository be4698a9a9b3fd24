#ifndef SB_HOST_CLI_APPROVALS_H
#define SB_HOST_CLI_APPROVALS_H
/*
 * The questions of one session: the state machine of core/approval.h with a clock, the store of
 * grants, the hook, the socket "approvals.sock" in the session's directory, and the terminal of
 * whoever holds the session. Lives in the process that the monitor knows as the command line.
 */
#include "config/config.h"
#include "core/approval.h"
#include "core/plan.h"
#include "os/loop.h"
#include "provider/provider.h"
#include "wire/ipc.h"

#define APPROVALS_SOCKET "approvals.sock"
#define APPROVALS_HOOK_WORDS 32
enum { APPROVALS_FROM_NET = 1, APPROVALS_FROM_SSH = 2, APPROVALS_FROM_COMMAND = 3 };

struct approvals_conf {
	struct sb_appr_conf appr;
	char *hook[APPROVALS_HOOK_WORDS + 1]; /* owned; NULL-terminated; none: no hook */
	uint64_t hook_ns;
};
/* @cfg: NULL = the defaults. Return: 0; -errno with text. */
SB_MUST_CHECK int approvals_conf_read(const struct cfg *cfg, struct approvals_conf *ret,
				      struct sb_err *err);
void approvals_conf_done(struct approvals_conf *c);

struct approvals_ui {
	/* Whether somebody sits at the session's terminal. */
	bool (*present)(void *arg);
	/* Show that question there, and no other, until hide. Return: 0; -errno: he cannot be asked. */
	int (*show)(void *arg, const struct sb_ipc_appr_question *q);
	void (*hide)(void *arg, uint64_t number);
	/* A request is decided. */
	void (*decided)(void *arg, uint32_t source, uint64_t id, const struct sb_appr_result *res);
	void *arg;
};

struct approvals;
/* Whether the plan has anything that asks. */
bool approvals_wanted(const struct sb_plan *p);
/* What all sessions with the same rules have in common, and only they: the plan but for its session,
 * its times, the command, the terminal, the environment, and what is written to: instance, disk, quotas. Return: 0; -errno with text. */
SB_MUST_CHECK int approvals_policy(const struct sb_plan *p, uint8_t ret[32], struct sb_err *err);
/*
 * approvals_new - @plan: copied as far as needed; @plan_sha256: digest of its bytes
 * @c: taken; @session_dir: for the socket; -1 = none
 */
SB_MUST_CHECK int approvals_new(struct sb_loop *loop, const struct sb_dirs *d,
				const struct sb_plan *plan, const uint8_t plan_sha256[32],
				int session_dir, struct approvals_conf *c,
				const struct approvals_ui *ui, struct approvals **ret,
				struct sb_err *err);
struct approvals *approvals_free(struct approvals *a); /* open questions are refused first */

/* The answer comes by decided(), perhaps before this returns. */
void approvals_ask(struct approvals *a, uint32_t source, uint64_t id, enum sb_appr_kind kind,
		   const char *subject, const char *rule);
/* Who asked does not wait any more. */
void approvals_gone(struct approvals *a, uint32_t source, uint64_t id);
/* The same from the monitor. */
void approvals_message(struct approvals *a, const struct sb_ipc_msg *msg);
/* Somebody's answer. @by: "terminal", "hook", "command line"; static. Return: 0; -errno with text. */
SB_MUST_CHECK int approvals_answer(struct approvals *a, uint64_t number, enum sb_appr_answer answer,
				   const char *pattern, const char *by, struct sb_err *err);
/* Nobody sits at the terminal any more, or somebody does now. */
void approvals_terminal(struct approvals *a, bool there);

/*
 * The refusal of a command: what, by which rule and where that is, why, what to do.
 * @rule: its text and place; @remedy: NULL = that of the reason
 * Return: -EACCES
 */
int approvals_refused(const struct sb_appr_result *res, const char *subject, const char *rule, const char *remedy,
		      struct sb_err *err);
/*
 * A command as a subject: NAME=\? for each variable that is passed with it (--env), by name, and its words, with
 * one blank between, other bytes as \xNN. No word looks like the first ones.
 * @env: "NAME=VALUE" or "NAME". Return: 0; -E2BIG; -ENOMEM.
 */
SB_MUST_CHECK int approvals_words(const char *const *argv, const char *const *env, size_t n_env,
				  char out[SB_APPR_SUBJECT_MAX + 1]);
/* Any text as printable ASCII of at most @cap - 1 bytes. */
void approvals_escape(const char *in, char *out, size_t cap);

#endif
