#ifndef SB_GUEST_EXEC_JUDGE_H
#define SB_GUEST_EXEC_JUDGE_H
/*
 * The judge of executions: a process of its own beside PID 1 that is asked by the kernel before
 * every execve of the workload's tree and looks again when the new program is in place.
 * Theory of operation: judge.c.
 */
#include <sys/types.h>

#include <linux/filter.h>

#include "core/plan.h"

struct sb_judge {
	pid_t pid; /* 0 = none; its end, before sb_judge_stop, ends the session */
	int sock;  /* SEQPACKET to the judge: listeners go there, events come; owned; -1 = none */
};
#define SB_JUDGE_INIT { .sock = -1 }

#define SB_JUDGE_NO_RULE UINT32_MAX
/* A decision, told by the judge; fixed size, one packet each. Texts are the workload's: bytes. */
struct sb_judge_event {
	uint32_t cmd;      /* the command whose tree it was */
	uint32_t pid;      /* in the guest */
	uint32_t rule;     /* index in the plan's rules; SB_JUDGE_NO_RULE */
	uint32_t count;    /* equal events that this one stands for, at least 1 */
	uint8_t action;    /* enum sb_cmd_action */
	uint8_t top_level;
	uint8_t killed;    /* what ran was not what was judged: the process was killed */
	uint8_t cut;       /* path or argv are not whole */
	uint16_t n_argv;
	uint16_t argv_len;
	char why[32];      /* NUL-terminated; of struct sb_cmd_verdict, or one of judge_i.h */
	char path[512];    /* NUL-terminated; resolved; "" = none */
	char argv[1024];   /* n_argv words, each with its NUL */
};

struct sb_judge_config {
	const struct sb_plan *plan; /* commands.scope is SB_CMD_SCOPE_TREE, or log_blocked is set */
	/* log_blocked: the plain form of the filter that asks, by which refused calls are answered;
	 * borrowed at the fork. NULL: nobody asks but for execve. */
	const struct sock_fprog *plain;
	void *secret;               /* wiped in the judge's copy of the memory; may be NULL */
	size_t secret_len;
};
/*
 * sb_judge_start - fork it, from the single-threaded process that will start the commands, after
 * sb_confine_prepare
 * Return: 0 when it serves; -errno with text: this kernel cannot, or the policy does not compile.
 */
SB_MUST_CHECK int sb_judge_start(const struct sb_judge_config *cfg, struct sb_judge *ret,
				 struct sb_err *err);
#define SB_JUDGE_FLUSHED 1
/* One event that waits. Return: 0; SB_JUDGE_FLUSHED: all that was counted when sb_judge_flush was
 * called has come; -EAGAIN; -EPIPE: the judge is gone; -errno. */
SB_MUST_CHECK int sb_judge_next(const struct sb_judge *j, struct sb_judge_event *ret);
/* Make it tell what it counts; the caller must read until SB_JUDGE_FLUSHED. Return: 0; -errno. */
SB_MUST_CHECK int sb_judge_flush(const struct sb_judge *j);
/* End it. The workload must be dead: what still asks gets no answer. */
void sb_judge_stop(struct sb_judge *j);

#define SB_JUDGE_PROBE UINT32_MAX /* of nobody: refused calls are answered and not told */
/*
 * sb_judge_enter - child side, with no_new_privs set and before the filter that closes seccomp(2):
 * from here on every execve of the calling thread and its descendants is asked for
 * @sock: struct sb_judge.sock; @cmd: id of the command, or SB_JUDGE_PROBE
 * @asking: installed instead of a filter for execve alone, as sb_filter_make has it; NULL = none. It
 *          must let sendmsg and close through.
 * Async-signal-safe. Return: 0; -EBUSY: an outer sandbox listens already; -errno.
 */
SB_MUST_CHECK int sb_judge_enter(int sock, uint32_t cmd, const struct sock_fprog *asking);
/* Return: 0; -errno with text when this kernel lacks what the judge needs. */
SB_MUST_CHECK int sb_judge_probe(struct sb_err *err);

#endif
