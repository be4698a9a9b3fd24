#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli.h"
#include "cmd_config.h"
#include "conf_cmd.h"
#include "conf_show.h"
#include "net_text.h"
#include "trust.h"

enum { O_AGENT = 1, O_CONFIG, O_NO_CONFIG, O_PROJECT, O_JSON, O_HELP };
static const struct cli_option table[] = {
	{ "config", 'c', "FILE", "use this file instead of looking for .sendbox.yaml", O_CONFIG },
	{ "no-config", 0, NULL, "read no project file", O_NO_CONFIG },
	{ "agent", 0, "NAME", "with what this agent's definition says", O_AGENT },
	{ "project", 0, "DIR", "look in this folder and those above it", O_PROJECT },
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	struct conf_cmd c;
	const char *operand; /* NULL = none */
	bool help;
};

/* Options may stand on both sides of the operand. */
static int parse(struct args *a, int argc, char **argv, struct sb_err *err)
{
	const char *value;
	bool dashes = false;
	int at = 0;

	while (at < argc) {
		int id = dashes ? 0
				: cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at,
						   &value, &dashes, err);

		if (id < 0)
			return id;
		if (id == O_CONFIG)
			a->c.opt.config = value;
		else if (id == O_NO_CONFIG)
			a->c.opt.no_config = true;
		else if (id == O_AGENT)
			a->c.agent = value;
		else if (id == O_PROJECT)
			a->c.opt.project = value;
		else if (id == O_JSON)
			a->c.json = true;
		else if (id == O_HELP)
			a->help = true;
		if (id > 0 || at >= argc)
			continue;
		if (a->operand)
			return sb_err_set(err, -EINVAL, "one operand at a time, not \"%.60s\" too",
					  argv[at]);
		a->operand = argv[at++];
	}
	return 0;
}

static int usage(const struct args *a, const char *text)
{
	return conf_fail(a->c.json, SB_EXIT_USAGE, "usage", "", "%s", text);
}

/* ---- check ---- */

static int check(struct args *a)
{
	struct conf_cmd *c = &a->c;
	int status;

	if (a->operand)
		c->opt.config = a->operand;
	status = conf_cmd_load(c);
	if (status == 0)
		status = conf_cmd_plan(c);
	if (status != 0)
		return status;
	if (c->json)
		return conf_print(json_pack("{s:i,s:b,s:b,s:s,s:s,s:[]}", "schema_version", 1, "ok", 1,
					    "valid", 1, "config", conf_cmd_file(c), "sandbox",
					    cfg_str(c->conf.loaded.cfg, "name", ""), "diagnostics"),
				  SB_EXIT_OK);
	for (size_t i = 0; i < c->conf.loaded.n_files; i++)
		conf_say("%s: ok (%s)", c->conf.loaded.files[i].path,
			 cfg_layer_name(c->conf.loaded.files[i].layer));
	if (c->conf.loaded.n_files == 0)
		printf("no file: the built-in defaults are in force\n");
	return conf_flush(SB_EXIT_OK);
}

/* ---- explain, show ---- */

struct explaining {
	const struct conf_cmd *c;
	const char *key; /* NULL = every one that is set */
	json_t *list;    /* with --json */
	bool all;        /* not set ones, too */
	bool brief;      /* show: a line each */
	size_t n;
};

