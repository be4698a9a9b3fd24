#ifndef SB_HOST_CLI_APPROVE_NOTE_H
#define SB_HOST_CLI_APPROVE_NOTE_H
/* Records of approvals, and of refused commands, in the audit log. Whoever calls does nothing before it is
 * written. */
#include "core/approval.h"
#include "core/plan.h"
#include "provider/provider.h"

/* How a request was decided: a question (and by whose answer), or what was known before. All borrowed. */
struct approve_answer {
	const uint8_t *session; /* 16 bytes */
	enum sb_appr_kind kind;
	const char *subject;
	const char *rule;
	const struct sb_appr_result *res;
	const char *by;
	const char *scope;   /* "once", "session", "forever": of the answer, or of the grant that decided; NULL */
	const char *pattern; /* of either; NULL or "" = exactly the subject */
};
SB_MUST_CHECK int approve_note_answer(const struct sb_dirs *d, const struct approve_answer *ans,
				      struct sb_err *err);
/* @what: "grant", "deny-rule", "revoke", "revoke-all"; @g: NULL with the last; @ans: that left it, recorded before
 * it, or NULL */
SB_MUST_CHECK int approve_note_grant(const struct sb_dirs *d, const char *what, int64_t id,
				     const struct sb_appr_grant *g, const struct approve_answer *ans,
				     struct sb_err *err);
/*
 * command_refused - the refusal in @err of the command of @plan, on record
 * @joins: it was to run in the session of @plan (exec); else there is no session
 * What cannot be recorded is refused all the same, and @err says both.
 * Return: -EACCES
 */
int command_refused(const struct sb_dirs *d, const struct sb_plan *plan, bool joins, const char *rule,
		    const char *reason, struct sb_err *err);

#endif
