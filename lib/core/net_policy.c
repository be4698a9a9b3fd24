/*
 * Theory of operation. Every host of a rule is a node of one hash table: the key is the name, the
 * suffix of a wildcard ("" for "*") or a network (address and prefix length). A name is hashed
 * once from its end, so that the hash of each of its suffixes is a step on the way; an address is
 * masked and looked up once for each prefix length in use. What is found, from far to near, is a
 * short list of port sets; denials are looked for in all of it, then the nearest allowance.
 *
 * A port set has three parts in the array of segments: denied ports and allowed ports, both
 * disjoint and in order for a binary search, and the allow rules themselves in the order in which
 * they decide the protocol.
 */
#include <errno.h>
#include <string.h>

#include "core/net_i.h"

#define LEN_CIDR 0x8000U /* marks a key that is no name */
#define CIDR_KEY 17
#define MAX_MATCH 160 /* 127 labels or 129 prefix lengths, and "*" */

struct seg {
	uint16_t lo;
	uint16_t hi;
	uint32_t rule;
};
struct ports {
	uint32_t at; /* n_deny segments, then n_any, then n_allow */
	uint32_t n_deny;
	uint32_t n_any;
	uint32_t n_allow;
};
struct node {
	uint64_t hash;
	const void *key; /* into a rule's host, or into cidr_keys */
	uint16_t len;
	struct ports exact; /* names and networks */
	struct ports wild;  /* what is beneath the name */
};
struct slot {
	uint32_t hash; /* upper half */
	uint32_t node; /* + 1; 0 = empty */
};
struct sb_netpol {
	enum sb_net_mode mode;
	struct sb_net_rule *rules; /* owned copies */
	size_t n_rules;
	uint8_t (*cidr_keys)[CIDR_KEY]; /* one for each rule, most unused */
	struct node *nodes;
	uint32_t n_nodes;
	struct slot *slots;
	uint32_t mask;
	struct seg *segs;
	uint32_t max_labels; /* of any name or suffix in a rule */
	uint8_t prefix[129]; /* prefix lengths in use, short ones first */
	unsigned int n_prefix;
	const struct node *root; /* "*", or NULL */
	struct ports none;
	struct sb_netpol *ask; /* owned: of the rules that ask; NULL: none */
};

/* One rule on its way into the table. */
struct item {
	uint32_t node;
	uint32_t rule;
	bool wild;
};

/* ---- table ---- */

static uint64_t hash_step(uint64_t h, uint8_t c)
{
	return (h ^ c) * 0x100000001b3; /* FNV-1a */
}
#define HASH_START 0xcbf29ce484222325ULL

static uint64_t hash_key(const void *key, size_t len)
{
	const uint8_t *k = key;
	uint64_t h = HASH_START;

	while (len > 0)
		h = hash_step(h, k[--len]);
	return h;
}

static const struct node *lookup(const struct sb_netpol *p, uint64_t hash, const void *key,
				 uint16_t len)
{
	uint32_t tag = (uint32_t)(hash >> 32);

	for (uint32_t i = (uint32_t)hash ^ tag;; i++) {
		const struct slot *s = &p->slots[i & p->mask];
		const struct node *n;

		if (s->node == 0)
			return NULL;
		n = &p->nodes[s->node - 1];
		if (s->hash == tag && n->hash == hash && n->len == len &&
		    memcmp(n->key, key, len & ~LEN_CIDR) == 0)
			return n;
	}
}

static uint32_t insert(struct sb_netpol *p, const void *key, uint16_t len)
{
	uint64_t hash = hash_key(key, len & ~LEN_CIDR);
	uint32_t tag = (uint32_t)(hash >> 32);
	const struct node *found = lookup(p, hash, key, len);
	uint32_t i = (uint32_t)hash ^ tag;

	if (found)
		return (uint32_t)(found - p->nodes);
	while (p->slots[i & p->mask].node != 0)
		i++;
	p->nodes[p->n_nodes] = (struct node){ .hash = hash, .key = key, .len = len };
	p->slots[i & p->mask] = (struct slot){ tag, ++p->n_nodes };
	return p->n_nodes - 1;
}

/* ---- compiling ---- */

static void cidr_key(const struct sb_addr *a, uint8_t bits, uint8_t out[CIDR_KEY])
{
	memcpy(out, a->b, sizeof(a->b));
	out[16] = bits;
}

static uint32_t labels(const char *s)
{
	uint32_t n = 1;

	for (; *s; s++)
		n += *s == '.';
	return n;
}

