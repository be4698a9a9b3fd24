/*
 * Theory of operation. A question is read strictly, charged to the budget, and decided by its name
 * alone. Allowed names get a synthetic address: nothing is asked upstream, so nothing can be told
 * to anybody by asking. Only the further record types that the plan lists go to the resolvers, for
 * allowed names. Everything else is answered here: with NXDOMAIN and the reason when the name is
 * not allowed, with no data when only the type is not.
 *
 * A name beneath a wildcard is a message to whoever serves the domain, once it is connected to or
 * looked up. So names not seen before have a budget, here and through dns_admit().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/dns_i.h"

#define TTL 60
#define MINUTE_NS 60000000000U
#define PENDING_MAX 256
#define ARPA4 ".in-addr.arpa"
#define ARPA6 ".ip6.arpa"

/* --- budgets --- */

static bool bucket_take(struct dns_bucket *b)
{
	uint64_t now = sb_now_ns();
	uint64_t cost;

	if (b->per_minute == 0)
		return true;
	cost = MINUTE_NS / b->per_minute;
	b->credit_ns = SB_MIN(b->credit_ns + (now - b->last_ns), MINUTE_NS);
	b->last_ns = now;
	if (b->credit_ns < cost)
		return false;
	b->credit_ns -= cost;
	return true;
}

static void bucket_init(struct dns_bucket *b, uint32_t per_minute)
{
	*b = (struct dns_bucket){ .per_minute = per_minute,
				  .credit_ns = MINUTE_NS,
				  .last_ns = sb_now_ns() };
}

enum sb_net_reason dns_admit(struct dns *d, const char *name, const struct sb_net_verdict *v)
{
	struct gate *g = d->g;
	struct sb_addr a;

	if (names_known(g->names, name))
		return SB_NET_OK;
	if ((sb_netpol_by_wildcard(g->pol, name) ||
	     (g->plan->net.mode == SB_NET_OPEN && !v->rule)) &&
	    !bucket_take(&d->new_names))
		return SB_NET_DNS_NEW_NAMES;
	return names_addr(g->names, name, false, &a) == 0 ? SB_NET_OK : SB_NET_DNS_NEW_NAMES;
}

/* --- answers --- */

static size_t room_of(const struct dns_from *from, const struct sb_dns_query *q)
{
	if (!from->datagram)
		return DNS_ANSWER_MAX;
	return SB_MIN((size_t)q->udp_size, (size_t)DNS_UDP_ROOM);
}

static void answer(const struct dns_from *from, const struct sb_dns_query *q,
		   const struct sb_dns_answer *a)
{
	uint8_t out[DNS_UDP_ROOM];
	size_t cap = SB_MIN(room_of(from, q), sizeof(out));
	size_t len = sb_dns_answer_write(q, a, out, cap);

	if (len > 0)
		dns_io_send(from, out, len);
}

static void answer_code(const struct dns_from *from, const struct sb_dns_query *q,
			enum sb_dns_rcode rcode)
{
	struct sb_dns_answer a = { .rcode = rcode, .ede = SB_EDE_NONE };

	answer(from, q, &a);
}

static void event(struct dns *d, const struct sb_dns_query *q, const char *name,
		  const struct sb_net_verdict *v)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_DNS };

	event_fill(&ev, name, 0, v);
	ev.dns_type = q->type;
	event_send(d->g, &ev);
}

/* Refuse with the reason, in the answer and in the record. */
static void refuse(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q,
		   const char *name, const struct sb_net_verdict *v, enum sb_dns_rcode rcode)
{
	bool budget = rcode == SB_DNS_REFUSED;
	char text[400];
	struct sb_dns_answer a = { .rcode = rcode,
				   .ede = budget ? SB_EDE_PROHIBITED : SB_EDE_BLOCKED,
				   .ede_text = text };

	(void)sb_net_explain(v->reason, v->rule, name, 0, d->g->session, text, sizeof(text));
	answer(from, q, &a);
	event(d, q, name, v);
}

