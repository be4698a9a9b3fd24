/*
 * config_keys md|man: the tables of docs/configuration.md and sendbox.yaml(5), from the key table;
 * schema: the JSON Schema; check: for each line of stdin, a configuration as JSON, the codes of its
 * problems in a line (for tests/unit/config/schema.py); list, bounds: for tests/e2e/45-config-keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "config/config.h"

static void words(FILE *f, const struct cfg_key *k)
{
	for (const char *w = k->words; *w;) {
		size_t n = strcspn(w, "|");

		(void)fprintf(f, "%s%.*s%s", w == k->words ? "" : ", ", (int)(n - (*w == '!')),
			      w + (*w == '!'), *w == '!' ? " (not yet)" : "");
		w += n + (w[n] == '|');
	}
}

/* A limit as people say it. */
static void amount(FILE *f, const struct cfg_key *k, int64_t v)
{
	static const struct {
		int64_t size;
		const char *name;
	} sizes[] = { { 1LL << 40, "TiB" }, { 1LL << 20, "MiB" }, { 1, "B" } },
	  times[] = { { 86400000, "days" }, { 1, "ms" } };

	if (v == 0 || k->type == CFG_T_INT) {
		(void)fprintf(f, "%lld", (long long)v);
	} else if (k->type == CFG_T_SIZE) {
		size_t i = 0;

		while (v % sizes[i].size != 0)
			i++;
		(void)fprintf(f, "%lld %s", (long long)(v / sizes[i].size), sizes[i].name);
	} else {
		size_t i = v % times[0].size == 0 ? 0 : 1;

		(void)fprintf(f, "%lld %s", (long long)(v / times[i].size), times[i].name);
	}
}

static void range(FILE *f, const struct cfg_key *k)
{
	if (k->max >= INT64_MAX) {
		(void)fprintf(f, " from ");
		amount(f, k, k->min);
		return;
	}
	(void)fprintf(f, " ");
	amount(f, k, k->min);
	(void)fprintf(f, "..");
	amount(f, k, k->max);
}

static void type(FILE *f, const struct cfg_key *k)
{
	switch (k->type) {
	case CFG_T_BOOL:
		(void)fprintf(f, "true, false");
		break;
	case CFG_T_INT:
		(void)fprintf(f, "number");
		range(f, k);
		break;
	case CFG_T_SIZE:
		(void)fprintf(f, "size");
		range(f, k);
		break;
	case CFG_T_DURATION:
		(void)fprintf(f, "time");
		range(f, k);
		break;
	case CFG_T_ENUM:
		words(f, k);
		break;
	case CFG_T_STR:
	case CFG_T_PATH:
		(void)fprintf(f, "%s, at most %lld bytes", k->type == CFG_T_STR ? "text" : "path",
			      (long long)k->max);
		break;
	case CFG_T_LIST:
		(void)fprintf(f, "list of ");
		if (k->min > 0)
			(void)fprintf(f, "%lld..", (long long)k->min);
		else
			(void)fprintf(f, "at most ");
		(void)fprintf(f, "%lld", (long long)k->max);
		break;
	case CFG_T_MAP:
		(void)fprintf(f, "map");
		break;
	case CFG_T_TABLE:
		(void)fprintf(f, "map of names, at most %lld", (long long)k->max);
		break;
	case CFG_T_NULL:
		(void)fprintf(f, "null");
		break;
	case CFG_T_ANY:
	default:
		(void)fprintf(f, "anything");
		break;
	}
	if (k->required)
		(void)fprintf(f, "; required");
}

static void neutral(FILE *f, const struct cfg_key *k)
{
	if (!k->neutral)
		(void)fprintf(f, "nothing");
	else if (strcmp(k->neutral, "*") == 0)
		(void)fprintf(f, "any: alone it asks for nothing");
	else
		(void)fprintf(f, "`%s`", k->neutral);
}

static const char *merging(const struct cfg_key *k)
{
	switch (k->merge) {
	case CFG_M_GROW:
		return " Only grows.";
	case CFG_M_ALLOW:
		return " Grows; under a lock it is narrowed.";
	case CFG_M_FIXED:
		return " Grows; under a lock it stays.";
	case CFG_M_STRICTER:
		return " A project's file may only go on to a later word.";
	case CFG_M_INNERMOST:
	default:
		return "";
	}
}

