/* sendbox plan show|diff|verify: signed plans, of sessions and from elsewhere. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "options.h"
#include "plan_show.h"
#include "plan_store.h"

enum { O_JSON = 1, O_KEY, O_ALL, O_HELP };

static const struct cli_option table[] = {
	{ "json", 0, NULL, "as one line of JSON", O_JSON },
	{ "key", 0, "FILE", "verify: with this public key and nothing of this host", O_KEY },
	{ "all", 0, NULL, "diff: also session, times and identities of files", O_ALL },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	const char *verb;
	bool json;
	bool all;
	bool help;
	const char *key;
	char **what;
	int n;
};

static void help(void)
{
	printf("usage: sendbox plan show FILE|SESSION [--json]\n"
	       "       sendbox plan diff A B [--json] [--all]\n"
	       "       sendbox plan verify FILE|SESSION [--key FILE] [--json]\n\n"
	       "Signed plans: of the last %d sessions, by the first digits of their id, and as\n"
	       "sendbox run --dry-run prints them. \"diff\" ends with 1 when the two differ.\n\n",
	       PLAN_STORE_KEEP);
	cli_options_help(table, SB_ARRAY_LEN(table));
}

static int take(struct args *a, int id, const char *v)
{
	switch (id) {
	case O_JSON:
		a->json = true;
		break;
	case O_KEY:
		a->key = v;
		break;
	case O_ALL:
		a->all = true;
		break;
	default:
		a->help = true;
	}
	return 0;
}

/* Options before and after the operands. */
static int parse(int argc, char **argv, struct args *a, struct sb_err *err)
{
	int out = 0;

	for (int at = 0;;) {
		const char *v;
		bool dashes;
		int id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &v, &dashes,
					  err);

		if (id < 0)
			return id;
		if (id > 0) {
			(void)take(a, id, v);
			continue;
		}
		if (at >= argc)
			break;
		argv[out++] = argv[at++];
	}
	if (a->help)
		return 0;
	if (out > 0)
		a->verb = argv[0];
	a->what = argv + 1;
	a->n = out - 1;
	return out > 0 ? 0 : sb_err_set(err, -EINVAL, "say what: show, diff or verify");
}

static int refuse(int r, const struct sb_err *err)
{
	cli_error("%s", err->text);
	switch (r) {
	case -EKEYREJECTED:
	case -EKEYEXPIRED:
	case -EKEYREVOKED:
	case -EBADMSG:
		return SB_EXIT_PLAN_REFUSED;
	default:
		return SB_EXIT_USAGE;
	}
}

/* The host's keys are asked only when there is a host to ask. */
static const char *standing(const struct cli_keys *keys, const struct plan_loaded *l,
			    struct sb_err *why)
{
	const struct sb_key *k = sb_key_list_find(&keys->list, l->file.key);

	if (cli_keys_check(keys, l->file.key, l->plan->created_unix_s, why) < 0)
		return "untrusted";
	if (memcmp(l->file.key, keys->current, 32) == 0)
		return "own";
	return k && k->own ? "own, former" : "trusted";
}

/* ---- show ---- */

static int show_json(const struct plan_loaded *l, const char *trust)
{
	json_t *plan = json_loadb(l->file.plan, l->file.plan_len, 0, NULL);
	char key[65];
	char sha[65];
	char *text;
	json_t *o;

	sb_hex_write(l->file.key, 32, key);
	sb_hex_write(l->sha256, 32, sha);
	o = json_pack("{s:s,s:s,s:s,s:o}", "key", key, "key_is", trust, "sha256", sha, "plan", plan);
	text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(o);
	if (text)
		(void)puts(text);
	free(text);
	return text ? SB_EXIT_OK : SB_EXIT_INTERNAL;
}

static int show(const struct args *a, const struct sb_dirs *d)
{
	autoloaded struct plan_loaded l = { .plan = NULL };
	cli_autokeys struct cli_keys keys = { .list = { .n = 0 } };
	struct sb_err err = { 0 };
	struct sb_err why = { 0 };
	char id[CLI_KEY_ID_ROOM];
	char sha[65];
	const char *trust;
	int r = plan_load(a->what[0], d, NULL, &l, &err);

	if (r == 0)
		r = cli_keys_load(d, &keys, &err);
	if (r < 0)
		return refuse(r, &err);
	trust = standing(&keys, &l, &why);
	if (a->json)
		return show_json(&l, trust);
	sb_hex_write(l.sha256, 32, sha);
	cli_key_id(l.file.key, id);
	printf("%-13s %s\n%-13s %s (%s%s%s)\n", "plan", sha, "signed with", id, trust,
	       why.code ? ": " : "", why.code ? why.text : "");
	plan_show(stdout, l.plan);
	return SB_EXIT_OK;
}

/* ---- diff ---- */

static const char *const apart[] = { "session", "created", "expires", "reviewed_sha256",
				     "mounts.dev", "mounts.ino", "image_dev", "image_ino", NULL };

static void on_difference(void *arg, const char *path, const char *x, const char *y)
{
	json_t *list = arg;

	if (list) {
		json_t *a = x ? json_loads(x, JSON_DECODE_ANY, NULL) : json_null();
		json_t *b = y ? json_loads(y, JSON_DECODE_ANY, NULL) : json_null();

		(void)json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "path", path, "a", a,
							    "b", b));
		return;
	}
	plan_put(stdout, path);
	(void)putchar('\n');
	if (x) {
		(void)fputs("  - ", stdout);
		plan_put(stdout, x);
		(void)putchar('\n');
	}
	if (y) {
		(void)fputs("  + ", stdout);
		plan_put(stdout, y);
		(void)putchar('\n');
	}
}

