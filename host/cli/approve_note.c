#include "approve_note.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "audit_note.h"
#include "base/buf.h"
#include "plan_make.h"

static void put_answer(struct sb_audit_event *e, const struct approve_answer *a, int64_t grant)
{
	*e = (struct sb_audit_event){
		.kind = SB_AUDIT_APPROVAL,
		.verdict = a->res->verdict == SB_APPR_ALLOWED ? SB_AUDIT_ALLOW : SB_AUDIT_DENY,
		.action = "answer",
		.subject = a->subject,
		.rule = a->rule,
		.reason = sb_appr_reason_name(a->res->reason),
	};
	memcpy(e->session, a->session, sizeof(e->session));
	sb_audit_put(e, "kind", sb_appr_kind_name(a->kind));
	sb_audit_put(e, "by", a->by);
	sb_audit_put(e, "scope", a->scope);
	if (a->pattern && a->pattern[0])
		sb_audit_put(e, "pattern", a->pattern);
	if (a->res->question > 0 || a->res->left_by > 0)
		sb_audit_put_num(e, "question", a->res->question > 0 ? a->res->question : a->res->left_by);
	if (grant > 0)
		sb_audit_put_num(e, "grant", (uint64_t)grant);
}

int approve_note_grant(const struct sb_dirs *d, const char *what, int64_t id,
		       const struct sb_appr_grant *g, const struct approve_answer *ans, struct sb_err *err)
{
	struct sb_audit_event e[2] = { { 0 } };
	struct sb_audit_event *own = &e[ans != NULL];

	*own = (struct sb_audit_event){ .kind = SB_AUDIT_APPROVAL, .action = what };
	if (ans) {
		put_answer(&e[0], ans, id);
		memcpy(own->session, ans->session, sizeof(own->session));
	}
	if (g) {
		own->subject = g->subject;
		own->rule = g->rule;
		sb_audit_put(own, "kind", sb_appr_kind_name(g->kind));
		sb_audit_put_num(own, "grant", (uint64_t)id);
		sb_audit_put_bool(own, "pattern", g->pattern);
		sb_audit_put_num(own, "expires", g->expires_s);
	}
	return audit_note(d, e, ans ? 2 : 1, err);
}

int approve_note_answer(const struct sb_dirs *d, const struct approve_answer *ans, struct sb_err *err)
{
	struct sb_audit_event e;

	put_answer(&e, ans, ans->res->grant);
	return audit_note(d, &e, 1, err);
}

int command_refused(const struct sb_dirs *d, const struct sb_plan *plan, bool joins, const char *rule,
		    const char *reason, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_COMMAND,
				    .action = "start",
				    .verdict = SB_AUDIT_DENY,
				    .subject = plan->argv[0],
				    .rule = rule,
				    .reason = reason };
	struct sb_err why = { 0 };
	sb_autobuf struct sb_buf words;
	char text[SB_ERR_TEXT_MAX];

	sb_buf_init(&words, SB_AUDIT_PACK_MAX); /* what is longer is cut there, too */
	for (char *const *a = plan->argv; *a && !sb_buf_error(&words); a++)
		sb_buf_add(&words, *a, strlen(*a) + 1);
	if (joins)
		memcpy(e.session, plan->session, sizeof(e.session));
	if (words.len > 0)
		sb_audit_put_list(&e, "argv", (const char *)words.data, words.len);
	sb_audit_put(&e, "instance", plan->instance);
	sb_audit_put(&e, "project", plan_project_host(plan));
	if (audit_note(d, &e, 1, &why) < 0) {
		(void)snprintf(text, sizeof(text), "%s", err->text);
		*err = (struct sb_err){ 0 };
		(void)sb_err_set(err, -EACCES, "%.330s; and that could not be recorded: %.130s", text,
				 strncmp(why.text, AUDIT_NOTE_REFUSED, strlen(AUDIT_NOTE_REFUSED)) == 0
					 ? why.text + strlen(AUDIT_NOTE_REFUSED) : why.text);
	}
	return -EACCES;
}
