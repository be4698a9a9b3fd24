#include "arena.h"

#include <string.h>

#define CHUNK 16384U
#define ALIGN 16U

struct arena_chunk {
	struct arena_chunk *next;
	size_t used;
	size_t room;
	_Alignas(ALIGN) unsigned char data[];
};

void *arena_alloc(struct arena *a, size_t len)
{
	struct arena_chunk *c = a->chunks;
	size_t want;
	void *p;

	if (!sb_add_size(len, ALIGN - 1, &want))
		return NULL;
	want &= ~(size_t)(ALIGN - 1);
	if (!c || c->room - c->used < want) {
		size_t room = SB_MAX(want, (size_t)CHUNK);
		size_t all;

		if (!sb_add_size(room, sizeof(*c), &all))
			return NULL;
		c = malloc(all);
		if (!c)
			return NULL;
		*c = (struct arena_chunk){ .room = room };
		/* a chunk for one large piece goes behind the one that still has room */
		if (a->chunks && want > CHUNK / 2) {
			c->next = a->chunks->next;
			a->chunks->next = c;
		} else {
			c->next = a->chunks;
			a->chunks = c;
		}
	}
	p = c->data + c->used;
	c->used += want;
	memset(p, 0, want);
	return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t len;

	return sb_mul_size(n, size, &len) ? arena_alloc(a, len) : NULL;
}

char *arena_text(struct arena *a, const char *s, size_t len)
{
	char *p = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;

	if (p && len > 0)
		memcpy(p, s, len);
	return p;
}

void arena_done(struct arena *a)
{
	struct arena_chunk *next;

	for (struct arena_chunk *c = a->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	a->chunks = NULL;
}
