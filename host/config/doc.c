#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doc_i.h"

/* ---- the tree ---- */

bool doc_build_in_key(const struct doc_build *b)
{
	const struct doc_frame *f;

	if (b->depth == 0)
		return false;
	f = &b->frames[b->depth - 1];
	return f->node.kind == DOC_MAP && (b->n - f->first) % 2 == 0;
}

static int push(struct doc_build *b, const struct doc_node *n)
{
	if (b->total++ == DOC_MAX_NODES) {
		problems_add(b->p, n, "", "limit", "more than %u values in one file", DOC_MAX_NODES);
		return -EBADMSG;
	}
	if (b->n == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 64;
		struct doc_node *v = realloc(b->stack, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		b->stack = v;
		b->cap = cap;
	}
	b->stack[b->n++] = *n;
	return 0;
}

/* A key stays a string even when it was none, so that reading can go on. */
static struct doc_node as_key(struct doc_build *b, const struct doc_node *n)
{
	struct doc_node key = *n;

	if (n->kind == DOC_STR)
		return key;
	if (n->kind == DOC_SEQ || n->kind == DOC_MAP || !n->text || n->len == 0)
		problems_add(b->p, n, "", "syntax", "a key must be a name; here it is %s",
			     n->kind == DOC_SEQ ? "a list" : n->kind == DOC_MAP ? "a map" : "empty");
	else
		problems_add(b->p, n, "", "syntax",
			     "a key must be a name; if \"%.60s\" is one, put it in quotes", n->text);
	key = (struct doc_node){ .kind = DOC_STR, .line = n->line, .col = n->col, .file = n->file,
				 .text = n->text ? n->text : "", .len = n->text ? n->len : 0 };
	return key;
}

int doc_build_put(struct doc_build *b, const struct doc_node *scalar)
{
	struct doc_node n = *scalar;

	n.file = b->d->file;
	if (n.len > DOC_MAX_SCALAR) {
		problems_add(b->p, &n, "", "limit", "a value of more than %u bytes", DOC_MAX_SCALAR);
		return -EBADMSG;
	}
	if (doc_build_in_key(b))
		n = as_key(b, &n);
	return push(b, &n);
}

int doc_build_open(struct doc_build *b, enum doc_kind kind, uint32_t line, uint32_t col)
{
	struct doc_node n = { .kind = kind, .line = line, .col = col, .file = b->d->file };

	if (b->depth == DOC_MAX_DEPTH) {
		problems_add(b->p, &n, "", "limit", "more than %d levels of lists and maps in each other",
			     DOC_MAX_DEPTH);
		return -EBADMSG;
	}
	b->frames[b->depth++] = (struct doc_frame){ .node = n, .first = b->n };
	return 0;
}

static int by_text(const void *a, const void *b)
{
	const struct doc_node *x = *(const struct doc_node *const *)a;
	const struct doc_node *y = *(const struct doc_node *const *)b;
	int c = strcmp(x->text, y->text);

	if (c != 0)
		return c;
	return x < y ? -1 : x > y;
}

static int by_address(const void *a, const void *b)
{
	const struct doc_node *x = *(const struct doc_node *const *)a;
	const struct doc_node *y = *(const struct doc_node *const *)b;

	return x < y ? -1 : x > y;
}

static int check_duplicates(struct doc_build *b, const struct doc_node *map)
{
	sb_autofree const struct doc_node **v = NULL;
	size_t same = 0;

	if (map->n < 2)
		return 0;
	v = malloc(2 * map->n * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < map->n; i++)
		v[i] = &map->keys[i];
	qsort(v, map->n, sizeof(*v), by_text);
	for (size_t i = 1; i < map->n; i++)
		if (strcmp(v[i - 1]->text, v[i]->text) == 0)
			v[map->n + same++] = v[i];
	qsort(v + map->n, same, sizeof(*v), by_address);
	for (size_t i = 0; i < same; i++) {
		const struct doc_node *again = v[map->n + i];
		const struct doc_node *first = doc_get(map, again->text);

		problems_add(b->p, again, again->text, "duplicate_key",
			     "\"%.100s\" is here a second time; the first is on line %u", again->text,
			     doc_get(map, again->text) ? map->keys[first - map->items].line : 0);
	}
	return 0;
}

int doc_build_close(struct doc_build *b)
{
	struct doc_frame *f = &b->frames[b->depth - 1];
	struct doc_node n = f->node;
	size_t count = b->n - f->first;
	const struct doc_node *child = count > 0 ? b->stack + f->first : NULL;
	int r = 0;

	n.n = n.kind == DOC_MAP ? count / 2 : count;
	if (n.n > 0) {
		n.items = arena_array(&b->d->arena, n.n, sizeof(*n.items));
		n.keys = n.kind == DOC_MAP ? arena_array(&b->d->arena, n.n, sizeof(*n.keys)) : NULL;
		if (!n.items || (n.kind == DOC_MAP && !n.keys))
			return -ENOMEM;
	}
	for (size_t i = 0; i < n.n; i++) {
		if (n.kind == DOC_MAP)
			n.keys[i] = *child++;
		n.items[i] = *child++;
	}
	b->n = f->first;
	b->depth--;
	if (n.kind == DOC_MAP)
		r = check_duplicates(b, &n);
	if (r == 0 && doc_build_in_key(b))
		n = as_key(b, &n);
	return r < 0 ? r : push(b, &n);
}

/* ---- whole documents ---- */

/* YAML's printable characters; JSON's own rule is its reader's. */
static bool yaml_char(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0x7f) || c == 0x85 ||
	       (c >= 0xa0 && c != 0xfffe && c != 0xffff);
}

