#ifndef SB_HOST_CLI_LAUNCH_I_H
#define SB_HOST_CLI_LAUNCH_I_H
/* What the parts of a launch share; launch.c tells the order. */
#include <signal.h>
#include <sys/types.h>

#include "commands.h"
#include "events.h"
#include "fds.h"
#include "launch.h"
#include "os/loop.h"
#include "plan_conf.h"
#include "provider/bundle_open.h"
#include "session.h"
#include "ssh_text.h"
#include "summary.h"

struct asking;
struct hold_conf;
struct state;
struct attach;

struct run {
	const struct launch *l;
	const struct run_options *opt;
	bool json;     /* events instead of texts */
	int stdio[3];  /* borrowed: where the command's input comes from and its output goes */
	struct conf conf;
	char *problems; /* goes into the result */
	struct cli_dirs dirs;
	struct sb_bundle *bundle;
	struct sb_plan *plan;
	char *plan_bytes;
	size_t plan_len;
	char program[201]; /* for messages; the plan is gone by then */
	uint8_t pub[32];
	uint8_t sig[64];
	char *file; /* the signed plan */
	size_t file_len;
	struct cli_session session;
	bool have_session;
	struct sb_loop *loop;
	struct cli_fd io[3];
	struct cli_events *events;
	int sock; /* to the monitor */
	pid_t monitor;
	bool masked;
	sigset_t old_mask;
	int sigfd;
	struct sb_io sock_io;
	struct sb_io sig_io;
	const struct hold_conf *hold; /* of an instance; NULL = plain */
	struct attach *attach;
	uint8_t terminals; /* bit n: the channel process filters stdio[n] for a terminal */
	struct asking *asking; /* NULL: the plan never asks, or a holder does */
	bool detached;
	bool started;
	struct run_snaps *snaps; /* owned; captures of this session; NULL = none */
	bool unreviewed; /* guarded paths that should have been put back were not, or nobody knows */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	struct state *memory; /* owned, open while there is a row to be completed at the end */
	bool cancelled;
	bool done;
	struct commands *commands; /* judged executions; not with --json */
	struct ssh_summary *ssh; /* of what the SSH relay decided; not with --json */
	struct summary *summary; /* of what the net gate refused; not with --json */
	struct sb_ipc_done result;
};

/* Note the first failure, with a text of @code where @err has none. Return: @code. */
int launch_fail(struct run *r, uint32_t why, struct sb_err *err, int code);

/* The configuration, accepted. Return: 0; -errno, noted. */
SB_MUST_CHECK int launch_load(struct run *r, struct sb_err *err);
/* The plan, its bytes, signature and file. Return: 0; -errno, noted. */
SB_MUST_CHECK int launch_plan(struct run *r, struct sb_err *err);
/* What @r's plan was made from. */
struct plan_input launch_input(const struct run *r);

/* Everything from the session directory to the monitor's last message. Return: 0; -errno. */
SB_MUST_CHECK int launch_session(struct run *r, struct sb_err *err);
/* Its steps, for the holder: the directory, the monitor, the plan for it with r->io. */
SB_MUST_CHECK int launch_session_dir(struct run *r, struct sb_err *err);
SB_MUST_CHECK int launch_monitor(struct run *r, struct sb_err *err);
SB_MUST_CHECK int launch_send_start(struct run *r, struct sb_err *err);
/* A sealed memory file, its offset at the end. */
SB_MUST_CHECK int launch_memfd(const char *name, const void *p, size_t len, int *ret);
/* Exit status for the shell, once the session is over. */
int launch_status(const struct run *r);
/* Undo launch_session in reverse order; the first error stays the one that is told. */
void launch_session_end(struct run *r);
/* A line for people, unless the caller wants none. */
void launch_say(void *arg, const char *text);

/* launch() with a holder. */
SB_MUST_CHECK int launch_held(const struct launch *l, const struct hold_conf *hold,
			      struct launch_result *ret, struct sb_err *err);

#endif
