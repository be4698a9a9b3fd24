/*
 * Queries of the guest, our answers to them, and queries of our own. Everything that a query may
 * not be is refused before anyone looks at its name.
 */
#include "wire/dns.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "wire/dns_i.h"

#define UDP_MIN 512
#define UDP_OURS 1232 /* what never is fragmented */
#define OPT_LEN 11
#define EDE_OPTION 15

static const struct {
	uint16_t type;
	const char *name;
} types[] = {
	{ SB_DNS_A, "A" },	   { SB_DNS_NS, "NS" },	    { SB_DNS_CNAME, "CNAME" },
	{ SB_DNS_SOA, "SOA" },	   { SB_DNS_PTR, "PTR" },   { SB_DNS_MX, "MX" },
	{ SB_DNS_TXT, "TXT" },	   { SB_DNS_AAAA, "AAAA" }, { SB_DNS_SRV, "SRV" },
	{ SB_DNS_NAPTR, "NAPTR" }, { SB_DNS_SVCB, "SVCB" }, { SB_DNS_HTTPS, "HTTPS" },
	{ SB_DNS_CAA, "CAA" },	   { SB_DNS_OPT, "OPT" },
};

uint16_t sb_dns_type_of(const char *name)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(types); i++)
		if (strcasecmp(types[i].name, name) == 0)
			return types[i].type == SB_DNS_OPT ? 0 : types[i].type;
	return 0;
}

const char *sb_dns_type_name(uint16_t type)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(types); i++)
		if (types[i].type == type)
			return types[i].name;
	return NULL;
}

int dns_name_read(const uint8_t *msg, size_t len, size_t *pos, bool pointers, struct dns_name *ret)
{
	struct dns_name n = { .plain = true };
	size_t at = *pos;
	size_t lowest = at; /* a pointer goes below it, so there are no loops */
	size_t end = 0;	    /* behind the first pointer */
	size_t total = 1;
	size_t out = 0;

	for (;;) {
		size_t label;

		if (at >= len)
			return -EBADMSG;
		label = msg[at++];
		if (label == 0)
			break;
		if (label >= 0xc0) {
			size_t to;

			if (!pointers || at >= len)
				return -EBADMSG;
			to = (label & 0x3f) << 8 | msg[at++];
			if (to < DNS_HEAD || to >= lowest)
				return -EBADMSG;
			end = end ? end : at;
			at = lowest = to;
			continue;
		}
		total += label + 1;
		if (label > 63 || total > 255 || label > len - at)
			return -EBADMSG;
		if (out > 0)
			n.text[out++] = '.';
		for (size_t i = 0; i < label; i++) {
			uint8_t c = msg[at++];

			n.plain = n.plain && c > 0x20 && c < 0x7f && c != '.';
			n.text[out++] = (char)c;
		}
	}
	n.text[n.plain ? out : 0] = '\0';
	*pos = end ? end : at;
	*ret = n;
	return 0;
}

/* The one record that a query may carry. */
static int opt_parse(const uint8_t *p, size_t len, struct sb_dns_query *q)
{
	size_t at = OPT_LEN;

	if (len < OPT_LEN || p[0] != 0 || dns_be16(p + 1) != SB_DNS_OPT || p[6] != 0 ||
	    dns_be16(p + 9) != len - OPT_LEN)
		return -EBADMSG;
	while (at < len) {
		if (len - at < 4 || dns_be16(p + at + 2) > len - at - 4)
			return -EBADMSG;
		at += 4 + (size_t)dns_be16(p + at + 2);
	}
	q->edns = true;
	q->udp_size = SB_MAX(dns_be16(p + 3), UDP_MIN);
	return 0;
}

static int body_parse(const uint8_t *p, size_t len, struct sb_dns_query *q)
{
	uint16_t additional = dns_be16(p + 10);
	struct dns_name name;
	size_t at = DNS_HEAD;

	if (dns_be16(p + 4) != 1 || dns_be16(p + 6) != 0 || dns_be16(p + 8) != 0 ||
	    additional > 1 || (dns_be16(p + 2) & (DNS_TC | DNS_RCODE)) != 0)
		return -EBADMSG;
	if (dns_name_read(p, len, &at, false, &name) < 0 || len - at < 4)
		return -EBADMSG;
	q->name_len = (uint16_t)(at - DNS_HEAD);
	memcpy(q->wire_name, p + DNS_HEAD, q->name_len);
	q->type = dns_be16(p + at);
	q->klass = dns_be16(p + at + 2);
	at += 4;
	if (additional == 0 ? at != len : opt_parse(p + at, len - at, q) < 0)
		return -EBADMSG;
	if (!name.plain)
		return -EBADMSG;
	memcpy(q->name, name.text, sizeof(q->name));
	return 0;
}

int sb_dns_query_parse(const uint8_t *p, size_t len, struct sb_dns_query *ret,
		       enum sb_dns_rcode *rcode)
{
	struct sb_dns_query q = { .udp_size = UDP_MIN };
	enum sb_dns_rcode code = SB_DNS_NOERROR;
	uint16_t flags;

