#ifndef SB_HOST_CLI_SELF_H
#define SB_HOST_CLI_SELF_H
/* Another command of this program, whose output is wanted. */
#include "base/err.h"

/*
 * self_lines - run `sendbox @argv...` and call @fn for each whole line that it prints
 * @argv: NULL-terminated, without the program's name
 * @fn: the line, NUL-terminated; non-zero ends it all, and is returned
 *
 * A line has at most 1 MiB. Return: its exit status (0 or more); what @fn returned (negative); -errno with
 * text.
 */
SB_MUST_CHECK int self_lines(const char *const *argv, int (*fn)(void *arg, char *line), void *arg,
			     struct sb_err *err);
/* Run it in the background: nothing is waited for, nothing printed. */
SB_MUST_CHECK int self_background(const char *const *argv, struct sb_err *err);

#endif
