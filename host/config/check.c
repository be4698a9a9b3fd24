/*
 * One document against the key table: a walk over both trees at once. Every problem is told and the
 * walk goes on beside it; what could not be understood is left out of the result.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/near.h"
#include "cfg_i.h"

void check_problem(struct check *c, const struct doc_node *at, const char *code, const char *fmt, ...)
{
	struct problem_at where = { c->file, at->line, at->col };
	va_list ap;

	va_start(ap, fmt);
	problems_addv(c->p, &where, c->path, code, fmt, ap);
	va_end(ap);
}

static const char *kind_name(const struct doc_node *n)
{
	static const char *const names[] = { "nothing", "true or false", "a whole number", "a number",
					     "text",	"a list",	 "a map" };

	return names[n->kind];
}

static bool fits(enum cfg_type t, const struct doc_node *n)
{
	switch (t) {
	case CFG_T_BOOL:
		return n->kind == DOC_BOOL;
	case CFG_T_INT:
		return n->kind == DOC_INT;
	case CFG_T_STR:
	case CFG_T_PATH:
	case CFG_T_ENUM:
		return n->kind == DOC_STR;
	case CFG_T_SIZE:
	case CFG_T_DURATION:
		return n->kind == DOC_INT || n->kind == DOC_STR;
	case CFG_T_LIST:
		return n->kind == DOC_SEQ;
	case CFG_T_MAP:
	case CFG_T_TABLE:
		return n->kind == DOC_MAP;
	case CFG_T_NULL:
		return n->kind == DOC_NULL;
	case CFG_T_ANY:
		return true;
	default:
		return false;
	}
}

/* "allow|deny|!kata" as "allow, deny" */
static void words_text(const char *words, char *out, size_t cap)
{
	out[0] = '\0';
	while (*words) {
		size_t len = strcspn(words, "|");

		if (*words != '!') {
			(void)text_append(out, cap, ", ", out[0] ? 2 : 0);
			(void)text_append(out, cap, words, len);
		}
		words += len + (words[len] == '|');
	}
}

static void wanted(const struct cfg_key *row, char *out, size_t cap)
{
	char words[160];

	switch (row->type) {
	case CFG_T_BOOL:
		(void)snprintf(out, cap, "true or false");
		break;
	case CFG_T_INT:
		(void)snprintf(out, cap, "a whole number");
		break;
	case CFG_T_ENUM:
		words_text(row->words, words, sizeof(words));
		(void)snprintf(out, cap, "one of %s", words);
		break;
	case CFG_T_SIZE:
		(void)snprintf(out, cap, "a size: a number of MiB, or \"512m\", \"4g\"");
		break;
	case CFG_T_DURATION:
		(void)snprintf(out, cap, "a time: a number of seconds, or \"90s\", \"1.5h\"");
		break;
	case CFG_T_LIST:
		(void)snprintf(out, cap, "a list");
		break;
	case CFG_T_MAP:
	case CFG_T_TABLE:
		(void)snprintf(out, cap, "a map");
		break;
	case CFG_T_NULL:
		(void)snprintf(out, cap, "null");
		break;
	case CFG_T_STR:
	case CFG_T_PATH:
	case CFG_T_ANY:
	default:
		(void)snprintf(out, cap, "text");
		break;
	}
}

static void wrong_type(struct check *c, size_t place, const struct doc_node *n)
{
	const struct cfg_key *row = &cfg_keys[place];
	char want[300] = "";

	for (size_t i = 0; i < table_rows(place); i++) {
		char one[200];

		wanted(&row[i], one, sizeof(one));
		(void)text_append(want, sizeof(want), " or ", i > 0 ? 4 : 0);
		(void)text_append(want, sizeof(want), one, strlen(one));
	}
	if (n->kind == DOC_NULL)
		check_problem(c, n, "wrong_type", "has no value; it must be %s: write one or take the "
			      "key out", want);
	else if (n->kind == DOC_SEQ || n->kind == DOC_MAP)
		check_problem(c, n, "wrong_type", "must be %s, not %s", want, kind_name(n));
	else if (n->kind != DOC_STR && strstr(want, "text"))
		check_problem(c, n, "wrong_type", "must be %s; write \"%.60s\" with its quotes", want,
			      n->text);
	else
		check_problem(c, n, "wrong_type", "must be %s, not %s \"%.60s\"", want, kind_name(n),
			      n->text);
}

