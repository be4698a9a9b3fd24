#ifndef SB_GUEST_RELAY_DNS_TAGS_H
#define SB_GUEST_RELAY_DNS_TAGS_H
/*
 * Who asked: the questions that are on their way, each under a tag. A fixed table; a question
 * without an answer is forgotten after ten seconds. Pure: the time is an argument.
 */
#include <netinet/in.h>

#include "base/mem.h"

#define SB_DNS_SLOTS 1024U
#define SB_DNS_KEEP_NS 10000000000ULL

union sb_dns_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};
struct sb_dns_asker {
	union sb_dns_addr client;
	uint8_t asked[16]; /* address that the question went to; the first 4 bytes for IPv4 */
};
struct sb_dns_slot {
	struct sb_dns_asker who;
	uint64_t until_ns; /* 0: free */
	uint8_t round;     /* how often it was used: an old answer does not fit a new question */
};
struct sb_dns_tags { /* zeroed: empty */
	struct sb_dns_slot slot[SB_DNS_SLOTS];
	uint32_t next;
};

/* Return: 0; -ENOBUFS: every slot is in use. */
SB_MUST_CHECK int sb_dns_tags_put(struct sb_dns_tags *t, uint64_t now_ns,
				  const struct sb_dns_asker *who, uint16_t *ret);
/* Each tag once. Return: 0; -ENOENT: unknown, answered or too old. */
SB_MUST_CHECK int sb_dns_tags_take(struct sb_dns_tags *t, uint64_t now_ns, uint16_t tag,
				   struct sb_dns_asker *ret);
/* Forget all; the tags in use do not come back soon. */
void sb_dns_tags_clear(struct sb_dns_tags *t);

#endif
