/*
 * Answers of the host's resolvers. First every record is read for form, then the chain of aliases
 * is followed through the answer section; what is not on it does not exist.
 */
#include "wire/dns.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "wire/dns_i.h"

#define TYPE_DNAME 39
#define TYPE_RRSIG 46

struct record {
	size_t owner; /* position of the name */
	size_t data;  /* position of the data */
	uint16_t len;
	uint16_t type;
	uint16_t klass;
	uint32_t ttl;
};
struct message {
	const uint8_t *p;
	size_t len;
	uint16_t flags;
	uint8_t extended; /* upper bits of the code, from OPT */
	size_t n;
	size_t n_answer; /* records [0, n_answer) are the answer section */
	size_t n_authority;
	struct record rec[SB_DNS_MAX_RECORDS];
};

/* Character strings, at least one, up to the end. */
static bool strings_ok(const uint8_t *p, size_t len)
{
	if (len == 0)
		return false;
	while (len > 0) {
		size_t n = (size_t)p[0] + 1;

		if (n > len)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

/* @n names from @at exactly to @end. */
static bool names_ok(const struct message *m, size_t at, size_t end, unsigned int n)
{
	struct dns_name name;

	while (n-- > 0)
		if (at >= end || dns_name_read(m->p, end, &at, true, &name) < 0)
			return false;
	return at == end;
}

static bool naptr_ok(const struct message *m, size_t at, size_t end)
{
	at += 4;
	for (unsigned int i = 0; i < 3; i++) {
		if (at >= end || m->p[at] >= end - at)
			return false;
		at += (size_t)m->p[at] + 1;
	}
	return names_ok(m, at, end, 1);
}

/* Priority, target, then parameters in ascending order (RFC 9460 2.2). */
static bool svcb_ok(const struct message *m, size_t at, size_t end)
{
	struct dns_name name;
	int32_t last = -1;

	at += 2;
	if (at >= end || dns_name_read(m->p, end, &at, false, &name) < 0)
		return false;
	while (at < end) {
		if (end - at < 4 || dns_be16(m->p + at) <= last ||
		    dns_be16(m->p + at + 2) > end - at - 4)
			return false;
		last = dns_be16(m->p + at);
		at += 4 + (size_t)dns_be16(m->p + at + 2);
	}
	return true;
}

static bool data_ok(const struct message *m, const struct record *r)
{
	size_t at = r->data;
	size_t end = at + r->len;
	struct dns_name name;

	switch (r->type) {
	case SB_DNS_A:
		return r->len == 4;
	case SB_DNS_AAAA:
		return r->len == 16;
	case SB_DNS_NS:
	case SB_DNS_CNAME:
	case SB_DNS_PTR:
	case TYPE_DNAME:
		return names_ok(m, at, end, 1);
	case SB_DNS_SOA:
		return dns_name_read(m->p, end, &at, true, &name) == 0 && at < end &&
		       dns_name_read(m->p, end, &at, true, &name) == 0 && end - at == 20;
	case SB_DNS_MX:
		return r->len > 2 && names_ok(m, at + 2, end, 1);
	case SB_DNS_SRV:
		return r->len > 6 && names_ok(m, at + 6, end, 1);
	case SB_DNS_TXT:
		return strings_ok(m->p + at, r->len);
	case SB_DNS_NAPTR:
		return r->len > 4 && naptr_ok(m, at, end);
	case SB_DNS_SVCB:
	case SB_DNS_HTTPS:
		return r->len > 2 && svcb_ok(m, at, end);
	case SB_DNS_CAA:
		return r->len > 2 && m->p[at + 1] > 0 && m->p[at + 1] <= r->len - 2;
	default:
		return true; /* opaque */
	}
}

static int record_read(const struct message *m, size_t *pos, struct record *ret)
{
	struct record r = { .owner = *pos };
	struct dns_name name;
	size_t at = *pos;

	if (dns_name_read(m->p, m->len, &at, true, &name) < 0 || m->len - at < 10)
		return -EBADMSG;
	r.type = dns_be16(m->p + at);
	r.klass = dns_be16(m->p + at + 2);
	r.ttl = dns_be32(m->p + at + 4);
	r.len = dns_be16(m->p + at + 8);
	r.data = at + 10;
	if (r.len > m->len - r.data || !data_ok(m, &r))
		return -EBADMSG;
	if (r.type != SB_DNS_OPT && r.ttl > INT32_MAX)
		r.ttl = 0; /* RFC 2181 8 */
	*pos = r.data + r.len;
	*ret = r;
	return 0;
}

/* Header and question; *@pos is behind them. */
static int question_read(struct message *m, const char *name, uint16_t type, size_t *pos)
{
	struct dns_name asked;
	size_t at = DNS_HEAD;

	if (m->len < DNS_HEAD)
		return -EBADMSG;
	m->flags = dns_be16(m->p + 2);
	if ((m->flags & (DNS_QR | DNS_OPCODE)) != DNS_QR || dns_be16(m->p + 4) != 1)
		return -EBADMSG;
	if (dns_name_read(m->p, m->len, &at, false, &asked) < 0 || m->len - at < 4 ||
	    !asked.plain || strcasecmp(asked.text, name) != 0 || dns_be16(m->p + at) != type ||
	    dns_be16(m->p + at + 2) != DNS_CLASS_IN)
		return -EBADMSG;
	*pos = at + 4;
	return 0;
}

static int records_read(struct message *m, size_t pos)
{
	size_t answer = dns_be16(m->p + 6);
	size_t authority = dns_be16(m->p + 8);
	size_t n = answer + authority + dns_be16(m->p + 10);
	bool opt = false;

	if (n > SB_DNS_MAX_RECORDS)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		struct record *r = &m->rec[i];

		if (record_read(m, &pos, r) < 0)
			return -EBADMSG;
		if (r->type != SB_DNS_OPT)
			continue;
		if (opt || i < answer + authority || m->p[r->owner] != 0)
			return -EBADMSG;
		opt = true;
		m->extended = (uint8_t)(r->ttl >> 24);
	}
	m->n = n;
	m->n_answer = answer;
	m->n_authority = authority;
	return pos == m->len ? 0 : -EBADMSG;
}

/* The name at @pos, which has been read before, in lower case. */
static void name_at(const struct message *m, size_t pos, struct dns_name *ret)
{
	if (dns_name_read(m->p, m->len, &pos, true, ret) < 0)
		*ret = (struct dns_name){ .plain = false };
	for (char *c = ret->text; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 0x20);
}

static bool owned_by(const struct message *m, const struct record *r, const char *name)
{
	struct dns_name owner;

	if (r->klass != DNS_CLASS_IN)
		return false;
	name_at(m, r->owner, &owner);
	return owner.plain && strcasecmp(owner.text, name) == 0;
}

/* The alias of @name. Return: 1; 0: there is none; -EBADMSG: several, or no name. */
static int alias_of(const struct message *m, const char *name, struct dns_name *ret, uint32_t *ttl)
{
	bool found = false;

	for (size_t i = 0; i < m->n_answer; i++) {
		struct dns_name target;

		if (m->rec[i].type != SB_DNS_CNAME || !owned_by(m, &m->rec[i], name))
			continue;
		name_at(m, m->rec[i].data, &target);
		if (!target.plain || target.text[0] == '\0' ||
		    (found && strcmp(target.text, ret->text) != 0))
			return -EBADMSG;
		found = true;
		*ret = target;
		*ttl = SB_MIN(*ttl, m->rec[i].ttl);
	}
	return found;
}

static int chain_read(const struct message *m, const char *name, struct sb_dns_reply *r)
{
	const char *at = name;

	for (;;) {
		struct dns_name target;
		int k = alias_of(m, at, &target, &r->ttl);

		if (k <= 0)
			return k;
		if (r->n_hops == SB_DNS_MAX_HOPS || strcasecmp(target.text, name) == 0)
			return -EBADMSG;
		for (size_t i = 0; i < r->n_hops; i++)
			if (strcmp(r->hops[i], target.text) == 0)
				return -EBADMSG;
		memcpy(r->hops[r->n_hops], target.text, SB_DNS_NAME);
		at = r->hops[r->n_hops++];
	}
}

static void addrs_read(const struct message *m, const char *owner, uint16_t type,
		       struct sb_dns_reply *r)
{
	for (size_t i = 0; i < m->n_answer && r->n_addrs < SB_ARRAY_LEN(r->addrs); i++) {
		const struct record *rec = &m->rec[i];
		uint8_t *to = r->addrs[r->n_addrs];

		if (rec->type != type || !owned_by(m, rec, owner))
			continue;
		if (type == SB_DNS_A)
			memset(to + 10, 0xff, 2);
		memcpy(to + 16 - rec->len, m->p + rec->data, rec->len);
		r->ttl = SB_MIN(r->ttl, rec->ttl);
		r->n_addrs++;
	}
}

/* Whether @name is @above or beneath it. */
static bool beneath(const char *name, const char *above)
{
	size_t n = strlen(name);
	size_t a = strlen(above);

	if (a == 0)
		return true;
	return n >= a && strcasecmp(name + n - a, above) == 0 && (n == a || name[n - a - 1] == '.');
}

/* How long the absence of @name holds (RFC 2308 5). */
static uint32_t negative_ttl(const struct message *m, const char *name)
{
	for (size_t i = m->n_answer; i < m->n_answer + m->n_authority; i++) {
		const struct record *r = &m->rec[i];
		struct dns_name zone;

		if (r->type != SB_DNS_SOA || r->klass != DNS_CLASS_IN)
			continue;
		name_at(m, r->owner, &zone);
		if (zone.plain && beneath(name, zone.text))
			return SB_MIN(r->ttl, dns_be32(m->p + r->data + r->len - 4));
	}
	return 0;
}

int sb_dns_reply_parse(const uint8_t *p, size_t len, const char *name, uint16_t type,
		       struct sb_dns_reply *ret)
{
	struct message m = { .p = p, .len = len };
	struct sb_dns_reply r = { .ttl = UINT32_MAX };
	const char *last;
	size_t pos;

	if ((type != SB_DNS_A && type != SB_DNS_AAAA) || question_read(&m, name, type, &pos) < 0)
		return -EBADMSG;
	r.id = dns_be16(p);
	r.rcode = (enum sb_dns_rcode)(m.flags & DNS_RCODE);
	r.truncated = (m.flags & DNS_TC) != 0;
	if (r.truncated) { /* what is left of the records says nothing */
		r.ttl = 0;
		*ret = r;
		return 0;
	}
	if (records_read(&m, pos) < 0 || chain_read(&m, name, &r) < 0)
		return -EBADMSG;
	if (m.extended != 0)
		r.rcode = SB_DNS_SERVFAIL;
	last = r.n_hops > 0 ? r.hops[r.n_hops - 1] : name;
	if (r.rcode == SB_DNS_NOERROR)
		addrs_read(&m, last, type, &r);
	if (r.n_addrs == 0)
		r.ttl = SB_MIN(r.ttl, negative_ttl(&m, last));
	*ret = r;
	return 0;
}

static bool on_chain(const struct message *m, const struct record *rec, const char *name,
		     const struct sb_dns_reply *chain)
{
	struct dns_name owner;

	name_at(m, rec->owner, &owner);
	if (rec->klass != DNS_CLASS_IN || !owner.plain)
		return false;
	for (size_t i = 0; i <= chain->n_hops; i++) {
		const char *link = i == 0 ? name : chain->hops[i - 1];

		if (rec->type == TYPE_DNAME ? beneath(link, owner.text)
					    : strcasecmp(link, owner.text) == 0)
			return true;
	}
	return false;
}

int sb_dns_reply_check(const uint8_t *p, size_t len, const char *name, uint16_t type)
{
	struct message m = { .p = p, .len = len };
	struct sb_dns_reply chain = { 0 };
	size_t pos;

	if (question_read(&m, name, type, &pos) < 0 || records_read(&m, pos) < 0)
		return -EBADMSG;
	if (type != SB_DNS_CNAME && chain_read(&m, name, &chain) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < m.n_answer; i++) {
		const struct record *r = &m.rec[i];

		if (r->type != type && r->type != SB_DNS_CNAME && r->type != TYPE_DNAME &&
		    r->type != TYPE_RRSIG)
			return -EBADMSG;
		if (!on_chain(&m, r, name, &chain))
			return -EBADMSG;
	}
	return 0;
}
