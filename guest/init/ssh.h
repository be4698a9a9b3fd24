#ifndef SB_GUEST_INIT_SSH_H
#define SB_GUEST_INIT_SSH_H
/*
 * The socket of the SSH agent, SB_PLAN_SSH_SOCKET of the plan's user. What is behind it is the host's
 * SSH relay: who finds this socket gets what the workload gets.
 */
#include "base/err.h"
#include "core/plan.h"

/*
 * sb_init_ssh - make it, listening, for the workload's user alone; in the root that was entered
 * Return: 0; -errno with text.
 */
SB_MUST_CHECK int sb_init_ssh(const struct sb_plan *p, int *ret, struct sb_err *err);
/* Hand it to the SSH relay by its front socket. */
SB_MUST_CHECK int sb_init_ssh_give(int sock, int front, struct sb_err *err);

#endif
