#ifndef SB_HOST_CLI_REMEMBER_H
#define SB_HOST_CLI_REMEMBER_H
/* The row of a session in state.db (state/session_record.h), as the one who drives it writes it. */
#include "base/err.h"

struct run;

/* While the guest starts. Without it nothing goes on. Return: 0; -errno with text. */
SB_MUST_CHECK int remember_begin(struct run *r, struct sb_err *err);
/* How it ended, if there is a row; what fails is told by launch_say. */
void remember_end(struct run *r);

#endif
