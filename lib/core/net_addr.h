#ifndef SB_CORE_NET_ADDR_H
#define SB_CORE_NET_ADDR_H
/*
 * Addresses and their classes. An address is 16 bytes: IPv6, or IPv4 as ::ffff:a.b.c.d; so an
 * IPv4-mapped address is its IPv4 address everywhere. Pure.
 *
 * Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries, RFC 6890, 4291, 6052, 3056, 4380.
 */
#include "base/mem.h"

struct sb_addr {
	uint8_t b[16];
};
#define SB_ADDR_TEXT 46 /* bytes that sb_addr_format writes at most, NUL included */

enum sb_addr_class {
	SB_ADDR_NONE = 0,
	SB_ADDR_PUBLIC,
	SB_ADDR_PRIVATE,     /* RFC 1918, ULA, site-local: by explicit network grant only */
	SB_ADDR_SHARED,      /* 100.64/10: as private */
	SB_ADDR_LINK_LOCAL,  /* as private */
	SB_ADDR_SPECIAL,     /* documentation, benchmarking, protocol assignments, reserved: as private */
	SB_ADDR_LOOPBACK,    /* never; the host's ports have a grant of their own */
	SB_ADDR_MULTICAST,   /* never; broadcast too */
	SB_ADDR_UNSPECIFIED, /* never; 0.0.0.0/8 and :: */
	SB_ADDR_METADATA,    /* never: cloud metadata services */
};

/* Strict text: four decimal numbers without leading zeros, or RFC 4291 IPv6; no zone, brackets,
 * port, or space. Return: 0; -EINVAL. */
SB_MUST_CHECK int sb_addr_parse(const char *s, size_t len, struct sb_addr *ret);
/* RFC 5952 text; IPv4 as dotted quad. */
void sb_addr_format(const struct sb_addr *a, char out[SB_ADDR_TEXT]);
bool sb_addr_is_v4(const struct sb_addr *a);
void sb_addr_from_v4(const uint8_t v4[4], struct sb_addr *ret);

/* IPv4 inside IPv6 (mapped, compatible, NAT64, 6to4, Teredo, ISATAP) is judged by both: the
 * stricter class wins, and a translated public address is SB_ADDR_SPECIAL. */
enum sb_addr_class sb_addr_classify(const struct sb_addr *a);
const char *sb_addr_class_name(enum sb_addr_class c); /* "public", "private", ... */

struct sb_cidr {
	struct sb_addr addr; /* bits after the prefix are zero */
	uint8_t bits;        /* of 128: an IPv4 /8 is 104 */
};
/* "10.0.0.0/8", "fd00::/8", or an address alone; host bits must be zero. Return: 0; -EINVAL. */
SB_MUST_CHECK int sb_cidr_parse(const char *s, size_t len, struct sb_cidr *ret);
#define SB_CIDR_TEXT (SB_ADDR_TEXT + 4)
/* The canonical text: an address alone without "/". */
void sb_cidr_format(const struct sb_cidr *c, char out[SB_CIDR_TEXT]);
/* An IPv6 network has no IPv4 address, not even ::/0. */
bool sb_cidr_has(const struct sb_cidr *c, const struct sb_addr *a);

#endif
