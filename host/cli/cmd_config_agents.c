/* `sendbox config list` and `sendbox config create`: definitions of agents and the user's own file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/fd.h"
#include "cli.h"
#include "cmd_config.h"
#include "conf_fail.h"
#include "dirs.h"
#include "options.h"
#include "term.h"

enum { O_AGENT = 1, O_AGENTS, O_DEFAULTS, O_PATHS, O_FORCE, O_JSON, O_HELP };
static const struct cli_option list_table[] = {
	{ "agent", 0, "NAME", "the whole definition of one agent, as JSON", O_AGENT },
	{ "agents", 0, NULL, "every agent: name, words for people, built-in or the user's", O_AGENTS },
	{ "defaults", 0, NULL, "with --agent: as it is built in; alone: what a new config.yaml says",
	  O_DEFAULTS },
	{ "paths", 0, NULL, "where configuration, state and caches are", O_PATHS },
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};
static const struct cli_option create_table[] = {
	{ "agent", 0, "NAME", "a definition in agents/NAME.json instead of config.yaml", O_AGENT },
	{ "force", 0, NULL, "replace a file that is there", O_FORCE },
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct work {
	struct cli_dirs dirs;
	const char *agent;
	bool agents, defaults, paths, force, json, help;
	json_t *list;
	struct sb_err err;
};

static const char template[] =
	"# Configuration of sendbox for this user; sendbox config schema lists every key.\n"
	"# runtime:\n"
	"#   provider: auto      # microvm, namespace\n"
	"# resources:\n"
	"#   cpus: 4\n"
	"#   memory_mb: 4g\n"
	"# agent: claude         # what sendbox run starts without a program\n";

static int parse(struct work *w, const struct cli_option *table, size_t n, int argc, char **argv)
{
	const char *value;
	bool dashes = false;
	int at = 0;

	while (at < argc) {
		int id = cli_options_next(table, n, argc, argv, &at, &value, &dashes, &w->err);

		if (id < 0)
			return id;
		if (id == 0)
			return sb_err_set(&w->err, -EINVAL, "\"%.60s\": no operand is wanted here",
					  at < argc ? argv[at] : "--");
		if (id == O_AGENT)
			w->agent = value;
		w->agents |= id == O_AGENTS;
		w->defaults |= id == O_DEFAULTS;
		w->paths |= id == O_PATHS;
		w->force |= id == O_FORCE;
		w->json |= id == O_JSON;
		w->help |= id == O_HELP;
	}
	return 0;
}

static int usage(const struct work *w, const char *text)
{
	return conf_fail(w->json, SB_EXIT_USAGE, "usage", "", "%s", text);
}

/* ---- list ---- */

static int paths(const struct work *w)
{
	const struct cli_dirs *d = &w->dirs;

	if (w->json)
		return conf_print(json_pack("{s:i,s:b,s:s,s:s,s:s,s:s}", "schema_version", 1, "ok", 1,
					    "config", d->config, "state", d->state, "cache", d->cache,
					    "run", d->run), SB_EXIT_OK);
	printf("configuration  %s/config.yaml\nagents         %s/agents\nstate          %s\n"
	       "cache          %s\nsockets        %s\n", d->config, d->config, d->state, d->cache,
	       d->run);
	return conf_flush(SB_EXIT_OK);
}

static int agents_one(void *arg, const char *name, bool ok)
{
	struct work *w = arg;
	struct problems p = { 0 };
	struct agent *a = NULL;
	int r = ok ? agent_load(w->dirs.config, name, &a, &p) : -EINVAL;
	const char *kind = agent_builtin_find(name) ? (a && a->custom ? "built-in, changed" : "built-in")
						    : "custom";

	if (!ok)
		cli_error("%s/agents/%s.json: no name of an agent: left out", w->dirs.config, name);
	else if (r == -EBADMSG && !w->json)
		problems_print(&p);
	if (r < 0 && ok)
		cli_error("agent %s: left out", name);
	if (r == 0 && w->list)
		(void)json_array_append_new(w->list, json_pack("{s:s,s:s,s:s}", "name", name, "display",
							       a->display.text, "kind", kind));
	else if (r == 0)
		printf("%s - %s (%s)\n", name, a->display.text, kind);
	(void)agent_free(a);
	problems_done(&p);
	return r == -ENOMEM ? r : 0;
}

static int agents(struct work *w)
{
	int r;

	w->list = w->json ? json_array() : NULL;
	r = agent_each(w->dirs.config, agents_one, w);
	if (r < 0)
		return conf_fail(w->json, SB_EXIT_INTERNAL, "io", w->dirs.config, "%s", strerror(-r));
	if (w->json)
		return conf_print(json_pack("{s:i,s:b,s:o}", "schema_version", 1, "ok", 1, "agents",
					    w->list), SB_EXIT_OK);
	return conf_flush(SB_EXIT_OK);
}

static int not_there(const struct work *w)
{
	char list[500];
	char near[65];

	agent_names(w->dirs.config, w->agent, list, sizeof(list), near);
	return conf_fail(w->json, SB_EXIT_USAGE, "not_found", w->agent,
			 "there is no agent \"%.60s\"%s%s%s; there are %.400s", w->agent,
			 near[0] ? ", did you mean \"" : "", near, near[0] ? "\"?" : "", list);
}

