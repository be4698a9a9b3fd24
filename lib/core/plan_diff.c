#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/json_i.h"
#include "core/plan_file.h"

#define PATH_ROOM 512

struct diff {
	const char *const *skip;
	void (*fn)(void *arg, const char *path, const char *a, const char *b);
	void *arg;
	int n;
	bool oom;
};

static char *text_of(const json_t *j)
{
	return json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
}

static void tell(struct diff *d, const char *path, const json_t *a, const json_t *b)
{
	sb_autofree char *ta = a ? text_of(a) : NULL;
	sb_autofree char *tb = b ? text_of(b) : NULL;

	if ((a && !ta) || (b && !tb)) {
		d->oom = true;
		return;
	}
	d->n++;
	d->fn(d->arg, path, ta, tb);
}

static bool skipped(const struct diff *d, const char *name)
{
	for (size_t i = 0; d->skip && d->skip[i]; i++)
		if (strcmp(d->skip[i], name) == 0)
			return true;
	return false;
}

/* What tells one element of a list of objects from the others; NULL = nothing does. */
static const char *identity(const char *list)
{
	static const char *const known[][2] = {
		{ "mounts", "guest" },	{ "parts", "role" }, { "guards", "path" },
		{ "features", "name" }, { "env", "name" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(known); i++)
		if (strcmp(known[i][0], list) == 0)
			return known[i][1];
	return NULL;
}

static json_t *find(const json_t *list, const char *key, const json_t *value)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_equal(json_object_get(json_array_get(list, i), key), value))
			return json_array_get(list, i);
	return NULL;
}

static bool holds(const json_t *list, const json_t *value)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_equal(json_array_get(list, i), value))
			return true;
	return false;
}

/* The members of two objects. @path: what to say before a key; @name: what @skip says. */
static void objects(struct diff *d, const char *path, const char *name, const json_t *a,
		    const json_t *b)
{
	for (int side = 0; side < 2; side++) {
		const char *key;
		json_t *v;

		/* of the second one only what the first one has not; both are sorted when told */
		json_object_foreach((json_t *)(uintptr_t)(side == 0 ? a : b), key, v) {
			const json_t *other = json_object_get(side == 0 ? b : a, key);
			char at[PATH_ROOM];
			char rule[PATH_ROOM];

			if (side == 1 && other)
				continue;
			(void)snprintf(at, sizeof(at), "%.400s.%.100s", path, key);
			(void)snprintf(rule, sizeof(rule), "%.400s.%.100s", name, key);
			if (!skipped(d, rule) && !(other && json_equal(v, other)))
				tell(d, at, side == 0 ? v : other, side == 0 ? other : v);
		}
	}
}

static void by_identity(struct diff *d, const char *name, const char *key, const json_t *a,
			const json_t *b)
{
	for (int side = 0; side < 2; side++) {
		const json_t *mine = side == 0 ? a : b;

		for (size_t i = 0; i < json_array_size(mine); i++) {
			const json_t *v = json_array_get(mine, i);
			const json_t *id = json_object_get(v, key);
			const json_t *other = find(side == 0 ? b : a, key, id);
			const char *word = json_string_value(id);
			char at[PATH_ROOM];

			(void)snprintf(at, sizeof(at), "%.64s[%.400s]", name, word ? word : "?");
			if (!other)
				tell(d, at, side == 0 ? v : NULL, side == 0 ? NULL : v);
			else if (side == 0)
				objects(d, at, name, v, other);
		}
	}
}

static void by_content(struct diff *d, const char *name, const json_t *a, const json_t *b)
{
	int before = d->n;

	for (size_t i = 0; i < json_array_size(a); i++)
		if (!holds(b, json_array_get(a, i)))
			tell(d, name, json_array_get(a, i), NULL);
	for (size_t i = 0; i < json_array_size(b); i++)
		if (!holds(a, json_array_get(b, i)))
			tell(d, name, NULL, json_array_get(b, i));
	if (d->n == before) /* the same things in another order, or not as often */
		tell(d, name, a, b);
}

/* Lists whose order means something, of objects: by place. */
static void by_place(struct diff *d, const char *name, const json_t *a, const json_t *b)
{
	size_t n = SB_MAX(json_array_size(a), json_array_size(b));

	for (size_t i = 0; i < n; i++) {
		const json_t *va = json_array_get(a, i);
		const json_t *vb = json_array_get(b, i);
		char at[PATH_ROOM];

		(void)snprintf(at, sizeof(at), "%.400s[%zu]", name, i);
		if (va && vb)
			objects(d, at, name, va, vb);
		else
			tell(d, at, va, vb);
	}
}

static void values(struct diff *d, const char *name, const json_t *a, const json_t *b)
{
	if (a && b && json_equal(a, b))
		return;
	if (json_is_array(a) && json_is_array(b) && strcmp(name, "argv") != 0) {
		if (strcmp(name, "layers") == 0)
			by_place(d, name, a, b);
		else if (identity(name))
			by_identity(d, name, identity(name), a, b);
		else
			by_content(d, name, a, b);
	} else if (json_is_object(a) && json_is_object(b)) {
		const char *key;
		json_t *v;

		json_object_foreach((json_t *)(uintptr_t)a, key, v) {
			const json_t *other = json_object_get(b, key);
			char at[PATH_ROOM];

			(void)snprintf(at, sizeof(at), "%.400s.%.100s", name, key);
			if (!skipped(d, at))
				values(d, at, v, other);
		}
		json_object_foreach((json_t *)(uintptr_t)b, key, v) {
			char at[PATH_ROOM];

			(void)snprintf(at, sizeof(at), "%.400s.%.100s", name, key);
			if (!skipped(d, at) && !json_object_get(a, key))
				tell(d, at, NULL, v);
		}
	} else {
		tell(d, name, a, b);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All top-level keys of both, sorted, each once. */
static const char **keys_of(const json_t *a, const json_t *b, size_t *ret_n)
{
	const char **v = calloc(json_object_size(a) + json_object_size(b) + 1, sizeof(*v));
	const char *key;
	json_t *x;
	size_t n = 0;

	if (!v)
		return NULL;
	json_object_foreach((json_t *)(uintptr_t)a, key, x)
		v[n++] = key;
	json_object_foreach((json_t *)(uintptr_t)b, key, x)
		if (!json_object_get(a, key))
			v[n++] = key;
	qsort((void *)v, n, sizeof(*v), by_name);
	*ret_n = n;
	return v;
}

static int compare(struct diff *d, const json_t *a, const json_t *b)
{
	size_t n = 0;
	const char **keys;

	if (!json_is_object(a) || !json_is_object(b))
		return -EBADMSG;
	keys = keys_of(a, b, &n);
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!skipped(d, keys[i]))
			values(d, keys[i], json_object_get(a, keys[i]), json_object_get(b, keys[i]));
	free((void *)keys);
	return d->oom ? -ENOMEM : d->n;
}

int sb_plan_diff(const char *a, size_t a_len, const char *b, size_t b_len, const char *const *skip,
		 void (*fn)(void *arg, const char *path, const char *a, const char *b), void *arg)
{
	struct diff d = { .skip = skip, .fn = fn, .arg = arg };
	json_t *ja = json_loadb(a, a_len, JSON_REJECT_DUPLICATES, NULL);
	json_t *jb = json_loadb(b, b_len, JSON_REJECT_DUPLICATES, NULL);
	int r = compare(&d, ja, jb);

	json_decref(ja);
	json_decref(jb);
	return r;
}
