/* sendbox session ls|show|keep|release|rm|gc: what is remembered of sessions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "cli.h"
#include "dirs.h"
#include "session_text.h"
#include "verbs.h"

enum { O_JSON = 1, O_PROJECT, O_AGENT, O_INSTANCE, O_END, O_SINCE, O_LIMIT, O_ALL, O_RAW, O_HELP };

static const struct cli_option table[] = {
	{ "json", 0, NULL, "ls, show: JSON, one object a line", O_JSON },
	{ "project", 0, "DIR", "ls: sessions of this folder alone", O_PROJECT },
	{ "agent", 0, "NAME", "ls: of this agent", O_AGENT },
	{ "instance", 0, "NAME", "ls: of this instance", O_INSTANCE },
	{ "end", 0, "HOW", "ls: running, ended, failed, cancelled, timeout or crashed", O_END },
	{ "since", 0, "TIME", "ls: begun within this time, as 2d", O_SINCE },
	{ "limit", 0, "N", "ls: the last N (default: 50, with --json all)", O_LIMIT },
	{ "all", 'a', NULL, "ls: those that built environments and exported instances, too", O_ALL },
	{ "no-redact", 0, NULL, "ls, show: leave in what looks like a secret", O_RAW },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	bool json;
	bool all;
	bool raw;
	bool help;
	const char *project;
	const char *agent;
	const char *instance;
	const char *end;
	uint64_t since_ns;
	uint64_t limit;
	const char *verb;
	const char *what;
	/* while listing */
	uint64_t n;
	size_t left_out;
};