static bool beneath(const char *path, const char *key)
{
	size_t n = strlen(key);

	return strncmp(path, key, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

static void where_of(const struct explaining *e, const struct cfg_value *v, char *out, size_t cap)
{
	if (!v)
		(void)snprintf(out, cap, "nobody sets it");
	else if (v->origin.layer == CFG_DEFAULT)
		(void)snprintf(out, cap, "built-in default");
	else
		cfg_options_where(&e->c->conf.line, v, out, cap);
}

/* Each entry of a list may come from another file. */
static void explain_items(struct explaining *e, const struct cfg_value *v)
{
	for (size_t i = 0; i < v->n; i++) {
		char text[300];
		char name[100] = "";
		char where[PATH_MAX];

		conf_value_text(&v->items[i], text, sizeof(text));
		where_of(e, &v->items[i], where, sizeof(where));
		if (v->kind == DOC_MAP)
			net_text_escape(v->keys[i], strlen(v->keys[i]), name, sizeof(name));
		conf_say("    %s%s%s    %s (%s)", name, name[0] ? ": " : "", text, where,
			 cfg_layer_name(v->items[i].origin.layer));
	}
}

static void explain_text(struct explaining *e, const struct cfg_key *k, const struct cfg_value *v)
{
	bool list = v && (v->kind == DOC_SEQ || v->kind == DOC_MAP);
	char text[400];
	char where[PATH_MAX];

	where_of(e, v, where, sizeof(where));
	conf_value_text(v, text, sizeof(text));
	if (list) {
		printf("%s:%s\n", k->path, v->n == 0 ? " (empty)" : "");
	} else {
		printf("%s: %s\n", k->path, text);
		conf_say("    %s%s%s%s", where, v && v->origin.layer != CFG_DEFAULT ? " (" : "",
			 v && v->origin.layer != CFG_DEFAULT ? cfg_layer_name(v->origin.layer) : "",
			 v && v->origin.layer != CFG_DEFAULT ? ")" : "");
	}
	if (list)
		explain_items(e, v);
	if (v && v->locked_by)
		conf_say("    locked by %s", v->locked_by->file);
	if (e->key)
		printf("    %s%s\n", k->help,
		       k->state == CFG_NOT_YET ? "; not available yet" : "");
}

static json_t *items_json(const struct cfg_value *v)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < v->n; i++) {
		json_t *o = json_pack("{s:o,s:o}", "value", conf_value_json(&v->items[i]), "origin",
				      conf_origin_json(&v->items[i]));

		if (o && v->kind == DOC_MAP)
			(void)json_object_set_new(o, "name", json_string(v->keys[i]));
		(void)json_array_append_new(list, o);
	}
	return list;
}

static void explain_one(void *arg, const struct cfg_key *k, const struct cfg_value *v)
{
	struct explaining *e = arg;
	bool set = v && v->kind != DOC_NULL && v->origin.layer != CFG_DEFAULT;

	if (e->key ? !beneath(k->path, e->key) : !set && !e->all)
		return;
	e->n++;
	if (!e->list) {
		if (e->brief) {
			char text[300];
			char where[PATH_MAX];

			conf_value_text(v, text, sizeof(text));
			where_of(e, v, where, sizeof(where));
			conf_say("%s: %s    # %s", k->path, text, where);
		} else {
			explain_text(e, k, v);
		}
		return;
	}
	{
		json_t *o = json_pack("{s:s,s:b,s:o,s:o,s:s}", "key", k->path, "set", set, "value",
				      conf_value_json(v), "origin", conf_origin_json(v), "help",
				      k->help);

		if (o && v && (v->kind == DOC_SEQ || v->kind == DOC_MAP))
			(void)json_object_set_new(o, "items", items_json(v));
		if (o && v && v->locked_by)
			(void)json_object_set_new(o, "locked_by", json_string(v->locked_by->file));
		(void)json_array_append_new(e->list, o);
	}
}

/* The key that is nearest to a wrong one. */
static const char *near_key(const char *word)
{
	const char *best = NULL;
	size_t most = 3;

	for (size_t i = 0; i < cfg_n_keys; i++) {
		const char *p = cfg_keys[i].path;
		const char *last = strrchr(p, '.') ? strrchr(p, '.') + 1 : p;
		const char *asked = strrchr(word, '.') ? strrchr(word, '.') + 1 : word;
		size_t same = 0;

		if (strchr(p, '[') || strchr(p, '*'))
			continue;
		while (last[same] && last[same] == asked[same])
			same++;
		if (same > most) {
			most = same;
			best = p;
		}
	}
	return best;
}