/* A bar would end the cell. */
static void cell(const char *s)
{
	for (; *s; s++)
		(void)printf(*s == '|' ? "\\%c" : "%c", *s);
}

static void markdown(bool later)
{
	(void)printf(later ? "| Key | Type | Accepted today | |\n|---|---|---|---|\n"
			   : "| Key | Type | Default | Meaning | What changes |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < cfg_n_keys; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if ((k->state == CFG_NOT_YET) != later)
			continue;
		(void)printf("| `%s` | ", k->path);
		type(stdout, k);
		(void)printf(" | ");
		if (later) {
			neutral(stdout, k);
			(void)printf(" | %s |\n", k->help);
			continue;
		}
		if (k->fallback)
			(void)printf("`%s`", k->fallback);
		(void)printf(" | ");
		cell(k->help);
		(void)printf(".%s | ", merging(k));
		cell(k->acts);
		(void)printf(" |\n");
	}
}

static void manual(void)
{
	for (size_t i = 0; i < cfg_n_keys; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (k->state == CFG_NOT_YET || k->type == CFG_T_MAP || strstr(k->path, "[]") ||
		    strchr(k->path, '*'))
			continue;
		(void)printf(".It Cm %s : Em ", k->path);
		type(stdout, k);
		(void)printf("\n%c%s.\n", k->help[0] >= 'a' && k->help[0] <= 'z' ? k->help[0] - 0x20
										  : k->help[0],
			     k->help + 1);
		if (k->fallback)
			(void)printf("Default: %s.\n", k->fallback);
	}
}

/* Lowest and highest value of each number that acts: path, as it is written, as the plan has it. */
static void bounds(void)
{
	for (size_t i = 0; i < cfg_n_keys; i++) {
		const struct cfg_key *k = &cfg_keys[i];
		int64_t unit = k->type == CFG_T_DURATION ? 1000 : 1;

		if (k->state != CFG_ACTS || (k->type != CFG_T_INT && k->type != CFG_T_SIZE &&
					     k->type != CFG_T_DURATION))
			continue;
		for (int end = 0; end < 2; end++) {
			long long v = (long long)(end == 0 ? k->min : k->max);

			(void)printf("%s\t%lld%s\t%lld\n", k->path, v / unit,
				     k->type == CFG_T_SIZE ? "b" : "", v);
		}
	}
}

static int check(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct cfg_source s = { CFG_PROJECT, "/p/x.json", line, (size_t)n };
		struct problems p = { 0 };
		struct cfg *c = NULL;

		if (cfg_compile(&s, 1, &c, &p) < 0 && p.n == 0)
			abort();
		for (size_t i = 0; i < p.n; i++)
			(void)printf("%s%s", i > 0 ? " " : "", p.v[i].code);
		(void)printf("\n");
		c = cfg_free(c);
		problems_done(&p);
	}
	free(line);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "man") == 0) {
		manual();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "md") == 0) {
		markdown(false);
		(void)printf("\n## Not available yet\n\n"
			     "These are known, so that a file of the earlier system can be read. A value that "
			     "asks for something is refused with its line; `sendbox config migrate` makes it "
			     "a comment.\n\n");
		markdown(true);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "schema") == 0) {
		char *text = NULL;
		size_t len = 0;

		if (cfg_schema(&text, &len) < 0)
			return 1;
		(void)fwrite(text, 1, len, stdout);
		free(text);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "check") == 0)
		return check();
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t k = 0; k < cfg_n_keys; k++)
			(void)printf("%s\t%s\t%s\n", cfg_keys[k].path,
				     cfg_keys[k].state == CFG_NOT_YET ? "later" : "acts",
				     cfg_keys[k].neutral ? cfg_keys[k].neutral : "");
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "bounds") == 0) {
		bounds();
		return 0;
	}
	(void)fprintf(stderr, "usage: config_keys md|man|schema|check|list|bounds\n");
	return 2;
}