/* A word that was meant: the nearest, when it is near enough. */
struct nearest {
	const char *word;
	const char *found;
	unsigned int best;
	char room[64];
};
static void consider(struct nearest *s, const char *word, size_t len)
{
	size_t n = strlen(s->word);
	unsigned int max = n <= 3 ? 1 : n <= 8 ? 2 : 3;
	char text[64];
	unsigned int d;

	if (len >= sizeof(text))
		return;
	memcpy(text, word, len);
	text[len] = '\0';
	d = sb_near(s->word, text, max);
	if (d <= max && (!s->found || d < s->best)) {
		memcpy(s->room, text, len + 1);
		s->found = s->room;
		s->best = d;
	}
}

static bool take_enum(struct check *c, const struct cfg_key *row, const struct doc_node *n,
		      struct cfg_value *v)
{
	struct nearest near = { .word = n->text };
	size_t before = c->p->n;
	char words[160];

	for (const char *w = row->words; *w;) {
		size_t len = strcspn(w, "|");
		bool later = *w == '!';

		if (n->len == len - later && memcmp(n->text, w + later, n->len) == 0) {
			if (later)
				check_problem(c, n, "not_available", "\"%s\" is not available yet",
					      n->text);
			v->text = arena_text(c->a, n->text, n->len);
			c->oom = c->oom || !v->text;
			v->kind = DOC_STR;
			return !later;
		}
		if (!later)
			consider(&near, w, len);
		w += len + (w[len] == '|');
	}
	words_text(row->words, words, sizeof(words));
	check_problem(c, n, "bad_value", "\"%.60s\" must be one of %s", n->text, words);
	problems_near(c->p, before, near.found);
	return false;
}

static bool take_size(struct check *c, const struct cfg_key *row, const struct doc_node *n,
		      struct cfg_value *v)
{
	bool size = row->type == CFG_T_SIZE;
	bool zero = (n->kind == DOC_INT && n->integer == 0) || (n->kind == DOC_STR && strcmp(n->text, "0") == 0);
	uint64_t amount = 0;
	int r = 0;

	if (n->kind == DOC_INT && !zero)
		r = n->integer < 0 || __builtin_mul_overflow((uint64_t)n->integer,
							     size ? (uint64_t)1 << 20 : 1000U, &amount)
			    ? -ERANGE
			    : 0;
	else if (!zero)
		r = size ? sb_num_size(n->text, &amount) : sb_num_duration_ms(n->text, &amount);
	if (r == -EINVAL) {
		check_problem(c, n, "bad_value", size ? "\"%.60s\" is no size: a number of MiB, or as "
							"512m, 1.5g"
						      : "\"%.60s\" is no time: a number of seconds, or "
							"as 90s, 30m, 1.5h", n->text);
		return false;
	}
	if (r < 0 || amount < (uint64_t)row->min || amount > (uint64_t)row->max) {
		if (size)
			check_problem(c, n, "bad_value", "%.60s: must be from %s to %lld GiB", n->text,
				      row->min >= 1 << 20 ? "1 MiB" : row->min > 0 ? "1 byte" : "0",
				      (long long)(row->max >> 30));
		else
			check_problem(c, n, "bad_value", "%.60s: must be from %s to %lld days", n->text,
				      row->min > 0 ? "1 ms" : "0", (long long)(row->max / 86400000));
		return false;
	}
	v->kind = DOC_INT;
	v->integer = (int64_t)amount;
	return true;
}

static bool take_int(struct check *c, const struct cfg_key *row, const struct doc_node *n,
		     struct cfg_value *v)
{
	if (n->integer < row->min || n->integer > row->max) {
		if (row->min == row->max)
			check_problem(c, n, "bad_value", "%.40s: must be %lld", n->text,
				      (long long)row->min);
		else
			check_problem(c, n, "bad_value", "%.40s: must be from %lld to %lld", n->text,
				      (long long)row->min, (long long)row->max);
		return false;
	}
	v->kind = DOC_INT;
	v->integer = n->integer;
	return true;
}

