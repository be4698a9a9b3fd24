#ifndef SB_HOST_CLI_AUDIT_NOTE_H
#define SB_HOST_CLI_AUDIT_NOTE_H
/*
 * Records of what happens outside of a session: grants, undo, keys, trust in a policy. The caller
 * acts only after this has returned 0; otherwise it refuses the action with the text.
 */
#include "provider/provider.h"
#include "store/audit.h"

#define AUDIT_NOTE_REFUSED "refused, because it cannot be recorded: "
/*
 * audit_note - write @n events durably, all of them or none
 * Starts sendbox-auditd and waits for it (some ms). Blocks. Return: 0; -errno with text and remedy.
 */
SB_MUST_CHECK int audit_note(const struct sb_dirs *d, const struct sb_audit_event *e, size_t n,
			     struct sb_err *err);

#endif
