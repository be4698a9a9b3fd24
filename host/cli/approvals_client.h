#ifndef SB_HOST_CLI_APPROVALS_CLIENT_H
#define SB_HOST_CLI_APPROVALS_CLIENT_H
/* The other end of a session's approvals.sock. */
#include "approvals.h"

/* @dir: of the session. @ret: owned. Return: 0; -errno: it has no questions, or is gone. */
SB_MUST_CHECK int approvals_connect(int dir, int *ret);
/* Answer one. @ret: NULL, or how it was decided then. Return: 0; -errno with text. */
SB_MUST_CHECK int approvals_decide(int sock, uint64_t number, enum sb_appr_answer answer,
				   const char *pattern, struct sb_ipc_appr_closed *ret, struct sb_err *err);

#endif
