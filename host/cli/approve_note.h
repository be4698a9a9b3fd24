#ifndef SB_HOST_CLI_APPROVE_NOTE_H
#define SB_HOST_CLI_APPROVE_NOTE_H
/* Records of approvals in the audit log. Whoever calls does nothing before it is written. */
#include "core/approval.h"
#include "provider/provider.h"

/* @what: "grant", "deny-rule", "revoke", "revoke-all"; @g: NULL with the last; @session: or NULL */
SB_MUST_CHECK int approve_note_grant(const struct sb_dirs *d, const char *what, int64_t id,
				     const struct sb_appr_grant *g, const uint8_t session[16],
				     struct sb_err *err);
/* How a question ended, and by whose answer. */
SB_MUST_CHECK int approve_note_answer(const struct sb_dirs *d, const uint8_t session[16],
				      enum sb_appr_kind kind, const char *subject, const char *rule,
				      const struct sb_appr_result *res, const char *by,
				      struct sb_err *err);

#endif