static int explain(struct args *a)
{
	struct explaining e = { .c = &a->c, .key = a->operand };
	int status = conf_cmd_load(&a->c);
	const char *near;

	if (status != 0)
		return status;
	e.list = a->c.json ? json_array() : NULL;
	conf_each_key(a->c.conf.loaded.cfg, explain_one, &e);
	if (e.n == 0 && e.key) {
		json_decref(e.list);
		near = near_key(e.key);
		return conf_fail(a->c.json, SB_EXIT_USAGE, "unknown_key", e.key,
				 "there is no key \"%.100s\"%s%s; sendbox config schema lists them", e.key,
				 near ? ", did you mean " : "", near ? near : "");
	}
	if (e.list)
		return conf_print(json_pack("{s:i,s:b,s:o}", "schema_version", 1, "ok", 1, "keys",
					    e.list), SB_EXIT_OK);
	if (e.n == 0)
		printf("nothing is set: the built-in defaults are in force\n");
	return conf_flush(SB_EXIT_OK);
}

static int show(struct args *a)
{
	struct explaining e = { .c = &a->c, .all = true, .brief = true };
	char *text = NULL;
	size_t len = 0;
	json_t *o;
	int status = conf_cmd_load(&a->c);

	if (status != 0)
		return status;
	if (a->operand)
		return usage(a, "config show takes no operand; for one key: sendbox config explain KEY");
	if (!a->c.json) {
		conf_each_key(a->c.conf.loaded.cfg, explain_one, &e);
		return conf_flush(SB_EXIT_OK);
	}
	if (cfg_json(a->c.conf.loaded.cfg, &text, &len) < 0)
		return conf_print(NULL, 0);
	o = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	free(text);
	return conf_print(o ? json_pack("{s:i,s:b,s:s,s:o}", "schema_version", 1, "ok", 1, "config",
					conf_cmd_file(&a->c), "effective", o) : NULL, SB_EXIT_OK);
}

/* ---- schema, migrate ---- */

static int schema(struct args *a)
{
	char *text = NULL;
	size_t len = 0;

	if (a->operand)
		return usage(a, "config schema takes no operand");
	if (cfg_schema(&text, &len) < 0)
		return conf_print(NULL, 0);
	(void)fwrite(text, 1, len, stdout);
	if (len > 0 && text[len - 1] != '\n')
		(void)putchar('\n');
	free(text);
	return conf_flush(SB_EXIT_OK);
}

static int migrate(struct args *a)
{
	struct problems p = { 0 };
	sb_autofree char *bytes = NULL;
	sb_autofree char *text = NULL;
	size_t len = 0;
	size_t new_len = 0;
	size_t changes = 0;
	int status;
	int r;

	if (!a->operand)
		return usage(a, "write: sendbox config migrate FILE");
	r = sb_fd_read_file(AT_FDCWD, a->operand, DOC_MAX_BYTES, &bytes, &len);
	if (r < 0)
		return conf_fail(a->c.json, SB_EXIT_USAGE, "io", a->operand, "cannot read %.300s: %s",
				 a->operand, strerror(-r));
	r = cfg_migrate(bytes, len, a->operand, &text, &new_len, &changes, &p);
	if (r == -EBADMSG) {
		status = conf_fail_problems(a->c.json, SB_EXIT_USAGE, &p);
		problems_done(&p);
		return status;
	}
	problems_done(&p);
	if (r < 0)
		return conf_print(NULL, 0);
	if (a->c.json)
		return conf_print(json_pack("{s:i,s:b,s:i,s:i,s:b,s:I,s:s%}", "schema_version", 1, "ok", 1,
					    "source_version", 1, "target_version", 1, "canonicalized",
					    changes > 0, "changes", (json_int_t)changes, "text", text,
					    new_len), SB_EXIT_OK);
	(void)fwrite(text, 1, new_len, stdout);
	cli_error(changes > 0 ? "%zu entries are not available yet and have become comments"
			      : "%zu changes: the file loads as it is", changes);
	return conf_flush(SB_EXIT_OK);
}

/* ---- trust ---- */

