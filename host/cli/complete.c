/* What may stand next on a command line. Options come from the tables that the commands parse with. */
#include "complete.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/fd.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "image/cache.h"
#include "options.h"
#include "state/state.h"

static const char *before = ""; /* of every word: "--image=" where that stands in front of the value */

static void word(const char *w)
{
	printf("%s%s\n", before, w);
}

static void list(const char *words)
{
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		printf("%s%.*s\n", before, (int)n, p);
		p += n + (p[n] == ' ');
	}
}

static void files(void)
{
	printf("files\n");
}

/* ---- names of the moment ---- */

static int print_agent(void *arg, const char *name, bool ok)
{
	(void)arg;
	if (ok)
		word(name);
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

static int print_instance(void *arg, const struct instance *i)
{
	(void)arg;
	word(i->name);
	return 0;
}

static void instances(void)
{
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	sb_autostate struct state *s = NULL;
	sb_autofree char *path = NULL;

	/* a Tab is no reason to make the database */
	if (cli_dirs_init(&dirs, &err) < 0 || asprintf(&path, "%s/state.db", dirs.state) < 0 ||
	    access(path, F_OK) < 0 || state_open(&dirs.d, &s, &err) < 0)
		return;
	if (instance_each(s, print_instance, NULL, &err) < 0)
		return; /* what came is offered */
}

/* Nothing that a shell could take for more than a word. */
static bool is_plain(const char *s)
{
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@+-")] == '\0';
}

static void images(void)
{
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	sb_autofree char *path = NULL;
	const struct dirent *e;
	DIR *d = NULL;

	if (sb_crypto_init() == 0 && cli_dirs_init(&dirs, &err) == 0 &&
	    asprintf(&path, "%s/images", dirs.d.cache) > 0)
		d = opendir(path);
	while (d && (e = readdir(d))) {
		SB_CLEANUP(image_done) struct image i = { 0 };
		char digest[72];

		if (strlen(e->d_name) != 69 || strcmp(e->d_name + 64, ".json") != 0)
			continue;
		(void)snprintf(digest, sizeof(digest), "sha256:%.64s", e->d_name);
		if (image_digest_ok(digest) && image_record_load(&dirs.d, digest, &i, &err) == 0 &&
		    i.reference && is_plain(i.reference))
			word(i.reference);
	}
	if (d)
		(void)closedir(d);
}

static void bases(void)
{
	word("host");
	images();
}

static void commands(void)
{
	cli_commands();
	agents();
}

/* ---- values, operands ---- */

static const struct {
	const char *option;
	const char *words; /* or NULL: */
	void (*names)(void);
} values[] = {
	{ "runtime", "microvm namespace auto", NULL },
	{ "accel", "auto kvm tcg", NULL },
	{ "profile", "strict default build", NULL },
	{ "image", NULL, bases },
	{ "agent", NULL, agents },
};

static const struct {
	const char *command;
	const char *sub;         /* NULL: the operand stands at once */
	void (*names)(void);
} operands[] = {
	{ "cp", NULL, instances },
	{ "attach", NULL, instances },
	{ "exec", NULL, instances },
	{ "logs", NULL, instances },
	{ "stop", NULL, instances },
	{ "rm", NULL, instances },
	{ "rename", NULL, instances },
	{ "export", NULL, instances },
	{ "edit", NULL, agents },
	{ "settings", "diff", instances },
	{ "settings", "apply", instances },
	{ "settings", "drop", instances },
	{ "cache", "rm", agents },
	{ "image", "rm", images },
	{ "image", "verify", images },
	{ "image", "inspect", images },
	{ "image", "pull", images },
};

static const struct {
	const char *command;
	const char *words;
} subs[] = {
	{ "config", "check create explain list migrate schema show trust" },
	{ "policy", "check show test" },
	{ "plan", "diff show verify" },
	{ "key", "export list revoke rotate trust" },
	{ "bundle", "build inspect sign verify" },
	{ "settings", "apply diff drop ls" },
	{ "cache", "clean ls rm verify" },
	{ "image", "inspect list pull rm verify" },
	{ "completions", "bash fish zsh" },
};

static const char *subs_of(const char *command)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(subs); i++)
		if (strcmp(subs[i].command, command) == 0)
			return subs[i].words;
	return NULL;
}

