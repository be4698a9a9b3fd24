#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cfg_i.h"

const char *cfg_layer_name(enum cfg_layer l)
{
	static const char *const names[] = { "default", "system",  "user",	  "organisation",
					     "project", "agent", "command line" };

	return (unsigned int)l < SB_ARRAY_LEN(names) ? names[l] : "";
}

/* ---- defaults ---- */

/* A list of the table: ["A", "AAAA"], flat. */
static int list_from_text(struct arena *a, const struct cfg_key *row, const char *text,
			  struct cfg_value *ret)
{
	size_t cap = 0;

	for (const char *p = text; *p; p++)
		cap += *p == '"';
	ret->items = arena_array(a, cap / 2, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (const char *p = strchr(text, '"'); p; p = strchr(p, '"')) {
		size_t n = strcspn(++p, "\"");
		char *copy = arena_text(a, p, n);

		if (!copy)
			return -ENOMEM;
		ret->items[ret->n++] = (struct cfg_value){ .kind = DOC_STR, .text = copy,
							   .row = row, .origin = ret->origin };
		p += n + 1;
	}
	return 0;
}

int cfg_from_text(struct arena *a, const struct cfg_key *row, const char *text,
		  struct cfg_value *ret)
{
	struct cfg_value v = { .row = row, .origin = { CFG_DEFAULT, "", 0, 0 } };
	uint64_t n = 0;
	int r = 0;

	switch (row->type) {
	case CFG_T_BOOL:
		v.kind = DOC_BOOL;
		v.boolean = strcmp(text, "true") == 0;
		break;
	case CFG_T_INT:
	case CFG_T_SIZE:
	case CFG_T_DURATION:
		v.kind = DOC_INT;
		r = sb_num_u64(text, 0, INT64_MAX / (1 << 20), &n);
		sb_assert(r == 0);
		v.integer = (int64_t)n * (row->type == CFG_T_SIZE       ? 1 << 20
					  : row->type == CFG_T_DURATION ? 1000
									: 1);
		break;
	case CFG_T_LIST:
		v.kind = DOC_SEQ;
		r = list_from_text(a, row, text, &v);
		break;
	case CFG_T_MAP:
	case CFG_T_TABLE:
		v.kind = DOC_MAP;
		break;
	case CFG_T_STR:
	case CFG_T_PATH:
	case CFG_T_ENUM:
	case CFG_T_NULL:
	case CFG_T_ANY:
	default:
		v.kind = DOC_STR;
		v.text = text;
		break;
	}
	if (r == 0)
		*ret = v;
	return r;
}

static int defaults(struct arena *a, size_t place, struct cfg_value *map)
{
	size_t room = 0;

	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i))
		room++;
	map->items = arena_array(a, room, sizeof(*map->items));
	map->keys = arena_array(a, room, sizeof(*map->keys));
	if (!map->items || !map->keys)
		return -ENOMEM;
	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i)) {
		const struct cfg_key *row = &cfg_keys[i];
		struct cfg_value v = { .kind = DOC_MAP, .row = row, .origin = { CFG_DEFAULT, "", 0, 0 } };
		int r = 0;

		if (row->state == CFG_NOT_YET)
			continue;
		if (row->fallback)
			r = cfg_from_text(a, row, row->fallback, &v);
		else if (row->type == CFG_T_MAP)
			r = defaults(a, i, &v); /* the table is five levels deep */
		if (r < 0)
			return r;
		if (!row->fallback && v.n == 0)
			continue;
		map->keys[map->n] = table_name(i);
		map->items[map->n++] = v;
	}
	return 0;
}

/* ---- compiling ---- */

static bool is_json(const struct cfg_source *s)
{
	size_t n = strlen(s->file);

	return n > 5 && strcmp(s->file + n - 5, ".json") == 0;
}

static int add_source(struct cfg *c, const struct cfg_source *s, struct problems *p)
{
	struct cfg_value v = { .kind = DOC_MAP };
	struct doc *d = NULL;
	size_t before = p->n;
	int r = doc_load_partial(s->bytes, s->len, is_json(s) ? DOC_JSON : DOC_YAML, s->file, &d, p);

	if (r == -EBADMSG)
		return 0; /* told; the other sources are still looked at */
	if (r == 0)
		r = cfg_check(&c->arena, d, s, &v, p);
	(void)doc_free(d);
	problems_excerpts(p, before, s->file, s->bytes, s->len);
	return r < 0 ? r : cfg_merge(&c->arena, &c->root, &v, p);
}

struct ordered {
	struct problem p;
	size_t source; /* which file, in the order of the layers */
	size_t nth;
};

static int by_place(const void *a, const void *b)
{
	const struct ordered *x = a;
	const struct ordered *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->p.line != y->p.line)
		return x->p.line < y->p.line ? -1 : 1;
	if (x->p.col != y->p.col)
		return x->p.col < y->p.col ? -1 : 1;
	return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* As one reads the files; without memory they stay as they were found. */
