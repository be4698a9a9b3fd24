/* `sendbox undo`: the folders of a session as they were before it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "cli.h"
#include "dirs.h"
#include "options.h"
#include "snaps_words.h"

enum { O_FORCE = 1, O_DRY, O_GUARDED, O_CONTINUE, O_ABORT, O_JSON, O_HELP };
static const struct cli_option table[] = {
	{ "force", 'f', NULL, "also where you changed the same path after the session", O_FORCE },
	{ "dry-run", 0, NULL, "tell what would be done, do nothing", O_DRY },
	{ "guarded", 0, NULL, "only what programs outside run or believe: hooks, settings, CI files",
	  O_GUARDED },
	{ "continue", 0, NULL, "finish an undo that was interrupted", O_CONTINUE },
	{ "abort", 0, NULL, "take an undo back that was interrupted", O_ABORT },
	{ "json", 0, NULL, "one object an event", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};
static const char *const words[] = { NULL, "--force", "--dry", "--guarded", "--continue", "--abort",
				     "--json" };

static int usage(void)
{
	printf("usage: sendbox undo [options] [SESSION] [PATH]...\n\nPut back what a session changed: the last "
	       "one of this project, or SESSION: the first digits\nof its id, or an instance's name for its last one; everything, or the paths "
	       "given. What you changed after the session is told and left\nalone. What is there now is kept "
	       "as a snapshot first: an undo can be undone.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
	return SB_EXIT_OK;
}

static int one(const struct cli_dirs *d, const struct snaps_words *w, size_t i, struct snaps_call c,
	       uint32_t given, struct sb_err *err)
{
	const struct snaps_of *of = &w->of[i];
	const struct snaps_act act = { .action = "undo", .subject = of->path, .snapshot = of->before,
				       .session = of->session, .paths = w->paths, .n_paths = w->n,
				       .force = (given & 1U << O_FORCE) != 0 };
	sb_autofd int fd = -1;
	char real[4096];
	bool any = false;
	int r;

	if (of->running)
		return sb_err_set(err, -EBUSY, "session %.12s runs: end it first", of->session);
	r = snaps_words_only(w, i, &c, &any, err);
	if (r < 0 || !any)
		return r;
	fd = snaps_tree(d, of->path, real, err);
	if (fd < 0)
		return fd;
	if (strcmp(real, of->path) != 0)
		return sb_err_set(err, -ESTALE, "\"%.200s\" is a link to \"%.200s\" by now", of->path, real);
	c.trees = &fd;
	c.n_trees = 1;
	r = snaps_pair(&c, "--path", of->path);
	if (r == 0)
		r = snaps_pair(&c, "--from", of->before);
	if (r == 0 && of->after[0])
		r = snaps_pair(&c, "--to", of->after);
	if (r == 0)
		r = snaps_pair(&c, "--session", of->session);
	if (r < 0)
		return r;
	if (!of->after[0])
		cli_error("session %.12s has no snapshot of its end: compared with what is there now; what you changed "
			  "since is undone, too", of->session);
	return given & 1U << O_DRY ? snaps_run(d, &c, NULL, err) : snaps_restore(d, &c, &act, err);
}

int cmd_undo(int argc, char **argv)
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
	int r = 0;

	snaps_call_init(&call, "restore");
	cli_options_first(table, SB_ARRAY_LEN(table), argc, argv);
	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes, &err)) > 0) {
		if (id == O_HELP)
			return usage();
		given |= 1U << id;
		r = r < 0 ? r : snaps_word(&call, words[id]);
	}
	if (id == 0 && (given & (1U << O_CONTINUE)) && (given & (1U << O_ABORT)))
		id = sb_err_set(&err, -EINVAL, "--continue and --abort exclude each other");
	if (id < 0 || r < 0) {
		cli_error("%s", id < 0 ? err.text : "too many words");
		return SB_EXIT_USAGE;
	}
	r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = snaps_words(&dirs, argc - at, argv + at, &w, &err);
	if (r == 0 && w.n_of > 1)
		r = snaps_word(&call, "--heads");
	for (size_t i = 0; r == 0 && i < w.n_of; i++) {
		r = one(&dirs, &w, i, call, given, &err);
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
