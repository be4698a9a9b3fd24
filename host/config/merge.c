/*
 * Layers into one tree, outer to inner. A lock travels with each value that a locked layer sets:
 * scalars stay as they are, allow lists may only get shorter, deny lists grow in any case.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cfg_i.h"

/* ---- equality ---- */

static uint64_t hash_bytes(uint64_t h, const void *p, size_t len)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 1099511628211U;
	return h;
}

static uint64_t hash_value(const struct cfg_value *v)
{
	uint64_t h = hash_bytes(14695981039346656037U, &v->kind, sizeof(v->kind));

	switch (v->kind) {
	case DOC_BOOL:
		return hash_bytes(h, &v->boolean, sizeof(v->boolean));
	case DOC_INT:
		return hash_bytes(h, &v->integer, sizeof(v->integer));
	case DOC_STR:
		return hash_bytes(h, v->text, strlen(v->text));
	case DOC_SEQ:
		for (size_t i = 0; i < v->n; i++)
			h = h * 31 + hash_value(&v->items[i]);
		return h;
	case DOC_MAP: /* the order of keys does not count */
		for (size_t i = 0; i < v->n; i++)
			h += hash_bytes(hash_value(&v->items[i]), v->keys[i], strlen(v->keys[i]));
		return h;
	case DOC_NULL:
	case DOC_FLOAT:
	default:
		return h;
	}
}

bool cfg_equal(const struct cfg_value *a, const struct cfg_value *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case DOC_BOOL:
		return a->boolean == b->boolean;
	case DOC_INT:
		return a->integer == b->integer;
	case DOC_STR:
		return strcmp(a->text, b->text) == 0;
	case DOC_SEQ:
		for (size_t i = 0; a->n == b->n && i < a->n; i++)
			if (!cfg_equal(&a->items[i], &b->items[i]))
				return false;
		return a->n == b->n;
	case DOC_MAP:
		for (size_t i = 0; a->n == b->n && i < a->n; i++) {
			const struct cfg_value *other = cfg_member(b, a->keys[i]);

			if (!other || !cfg_equal(&a->items[i], other))
				return false;
		}
		return a->n == b->n;
	case DOC_NULL:
	case DOC_FLOAT:
	default:
		return true;
	}
}

/* Values seen so far; open addressing. */
struct set {
	const struct cfg_value **v; /* owned */
	size_t mask;
};

static int set_init(struct set *s, size_t n)
{
	size_t cap = 16;

	while (cap < 2 * n)
		cap *= 2;
	s->v = calloc(cap, sizeof(*s->v));
	s->mask = cap - 1;
	return s->v ? 0 : -ENOMEM;
}

static void set_done(struct set *s)
{
	free(s->v);
}

/* The equal value that is there, or NULL after adding @v (@add). */
static const struct cfg_value *set_find(struct set *s, const struct cfg_value *v, bool add)
{
	size_t i = (size_t)hash_value(v) & s->mask;

	for (; s->v[i]; i = (i + 1) & s->mask)
		if (cfg_equal(s->v[i], v))
			return s->v[i];
	if (add)
		s->v[i] = v;
	return NULL;
}

/* ---- lists ---- */

struct merging {
	struct arena *a;
	struct problems *p;
	struct cfg_value *root; /* what is merged into */
	char path[512];
	size_t path_len;
};

static void locked(struct merging *m, const struct cfg_value *v, const struct cfg_origin *by,
		   const char *what)
{
	char where[600];

	cfg_origin_text(by, where, sizeof(where));
	cfg_problem(m->p, v, m->path, "locked", "%s; %s locks it", what, where);
}

/* Lists that allow the same kind of thing: a lock on one holds for all of them. */
static const char *const families[][4] = {
	{ "policy.network.allowed_domains", "policy.network.allowed_networks",
	  "policy.network.host_ports", NULL },
	{ "policy.commands.allowlist", "policy.commands.rules", NULL },
};

struct cfg_value *cfg_by_path(struct cfg_value *v, const char *path)
{
	while (v && *path) {
		size_t n = strcspn(path, ".");
		struct cfg_value *next = NULL;

		for (size_t i = 0; v->kind == DOC_MAP && i < v->n; i++)
			if (strncmp(v->keys[i], path, n) == 0 && !v->keys[i][n])
				next = &v->items[i];
		v = next;
		path += n + (path[n] == '.');
	}
	return v;
}

