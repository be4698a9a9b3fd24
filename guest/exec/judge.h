#ifndef SB_GUEST_EXEC_JUDGE_H
#define SB_GUEST_EXEC_JUDGE_H
/*
 * The judge of executions: a process of its own beside PID 1 that is asked by the kernel before
 * every execve of the workload's tree and looks again when the new program is in place.
 */
#include <sys/types.h>

#include "core/plan.h"
#include "os/loop.h"

struct sb_judge {
	pid_t pid;  /* 0 = none */
	int sock;   /* SEQPACKET to the judge: listeners go there, events come; owned */
};
/* A decision, told by the judge; fixed size, one packet each. */
struct sb_judge_event {
	uint32_t pid;       /* in the guest */
	uint32_t rule;      /* index in the plan's rules; UINT32_MAX = the default */
	uint8_t action;     /* enum sb_cmd_action */
	uint8_t top_level;
	uint8_t killed;     /* what ran was not what was judged: the process was killed */
	uint8_t reserved;
	uint32_t count;     /* equal events that this one stands for, at least 1 */
	char why[32];
	char path[512];     /* resolved; cut */
	char command[1024]; /* words joined by blanks, control bytes escaped; cut */
	char text[1024];    /* the line for people */
};
/* Fork it. The caller is single-threaded. Return: 0; -errno with text. */
SB_MUST_CHECK int sb_judge_start(const struct sb_plan *plan, bool vm, struct sb_judge *ret,
				 struct sb_err *err);
void sb_judge_stop(struct sb_judge *j);
/* Child side, after the identity is taken and before the other walls: install the notification
 * filter and hand its listener to the judge. Async-signal-safe. Return: 0; -errno. */
SB_MUST_CHECK int sb_judge_enter(int sock);

#endif
