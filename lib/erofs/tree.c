#include "erofs/tree.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK ((size_t)1 << 20)

struct sb_erofs_chunk {
	struct sb_erofs_chunk *next;
	size_t used;
	size_t cap;
	max_align_t data[];
};

void *sb_erofs_alloc(struct sb_erofs_tree *t, size_t len)
{
	struct sb_erofs_chunk *c = t->chunks;
	size_t need = (len + 7) & ~(size_t)7;
	void *p;

	if (need < len || need > t->max_bytes || t->used > t->max_bytes - need)
		return NULL;
	if (!c || c->cap - c->used < need) {
		size_t cap = SB_MAX(need, CHUNK - sizeof(*c));

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		c->used = 0;
		c->cap = cap;
		c->next = t->chunks;
		t->chunks = c;
	}
	p = (uint8_t *)c->data + c->used;
	c->used += need;
	t->used += need;
	return p;
}

struct sb_erofs_inode *sb_erofs_inode_new(struct sb_erofs_tree *t)
{
	struct sb_erofs_inode *i = sb_erofs_alloc(t, sizeof(*i));

	if (i)
		*i = (struct sb_erofs_inode){ 0 };
	return i;
}

int sb_erofs_tree_init(struct sb_erofs_tree *t, uint64_t max_entries, size_t max_bytes)
{
	struct sb_erofs_entry *root;

	*t = (struct sb_erofs_tree){ .max_entries = max_entries, .max_bytes = max_bytes,
				     .n_slots = 4096 };
	t->slots = calloc(t->n_slots, sizeof(struct sb_erofs_entry *));
	root = sb_erofs_alloc(t, sizeof(*root));
	if (root)
		*root = (struct sb_erofs_entry){ .parent = root, .inode = sb_erofs_inode_new(t) };
	if (!t->slots || !root || !root->inode) {
		sb_erofs_tree_done(t);
		return -ENOMEM;
	}
	root->inode->mode = S_IFDIR | 0755;
	root->inode->nlink = 2;
	t->root = root;
	t->n_entries = 1;
	t->n_live = 1;
	return 0;
}

void sb_erofs_tree_done(struct sb_erofs_tree *t)
{
	struct sb_erofs_chunk *c = t->chunks;

	while (c) {
		struct sb_erofs_chunk *next = c->next;

		free(c);
		c = next;
	}
	free(t->slots);
	*t = (struct sb_erofs_tree){ 0 };
}

/* FNV-1a. An archive can make names that collide; the table then costs what a list costs, bounded
 * by the helper's limit of processor time. */
static size_t slot_of(const struct sb_erofs_tree *t, const struct sb_erofs_entry *dir,
		      const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ULL ^ ((uint64_t)(uintptr_t)dir >> 3);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3ULL;
	h ^= h >> 29;
	return (size_t)h & (t->n_slots - 1);
}

struct sb_erofs_entry *sb_erofs_lookup(const struct sb_erofs_tree *t,
				       const struct sb_erofs_entry *dir, const char *name, size_t len)
{
	struct sb_erofs_entry *e = t->slots[slot_of(t, dir, name, len)];

	while (e && (e->parent != dir || e->name_len != len || memcmp(e->name, name, len) != 0))
		e = e->hash_next;
	return e;
}

static int grow(struct sb_erofs_tree *t)
{
	struct sb_erofs_entry **old = t->slots;
	size_t n_old = t->n_slots;
	struct sb_erofs_entry **slots = calloc(n_old * 4, sizeof(struct sb_erofs_entry *));

	if (!slots)
		return -ENOMEM;
	t->slots = slots;
	t->n_slots = n_old * 4;
	for (size_t i = 0; i < n_old; i++) {
		struct sb_erofs_entry *e = old[i];

		while (e) {
			struct sb_erofs_entry *next = e->hash_next;
			size_t s = slot_of(t, e->parent, e->name, e->name_len);

			e->hash_next = slots[s];
			slots[s] = e;
			e = next;
		}
	}
	free(old);
	return 0;
}

int sb_erofs_link(struct sb_erofs_tree *t, struct sb_erofs_entry *dir, const char *name, size_t len,
		  struct sb_erofs_inode *inode, struct sb_erofs_entry **ret)
{
	struct sb_erofs_entry *e;
	size_t slot;