static void order(const struct cfg_source *src, size_t n, size_t from, struct problems *p)
{
	sb_autofree struct ordered *v = p->n > from ? calloc(p->n - from, sizeof(*v)) : NULL;

	if (!v)
		return;
	for (size_t i = from; i < p->n; i++) {
		struct ordered *o = &v[i - from];

		*o = (struct ordered){ .p = p->v[i], .nth = i };
		while (o->source < n && strcmp(src[o->source].file, o->p.file) != 0)
			o->source++;
	}
	qsort(v, p->n - from, sizeof(*v), by_place);
	for (size_t i = from; i < p->n; i++)
		p->v[i] = v[i - from].p;
}

int cfg_compile(const struct cfg_source *src, size_t n, struct cfg **ret, struct problems *problems)
{
	size_t before = problems->n + problems->dropped;
	size_t first = problems->n;
	struct cfg *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->root.kind = DOC_MAP;
	r = defaults(&c->arena, TABLE_ROOT, &c->root);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_source(c, &src[i], problems);
	if (r == 0)
		r = cfg_sort(&c->root);
	if (r == 0)
		cfg_cross(c, problems);
	for (size_t i = 0; i < n; i++) /* of merging and of the whole */
		problems_excerpts(problems, first, src[i].file, src[i].bytes, src[i].len);
	order(src, n, first, problems);
	if (r == 0 && problems->n + problems->dropped > before)
		r = -EBADMSG;
	if (r < 0) {
		(void)cfg_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct cfg *cfg_free(struct cfg *c)
{
	if (c) {
		arena_done(&c->arena);
		free(c);
	}
	return NULL;
}

/* ---- reading ---- */

const struct cfg_value *cfg_member(const struct cfg_value *v, const char *key)
{
	for (size_t i = 0; v && v->kind == DOC_MAP && i < v->n; i++)
		if (strcmp(v->keys[i], key) == 0)
			return &v->items[i];
	return NULL;
}

/* "a.b[2].c"; a dot in a free key cannot be asked for. */
const struct cfg_value *cfg_get(const struct cfg *c, const char *path)
{
	const struct cfg_value *v = &c->root;
	char key[256];

	while (v && *path) {
		size_t n;

		if (*path == '[') {
			uint64_t i = 0;

			n = strcspn(++path, "]");
			if (n == 0 || n >= sizeof(key) || path[n] != ']')
				return NULL;
			memcpy(key, path, n);
			key[n] = '\0';
			if (v->kind != DOC_SEQ || sb_num_u64(key, 0, SIZE_MAX, &i) < 0 || i >= v->n)
				return NULL;
			v = &v->items[i];
			path += n + 1;
			path += *path == '.';
			continue;
		}
		n = strcspn(path, ".[");
		if (n == 0 || n >= sizeof(key))
			return NULL;
		memcpy(key, path, n);
		key[n] = '\0';
		v = cfg_member(v, key);
		path += n + (path[n] == '.');
	}
	return v;
}

bool cfg_bool(const struct cfg *c, const char *path, bool or)
{
	const struct cfg_value *v = cfg_get(c, path);

	sb_assert(!v || v->kind == DOC_BOOL);
	return v ? v->boolean : or;
}

int64_t cfg_int(const struct cfg *c, const char *path, int64_t or)
{
	const struct cfg_value *v = cfg_get(c, path);

	sb_assert(!v || v->kind == DOC_INT);
	return v ? v->integer : or;
}

const char *cfg_str(const struct cfg *c, const char *path, const char *or)
{
	const struct cfg_value *v = cfg_get(c, path);

	sb_assert(!v || v->kind == DOC_STR);
	return v ? v->text : or;
}

const struct cfg_value *cfg_item(const struct cfg *c, const char *path, size_t i)
{
	const struct cfg_value *v = cfg_get(c, path);

	return v && v->kind == DOC_SEQ && i < v->n ? &v->items[i] : NULL;
}

void cfg_origin_text(const struct cfg_origin *o, char *out, size_t cap)
{
	char file[512];

	text_show(o->file, strlen(o->file), file, sizeof(file));
	if (o->layer == CFG_DEFAULT)
		(void)snprintf(out, cap, "default");
	else if (o->layer == CFG_COMMAND_LINE || o->line == 0)
		(void)snprintf(out, cap, "%s", file);
	else
		(void)snprintf(out, cap, "%s:%u", file, o->line);
}

void cfg_where(const struct cfg_value *v, char *out, size_t cap)
{
	cfg_origin_text(&v->origin, out, cap);
}

void cfg_problem(struct problems *p, const struct cfg_value *at, const char *key, const char *code,
		 const char *fmt, ...)
{
	struct problem_at where = { 0 };
	va_list ap;

	if (at)
		where = (struct problem_at){ at->origin.file, at->origin.line, at->origin.col };
	va_start(ap, fmt);
	problems_addv(p, &where, key, code, fmt, ap);
	va_end(ap);
}
