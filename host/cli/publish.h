#ifndef SB_HOST_CLI_PUBLISH_H
#define SB_HOST_CLI_PUBLISH_H
/*
 * The signed head of the audit log, given to a place that this log cannot be put back in together with:
 * audit.publish of the user's own configuration, at the end of each session.
 */
#include "config/config.h"
#include "provider/provider.h"

/* Append it to a file. Return: 0; -errno with text. */
SB_MUST_CHECK int publish_append(const char *path, const char *text, size_t len, struct sb_err *err);
/* Give it to a program on standard input, which has 30 seconds. Return: 0; -errno with text. */
SB_MUST_CHECK int publish_feed(const char *const *argv, const char *text, size_t len, struct sb_err *err);

/*
 * publish_head - to every place of audit.publish; after the session's last record
 * What fails is told by @say and recorded with @session; the other places get it all the same.
 */
void publish_head(const struct sb_dirs *d, const struct cfg *cfg, const uint8_t session[16],
		  void (*say)(void *arg, const char *text), void *arg);

#endif