	sb_assert(len > 0 && len <= 255);
	if (t->n_entries >= t->max_entries)
		return -E2BIG;
	if (inode->nlink == UINT32_MAX || dir->inode->nlink == UINT32_MAX)
		return -EMLINK;
	if (t->n_live >= t->n_slots && grow(t) < 0)
		return -ENOMEM;
	e = sb_erofs_alloc(t, sizeof(*e) + len);
	if (!e)
		return -ENOMEM;
	*e = (struct sb_erofs_entry){ .parent = dir, .inode = inode, .name_len = (uint16_t)len };
	memcpy(e->name, name, len);
	slot = slot_of(t, dir, name, len);
	e->hash_next = t->slots[slot];
	t->slots[slot] = e;
	e->next = dir->child;
	if (dir->child)
		dir->child->prev = e;
	dir->child = e;
	dir->n_children++;
	t->n_entries++;
	t->n_live++;
	if (S_ISDIR(inode->mode)) {
		inode->nlink = 2;
		dir->inode->nlink++;
	} else {
		inode->nlink++;
	}
	if (ret)
		*ret = e;
	return 0;
}

static void unhash(struct sb_erofs_tree *t, struct sb_erofs_entry *e)
{
	struct sb_erofs_entry **at = &t->slots[slot_of(t, e->parent, e->name, e->name_len)];

	while (*at != e)
		at = &(*at)->hash_next;
	*at = e->hash_next;
}

/* An entry without children goes. */
static void unlink_one(struct sb_erofs_tree *t, struct sb_erofs_entry *e)
{
	struct sb_erofs_entry *dir = e->parent;

	unhash(t, e);
	if (e->prev)
		e->prev->next = e->next;
	else
		dir->child = e->next;
	if (e->next)
		e->next->prev = e->prev;
	dir->n_children--;
	t->n_live--;
	if (S_ISDIR(e->inode->mode)) {
		dir->inode->nlink--;
		e->inode->nlink = 0;
	} else {
		e->inode->nlink--;
	}
	if (e->inode->nlink == 0 && t->dropped)
		t->dropped(t->arg, e->inode);
}

void sb_erofs_unlink(struct sb_erofs_tree *t, struct sb_erofs_entry *top)
{
	struct sb_erofs_entry *e = top;

	sb_assert(top != t->root);
	for (;;) {
		struct sb_erofs_entry *up = e->parent;

		if (e->child) {
			e = e->child;
			continue;
		}
		unlink_one(t, e);
		if (e == top)
			return;
		e = up;
	}
}

struct sb_erofs_entry *sb_erofs_walk(const struct sb_erofs_entry *top, struct sb_erofs_entry *at)
{
	return at->child ? at->child : sb_erofs_skip(top, at);
}

struct sb_erofs_entry *sb_erofs_skip(const struct sb_erofs_entry *top, struct sb_erofs_entry *at)
{
	while (at != top && !at->next)
		at = at->parent;
	return at == top ? NULL : at->next;
}

int sb_erofs_name_cmp(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, SB_MIN(a_len, b_len));

	return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
}

static bool before(const struct sb_erofs_entry *a, const struct sb_erofs_entry *b)
{
	return sb_erofs_name_cmp(a->name, a->name_len, b->name, b->name_len) < 0;
}

static struct sb_erofs_entry *merge(struct sb_erofs_entry *a, struct sb_erofs_entry *b)
{
	struct sb_erofs_entry *first = NULL;
	struct sb_erofs_entry **at = &first;

	while (a && b) {
		struct sb_erofs_entry **from = before(a, b) ? &a : &b;

		*at = *from;
		*from = (*from)->next;
		at = &(*at)->next;
	}
	*at = a ? a : b;
	return first;
}

/* Merge sort: runs[k] holds 2^k entries or none. No memory, and no order of names that is slow. */
void sb_erofs_sort(struct sb_erofs_entry *dir)
{
	struct sb_erofs_entry *runs[32] = { NULL };
	struct sb_erofs_entry *e = dir->child;
	struct sb_erofs_entry *all = NULL;

	while (e) {
		struct sb_erofs_entry *run = e;
		size_t k = 0;

		e = e->next;
		run->next = NULL;
		for (; runs[k]; k++) {
			run = merge(runs[k], run);
			runs[k] = NULL;
		}
		runs[k] = run;
	}
	for (size_t k = 0; k < SB_ARRAY_LEN(runs); k++)
		all = merge(runs[k], all);
	dir->child = all;
	for (struct sb_erofs_entry *prev = NULL; all; all = all->next) {
		all->prev = prev;
		prev = all;
	}
}
