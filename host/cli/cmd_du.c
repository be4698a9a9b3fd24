/* sendbox du: what it all takes on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli.h"
#include "dirs.h"
#include "options.h"
#include "sizes.h"
#include "state/session_record.h"

/* One line; @names: folders and files of state ("s/") or cache ("c/") or run ("r/"). */
static const struct part {
	const char *what;
	const char *names[6];
	const char *help;
} parts[] = {
	{ "audit", { "s/audit" }, "the audit log; never pruned" },
	{ "snapshots", { "s/snapshots" }, "sendbox snapshot ls, prune, gc" },
	{ "sessions", { "s/state.db", "s/state.db-wal", "s/plans", "r/sessions" }, "sendbox session ls; "
										    "retention.sessions" },
	{ "instances", { "s/instances", "s/settings" }, "sendbox ls, rm, prune" },
	{ "environments", { "c/layers", "c/builds" }, "sendbox cache ls, rm; images lie there, too" },
	{ "images", { "c/images" }, "sendbox image list, rm" },
	{ "kernels", { "c/kernels", "c/kernels-elf", "c/initramfs", "c/bundles" }, "sendbox cache clean --all" },
};

static uint64_t size_of(const struct cli_dirs *d, const char *name)
{
	const char *top = name[0] == 's' ? d->state : name[0] == 'c' ? d->cache : d->run;
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", top, name + 2);
	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return (uint64_t)st.st_blocks * 512;
	return sizes_used(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

static uint64_t folder(const char *path)
{
	return sizes_used(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int show_json(const struct cli_dirs *d)
{
	json_t *all = json_object();
	uint64_t total = folder(d->state) + folder(d->cache);
	char *s;

	for (size_t i = 0; i < SB_ARRAY_LEN(parts); i++) {
		uint64_t n = 0;

		for (size_t k = 0; k < SB_ARRAY_LEN(parts[i].names) && parts[i].names[k]; k++)
			n += size_of(d, parts[i].names[k]);
		(void)json_object_set_new(all, parts[i].what, json_integer((json_int_t)n));
	}
	(void)json_object_set_new(all, "total", json_integer((json_int_t)total));
	s = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	if (s)
		(void)puts(s);
	free(s);
	return s && fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
}

static int show(const struct cli_dirs *d)
{
	char text[16];

	for (size_t i = 0; i < SB_ARRAY_LEN(parts); i++) {
		uint64_t n = 0;

		for (size_t k = 0; k < SB_ARRAY_LEN(parts[i].names) && parts[i].names[k]; k++)
			n += size_of(d, parts[i].names[k]);
		sizes_text(n, text, sizeof(text));
		printf("%7s  %-13s %s\n", text, parts[i].what, parts[i].help);
	}
	sizes_text(folder(d->state) + folder(d->cache), text, sizeof(text));
	printf("%7s  all of it\n", text);
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
}

int cmd_du(int argc, char **argv)
{
	enum { O_JSON = 1, O_HELP };
	static const struct cli_option table[] = {
		{ "json", 0, NULL, "print one JSON object of bytes", O_JSON },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	static struct cli_dirs dirs;
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	bool json = false;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox du [--json]\n\nTell what records, instances and caches take on "
			       "the disk, and what makes each smaller.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
		}
		json = true;
	}
	if (id < 0 || at < argc) {
		cli_error("%s", id < 0 ? err.text : "du takes no operands");
		return SB_EXIT_USAGE;
	}
	if (cli_dirs_init(&dirs, &err) < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_INTERNAL;
	}
	return json ? show_json(&dirs) : show(&dirs);
}