static void add_prefix(struct sb_netpol *p, uint8_t bits)
{
	unsigned int i = 0;

	while (i < p->n_prefix && p->prefix[i] < bits)
		i++;
	if (i < p->n_prefix && p->prefix[i] == bits)
		return;
	memmove(p->prefix + i + 1, p->prefix + i, p->n_prefix - i);
	p->prefix[i] = bits;
	p->n_prefix++;
}

static int place(struct sb_netpol *p, uint32_t rule, struct item *it, struct sb_err *err)
{
	const char *host = p->rules[rule].host;
	struct sb_net_host h;

	if (sb_net_rule_check(&p->rules[rule], err) < 0 ||
	    sb_net_host_parse(host, strlen(host), &h) < 0)
		return -EINVAL;
	*it = (struct item){ .rule = rule };
	switch (h.kind) {
	case SB_NET_HOST_ANY:
		it->wild = true;
		it->node = insert(p, "", 0);
		return 0;
	case SB_NET_HOST_SUFFIX:
		it->wild = true;
		host += 2;
		break;
	case SB_NET_HOST_CIDR:
		cidr_key(&h.cidr.addr, h.cidr.bits, p->cidr_keys[rule]);
		add_prefix(p, h.cidr.bits);
		it->node = insert(p, p->cidr_keys[rule], CIDR_KEY | LEN_CIDR);
		return 0;
	case SB_NET_HOST_NAME_EXACT:
	default:
		break;
	}
	it->node = insert(p, host, (uint16_t)strlen(host));
	p->max_labels = SB_MAX(p->max_labels, labels(host));
	return 0;
}

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* By set, denials first, then by first port. */
static int by_set(const void *pa, const void *pb, void *policy)
{
	const struct sb_netpol *p = policy;
	const struct item *a = pa;
	const struct item *b = pb;
	const struct sb_net_rule *ra = &p->rules[a->rule];
	const struct sb_net_rule *rb = &p->rules[b->rule];
	int c = compare(a->node, b->node);

	if (c == 0)
		c = compare(a->wild, b->wild);
	if (c == 0)
		c = compare(rb->deny, ra->deny);
	if (c == 0)
		c = compare(ra->port_lo, rb->port_lo);
	return c ? c : compare(a->rule, b->rule);
}

static uint32_t lenient(enum sb_net_proto p)
{
	static const uint8_t order[] = {
		[SB_PROTO_HTTP] = 0, [SB_PROTO_HTTPS] = 1, [SB_PROTO_AUTO] = 2, [SB_PROTO_ANY] = 3
	};

	return order[p];
}

/* Fewest ports, then most lenient. */
static int by_nearness(const void *pa, const void *pb, void *policy)
{
	const struct sb_netpol *p = policy;
	const struct seg *a = pa;
	const struct seg *b = pb;
	int c = compare((uint32_t)(a->hi - a->lo), (uint32_t)(b->hi - b->lo));

	if (c == 0)
		c = compare(lenient(p->rules[b->rule].proto), lenient(p->rules[a->rule].proto));
	return c ? c : compare(a->rule, b->rule);
}

/* Disjoint segments of items in order of their first port. Return: how many. */
static uint32_t disjoint(const struct sb_netpol *p, const struct item *it, size_t n,
			 struct seg *out)
{
	uint32_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sb_net_rule *r = &p->rules[it[i].rule];
		uint32_t lo = r->port_lo;

		if (n_out > 0)
			lo = SB_MAX(lo, out[n_out - 1].hi + 1U);
		if (lo <= r->port_hi)
			out[n_out++] = (struct seg){ (uint16_t)lo, r->port_hi, it[i].rule };
	}
	return n_out;
}

/* The items of one set: fill its ports. Return: segments used. */
static uint32_t fill_set(struct sb_netpol *p, const struct item *it, size_t n, uint32_t at)
{
	struct node *node = &p->nodes[it->node];
	struct ports *set = it->wild ? &node->wild : &node->exact;
	struct seg *seg = p->segs + at;
	size_t deny = 0;

	while (deny < n && p->rules[it[deny].rule].deny)
		deny++;
	set->at = at;
	set->n_deny = disjoint(p, it, deny, seg);
	seg += set->n_deny;
	set->n_any = disjoint(p, it + deny, n - deny, seg);
	seg += set->n_any;
	for (size_t i = deny; i < n; i++) {
		const struct sb_net_rule *r = &p->rules[it[i].rule];

		seg[set->n_allow++] = (struct seg){ r->port_lo, r->port_hi, it[i].rule };
	}
	if (set->n_allow > 1)
		qsort_r(seg, set->n_allow, sizeof(*seg), by_nearness, p);
	return set->n_deny + set->n_any + set->n_allow;
}