static void refuse_for(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q,
		       const char *name, enum sb_net_reason reason, enum sb_dns_rcode rcode)
{
	struct sb_net_verdict v = { .reason = reason };

	refuse(d, from, q, name, &v, rcode);
}

/* --- names that are answered without a decision --- */

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s);
	size_t n = strlen(end);

	return len >= n && strcmp(s + len - n, end) == 0;
}

static void answer_localhost(const struct dns_from *from, const struct sb_dns_query *q)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 };
	static const uint8_t v6[16] = { [15] = 1 };
	struct sb_dns_answer a = { .rcode = SB_DNS_NOERROR, .ttl = TTL, .ede = SB_EDE_NONE };

	if (q->type == SB_DNS_A)
		a.addr = v4;
	else if (q->type == SB_DNS_AAAA)
		a.addr = v6;
	answer(from, q, &a);
}

/* "16.0.18.198.in-addr.arpa". Return: 0; -EINVAL. */
static int arpa4_parse(const char *name, struct sb_addr *ret)
{
	size_t len = strlen(name) - (sizeof(ARPA4) - 1);
	char text[16];
	unsigned int b[4];
	struct sb_addr a;
	char end;

	if (len >= sizeof(text))
		return -EINVAL;
	memcpy(text, name, len);
	text[len] = '\0';
	if (sb_addr_parse(text, len, &a) < 0) /* four strict numbers */
		return -EINVAL;
	if (sscanf(text, "%u.%u.%u.%u%c", &b[3], &b[2], &b[1], &b[0], &end) != 4)
		return -EINVAL;
	for (size_t i = 0; i < 4; i++)
		a.b[12 + i] = (uint8_t)b[i];
	*ret = a;
	return 0;
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int arpa6_parse(const char *name, struct sb_addr *ret)
{
	struct sb_addr a = { { 0 } };

	if (strlen(name) != 63 + sizeof(ARPA6) - 1)
		return -EINVAL;
	for (size_t i = 0; i < 32; i++) {
		int v = hex_of(name[i * 2]);

		if (v < 0 || name[i * 2 + 1] != '.')
			return -EINVAL;
		a.b[15 - i / 2] = (uint8_t)(a.b[15 - i / 2] | v << (i % 2 ? 4 : 0));
	}
	*ret = a;
	return 0;
}

/* The name as labels. Return: length. @out: 255 bytes */
static size_t wire_name(const char *name, uint8_t *out)
{
	size_t len = strlen(name);
	size_t start = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && name[i] != '.') {
			out[i + 1] = (uint8_t)name[i];
			continue;
		}
		out[start] = (uint8_t)(i - start);
		start = i + 1;
	}
	out[len + 1] = 0;
	return len + 2;
}

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* sb_dns_answer_write knows addresses only: put the pointer record behind the question. */
static void answer_ptr(const struct dns_from *from, const struct sb_dns_query *q, const char *name)
{
	struct sb_dns_query plain = *q;
	struct sb_dns_answer a = { .rcode = SB_DNS_NOERROR, .ede = SB_EDE_NONE };
	uint8_t out[12 + 255 + 4 + 12 + 255];
	size_t len;
	size_t n;

	plain.edns = false;
	len = sb_dns_answer_write(&plain, &a, out, sizeof(out));
	if (len == 0 || len > 12 + 255 + 4)
		return;
	n = wire_name(name, out + len + 12);
	put16(out + 6, 1); /* one answer */
	put16(out + len, 0xc00c); /* the question's name */
	put16(out + len + 2, SB_DNS_PTR);
	put16(out + len + 4, 1);
	put16(out + len + 6, 0);
	put16(out + len + 8, TTL);
	put16(out + len + 10, n);
	dns_io_send(from, out, len + 12 + n);
}

static void reverse(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q,
		    const char *name)
{
	struct sb_addr a;
	const char *found = NULL;
	int r = ends_with(name, ARPA4) ? arpa4_parse(name, &a) : arpa6_parse(name, &a);

	if (r == 0)
		found = names_of(d->g->names, &a);
	if (found)
		answer_ptr(from, q, found);
	else
		answer_code(from, q, SB_DNS_NXDOMAIN);
}

