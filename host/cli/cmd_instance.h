#ifndef SB_HOST_CLI_CMD_INSTANCE_H
#define SB_HOST_CLI_CMD_INSTANCE_H
/* What the commands about instances share. */
#include "cli.h"
#include "dirs.h"
#include "options.h"
#include "state/state.h"

struct verb { /* one command's options and operands, parsed */
	const char *usage;               /* "sendbox rm [options] NAME..." */
	const char *what;                /* one sentence */
	const struct cli_option *table;
	size_t n_table;
	/* Take one option. Return: 0; -EINVAL with text. */
	int (*take)(void *arg, int id, const char *value, struct sb_err *err);
	bool program; /* words of a program follow: options stop at the first operand */
};
#define VERB_HELP 1 /* id of --help in every table */
#define VERB_DONE 1
/*
 * verb_options - the options of @argv; @ret_at: index of the first operand
 * Return: 0; VERB_DONE: the help was printed; -EINVAL, told.
 */
SB_MUST_CHECK int verb_options(const struct verb *v, void *arg, int argc, char **argv, int *ret_at);

struct instances { /* the database and where things are; static storage, one a process */
	struct cli_dirs dirs;
	struct state *s;
};
/* Return: 0; -errno, told. */
SB_MUST_CHECK int instances_open(struct instances **ret);

/* Connect to the holder of a running instance. Return: 0; -ENOTCONN: it does not run; -errno. */
SB_MUST_CHECK int instance_connect(const struct cli_dirs *d, const struct instance *i, int *ret,
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