static int compile(struct sb_netpol *p, struct sb_err *err)
{
	sb_autofree struct item *items = calloc(p->n_rules + 1, sizeof(*items));
	uint32_t at = 0;

	if (!items)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_rules; i++) {
		int r = place(p, i, &items[i], err);

		if (r < 0)
			return r;
	}
	qsort_r(items, p->n_rules, sizeof(*items), by_set, p);
	for (size_t i = 0, n; i < p->n_rules; i += n) {
		for (n = 1; i + n < p->n_rules; n++)
			if (items[i + n].node != items[i].node || items[i + n].wild != items[i].wild)
				break;
		at += fill_set(p, items + i, n, at);
	}
	p->root = lookup(p, HASH_START, "", 0);
	return 0;
}

static void freep(struct sb_netpol **p)
{
	(void)sb_netpol_free(*p);
}

int sb_netpol_new(const struct sb_plan_net *n, struct sb_netpol **ret, struct sb_err *err)
{
	SB_CLEANUP(freep) struct sb_netpol *p = calloc(1, sizeof(*p));
	size_t n_rules = n->mode == SB_NET_NONE ? 0 : n->n_rules;
	uint32_t room = 8;
	int r;

	if (!p)
		return -ENOMEM;
	if (n->mode != SB_NET_NONE && n->mode != SB_NET_FILTER && n->mode != SB_NET_OPEN)
		return sb_err_set(err, -EINVAL, "network policy: unknown mode");
	if (n_rules > SB_NET_MAX_RULES)
		return sb_err_set(err, -EINVAL, "network policy: more than %d rules",
				  SB_NET_MAX_RULES);
	while (room < 2 * n_rules)
		room *= 2;
	p->mode = n->mode;
	p->mask = room - 1;
	p->rules = calloc(n_rules + 1, sizeof(*p->rules));
	p->cidr_keys = calloc(n_rules + 1, sizeof(*p->cidr_keys));
	p->nodes = calloc(n_rules + 1, sizeof(*p->nodes));
	p->slots = calloc(room, sizeof(*p->slots));
	p->segs = calloc(2 * n_rules + 1, sizeof(*p->segs));
	if (!p->rules || !p->cidr_keys || !p->nodes || !p->slots || !p->segs)
		return -ENOMEM;
	for (; p->n_rules < n_rules; p->n_rules++) {
		r = sb_net_rule_copy(&n->rules[p->n_rules], &p->rules[p->n_rules]);
		if (r < 0)
			return r;
	}
	r = compile(p, err);
	if (r == 0 && n->n_ask > 0 && n->mode != SB_NET_NONE) {
		const struct sb_plan_net asks = { .mode = SB_NET_FILTER, .rules = n->ask,
						  .n_rules = n->n_ask };

		r = sb_netpol_new(&asks, &p->ask, err);
	}
	if (r < 0)
		return r;
	*ret = sb_take(&p);
	return 0;
}

struct sb_netpol *sb_netpol_free(struct sb_netpol *p)
{
	if (!p)
		return NULL;
	(void)sb_netpol_free(p->ask);
	for (size_t i = 0; p->rules && i < p->n_rules; i++)
		sb_net_rule_done(&p->rules[i]);
	free(p->rules);
	free(p->cidr_keys);
	free(p->nodes);
	free(p->slots);
	free(p->segs);
	free(p);
	return NULL;
}

/* ---- what applies ---- */

struct matches {
	unsigned int n;
	unsigned int allow_from;            /* of those before this one only denials count */
	const struct ports *set[MAX_MATCH]; /* from far to near */
};

static void found(struct matches *l, const struct ports *set)
{
	if (l->n < MAX_MATCH && (set->n_deny > 0 || set->n_allow > 0))
		l->set[l->n++] = set;
}

/* Return: the set of an exact rule for @name, or an empty one. */
static const struct ports *match_name(const struct sb_netpol *p, const char *name,
				      struct matches *l)
{
	size_t len = strnlen(name, SB_NAME_MAX + 1);
	const struct ports *exact = &p->none;
	uint64_t h = HASH_START;
	uint32_t n_labels = 0;

	l->n = 0;
	if (p->root)
		found(l, &p->root->wild);
	for (size_t i = len; i > 0 && n_labels < p->max_labels;) {
		const struct node *n;

		h = hash_step(h, (uint8_t)name[--i]);
		if (i > 0 && name[i - 1] != '.')
			continue;
		n_labels++;
		n = lookup(p, h, name + i, (uint16_t)(len - i));
		if (n && i > 0)
			found(l, &n->wild);
		if (n && i == 0)
			exact = &n->exact;
	}
	l->allow_from = strcmp(name, SB_HOST_NAME) == 0 ? l->n : 0;
	found(l, exact);
	return exact;
}

