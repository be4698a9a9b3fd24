#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "dirs.h"
#include "environment/environment.h"
#include "image/cache.h"
#include "options.h"
#include "run_agent_i.h"
#include "session.h"
#include "state/session_record.h"

int cmd_gc(int argc, char **argv)
{
	enum { O_ALL = 1, O_HELP };
	static const struct cli_option table[] = {
		{ "all", 'a', NULL, "sessions kept with --keep too", O_ALL },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	static struct cli_dirs dirs;
	sb_autostate struct state *s = NULL;
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	bool all = false;
	size_t n = 0;
	size_t left = 0;
	size_t builds = 0;
	size_t folders = 0;
	size_t crashed = 0;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox gc [options]\n\nClear what sessions left behind "
			       "that ended badly.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return SB_EXIT_OK;
		}
		all = true;
	}
	if (id < 0 || at < argc) {
		cli_error("%s", id < 0 ? err.text : "gc takes no operands");
		return SB_EXIT_USAGE;
	}
	if (cli_dirs_init(&dirs, &err) < 0 || cli_gc(&dirs.d, all, &n, &err) < 0 ||
	    image_gc(&dirs.d, &left, &err) < 0 || environment_gc(&dirs.d, &builds, &err) < 0 ||
	    state_open(&dirs.d, &s, &err) < 0 || session_record_gc(s, &crashed, &err) < 0 ||
	    instance_gc(s, &folders, &err) < 0 ||
	    run_agent_settings_gc(&dirs.d, s, &folders, &err) < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_INTERNAL;
	}
	printf("%zu session%s cleared\n", n, n == 1 ? "" : "s");
	if (left > 0)
		printf("%zu unfinished image%s cleared\n", left, left == 1 ? "" : "s");
	if (builds > 0)
		printf("%zu unfinished environment%s cleared\n", builds, builds == 1 ? "" : "s");
	if (folders > 0)
		printf("%zu folder%s of instances that are gone cleared\n", folders,
		       folders == 1 ? "" : "s");
	return SB_EXIT_OK;
}
