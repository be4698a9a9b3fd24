/*
 * Load, validate and merge a project file of 1,000 rules: 500 patterns of commands and 500 names.
 * One JSON line a figure. Bar, together with the signing of the plan: 5 ms.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "config/config.h"

#define ROUNDS 41
#define RULES 500

static char *text(size_t *len)
{
	char *out = NULL;
	FILE *f = open_memstream(&out, len);

	if (!f)
		abort();
	(void)fprintf(f, "policy:\n  commands:\n    default_action: deny\n    allowlist:\n");
	for (int i = 0; i < RULES; i++)
		(void)fprintf(f, "      - git subcommand%d --option=* **\n", i);
	(void)fprintf(f, "  network:\n    default_action: deny\n    allowed_domains:\n");
	for (int i = 0; i < RULES; i++)
		(void)fprintf(f, "      - \"*.host%d.example.com:443\"\n", i);
	if (fclose(f) != 0)
		abort();
	return out;
}

int main(void)
{
	double v[ROUNDS];
	size_t len = 0;
	char *t = text(&len);
	const struct cfg_source s = { CFG_PROJECT, "/p/.sendbox.yaml", t, len };

	for (size_t i = 0; i < ROUNDS; i++) {
		struct problems p = { 0 };
		struct cfg *c = NULL;
		char *json = NULL;
		size_t json_len = 0;
		double from = bench_now_ns();

		if (cfg_compile(&s, 1, &c, &p) < 0 || cfg_json(c, &json, &json_len) < 0)
			abort();
		v[i] = (bench_now_ns() - from) / 1e6;
		free(json);
		(void)cfg_free(c);
	}
	bench_report("config_1000_rules", "ms", 3, v, ROUNDS);
	free(t);
	return 0;
}