static void match_addr(const struct sb_netpol *p, const struct sb_addr *a, struct matches *l)
{
	bool v4 = sb_addr_is_v4(a);
	uint8_t key[CIDR_KEY];

	l->n = 0;
	if (p->root)
		found(l, &p->root->wild);
	l->allow_from = l->n; /* "*" allows names only */
	for (unsigned int i = 0; i < p->n_prefix; i++) {
		unsigned int bits = p->prefix[i];
		const struct node *n;

		if (v4 && bits < 96)
			continue; /* as sb_cidr_has */
		memset(key, 0, sizeof(key));
		memcpy(key, a->b, bits / 8);
		if (bits % 8)
			key[bits / 8] = (uint8_t)(a->b[bits / 8] & (0xff00 >> bits % 8));
		key[16] = (uint8_t)bits;
		n = lookup(p, hash_key(key, CIDR_KEY), key, CIDR_KEY | LEN_CIDR);
		if (n)
			found(l, &n->exact);
	}
}

/* ---- ports ---- */

/* The first of @n disjoint segments that ends at @port or behind it. */
static const struct seg *seg_from(const struct seg *s, uint32_t n, uint32_t port)
{
	uint32_t lo = 0;
	uint32_t hi = n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (s[mid].hi < port)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n ? &s[lo] : NULL;
}

static const struct seg *denied(const struct sb_netpol *p, const struct matches *l, uint32_t port)
{
	for (unsigned int i = l->n; i-- > 0;) {
		const struct ports *set = l->set[i];
		const struct seg *s = seg_from(p->segs + set->at, set->n_deny, port);

		if (s && s->lo <= port)
			return s;
	}
	return NULL;
}

static const struct seg *allow_segs(const struct sb_netpol *p, const struct ports *set)
{
	return p->segs + set->at + set->n_deny + set->n_any;
}

static const struct seg *allowed(const struct sb_netpol *p, const struct matches *l, uint32_t port)
{
	for (unsigned int i = l->n; i-- > l->allow_from;) {
		const struct ports *set = l->set[i];
		const struct seg *s = allow_segs(p, set);

		for (uint32_t k = 0; k < set->n_allow; k++)
			if (s[k].lo <= port && port <= s[k].hi)
				return &s[k];
	}
	return NULL;
}

/* The lowest port >= @port that an allow rule covers; above 65535: none. */
static uint32_t next_allowed(const struct sb_netpol *p, const struct matches *l, uint32_t port)
{
	uint32_t best = UINT16_MAX + 1U;

	for (unsigned int i = l->allow_from; i < l->n; i++) {
		const struct ports *set = l->set[i];
		const struct seg *s = seg_from(p->segs + set->at + set->n_deny, set->n_any, port);

		if (s)
			best = SB_MIN(best, SB_MAX(port, s->lo));
	}
	return best;
}

/* The lowest port that is allowed and not denied; above 65535: none. @by_default: every port is
 * allowed unless denied. */
static uint32_t first_open_port(const struct sb_netpol *p, const struct matches *l, bool by_default)
{
	uint32_t port = 1;

	while (port <= UINT16_MAX) {
		const struct seg *s;

		if (!by_default)
			port = next_allowed(p, l, port);
		s = port <= UINT16_MAX ? denied(p, l, port) : NULL;
		if (!s)
			break;
		port = s->hi + 1U;
	}
	return port;
}

static const struct seg *any_allowance(const struct sb_netpol *p, const struct matches *l)
{
	for (unsigned int i = l->n; i-- > l->allow_from;)
		if (l->set[i]->n_allow > 0)
			return allow_segs(p, l->set[i]);
	return NULL;
}

/* ---- verdicts ---- */

static void say(const struct sb_netpol *p, struct sb_net_verdict *ret, enum sb_net_reason reason,
		const struct seg *s)
{
	*ret = (struct sb_net_verdict){ .allow = reason == SB_NET_OK, .reason = reason };
	if (s)
		ret->rule = &p->rules[s->rule];
	if (s && ret->allow)
		ret->proto = ret->rule->proto;
}

struct reasons {
	enum sb_net_reason denied;
	enum sb_net_reason none;
};

