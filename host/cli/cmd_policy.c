#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "conf_cmd.h"
#include "core/cmd_policy.h"
#include "net_text.h"
#include "plan_net.h"

enum { O_CONFIG = 1, O_NO_CONFIG, O_PROJECT, O_CONNECT, O_JSON, O_HELP };
static const struct cli_option table[] = {
	{ "config", 'c', "FILE", "use this file instead of looking for .sendbox.yaml", O_CONFIG },
	{ "no-config", 0, NULL, "read no project file", O_NO_CONFIG },
	{ "project", 0, "DIR", "look in this folder and those above it", O_PROJECT },
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
	{ "connect", 0, "NAME:PORT", "ask about a connection instead of a command", O_CONNECT },
};
#define N_COMMON (SB_ARRAY_LEN(table) - 1) /* --connect is for test alone */

struct args {
	struct conf_cmd c;
	const char *connect;
	char **argv; /* a command; NULL = none */
	bool help;
};

static int parse(struct args *a, bool test, int argc, char **argv, struct sb_err *err)
{
	size_t n = test ? SB_ARRAY_LEN(table) : N_COMMON;
	const char *value;
	bool dashes = false;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, n, argc, argv, &at, &value, &dashes, err)) > 0) {
		if (id == O_CONFIG)
			a->c.opt.config = value;
		else if (id == O_NO_CONFIG)
			a->c.opt.no_config = true;
		else if (id == O_PROJECT)
			a->c.opt.project = value;
		else if (id == O_CONNECT)
			a->connect = value;
		else if (id == O_JSON)
			a->c.json = true;
		else
			a->help = true;
	}
	if (id < 0 || a->help)
		return id;
	if (!test && at < argc)
		return sb_err_set(err, -EINVAL, "no operand is expected: \"%.100s\"", argv[at]);
	if (test && at < argc && !dashes)
		return sb_err_set(err, -EINVAL, "write: sendbox policy test [options] -- PROGRAM [ARG...]");
	if (at < argc)
		a->argv = argv + at;
	if (test && (a->argv != NULL) == (a->connect != NULL))
		return sb_err_set(err, -EINVAL, "write: sendbox policy test -- PROGRAM [ARG...], or sendbox "
				  "policy test --connect NAME:PORT");
	if (a->argv && !a->argv[0][0])
		return sb_err_set(err, -EINVAL, "the program's name is empty");
	return 0;
}

/* ---- show ---- */

static const char *scope_name(enum sb_cmd_scope s)
{
	return s == SB_CMD_SCOPE_TREE ? "tree" : s == SB_CMD_SCOPE_TOP_LEVEL ? "top_level" : "none";
}

static const char *mode_name(enum sb_net_mode m)
{
	return m == SB_NET_NONE ? "none" : m == SB_NET_OPEN ? "open" : "filter";
}

static json_t *commands_json_of(const struct sb_plan_commands *c)
{
	json_t *rules = json_array();

	for (size_t i = 0; rules && i < c->n_rules; i++) {
		const struct sb_cmd_rule *r = &c->rules[i];

		(void)json_array_append_new(
			rules, json_pack("{s:s,s:s,s:s,s:b,s:s,s:s}", "run", r->pattern, "action",
					 sb_cmd_action_name(r->action), "scope", scope_name(r->scope),
					 "any_order", r->any_order, "reason", r->reason ? r->reason : "",
					 "from", r->from));
	}
	return json_pack("{s:s,s:s,s:b,s:o}", "scope", scope_name(c->scope), "default_action",
			 sb_cmd_action_name(c->fallback), "log_blocked", c->log_blocked, "rules", rules);
}

static json_t *network_json_of(const struct sb_plan_net *n)
{
	json_t *rules = json_array();

	for (size_t i = 0; rules && i < n->n_rules; i++) {
		char text[SB_NET_RULE_TEXT];

		sb_net_rule_text(&n->rules[i], text, sizeof(text));
		(void)json_array_append_new(rules, json_pack("{s:s,s:s}", "rule", text, "from",
							     n->rules[i].from));
	}
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:o}", "mode", mode_name(n->mode), "max_connections",
			 (json_int_t)n->max_connections, "idle_ms", (json_int_t)n->idle_ms,
			 "dns_queries_per_minute", (json_int_t)n->dns_queries,
			 "dns_new_names_per_minute", (json_int_t)n->dns_new_names, "rules", rules);
}

