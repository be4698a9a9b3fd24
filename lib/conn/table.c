/*
 * The streams that are alive, by identifier. A stream is memory of its own, so pointers to it are
 * stable; while a callback may still hold one, a freed stream only goes to the graveyard.
 */
#include "chan_i.h"

#include <errno.h>

#include "crypto/crypto.h"

/* --- lists --- */

void link_init(struct link *head)
{
	head->next = head;
	head->prev = head;
}

void link_add(struct link *head, struct link *l)
{
	if (l->next)
		return;
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
}

void link_del(struct link *l)
{
	if (!l->next)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	*l = (struct link){ 0 };
}

bool link_none(const struct link *head)
{
	return head->next == head;
}

/* --- table --- */

/* The finaliser of MurmurHash3: all bits of the identifier reach the low ones. */
static struct sb_stream **bucket(const struct sb_chan *c, uint32_t id)
{
	uint32_t h = id ^ c->salt;

	h = (h ^ h >> 16) * 0x85ebca6bU;
	h = (h ^ h >> 13) * 0xc2b2ae35U;
	return &c->table[(h ^ h >> 16) & c->mask];
}

int table_init(struct sb_chan *c, uint32_t max_net)
{
	uint32_t n = SB_CHAN_MAX_STREAMS;

	while (n < SB_CHAN_MAX_STREAMS + max_net)
		n *= 2;
	link_init(&c->due);
	for (int i = 0; i < N_CLASSES; i++)
		link_init(&c->wait[i]);
	c->table = calloc(n, sizeof(struct sb_stream *));
	if (!c->table)
		return -ENOMEM;
	c->mask = n - 1;
	sb_random(&c->salt, sizeof(c->salt));
	c->next_id = 1;
	c->next_net = HOST_IDS_END + 1;
	c->max_net = max_net;
	return 0;
}

void table_done(struct sb_chan *c)
{
	if (!c->table)
		return;
	stream_free_all(c);
	stream_bury(c);
	free(c->table);
	c->table = NULL;
}

bool stream_room(const struct sb_chan *c, bool net)
{
	if (net)
		return c->n_net < c->max_net && c->next_net != UINT32_MAX;
	return c->n_host < SB_CHAN_MAX_STREAMS && c->next_id != HOST_IDS_END;
}

static uint32_t *count_of(struct sb_chan *c, uint32_t id)
{
	return id > HOST_IDS_END ? &c->n_net : &c->n_host;
}

struct sb_stream *stream_find(const struct sb_chan *c, uint32_t id)
{
	struct sb_stream *s = *bucket(c, id);

	while (s && s->id != id)
		s = s->next;
	return s;
}

struct sb_stream *stream_new(struct sb_chan *c, uint32_t id)
{
	struct sb_stream **b = bucket(c, id);
	struct sb_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->chan = c;
	s->id = id;
	s->next = *b;
	*b = s;
	(*count_of(c, id))++;
	return s;
}

void stream_free(struct sb_stream *s)
{
	struct sb_chan *c = s->chan;
	struct sb_stream **at = bucket(c, s->id);

	if (c->reserved_for == s) {
		c->reserved->reserved = false;
		c->reserved = NULL;
		c->reserved_for = NULL;
	}
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	(*count_of(c, s->id))--;
	link_del(&s->wait);
	link_del(&s->due);
	free(s->buf);
	*s = (struct sb_stream){ .chan = c, .next = c->grave };
	c->grave = s;
	if (c->busy == 0)
		stream_bury(c);
}

void stream_free_all(struct sb_chan *c)
{
	for (uint32_t i = 0; i <= c->mask; i++)
		while (c->table[i])
			stream_free(c->table[i]);
}

void stream_bury(struct sb_chan *c)
{
	while (c->grave) {
		struct sb_stream *s = c->grave;

		c->grave = s->next;
		free(s);
	}
}
