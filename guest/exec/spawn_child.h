#ifndef SB_GUEST_EXEC_SPAWN_CHILD_H
#define SB_GUEST_EXEC_SPAWN_CHILD_H
/*
 * Start one process as the workload's user.
 *
 * The child is a copy of the supervisor (memory is not shared with it, and the supervisor does not
 * wait for it: from the moment it has the workload's uid, other processes of that user can stop
 * it, and a supervisor that waits would stand still). How far it came is told through a pipe that
 * exec closes.
 */
#include <sys/types.h>

#include "exec/confine.h"

enum sb_launch_stage {
	SB_LAUNCH_OK = 0,
	SB_LAUNCH_SESSION = 1,
	SB_LAUNCH_STDIO = 2,
	SB_LAUNCH_LIMITS = 3,
	SB_LAUNCH_IDENTITY = 4,
	SB_LAUNCH_CWD = 5,
	SB_LAUNCH_WALLS = 6,
	SB_LAUNCH_NOT_FOUND = 7, /* no candidate exists */
	SB_LAUNCH_NOT_EXEC = 8,  /* one exists and cannot be executed */
};

struct sb_launch {
	const struct sb_confine *confine;
	char *const *argv;       /* NULL-terminated, exact */
	char *const *env;        /* NULL-terminated, exact */
	char *const *candidates; /* NULL-terminated paths for execve, in order */
	const char *cwd;
	int stdio[3];    /* borrowed, each >= 3 */
	bool tty;        /* stdio[0] is a terminal that becomes the controlling one */
	int cgroup;      /* directory of the leaf to be born in; -1 = none */
	int judge;       /* socket of the judge of executions, borrowed; -1 = none */
	uint32_t cmd;    /* id of the command, for the judge */
	const struct sb_plan *export_plan; /* then nothing is executed: the child exports ... */
	int export;      /* ... this folder, as what the supervisor is; borrowed */
	bool mark;       /* give it a UTS namespace of its own, by which its descendants are known */
};

struct sb_launch_report {
	int32_t stage; /* enum sb_launch_stage */
	int32_t error; /* errno, > 0 */
};

/*
 * sb_launch_start - clone and go on
 * @ret_report: becomes readable when the child executed the program or failed; CLOEXEC,
 *              non-blocking; caller closes
 * All signals are blocked in the caller. Return: 0; -errno.
 */
SB_MUST_CHECK int sb_launch_start(const struct sb_launch *l, pid_t *ret_pid, int *ret_report);

#define SB_LAUNCH_PENDING 1
/* Return: 0 with the report (stage OK: executed); SB_LAUNCH_PENDING. */
SB_MUST_CHECK int sb_launch_result(int report, struct sb_launch_report *ret);

const char *sb_launch_stage_text(enum sb_launch_stage s);

#endif
