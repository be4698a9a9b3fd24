/*
 * Words of a command against the words of a pattern.
 *
 * Theory of operation. The pattern is the user's, the command is anybody's: what counts is that no
 * command is expensive. A star is matched from left to right, each stretch between two stars at its
 * first place; a first place is never worse than a later one, so nothing is tried twice: a word
 * costs its length (a stretch with "?" its length times the stretch's). With "**" the same is done
 * one level up, over words; there a word meets each word of the pattern at most once. In a path a
 * star ends at "/", so there are two places to go back to, the last "*" and the last "**".
 *
 * Options in any order are a matching of a small graph: each option word of the pattern needs one
 * of its own, and as many candidates as there are option words suffice for each. A bundle of short
 * options ("-rf") is as many candidates as it has letters.
 */
#include <string.h>

#include "core/cmd_i.h"

/* ---- one word ---- */

static bool stretch_at(const struct sb_cmd_word *w, size_t from, size_t len, const char *s)
{
	for (size_t i = 0; i < len; i++)
		if (w->cls[from + i] == SB_CMD_LIT && w->text[from + i] != s[i])
			return false;
	return true;
}

/* First place of [from, from + len) of the pattern in @s; SIZE_MAX = none. */
static size_t stretch_in(const struct sb_cmd_word *w, size_t from, size_t len, const char *s,
			 size_t s_len)
{
	if (len > s_len)
		return SIZE_MAX;
	if (!memchr(w->cls + from, SB_CMD_ONE, len)) {
		const char *at = memmem(s, s_len, w->text + from, len);

		return at ? (size_t)(at - s) : SIZE_MAX;
	}
	for (size_t i = 0; i + len <= s_len; i++)
		if (stretch_at(w, from, len, s + i))
			return i;
	return SIZE_MAX;
}

/* Bytes from @from to the next star. */
static size_t stretch_len(const struct sb_cmd_word *w, size_t from)
{
	const uint8_t *star = memchr(w->cls + from, SB_CMD_RUN, w->len - from);

	return star ? (size_t)(star - (w->cls + from)) : w->len - from;
}

bool sb_cmd_word_match(const struct sb_cmd_word *w, const char *s, size_t len)
{
	size_t n = stretch_len(w, 0);
	size_t p = n;

	if (n > len || !stretch_at(w, 0, n, s))
		return false;
	s += n;
	len -= n;
	if (p == w->len)
		return len == 0;
	while (p < w->len) { /* at a star */
		size_t at;

		p++;
		n = stretch_len(w, p);
		if (p + n == w->len)
			return n <= len && stretch_at(w, p, n, s + len - n);
		at = stretch_in(w, p, n, s, len);
		if (at == SIZE_MAX)
			return false;
		s += at + n;
		len -= at + n;
		p += n;
	}
	return true;
}

/* ---- one path ---- */

bool sb_cmd_path_match(const struct sb_cmd_word *w, const char *path)
{
	size_t p = 0;
	size_t run_p = SIZE_MAX;
	size_t deep_p = SIZE_MAX;
	const char *run = path;
	const char *deep = path;

	for (;;) {
		uint8_t cls = p < w->len ? w->cls[p] : (uint8_t)SB_CMD_LIT;

		if (p < w->len && cls == SB_CMD_RUN) {
			run_p = ++p;
			run = path;
			continue;
		}
		if (p < w->len && (cls == SB_CMD_DEEP || cls == SB_CMD_DIRS)) {
			if (cls == SB_CMD_DEEP && p + 1 == w->len)
				return true;
			deep_p = ++p;
			deep = path;
			run_p = SIZE_MAX;
			continue;
		}
		if (p == w->len && *path == '\0')
			return true;
		if (p < w->len && *path && (cls == SB_CMD_ONE ? *path != '/' : *path == w->text[p])) {
			p++;
			path++;
			continue;
		}
		if (run_p != SIZE_MAX && *run && *run != '/') {
			path = ++run;
			p = run_p;
			continue;
		}
		if (deep_p == SIZE_MAX)
			return false;
		run_p = SIZE_MAX;
		if (w->cls[deep_p - 1] == SB_CMD_DIRS)
			deep = strchr(deep, '/');
		if (!deep || !*deep)
			return false;
		path = ++deep;
		p = deep_p;
	}
}

