/* `sendbox snapshot`: the store of snapshots by hand. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "dirs.h"
#include "options.h"
#include "os/loop.h"
#include "snaps_prune.h"
#include "snaps_words.h"

enum { O_JSON = 1, O_ALL, O_EXCLUDE, O_LABEL, O_STAT, O_NAMES, O_GUARDED, O_DRY, O_CONTINUE, O_ABORT,
       O_TO, O_KEEP, O_OLDER, O_MANUAL, O_HELP };
static const struct cli_option table[] = {
	{ "json", 0, NULL, "ls, create, verify, diff, restore: objects, one a line", O_JSON },
	{ "all", 'a', NULL, "ls, prune: of every folder, not the current one's alone", O_ALL },
	{ "exclude", 0, "PATTERN", "create: leave out a name, or a path with a slash", O_EXCLUDE },
	{ "label", 0, "TEXT", "create: a word to know it by", O_LABEL },
	{ "stat", 0, NULL, "diff: lines added and removed, not the lines", O_STAT },
	{ "names", 0, NULL, "diff: paths alone", O_NAMES },
	{ "guarded", 0, NULL, "diff, restore: only what programs outside run or believe", O_GUARDED },
	{ "dry-run", 0, NULL, "restore, prune: tell what would be done, do nothing", O_DRY },
	{ "continue", 0, NULL, "restore: finish one that was interrupted", O_CONTINUE },
	{ "abort", 0, NULL, "restore: take one back that was interrupted", O_ABORT },
	{ "to", 0, "DIR", "restore: into that folder, not the one that it is of", O_TO },
	{ "keep", 0, "N", "prune: the newest N of each folder stay (default 20)", O_KEEP },
	{ "older-than", 0, "TIME", "prune: only those that are older, as 30d", O_OLDER },
	{ "manual", 0, NULL, "prune: those made by hand, too", O_MANUAL },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct snap_cmd {
	struct cli_dirs dirs;
	struct snaps_call call;
	const char *to;
	bool all;
	bool dry;
	struct snaps_prune prune;
	char **argv;
	int argc;
	struct sb_err err;
};

static int usage(void)
{
	printf("usage: sendbox snapshot VERB [options] [operands]\n\n"
	       "  ls                     snapshots of the current folder\n"
	       "  create [DIR]           take one of DIR, or of the current folder; print its id\n"
	       "  verify [ID]            check every byte of the store, or what one snapshot needs\n"
	       "  diff ID [ID]           compare two, or one with what is there now\n"
	       "  restore ID [PATH]...   put everything back as it was, or those paths\n"
	       "  rm ID...               remove some, and what nobody needs any more\n"
	       "  prune                  remove old ones of the current folder; not those of sessions that are kept\n"
	       "  gc                     remove what nobody needs any more\n\n"
	       "An id may be cut to its first digits, 4 at least.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
	return SB_EXIT_OK;
}

static int operands(struct snap_cmd *c, int least, int most)
{
	if (c->argc < least || c->argc > most)
		return sb_err_set(&c->err, -EINVAL, "snapshot %s takes %s, not %d; see sendbox snapshot --help",
				  c->call.argv[1], most == 0 ? "no operand"
						   : least == 0 ? "one operand at most"
						   : most == 2 ? "one or two operands" : "operands", c->argc);
	return 0;
}

/* With a tree: @path, opened. @act: what it changes, or NULL. */
static int with_tree(struct snap_cmd *c, const char *path, const struct snaps_act *act)
{
	char real[4096];
	sb_autofd int fd = snaps_tree(&c->dirs, path, real, &c->err);
	int r;

	if (fd < 0)
		return fd;
	c->call.trees = &fd;
	c->call.n_trees = 1;
	r = snaps_pair(&c->call, "--path", real);
	if (r < 0)
		return r;
	return act ? snaps_restore(&c->dirs, &c->call, act, &c->err)
		   : snaps_run(&c->dirs, &c->call, NULL, &c->err);
}

static int do_ls(struct snap_cmd *c)
{
	char real[4096];
	int r = operands(c, 0, 0);

	if (r == 0 && !c->all) {
		if (!realpath(".", real))
			return sb_err_set(&c->err, -errno, "the current folder: %s", strerror(errno));
		r = snaps_pair(&c->call, "--session-path", real);
	}
	return r < 0 ? r : snaps_run(&c->dirs, &c->call, NULL, &c->err);
}

static int do_create(struct snap_cmd *c)
{
	int r = operands(c, 0, 1);

	if (r == 0)
		r = snaps_word(&c->call, "--sync");
	return r < 0 ? r : with_tree(c, c->argc > 0 ? c->argv[0] : ".", NULL);
}

