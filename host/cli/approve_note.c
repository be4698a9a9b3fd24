#include "approve_note.h"

#include <string.h>

#include "audit_note.h"

int approve_note_grant(const struct sb_dirs *d, const char *what, int64_t id,
		       const struct sb_appr_grant *g, const uint8_t session[16], struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_APPROVAL, .action = what };

	if (session)
		memcpy(e.session, session, sizeof(e.session));
	if (g) {
		e.subject = g->subject;
		e.rule = g->rule;
		sb_audit_put(&e, "kind", sb_appr_kind_name(g->kind));
		sb_audit_put_num(&e, "grant", (uint64_t)id);
		sb_audit_put_bool(&e, "pattern", g->pattern);
		sb_audit_put_num(&e, "expires", g->expires_s);
	}
	return audit_note(d, &e, 1, err);
}

int approve_note_answer(const struct sb_dirs *d, const uint8_t session[16], enum sb_appr_kind kind,
			const char *subject, const char *rule, const struct sb_appr_result *res,
			const char *by, struct sb_err *err)
{
	struct sb_audit_event e = {
		.kind = SB_AUDIT_APPROVAL,
		.verdict = res->verdict == SB_APPR_ALLOWED ? SB_AUDIT_ALLOW : SB_AUDIT_DENY,
		.action = "answer",
		.subject = subject,
		.rule = rule,
		.reason = sb_appr_reason_name(res->reason),
	};

	memcpy(e.session, session, sizeof(e.session));
	sb_audit_put(&e, "kind", sb_appr_kind_name(kind));
	sb_audit_put(&e, "by", by);
	sb_audit_put_num(&e, "question", res->question);
	if (res->grant > 0)
		sb_audit_put_num(&e, "grant", (uint64_t)res->grant);
	return audit_note(d, &e, 1, err);
}