static bool is_blank(const char *s)
{
	return s[strspn(s, " \t\r\n")] == '\0';
}

static bool take_text(struct check *c, const struct cfg_key *row, const struct doc_node *n,
		      struct cfg_value *v)
{
	if (row->min > 0 && is_blank(n->text)) {
		check_problem(c, n, "bad_value", "may not be empty or blank");
		return false;
	}
	if (n->len > (size_t)row->max) {
		check_problem(c, n, "bad_value", "has %zu bytes; at most %lld", n->len,
			      (long long)row->max);
		return false;
	}
	v->kind = DOC_STR;
	return check_text(c, row, n, &v->text);
}

/* ---- containers ---- */

static bool convert(struct check *c, size_t place, const struct doc_node *n, struct cfg_value *ret);

static size_t enter(struct check *c, const char *fmt, ...) SB_PRINTF(2, 3);
static size_t enter(struct check *c, const char *fmt, ...)
{
	size_t was = c->path_len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(c->path + was, sizeof(c->path) - was, fmt, ap);
	va_end(ap);
	c->path_len = SB_MIN(was + (size_t)SB_MAX(n, 0), sizeof(c->path) - 1);
	return was;
}

static void leave(struct check *c, size_t was)
{
	c->path_len = was;
	c->path[was] = '\0';
}

static bool take_list(struct check *c, size_t place, const struct cfg_key *row,
		      const struct doc_node *n, struct cfg_value *v)
{
	size_t item = table_child(place, "[]");
	bool good = true;

	if (n->n < (size_t)row->min || n->n > (size_t)row->max) {
		check_problem(c, n, "bad_value", "a list of %zu entries; %s %lld", n->n,
			      n->n < (size_t)row->min ? "at least" : "at most",
			      (long long)(n->n < (size_t)row->min ? row->min : row->max));
		return false;
	}
	v->kind = DOC_SEQ;
	v->items = arena_array(c->a, n->n, sizeof(*v->items));
	if (!v->items) {
		c->oom = true;
		return false;
	}
	c->in_item++;
	for (size_t i = 0; i < n->n && !c->oom; i++) {
		size_t was = enter(c, "[%zu]", i);

		if (convert(c, item, &n->items[i], &v->items[v->n]))
			v->n++;
		else
			good = false;
		leave(c, was);
	}
	c->in_item--;
	return good;
}

/* Where else in the table the key is. */
static const char *elsewhere(const char *name)
{
	const char *found = NULL;

	for (size_t i = 0; i < cfg_n_keys; i += table_rows(i)) {
		if (strcmp(table_name(i), name) != 0 || strstr(cfg_keys[i].path, "[]") ||
		    cfg_keys[i].state == CFG_NOT_YET)
			continue;
		if (found)
			return NULL; /* in more than one place */
		found = cfg_keys[i].path;
	}
	return found;
}

static void unknown(struct check *c, size_t place, const struct doc_node *key)
{
	struct nearest near = { .word = key->text };
	const char *other = elsewhere(key->text);
	size_t before = c->p->n;

	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i))
		consider(&near, table_name(i), strlen(table_name(i)));
	if (other) {
		check_problem(c, key, "unknown_key", "\"%.100s\" does not belong here; it is %s",
			      key->text, other);
		problems_near(c->p, before, other);
		return;
	}
	check_problem(c, key, "unknown_key", "there is no key \"%.100s\" here%s", key->text,
		      near.found ? "" : "; sendbox.yaml(5) lists them");
	problems_near(c->p, before, near.found);
}

struct cfg_value *check_member(struct cfg_value *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->keys[i], key) == 0)
			return &map->items[i];
	return NULL;
}

