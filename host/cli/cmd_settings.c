/* `sendbox settings`: what sessions changed in their copies of an agent's settings. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli.h"
#include "conf_fail.h"
#include "config/text.h"
#include "crypto/crypto.h"
#include "options.h"
#include "os/rmtree.h"
#include "run_agent_i.h"
#include "text_diff.h"

enum { O_JSON = 1, O_HELP };
static const struct cli_option table[] = {
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct work {
	struct cli_dirs dirs;
	const char *name;
	char dir[PATH_MAX];
	bool json;
	json_t *list;
	size_t n;
	size_t conflicts;
	size_t skipped;
	struct sb_err err;
};

static const char *const words[] = { "same", "added", "changed", "removed", "not a file" };

static void shown(const char *in, char *out, size_t cap)
{
	text_show(in, strlen(in), out, cap);
}

static int internal(const struct work *w, int r)
{
	return conf_fail(w->json, SB_EXIT_INTERNAL, "io", w->name ? w->name : "", "%s",
			 w->err.code ? w->err.text : strerror(-r));
}

static int start(struct work *w)
{
	int r = sb_crypto_init();

	if (r == 0)
		r = cli_dirs_init(&w->dirs, &w->err);
	if (r < 0)
		return internal(w, r);
	if (!w->name)
		return 0;
	if (!agent_name_ok(w->name))
		return conf_fail(w->json, SB_EXIT_USAGE, "usage", "", "\"%.100s\" is no name of an "
				 "instance", w->name);
	r = run_agent_settings_dir(&w->dirs.d, w->name, w->dir);
	return r < 0 ? internal(w, r) : 0;
}

static int none(const struct work *w)
{
	return conf_fail(w->json, SB_EXIT_NO, "not_found", w->name,
			 "no settings are kept of \"%.100s\"; sendbox settings ls lists those there are",
			 w->name);
}

/* ---- ls ---- */

static int count(void *arg, const struct settings_file *f)
{
	(void)f;
	++*(size_t *)arg;
	return 0;
}

static void list_one(struct work *w, const char *name)
{
	size_t n = 0;
	int r;

	if (run_agent_settings_dir(&w->dirs.d, name, w->dir) < 0)
		return;
	r = settings_each(w->dir, false, count, &n, &w->err);
	if (w->list)
		(void)json_array_append_new(w->list, json_pack("{s:s,s:I,s:b}", "name", name, "changed",
							       (json_int_t)n, "readable", r == 0));
	else
		printf("%-40s %s%zu changed\n", name, r < 0 ? "(cannot be read) " : "", n);
}

static int list(struct work *w)
{
	char above[PATH_MAX];
	struct dirent *e;
	DIR *d;

	(void)snprintf(above, sizeof(above), "%s/settings", w->dirs.d.state);
	w->list = w->json ? json_array() : NULL;
	d = opendir(above);
	while (d && (e = readdir(d)))
		if (agent_name_ok(e->d_name))
			list_one(w, e->d_name);
	if (d)
		(void)closedir(d);
	if (w->json)
		return conf_print(json_pack("{s:i,s:b,s:o}", "schema_version", 1, "ok", 1, "settings",
					    w->list), SB_EXIT_OK);
	return conf_flush(SB_EXIT_OK);
}

/* ---- diff ---- */

static char *of_user(const struct settings_file *f, size_t *len)
{
	char *bytes = NULL;
	char path[PATH_MAX];

	*len = 0;
	(void)snprintf(path, sizeof(path), "%s/%s", cli_home("/"), f->path);
	if (sb_fd_read_file(AT_FDCWD, path, SETTINGS_MAX_FILE, &bytes, len) < 0)
		return NULL;
	return bytes;
}

static int diff_one(void *arg, const struct settings_file *f)
{
	struct work *w = arg;
	sb_autofree char *old = NULL;
	char name[4096];
	size_t len = 0;

	w->n++;
	if (w->list) {
		(void)json_array_append_new(w->list, json_pack("{s:s,s:s,s:I}", "path", f->shown,
							       "change", words[f->change], "bytes",
							       (json_int_t)f->len));
		return 0;
	}
	shown(f->shown, name, sizeof(name));
	printf("%s: %s\n", words[f->change], name);
	if (f->change == SETTINGS_ODD || f->change == SETTINGS_REMOVED)
		return 0;
	old = of_user(f, &len);
	text_diff(stdout, old ? old : "", len, f->bytes, f->len);
	return 0;
}

static int diff(struct work *w)
{
	int r;

	w->list = w->json ? json_array() : NULL;
	r = settings_each(w->dir, true, diff_one, w, &w->err);
	if (r == -ENOENT)
		return none(w);
	if (r < 0)
		return internal(w, r);
	if (w->json)
		return conf_print(json_pack("{s:i,s:b,s:s,s:o}", "schema_version", 1, "ok", 1, "name",
					    w->name, "files", w->list), SB_EXIT_OK);
	if (w->n == 0)
		printf("nothing was changed\n");
	return conf_flush(SB_EXIT_OK);
}

