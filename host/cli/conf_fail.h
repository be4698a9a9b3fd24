#ifndef SB_HOST_CLI_CONF_FAIL_H
#define SB_HOST_CLI_CONF_FAIL_H
/* Failures of the commands about configuration: a line on stderr, or with --json one object on
 * stdout and nothing on stderr. */
#include <jansson.h>

#include "config/config.h"

/* Return: @status. @path: what it is about, "" = nothing. */
int conf_fail(bool json, int status, const char *code, const char *path, const char *fmt, ...)
	SB_PRINTF(5, 6);
/* The same with problems of files. */
int conf_fail_problems(bool json, int status, const struct problems *p);
/* A line of text on stdout; what is not printable ASCII is escaped (paths, words of a file). */
void conf_say(const char *fmt, ...) SB_PRINTF(1, 2);
/* Print @o (taken) as one line; NULL = no memory. Return: @status, or that of a failed write. */
int conf_print(json_t *o, int status);
/* The result of a command that wrote text to stdout. */
int conf_flush(int status);

#endif