/* Add the defaults of an element's keys. @map has room for every key of the table. */
bool check_fill(struct check *c, size_t place, struct cfg_value *map)
{
	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i)) {
		if (!cfg_keys[i].fallback || check_member(map, table_name(i)))
			continue;
		map->keys[map->n] = table_name(i);
		if (cfg_from_text(c->a, &cfg_keys[i], cfg_keys[i].fallback, &map->items[map->n]) < 0) {
			c->oom = true;
			return false;
		}
		map->n++;
	}
	return true;
}

static bool check_required(struct check *c, size_t place, const struct doc_node *n)
{
	bool good = true;

	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i)) {
		if (!cfg_keys[i].required || doc_get(n, table_name(i)))
			continue;
		check_problem(c, n, "missing_key", "needs the key \"%s\"", table_name(i));
		good = false;
	}
	return good;
}

static size_t count_keys(size_t place)
{
	size_t n = 0;

	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i))
		n++;
	return n;
}

static bool take_map(struct check *c, size_t place, const struct cfg_key *row,
		     const struct doc_node *n, struct cfg_value *v)
{
	bool table = row && row->type == CFG_T_TABLE;
	size_t room = n->n + count_keys(place);
	bool good = true;

	if (table && (n->n < (size_t)row->min || n->n > (size_t)row->max)) {
		check_problem(c, n, "bad_value", "%zu entries; at most %lld", n->n, (long long)row->max);
		return false;
	}
	v->kind = DOC_MAP;
	v->items = arena_array(c->a, room, sizeof(*v->items));
	v->keys = arena_array(c->a, room, sizeof(*v->keys));
	if (!v->items || !v->keys) {
		c->oom = true;
		return false;
	}
	for (size_t i = 0; i < n->n && !c->oom; i++) {
		const struct doc_node *key = &n->keys[i];
		size_t child = table_child(place, key->text);
		size_t was = enter(c, "%s%.100s", c->path_len > 0 ? "." : "", key->text);

		if (child == TABLE_NONE) {
			unknown(c, place, key);
			good = false;
		} else if (check_member(v, key->text)) {
			good = false; /* told by the document's reader */
		} else if ((table && !check_name(c, place, key)) ||
			   !convert(c, child, &n->items[i], &v->items[v->n])) {
			good = false;
		} else {
			v->keys[v->n] = arena_text(c->a, key->text, key->len);
			c->oom = c->oom || !v->keys[v->n];
			v->n++;
		}
		leave(c, was);
	}
	if (!check_required(c, place, n))
		good = false;
	if (good && c->in_item > 0 && !table)
		good = check_entry(c, row, n) && check_fill(c, place, v);
	return good && !c->oom;
}

/* What is not looked into further. */
static bool take_any(struct check *c, const struct doc_node *n, struct cfg_value *v)
{
	v->kind = n->kind == DOC_SEQ || n->kind == DOC_MAP ? DOC_NULL : n->kind;
	v->boolean = n->boolean;
	v->integer = n->integer;
	if (n->kind == DOC_STR || n->kind == DOC_FLOAT) {
		v->kind = DOC_STR;
		v->text = arena_text(c->a, n->text, n->len);
		c->oom = c->oom || !v->text;
	}
	return !c->oom;
}

/* ---- not available yet ---- */

static bool is_neutral(const struct cfg_key *row, const struct cfg_value *v)
{
	char number[24];

	if (!row->neutral)
		return false;
	if (strcmp(row->neutral, "*") == 0)
		return true;
	switch (v->kind) {
	case DOC_BOOL:
		return strcmp(row->neutral, v->boolean ? "true" : "false") == 0;
	case DOC_INT:
		(void)snprintf(number, sizeof(number), "%lld", (long long)v->integer);
		return strcmp(row->neutral, number) == 0;
	case DOC_STR:
		return strcmp(row->neutral, v->text) == 0;
	case DOC_SEQ:
	case DOC_MAP:
		return v->n == 0;
	case DOC_NULL:
	case DOC_FLOAT:
	default:
		return false;
	}
}

static bool check_available(struct check *c, const struct cfg_key *row, const struct doc_node *n,
			    const struct cfg_value *v)
{
	if (row->state != CFG_NOT_YET || is_neutral(row, v))
		return true;
	if (row->neutral)
		check_problem(c, n, "not_available", "%s is not available yet: %s; take it out, or write "
			      "%s", c->path, row->help, row->neutral);
	else
		check_problem(c, n, "not_available", "%s is not available yet: %s; take it out",
			      c->path, row->help);
	return false;
}

