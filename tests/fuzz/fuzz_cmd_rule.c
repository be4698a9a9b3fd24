/*
 * Patterns and commands. The input: one pattern a line, an empty line, then the words of a command,
 * one a line, the first the path. What is accepted can be written again and means the same; what
 * is accepted compiles; a decision agrees with matching rule by rule; and work stays bounded.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cmd_i.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_RULES 16
#define MAX_WORDS 64

/* An image in which every name without "x" is one file, by its first letter. */
static int find(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		struct sb_cmd_file *ret)
{
	(void)arg;
	if (nth > 0 || strchr(name, 'x') ||
	    (size_t)snprintf(path, cap, "%s%s", name[0] == '/' ? "" : "/usr/bin/", name) >= cap)
		return -ENOENT;
	*ret = (struct sb_cmd_file){ 1, 1 + (uint64_t)(uint8_t)name[0], 5 };
	return 0;
}

static int list(void *arg, int (*each)(void *each_arg, const char *name), void *each_arg)
{
	static const char *const names[] = { "git", "busybox", "ls", "git-push", "coreutils" };
	int r = 0;

	(void)arg;
	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(names); i++)
		r = each(each_arg, names[i]);
	return r;
}

static int digest(void *arg, const char *path, int fd, uint8_t ret[32])
{
	(void)arg;
	(void)fd;
	memset(ret, path[0], 32);
	return 0;
}
static const struct sb_cmd_files files = { find, list, digest, NULL };

static void write_word(char *out, size_t *n, const struct sb_cmd_word *w)
{
	for (uint32_t i = 0; i < w->len; i++) {
		switch (w->cls[i]) {
		case SB_CMD_LIT:
			out[(*n)++] = '\\';
			break;
		case SB_CMD_DEEP:
			out[(*n)++] = '*';
			break;
		case SB_CMD_DIRS:
			memcpy(out + *n, "**", 2);
			*n += 2;
			out[(*n)++] = '/';
			continue;
		default:
			break;
		}
		out[(*n)++] = w->text[i];
	}
	out[(*n)++] = ' ';
}

static bool same(const struct sb_cmd_word *a, const struct sb_cmd_word *b)
{
	return a->len == b->len && a->literal == b->literal && a->deep == b->deep &&
	       memcmp(a->text, b->text, a->len) == 0 && memcmp(a->cls, b->cls, a->len) == 0;
}

/* Write it and read that. With options in any order the words come in another order. */
static void written_again(const struct sb_cmd_pattern *p)
{
	static char text[4 * SB_CMD_MAX_PATTERN];
	static struct sb_cmd_pattern again;
	size_t n = 0;

	if (p->kind == SB_CMD_PROG_LOCAL) {
		memcpy(text, "./", 2);
		n = 2;
	}
	if (!(p->kind == SB_CMD_PROG_ANY && p->prog.deep))
		write_word(text, &n, &p->prog);
	for (size_t i = 0; i < p->n_options; i++)
		write_word(text, &n, &p->word[p->n_operands + i]);
	for (size_t i = 0; i < p->n_operands; i++)
		write_word(text, &n, &p->word[i]);
	text[n] = '\0';
	/* Words behind "--" may look like options: the order is lost, so is their meaning. */
	if (n > SB_CMD_MAX_PATTERN || p->dashes)
		return;
	if (sb_cmd_pattern_parse(text, p->any_order, &again, NULL) < 0 ||
	    again.kind != p->kind || again.n_operands != p->n_operands ||
	    again.n_options != p->n_options || again.deep != p->deep || !same(&again.prog, &p->prog))
		abort();
	for (size_t i = 0; i < p->n_operands + p->n_options; i++)
		if (!same(&again.word[i], &p->word[i]))
			abort();
}

static bool holds(const struct sb_cmd_pattern *p, const struct sb_cmd_request *q)
{
	const struct sb_cmd_args a = { p->word, (uint16_t)p->n_operands, (uint16_t)p->n_options,
				       p->any_order, p->dashes, p->deep };

	return sb_cmd_args_match(&a, q->argv + 1, q->argc - 1);
}

/* For rules on any program a decision is the same as trying one after the other. */
static void decisions(struct sb_cmd_rule *rules, size_t n, const struct sb_cmd_request *q)
{
	static struct sb_cmd_pattern p;
	const struct sb_plan_commands c = { SB_CMD_SCOPE_TREE, SB_CMD_ALLOW, rules, n, false };
	struct sb_cmdpol *pol = NULL;
	struct sb_cmd_verdict v;
	size_t want = SIZE_MAX;
	char out[2048];
	bool all = true;

	if (sb_plan_commands_check(&c, NULL) < 0 || sb_cmdpol_new(&c, &files, &pol, NULL) < 0)
		abort();
	v = sb_cmdpol_decide(pol, q);
	sb_cmd_explain(&v, q, out, sizeof(out));
	for (size_t i = 0; out[i]; i++)
		if ((uint8_t)out[i] < 0x20 || (uint8_t)out[i] >= 0x7f)
			abort();
	for (size_t i = 0; i < n; i++) {
		if (sb_cmd_pattern_parse(rules[i].pattern, rules[i].any_order, &p, NULL) < 0)
			abort();
		all &= p.kind == SB_CMD_PROG_ANY;
		if (p.kind == SB_CMD_PROG_ANY && holds(&p, q) &&
		    (want == SIZE_MAX ||
		     (rules[i].action == SB_CMD_DENY && rules[want].action != SB_CMD_DENY)))
			want = i;
	}
	if (all && strcmp(v.why, "loader") != 0 && sb_cmdpol_index(pol, v.rule) != want)
		abort();
	if (want != SIZE_MAX && rules[want].action == SB_CMD_DENY && v.action != SB_CMD_DENY)
		abort();
	(void)sb_cmdpol_free(pol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_cmd_pattern p;
	struct sb_cmd_rule rules[MAX_RULES];
	const char *argv[MAX_WORDS];
	struct sb_cmd_request q = { .fd = -1, .argv = argv, .project = "/w" };
	char *text = malloc(size + 1);
	struct sb_err err = { 0 };
	size_t n = 0;
	char *s = text;

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	while (s && *s && *s != '\n') {
		char *line = s;
		bool any = line[0] == '~';

		s = strchr(s, '\n');
		if (s)
			*s++ = '\0';
		if (sb_cmd_rule_check(line, any, &err) < 0) {
			if (!err.text[0])
				abort();
			continue;
		}
		if (sb_cmd_pattern_parse(line + any, any, &p, NULL) == 0)
			written_again(&p);
		if (n < MAX_RULES && sb_cmd_rule_check(line + any, any, NULL) == 0) {
			rules[n] = (struct sb_cmd_rule){ .pattern = line + any, .any_order = any };
			rules[n].action = n % 3 ? SB_CMD_ALLOW : SB_CMD_DENY;
			rules[n].scope = SB_CMD_SCOPE_TREE;
			rules[n++].from = line;
		}
	}
	s = s && *s ? s + 1 : NULL;
	q.path = s ? s : "";
	while (s && q.argc < MAX_WORDS) {
		s = strchr(s, '\n');
		if (s) {
			*s++ = '\0';
			argv[q.argc++] = s;
		}
	}
	if (q.argc == 0)
		argv[q.argc++] = "";
	if (q.path[0] == '/')
		(void)find(NULL, q.path, 0, (char[8192]){ 0 }, 8192, &q.file);
	decisions(rules, n, &q);
	free(text);
	return 0;
}