/* The options of a command, as it parses them itself: it is called, and ends at the first look for one.
 * What it says meanwhile is for nobody. */
static size_t table_of(const char *command, const char *sub, const struct cli_option **ret)
{
	static char help[] = "--help";
	char *argv[3] = { NULL, NULL, NULL };
	int argc = 0;
	sb_autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sb_autofd int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	size_t n = 0;

	*ret = NULL;
	if (null < 0 || out < 0 || fflush(stdout) != 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0 || strcmp(command, "completions") == 0)
		return 0;
	cli_options_probe(ret, &n);
	if (sub)
		argv[argc++] = (char *)(uintptr_t)sub;
	argv[argc++] = help;
	(void)cli_command_run(command, argc, argv);
	(void)fflush(stdout);
	return dup2(out, STDOUT_FILENO) < 0 ? 0 : n;
}

/* What may follow the option @name as its value. */
static void value_of(const char *command, const char *name)
{
	if (strcmp(name, "name") == 0 && strcmp(command, "run") == 0) {
		instances();
		return;
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(values); i++) {
		if (strcmp(values[i].option, name) != 0)
			continue;
		if (values[i].words)
			list(values[i].words);
		else
			values[i].names();
		return;
	}
	files();
}

static const struct cli_option *find(const struct cli_option *table, size_t n, const char *w)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(w, "=");

		if (strncmp(w, "--", 2) == 0 ? strlen(table[i].name) == len - 2 &&
						       strncmp(w + 2, table[i].name, len - 2) == 0
					     : w[0] == '-' && w[1] != '\0' && w[1] == table[i].letter)
			return &table[i];
	}
	return NULL;
}

static void operand(const char *command, const char *sub)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(operands); i++)
		if (strcmp(operands[i].command, command) == 0 &&
		    (!operands[i].sub || (sub && strcmp(operands[i].sub, sub) == 0))) {
			operands[i].names();
			return;
		}
	if (strcmp(command, "run") == 0)
		agents();
	else
		files();
}

/* @w: the words of a command behind it and its sub-command; the last one is what is asked for. */
static void of_command(const char *command, const char *sub, int n, char **w)
{
	bool takes_program = strcmp(command, "run") == 0 || strcmp(command, "exec") == 0;
	const struct cli_option *table;
	size_t n_table = table_of(command, sub, &table);
	const char *last = w[n - 1];
	int at = 0;
	int words = 0;

	while (at < n - 1) {
		const struct cli_option *o = w[at][0] == '-' ? find(table, n_table, w[at]) : NULL;

		words += w[at][0] != '-';
		if (strcmp(w[at], "--") == 0 || (takes_program && words > (strcmp(command, "exec") == 0))) {
			files(); /* a program's, an agent's */
			return;
		}
		if (o && o->arg && o->arg[0] != '[' && !strchr(w[at], '=') &&
		    (w[at][1] == '-' || w[at][2] == '\0') && ++at == n - 1) {
			value_of(command, o->name);
			return;
		}
		at++;
	}
	if (strncmp(last, "--", 2) == 0 && strchr(last, '=')) {
		const struct cli_option *o = find(table, n_table, last);
		static char front[80];

		if (!o)
			return;
		(void)snprintf(front, sizeof(front), "--%.60s=", o->name);
		before = front;
		value_of(command, o->name);
	} else if (last[0] == '-') {
		for (size_t i = 0; i < n_table; i++)
			printf("--%s\n", table[i].name);
	} else {
		operand(command, sub);
	}
}

void complete_words(int argc, char **argv)
{
	const char *words = argc > 0 ? subs_of(argv[0]) : NULL;

	if (argc <= 1 && argc > 0 && argv[0][0] == '-')
		list("--help --version");
	else if (argc <= 1)
		commands();
	else if (words && argc == 2 && argv[1][0] == '-')
		list("--help");
	else if (words && argc == 2)
		list(words);
	else if (words)
		of_command(argv[0], argv[1], argc - 2, argv + 2);
	else
		of_command(argv[0], NULL, argc - 1, argv + 1);
}
