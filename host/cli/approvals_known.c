/*
 * Records of what is decided without a question. A command: each. A connection or a signature has a record
 * of its own each time, by its gate; there what a grant or a deny rule of the store decided is recorded at the
 * first time for its subject in this session, so that what a program repeats does not cost a process each time.
 */
#include <string.h>

#include "approvals_i.h"
#include "approve_note.h"
#include "base/log.h"
#include "crypto/crypto.h"

static uint64_t mark_of(const struct asked *who, const struct sb_appr_result *res)
{
	const uint64_t head[3] = { (uint64_t)res->grant, who->kind, res->verdict };
	struct sb_sha256 sha;
	uint8_t sum[32];
	uint64_t mark;

	sb_sha256_start(&sha);
	sb_sha256_add(&sha, head, sizeof(head));
	sb_sha256_add(&sha, who->subject, strlen(who->subject));
	sb_sha256_end(&sha, sum);
	memcpy(&mark, sum, sizeof(mark));
	return mark;
}

static bool noted(struct approvals *a, uint64_t mark)
{
	for (size_t i = 0; i < SB_MIN(a->n_noted, (size_t)APPROVALS_NOTED); i++)
		if (a->noted[i] == mark)
			return true;
	return false;
}

void approvals_known(struct approvals *a, const struct asked *who, struct sb_appr_result *res)
{
	const char *by = res->reason == SB_APPR_GRANT ? "grant"
			 : res->reason == SB_APPR_DENY_RULE ? "deny rule" : "nobody";
	bool each = who->source == APPROVALS_FROM_COMMAND;
	uint64_t mark = mark_of(who, res);
	const struct approve_answer ans = { .session = a->session, .kind = who->kind, .subject = who->subject,
					    .rule = who->rule, .res = res, .by = by,
					    .scope = res->grant > 0 ? "forever" : res->left_by > 0 ? "session" : NULL,
					    .pattern = res->pattern };
	struct sb_err err = { 0 };

	if (!each && (res->grant == 0 || noted(a, mark)))
		return;
	if (approve_note_answer(a->d, &ans, &err) == 0) {
		if (!each)
			a->noted[a->n_noted++ % APPROVALS_NOTED] = mark;
		return;
	}
	sb_log("the audit log does not take the decision: %s", err.text);
	if (res->verdict == SB_APPR_ALLOWED)
		*res = (struct sb_appr_result){ .reason = SB_APPR_UNRECORDED };
}