	if (len < DNS_HEAD)
		return -ENODATA;
	flags = dns_be16(p + 2);
	if (flags & DNS_QR)
		return -ENODATA;
	q.id = dns_be16(p);
	q.rd = (flags & DNS_RD) != 0;
	q.cd = (flags & DNS_CD) != 0;
	if (flags & DNS_OPCODE)
		code = SB_DNS_NOTIMP;
	else if (body_parse(p, len, &q) < 0)
		code = SB_DNS_FORMERR;
	else if (q.klass != DNS_CLASS_IN)
		code = SB_DNS_REFUSED;
	*ret = q;
	if (code == SB_DNS_NOERROR)
		return 0;
	*rcode = code;
	return -EBADMSG;
}

/* Text of at most @max bytes, no character of UTF-8 cut. */
static size_t text_len(const char *text, size_t max)
{
	size_t len = text ? strlen(text) : 0;

	if (len <= max)
		return len;
	while (max > 0 && ((uint8_t)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

size_t sb_dns_answer_write(const struct sb_dns_query *q, const struct sb_dns_answer *a,
			   uint8_t *out, size_t cap)
{
	bool ok = a->rcode == SB_DNS_NOERROR && a->addr && q->name_len > 0;
	size_t addr_len = ok && q->type == SB_DNS_A ? 4 : ok && q->type == SB_DNS_AAAA ? 16 : 0;
	bool ede = q->edns && a->ede >= 0;
	size_t need = DNS_HEAD + (q->name_len ? q->name_len + 4U : 0) +
		      (addr_len ? 12 + addr_len : 0) + (q->edns ? OPT_LEN : 0) + (ede ? 6 : 0);
	uint8_t *p = out;
	size_t text;

	cap = SB_MIN(cap, (size_t)UINT16_MAX);
	if (need > cap)
		return 0;
	memset(p, 0, DNS_HEAD);
	dns_put16(p, q->id);
	dns_put16(p + 2, (uint16_t)(DNS_QR | (q->rd ? DNS_RD : 0) | DNS_RA | (q->cd ? DNS_CD : 0) |
				    ((uint32_t)a->rcode & DNS_RCODE)));
	dns_put16(p + 4, q->name_len > 0);
	dns_put16(p + 6, addr_len > 0);
	dns_put16(p + 10, q->edns);
	p += DNS_HEAD;
	if (q->name_len > 0) {
		memcpy(p, q->wire_name, q->name_len);
		dns_put16(p + q->name_len, q->type);
		dns_put16(p + q->name_len + 2, q->klass);
		p += q->name_len + 4;
	}
	if (addr_len > 0) {
		dns_put16(p, 0xc000U | DNS_HEAD);
		dns_put16(p + 2, q->type);
		dns_put16(p + 4, DNS_CLASS_IN);
		dns_put32(p + 6, a->ttl);
		dns_put16(p + 10, (uint16_t)addr_len);
		memcpy(p + 12, a->addr, addr_len);
		p += 12 + addr_len;
	}
	if (!q->edns)
		return need;
	text = ede ? text_len(a->ede_text, cap - need) : 0;
	memset(p, 0, OPT_LEN);
	dns_put16(p + 1, SB_DNS_OPT);
	dns_put16(p + 3, UDP_OURS);
	dns_put16(p + 9, (uint16_t)(ede ? 6 + text : 0));
	p += OPT_LEN;
	if (ede) {
		dns_put16(p, EDE_OPTION);
		dns_put16(p + 2, (uint16_t)(2 + text));
		dns_put16(p + 4, (uint16_t)a->ede);
		if (text > 0)
			memcpy(p + 6, a->ede_text, text);
	}
	return need + text;
}

size_t sb_dns_truncate(uint8_t *msg, size_t len)
{
	struct dns_name name;
	size_t at = DNS_HEAD;

	if (len < DNS_HEAD)
		return 0;
	if (dns_be16(msg + 4) != 1 || dns_name_read(msg, len, &at, false, &name) < 0 ||
	    len - at < 4) {
		at = DNS_HEAD;
		memset(msg + 4, 0, 2);
	} else {
		at += 4;
	}
	dns_put16(msg + 2, dns_be16(msg + 2) | DNS_TC);
	memset(msg + 6, 0, 6);
	return at;
}

size_t sb_dns_query_write(uint16_t id, const char *name, uint16_t type, uint8_t *out)
{
	size_t len = strlen(name);
	uint8_t q[DNS_HEAD + 255 + 4] = { 0 };
	size_t start = DNS_HEAD; /* the length byte of the label at hand */
	size_t at = DNS_HEAD + 1;

	if (len == 0 || len > 253)
		return 0;
	for (size_t i = 0; i <= len; i++, at++) {
		uint8_t c = (uint8_t)name[i];

		if (c != '.' && c != '\0') {
			if (c <= 0x20 || c >= 0x7f || c == '\\')
				return 0;
			q[at] = c;
			continue;
		}
		if (at - start - 1 < 1 || at - start - 1 > 63)
			return 0;
		q[start] = (uint8_t)(at - start - 1);
		start = at;
	}
	/* the last round has left the root's zero behind */
	dns_put16(q, id);
	dns_put16(q + 2, DNS_RD);
	dns_put16(q + 4, 1);
	dns_put16(q + at, type);
	dns_put16(q + at + 2, DNS_CLASS_IN);
	memcpy(out, q, at + 4);
	return at + 4;
}
