#ifndef SB_HOST_CONFIG_CFG_I_H
#define SB_HOST_CONFIG_CFG_I_H
/* Inside of the configuration: the table as a tree, checking, merging. */
#include "arena.h"
#include "config.h"
#include "doc_i.h"

struct cfg {
	struct arena arena;
	struct cfg_value root; /* MAP */
};

/* ---- the table as a tree (table.c); a place is the number of its first row ---- */
#define TABLE_ROOT SIZE_MAX
#define TABLE_NONE (SIZE_MAX - 1)
/* The place of a key in a map or table; "[]" = of the elements. TABLE_NONE: unknown. */
size_t table_child(size_t place, const char *name);
/* Number of rows (alternatives) of a place. */
size_t table_rows(size_t place);
/* The places in a map in order: start with TABLE_NONE; TABLE_NONE at the end. */
size_t table_next(size_t place, size_t last);
/* Last part of the row's path: "allowed_domains", "*", "[]". */
const char *table_name(size_t place);
/* The place of a dotted path as the table writes it. */
size_t table_find(const char *path);

/* ---- checking one source (check.c) ---- */
/*
 * cfg_check - the tree of a document as a value; every problem is told
 * @ret: a MAP; complete only when no problem was added
 * Return: 0; -ENOMEM.
 */
SB_MUST_CHECK int cfg_check(struct arena *a, const struct doc *d, const struct cfg_source *src,
			    struct cfg_value *ret, struct problems *p);

struct check { /* one source being read */
	struct arena *a;
	struct problems *p;
	const char *file; /* in the arena */
	enum cfg_layer layer;
	bool locked;
	char dir[4096]; /* of the file; "" = none */
	char path[256]; /* where we are, for people */
	size_t path_len;
	unsigned int in_item; /* > 0: inside of a list's element */
	bool oom;
};
/* check_text.c: @n's text against @x; told at @n. @ret: the text to keep, in the arena. */
SB_MUST_CHECK bool check_text(struct check *c, const struct cfg_key *row, const struct doc_node *n,
			      const char **ret);
/* An entry of a list, as a whole. */
SB_MUST_CHECK bool check_entry(struct check *c, const struct cfg_key *row, const struct doc_node *n);
/* The name of a free key. */
SB_MUST_CHECK bool check_name(struct check *c, size_t table, const struct doc_node *key);
/* "HOST:GUEST[:MODE]" and "a pattern" as maps. */
SB_MUST_CHECK bool check_as_map(struct check *c, size_t place, const struct doc_node *n,
				struct cfg_value *ret);
/* An empty value with its place and lock. */
struct cfg_value check_value(struct check *c, const struct cfg_key *row, const struct doc_node *n);
void check_problem(struct check *c, const struct doc_node *at, const char *code, const char *fmt,
		   ...) SB_PRINTF(4, 5);
bool check_fill(struct check *c, size_t place, struct cfg_value *map);
struct cfg_value *check_member(struct cfg_value *map, const char *key);
/* The built-in groups of destinations, NULL-terminated. */
extern const char *const cfg_groups[];

/* ---- merging (merge.c) ---- */
SB_MUST_CHECK int cfg_merge(struct arena *a, struct cfg_value *into, const struct cfg_value *from,
			    struct problems *p);
/* Sorted keys, so that cfg_get can search and cfg_json writes one form. */
SB_MUST_CHECK int cfg_sort(struct cfg_value *v);
void cfg_origin_text(const struct cfg_origin *o, char *out, size_t cap);
/* By dotted path, in a tree whose keys need not be sorted yet. NULL: not there. */
struct cfg_value *cfg_by_path(struct cfg_value *v, const char *path);
bool cfg_equal(const struct cfg_value *a, const struct cfg_value *b);

/* ---- the whole (cross.c) ---- */
void cfg_cross(struct cfg *c, struct problems *p);

/* A value from the table's own text: fallback or neutral. Return: 0; -ENOMEM. */
SB_MUST_CHECK int cfg_from_text(struct arena *a, const struct cfg_key *row, const char *text,
				struct cfg_value *ret);

#endif
