/* The hash table over all entries, the files by size, and the end of a policy. */
#include <errno.h>
#include <stdlib.h>

#include "core/cmd_compiled.h"

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_key(const void *pa, const void *pb, void *policy)
{
	const struct sb_cmdpol *p = policy;
	const struct sb_cmd_entry *a = pa;
	const struct sb_cmd_entry *b = pb;
	int c = compare(a->key, b->key);

	if (c == 0)
		c = compare(p->rules[a->rule].action != SB_CMD_DENY,
			    p->rules[b->rule].action != SB_CMD_DENY);
	return c ? c : compare(a->rule, b->rule);
}

static int build_table(struct sb_cmdpol *p)
{
	size_t size = 16;

	while (size < 2 * p->n_entries)
		size *= 2;
	p->mask = size - 1;
	p->slots = calloc(size, sizeof(*p->slots));
	if (!p->slots)
		return -ENOMEM;
	if (p->n_entries > 0)
		qsort_r(p->entries, p->n_entries, sizeof(*p->entries), by_key, p);
	for (size_t i = 0; i < p->n_entries;) {
		struct sb_cmd_slot s = { .key = p->entries[i].key, .at = (uint32_t)i };
		size_t at = (size_t)s.key;

		for (; i < p->n_entries && p->entries[i].key == s.key; i++) {
			s.n_deny += p->rules[p->entries[i].rule].action == SB_CMD_DENY;
			s.n++;
		}
		while (p->slots[at & p->mask].n > 0)
			at++;
		p->slots[at & p->mask] = s;
	}
	return 0;
}

static int by_size(const void *pa, const void *pb, void *policy)
{
	const struct sb_cmdpol *p = policy;
	const struct sb_cmd_file *a = &p->known[*(const uint32_t *)pa].file;
	const struct sb_cmd_file *b = &p->known[*(const uint32_t *)pb].file;
	int c = compare(a->size, b->size);

	if (c == 0)
		c = compare(a->dev, b->dev);
	return c ? c : compare(a->ino, b->ino);
}

static int build_sizes(struct sb_cmdpol *p)
{
	size_t n = 0;

	p->by_size = calloc(p->n_known + 1, sizeof(*p->by_size));
	if (!p->by_size)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_known; i++)
		if ((p->known[i].denied || p->known[i].loader) && p->known[i].file.size > 0)
			p->by_size[n++] = i;
	qsort_r(p->by_size, n, sizeof(*p->by_size), by_size, p);
	for (size_t i = 0; i < n; i++) { /* each file once */
		uint32_t k = p->by_size[i];
		struct sb_cmd_known *last =
			p->n_by_size ? &p->known[p->by_size[p->n_by_size - 1]] : NULL;

		if (last && sb_cmd_same_file(&last->file, &p->known[k].file)) {
			last->loader |= p->known[k].loader;
			last->denied |= p->known[k].denied;
		} else {
			p->by_size[p->n_by_size++] = k;
		}
	}
	return 0;
}

int sb_cmd_table_build(struct sb_cmdpol *p)
{
	int r = build_table(p);

	return r == 0 ? build_sizes(p) : r;
}

struct sb_cmdpol *sb_cmdpol_free(struct sb_cmdpol *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; p->rules && i < p->n_rules; i++) {
		free(p->rules[i].pattern);
		free(p->rules[i].reason);
		free(p->rules[i].from);
	}
	for (size_t i = 0; p->compiled && i < p->n_rules; i++) {
		free(p->compiled[i].mem);
		free(p->compiled[i].alt_mem);
	}
	for (size_t i = 0; i < p->n_known; i++)
		free(p->known[i].path);
	for (size_t i = 0; i < p->n_names; i++)
		free(p->names[i]);
	free(p->rules);
	free(p->compiled);
	free(p->entries);
	free(p->slots);
	free(p->known);
	free(p->by_size);
	free(p->multi);
	free(p->names);
	free(p);
	return NULL;
}