/* ---- words in order ---- */

static bool one_word(const struct sb_cmd_word *w, const char *s)
{
	return w->literal ? strcmp(w->text, s) == 0 : sb_cmd_word_match(w, s, strlen(s));
}

/* Place of the first word from @i on that is no option in front of @dashes. */
static size_t next_operand(const char *const *argv, size_t i, size_t argc, size_t dashes)
{
	while (i < argc && (i == dashes || (i < dashes && sb_cmd_is_option(argv[i]))))
		i++;
	return i;
}

/* @dashes: place of "--"; 0 with @any_order false: every word is an operand. */
static bool operands(const struct sb_cmd_args *a, const char *const *argv, size_t argc,
		     size_t dashes)
{
	size_t i = a->any_order ? next_operand(argv, 0, argc, dashes) : 0;
	size_t deep_p = SIZE_MAX;
	size_t deep = 0;
	size_t p = 0;

	while (i < argc) {
		if (p < a->n_operands && a->word[p].deep) {
			if (p + 1 == a->n_operands)
				return true;
			deep_p = ++p;
			deep = i;
			continue;
		}
		if (p < a->n_operands && one_word(&a->word[p], argv[i])) {
			p++;
			i++;
		} else if (deep_p != SIZE_MAX) {
			deep++;
			if (a->any_order)
				deep = next_operand(argv, deep, argc, dashes);
			i = deep;
			p = deep_p;
			continue;
		} else {
			return false;
		}
		if (a->any_order)
			i = next_operand(argv, i, argc, dashes);
	}
	while (p < a->n_operands && a->word[p].deep)
		p++;
	return p == a->n_operands;
}

/* ---- options in any order ---- */

struct spot { /* an option of the command: a whole word (at 0), or a letter of a bundle */
	uint32_t word;
	uint32_t at;
};
struct graph {
	struct spot spot[SB_CMD_MAX_TOKENS][SB_CMD_MAX_TOKENS];
	uint8_t n[SB_CMD_MAX_TOKENS];
	uint8_t pick[SB_CMD_MAX_TOKENS]; /* index in spot[k]; NONE */
	size_t n_options;
};
#define NONE UINT8_MAX

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* "-x": looked for in bundles, too. */
static bool is_short(const struct sb_cmd_word *w)
{
	return w->literal && w->len == 2 && is_letter(w->text[1]);
}

/* Letters of a bundle; 0 = @s is none. */
static size_t bundle(const char *s)
{
	size_t n = 1;

	while (is_letter(s[n]))
		n++;
	return n - 1;
}

static void add_spot(struct graph *g, size_t k, size_t word, size_t at)
{
	if (g->n[k] < g->n_options)
		g->spot[k][g->n[k]++] = (struct spot){ (uint32_t)word, (uint32_t)at };
}

/* @letters: those of the pattern's short options. A whole word that has none of them comes first:
 * the others may be needed letter by letter. */
static void candidates(struct graph *g, const struct sb_cmd_word *w, size_t k,
		       const char *const *argv, size_t argc, const char *letters)
{
	for (size_t i = 0; is_short(w) && i < argc; i++) {
		size_t n = sb_cmd_is_option(argv[i]) ? bundle(argv[i]) : 0;

		for (size_t c = 1; c <= n && g->n[k] < g->n_options; c++)
			if (argv[i][c] == w->text[1])
				add_spot(g, k, i, c);
	}
	for (unsigned int pass = 0; !is_short(w) && pass < 2; pass++) {
		for (size_t i = 0; i < argc && g->n[k] < g->n_options; i++) {
			bool wanted;

			if (!sb_cmd_is_option(argv[i]))
				continue;
			wanted = strcspn(argv[i] + 1, letters) < bundle(argv[i]);
			if (wanted == (pass == 1) && one_word(w, argv[i]))
				add_spot(g, k, i, 0);
		}
	}
}