static int do_verify(struct snap_cmd *c)
{
	int r = operands(c, 0, 1);

	if (r == 0 && c->argc > 0)
		r = snaps_pair(&c->call, "--from", c->argv[0]);
	return r < 0 ? r : snaps_run(&c->dirs, &c->call, NULL, &c->err);
}

/* Where a snapshot is of. @out: 4096 bytes. */
static int path_of(struct snap_cmd *c, const char *id, char *out)
{
	struct snaps_call q;
	char text[4200];
	int p[2];
	ssize_t n;
	int r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return sb_err_set(&c->err, -errno, "pipe: %s", strerror(errno));
	snaps_call_init(&q, "path");
	r = snaps_pair(&q, "--from", id);
	q.out = p[1];
	if (r == 0)
		r = snaps_run(&c->dirs, &q, NULL, &c->err);
	sb_fd_close(&p[1]);
	n = r == 0 ? read(p[0], text, sizeof(text) - 1) : -1;
	sb_fd_close(&p[0]);
	if (r != 0)
		return r;
	if (n <= 0 || n >= 4096)
		return sb_err_set(&c->err, -EIO, "sendbox-snapshot: no answer");
	text[n] = '\0';
	memcpy(out, text, (size_t)n + 1);
	return 0;
}

static int do_diff(struct snap_cmd *c)
{
	char path[4096];
	int r = operands(c, 1, 2);

	if (r == 0)
		r = snaps_pair(&c->call, "--from", c->argv[0]);
	if (r == 0 && snaps_to_terminal())
		r = snaps_word(&c->call, "--escape");
	if (r == 0 && c->argc > 1) {
		r = snaps_pair(&c->call, "--to", c->argv[1]);
		return r < 0 ? r : snaps_run(&c->dirs, &c->call, NULL, &c->err);
	}
	if (r == 0)
		r = path_of(c, c->argv[0], path);
	return r != 0 ? r : with_tree(c, path, NULL);
}

static int do_restore(struct snap_cmd *c)
{
	struct snaps_act act = { .action = "restore", .snapshot = c->argc > 0 ? c->argv[0] : NULL };
	char path[4096];
	int r = operands(c, 1, 1000);

	if (r == 0)
		r = snaps_pair(&c->call, "--from", c->argv[0]);
	if (r == 0)
		r = path_of(c, c->argv[0], path);
	for (int i = 1; r == 0 && i < c->argc; i++) {
		char *abs = NULL;

		r = snaps_absolute(c->argv[i], &abs, &c->err);
		if (r < 0)
			return r;
		if (strncmp(abs, path, strlen(path)) != 0 || (abs[strlen(path)] != '/' && abs[strlen(path)])) {
			free(abs);
			return sb_err_set(&c->err, -EINVAL, "\"%.200s\" is not in %.200s", c->argv[i], path);
		}
		/* for the life of this program */
		r = snaps_pair(&c->call, "--only", abs[strlen(path)] ? abs + strlen(path) + 1 : "");
	}
	if (r == 0 && c->to && access(c->to, F_OK) < 0 && errno == ENOENT)
		return sb_err_set(&c->err, -EINVAL, "--to \"%.300s\": there is no such folder; make it first", c->to);
	act.subject = c->to ? c->to : path;
	act.paths = c->argv + 1;
	act.n_paths = (size_t)(c->argc > 1 ? c->argc - 1 : 0);
	return r != 0 ? r : with_tree(c, act.subject, c->dry ? NULL : &act);
}

static int do_rm(struct snap_cmd *c)
{
	int r = operands(c, 1, 1000);

	for (int i = 0; r == 0 && i < c->argc; i++)
		r = snaps_pair(&c->call, "--only", c->argv[i]);
	for (int i = 0; r == 0 && i < c->argc; i++)
		r = snaps_note(&c->dirs, "remove", c->argv[i], c->argv[i], NULL, &c->err);
	return r < 0 ? r : snaps_run(&c->dirs, &c->call, NULL, &c->err);
}

static int do_prune(struct snap_cmd *c)
{
	int r = operands(c, 0, 0);

	c->prune.all = c->all;
	c->prune.dry = c->dry;
	return r < 0 ? r : snaps_prune(&c->dirs, &c->prune, &c->err);
}

static int do_gc(struct snap_cmd *c)
{
	int r = operands(c, 0, 0);

	return r < 0 ? r : snaps_run(&c->dirs, &c->call, NULL, &c->err);
}