static json_t *boundary_json_of(const struct sb_plan *p)
{
	json_t *deny = json_array();
	json_t *guards = json_array();

	for (size_t i = 0; p->deny_syscalls && p->deny_syscalls[i]; i++)
		(void)json_array_append_new(deny, json_string(p->deny_syscalls[i]));
	for (size_t i = 0; i < p->n_guards; i++)
		(void)json_array_append_new(guards, json_pack("{s:s,s:s}", "path", p->guards[i].path,
							      "mode",
							      sb_plan_guard_name(p->guards[i].mode)));
	return json_pack("{s:s,s:o,s:o}", "profile", sb_plan_profile_name(p->profile),
			 "denied_syscalls", deny, "guarded_paths", guards);
}

static void show_commands(const struct sb_plan_commands *c)
{
	if (c->scope == SB_CMD_SCOPE_NONE) {
		printf("commands: no rules, every program may run\n");
		return;
	}
	printf("commands: default %s, scope %s\n", sb_cmd_action_name(c->fallback),
	       scope_name(c->scope));
	for (size_t i = 0; i < c->n_rules; i++) {
		const struct sb_cmd_rule *r = &c->rules[i];
		char text[400];

		net_text_escape(r->pattern, strlen(r->pattern), text, sizeof(text));
		conf_say("  %-5s %-40s %s%s", sb_cmd_action_name(r->action), text, r->from,
			 r->scope != c->scope ? " (top_level)" : "");
	}
}

static void show_network(const struct sb_plan_net *n)
{
	printf("network: %s\n", n->mode == SB_NET_NONE ? "none at all"
			       : n->mode == SB_NET_OPEN ? "open, what no rule denies"
							 : "what a rule allows");
	for (size_t i = 0; i < n->n_rules; i++) {
		char text[SB_NET_RULE_TEXT];

		sb_net_rule_text(&n->rules[i], text, sizeof(text));
		conf_say("  %-5s %-40s %s", n->rules[i].deny ? "deny" : "allow",
			 n->rules[i].deny ? text + strlen("deny ") : text, n->rules[i].from);
	}
}

static int show(struct args *a)
{
	const struct sb_plan *p;
	int status = conf_cmd_load(&a->c);

	if (status == 0)
		status = conf_cmd_plan(&a->c);
	if (status != 0)
		return status;
	p = a->c.plan;
	if (a->c.json)
		return conf_print(json_pack("{s:i,s:b,s:s,s:s,s:{s:o,s:o,s:o}}", "schema_version", 1, "ok",
					    1, "source", a->c.conf.loaded.n_files > 0 ? "config"
										      : "default",
					    "config", conf_cmd_file(&a->c), "policy", "commands",
					    commands_json_of(&p->commands), "network",
					    network_json_of(&p->net), "boundary", boundary_json_of(p)),
				  SB_EXIT_OK);
	show_commands(&p->commands);
	show_network(&p->net);
	printf("boundary: profile %s\n", sb_plan_profile_name(p->profile));
	for (size_t i = 0; p->deny_syscalls && p->deny_syscalls[i]; i++)
		printf("  deny  system call %s\n", p->deny_syscalls[i]);
	for (size_t i = 0; i < p->n_guards; i++)
		conf_say("  %-8s %s", sb_plan_guard_name(p->guards[i].mode), p->guards[i].path);
	return conf_flush(SB_EXIT_OK);
}

/* ---- check ---- */

/* There are no quotes and no shell in a rule: whoever writes some most likely thinks that there are. */
static void note_shell(const struct sb_plan_commands *c)
{
	for (size_t i = 0; i < c->n_rules; i++) {
		const struct sb_cmd_rule *r = &c->rules[i];
		size_t at = strcspn(r->pattern, "\"'|;&<>$`");

		if (r->pattern[at] && (at == 0 || r->pattern[at - 1] != '\\'))
			cli_error("%s: note: \"%c\" in the rule \"%.100s\" means itself: there are no quotes and "
				  "no shell in rules (a blank in a word is \"\\ \")", r->from,
				  r->pattern[at], r->pattern);
	}
}

static int check(struct args *a)
{
	struct conf_cmd *c = &a->c;
	struct sb_err err = { 0 };
	json_t *tests = NULL;
	size_t failed = 0;
	int status = conf_cmd_load(c);
	int n;

	if (status == 0)
		status = conf_cmd_plan(c);
	if (status != 0)
		return status;
	tests = c->json ? json_array() : NULL;
	n = policy_tests_run(c, tests, &failed, &err);
	if (n < 0) {
		json_decref(tests);
		return conf_fail(c->json, SB_EXIT_USAGE, "invalid_value", conf_cmd_file(c), "%s",
				 err.text);
	}
	status = failed > 0 ? SB_EXIT_NO : SB_EXIT_OK;
	if (c->json)
		return conf_print(json_pack("{s:i,s:b,s:b,s:s,s:s,s:s,s:i,s:I,s:o,s:[]}",
					    "schema_version", 1, "ok", failed == 0, "valid", 1, "config",
					    conf_cmd_file(c), "sandbox",
					    cfg_str(c->conf.loaded.cfg, "name", ""), "runtime",
					    cfg_str(c->conf.loaded.cfg, "runtime.provider", "auto"),
					    "tests", n, "failed", (json_int_t)failed, "results", tests,
					    "diagnostics"), status);
	note_shell(&c->plan->commands);
	conf_say("%s: ok, %zu command rules, %zu network rules, %d tests, %zu failed",
		 *conf_cmd_file(c) ? conf_cmd_file(c) : "built-in defaults",
		 c->plan->commands.n_rules, c->plan->net.n_rules, n, failed);
	return conf_flush(status);
}

