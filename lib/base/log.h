#ifndef SB_BASE_LOG_H
#define SB_BASE_LOG_H
/*
 * One log line on descriptor 2: "<program>: <text>". Control bytes and non-ASCII in the text are
 * escaped, so untrusted text cannot steer a terminal. For main.c and duty files of programs;
 * libraries log at debug level only.
 */
#include "base/mem.h"

void sb_log_init(const char *program); /* borrowed for ever; debug on when SENDBOX_DEBUG=1 */
void sb_log_set_debug(bool on);
bool sb_log_debug_on(void);
void sb_log(const char *fmt, ...) SB_PRINTF(1, 2);
void sb_debug(const char *fmt, ...) SB_PRINTF(1, 2);

#endif