static const struct verb {
	const char *name;
	int (*fn)(struct snap_cmd *c);
	uint32_t may; /* bits of options */
} verbs[] = {
	{ "ls", do_ls, 1U << O_JSON | 1U << O_ALL },
	{ "create", do_create, 1U << O_JSON | 1U << O_EXCLUDE | 1U << O_LABEL },
	{ "verify", do_verify, 1U << O_JSON },
	{ "diff", do_diff, 1U << O_JSON | 1U << O_STAT | 1U << O_NAMES | 1U << O_GUARDED },
	{ "restore", do_restore, 1U << O_JSON | 1U << O_GUARDED | 1U << O_DRY |
					 1U << O_CONTINUE | 1U << O_ABORT | 1U << O_TO },
	{ "rm", do_rm, 0 },
	{ "prune", do_prune, 1U << O_KEEP | 1U << O_OLDER | 1U << O_ALL | 1U << O_DRY | 1U << O_MANUAL },
	{ "gc", do_gc, 0 },
};

static int take(struct snap_cmd *c, int id, const char *v)
{
	static const char *const flags[] = { [O_JSON] = "--json", [O_STAT] = "--stat", [O_NAMES] = "--names",
					     [O_GUARDED] = "--guarded", [O_DRY] = "--dry", [O_CONTINUE] = "--continue",
					     [O_ABORT] = "--abort" };
	uint64_t n = 0;

	switch (id) {
	case O_ALL:
		c->all = true;
		return 0;
	case O_EXCLUDE:
		return snaps_pair(&c->call, "--exclude", v);
	case O_LABEL:
		if (strlen(v) > 60)
			return sb_err_set(&c->err, -EINVAL, "--label: at most 60 bytes");
		return snaps_pair(&c->call, "--label", v);
	case O_DRY:
		c->dry = true;
		return snaps_word(&c->call, flags[id]);
	case O_TO:
		c->to = v;
		return 0;
	case O_KEEP:
		if (sb_num_u64(v, 0, INT32_MAX, &n) < 0)
			return sb_err_set(&c->err, -EINVAL, "--keep \"%.40s\": a number", v);
		c->prune.keep = n;
		return 0;
	case O_MANUAL:
		c->prune.manual = true;
		return 0;
	case O_OLDER:
		if (sb_num_duration_ms(v, &n) < 0)
			return sb_err_set(&c->err, -EINVAL, "--older-than \"%.40s\": a time, as 30d", v);
		c->prune.before_ns = sb_real_ns();
		c->prune.before_ns -= SB_MIN(c->prune.before_ns - 1, n * 1000000U);
		return 0;
	default:
		return snaps_word(&c->call, flags[id]);
	}
}

static const struct verb *verb_of(const char *name)
{
	for (size_t i = 0; name && i < SB_ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

int cmd_snapshot(int argc, char **argv)
{
	static struct snap_cmd c = { .prune = { .keep = 20 } };
	const struct verb *v = verb_of(argc > 0 ? argv[0] : NULL);
	const char *value;
	bool dashes;
	uint32_t given = 0;
	int at = v ? 1 : 0;
	int id;
	int r = 0;

	snaps_call_init(&c.call, v ? v->name : "ls");
	if (v)
		cli_options_first(table, SB_ARRAY_LEN(table), argc - 1, argv + 1);
	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes, &c.err)) > 0) {
		if (id == O_HELP)
			return usage();
		if (v && !(v->may >> id & 1))
			r = sb_err_set(&c.err, -EINVAL, "snapshot %s has no such option; see sendbox snapshot "
				       "--help", v->name);
		given |= 1U << id;
		r = r < 0 ? r : take(&c, id, value);
	}
	if (id == 0 && !v)
		r = sb_err_set(&c.err, -EINVAL, "snapshot: ls, create, verify, diff, restore, rm, prune or gc; "
			       "see sendbox snapshot --help");
	if (id < 0 || r < 0) {
		cli_error("%s", c.err.text);
		return SB_EXIT_USAGE;
	}
	if ((given & 1U << O_NAMES) && (given & (1U << O_STAT | 1U << O_JSON))) {
		cli_error("--names excludes --stat and --json");
		return SB_EXIT_USAGE;
	}
	c.argc = argc - at;
	c.argv = argv + at;
	r = cli_dirs_init(&c.dirs, &c.err);
	if (r == 0)
		r = v->fn(&c);
	if (r < 0)
		cli_error("%s", c.err.text[0] ? c.err.text : strerror(-r));
	return r < 0 ? snaps_words_status(r) : r;
}
