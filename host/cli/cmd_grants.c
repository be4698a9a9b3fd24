/* sendbox grants ls|revoke: what was said for ever. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "grants.h"
#include "options.h"
#include "plan_show.h"

enum { O_JSON = 1, O_ALL, O_HELP };

static const struct cli_option table[] = {
	{ "json", 0, NULL, "ls: one line of JSON", O_JSON },
	{ "all", 0, NULL, "revoke: every grant and deny rule; also when they do not count any more", O_ALL },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	bool json;
	bool all;
	bool help;
	const char *verb;
	const char *what;
};

static int help(void)
{
	printf("usage: sendbox grants ls [--json]\n       sendbox grants revoke ID|--all\n\n"
	       "Grants and deny rules that outlive their session.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
}

static bool over(const struct sb_appr_grant *g)
{
	uint64_t now = (uint64_t)time(NULL);

	return g->expires_s != 0 && (now >= g->expires_s || now < g->created_s);
}

static json_t *one_json(const struct sb_appr_grant *g, bool sound)
{
	char hex[65];

	sb_hex_write(g->bound, 32, hex);
	return json_pack("{s:I,s:s,s:s,s:s,s:s,s:b,s:I,s:I,s:I,s:s,s:b}", "id", (json_int_t)g->id, "action",
			 g->deny ? "deny" : "allow", "kind", sb_appr_kind_name(g->kind), "subject",
			 g->subject, "rule", g->rule, "pattern", g->pattern, "created",
			 (json_int_t)g->created_s, "expires", (json_int_t)g->expires_s, "uses_left",
			 (json_int_t)g->uses, "policy", g->deny ? "" : hex, "counts",
			 (g->deny || sound) && !over(g));
}

static void one_line(const struct sb_appr_grant *g, bool sound)
{
	char until[40] = "never";

	if (g->expires_s != 0)
		plan_time_text(g->expires_s, until);
	printf("%lld  %s  %s  %s%s%s\n", (long long)g->id, g->deny ? "deny " : "allow",
	       sb_appr_kind_name(g->kind), g->subject, g->pattern ? "  (pattern)" : "",
	       over(g) ? "  (expired)" : !g->deny && !sound ? "  (does not count)" : "");
	if (!g->deny)
		printf("    rule: %s; until %s", g->rule, until);
	if (g->uses > 0)
		printf("; %u use%s left", g->uses, g->uses == 1 ? "" : "s");
	if (!g->deny)
		(void)putchar('\n');
}

static int list(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	sb_autogrants struct grants g = { 0 };
	json_t *all = json_array();
	json_t *j;
	int r = grants_load(d, &g, err);

	for (size_t i = 0; r == 0 && i < g.n; i++) {
		if (a->json)
			(void)json_array_append_new(all, one_json(&g.g[i], g.sound));
		else
			one_line(&g.g[i], g.sound);
	}
	if (r == 0 && a->json) {
		j = json_pack("{s:i,s:b,s:I,s:O}", "schema_version", 1, "sound", g.sound, "generation",
			      (json_int_t)g.generation, "grants", all);
		if (j && json_dumpf(j, stdout, JSON_COMPACT) == 0)
			(void)putchar('\n');
		json_decref(j);
	} else if (r == 0 && g.n == 0) {
		printf("no grants\n");
	}
	if (r == 0 && !g.sound)
		r = sb_err_set(err, -ESTALE, "%s", g.why);
	json_decref(all);
	return r;
}

static int revoke(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	uint64_t id = 0;
	size_t n = 0;
	int r;

	if (a->all == (a->what != NULL) || (a->what && sb_num_u64(a->what, 1, INT64_MAX, &id) < 0))
		return sb_err_set(err, -EINVAL, "write: sendbox grants revoke ID, as sendbox grants ls shows "
						"it, or --all");
	r = grants_revoke(d, (int64_t)id, &n, err);
	if (r == 0)
		printf("%zu revoked\n", n);
	return r;
}

static int parse(int argc, char **argv, struct args *a, struct sb_err *err)
{
	const char *value;
	bool dashes = false;
	int at = 0;

	while (at < argc) {
		int id = dashes ? 0 : cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value,
						       &dashes, err);

		if (id < 0)
			return id;
		a->json |= id == O_JSON;
		a->all |= id == O_ALL;
		a->help |= id == O_HELP;
		if (id > 0 || at >= argc)
			continue;
		if (!a->verb)
			a->verb = argv[at++];
		else if (!a->what)
			a->what = argv[at++];
		else
			return sb_err_set(err, -EINVAL, "one at a time, not \"%.60s\" too", argv[at]);
	}
	return 0;
}

int cmd_grants(int argc, char **argv)
{
	static struct cli_dirs dirs;
	struct args a = { 0 };
	struct sb_err err = { 0 };
	int r = parse(argc, argv, &a, &err);

	if (r == 0 && a.help)
		return help();
	if (argc == 0)
		return (void)help(), SB_EXIT_USAGE;
	if (r == 0 && (!a.verb || (strcmp(a.verb, "ls") != 0 && strcmp(a.verb, "revoke") != 0)))
		r = sb_err_set(&err, -EINVAL, "grants \"%.60s\": must be ls or revoke", a.verb ? a.verb : "");
	if (r == 0 && (a.all || a.what) && strcmp(a.verb, "ls") == 0)
		r = sb_err_set(&err, -EINVAL, "grants ls takes no operands");
	if (r < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	if (sb_crypto_init() < 0)
		r = sb_err_set(&err, -EIO, "no crypto library");
	if (r == 0)
		r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = strcmp(a.verb, "ls") == 0 ? list(&a, &dirs.d, &err) : revoke(&a, &dirs.d, &err);
	if (r == 0)
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
	cli_error("%s", err.text);
	return r == -EINVAL ? SB_EXIT_USAGE : r == -ENOENT || r == -ESTALE ? SB_EXIT_NO : SB_EXIT_INTERNAL;
}
