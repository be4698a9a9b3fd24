#ifndef SB_GUEST_EXEC_LEAF_H
#define SB_GUEST_EXEC_LEAF_H
/*
 * The guest's own cgroup v2: limits for the whole workload on the directory that PID 1 delegates,
 * one leaf per command in it, by which a command is killed and told apart.
 */
#include "core/plan.h"

/*
 * sb_leaf_setup - enable controllers in @dir and limit the workload
 * Memory: what the guest has, less a reserve for the kernel and the supervisor. Processor time is
 * not limited here: the machine has as many processors as were asked for.
 * Return: 0; -errno with text.
 */
SB_MUST_CHECK int sb_leaf_setup(const char *dir, const struct sb_plan *plan, struct sb_err *err);

/* The limit of processes that is in force, as a line of READY's text: "pids=N". Return: 0; -errno. */
SB_MUST_CHECK int sb_leaf_pids(const char *dir, char *ret, size_t cap, struct sb_err *err);

/* Make "<dir>/cmd-<id>". @ret: its directory, CLOEXEC; caller closes. Return: 0; -errno. */
SB_MUST_CHECK int sb_leaf_new(const char *dir, uint32_t id, int *ret);
/* SIGKILL to everything in it, whatever forks meanwhile. Return: 0; -errno. */
SB_MUST_CHECK int sb_leaf_kill(int leaf);
/* Whether the OOM killer killed in it. */
bool sb_leaf_oom(int leaf);
bool sb_leaf_populated(int leaf);
/* Return: 0; -EBUSY while something dies in it; -errno. */
SB_MUST_CHECK int sb_leaf_remove(const char *dir, uint32_t id);

#endif
