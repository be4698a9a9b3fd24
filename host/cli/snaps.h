#ifndef SB_HOST_CLI_SNAPS_H
#define SB_HOST_CLI_SNAPS_H
/*
 * The way to sendbox-snapshot, which alone reads and writes the store of snapshots
 * (<state>/snapshots). One process a call, with the descriptors of snapshot/helper.h.
 */
#include <sys/types.h>

#include "dirs.h"

#define SNAPS_ARGS 2400

struct snaps_call {
	const char *argv[SNAPS_ARGS]; /* NULL-terminated; [0] is the program, [1] the verb */
	size_t n;
	const int *trees; /* descriptors, borrowed; their --path are in argv */
	size_t n_trees;
	int sock;         /* serve: borrowed; -1 = none */
	int out;          /* standard output; -1 = ours */
	bool lasts;       /* do not wait for its end */
	bool deaf;        /* what the terminal sends does not end it: who starts it holds those signals, too */
};
void snaps_call_init(struct snaps_call *c, const char *verb);
/* Words are borrowed. Return: 0; -E2BIG. */
SB_MUST_CHECK int snaps_word(struct snaps_call *c, const char *word);
SB_MUST_CHECK int snaps_pair(struct snaps_call *c, const char *option, const char *value);
/*
 * snaps_run - start it, and wait unless it lasts
 * @ret_pid: of one that lasts; else NULL
 * Return: its exit status; 0 with *@ret_pid; -errno with the text.
 */
SB_MUST_CHECK int snaps_run(const struct cli_dirs *d, const struct snaps_call *c, pid_t *ret_pid,
			    struct sb_err *err);
/* A folder that may be captured: not one that holds our state, or lies in it. @real: PATH_MAX bytes.
 * Return: descriptor; -errno with the text. */
SB_MUST_CHECK int snaps_tree(const struct cli_dirs *d, const char *path, char *real, struct sb_err *err);
/* A record of the audit log, before it is done: "remove", "prune" of @subject,
 * snapshot @id (or NULL). @session: hex, or NULL. Without it nothing is done. Return: 0; -errno with the text. */
SB_MUST_CHECK int snaps_note(const struct cli_dirs *d, const char *action, const char *subject, const char *id,
			     const char *session, struct sb_err *err);
/* What is to be put on record of a restore. */
struct snaps_act {
	const char *action;   /* "undo", "restore", "quarantine" */
	const char *subject;  /* the folder */
	const char *snapshot; /* that is put back */
	const char *session;  /* hex, or NULL */
	char *const *paths;   /* those alone; NULL: everything */
	size_t n_paths;
	uint64_t more_paths;  /* that are not among them */
	const uint8_t *in;    /* 16 bytes: the session whose record it is; NULL: of none */
	char *saved;          /* 65 bytes: set to the snapshot of what was there, "" = none; or NULL */
	bool force;
};
/*
 * snaps_restore - a restore that is on record before it changes anything, and again with what came of it
 * @c: "restore", with its tree. When there is nothing to do, nothing is recorded. A deaf one that is killed is started
 * once more.
 * Return: its exit status; -errno with the text.
 */
SB_MUST_CHECK int snaps_restore(const struct cli_dirs *d, struct snaps_call *c, const struct snaps_act *a,
				struct sb_err *err);
/* Text that a session may have chosen goes to a terminal: the program escapes it then. */
bool snaps_to_terminal(void);

/* Ids of the snapshots of a session, hex; after: "" when there is none. @session: a prefix, an instance, or NULL: the
 * last one of @path (NULL: of any) that has some, which is said when there are later ones. @path_ret: where they are of,
 * malloc'd. */
struct snaps_of {
	char before[72];
	char after[72];
	char quarantined[72]; /* "" when nothing was */
	char session[40];
	char *path;
	bool running; /* it has not ended */
};
void snaps_of_done(struct snaps_of *s);
/* All folders of one session. @ret: malloc'd, at least one. Return: 0; -ENOENT with the text; -errno. */
SB_MUST_CHECK int snaps_session(const struct cli_dirs *d, const char *session, const char *path,
				struct snaps_of **ret, size_t *ret_n, struct sb_err *err);

#endif
