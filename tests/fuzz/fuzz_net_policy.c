/*
 * The compiled policy against the plainest one: walk all rules. Input: a line "filter" or "open",
 * then lines "+RULE", "-RULE" (deny), "?NAME PORT", "@ADDRESS PORT".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/net_policy.h"

#define MAX_RULES 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(void *arg, const struct sb_net_rule *r)
{
	struct sb_plan_net *n = arg;

	return n->n_rules < MAX_RULES ? sb_net_rule_add(n, r) : 0;
}

/* How near: 0 = does not match. */
static size_t near_name(const struct sb_net_rule *r, const char *name)
{
	size_t len = strlen(name);
	size_t suffix = strlen(r->host);
	bool host = strcmp(name, SB_HOST_NAME) == 0;

	if (strcmp(r->host, name) == 0)
		return 1000;
	if (host && !r->deny)
		return 0;
	if (strcmp(r->host, "*") == 0)
		return 1;
	suffix--; /* ".suffix" of "*.suffix" */
	if (strncmp(r->host, "*.", 2) == 0 && len > suffix &&
	    strcmp(name + len - suffix, r->host + 1) == 0)
		return suffix;
	return 0;
}

static size_t near_addr(const struct sb_net_rule *r, const struct sb_addr *a)
{
	struct sb_cidr c;

	if (strcmp(r->host, "*") == 0)
		return r->deny;
	if (sb_cidr_parse(r->host, strlen(r->host), &c) < 0 || !sb_cidr_has(&c, a))
		return 0;
	return 1U + c.bits;
}

struct question {
	const char *name; /* or */
	struct sb_addr addr;
	bool by_default;
};

static size_t nearness(const struct sb_net_rule *r, const struct question *q)
{
	return q->name ? near_name(r, q->name) : near_addr(r, &q->addr);
}

static int lenient(enum sb_net_proto p)
{
	return p == SB_PROTO_ANY ? 3 : p == SB_PROTO_AUTO ? 2 : p == SB_PROTO_HTTPS ? 1 : 0;
}

/* Whether @a is a better allow rule than @b; both match. */
static bool better(const struct sb_net_rule *a, const struct sb_net_rule *b,
		   const struct question *q)
{
	int wa = a->port_hi - a->port_lo;
	int wb = b->port_hi - b->port_lo;

	if (nearness(a, q) != nearness(b, q))
		return nearness(a, q) > nearness(b, q);
	if (wa != wb)
		return wa < wb;
	return lenient(a->proto) > lenient(b->proto);
}

enum answer { DENIED, ALLOWED, OTHER_PORT, NOTHING };

static enum answer plain(const struct sb_plan_net *n, const struct question *q, uint32_t port,
			 enum sb_net_proto *proto)
{
	const struct sb_net_rule *best = NULL;
	bool other = false;

	*proto = SB_PROTO_AUTO;
	for (size_t i = 0; i < n->n_rules; i++) {
		const struct sb_net_rule *r = &n->rules[i];
		bool covers = r->port_lo <= port && port <= r->port_hi;

		if (nearness(r, q) == 0)
			continue;
		if (r->deny && covers)
			return DENIED;
		if (!r->deny && covers && (!best || better(r, best, q)))
			best = r;
		other |= !r->deny;
	}
	if (best)
		*proto = best->proto;
	if (best || q->by_default)
		return ALLOWED;
	return other ? OTHER_PORT : NOTHING;
}

static bool some_port(const struct sb_plan_net *n, const struct question *q)
{
	enum sb_net_proto proto;

	if (plain(n, q, 1, &proto) == ALLOWED)
		return true;
	for (size_t i = 0; i < n->n_rules; i++) {
		uint32_t after = n->rules[i].port_hi + 1U;

		if (plain(n, q, n->rules[i].port_lo, &proto) == ALLOWED ||
		    (after <= UINT16_MAX && plain(n, q, after, &proto) == ALLOWED))
			return true;
	}
	return false;
}

static void compare(const struct sb_plan_net *n, const struct question *q, uint16_t port,
		    const struct sb_net_verdict *v)
{
	enum sb_net_proto proto;
	enum answer want;

	if (port == 0) {
		if (v->allow != some_port(n, q))
			abort();
		return;
	}
	want = plain(n, q, port, &proto);
	if (v->allow != (want == ALLOWED) || (v->allow && v->proto != proto))
		abort();
	if ((want == OTHER_PORT) != (v->reason == SB_NET_PORT_NOT_ALLOWED))
		abort();
	if ((want == DENIED) !=
	    (v->reason == SB_NET_NAME_DENIED || v->reason == SB_NET_ADDR_DENIED))
		abort();
	if ((want == DENIED || want == OTHER_PORT) &&
	    (!v->rule || v->rule->deny != (want == DENIED) || nearness(v->rule, q) == 0))
		abort();
}

static void ask(const struct sb_plan_net *n, const struct sb_netpol *p, const char *s, size_t len)
{
	const char *space = memchr(s, ' ', len);
	struct question q = { .by_default = n->mode == SB_NET_OPEN };
	char name[SB_NAME_MAX + 1];
	struct sb_net_verdict v;
	enum sb_addr_class c;
	uint16_t port;

	if (!space || space == s)
		return;
	port = (uint16_t)strtoul(space, NULL, 10);
	if (*s == '?' && sb_name_normalise(s + 1, (size_t)(space - s - 1), name) == 0) {
		q.name = name;
		q.by_default &= strcmp(name, SB_HOST_NAME) != 0;
		sb_netpol_name(p, name, port, &v);
		compare(n, &q, port, &v);
		(void)sb_netpol_by_wildcard(p, name);
	} else if (*s == '@' && port &&
		   sb_addr_parse(s + 1, (size_t)(space - s - 1), &q.addr) == 0) {
		c = sb_addr_classify(&q.addr);
		sb_netpol_addr(p, &q.addr, port, &v);
		if (c >= SB_ADDR_LOOPBACK) {
			if (v.allow)
				abort();
			return;
		}
		q.by_default &= c == SB_ADDR_PUBLIC;
		compare(n, &q, port, &v);
		q.by_default = c == SB_ADDR_PUBLIC;
		sb_netpol_resolved(p, &q.addr, port, &v);
		compare(n, &q, port, &v);
	}
}

/* Call for each line; @p NULL: gather rules. */
static void lines(const char *s, size_t size, struct sb_plan_net *n, const struct sb_netpol *p)
{
	size_t bad = 0;

	while (size > 0) {
		const char *end = memchr(s, '\n', size);
		size_t len = end ? (size_t)(end - s) : size;

		if (len == 4 && memcmp(s, "open", 4) == 0)
			n->mode = SB_NET_OPEN;
		else if (!p && len > 1 && (*s == '+' || *s == '-'))
			bad += sb_net_rule_parse(s + 1, len - 1, *s == '-', "", add, n, NULL) < 0;
		else if (p && len > 1)
			ask(n, p, s, len);
		size -= len + (end != NULL);
		s += len + (end != NULL);
	}
	(void)bad; /* lines that are no rule are passed over */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	char *text = malloc(size + 1); /* strtoul needs an end */
	struct sb_netpol *p = NULL;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	lines(text, size, &n, NULL);
	if (sb_netpol_new(&n, &p, NULL) < 0)
		abort();
	lines(text, size, &n, p);
	(void)sb_netpol_free(p);
	sb_plan_net_done(&n);
	free(text);
	return 0;
}