/*
 * What libfyaml 0.7.12 is known to crash on, told better than by its death: a tab before a "?" that is
 * taken for a key ("? 5:\t?"), or between a sign and a ":" ("? 5:\t:"). Keys of that kind are refused
 * anyway; in a text the tab can be written as \t.
 */
static int check_tabs(struct doc_build *b, const char *bytes, size_t len)
{
	bool tab = false; /* in the blanks before this byte */
	char sign = '\n'; /* the byte before them */
	struct text_place at;

	for (size_t i = 0; i < len; i++) {
		if (tab && (bytes[i] == '?' || (bytes[i] == ':' && strchr("?:-\n", sign)))) {
			text_place_init(&at, bytes, len);
			text_place_to(&at, i);
			problems_add(b->p,
				     &(struct doc_node){ .file = b->d->file, .line = at.line,
							 .col = at.col },
				     "", "syntax", "a tab before a question mark or colon: use blanks, or \\t "
				     "in double quotes");
			return -EBADMSG;
		}
		tab = bytes[i] == '\t' || (tab && (bytes[i] == ' ' || bytes[i] == '\n' ||
						   bytes[i] == '\r'));
		if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r')
			sign = bytes[i];
	}
	return 0;
}

/*
 * What libfyaml needs time for that grows with the square: long runs of blanks and empty lines, and
 * long directives. Nothing that people write comes near the limit.
 */
static int check_runs(struct doc_build *b, const char *bytes, size_t len)
{
	size_t run = 0;
	size_t percent = 0; /* bytes of a line that begins with % */
	struct text_place at;

	for (size_t i = 0; i < len; i++) {
		bool line = bytes[i] == '\n' || bytes[i] == '\r';
		bool first = i == 0 || bytes[i - 1] == '\n' || bytes[i - 1] == '\r';

		run = line || bytes[i] == ' ' || bytes[i] == '\t' ? run + 1 : 0;
		percent = line ? 0 : percent > 0 || (first && bytes[i] == '%') ? percent + 1 : 0;
		if (run <= DOC_MAX_BLANKS && percent <= DOC_MAX_BLANKS)
			continue;
		text_place_init(&at, bytes, len);
		text_place_to(&at, i);
		problems_add(b->p,
			     &(struct doc_node){ .file = b->d->file, .line = at.line, .col = at.col }, "",
			     "limit", "more than %u %s", DOC_MAX_BLANKS,
			     percent > 0 ? "bytes in a line that begins with %"
					 : "blanks and empty lines in a row");
		return -EBADMSG;
	}
	return 0;
}