/* ---- apply, drop ---- */

/* What a running session has written since it was looked at was never looked at. */
static int runs(const struct work *w)
{
	return conf_fail(w->json, SB_EXIT_NO, "running", w->name,
			 "\"%.100s\" runs and may change what you have looked at: sendbox stop %.100s first",
			 w->name, w->name);
}

static int apply_one(void *arg, const struct settings_file *f)
{
	struct work *w = arg;
	char name[4096];
	int r = settings_apply(cli_home("/"), f, &w->err);

	shown(f->shown, name, sizeof(name));
	if (r == SETTINGS_CONFLICT) {
		w->conflicts++;
		cli_error("%s: yours has changed since it was copied, or is no plain file; left alone",
			  name);
		return 0;
	}
	if (r == SETTINGS_SKIPPED) {
		w->skipped++;
		cli_error("%s: no plain file, or too large: never merged", name);
		return 0;
	}
	if (r < 0)
		return r;
	w->n++;
	if (!w->json)
		printf("%s: %s\n", words[f->change], name);
	return SETTINGS_TAKEN;
}

static int apply(struct work *w)
{
	int r;

	if (run_agent_settings_used(&w->dirs.d, w->name))
		return runs(w);
	r = settings_each(w->dir, true, apply_one, w, &w->err);

	if (r == -ENOENT)
		return none(w);
	if (r < 0)
		return internal(w, r);
	if (w->json)
		return conf_print(json_pack("{s:i,s:b,s:I,s:I,s:I}", "schema_version", 1, "ok",
					    w->conflicts == 0, "merged", (json_int_t)w->n, "conflicts",
					    (json_int_t)w->conflicts, "skipped", (json_int_t)w->skipped),
				  w->conflicts > 0 ? SB_EXIT_NO : SB_EXIT_OK);
	return conf_flush(w->conflicts > 0 ? SB_EXIT_NO : SB_EXIT_OK);
}

static int drop(struct work *w)
{
	struct stat st;
	int r;

	if (lstat(w->dir, &st) < 0)
		return none(w);
	if (run_agent_settings_used(&w->dirs.d, w->name))
		return runs(w);
	r = run_agent_settings_remove(&w->dirs.d, w->name);
	if (r < 0)
		return internal(w, r);
	return w->json ? conf_print(json_pack("{s:i,s:b}", "schema_version", 1, "ok", 1), SB_EXIT_OK)
		       : SB_EXIT_OK;
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	const char *operand;
	int (*run)(struct work *w);
	const char *help;
} commands[] = {
	{ "ls", "", list, "List the instances whose copies are kept, and how much they changed." },
	{ "diff", " NAME", diff, "Show what the session changed in its copies." },
	{ "apply", " NAME", apply, "Write it to your own files, where those are as they were." },
	{ "drop", " NAME", drop, "Throw the copies away." },
};

static int help(void)
{
	printf("usage: sendbox settings COMMAND [options]\n\nSettings of agents are copied for a session; "
	       "what it changed is merged on request.\n\n");
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++)
		printf("  %s%-*s %s\n", commands[i].name, (int)(12 - strlen(commands[i].name)),
		       commands[i].operand, commands[i].help);
	printf("\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
	return conf_flush(SB_EXIT_OK);
}

static int parse(struct work *w, int argc, char **argv, bool *ret_help)
{
	const char *value;
	bool dashes = false;
	int at = 0;

	while (at < argc) {
		int id = dashes ? 0 : cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at,
						       &value, &dashes, &w->err);

		if (id < 0)
			return id;
		w->json |= id == O_JSON;
		*ret_help |= id == O_HELP;
		if (id > 0 || at >= argc)
			continue;
		if (w->name)
			return sb_err_set(&w->err, -EINVAL, "one name at a time, not \"%.60s\" too",
					  argv[at]);
		w->name = argv[at++];
	}
	return 0;
}

int cmd_settings(int argc, char **argv)
{
	struct work w = { 0 };
	bool asked = argc < 1 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0;
	int status;

	if (asked)
		return argc < 1 ? (help(), SB_EXIT_USAGE) : help();
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (parse(&w, argc - 1, argv + 1, &asked) < 0)
			return conf_fail(w.json, SB_EXIT_USAGE, "usage", "", "%s", w.err.text);
		if (asked)
			return help();
		if ((commands[i].operand[0] != '\0') != (w.name != NULL))
			return conf_fail(w.json, SB_EXIT_USAGE, "usage", "", "write: sendbox settings %s%s",
					 commands[i].name, commands[i].operand);
		status = start(&w);
		return status != 0 ? status : commands[i].run(&w);
	}
	return conf_fail(false, SB_EXIT_USAGE, "usage", "",
			 "unknown command \"settings %.60s\"; sendbox settings --help lists them", argv[0]);
}