/* --- further types --- */

static void pending_free(struct dns_pending *p)
{
	struct dns_pending **at = &p->d->pending;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->d->n_pending--;
	free(p);
}

void dns_forget(struct dns *d, const struct dns_conn *c)
{
	struct dns_pending *next;

	for (struct dns_pending *p = d->pending; p; p = next) {
		next = p->next;
		if (!c || p->from.conn == c) {
			resolve_raw_cancel(d->g->resolver, p);
			pending_free(p);
		}
	}
}

/* The resolvers' answer with the guest's identifier, spelling of the name, and flags. */
static void hand_on(const struct dns_from *from, const struct sb_dns_query *q, const uint8_t *msg,
		    size_t len)
{
	sb_autofree uint8_t *copy = NULL;

	if (len < 12U + q->name_len || len > DNS_ANSWER_MAX)
		return;
	copy = malloc(len);
	if (!copy)
		return;
	memcpy(copy, msg, len);
	memcpy(copy + 12, q->wire_name, q->name_len);
	put16(copy, q->id);
	copy[2] = (uint8_t)(0x80 | (q->rd ? 1 : 0));
	copy[3] = (uint8_t)(0x80 | (q->cd ? 0x10 : 0) | (msg[3] & 0x0f));
	if (len > room_of(from, q))
		len = sb_dns_truncate(copy, len);
	dns_io_send(from, copy, len);
}

static void on_raw(void *owner, const uint8_t *msg, size_t len)
{
	struct dns_pending *p = owner;
	struct dns_pending copy = *p;
	struct sb_dns_answer a = { .rcode = SB_DNS_SERVFAIL,
				   .ede = SB_EDE_NO_REACHABLE,
				   .ede_text = "sendbox: the resolvers gave no usable answer" };

	pending_free(p);
	if (msg)
		hand_on(&copy.from, &copy.q, msg, len);
	else
		answer(&copy.from, &copy.q, &a);
	dns_io_pending(&copy.from, -1); /* last: it may end the connection */
}

static void ask_upstream(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q,
			 const char *name)
{
	struct dns_pending *p = NULL;
	struct sb_dns_answer a = { .rcode = SB_DNS_SERVFAIL,
				   .ede = SB_EDE_OTHER,
				   .ede_text = "sendbox: cannot ask the resolvers now" };

	if (d->n_pending < PENDING_MAX)
		p = calloc(1, sizeof(*p));
	if (!p) {
		answer(from, q, &a);
		return;
	}
	p->d = d;
	p->from = *from;
	p->q = *q;
	if (resolve_raw(d->g->resolver, name, q->type, on_raw, p) < 0) {
		free(p);
		answer(from, q, &a);
		return;
	}
	p->next = d->pending;
	d->pending = p;
	d->n_pending++;
	dns_io_pending(from, 1);
}

static bool type_listed(const struct dns *d, uint16_t type)
{
	for (size_t i = 0; i < d->n_types; i++) {
		if (d->types[i] == type)
			return true;
	}
	return false;
}

/* --- decisions --- */

static void allowed_addr(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q,
			 const char *name, const struct sb_net_verdict *v)
{
	bool v6 = q->type == SB_DNS_AAAA;
	struct sb_dns_answer a = { .rcode = SB_DNS_NOERROR, .ttl = TTL, .ede = SB_EDE_NONE };
	struct sb_addr addr;

	if (dns_admit(d, name, v) != SB_NET_OK ||
	    names_addr(d->g->names, name, v6, &addr) < 0) {
		refuse_for(d, from, q, name, SB_NET_DNS_NEW_NAMES, SB_DNS_REFUSED);
		return;
	}
	a.addr = v6 ? addr.b : addr.b + 12;
	answer(from, q, &a);
	event(d, q, name, v);
}

