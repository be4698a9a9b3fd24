#ifndef SB_GUEST_EXEC_KIN_H
#define SB_GUEST_EXEC_KIN_H
/*
 * All descendants of one command where no cgroup tells: the command was born in a UTS namespace of
 * its own, descendants inherit it, and none can leave it (setns and unshare are refused). Found by
 * walking /proc, so several commands can run side by side and each can be ended whole.
 */
#include <sys/types.h>

#include "base/mem.h"

struct sb_kin {
	uint64_t dev; /* identity of the namespace; ino 0 = unknown */
	uint64_t ino;
};

/* Note the namespace of @pid, a live child. */
void sb_kin_init(struct sb_kin *k, pid_t pid);
/*
 * Whether the caller has a child that is none of the @n in @known: an orphan of some command, which
 * came to the caller as PID 1 or subreaper. Without any, no descendant of a reaped process lives.
 * True when the kernel does not tell.
 */
bool sb_kin_orphans(const pid_t *known, size_t n);

/* SIGKILL until a walk finds nobody alive. Bounds: 100 walks. */
void sb_kin_kill(const struct sb_kin *k);

#endif
