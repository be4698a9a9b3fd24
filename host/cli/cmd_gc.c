#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "conf_load.h"
#include "dirs.h"
#include "environment/environment.h"
#include "image/cache.h"
#include "options.h"
#include "retention.h"
#include "run_agent_i.h"
#include "session.h"
#include "state/session_record.h"

struct counts {
	size_t cleared;
	size_t left;
	size_t builds;
	size_t folders;
	size_t crashed;
	struct retention_done old;
};

/* Limits of the user's own configuration, or of the file that is named; a folder's counts for nobody
 * here. */
static int limits(const struct cli_dirs *d, const char *file, struct retention *ret, struct sb_err *err)
{
	const struct run_options o = { .config = file, .no_config = file == NULL };
	const char *ignored = NULL;
	struct conf c = { 0 };
	char text[400];
	int r = conf_load(d, &o, &c, err);

	if (r == 0)
		retention_of(c.loaded.cfg, true, ret, &ignored);
	if (r == -EBADMSG) {
		conf_problem_text(&c.problems, text, sizeof(text));
		(void)sb_err_set(err, r, "%s", text);
	}
	conf_done(&c);
	return r;
}

static int clear(const struct cli_dirs *d, struct state *s, bool all, struct counts *n,
		 struct sb_err *err)
{
	int r = cli_gc(&d->d, all, &n->cleared, err);

	if (r == 0)
		r = image_gc(&d->d, &n->left, err);
	if (r == 0)
		r = environment_gc(&d->d, &n->builds, err);
	if (r == 0)
		r = instance_gc(s, &n->folders, err);
	if (r == 0)
		r = run_agent_settings_gc(&d->d, s, &n->folders, err);
	return r;
}

static void say(size_t n, const char *one, const char *many)
{
	if (n > 0)
		printf("%zu %s\n", n, n == 1 ? one : many);
}

static void tell(const struct counts *n, bool only_old)
{
	if (!only_old)
		printf("%zu session%s cleared\n", n->cleared, n->cleared == 1 ? "" : "s");
	else if (n->old.sessions == 0 && n->old.snapshots == 0 && n->old.loose == 0)
		printf("nothing is old enough\n");
	say(n->left, "unfinished image cleared", "unfinished images cleared");
	say(n->builds, "unfinished environment cleared", "unfinished environments cleared");
	say(n->folders, "folder of instances that are gone cleared",
	    "folders of instances that are gone cleared");
	say(n->old.sessions, "old session forgotten", "old sessions forgotten");
	say(n->old.loose, "snapshot of no session removed", "snapshots of no session removed");
	say(n->old.snapshots, "snapshot of them removed", "snapshots of them removed");
}

int cmd_gc(int argc, char **argv)
{
	enum { O_ALL = 1, O_RETENTION, O_CONFIG, O_HELP };
	static const struct cli_option table[] = {
		{ "all", 'a', NULL, "sessions kept with --keep too", O_ALL },
		{ "retention", 0, NULL, "only forget sessions beyond the limits of the configuration",
		  O_RETENTION },
		{ "config", 0, "FILE", "take the limits from there", O_CONFIG },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	static struct cli_dirs dirs;
	sb_autostate struct state *s = NULL;
	struct retention limit = { 0 };
	struct counts n = { 0 };
	struct sb_err err = { 0 };
	const char *file = NULL;
	const char *value;
	bool dashes;
	bool all = false;
	bool only_old = false;
	int at = 0;
	int id;
	int r;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox gc [options]\n\nClear what sessions left behind that ended badly, and "
			       "forget old ones beyond the\nlimits of retention.* in your configuration.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return SB_EXIT_OK;
		}
		all |= id == O_ALL;
		only_old |= id == O_RETENTION;
		if (id == O_CONFIG)
			file = value;
	}
	if (id < 0 || at < argc) {
		cli_error("%s", id < 0 ? err.text : "gc takes no operands");
		return SB_EXIT_USAGE;
	}
	r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = limits(&dirs, file, &limit, &err);
	if (r == 0)
		r = state_open(&dirs.d, &s, &err);
	if (r == 0)
		r = session_record_gc(s, &n.crashed, &err);
	if (r == 0 && !only_old)
		r = clear(&dirs, s, all, &n, &err);
	if (r == 0)
		r = retention_apply(&dirs, s, &limit, &n.old, &err);
	if (r < 0) {
		cli_error("%s", err.text);
		return r == -EBADMSG ? SB_EXIT_USAGE : SB_EXIT_INTERNAL;
	}
	tell(&n, only_old);
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
}