static int diff(const struct args *a, const struct sb_dirs *d)
{
	autoloaded struct plan_loaded x = { .plan = NULL };
	autoloaded struct plan_loaded y = { .plan = NULL };
	json_t *list = a->json ? json_array() : NULL;
	struct sb_err err = { 0 };
	int r = plan_load(a->what[0], d, NULL, &x, &err);

	if (r == 0)
		r = plan_load(a->what[1], d, NULL, &y, &err);
	if (r < 0) {
		json_decref(list);
		return refuse(r, &err);
	}
	r = sb_plan_diff(x.file.plan, x.file.plan_len, y.file.plan, y.file.plan_len,
			 a->all ? NULL : apart, on_difference, list);
	if (list) {
		char *text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS);

		if (text)
			(void)puts(text);
		free(text);
		json_decref(list);
	}
	if (r < 0) {
		cli_error("cannot compare the plans: %s", strerror(-r));
		return SB_EXIT_INTERNAL;
	}
	return r > 0 ? 1 : SB_EXIT_OK;
}

/* ---- verify ---- */

static int tell_valid(const struct args *a, const struct plan_loaded *l, const char *trust)
{
	bool expired = (uint64_t)time(NULL) > l->plan->expires_unix_s;
	char made[PLAN_TIME_ROOM];
	char ends[PLAN_TIME_ROOM];
	char session[33];
	char key[65];
	char sha[65];

	sb_hex_write(l->plan->session, 16, session);
	sb_hex_write(l->file.key, 32, key);
	sb_hex_write(l->sha256, 32, sha);
	plan_time_text(l->plan->created_unix_s, made);
	plan_time_text(l->plan->expires_unix_s, ends);
	if (a->json)
		printf("{\"created\":%llu,\"expired\":%s,\"expires\":%llu,\"key\":\"%s\","
		       "\"key_is\":\"%s\",\"session\":\"%s\",\"sha256\":\"%s\",\"valid\":true}\n",
		       (unsigned long long)l->plan->created_unix_s, expired ? "true" : "false",
		       (unsigned long long)l->plan->expires_unix_s, key, trust, session, sha);
	else
		printf("valid: session %s\nplan %s\nsigned with %s (%s)\nmade %s, to be started "
		       "before %s%s\n", session, sha, key, trust, made, ends,
		       expired ? " (over)" : "");
	return SB_EXIT_OK;
}

/* @d: NULL when a file is verified with a key that was given */
static int verify(const struct args *a, const struct sb_dirs *d)
{
	autoloaded struct plan_loaded l = { .plan = NULL };
	cli_autokeys struct cli_keys keys = { .list = { .n = 0 } };
	struct sb_err err = { 0 };
	uint8_t key[32];
	int r = a->key ? cli_key_read(a->key, key, &err) : 0;

	if (r == 0)
		r = plan_load(a->what[0], d, a->key ? key : NULL, &l, &err);
	if (r == 0 && !a->key)
		r = cli_keys_load(d, &keys, &err);
	if (r == 0 && !a->key)
		r = cli_keys_check(&keys, l.file.key, l.plan->created_unix_s, &err);
	if (r < 0)
		return refuse(r, &err);
	return tell_valid(a, &l, a->key ? "given" : standing(&keys, &l, &err));
}

int cmd_plan(int argc, char **argv)
{
	static struct cli_dirs dirs;
	static const struct {
		const char *name;
		int n;
		int (*run)(const struct args *a, const struct sb_dirs *d);
	} verbs[] = { { "show", 1, show }, { "diff", 2, diff }, { "verify", 1, verify } };
	const char *foreign;
	struct args a = { .verb = "" };
	struct sb_err err = { 0 };
	bool alone;
	int status;

	if (argc == 0) { /* as config and policy */
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
		if (strcmp(verbs[i].name, a.verb) != 0)
			continue;
		if (a.n != verbs[i].n) {
			cli_error("plan %s wants %s; see sendbox plan --help", a.verb,
				  verbs[i].n == 1 ? "one file or session" : "two files or sessions");
			return SB_EXIT_USAGE;
		}
		foreign = a.key && verbs[i].run != verify ? "key" : a.all && verbs[i].run != diff ? "all" : NULL;
		if (foreign) {
			cli_error("plan %s has no --%s; see sendbox plan --help", a.verb, foreign);
			return SB_EXIT_USAGE;
		}
		if (sb_crypto_init() < 0)
			return SB_EXIT_INTERNAL;
		alone = a.key && verbs[i].run == verify && plan_names_file(a.what[0]);
		if (!alone && cli_dirs_init(&dirs, &err) < 0) {
			cli_error("%s", err.text);
			return SB_EXIT_INTERNAL;
		}
		status = verbs[i].run(&a, alone ? NULL : &dirs.d);
		return fflush(stdout) == 0 ? status : SB_EXIT_INTERNAL;
	}
	cli_error("plan \"%.60s\": must be show, diff or verify", a.verb);
	return SB_EXIT_USAGE;
}