/* What locks the list at hand: itself, or one of its family. NULL = nothing. */
static const struct cfg_origin *lock_of(const struct merging *m, const struct cfg_value *into)
{
	if (into && into->locked_by)
		return into->locked_by;
	for (size_t f = 0; f < SB_ARRAY_LEN(families); f++) {
		const struct cfg_origin *found = NULL;
		bool member = false;

		for (size_t i = 0; families[f][i]; i++) {
			const struct cfg_value *v = cfg_by_path(m->root, families[f][i]);

			member = member || strcmp(families[f][i], m->path) == 0;
			if (v && v->locked_by)
				found = v->locked_by;
		}
		if (member)
			return found;
	}
	return NULL;
}

/* An entry that refuses is no allowance. */
static bool refuses(const struct cfg_value *v)
{
	const struct cfg_value *action = v->kind == DOC_MAP ? cfg_member(v, "action") : NULL;

	return action && action->kind == DOC_STR && strcmp(action->text, "deny") == 0;
}

/* What the lock leaves to choose from: the list itself and the locked ones of its family. */
static int allowed_set(struct merging *m, const struct cfg_value *into, struct set *s)
{
	const struct cfg_value *lists[8] = { into };
	size_t total = into->n;
	size_t n = 1;

	for (size_t f = 0; f < SB_ARRAY_LEN(families); f++) {
		bool member = false;

		for (size_t i = 0; families[f][i]; i++)
			member = member || strcmp(families[f][i], m->path) == 0;
		for (size_t i = 0; member && families[f][i]; i++) {
			const struct cfg_value *list = cfg_by_path(m->root, families[f][i]);

			if (list && list->locked_by && n < SB_ARRAY_LEN(lists)) {
				lists[n++] = list;
				total += list->n;
			}
		}
	}
	if (set_init(s, total) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < lists[i]->n; k++)
			(void)set_find(s, &lists[i]->items[k], true);
	return 0;
}

/* All of @first, then what @second has beyond. */
static int join(struct merging *m, const struct cfg_value *first, const struct cfg_value *second,
		struct cfg_value *into)
{
	struct cfg_value *items = arena_array(m->a, first->n + second->n, sizeof(*items));
	struct set s = { NULL, 0 };
	size_t n = 0;

