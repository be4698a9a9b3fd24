/* What may stand next on a command line. */
#include "complete.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "cli.h"
#include "dirs.h"
#include "options.h"

static int print_agent(void *arg, const char *name, bool ok)
{
	(void)arg;
	if (ok)
		printf("%s\n", name);
	return 0;
}

static void agents(void)
{
	struct cli_dirs dirs;
	struct sb_err err = { 0 };

	/* without a folder of one's own there are still the built-in ones */
	if (agent_each(cli_dirs_init(&dirs, &err) < 0 ? "/nonexistent" : dirs.config, print_agent,
		       NULL) < 0)
		return;
}

/* Instances whose settings are kept. */
static void kept(void)
{
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	char *path = NULL;
	struct dirent *e;
	DIR *d = NULL;

	if (cli_dirs_init(&dirs, &err) == 0 && asprintf(&path, "%s/settings", dirs.state) > 0)
		d = opendir(path);
	free(path);
	while (d && (e = readdir(d)))
		if (agent_name_ok(e->d_name))
			printf("%s\n", e->d_name);
	if (d)
		(void)closedir(d);
}

static void list(const char *words)
{
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		printf("%.*s\n", (int)n, p);
		p += n + (p[n] == ' ');
	}
}

/* @n words of `run`, the last one is what is asked for. */
static void of_run(int n, char **w)
{
	int at = 0;

	while (at < n - 1) {
		const struct cli_option *o;

		if (strcmp(w[at], "--") == 0 || w[at][0] != '-') { /* a program, an agent: files from here */
			printf("files\n");
			return;
		}
		o = run_options_find(w[at]);
		at += o && o->arg && o->arg[0] != '[' && !strchr(w[at], '=') ? 2 : 1;
	}
	if (at > n - 1) { /* the value of an option */
		const char *name = w[n - 2];

		if (strcmp(name, "--runtime") == 0)
			list("microvm namespace auto");
		else if (strcmp(name, "--accel") == 0)
			list("auto kvm tcg");
		else if (strcmp(name, "--profile") == 0)
			list("strict default build");
		else if (strcmp(name, "--name") == 0)
			kept();
		else
			printf("files\n");
		return;
	}
	if (w[n - 1][0] == '-')
		run_options_names();
	else
		agents();
}

void complete_words(int argc, char **argv)
{
	static const struct {
		const char *command;
		const char *words;
	} plain[] = {
		{ "config", "check create explain list migrate schema show trust" },
		{ "policy", "check show test" },
		{ "plan", "diff show verify" },
		{ "bundle", "build inspect sign verify" },
		{ "settings", "apply diff drop ls" },
		{ "completions", "bash fish zsh" },
	};

	if (argc <= 1) {
		cli_commands();
		agents();
		return;
	}
	if (strcmp(argv[0], "run") == 0) {
		of_run(argc - 1, argv + 1);
		return;
	}
	if (argc == 3 && strcmp(argv[0], "settings") == 0) {
		kept();
		return;
	}
	for (size_t i = 0; argc == 2 && i < SB_ARRAY_LEN(plain); i++) {
		if (strcmp(plain[i].command, argv[0]) == 0) {
			list(plain[i].words);
			return;
		}
	}
	if (argc >= 3 && strcmp(argv[argc - 2], "--agent") == 0)
		agents();
	else
		printf("files\n");
}
