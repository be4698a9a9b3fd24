#include "store/snap_stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct object {
	uint8_t hash[SB_SNAP_HASH];
	size_t len;
	uint8_t data[];
};

struct sb_snap_stage {
	pthread_mutex_t lock;
	struct object **slots; /* a power of two; NULL: free */
	size_t n_slots;
	size_t n;
	atomic_bool used; /* else nobody needs to wait for the lock */
	uint64_t bytes;
	uint64_t cap;
};

int sb_snap_stage_new(uint64_t cap, struct sb_snap_stage **ret)
{
	struct sb_snap_stage *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	(void)pthread_mutex_init(&s->lock, NULL);
	s->cap = cap;
	*ret = s;
	return 0;
}

void sb_snap_stage_drop(struct sb_snap_stage *s)
{
	(void)pthread_mutex_lock(&s->lock);
	atomic_store(&s->used, false);
	for (size_t i = 0; i < s->n_slots; i++)
		free(s->slots[i]);
	free(s->slots);
	s->slots = NULL;
	s->n_slots = s->n = 0;
	s->bytes = 0;
	(void)pthread_mutex_unlock(&s->lock);
}

struct sb_snap_stage *sb_snap_stage_free(struct sb_snap_stage *s)
{
	if (!s)
		return NULL;
	sb_snap_stage_drop(s);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

/* Where @hash is, or would be. */
static size_t slot_of(struct object *const *slots, size_t n, const uint8_t *hash)
{
	uint64_t h;
	size_t i;

	memcpy(&h, hash, sizeof(h)); /* it is a hash already */
	for (i = (size_t)h & (n - 1); slots[i]; i = (i + 1) & (n - 1))
		if (memcmp(slots[i]->hash, hash, SB_SNAP_HASH) == 0)
			break;
	return i;
}

static int grow(struct sb_snap_stage *s)
{
	const size_t n = SB_MAX(s->n_slots * 2, (size_t)256);
	struct object **v = calloc(n, sizeof(struct object *));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slots[i])
			v[slot_of(v, n, s->slots[i]->hash)] = s->slots[i];
	free(s->slots);
	s->slots = v;
	s->n_slots = n;
	return 0;
}

static int add(struct sb_snap_stage *s, const uint8_t *hash, const void *p, size_t len)
{
	struct object *o;
	size_t i;

	if ((s->n + 1) * 2 > s->n_slots && grow(s) < 0)
		return -ENOMEM;
	i = slot_of(s->slots, s->n_slots, hash);
	if (s->slots[i])
		return 0;
	if (len > s->cap - s->bytes)
		return -ENOSPC;
	o = malloc(sizeof(*o) + len);
	if (!o)
		return -ENOMEM;
	memcpy(o->hash, hash, SB_SNAP_HASH);
	memcpy(o->data, p, len);
	o->len = len;
	s->slots[i] = o;
	s->n++;
	s->bytes += len;
	atomic_store(&s->used, true);
	return 0;
}

int sb_snap_stage_add(struct sb_snap_stage *s, const uint8_t *hash, const void *p, size_t len)
{
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = add(s, hash, p, len);
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

bool sb_snap_stage_get(struct sb_snap_stage *s, const uint8_t *hash, const void **ret, size_t *ret_len)
{
	const struct object *o = NULL;

	if (!atomic_load(&s->used))
		return false;
	(void)pthread_mutex_lock(&s->lock);
	o = s->slots[slot_of(s->slots, s->n_slots, hash)];
	(void)pthread_mutex_unlock(&s->lock);
	if (o && ret) {
		*ret = o->data;
		*ret_len = o->len;
	}
	return o != NULL;
}
