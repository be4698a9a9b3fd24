/*
 * Time of one decision on a command with 1,000 rules, and of compiling them. One JSON line a figure:
 * medians of ROUNDS rounds over a few thousand different commands in random order. Bar: 2,000 ns a
 * decision. The image answers from memory: what is measured is the policy, not the disk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "core/cmd_policy.h"

#define ROUNDS 21
#define RULES 1000
#define ASKED 4096
#define PROGRAMS 200

struct asked {
	char path[64];
	char words[4][32];
	const char *argv[4];
	struct sb_cmd_request q;
};
static struct asked asked[ASKED];
/* "toolN" is /usr/bin/toolN with inode N + 100. */
static int find(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		struct sb_cmd_file *ret)
{
	(void)arg;
	if (nth > 0 || strncmp(name, "tool", 4) != 0)
		return -ENOENT;
	*ret = (struct sb_cmd_file){ 1, 100 + strtoul(name + 4, NULL, 10), 1000 };
	(void)snprintf(path, cap, "/usr/bin/%s", name);
	return 0;
}

static int digest(void *arg, const char *path, int fd, uint8_t ret[32])
{
	(void)arg;
	(void)path;
	(void)fd;
	memset(ret, 0, 32);
	return 0;
}
static const struct sb_cmd_files files = { find, NULL, digest, NULL };

/* What a large configuration has: mostly sub-commands of programs by name, some paths, some
 * options in any order, a few for any program; one in five refuses. */
static struct sb_plan_commands rules(void)
{
	struct sb_plan_commands c = { .scope = SB_CMD_SCOPE_TREE, .fallback = SB_CMD_DENY };

	c.rules = calloc(RULES, sizeof(*c.rules));
	if (!c.rules)
		abort();
	for (size_t i = 0; i < RULES; i++) {
		struct sb_cmd_rule *r = &c.rules[c.n_rules++];
		size_t k = i % PROGRAMS;
		char text[80];

		*r = (struct sb_cmd_rule){ .scope = SB_CMD_SCOPE_TREE, .from = strdup("bench:1") };
		r->action = i % 5 == 4 ? SB_CMD_DENY : SB_CMD_ALLOW;
		r->any_order = i % 50 == 4;
		if (i % 50 == 4)
			(void)snprintf(text, sizeof(text), "tool%zu push --force **", k);
		else if (i % 50 == 14)
			(void)snprintf(text, sizeof(text), "/opt/tool%zu/bin/* **", i);
		else if (i % 50 == 15)
			(void)snprintf(text, sizeof(text), "./scripts/run%zu *", i);
		else if (i % 250 == 24)
			(void)snprintf(text, sizeof(text), "* --evil%zu **", i);
		else
			(void)snprintf(text, sizeof(text), "tool%zu sub%zu **", k, i);
		r->pattern = strdup(text);
	}
	return c;
}

/* @salt: 0 = commands that the rules at i % 5 == @kind are about; else ones that none is about. */
static void fill(size_t kind, size_t salt)
{
	for (size_t n = 0; n < ASKED; n++) {
		struct asked *a = &asked[n];
		size_t i = bench_rnd(RULES / 5) * 5 + kind;

		while (i % 50 == 4 || i % 50 == 14 || i % 50 == 15 || i % 250 == 24)
			i = bench_rnd(RULES / 5) * 5 + kind;
		(void)snprintf(a->path, sizeof(a->path), "/usr/bin/tool%zu", i % PROGRAMS);
		(void)snprintf(a->words[0], sizeof(a->words[0]), "tool%zu", i % PROGRAMS);
		(void)snprintf(a->words[1], sizeof(a->words[1]), "sub%zu", i + salt);
		(void)snprintf(a->words[2], sizeof(a->words[2]), "--verbose=%zu", n);
		(void)snprintf(a->words[3], sizeof(a->words[3]), "origin");
		for (size_t k = 0; k < 4; k++)
			a->argv[k] = a->words[k];
		a->q = (struct sb_cmd_request){
			.path = a->path,
			.file = { 1, 100 + i % PROGRAMS, 900 },
			.fd = -1,
			.argv = a->argv,
			.argc = 4,
			.project = "/work",
		};
	}
}

static void decide_bench(const struct sb_cmdpol *p, const char *label, enum sb_cmd_action want,
			 bool rule)
{
	double v[ROUNDS];

	for (size_t r = 0; r < ROUNDS; r++) {
		double from = bench_now_ns();
		size_t right = 0;

		for (size_t i = 0; i < ASKED; i++) {
			struct sb_cmd_verdict verdict = sb_cmdpol_decide(p, &asked[i].q);

			right += verdict.action == want && !verdict.rule == !rule;
		}
		v[r] = (bench_now_ns() - from) / ASKED;
		if (right != ASKED)
			abort();
	}
	bench_report(label, "ns", 1, v, ROUNDS);
}

static void compile_bench(const struct sb_plan_commands *c)
{
	double v[ROUNDS];

	for (size_t r = 0; r < ROUNDS; r++) {
		double from = bench_now_ns();
		struct sb_cmdpol *p = NULL;

		if (sb_cmdpol_new(c, &files, &p, NULL) < 0)
			abort();
		v[r] = bench_now_ns() - from;
		(void)sb_cmdpol_free(p);
	}
	bench_report("command_compile", "ns", 1, v, ROUNDS);
}

int main(void)
{
	struct sb_plan_commands c = rules();
	struct sb_cmdpol *p = NULL;
	struct sb_err err = { 0 };

	if (sb_cmdpol_new(&c, &files, &p, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	fill(4, 0);
	decide_bench(p, "command_deny", SB_CMD_DENY, true);
	fill(0, 0);
	decide_bench(p, "command_allow", SB_CMD_ALLOW, true);
	fill(0, RULES);
	decide_bench(p, "command_default", SB_CMD_DENY, false);
	compile_bench(&c);
	sb_plan_commands_done(&c);
	(void)sb_cmdpol_free(p);
	return 0;
}