static int one_agent(const struct work *w)
{
	struct problems p = { 0 };
	sb_autofree char *text = NULL;
	struct agent *a = NULL;
	int r = agent_load(w->defaults ? "/nonexistent" : w->dirs.config, w->agent, &a, &p);
	int status;

	if (r == -EBADMSG) {
		status = conf_fail_problems(w->json, SB_EXIT_USAGE, &p);
	} else if (r == -ENOENT) {
		status = not_there(w);
	} else if (r < 0 || agent_json(a, &text) < 0) {
		status = conf_print(NULL, 0);
	} else {
		printf("%s\n", text);
		status = conf_flush(SB_EXIT_OK);
	}
	(void)agent_free(a);
	problems_done(&p);
	return status;
}

static int begin(struct work *w)
{
	return cli_dirs_init(&w->dirs, &w->err) < 0
		       ? conf_fail(w->json, SB_EXIT_INTERNAL, "io", "", "%s", w->err.text)
		       : 0;
}

static int help(const char *name, const char *what, const struct cli_option *table, size_t n)
{
	printf("usage: sendbox config %s [options]\n\n%s\n\n", name, what);
	cli_options_help(table, n);
	return conf_flush(SB_EXIT_OK);
}

int cmd_config_list(int argc, char **argv)
{
	struct work w = { 0 };
	int status;

	if (parse(&w, list_table, SB_ARRAY_LEN(list_table), argc, argv) < 0)
		return usage(&w, w.err.text);
	if (w.help)
		return help("list", "Tell what is configured: agents, paths, defaults.", list_table,
			    SB_ARRAY_LEN(list_table));
	if (w.agents + w.paths + (w.agent || w.defaults) > 1)
		return usage(&w, "--agents, --paths and --agent exclude each other");
	status = begin(&w);
	if (status != 0)
		return status;
	if (w.agent)
		return one_agent(&w);
	if (w.defaults) {
		printf("%s", template);
		return conf_flush(SB_EXIT_OK);
	}
	if (w.paths)
		return paths(&w);
	return agents(&w);
}

/* ---- create ---- */

static int may_replace(const struct work *w, const char *path)
{
	sb_autofree char *question = NULL;

	if (w->force || access(path, F_OK) < 0)
		return 1;
	if (!w->json && cli_term_can_ask()) {
		if (asprintf(&question, "%s is there; replace it? [y/N] ", path) < 0)
			return 0;
		return cli_term_ask(question) == 1;
	}
	return 0;
}

static int content(const struct work *w, char **ret)
{
	struct problems p = { 0 };
	struct agent *a = NULL;
	static const char fresh[] = "{\n  \"displayName\": \"%s\",\n  \"baseImage\": \"debian:bookworm\",\n"
				    "  \"installCommands\": [],\n  \"launchCommand\": [\"%s\"],\n"
				    "  \"environmentVariables\": [],\n  \"settings\": [],\n"
				    "  \"allowedHosts\": []\n}\n";
	int r;

	if (!w->agent) {
		*ret = strdup(template);
		return *ret ? 0 : -ENOMEM;
	}
	r = agent_load("/nonexistent", w->agent, &a, &p);
	if (r == 0)
		r = agent_json(a, ret);
	else if (r == -ENOENT)
		r = asprintf(ret, fresh, w->agent, w->agent) < 0 ? -ENOMEM : 0;
	(void)agent_free(a);
	problems_done(&p);
	return r;
}

int cmd_config_create(int argc, char **argv)
{
	struct work w = { 0 };
	sb_autofree char *text = NULL;
	sb_autofd int dir = -1;
	sb_autofree char *above = NULL;
	sb_autofree char *path = NULL;
	char name[80] = "config.yaml";
	int status;
	int r;

	if (parse(&w, create_table, SB_ARRAY_LEN(create_table), argc, argv) < 0)
		return usage(&w, w.err.text);
	if (w.help)
		return help("create", "Write a first config.yaml, or the definition of an agent to change.",
			    create_table, SB_ARRAY_LEN(create_table));
	if (w.agent && !agent_name_ok(w.agent))
		return usage(&w, "--agent: must be 1 to 64 letters, digits, \".\", \"_\" or \"-\", a letter "
				 "or digit first");
	status = begin(&w);
	if (status != 0)
		return status;
	if (w.agent)
		(void)snprintf(name, sizeof(name), "%.64s.json", w.agent);
	if (asprintf(&above, "%s%s", w.dirs.config, w.agent ? "/agents" : "") < 0 ||
	    asprintf(&path, "%s/%s", above, name) < 0)
		return conf_print(NULL, 0);
	if (mkdir(above, 0700) < 0 && errno != EEXIST)
		return conf_fail(w.json, SB_EXIT_WRITE, "io", above, "cannot create %s: %s", above,
				 strerror(errno));
	if (!may_replace(&w, path))
		return conf_fail(w.json, SB_EXIT_NO, "exists", path, "%s is there; --force replaces it",
				 path);
	dir = open(above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = dir < 0 ? -errno : content(&w, &text);
	if (r == 0)
		r = sb_fd_write_file(dir, name, text, strlen(text), 0600);
	if (r < 0)
		return conf_fail(w.json, SB_EXIT_WRITE, "io", path, "cannot write %s: %s", path,
				 strerror(-r));
	if (w.json)
		return conf_print(json_pack("{s:i,s:b,s:s}", "schema_version", 1, "ok", 1, "path", path),
				  SB_EXIT_OK);
	printf("%s\n", path);
	return conf_flush(SB_EXIT_OK);
}
