/* `sendbox diff`: what a session did to the folders that it could write to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "cli.h"
#include "dirs.h"
#include "options.h"
#include "snaps_words.h"

enum { O_STAT = 1, O_NAMES, O_GUARDED, O_JSON, O_HELP };
static const struct cli_option table[] = {
	{ "stat", 0, NULL, "lines added and removed of each file, not the lines", O_STAT },
	{ "names", 0, NULL, "paths alone: A added, D deleted, M changed, T of another kind, P mode, "
			    "owner or attributes, Q in quarantine", O_NAMES },
	{ "guarded", 0, NULL, "only what programs outside run or believe: hooks, settings, CI files",
	  O_GUARDED },
	{ "json", 0, NULL, "one object a path", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};

static const char *flag_of(int id)
{
	return id == O_STAT ? "--stat" : id == O_NAMES ? "--names" : id == O_GUARDED ? "--guarded" : "--json";
}

static int usage(void)
{
	printf("usage: sendbox diff [options] [SESSION] [PATH]...\n\nShow what a session added, changed and "
	       "deleted: the last one of this project, or SESSION: the first\ndigits of its id, or an instance's name for its last one. What "
	       "programs outside run or believe comes first.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
	return SB_EXIT_OK;
}

static int one(const struct cli_dirs *d, const struct snaps_words *w, size_t i, struct snaps_call c,
	       struct sb_err *err)
{
	const struct snaps_of *of = &w->of[i];
	sb_autofd int fd = -1;
	char real[4096];
	bool any = false;
	int r = snaps_pair(&c, "--from", of->before);

	if (r == 0 && of->after[0])
		r = snaps_pair(&c, "--to", of->after);
	if (r == 0 && !of->after[0]) { /* it runs, or was killed: against what is there now */
		fd = snaps_tree(d, of->path, real, err);
		if (fd < 0)
			return fd;
		r = snaps_pair(&c, "--path", of->path);
		c.trees = &fd;
		c.n_trees = 1;
	}
	if (r == 0)
		r = snaps_pair(&c, "--session", of->session);
	if (r == 0 && of->quarantined[0])
		r = snaps_pair(&c, "--quarantined", of->quarantined);
	if (r == 0)
		r = snaps_words_only(w, i, &c, &any, err);
	if (r < 0 || !any)
		return r;
	if (!of->after[0])
		cli_error("session %.12s %s: compared with what is there now", of->session,
			  of->running ? "runs" : "has no snapshot of its end");
	return snaps_run(d, &c, NULL, err);
}

int cmd_diff(int argc, char **argv)
{
	static struct cli_dirs dirs;
	static struct snaps_call call;
	struct snaps_words w = { 0 };
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	uint32_t given = 0;
	int status = SB_EXIT_OK;
	int at = 0;
	int id;
	int r;

	snaps_call_init(&call, "diff");
	cli_options_first(table, SB_ARRAY_LEN(table), argc, argv);
	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes, &err)) > 0) {
		if (id == O_HELP)
			return usage();
		given |= 1U << id;
		if (snaps_word(&call, flag_of(id)) < 0)
			break;
	}
	if (id == 0 && (given & 1U << O_NAMES) && (given & (1U << O_STAT | 1U << O_JSON)))
		id = sb_err_set(&err, -EINVAL, "--names excludes --stat and --json");
	if (id < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = snaps_words(&dirs, argc - at, argv + at, &w, &err);
	if (r == 0 && snaps_to_terminal())
		r = snaps_word(&call, "--escape");
	if (r == 0 && w.n_of > 1)
		r = snaps_word(&call, "--heads");
	for (size_t i = 0; r == 0 && i < w.n_of; i++) {
		r = one(&dirs, &w, i, call, &err);
		if (r > 0) {
			status = r;
			r = 0;
		}
	}
	snaps_words_done(&w);
	if (r < 0)
		cli_error("%s", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? snaps_words_status(r) : status;
}
