#ifndef SB_HOST_CLI_TERM_H
#define SB_HOST_CLI_TERM_H
/* The user's terminal: raw mode while the command runs, restored on every kind of end. */
#include "base/mem.h"

/* Raw mode at once (typed-ahead bytes are kept). Return: 0; -errno. */
SB_MUST_CHECK int cli_term_raw(int fd);
/* Put the saved state back; safe to call at any time and twice. @abnormal: also leave the
 * alternate screen and switch off what full-screen programs switch on. */
void cli_term_restore(bool abnormal);
/* Rows and columns; 24 x 80 when the terminal does not know. */
void cli_term_size(int fd, uint16_t *rows, uint16_t *cols);

/* Whether somebody is there to ask: a terminal of this job in the foreground, shown on stderr. */
bool cli_term_can_ask(void);
/*
 * cli_term_ask - a yes-or-no question at the terminal itself, whatever stdin is
 * @question: printed as it is: the caller has escaped what is not its own
 * What was typed before the question does not count.
 * Return: 1 for "y" or "yes"; 0 for anything else; -ENOTTY: nobody to ask.
 */
SB_MUST_CHECK int cli_term_ask(const char *question);

#endif
