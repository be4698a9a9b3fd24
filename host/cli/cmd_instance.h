#ifndef SB_HOST_CLI_CMD_INSTANCE_H
#define SB_HOST_CLI_CMD_INSTANCE_H
/* What the commands about instances share. */
#include "cli.h"
#include "dirs.h"
#include "state/state.h"
#include "verbs.h"

struct instances { /* the database and where things are; static storage, one a process */
	struct cli_dirs dirs;
	struct state *s;
};
/* Return: 0; -errno, told. */
SB_MUST_CHECK int instances_open(struct instances **ret);

/* Connect to the holder of a running instance. Return: 0; -ENOTCONN: it does not run; -errno. */
SB_MUST_CHECK int instance_connect(const struct cli_dirs *d, const struct instance *i, int *ret,
				   struct sb_err *err);
/* The directory of its session. Return: 0; -ENOTCONN; -errno. */
SB_MUST_CHECK int instance_session_dir(const struct cli_dirs *d, const struct instance *i, int *ret,
				       struct sb_err *err);
/* The plan of its session. @ret: owned. */
SB_MUST_CHECK int instance_plan(const struct cli_dirs *d, const struct instance *i,
				struct sb_plan **ret, struct sb_err *err);
const char *instance_status_name(enum instance_status s);
bool instance_runs(const struct instance *i);

struct exec_want { /* one more command in a running instance */
	const char *name;
	char *const *argv;
	const char *cwd;         /* or NULL */
	const char *const *env;  /* "K=V", n_env of them */
	size_t n_env;
	int tty;                 /* 1, 0; -1 = when stdin and stdout are terminals */
	int io[3];               /* -1 = the program's own */
};
/* @ret: exit status for the shell. Return: 0; -errno with text. */
SB_MUST_CHECK int instance_exec(struct instances *in, const struct exec_want *w, int *ret,
				struct sb_err *err);

#endif
