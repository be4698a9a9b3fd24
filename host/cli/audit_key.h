#ifndef SB_HOST_CLI_AUDIT_KEY_H
#define SB_HOST_CLI_AUDIT_KEY_H
/*
 * Where the audit log and its key are: <state>/audit (mode 0700) and <state>/keys/audit.key (64
 * bytes, mode 0600). Both are made at first use.
 */
#include "provider/provider.h"

#define AUDIT_KEY_NAME "audit.key"

/* Descriptors for sendbox-auditd; @ret_pub may be NULL. Return: 0; -errno with text. */
SB_MUST_CHECK int audit_open(const struct sb_dirs *d, int *ret_dir, int *ret_key,
			     uint8_t ret_pub[32], struct sb_err *err);
/* The public key of this host's log. Return: 0; -ENOENT: there is none yet; -errno with text. */
SB_MUST_CHECK int audit_public(const struct sb_dirs *d, uint8_t ret[32], struct sb_err *err);

#endif