static void help(void)
{
	printf("usage: sendbox session ls [options]\n"
	       "       sendbox session show [SESSION] [--json]\n"
	       "       sendbox session keep|release SESSION\n"
	       "       sendbox session rm SESSION\n"
	       "       sendbox session gc\n\n"
	       "What is remembered of sessions. One is named by the first digits of its id; show without\n"
	       "one takes the last session of this folder. keep: retention never removes it; rm: it is\n"
	       "forgotten, its audit records stay. sendbox report tells what a session did.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
}

static int take_end(struct args *a, const char *v, struct sb_err *err)
{
	for (int o = SESSION_RUNNING; o <= SESSION_CRASHED; o++)
		if (strcmp(v, session_outcome_name((enum session_outcome)o)) == 0)
			a->end = v;
	return a->end ? 0 : sb_err_set(err, -EINVAL, "--end \"%.60s\": must be running, ended, failed, "
				       "cancelled, timeout or crashed", v);
}

static int take(void *arg, int id, const char *v, struct sb_err *err)
{
	struct args *a = arg;
	uint64_t ms = 0;

	switch (id) {
	case O_JSON:
		a->json = true;
		return 0;
	case O_ALL:
		a->all = true;
		return 0;
	case O_RAW:
		a->raw = true;
		return 0;
	case O_PROJECT:
		a->project = v;
		return 0;
	case O_AGENT:
		a->agent = v;
		return 0;
	case O_INSTANCE:
		a->instance = v;
		return 0;
	case O_END:
		return take_end(a, v, err);
	case O_SINCE:
		if (sb_num_duration_ms(v, &ms) < 0)
			return sb_err_set(err, -EINVAL, "--since \"%.60s\": must be a time such as 12h, 2d", v);
		a->since_ns = ((uint64_t)time(NULL) * 1000 - ms) * 1000000;
		return 0;
	case O_LIMIT:
		return sb_num_u64(v, 1, UINT32_MAX, &a->limit) == 0
			       ? 0
			       : sb_err_set(err, -EINVAL, "--limit \"%.60s\": must be a number from 1", v);
	default:
		a->help = true;
		return 0;
	}
}

static int parse(int argc, char **argv, struct args *a, struct sb_err *err)
{
	static const struct verb_words v = { table, SB_ARRAY_LEN(table), take, 2, "word" };
	const char *words[2] = { a->verb, NULL };
	int n = verb_words(&v, a, argc, argv, words, err);

	a->verb = words[0];
	a->what = words[1];
	if (n == 0 && !a->help)
		return sb_err_set(err, -EINVAL, "say what: ls, show, keep, release, rm or gc");
	return n < 0 ? n : 0;
}

static int print_json(const struct args *a, const struct session_record *r, struct sb_err *err)
{
	json_t *o = session_text_json(r, !a->raw);
	char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;
	int k = s && puts(s) >= 0 ? 0 : sb_err_set(err, -ENOMEM, "cannot write the session as JSON");

	free(s);
	json_decref(o);
	return k;
}

/* ---- ls ---- */

static bool is(const char *want, const char *have)
{
	return !want || (have && strcmp(want, have) == 0);
}

static int list_one(void *arg, const struct session_record *r)
{
	struct args *a = arg;
	struct sb_err err = { 0 };

	if (a->since_ns && r->started_ns < a->since_ns)
		return 1; /* older ones follow */
	if ((r->kind != SESSION_COMMAND && !a->all) || !is(a->project, r->project) ||
	    !is(a->agent, r->agent) || !is(a->instance, r->instance) ||
	    !is(a->end, session_outcome_name(r->outcome)))
		return 0;
	if (a->limit && a->n == a->limit) {
		a->left_out++;
		return 0;
	}
	if (a->n++ == 0 && !a->json)
		session_text_head(stdout);
	if (a->json)
		return print_json(a, r, &err);
	session_text_line(stdout, r, !a->raw);
	return 0;
}

static int list(struct args *a, struct state *s, struct sb_err *err)
{
	char real[4096];
	int k;

	if (a->what)
		return sb_err_set(err, -EINVAL, "session ls takes no operand; --project DIR lists those of a "
						"folder");
	if (a->project && realpath(a->project, real))
		a->project = real;
	if (!a->limit && !a->json)
		a->limit = 50;
	k = session_record_each(s, list_one, a, err);
	if (k < 0)
		return k;
	if (a->n == 0 && !a->json)
		cli_error("no session%s is remembered", a->project || a->agent || a->instance || a->end || a->since_ns
								? " of that kind" : "");
	if (a->left_out > 0 && !a->json)
		printf("... and %zu more: --limit N\n", a->left_out);
	return 0;
}

/* ---- one ---- */

static int find(const struct args *a, struct state *s, struct session_record *ret, struct sb_err *err)
{
	char cwd[4096];

	if (a->what && strcmp(a->verb, "show") != 0)
		return session_record_get(s, a->what, NULL, ret, err);
	if (strcmp(a->verb, "show") != 0)
		return sb_err_set(err, -EINVAL, "session %s: which one? see sendbox session ls", a->verb);
	if (!getcwd(cwd, sizeof(cwd)))
		return sb_err_set(err, -errno, "the current folder: %s", strerror(errno));
	return session_text_find(s, a->what, cwd, ret, err);
}

static int show(struct args *a, struct state *s, struct sb_err *err)
{
	sb_autosession struct session_record r = { .kind = SESSION_KIND_NONE };
	int k = find(a, s, &r, err);

	if (k < 0)
		return k;
	if (a->json)
		return print_json(a, &r, err);
	session_text_show(stdout, &r, !a->raw);
	return 0;
}

static int done(const struct session_record *r, const char *what)
{
	char id[33];

	sb_hex_write(r->id, sizeof(r->id), id);
	printf("session %.12s %s\n", id, what);
	return 0;
}

static int keep(struct args *a, struct state *s, struct sb_err *err)
{
	bool keeps = strcmp(a->verb, "keep") == 0;
	sb_autosession struct session_record r = { .kind = SESSION_KIND_NONE };
	int k = find(a, s, &r, err);

	if (k == 0)
		k = session_record_keep(s, r.id, keeps, err);
	return k < 0 ? k : done(&r, keeps ? "kept: retention does not remove it" : "released: retention may remove it");
}

static int forget(struct args *a, struct state *s, struct sb_err *err)
{
	sb_autosession struct session_record r = { .kind = SESSION_KIND_NONE };
	int k = find(a, s, &r, err);

	if (k == 0)
		k = session_record_remove(s, r.id, err);
	return k < 0 ? k : done(&r, "forgotten; its audit records stay");
}

static int clear(struct args *a, struct state *s, struct sb_err *err)
{
	size_t n = 0;
	int k = a->what ? sb_err_set(err, -EINVAL, "session gc takes no operand")
			: session_record_gc(s, &n, err);

	if (k == 0)
		printf("%zu session%s marked as crashed\n", n, n == 1 ? "" : "s");
	return k;
}

int cmd_session(int argc, char **argv)
{
	static struct cli_dirs dirs;
	static const struct {
		const char *name;
		int (*run)(struct args *a, struct state *s, struct sb_err *err);
	} verbs[] = { { "ls", list },	   { "list", list },	{ "show", show }, { "keep", keep },
		      { "release", keep }, { "rm", forget }, { "gc", clear } };
	struct args a = { .verb = "" };
	struct sb_err err = { 0 };
	int k;

	if (argc == 0) { /* as key and config */
		help();
		return SB_EXIT_USAGE;
	}
	if (parse(argc, argv, &a, &err) < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	if (a.help) {
		help();
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(verbs); i++) {
		sb_autostate struct state *s = NULL;

		if (strcmp(verbs[i].name, a.verb) != 0)
			continue;
		k = cli_dirs_init(&dirs, &err);
		if (k == 0)
			k = state_open(&dirs.d, &s, &err);
		if (k < 0) {
			cli_error("%s", err.text);
			return SB_EXIT_INTERNAL;
		}
		k = verbs[i].run(&a, s, &err);
		if (k < 0)
			cli_error("%s", err.text);
		return k == -ENOENT || k == -ENOTUNIQ || k == -EINVAL || k == -EBUSY ? SB_EXIT_USAGE
		       : k < 0 || fflush(stdout) != 0				     ? SB_EXIT_INTERNAL
										     : SB_EXIT_OK;
	}
	cli_error("session \"%.60s\": must be ls, show, keep, release, rm or gc", a.verb);
	return SB_EXIT_USAGE;
}