static void decide(const struct sb_netpol *p, const struct matches *l, uint32_t port,
		   bool by_default, const struct reasons *why, struct sb_net_verdict *ret)
{
	const struct seg *s = denied(p, l, port);

	if (s) {
		say(p, ret, why->denied, s);
		return;
	}
	s = allowed(p, l, port);
	if (s || by_default) {
		say(p, ret, SB_NET_OK, s);
		return;
	}
	s = any_allowance(p, l);
	say(p, ret, s ? SB_NET_PORT_NOT_ALLOWED : why->none, s);
}

/* What a rule says that asks counts before what allows, and after what denies. @any: some port */
static void or_ask(const struct sb_net_verdict *asks, bool any, struct sb_net_verdict *ret)
{
	if (!asks->allow || ret->reason == SB_NET_NAME_DENIED || ret->reason == SB_NET_ADDR_DENIED ||
	    ret->reason == SB_NET_ADDR_FORBIDDEN || (any && ret->allow))
		return;
	*ret = *asks;
	ret->ask = true;
}

static void decide_name(const struct sb_netpol *p, const char *name, uint16_t port,
			struct sb_net_verdict *ret)
{
	static const struct reasons why = { SB_NET_NAME_DENIED, SB_NET_NAME_NOT_ALLOWED };
	bool by_default = p->mode == SB_NET_OPEN && strcmp(name, SB_HOST_NAME) != 0;
	uint32_t at = port;
	struct matches l;

	(void)match_name(p, name, &l);
	if (port == 0)
		at = first_open_port(p, &l, by_default);
	if (at <= UINT16_MAX) {
		decide(p, &l, at, by_default, &why, ret);
		return;
	}
	/* No port is left: because of a denial, unless nothing was allowed in the first place. */
	if (by_default || any_allowance(p, &l) || first_open_port(p, &l, true) > UINT16_MAX)
		say(p, ret, SB_NET_NAME_DENIED, denied(p, &l, any_allowance(p, &l) ?
							       next_allowed(p, &l, 1) : 1));
	else
		say(p, ret, SB_NET_NAME_NOT_ALLOWED, NULL);
}

void sb_netpol_name(const struct sb_netpol *p, const char *name, uint16_t port,
		    struct sb_net_verdict *ret)
{
	struct sb_net_verdict asks;

	decide_name(p, name, port, ret);
	if (p->ask) {
		decide_name(p->ask, name, port, &asks);
		or_ask(&asks, port == 0, ret);
	}
}

static bool forbidden(enum sb_addr_class c)
{
	switch (c) {
	case SB_ADDR_PUBLIC:
	case SB_ADDR_PRIVATE:
	case SB_ADDR_SHARED:
	case SB_ADDR_LINK_LOCAL:
	case SB_ADDR_SPECIAL:
		return false;
	case SB_ADDR_NONE:
	case SB_ADDR_LOOPBACK:
	case SB_ADDR_MULTICAST:
	case SB_ADDR_UNSPECIFIED:
	case SB_ADDR_METADATA:
	default:
		return true;
	}
}

static void decide_addr(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
			bool public_by_default, struct sb_net_verdict *ret)
{
	enum sb_addr_class c = sb_addr_classify(a);
	struct reasons why = { SB_NET_ADDR_DENIED, SB_NET_ADDR_RESTRICTED };
	struct matches l;

	if (forbidden(c) || p->mode == SB_NET_NONE) {
		say(p, ret, forbidden(c) ? SB_NET_ADDR_FORBIDDEN : SB_NET_ADDR_NOT_ALLOWED, NULL);
		return;
	}
	if (c == SB_ADDR_PUBLIC)
		why.none = SB_NET_ADDR_NOT_ALLOWED;
	match_addr(p, a, &l);
	decide(p, &l, port, public_by_default && c == SB_ADDR_PUBLIC, &why, ret);
}

void sb_netpol_addr(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
		    struct sb_net_verdict *ret)
{
	struct sb_net_verdict asks;

	decide_addr(p, a, port, p->mode == SB_NET_OPEN, ret);
	if (p->ask) {
		decide_addr(p->ask, a, port, false, &asks);
		or_ask(&asks, port == 0, ret);
	}
}

void sb_netpol_resolved(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
			struct sb_net_verdict *ret)
{
	decide_addr(p, a, port, true, ret);
}

bool sb_netpol_by_wildcard(const struct sb_netpol *p, const char *name)
{
	struct matches l;

	if (match_name(p, name, &l)->n_allow > 0)
		return false;
	if (any_allowance(p, &l))
		return !p->ask || match_name(p->ask, name, &l)->n_allow == 0;
	return p->ask && sb_netpol_by_wildcard(p->ask, name);
}
