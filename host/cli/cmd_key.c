/* sendbox key list|rotate|export|trust|revoke: whose plans this host believes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "audit_key.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "grants.h"
#include "keys.h"
#include "plan_show.h"
#include "verbs.h"

enum { O_JSON = 1, O_FLOOR, O_NAME, O_FROM, O_FOR, O_HELP };

static const struct cli_option table[] = {
	{ "json", 0, NULL, "list: one line of JSON", O_JSON },
	{ "floor", 0, "now", "rotate: plans made before now are not run again", O_FLOOR },
	{ "name", 0, "TEXT", "trust: whose key it is", O_NAME },
	{ "valid-from", 0, "now|SECONDS", "trust: only plans made after this time", O_FROM },
	{ "valid-for", 0, "TIME", "trust: only plans made until TIME from now, as 90d", O_FOR },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	bool json;
	bool floor;
	bool help;
	const char *given[O_HELP]; /* by id: the option's name, if it was given */
	struct sb_key trust;
	const char *verb;
	const char *what;
};

static void help(void)
{
	printf("usage: sendbox key list [--json]\n"
	       "       sendbox key rotate [--floor now]\n"
	       "       sendbox key export [ID]\n"
	       "       sendbox key trust FILE|KEY [--name TEXT] [--valid-from now] [--valid-for TIME]\n"
	       "       sendbox key revoke ID\n\n"
	       "Keys that plans are signed with, and the key of the audit log. A key is named by its first\n"
	       "digits. A change is recorded in the audit log, or refused.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
}

static int take(void *arg, int id, const char *v, struct sb_err *err)
{
	struct args *a = arg;
	uint64_t now = (uint64_t)time(NULL);
	uint64_t ms = 0;

	if (id < O_HELP)
		a->given[id] = table[id - O_JSON].name;
	switch (id) {
	case O_JSON:
		a->json = true;
		return 0;
	case O_FLOOR:
		a->floor = true;
		return strcmp(v, "now") == 0
			       ? 0
			       : sb_err_set(err, -EINVAL, "--floor \"%.60s\": must be now", v);
	case O_NAME:
		a->trust.name = (char *)(uintptr_t)v;
		if (strlen(v) > SB_KEY_NAME_MAX)
			return sb_err_set(err, -EINVAL, "--name: longer than %d bytes",
					  SB_KEY_NAME_MAX);
		for (; *v; v++)
			if ((unsigned char)*v < 0x20 || *v == 0x7f)
				return sb_err_set(err, -EINVAL, "--name: holds control characters");
		return 0;
	case O_FROM:
		a->trust.from = now;
		if (strcmp(v, "now") != 0 && sb_num_u64(v, 1, INT64_MAX, &a->trust.from) < 0)
			return sb_err_set(err, -EINVAL, "--valid-from \"%.60s\": must be now, or "
					  "seconds since 1970", v);
		return 0;
	case O_FOR:
		if (sb_num_duration_ms(v, &ms) < 0)
			return sb_err_set(err, -EINVAL, "--valid-for \"%.60s\": must be a time such as "
					  "12h, 90d", v);
		a->trust.until = now + ms / 1000;
		return 0;
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
		return sb_err_set(err, -EINVAL, "say what: list, rotate, export, trust or revoke");
	return n < 0 ? n : 0;
}

/* ---- list ---- */

static const char *kind(const struct sb_key *k, bool current)
{
	if (k && k->revoked)
		return "revoked";
	if (current)
		return "own";
	return k && k->own ? "own, former" : "trusted";
}

static void list_json(const uint8_t key[32], const struct sb_key *k, bool current)
{
	char hex[65];

	sb_hex_write(key, 32, hex);
	printf("{\"from\":%llu,\"is\":\"%s\",\"key\":\"%s\",\"name\":\"",
	       (unsigned long long)(k ? k->from : 0), kind(k, current), hex);
	for (const char *c = k ? k->name : ""; *c; c++) {
		if (*c == '"' || *c == '\\')
			(void)putchar('\\');
		(void)putchar(*c);
	}
	printf("\",\"revoked\":%llu,\"until\":%llu}", (unsigned long long)(k ? k->revoked : 0),
	       (unsigned long long)(k && !current ? k->until : 0));
}

static void list_line(const uint8_t key[32], const struct sb_key *k, bool current)
{
	char id[CLI_KEY_ID_ROOM];
	char from[PLAN_TIME_ROOM] = "-";
	char until[PLAN_TIME_ROOM] = "-";

	cli_key_id(key, id);
	if (k && k->from)
		plan_time_text(k->from, from);
	if (k && k->until && !current)
		plan_time_text(k->until, until);
	if (k && k->revoked)
		plan_time_text(k->revoked, until);
	printf("%s  %-11s  %-23s  %-23s  ", id, kind(k, current), from, until);
	plan_put(stdout, k ? k->name : "");
	(void)putchar('\n');
}

static void list_audit(const uint8_t key[32])
{
	char id[CLI_KEY_ID_ROOM];

	cli_key_id(key, id);
	printf("%s  %-11s  %-23s  %-23s  the audit log's; signs no plans\n", id, "audit", "-", "-");
}

static int list(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	cli_autokeys struct cli_keys keys = { .list = { .n = 0 } };
	char floor[PLAN_TIME_ROOM];
	const struct sb_key *k;
	uint8_t audit[32] = { 0 };
	char hex[65];
	bool has_audit;
	int r = cli_keys_load(d, &keys, err);

	if (r < 0)
		return r;
	r = audit_public(d, audit, err);
	if (r < 0 && r != -ENOENT)
		return r;
	has_audit = r == 0;
	k = sb_key_list_find(&keys.list, keys.current);
	if (a->json) {
		sb_hex_write(audit, sizeof(audit), hex);
		printf("{\"audit\":\"%s\",\"floor\":%llu,\"keys\":[", has_audit ? hex : "",
		       (unsigned long long)keys.list.floor);
		list_json(keys.current, k, true);
	} else {
		printf("%-16s  %-11s  %-23s  %-23s  %s\n", "KEY", "IS", "FROM", "UNTIL", "NAME");
		list_line(keys.current, k, true);
	}
	for (size_t i = 0; i < keys.list.n; i++) {
		k = &keys.list.keys[i];
		if (memcmp(k->key, keys.current, 32) == 0)
			continue;
		if (a->json) {
			(void)putchar(',');
			list_json(k->key, k, false);
		} else {
			list_line(k->key, k, false);
		}
	}
	if (a->json) {
		(void)puts("]}");
		return 0;
	}
	if (has_audit)
		list_audit(audit);
	if (keys.list.floor) {
		plan_time_text(keys.list.floor, floor);
		printf("plans made before %s are not run again\n", floor);
	}
	return 0;
}

/* ---- the others ---- */

static int rotate(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	uint8_t key[32];
	char hex[65];
	int r = grants_rotate(d, a->floor, key, err);

	if (r < 0)
		return r;
	sb_hex_write(key, 32, hex);
	printf("new key: %s\nthe former one still verifies what it has signed; sessions that run keep "
	       "theirs, and cannot be changed with sendbox net any more\n", hex);
	return 0;
}

static int export(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	cli_autokeys struct cli_keys keys = { .list = { .n = 0 } };
	uint8_t key[32];
	char hex[65];
	int r = cli_keys_load(d, &keys, err);

	if (r == 0)
		r = cli_keys_find(&keys, a->what, key, err);
	if (r < 0)
		return r;
	sb_hex_write(key, 32, hex);
	(void)puts(hex);
	return 0;
}

static int trust(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	struct sb_key k = a->trust;
	char id[CLI_KEY_ID_ROOM];
	int r;

	if (!a->what)
		return sb_err_set(err, -EINVAL, "key trust: which key? The file or the text of sendbox key export");
	if (!k.name)
		k.name = (char *)(uintptr_t) "";
	r = cli_key_read(a->what, k.key, err);
	if (r == 0)
		r = cli_keys_trust(d, &k, err);
	if (r < 0)
		return r;
	cli_key_id(k.key, id);
	printf("plans signed with %s can be run here with sendbox run --plan\n", id);
	return 0;
}

static int revoke(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	uint8_t key[32];
	char id[CLI_KEY_ID_ROOM];
	int r = a->what ? cli_keys_revoke(d, a->what, key, err)
			: sb_err_set(err, -EINVAL, "key revoke: which one? see sendbox key list");

	if (r < 0)
		return r;
	cli_key_id(key, id);
	printf("%s is revoked; plans made before now are not run again, whoever signed them\n", id);
	return 0;
}

#define OPT(id) (1U << (id))
static const struct verb_of_key {
	const char *name;
	int (*run)(const struct args *a, const struct sb_dirs *d, struct sb_err *err);
	bool operand;     /* it takes one */
	unsigned int may; /* options, by id */
} verbs[] = {
	{ "list", list, false, OPT(O_JSON) },
	{ "rotate", rotate, false, OPT(O_FLOOR) },
	{ "export", export, true, 0 },
	{ "trust", trust, true, OPT(O_NAME) | OPT(O_FROM) | OPT(O_FOR) },
	{ "revoke", revoke, true, 0 },
};

/* A word that means nothing here meant something to whoever wrote it: nothing is changed then. */
static int check_verb(const struct args *a, const struct verb_of_key **ret, struct sb_err *err)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(verbs); i++) {
		const struct verb_of_key *v = &verbs[i];

		if (strcmp(v->name, a->verb) != 0)
			continue;
		if (a->what && !v->operand)
			return sb_err_set(err, -EINVAL, "key %s takes no operand: \"%.60s\" is one word too many",
					  v->name, a->what);
		for (int id = O_JSON; id < O_HELP; id++)
			if (a->given[id] && !(v->may & OPT(id)))
				return sb_err_set(err, -EINVAL, "key %s has no --%s; see sendbox key --help", v->name,
						  a->given[id]);
		*ret = v;
		return 0;
	}
	return sb_err_set(err, -EINVAL, "key \"%.60s\": must be list, rotate, export, trust or revoke", a->verb);
}

int cmd_key(int argc, char **argv)
{
	static struct cli_dirs dirs;
	const struct verb_of_key *v = NULL;
	struct args a = { .verb = "" };
	struct sb_err err = { 0 };

	if (argc == 0) { /* as config and policy */
		help();
		return SB_EXIT_USAGE;
	}
	if (parse(argc, argv, &a, &err) < 0 || (!a.help && check_verb(&a, &v, &err) < 0)) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	if (a.help) {
		help();
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	if (sb_crypto_init() < 0 || cli_dirs_init(&dirs, &err) < 0) {
		cli_error("%s", err.code ? err.text : "no crypto library");
		return SB_EXIT_INTERNAL;
	}
	if (v->run(&a, &dirs.d, &err) < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
}
