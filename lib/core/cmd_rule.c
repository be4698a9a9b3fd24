/* Patterns of command rules: from text to words. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cmd_i.h"

#define SHOWN 120 /* bytes of a pattern in a message */

static int refuse(struct sb_err *err, const char *pattern, const char *why)
{
	size_t n = strnlen(pattern, SHOWN);
	char shown[SHOWN + 1];

	for (size_t i = 0; i < n; i++)
		shown[i] = pattern[i] >= 0x20 && pattern[i] != 0x7f ? pattern[i] : '?';
	shown[n] = '\0';
	return sb_err_set(err, -EINVAL, "command rule \"%s\"%s: %s", shown,
			  n == SHOWN ? "..." : "", why);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* One word from *@s on into the buffers. */
static const char *take_word(const char **s, struct sb_cmd_pattern *p, struct sb_cmd_word *w)
{
	const char *c = *s;
	size_t start = p->used;

	w->literal = true;
	for (; *c && !is_blank(*c); c++) {
		enum sb_cmd_class cls = SB_CMD_LIT;

		if (*c == '\\') {
			if (*++c == '\0')
				return "a backslash at the end stands for nothing; write \"\\\\\" "
				       "for a backslash";
		} else if (*c == '?') {
			cls = SB_CMD_ONE;
		} else if (*c == '*') {
			cls = SB_CMD_RUN;
		}
		w->literal &= cls == SB_CMD_LIT;
		p->text[p->used] = *c;
		p->cls[p->used++] = (uint8_t)cls;
	}
	w->len = (uint32_t)(p->used - start);
	w->text = p->text + start;
	w->cls = p->cls + start;
	w->deep = w->len == 2 && w->cls[0] == SB_CMD_RUN && w->cls[1] == SB_CMD_RUN;
	p->text[p->used++] = '\0';
	*s = c;
	return NULL;
}

static const char *take_words(const char *s, struct sb_cmd_pattern *p, size_t *ret)
{
	size_t n = 0;

	for (;;) {
		const char *why;

		while (is_blank(*s))
			s++;
		if (*s == '\0')
			break;
		if (n == SB_CMD_MAX_TOKENS)
			return "more than 64 words";
		why = take_word(&s, p, &p->word[n++]);
		if (why)
			return why;
	}
	*ret = n;
	return n == 0 ? "it is empty" : NULL;
}

/* ---- the program ---- */

/* Replace runs of stars in the buffers by what they mean in a path. */
static void deepen(struct sb_cmd_pattern *p, struct sb_cmd_word *w)
{
	char *text = p->text + (w->text - p->text);
	uint8_t *cls = p->cls + (w->cls - p->cls);
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->len;) {
		uint32_t stars = 0;

		while (i + stars < w->len && cls[i + stars] == SB_CMD_RUN)
			stars++;
		if (stars < 2) {
			text[n] = text[i];
			cls[n++] = cls[i++];
			continue;
		}
		i += stars;
		cls[n] = SB_CMD_DEEP;
		if (i < w->len && text[i] == '/' &&
		    (n == 0 || (cls[n - 1] == SB_CMD_LIT && text[n - 1] == '/') ||
		     cls[n - 1] == SB_CMD_DIRS)) {
			cls[n] = SB_CMD_DIRS;
			i++;
		}
		text[n++] = '*';
	}
	text[n] = '\0';
	w->len = n;
}

/* Without "//", "." and ".." between slashes, without "/" at the end. @s: behind the first "/". */
static bool is_normal(const struct sb_cmd_word *w, uint32_t at)
{
	uint32_t start = at;

	for (uint32_t i = at; i <= w->len; i++) {
		uint32_t n = i - start;

		if (i < w->len && w->text[i] != '/')
			continue;
		if (n == 0 || (n == 1 && w->text[start] == '.' && w->cls[start] == SB_CMD_LIT) ||
		    (n == 2 && memcmp(w->text + start, "..", 2) == 0))
			return false;
		start = i + 1;
	}
	return true;
}

