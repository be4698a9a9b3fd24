/*
 * Theory of operation. An address is read as two 64-bit halves. Classes are compared by number:
 * what enum sb_addr_class lists later is stricter, so "the stricter class wins" is a maximum.
 * IPv6 is judged from what is global: only 2000::/3 is handed out, so all else has to be known by
 * name or is SB_ADDR_SPECIAL; a range that IANA assigns tomorrow is restricted, not public.
 */
#include "core/net_addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/num.h"

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* ---- text ---- */

int sb_addr_parse(const char *s, size_t len, struct sb_addr *ret)
{
	static const char ok[] = "0123456789abcdefABCDEF:.";
	char text[SB_ADDR_TEXT];
	struct sb_addr a;
	uint8_t v4[4];

	if (len == 0 || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, s, len);
	text[len] = '\0';
	if (strspn(text, ok) != len)
		return -EINVAL;
	if (inet_pton(AF_INET, text, v4) == 1)
		sb_addr_from_v4(v4, &a);
	else if (inet_pton(AF_INET6, text, a.b) != 1)
		return -EINVAL;
	*ret = a;
	return 0;
}

void sb_addr_format(const struct sb_addr *a, char out[SB_ADDR_TEXT])
{
	bool v4 = sb_addr_is_v4(a);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, out, SB_ADDR_TEXT))
		out[0] = '\0'; /* never: the room suffices */
}

bool sb_addr_is_v4(const struct sb_addr *a)
{
	return memcmp(a->b, v4_prefix, sizeof(v4_prefix)) == 0;
}

void sb_addr_from_v4(const uint8_t v4[4], struct sb_addr *ret)
{
	memcpy(ret->b, v4_prefix, sizeof(v4_prefix));
	memcpy(ret->b + 12, v4, 4);
}

/* ---- classes ---- */

static enum sb_addr_class stricter(enum sb_addr_class a, enum sb_addr_class b)
{
	return a > b ? a : b;
}

static bool v4_metadata(uint32_t a)
{
	switch (a) {
	case 0xa9fea9fe: /* 169.254.169.254: EC2, GCE, Azure, OpenStack and most others */
	case 0xa9feaa02: /* 169.254.170.2: ECS task credentials */
	case 0xa9feaa17: /* 169.254.170.23: EKS pod credentials */
	case 0xa9fe0017: /* 169.254.0.23: Tencent */
	case 0xa9fe2a2a: /* 169.254.42.42: Scaleway */
	case 0x646464c8: /* 100.100.100.200: Alibaba */
	case 0xc00000c0: /* 192.0.0.192: Oracle */
	case 0xa83f8110: /* 168.63.129.16: Azure wire server */
		return true;
	default:
		return false;
	}
}

static enum sb_addr_class v4_192(uint32_t a)
{
	switch (a >> 8) {
	case 0xc00000: /* 192.0.0.0/24 protocol assignments */
	case 0xc00002: /* 192.0.2.0/24 documentation */
	case 0xc01fc4: /* 192.31.196.0/24 AS112 */
	case 0xc034c1: /* 192.52.193.0/24 AMT */
	case 0xc05863: /* 192.88.99.0/24 6to4 relays */
	case 0xc0af30: /* 192.175.48.0/24 AS112 */
		return SB_ADDR_SPECIAL;
	default:
		return a >> 16 == 0xc0a8 ? SB_ADDR_PRIVATE : SB_ADDR_PUBLIC;
	}
}

static enum sb_addr_class classify_v4(uint32_t a)
{
	if (v4_metadata(a))
		return SB_ADDR_METADATA;
	if (a >= 0xe0000000) {
		if (a < 0xf0000000 || a == 0xffffffff)
			return SB_ADDR_MULTICAST;
		return SB_ADDR_SPECIAL; /* 240/4 */
	}
	switch (a >> 24) {
	case 0:
		return SB_ADDR_UNSPECIFIED;
	case 10:
		return SB_ADDR_PRIVATE;
	case 100:
		return a >> 22 == 0x64400000 >> 22 ? SB_ADDR_SHARED : SB_ADDR_PUBLIC;
	case 127:
		return SB_ADDR_LOOPBACK;
	case 169:
		return a >> 16 == 0xa9fe ? SB_ADDR_LINK_LOCAL : SB_ADDR_PUBLIC;
	case 172:
		return a >> 20 == 0xac1 ? SB_ADDR_PRIVATE : SB_ADDR_PUBLIC;
	case 192:
		return v4_192(a);
	case 198:
		if (a >> 17 == 0xc6120000 >> 17 || a >> 8 == 0xc63364)
			return SB_ADDR_SPECIAL; /* benchmarking, documentation */
		return SB_ADDR_PUBLIC;
	case 203:
		return a >> 8 == 0xcb0071 ? SB_ADDR_SPECIAL : SB_ADDR_PUBLIC;
	default:
		return SB_ADDR_PUBLIC;
	}
}

