#ifndef SB_HOST_CLI_RUN_SNAPS_H
#define SB_HOST_CLI_RUN_SNAPS_H
/*
 * Snapshots of one session: one of each folder that is shared read-write before the command runs, one
 * when it has ended. The first is taken beside the start of the guest; the monitor holds the command
 * until it is there (SB_IPC_GO). One sendbox-snapshot lasts as long as the session.
 */
#include "base/err.h"

struct run;

/* Before anything starts: that no setting takes away what the review of guarded paths needs.
 * Return: 0; -EINVAL with the text. */
SB_MUST_CHECK int run_snaps_check(const struct run *r, struct sb_err *err);
/* Whether this session has any. */
bool run_snaps_wanted(const struct run *r);
/* After START was sent. The command may run when it has answered; if it fails the session ends.
 * Return: 0; -errno with the text. */
SB_MUST_CHECK int run_snaps_begin(struct run *r, struct sb_err *err);
/* After the session: the second ones, the guarded paths, the ids into the session's record. What
 * fails is told; the session's result stays what it is. */
void run_snaps_end(struct run *r);

#endif