static int check_bytes(struct doc_build *b, const char *bytes, size_t len, enum doc_format format)
{
	struct text_place at;

	text_place_init(&at, bytes, len);
	for (size_t i = 0, k; i < len; i += k) {
		struct doc_node n = { .file = b->d->file };
		uint32_t c = 0;

		if ((unsigned char)bytes[i] >= 0x20 && (unsigned char)bytes[i] < 0x7f) {
			k = 1;
			continue;
		}
		k = text_char(bytes + i, len - i, &c);
		if (k > 0 && c != 0 && (format == DOC_JSON || yaml_char(c)))
			continue;
		text_place_to(&at, i);
		n.line = at.line;
		n.col = at.col;
		if (k == 0)
			problems_add(b->p, &n, "", "syntax", "byte 0x%02x is not UTF-8; save the file as "
				     "UTF-8", (unsigned char)bytes[i]);
		else
			problems_add(b->p, &n, "", "syntax", "character U+%04X is not allowed; in double "
				     "quotes write it as \\x%02X", c, c);
		return -EBADMSG;
	}
	return 0;
}

static int read_all(struct doc_build *b, const char *bytes, size_t len, enum doc_format format)
{
	int r;

	if (len > DOC_MAX_BYTES) {
		problems_add(b->p, &(struct doc_node){ .file = b->d->file }, "", "limit",
			     "the file has more than %u MiB", DOC_MAX_BYTES >> 20);
		return -EBADMSG;
	}
	r = check_bytes(b, bytes, len, format);
	if (r == 0 && format == DOC_YAML)
		r = check_runs(b, bytes, len);
	if (r == 0 && format == DOC_YAML)
		r = check_tabs(b, bytes, len);
	if (r == 0)
		r = format == DOC_JSON ? doc_read_json(b, bytes, len) : doc_read_yaml(b, bytes, len);
	if (r < 0 || b->n == 0)
		return r;
	sb_assert(b->n == 1 && b->depth == 0);
	b->d->root = arena_alloc(&b->d->arena, sizeof(*b->d->root));
	if (!b->d->root)
		return -ENOMEM;
	*b->d->root = b->stack[0];
	return 0;
}

int doc_load_partial(const char *bytes, size_t len, enum doc_format format, const char *file,
		     struct doc **ret, struct problems *problems)
{
	struct doc *d = calloc(1, sizeof(*d));
	struct doc_build *b = calloc(1, sizeof(*b));
	size_t before = problems->n;
	int r = -ENOMEM;

	if (d && b) {
		d->file = arena_text(&d->arena, file, strlen(file));
		*b = (struct doc_build){ .d = d, .p = problems };
		if (d->file)
			r = read_all(b, bytes, len, format);
		problems_excerpts(problems, before, file, bytes, SB_MIN(len, (size_t)DOC_MAX_BYTES));
		free(b->stack);
	}
	free(b);
	if (r < 0) {
		(void)doc_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

int doc_load(const char *bytes, size_t len, enum doc_format format, const char *file,
	     struct doc **ret, struct problems *problems)
{
	size_t before = problems->n + problems->dropped;
	struct doc *d = NULL;
	int r = doc_load_partial(bytes, len, format, file, &d, problems);

	if (r < 0)
		return r;
	if (problems->n + problems->dropped > before) {
		(void)doc_free(d);
		return -EBADMSG;
	}
	*ret = d;
	return 0;
}

struct doc *doc_free(struct doc *d)
{
	if (d) {
		arena_done(&d->arena);
		free(d);
	}
	return NULL;
}

const struct doc_node *doc_root(const struct doc *d)
{
	return d->root;
}

const struct doc_node *doc_get(const struct doc_node *map, const char *key)
{
	if (!map || map->kind != DOC_MAP)
		return NULL;
	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->keys[i].text, key) == 0)
			return &map->items[i];
	return NULL;
}