static bool v6_metadata(uint64_t hi, uint64_t lo)
{
	switch (hi) {
	case 0xfd000ec200000000: /* EC2; ::254 instance data, ::23 EKS pod credentials */
		return lo == 0x254 || lo == 0x23;
	case 0xfd2000ce00000000: /* GCE */
		return lo == 0x254;
	case 0xfd00004200000000: /* Scaleway */
		return lo == 0x42;
	case 0xfe80000000000000: /* OpenStack */
		return lo == 0xa9fea9fe;
	default:
		return false;
	}
}

/* Outside 2000::/3. */
static enum sb_addr_class v6_other(uint64_t hi)
{
	if (hi >> 56 == 0xff)
		return SB_ADDR_MULTICAST;
	if (hi >> 57 == 0xfc >> 1 || hi >> 54 == 0xfec0 >> 6)
		return SB_ADDR_PRIVATE; /* ULA, site-local */
	if (hi >> 54 == 0xfe80 >> 6)
		return SB_ADDR_LINK_LOCAL;
	/* 64:ff9b::/96, 64:ff9b:1::/48, 100::/64, 100:0:0:1::/64, 5f00::/16, never assigned */
	return SB_ADDR_SPECIAL;
}

static enum sb_addr_class v6_outer(uint64_t hi)
{
	if (hi >> 61 != 1)
		return v6_other(hi);
	if (hi >> 41 == 0x20010000 >> 9 ||   /* 2001::/23 protocol assignments, Teredo, ORCHID */
	    hi >> 32 == 0x20010db8 ||        /* documentation */
	    hi >> 48 == 0x2002 ||            /* 6to4 */
	    hi >> 16 == 0x2620004f8000 ||    /* AS112 */
	    hi >> 44 == 0x3fff0)             /* documentation */
		return SB_ADDR_SPECIAL;
	return SB_ADDR_PUBLIC;
}

/*
 * 64:ff9b:1::/48 is a site's own translator, whose prefix may have 48, 56, 64 or 96 bits (RFC
 * 6052 2.2). Which is not known here, so each reading counts; one that yields 0.0.0.0/8 is what
 * the zeros of a shorter prefix look like.
 */
static enum sb_addr_class local_nat64(uint64_t hi, uint64_t lo)
{
	const uint32_t reading[4] = {
		(uint32_t)(hi << 16 | (lo >> 40 & 0xffff)),
		(uint32_t)(hi << 24 | (lo >> 32 & 0xffffff)),
		(uint32_t)(lo >> 24),
		(uint32_t)lo,
	};
	enum sb_addr_class c = SB_ADDR_SPECIAL;

	for (size_t i = 0; i < SB_ARRAY_LEN(reading); i++)
		if (reading[i] >> 24 != 0)
			c = stricter(c, classify_v4(reading[i]));
	return c;
}

/* The class that an IPv4 address inside gives; SB_ADDR_NONE when there is none. */
static enum sb_addr_class v6_inner(uint64_t hi, uint64_t lo)
{
	uint32_t low = (uint32_t)lo;

	if (hi == 0 && lo >> 32 == 0) /* ::a.b.c.d */
		return stricter(SB_ADDR_SPECIAL, classify_v4(low));
	if (hi == 0 && lo >> 32 == 0xffff0000) /* ::ffff:0:a.b.c.d */
		return stricter(SB_ADDR_SPECIAL, classify_v4(low));
	if (hi == 0x0064ff9b00000000 && lo >> 32 == 0) /* 64:ff9b::/96 */
		return stricter(SB_ADDR_SPECIAL, classify_v4(low));
	if (hi >> 16 == 0x0064ff9b0001)
		return local_nat64(hi, lo);
	if (hi >> 48 == 0x2002)
		return stricter(SB_ADDR_SPECIAL, classify_v4((uint32_t)(hi >> 16)));
	if (hi >> 32 == 0x20010000) /* Teredo: its server, and its client inverted */
		return stricter(classify_v4((uint32_t)hi), classify_v4(~low));
	if ((lo >> 32 & 0xfdffffff) == 0x00005efe) /* ISATAP */
		return stricter(SB_ADDR_SPECIAL, classify_v4(low));
	return SB_ADDR_NONE;
}

