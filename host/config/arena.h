#ifndef SB_HOST_CONFIG_ARENA_H
#define SB_HOST_CONFIG_ARENA_H
/* Memory that is released all at once: what belongs to one document or one configuration. */
#include "base/mem.h"

struct arena_chunk;
struct arena {
	struct arena_chunk *chunks; /* owned */
};

/* Zeroed, aligned for every type. NULL: no memory. */
void *arena_alloc(struct arena *a, size_t len);
/* arena_alloc(n * size), checked. */
void *arena_array(struct arena *a, size_t n, size_t size);
/* A copy with a NUL behind it. */
char *arena_text(struct arena *a, const char *s, size_t len);
void arena_done(struct arena *a);

#endif
