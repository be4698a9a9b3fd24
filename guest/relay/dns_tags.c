#include "relay/dns_tags.h"

#include <errno.h>

#define SLOT_BITS 10 /* the rest of a tag is the round */
#define ROUNDS 64U

static uint16_t tag_of(const struct sb_dns_tags *t, uint32_t i)
{
	return (uint16_t)((uint32_t)t->slot[i].round << SLOT_BITS | i);
}

int sb_dns_tags_put(struct sb_dns_tags *t, uint64_t now_ns, const struct sb_dns_asker *who,
		    uint16_t *ret)
{
	for (uint32_t n = 0; n < SB_DNS_SLOTS; n++) {
		uint32_t i = (t->next + n) % SB_DNS_SLOTS;
		struct sb_dns_slot *s = &t->slot[i];

		if (s->until_ns > now_ns)
			continue;
		s->who = *who;
		s->until_ns = now_ns + SB_DNS_KEEP_NS;
		s->round = (uint8_t)((s->round + 1U) % ROUNDS);
		t->next = (i + 1) % SB_DNS_SLOTS;
		*ret = tag_of(t, i);
		return 0;
	}
	return -ENOBUFS;
}

int sb_dns_tags_take(struct sb_dns_tags *t, uint64_t now_ns, uint16_t tag,
		     struct sb_dns_asker *ret)
{
	uint32_t i = tag % SB_DNS_SLOTS;
	struct sb_dns_slot *s = &t->slot[i];

	if (s->until_ns <= now_ns || tag_of(t, i) != tag)
		return -ENOENT;
	*ret = s->who;
	s->until_ns = 0;
	return 0;
}

void sb_dns_tags_clear(struct sb_dns_tags *t)
{
	for (uint32_t i = 0; i < SB_DNS_SLOTS; i++)
		t->slot[i].until_ns = 0;
}