static uint64_t be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

enum sb_addr_class sb_addr_classify(const struct sb_addr *a)
{
	uint64_t hi = be64(a->b);
	uint64_t lo = be64(a->b + 8);

	if (hi == 0) {
		if (lo >> 32 == 0xffff)
			return classify_v4((uint32_t)lo);
		if (lo == 0)
			return SB_ADDR_UNSPECIFIED;
		if (lo == 1)
			return SB_ADDR_LOOPBACK;
	}
	if (v6_metadata(hi, lo))
		return SB_ADDR_METADATA;
	return stricter(v6_outer(hi), v6_inner(hi, lo));
}

const char *sb_addr_class_name(enum sb_addr_class c)
{
	static const char *const names[] = {
		[SB_ADDR_NONE] = "none",
		[SB_ADDR_PUBLIC] = "public",
		[SB_ADDR_PRIVATE] = "private",
		[SB_ADDR_SHARED] = "shared",
		[SB_ADDR_LINK_LOCAL] = "link-local",
		[SB_ADDR_SPECIAL] = "special-purpose",
		[SB_ADDR_LOOPBACK] = "loopback",
		[SB_ADDR_MULTICAST] = "multicast",
		[SB_ADDR_UNSPECIFIED] = "unspecified",
		[SB_ADDR_METADATA] = "metadata",
	};

	return (size_t)c < SB_ARRAY_LEN(names) ? names[c] : "none";
}

/* ---- networks ---- */

/* Byte @i of a mask of @bits bits. */
static uint8_t mask_byte(unsigned int bits, unsigned int i)
{
	if (bits >= 8 * (i + 1))
		return 0xff;
	if (bits <= 8 * i)
		return 0;
	return (uint8_t)(0xffU << (8 * (i + 1) - bits));
}

int sb_cidr_parse(const char *s, size_t len, struct sb_cidr *ret)
{
	const char *slash = memchr(s, '/', len);
	struct sb_cidr c = { .bits = 128 };
	bool dotted;

	if (sb_addr_parse(s, slash ? (size_t)(slash - s) : len, &c.addr) < 0)
		return -EINVAL;
	if (slash) {
		size_t digits = len - (size_t)(slash + 1 - s);
		char text[4] = "";
		uint64_t bits;

		dotted = !memchr(s, ':', (size_t)(slash - s));
		if (digits == 0 || digits >= sizeof(text))
			return -EINVAL;
		memcpy(text, slash + 1, digits);
		if (strlen(text) != digits || sb_num_u64(text, 0, dotted ? 32 : 128, &bits) < 0)
			return -EINVAL;
		c.bits = (uint8_t)(dotted ? bits + 96 : bits);
	}
	for (unsigned int i = 0; i < 16; i++)
		if (c.addr.b[i] & ~mask_byte(c.bits, i))
			return -EINVAL;
	*ret = c;
	return 0;
}

void sb_cidr_format(const struct sb_cidr *c, char out[SB_CIDR_TEXT])
{
	unsigned int bits = c->bits;
	size_t at;

	sb_addr_format(&c->addr, out);
	if (bits >= 128)
		return;
	if (bits >= 96 && sb_addr_is_v4(&c->addr))
		bits -= 96;
	at = strlen(out);
	out[at++] = '/';
	if (bits >= 100)
		out[at++] = (char)('0' + bits / 100);
	if (bits >= 10)
		out[at++] = (char)('0' + bits / 10 % 10);
	out[at++] = (char)('0' + bits % 10);
	out[at] = '\0';
}

bool sb_cidr_has(const struct sb_cidr *c, const struct sb_addr *a)
{
	unsigned int bytes = c->bits / 8;

	if (c->bits < 96 && sb_addr_is_v4(a))
		return false; /* ::/0 is all of IPv6, not of IPv4 */
	if (memcmp(c->addr.b, a->b, bytes) != 0)
		return false;
	return c->bits % 8 == 0 ||
	       ((c->addr.b[bytes] ^ a->b[bytes]) & mask_byte(c->bits, bytes)) == 0;
}