static const char *path_kind(struct sb_cmd_pattern *p)
{
	static const char abnormal[] =
		"a path has no \"//\", no \".\" or \"..\" as a part and no \"/\" at its end";
	struct sb_cmd_word *w = &p->prog;
	bool local = w->len > 1 && w->text[0] == '.' && w->text[1] == '/';
	bool deep = w->len > 2 && w->cls[0] == SB_CMD_RUN && w->cls[1] == SB_CMD_RUN &&
		    w->text[2] == '/';

	if (!local && !deep && w->text[0] != '/')
		return "a program with \"/\" begins with \"/\" (an absolute path), \"./\" (the "
		       "project) or \"**/\" (anywhere)";
	if (!is_normal(w, local ? 2 : deep ? 0 : 1))
		return abnormal;
	if (local) {
		w->text += 2;
		w->cls += 2;
		w->len -= 2;
		p->kind = SB_CMD_PROG_LOCAL;
	} else {
		p->kind = w->literal ? SB_CMD_PROG_PATH : SB_CMD_PROG_PATH_GLOB;
	}
	if (!w->literal)
		deepen(p, w);
	return NULL;
}

static const char *program(struct sb_cmd_pattern *p, size_t *n)
{
	struct sb_cmd_word *w = &p->prog;

	*w = p->word[0];
	if (w->deep) {
		if (*n > 1)
			return "\"**\" may not come first; write \"*\" for any program";
		p->kind = SB_CMD_PROG_ANY; /* and it stays a word: any arguments */
		return NULL;
	}
	(*n)--;
	memmove(p->word, p->word + 1, *n * sizeof(p->word[0]));
	if (memchr(w->text, '/', w->len))
		return path_kind(p);
	if (w->literal && (strcmp(w->text, ".") == 0 || strcmp(w->text, "..") == 0))
		return "this is a folder, not a program";
	if (w->len == 1 && w->cls[0] == SB_CMD_RUN)
		p->kind = SB_CMD_PROG_ANY;
	else
		p->kind = w->literal ? SB_CMD_PROG_NAME : SB_CMD_PROG_NAME_GLOB;
	return NULL;
}

/* ---- the rest ---- */

static bool is_option(const struct sb_cmd_word *w)
{
	return w->len > 1 && w->text[0] == '-' && w->cls[0] == SB_CMD_LIT &&
	       sb_cmd_is_option(w->text);
}

/* Operands to the front, each kind in its order. */
static void sort_words(struct sb_cmd_pattern *p, size_t n)
{
	struct sb_cmd_word option[SB_CMD_MAX_TOKENS];

	for (size_t i = 0; i < n; i++) {
		const struct sb_cmd_word w = p->word[i];

		if (p->any_order && !p->dashes && is_option(&w)) {
			option[p->n_options++] = w;
		} else if (p->any_order && !p->dashes && w.literal && strcmp(w.text, "--") == 0) {
			p->dashes = true;
		} else {
			p->deep |= w.deep;
			p->word[p->n_operands++] = w;
		}
	}
	memcpy(p->word + p->n_operands, option, p->n_options * sizeof(option[0]));
}

int sb_cmd_pattern_parse(const char *pattern, bool any_order, struct sb_cmd_pattern *ret,
			 struct sb_err *err)
{
	const char *why;
	size_t n = 0;

	if (strnlen(pattern, SB_CMD_MAX_PATTERN + 1) > SB_CMD_MAX_PATTERN)
		return refuse(err, pattern, "longer than 4096 bytes");
	ret->kind = SB_CMD_PROG_ANY;
	ret->n_operands = 0;
	ret->n_options = 0;
	ret->any_order = any_order;
	ret->dashes = false;
	ret->deep = false;
	ret->used = 0;
	why = take_words(pattern, ret, &n);
	if (!why)
		why = program(ret, &n);
	if (why)
		return refuse(err, pattern, why);
	sort_words(ret, n);
	return 0;
}

int sb_cmd_rule_check(const char *pattern, bool any_order, struct sb_err *err)
{
	struct sb_cmd_pattern p;

	return sb_cmd_pattern_parse(pattern, any_order, &p, err);
}