static int trust(struct args *a)
{
	struct conf_cmd *c = &a->c;
	const struct cfg_loaded *l = &c->conf.loaded;
	bool wanted[64] = { false };
	struct sb_err err = { 0 };
	json_t *files;
	size_t n = 0;
	int status;

	if (a->operand)
		c->opt.config = a->operand;
	status = conf_cmd_load(c);
	if (status != 0)
		return status;
	for (size_t i = 0; i < l->n_files && i < SB_ARRAY_LEN(wanted); i++) {
		wanted[i] = l->files[i].layer >= CFG_ORG;
		n += wanted[i];
	}
	if (n == 0)
		return conf_fail(c->json, SB_EXIT_USAGE, "invalid_path", "",
				 "there is no .sendbox.yaml here or above; sendbox init writes one");
	if (!c->json) {
		for (size_t i = 0; i < l->n_files; i++)
			if (wanted[i])
				conf_say("%s", l->files[i].path);
		printf("asks for:\n");
		trust_show(stdout, l, wanted);
	}
	if (trust_add(&c->dirs.d, l, wanted, &err) < 0)
		return conf_fail(c->json, SB_EXIT_WRITE, "io", "", "%s", err.text);
	if (!c->json) {
		printf("accepted, until it changes\n");
		return conf_flush(SB_EXIT_OK);
	}
	files = json_array();
	for (size_t i = 0; files && i < l->n_files; i++)
		if (wanted[i])
			(void)json_array_append_new(files, json_string(l->files[i].path));
	return conf_print(json_pack("{s:i,s:b,s:o}", "schema_version", 1, "ok", 1, "trusted", files),
			  SB_EXIT_OK);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	const char *operand;
	int (*run)(struct args *a);
	const char *help;
} commands[] = {
	{ "check", " [FILE]", check, "Check the configuration and say every problem at once." },
	{ "explain", " [KEY]", explain, "Tell what is in force, and which file and line says so." },
	{ "show", "", show, "Print every effective value." },
	{ "schema", "", schema, "Print the JSON Schema of the file format." },
	{ "migrate", " FILE", migrate, "Print a file of the earlier system as one that loads here." },
	{ "trust", " [FILE]", trust, "Show what the project's file asks for, and accept it." },
};

/* They have options of their own. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} own[] = {
	{ "list", cmd_config_list, "List agents and paths, or print an agent's definition." },
	{ "create", cmd_config_create, "Write a first config.yaml, or an agent's definition." },
};

static int help(void)
{
	printf("usage: sendbox config COMMAND [options]\n\nLook at the configuration.\n\n");
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++)
		printf("  %s%-*s %s\n", commands[i].name, (int)(16 - strlen(commands[i].name)),
		       commands[i].operand, commands[i].help);
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++)
		printf("  %-16s %s\n", own[i].name, own[i].help);
	return conf_flush(SB_EXIT_OK);
}

int cmd_config(int argc, char **argv)
{
	struct args a = { 0 };
	struct sb_err err = { 0 };
	int status;

	if (argc < 1 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		status = help();
		return argc < 1 ? SB_EXIT_USAGE : status;
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++)
		if (strcmp(argv[0], own[i].name) == 0)
			return own[i].run(argc - 1, argv + 1);
	for (int i = 1; i < argc; i++)
		a.c.json |= strcmp(argv[i], "--json") == 0;
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (parse(&a, argc - 1, argv + 1, &err) < 0)
			return usage(&a, err.text);
		if (a.help) {
			printf("usage: sendbox config %s%s [options]\n\n%s\n\n", commands[i].name,
			       commands[i].operand, commands[i].help);
			cli_options_help(table, SB_ARRAY_LEN(table));
			return conf_flush(SB_EXIT_OK);
		}
		status = commands[i].run(&a);
		conf_cmd_done(&a.c);
		return status;
	}
	return conf_fail(a.c.json, SB_EXIT_USAGE, "usage", "",
			 "unknown command \"config %.60s\"; sendbox config --help lists them", argv[0]);
}