/* Which option has picked @s? */
static size_t owner(const struct graph *g, const struct spot *s)
{
	for (size_t k = 0; k < g->n_options; k++) {
		const struct spot *have;

		if (g->pick[k] == NONE)
			continue;
		have = &g->spot[k][g->pick[k]];
		if (have->word == s->word && have->at == s->at)
			return k;
	}
	return SIZE_MAX;
}

/* Give @root a spot, moving others to spots of theirs. */
static bool augment(struct graph *g, size_t root)
{
	uint8_t queue[SB_CMD_MAX_TOKENS];
	uint8_t parent[SB_CMD_MAX_TOKENS];
	bool seen[SB_CMD_MAX_TOKENS] = { false };
	size_t n = 0;

	queue[n++] = (uint8_t)root;
	seen[root] = true;
	for (size_t head = 0; head < n; head++) {
		size_t k = queue[head];

		for (uint8_t c = 0; c < g->n[k]; c++) {
			size_t o = owner(g, &g->spot[k][c]);
			uint8_t pick = c;

			if (o != SIZE_MAX) {
				if (!seen[o]) {
					seen[o] = true;
					parent[o] = (uint8_t)k;
					queue[n++] = (uint8_t)o;
				}
				continue;
			}
			/* What k had is what its parent came for. */
			while (k != root) {
				struct spot had = g->spot[k][g->pick[k]];
				size_t up = parent[k];

				g->pick[k] = pick;
				for (pick = 0; g->spot[up][pick].word != had.word ||
					       g->spot[up][pick].at != had.at;)
					pick++;
				k = up;
			}
			g->pick[k] = pick;
			return true;
		}
	}
	return false;
}

/* Every option of the command is one that the pattern has. */
static bool all_taken(const struct graph *g, const char *const *argv, size_t argc)
{
	for (size_t i = 0; i < argc; i++) {
		size_t letters = 0;
		bool whole = false;

		if (!sb_cmd_is_option(argv[i]))
			continue;
		for (size_t k = 0; k < g->n_options; k++) {
			const struct spot *s = &g->spot[k][g->pick[k]];

			whole |= s->word == i && s->at == 0;
			letters += s->word == i && s->at > 0;
		}
		if (!whole && (letters == 0 || letters < strlen(argv[i]) - 1))
			return false;
	}
	return true;
}

static bool options(const struct sb_cmd_args *a, const char *const *argv, size_t argc)
{
	const struct sb_cmd_word *w = a->word + a->n_operands;
	char letters[SB_CMD_MAX_TOKENS + 1];
	size_t n_letters = 0;
	struct graph g;

	g.n_options = a->n_options;
	for (size_t k = 0; k < a->n_options; k++) {
		g.n[k] = 0;
		g.pick[k] = NONE;
		if (is_short(&w[k]))
			letters[n_letters++] = w[k].text[1];
	}
	letters[n_letters] = '\0';
	for (size_t k = 0; k < a->n_options; k++) {
		candidates(&g, &w[k], k, argv, argc, letters);
		if (!augment(&g, k))
			return false;
	}
	return a->deep || all_taken(&g, argv, argc);
}

bool sb_cmd_args_match(const struct sb_cmd_args *a, const char *const *argv, size_t argc)
{
	size_t dashes = 0;

	if (!a->any_order) {
		if (!a->deep && a->n_operands != argc)
			return false;
		return operands(a, argv, argc, 0);
	}
	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	if (a->dashes && dashes == argc)
		return false;
	return operands(a, argv, argc, dashes) && options(a, argv, dashes);
}
