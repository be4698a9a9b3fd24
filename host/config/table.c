#include <string.h>

#include "cfg_i.h"

#define ROWS_MAX 512

/* Made once from the paths: what is a child of what. 0 = none, else number + 1. */
static struct link {
	uint16_t first;
	uint16_t next;
	uint16_t rows;
	uint16_t name; /* offset in the path */
} links[ROWS_MAX];
static uint16_t root_first;
static bool ready;

/* Length of the parent's path; @name: where the last part begins. */
static size_t parent_of(const char *path, size_t *name)
{
	size_t n = strlen(path);
	const char *dot;

	if (n > 2 && strcmp(path + n - 2, "[]") == 0) {
		*name = n - 2;
		return n - 2;
	}
	dot = strrchr(path, '.');
	*name = dot ? (size_t)(dot - path) + 1 : 0;
	return dot ? (size_t)(dot - path) : 0;
}

static void make(void)
{
	uint16_t *tail[ROWS_MAX + 1];

	sb_assert(cfg_n_keys < ROWS_MAX);
	tail[cfg_n_keys] = &root_first;
	for (size_t i = 0; i < cfg_n_keys; i += links[i].rows) {
		const char *path = cfg_keys[i].path;
		size_t name = 0;
		size_t len = parent_of(path, &name);
		size_t up = i;

		if (len == 0) {
			up = cfg_n_keys;
		} else {
			do {
				sb_assert(up > 0);
				up--;
			} while (strncmp(cfg_keys[up].path, path, len) != 0 || cfg_keys[up].path[len]);
			while (up > 0 && strcmp(cfg_keys[up - 1].path, cfg_keys[up].path) == 0)
				up--;
		}
		*tail[up] = (uint16_t)(i + 1);
		links[i].name = (uint16_t)name;
		links[i].rows = 1;
		while (i + links[i].rows < cfg_n_keys &&
		       strcmp(cfg_keys[i + links[i].rows].path, path) == 0)
			links[i].rows++;
		tail[up] = &links[i].next;
		tail[i] = &links[i].first;
	}
	ready = true;
}

size_t table_next(size_t place, size_t last)
{
	uint16_t k;

	if (!ready)
		make();
	k = last != TABLE_NONE ? links[last].next : place == TABLE_ROOT ? root_first : links[place].first;
	return k == 0 ? TABLE_NONE : k - 1U;
}

const char *table_name(size_t place)
{
	return cfg_keys[place].path + links[place].name;
}

size_t table_rows(size_t place)
{
	return links[place].rows;
}

size_t table_child(size_t place, const char *name)
{
	size_t wild = TABLE_NONE;

	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i)) {
		if (strcmp(table_name(i), name) == 0)
			return i;
		if (strcmp(table_name(i), "*") == 0)
			wild = i;
	}
	return strcmp(name, "[]") == 0 ? TABLE_NONE : wild;
}

size_t table_find(const char *path)
{
	if (!ready)
		make();
	for (size_t i = 0; i < cfg_n_keys; i += links[i].rows)
		if (strcmp(cfg_keys[i].path, path) == 0)
			return i;
	return TABLE_NONE;
}