static void allowed(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q,
		    const char *name, const struct sb_net_verdict *v)
{
	if (q->type == SB_DNS_A || q->type == SB_DNS_AAAA) {
		allowed_addr(d, from, q, name, v);
	} else if (q->type == SB_DNS_HTTPS || q->type == SB_DNS_SVCB) {
		/* clients go on with addresses, and get no keys for an encrypted hello */
		answer_code(from, q, SB_DNS_NOERROR);
	} else if (!type_listed(d, q->type) || v->ask) {
		/* nothing leaves for a name that was not approved: a question would say it already */
		refuse_for(d, from, q, name, SB_NET_DNS_TYPE, SB_DNS_NOERROR);
	} else if (strcmp(name, SB_HOST_NAME) == 0) {
		answer_code(from, q, SB_DNS_NOERROR);
	} else if (dns_admit(d, name, v) != SB_NET_OK) {
		refuse_for(d, from, q, name, SB_NET_DNS_NEW_NAMES, SB_DNS_REFUSED);
	} else {
		event(d, q, name, v);
		ask_upstream(d, from, q, name);
	}
}

static void decide(struct dns *d, const struct dns_from *from, const struct sb_dns_query *q)
{
	char name[SB_NAME_MAX + 1];
	struct sb_net_verdict v = { 0 };

	if (q->name[0] == '\0') { /* the root: it exists, but has nothing for anybody here */
		answer_code(from, q, SB_DNS_REFUSED);
		return;
	}
	if (sb_name_normalise(q->name, strlen(q->name), name) < 0) {
		refuse_for(d, from, q, q->name, SB_NET_NAME_MALFORMED, SB_DNS_NXDOMAIN);
		return;
	}
	if (strcmp(name, "localhost") == 0 || ends_with(name, ".localhost")) {
		answer_localhost(from, q);
		return;
	}
	if (q->type == SB_DNS_PTR && (ends_with(name, ARPA4) || ends_with(name, ARPA6))) {
		reverse(d, from, q, name);
		return;
	}
	sb_netpol_name(d->g->pol, name, 0, &v);
	if (v.allow)
		allowed(d, from, q, name, &v);
	else
		refuse(d, from, q, name, &v, SB_DNS_NXDOMAIN);
}

/* Without name and type, so that all of them are one event. */
static void flood_event(struct dns *d, enum sb_net_reason reason)
{
	struct sb_net_verdict v = { .reason = reason };
	struct sb_dns_query none = { 0 };

	event(d, &none, "", &v);
}

static void answer_rate(const struct dns *d, const struct dns_from *from,
			const struct sb_dns_query *q)
{
	char text[400];
	struct sb_dns_answer a = { .rcode = SB_DNS_REFUSED,
				   .ede = SB_EDE_PROHIBITED,
				   .ede_text = text };

	(void)sb_net_explain(SB_NET_DNS_RATE, NULL, q->name, 0, d->g->session, text, sizeof(text));
	answer(from, q, &a);
}

void dns_question(struct dns *d, const struct dns_from *from, const uint8_t *msg, size_t len)
{
	struct sb_dns_query q;
	enum sb_dns_rcode rcode = SB_DNS_SERVFAIL;
	int r = sb_dns_query_parse(msg, len, &q, &rcode);

	if (r < 0) {
		if (r == -EBADMSG && bucket_take(&d->queries))
			answer_code(from, &q, rcode);
		flood_event(d, SB_NET_DNS_MALFORMED);
	} else if (!bucket_take(&d->queries)) {
		answer_rate(d, from, &q);
		flood_event(d, SB_NET_DNS_RATE);
	} else {
		decide(d, from, &q);
	}
}

int dns_new(struct gate *g, struct dns **ret)
{
	const struct sb_plan_net *n = &g->plan->net;
	struct dns *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->g = g;
	bucket_init(&d->queries, n->dns_queries);
	bucket_init(&d->new_names, n->dns_new_names);
	for (char **t = n->dns_types; t && *t && d->n_types < SB_NET_MAX_TYPES; t++) {
		uint16_t type = sb_dns_type_of(*t);

		if (type != 0)
			d->types[d->n_types++] = type;
	}
	*ret = d;
	return 0;
}

struct dns *dns_free(struct dns *d)
{
	if (d) {
		dns_forget(d, NULL);
		dns_io_done(d);
		free(d);
	}
	return NULL;
}