/* ---- the walk ---- */

static bool take(struct check *c, size_t place, const struct cfg_key *row, const struct doc_node *n,
		 struct cfg_value *v)
{
	if (row->type == CFG_T_STR && (row->text == CFG_X_MOUNT || row->text == CFG_X_COMMAND) &&
	    strcmp(table_name(place), "[]") == 0)
		return check_as_map(c, place, n, v);
	switch (row->type) {
	case CFG_T_BOOL:
		v->kind = DOC_BOOL;
		v->boolean = n->boolean;
		return true;
	case CFG_T_INT:
		return take_int(c, row, n, v);
	case CFG_T_STR:
	case CFG_T_PATH:
		return take_text(c, row, n, v);
	case CFG_T_ENUM:
		return take_enum(c, row, n, v);
	case CFG_T_SIZE:
	case CFG_T_DURATION:
		return take_size(c, row, n, v);
	case CFG_T_LIST:
		return take_list(c, place, row, n, v);
	case CFG_T_MAP:
	case CFG_T_TABLE:
		return take_map(c, place, row, n, v);
	case CFG_T_NULL:
		v->kind = DOC_NULL;
		return true;
	case CFG_T_ANY:
		return take_any(c, n, v);
	default:
		return false;
	}
}

struct cfg_value check_value(struct check *c, const struct cfg_key *row, const struct doc_node *n)
{
	struct cfg_value v = { .row = row, .origin = { c->layer, c->file, n->line, n->col } };
	struct cfg_origin *lock = c->locked ? arena_alloc(c->a, sizeof(*lock)) : NULL;

	c->oom = c->oom || (c->locked && !lock);
	if (lock)
		*lock = v.origin;
	v.locked_by = lock;
	return v;
}

static bool convert(struct check *c, size_t place, const struct doc_node *n, struct cfg_value *ret)
{
	for (size_t i = 0; i < table_rows(place); i++) {
		const struct cfg_key *row = &cfg_keys[place + i];
		struct cfg_value v = check_value(c, row, n);

		if (!fits(row->type, n))
			continue;
		if (!take(c, place, row, n, &v) || c->oom || !check_available(c, row, n, &v))
			return false;
		*ret = v;
		return true;
	}
	wrong_type(c, place, n);
	return false;
}

static void directory_of(const char *file, char *out, size_t cap)
{
	const char *slash = strrchr(file, '/');
	size_t n = slash ? (size_t)(slash - file) : 0;

	out[0] = '\0';
	if (!slash || n >= cap)
		return;
	n = SB_MAX(n, (size_t)1); /* "/x" lies in "/" */
	memcpy(out, file, n);
	out[n] = '\0';
}

int cfg_check(struct arena *a, const struct doc *d, const struct cfg_source *src,
	      struct cfg_value *ret, struct problems *p)
{
	struct check *c = calloc(1, sizeof(*c));
	const struct doc_node *root = doc_root(d);
	const struct doc_node *locked = doc_get(root, "locked");
	struct cfg_value v = { .kind = DOC_MAP };
	int r = -ENOMEM;

	if (!c)
		return -ENOMEM;
	*c = (struct check){ .a = a, .p = p, .layer = src->layer,
			     .locked = locked && locked->kind == DOC_BOOL && locked->boolean };
	c->file = arena_text(a, src->file, strlen(src->file));
	directory_of(src->file, c->dir, sizeof(c->dir));
	v.origin = (struct cfg_origin){ src->layer, c->file, 0, 0 };
	if (c->file && root && root->kind != DOC_MAP) {
		check_problem(c, root, "wrong_type", "the file must be a map of keys, not %s",
			      kind_name(root));
		r = 0;
	} else if (c->file) {
		if (root)
			(void)take_map(c, TABLE_ROOT, NULL, root, &v);
		r = c->oom ? -ENOMEM : 0;
	}
	free(c);
	if (r == 0)
		*ret = v;
	return r;
}
