#ifndef SB_GUEST_EXEC_COMMAND_H
#define SB_GUEST_EXEC_COMMAND_H
/*
 * Running commands and their streams. Single-threaded, on the session's loop.
 *
 * A command comes into being with its first stream, or with its start. It is gone after
 * ops.exited: then every process of it is dead or dying, and every byte it wrote was queued.
 */
#include <sys/resource.h>
#include <sys/types.h>

#include "conn/chan.h"
#include "exec/confine.h"
#include "exec/judge.h"
#include "wire/ctl.h"

struct sb_commands; /* all commands of the session */
struct sb_command;

struct sb_commands_config {
	struct sb_loop *loop;              /* borrowed, as is everything below */
	const struct sb_plan *plan;
	const struct sb_confine *confine;
	const char *cgroup;                /* directory of leaves, or NULL */
	const struct sb_judge *judge;      /* filled before the first start, or sock -1 */
	int export; /* task EXPORT: the upper layer, which a "command" then writes out */
	bool alone; /* PID 1 of a pid namespace with no other children than commands */
	void (*started)(void *owner, uint32_t id);
	/* @m: a filled EXITED message; the command is gone after this returns */
	void (*exited)(void *owner, const struct sb_ctl *m);
	void *owner;
};

struct sb_command_request {
	char *const *argv; /* NULL-terminated, at least one */
	char *const *env;  /* NULL-terminated; completed by the callee */
	const char *cwd;
	bool tty;
	bool separate_stderr;
	uint16_t rows; /* 0 = unknown */
	uint16_t cols;
};

SB_MUST_CHECK int sb_commands_new(const struct sb_commands_config *cfg, struct sb_commands **ret);
/* Everything must have been killed and reaped. */
struct sb_commands *sb_commands_free(struct sb_commands *set);
size_t sb_commands_count(const struct sb_commands *set);

/* Attach a stream that the host opened. Return: 0; -EPROTO (running already, or a second one of
 * the kind); -ENOMEM. */
SB_MUST_CHECK int sb_commands_attach(struct sb_commands *set, struct sb_stream *s,
				     enum sb_stream_kind kind, uint32_t id);
/* Start command @id. What the command itself is to blame for is reported by ops.exited.
 * Return: 0; -EPROTO when it runs already; -ENOMEM. */
SB_MUST_CHECK int sb_commands_start(struct sb_commands *set, uint32_t id,
				    const struct sb_command_request *req);

/* No such command is no error: it may have ended while the message travelled. */
void sb_commands_signal(struct sb_commands *set, uint32_t id, uint32_t signo);
void sb_commands_kill(struct sb_commands *set, uint32_t id);
void sb_commands_resize(struct sb_commands *set, uint32_t id, uint16_t rows, uint16_t cols);
void sb_commands_kill_all(struct sb_commands *set);
/* Whether the main process of any command is still to be reaped. */
bool sb_commands_alive(const struct sb_commands *set);
/* The channel is dead and its streams with it: outputs are closed, nothing is sent any more. */
void sb_commands_forget_streams(struct sb_commands *set);

/* A child was reaped; not ours = orphan, ignored. */
void sb_commands_reaped(struct sb_commands *set, pid_t pid, int status, const struct rusage *ru);

#endif