/* ---- test ---- */

static int test(struct args *a)
{
	struct policy_answer *r = calloc(1, sizeof(*r));
	struct sb_err err = { 0 };
	int status = r ? conf_cmd_load(&a->c) : SB_EXIT_INTERNAL;
	int k;

	if (status == 0)
		status = conf_cmd_plan(&a->c);
	if (status != 0)
		goto out;
	k = a->connect ? policy_ask_connect(&a->c, a->connect, r, &err)
		       : policy_ask_command(&a->c, (const char *const *)a->argv, r, &err);
	if (k < 0) {
		status = conf_fail(a->c.json, SB_EXIT_USAGE, "invalid_value", a->connect ? a->connect : "",
				   "%s", err.text);
		goto out;
	}
	status = strcmp(r->verdict, "allow") == 0 || strcmp(r->verdict, "log") == 0 ? SB_EXIT_OK
										     : SB_EXIT_NO;
	if (a->c.json) {
		status = conf_print(json_pack("{s:i,s:b,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "schema_version", 1,
					      "ok", 1, "kind", a->connect ? "connect" : "run", "verdict",
					      r->verdict, "why", r->why, "rule", r->rule, "from", r->from,
					      "message", r->text, "note", r->note), status);
		goto out;
	}
	if (r->rule[0]) {
		char rule[600];

		net_text_escape(r->rule, strlen(r->rule), rule, sizeof(rule));
		conf_say("%s: rule \"%s\" (%s)", r->verdict, rule, r->from);
	} else {
		conf_say("%s: %s (%s)", r->verdict,
			 strcmp(r->why, "no-policy") == 0   ? "there are no rules for commands"
			 : strcmp(r->from, "built in") == 0 ? r->why
							    : "no rule, the default",
			 r->from);
	}
	if (status != SB_EXIT_OK && r->text[0])
		conf_say("%s", r->text);
	if (r->note[0])
		conf_say("note: %s", r->note);
	status = conf_flush(status);
out:
	free(r);
	return status;
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	const char *operands;
	int (*run)(struct args *a);
	const char *help;
} commands[] = {
	{ "show", "", show, "Print the rules for commands, connections and system calls." },
	{ "check", "", check, "Check the rules and run the file's policy_tests; 1 = one failed." },
	{ "validate", "", check, "The same as check." },
	{ "test", " -- PROGRAM [ARG...]", test,
	  "Ask what the rules say to a command, or to a connection; 1 = denied." },
};

static int help(void)
{
	printf("usage: sendbox policy COMMAND [options]\n\nLook at the rules and ask them.\n\n");
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++)
		printf("  %s%-*s %s\n", commands[i].name, (int)(28 - strlen(commands[i].name)),
		       commands[i].operands, commands[i].help);
	return conf_flush(SB_EXIT_OK);
}

int cmd_policy(int argc, char **argv)
{
	struct args a = { 0 };
	struct sb_err err = { 0 };
	int status;

	if (argc < 1 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		status = help();
		return argc < 1 ? SB_EXIT_USAGE : status;
	}
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		a.c.json |= strcmp(argv[i], "--json") == 0;
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++) {
		bool is_test = commands[i].run == test;

		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (parse(&a, is_test, argc - 1, argv + 1, &err) < 0)
			return conf_fail(a.c.json, SB_EXIT_USAGE, "usage", "", "%s", err.text);
		if (a.help) {
			printf("usage: sendbox policy %s%s [options]\n\n%s\n\n", commands[i].name,
			       commands[i].operands, commands[i].help);
			cli_options_help(table, is_test ? SB_ARRAY_LEN(table) : N_COMMON);
			return conf_flush(SB_EXIT_OK);
		}
		status = commands[i].run(&a);
		conf_cmd_done(&a.c);
		return status;
	}
	return conf_fail(a.c.json, SB_EXIT_USAGE, "usage", "",
			 "unknown command \"policy %.60s\"; sendbox policy --help lists them", argv[0]);
}
