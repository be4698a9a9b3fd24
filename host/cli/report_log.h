#ifndef SB_HOST_CLI_REPORT_LOG_H
#define SB_HOST_CLI_REPORT_LOG_H
/* The records of one session. */
#include "report.h"

/* Hand every record of @s to @r, and the last signed head. Return: 0; -errno with text. */
SB_MUST_CHECK int report_log(const struct cli_dirs *d, const struct session_record *s, struct report *r,
			     struct sb_err *err);

#endif
