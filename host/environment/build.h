#ifndef SB_HOST_ENVIRONMENT_BUILD_H
#define SB_HOST_ENVIRONMENT_BUILD_H
/* Parts of a build; environment.c puts them together. */
#include "environment/environment.h"

#define ENV_MAX_LAYERS SB_PLAN_MAX_LAYERS
#define ENV_MAX_GROUPS 32

/* ---- words.c ---- */
/* The groups that the builder may reach, as one list for --allow-hosts; "" = none.
 * @ret: malloc'd. Return: 0; -errno. */
SB_MUST_CHECK int env_hosts(const struct environment_what *w, char **ret);
/* What a step is given: @w->env, and the caller's mirrors of the package managers among its groups.
 * @ret: malloc'd, NULL-terminated, its items too. Return: 0; -ENOMEM. */
SB_MUST_CHECK int env_variables(const struct environment_what *w, char ***ret);
/* @text in at most @cap - 1 columns, control characters as '?', line breaks as blanks; cut with
 * "..." at the end. */
void env_one_line(const char *text, char *out, size_t cap);

/* ---- watch.c: what people see while something else works ---- */
struct env_watch {
	pid_t pid; /* 0 = none */
	int stop;  /* closing it ends the process */
};
/*
 * env_watch_start - show @title, and the bytes that come into @log from now on if @verbose
 * On a terminal a line with a spinner and the time, which is taken away again; else the title alone.
 * @quiet: nothing at all. Failing to show something is no failure.
 */
void env_watch_start(struct env_watch *w, const char *title, int log, bool verbose, bool quiet);
void env_watch_end(struct env_watch *w);
/* The last lines of @log from @from on, without what a terminal would act on, each indented. */
void env_show_tail(int log, off_t from);

/* ---- pour.c: a builder's output into a file that does not grow without end ---- */
struct env_pour {
	pid_t pid; /* 0 = none */
	int in;    /* owned: what is written here comes into the file */
};
/* @max: bytes, whole pieces of at most 64 KiB; @drain: what comes after them is dropped, otherwise
 * the writer gets EPIPE. */
SB_MUST_CHECK int env_pour_start(struct env_pour *p, int to, uint64_t max, bool drain,
				 struct sb_err *err);
/* All writers have gone. Return: whether all of it is in the file. */
bool env_pour_end(struct env_pour *p);

#define ENV_MAX_LOG_BYTES (16U << 20) /* of what one session says */

/* ---- export.c ---- */
struct launch_target;
struct run_options;
/* One quiet session; @refused: see launch.h, or NULL. Return: status of the command (0..255); -EINTR; -errno with text. */
SB_MUST_CHECK int env_session(const struct run_options *o, const struct launch_target *t,
			      const int io[3], void (*refused)(void *arg, const char *text),
			      void *arg, struct sb_err *err);
/*
 * env_export - what the upper layer of @t holds, as an archive with OCI whiteouts in the file @out
 * @log: gets what the guest says about it; @max: bytes; @who: whose files they are, for messages
 * Return: 0; -EINTR; -EFBIG; -errno with text.
 */
SB_MUST_CHECK int env_export(const struct run_options *o, const struct launch_target *t, int out,
			     int log, uint64_t max, const char *who, struct sb_err *err);

/* ---- build.c ---- */
struct env_build {
	const struct sb_dirs *d;
	const struct environment_what *w;
	const struct sb_plan_layer *layers; /* what it is laid on, without an erofs base */
	size_t n_layers;
	char *hosts;
	char **env;
	char refused[4096]; /* lines of what the net gate refused to the last session */
	char *path;  /* of the build's directory */
	int dir;     /* the same, open */
	int parent;  /* <cache>/builds */
	int log;     /* all output of all steps */
	const char *name; /* of the directory in parent */
	char upper[4096];
	enum sb_upper_kind kind;
};
/* Make the directory @name in <cache>/builds, removing what is left of an earlier one; the caller
 * holds the lock. Return: 0; -errno with text. */
SB_MUST_CHECK int env_build_begin(struct env_build *b, const char *name, struct sb_err *err);
/* Remove everything again. */
void env_build_end(struct env_build *b);
/* One step: @argv as root of a builder. @own_io: with the caller's input and output (a terminal, if
 * they are one) instead of into the log.
 * Return: status of the command (0..255); -EINTR; -errno with text. */
SB_MUST_CHECK int env_build_run(struct env_build *b, char **argv, bool own_io, struct sb_err *err);
/* All of the install commands. Return: 0; -EIO: one failed and was shown; -EINTR; -errno. */
SB_MUST_CHECK int env_build_steps(struct env_build *b, struct sb_err *err);
/* The check at the end. Return: as env_build_steps. */
SB_MUST_CHECK int env_build_health(struct env_build *b, struct sb_err *err);
/* What the upper layer holds as a layer in the cache. Return: 0; -errno with text. */
SB_MUST_CHECK int env_build_layer(struct env_build *b, struct sb_plan_layer *ret,
				  struct sb_err *err);
/* Whether the user asked to stop; between sessions, signals are blocked. */
bool env_stopped(void);

#endif