	if (!items || set_init(&s, first->n + second->n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < first->n + second->n; i++) {
		const struct cfg_value *v = i < first->n ? &first->items[i]
							 : &second->items[i - first->n];

		if (!set_find(&s, v, true))
			items[n++] = *v;
	}
	set_done(&s);
	into->items = items;
	into->n = n;
	return 0;
}

/* Under a lock: the entries of @from that are allowed there; what refuses stays and may be added. */
static int narrow(struct merging *m, struct cfg_value *into, const struct cfg_value *from,
		  const struct cfg_origin *lock)
{
	struct cfg_value keep = { .kind = DOC_SEQ };
	struct cfg_value deny = { .kind = DOC_SEQ };
	struct set allowed = { NULL, 0 };

	keep.items = arena_array(m->a, from->n, sizeof(*keep.items));
	deny.items = arena_array(m->a, into->n, sizeof(*deny.items));
	if (!keep.items || !deny.items || allowed_set(m, into, &allowed) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < into->n; i++)
		if (refuses(&into->items[i]))
			deny.items[deny.n++] = into->items[i];
	for (size_t i = 0; i < from->n; i++) {
		const struct cfg_value *v = &from->items[i];

		if (refuses(v) || set_find(&allowed, v, false))
			keep.items[keep.n++] = *v;
		else
			locked(m, v, lock, "this entry is not in the list of an outer file, which may "
			       "only be narrowed");
	}
	set_done(&allowed);
	if (from->n == 0 && into->n > 0 && strcmp(m->path, "policy.network.allowed_ports") == 0)
		locked(m, from, lock, "an empty list would mean every port");
	return join(m, &keep, &deny, into);
}

static int merge_list(struct merging *m, struct cfg_value *into, const struct cfg_value *from,
		      bool there)
{
	struct cfg_value was = *into;
	const struct cfg_origin *lock;

	if (!there) { /* only a lock of its family can matter */
		was = (struct cfg_value){ .kind = DOC_SEQ };
		*into = *from;
	}
	switch (from->row->merge) {
	case CFG_M_GROW:
		if (!into->locked_by)
			into->locked_by = from->locked_by;
		return join(m, &was, from, into);
	case CFG_M_FIXED:
		if (there && was.locked_by) {
			if (!cfg_equal(&was, from))
				locked(m, from, was.locked_by, "an outer file has set this");
			return 0;
		}
		into->origin = from->origin;
		into->locked_by = from->locked_by;
		return join(m, from, &was, into);
	case CFG_M_ALLOW:
		lock = lock_of(m, there ? &was : NULL);
		if (lock) {
			*into = was;
			into->row = from->row;
			into->origin = from->origin;
			into->locked_by = lock;
			return narrow(m, into, from, lock);
		}
		into->origin = from->origin;
		into->locked_by = from->locked_by;
		return join(m, from, &was, into);
	case CFG_M_INNERMOST:
	case CFG_M_STRICTER:
	default:
		*into = *from;
		return 0;
	}
}

/* ---- maps and scalars ---- */

static int merge_map(struct merging *m, struct cfg_value *into, const struct cfg_value *from);

/* The place of an ENUM's word among all of them; of a BOOL 0 or 1. */
static size_t strictness(const struct cfg_value *v)
{
	size_t len;
	size_t i = 0;

	if (v->kind == DOC_BOOL)
		return v->boolean;
	len = strlen(v->text);
	for (const char *w = v->row->words; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL, i++)
		if (strncmp(w, v->text, len) == 0 && (w[len] == '|' || w[len] == '\0'))
			return i;
	return 0;
}

static int merge_value(struct merging *m, struct cfg_value *into, const struct cfg_value *from,
		       bool there)
{
	char where[600];

	if (from->kind == DOC_MAP && !there) {
		*into = *from;
		into->n = 0;
		into->items = NULL;
		into->keys = NULL;
		there = true;
	}
	if (from->kind == DOC_MAP && into->kind == DOC_MAP)
		return merge_map(m, into, from);
	if (from->kind == DOC_SEQ && (!there || into->kind == DOC_SEQ))
		return merge_list(m, into, from, there);
	if (there && into->locked_by) {
		if (!cfg_equal(into, from))
			locked(m, from, into->locked_by, "an outer file has set this");
		return 0;
	}
	if (there && from->row->merge == CFG_M_STRICTER && from->origin.layer >= CFG_ORG &&
	    from->origin.layer < CFG_COMMAND_LINE && into->origin.layer != CFG_DEFAULT &&
	    strictness(from) < strictness(into)) {
		cfg_origin_text(&into->origin, where, sizeof(where));
		cfg_problem(m->p, from, m->path, "locked", "%s has a stricter value, which an inner file may not loosen",
			    where);
		return 0;
	}
	*into = *from;
	return 0;
}

/* About the file itself: it says nothing about the sandbox. */
static bool is_about_file(const struct merging *m, const char *key)
{
	return m->path_len == 0 && (strcmp(key, "extends") == 0 || strcmp(key, "locked") == 0);
}

static int merge_map(struct merging *m, struct cfg_value *into, const struct cfg_value *from)
{
	size_t room = into->n + from->n;
	struct cfg_value *items = arena_array(m->a, room, sizeof(*items));
	const char **keys = arena_array(m->a, room, sizeof(*keys));
	int r = 0;

	if (!items || !keys)
		return -ENOMEM;
	if (into->n > 0) {
		memcpy(items, into->items, into->n * sizeof(*items));
		memcpy(keys, into->keys, into->n * sizeof(*keys));
	}
	into->items = items;
	into->keys = keys;
	for (size_t i = 0; r == 0 && i < from->n; i++) {
		struct cfg_value *at = check_member(into, from->keys[i]);
		size_t was = m->path_len;
		bool there = at != NULL;
		int n;

		if (is_about_file(m, from->keys[i]))
			continue;
		n = snprintf(m->path + was, sizeof(m->path) - was, "%s%.100s", was > 0 ? "." : "",
			     from->keys[i]);
		m->path_len = SB_MIN(was + (size_t)SB_MAX(n, 0), sizeof(m->path) - 1);
		if (!there) {
			at = &into->items[into->n];
			into->keys[into->n] = from->keys[i];
		}
		r = merge_value(m, at, &from->items[i], there);
		if (!there)
			into->n++;
		m->path_len = was;
		m->path[was] = '\0';
	}
	return r;
}

int cfg_merge(struct arena *a, struct cfg_value *into, const struct cfg_value *from,
	      struct problems *p)
{
	struct merging *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	*m = (struct merging){ .a = a, .p = p, .root = into };
	r = merge_map(m, into, from);
	free(m);
	return r;
}

/* ---- order ---- */

struct pair {
	const char *key;
	struct cfg_value v;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

int cfg_sort(struct cfg_value *v)
{
	sb_autofree struct pair *p = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < v->n; i++)
		if (v->items[i].n > 0)
			r = cfg_sort(&v->items[i]);
	if (r < 0 || v->kind != DOC_MAP || v->n < 2)
		return r;
	p = calloc(v->n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < v->n; i++)
		p[i] = (struct pair){ v->keys[i], v->items[i] };
	qsort(p, v->n, sizeof(*p), by_key);
	for (size_t i = 0; i < v->n; i++) {
		v->keys[i] = p[i].key;
		v->items[i] = p[i].v;
	}
	return 0;
}
