#ifndef SB_WIRE_DNS_I_H
#define SB_WIRE_DNS_I_H
/* What the two halves of the DNS codec share. */
#include "wire/dns.h"

#define DNS_HEAD 12
#define DNS_QR 0x8000U
#define DNS_OPCODE 0x7800U
#define DNS_TC 0x0200U
#define DNS_RD 0x0100U
#define DNS_RA 0x0080U
#define DNS_CD 0x0010U
#define DNS_RCODE 0x000fU
#define DNS_CLASS_IN 1

static inline uint16_t dns_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t dns_be32(const uint8_t *p)
{
	return (uint32_t)dns_be16(p) << 16 | dns_be16(p + 2);
}
static inline void dns_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}
static inline void dns_put32(uint8_t *p, uint32_t v)
{
	dns_put16(p, (uint16_t)(v >> 16));
	dns_put16(p + 2, (uint16_t)v);
}

struct dns_name {
	char text[SB_DNS_NAME]; /* dotted, without the trailing dot; "" for the root */
	bool plain;		/* false: bytes that have no place in text; then @text is "" */
};
/*
 * dns_name_read - the name at *@pos of a message, which is moved behind it
 * A pointer is followed only where @pointers says so, and only backwards.
 * Return: 0; -EBADMSG.
 */
SB_MUST_CHECK int dns_name_read(const uint8_t *msg, size_t len, size_t *pos, bool pointers,
				struct dns_name *ret);

#endif
