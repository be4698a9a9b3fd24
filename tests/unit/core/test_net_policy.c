#include "core/net_policy.h"
#include "t.h"

#include <stdlib.h>

static int add(void *arg, const struct sb_net_rule *r)
{
	return sb_net_rule_add(arg, r);
}

/* Rules separated by spaces; "!" in front of a deny rule. */
static struct sb_netpol *policy(enum sb_net_mode mode, const char *rules)
{
	struct sb_plan_net n = { .mode = mode, .max_connections = 1 };
	struct sb_netpol *p = NULL;
	struct sb_err e = { 0 };

	for (const char *s = rules; *s;) {
		size_t len = strcspn(s, " ");
		bool deny = *s == '!';

		if (sb_net_rule_parse(s + deny, len - deny, deny, "test", add, &n, &e) < 0)
			t_fail(__FILE__, __LINE__, "%s", e.text);
		s += len;
		s += *s == ' ';
	}
	if (sb_netpol_new(&n, &p, &e) < 0)
		t_fail(__FILE__, __LINE__, "%s", e.text);
	sb_plan_net_done(&n);
	return p;
}

static void name_is(const struct sb_netpol *p, int line, const char *name, uint16_t port,
		    enum sb_net_reason want)
{
	struct sb_net_verdict v = { .reason = SB_NET_INTERNAL };

	sb_netpol_name(p, name, port, &v);
	if (v.reason != want || v.allow != (want == SB_NET_OK))
		t_fail(__FILE__, line, "%s:%u: got %s, want %s", name, (unsigned int)port,
		       sb_net_reason_name(v.reason), sb_net_reason_name(want));
}
#define NAME(p, name, port, want) name_is(p, __LINE__, name, port, want)

typedef void addr_fn(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
		     struct sb_net_verdict *ret);

static void addr_is(addr_fn *fn, const struct sb_netpol *p, int line, const char *text,
		    uint16_t port, enum sb_net_reason want)
{
	struct sb_net_verdict v = { .reason = SB_NET_INTERNAL };
	struct sb_addr a;

	if (sb_addr_parse(text, strlen(text), &a) < 0) {
		t_fail(__FILE__, line, "%s is no address", text);
		return;
	}
	fn(p, &a, port, &v);
	if (v.reason != want || v.allow != (want == SB_NET_OK))
		t_fail(__FILE__, line, "%s:%u: got %s, want %s", text, (unsigned int)port,
		       sb_net_reason_name(v.reason), sb_net_reason_name(want));
}
#define ADDR(p, a, port, want) addr_is(sb_netpol_addr, p, __LINE__, a, port, want)
#define RESOLVED(p, a, port, want) addr_is(sb_netpol_resolved, p, __LINE__, a, port, want)

static enum sb_net_proto proto_of(const struct sb_netpol *p, const char *name, uint16_t port)
{
	struct sb_net_verdict v;

	sb_netpol_name(p, name, port, &v);
	CHECK(v.allow);
	return v.proto;
}

TEST(N17_N18_exact_and_wildcard)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "*.example.com example.org");

	NAME(p, "a.example.com", 443, SB_NET_OK);
	NAME(p, "a.b.c.example.com", 443, SB_NET_OK);
	NAME(p, "example.com", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "evilexample.com", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "example.com.evil.net", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "a.example.com.evil.net", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "example.org", 443, SB_NET_OK);
	NAME(p, "a.example.org", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "xample.org", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "org", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "com", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "", 443, SB_NET_NAME_NOT_ALLOWED);
	(void)sb_netpol_free(p);
}

TEST(N33_nothing_listed_nothing_allowed)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "");
	struct sb_plan_net zero = { 0 };

	NAME(p, "example.com", 443, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "example.com", 0, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, SB_HOST_NAME, 80, SB_NET_NAME_NOT_ALLOWED);
	ADDR(p, "8.8.8.8", 443, SB_NET_ADDR_NOT_ALLOWED);
	ADDR(p, "10.0.0.1", 443, SB_NET_ADDR_RESTRICTED);
	(void)sb_netpol_free(p);
	REQUIRE(sb_netpol_new(&zero, &p, NULL) == 0); /* a plan without a network part */
	NAME(p, "example.com", 443, SB_NET_NAME_NOT_ALLOWED);
	ADDR(p, "8.8.8.8", 443, SB_NET_ADDR_NOT_ALLOWED);
	RESOLVED(p, "8.8.8.8", 443, SB_NET_ADDR_NOT_ALLOWED);
	(void)sb_netpol_free(p);
}

TEST(a_mode_that_is_not_known_is_no_policy)
{
	struct sb_plan_net n = { .mode = (enum sb_net_mode)7 };
	struct sb_netpol *p = NULL;

	CHECK_EQ(sb_netpol_new(&n, &p, NULL), -EINVAL);
	CHECK(!p);
}

TEST(deny_before_allow_before_default)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "*.a.example !*.b.a.example x.b.a.example "
						    "!y.a.example:443 z.example:1-100 !z.example:50");

	NAME(p, "c.a.example", 443, SB_NET_OK);
	NAME(p, "x.b.a.example", 443, SB_NET_NAME_DENIED); /* deny wins over a nearer allow */
	NAME(p, "b.a.example", 443, SB_NET_OK);
	NAME(p, "y.a.example", 443, SB_NET_NAME_DENIED);
	NAME(p, "y.a.example", 80, SB_NET_OK);
	NAME(p, "z.example", 49, SB_NET_OK);
	NAME(p, "z.example", 50, SB_NET_NAME_DENIED);
	NAME(p, "z.example", 51, SB_NET_OK);
	NAME(p, "z.example", 100, SB_NET_OK);
	NAME(p, "z.example", 101, SB_NET_PORT_NOT_ALLOWED);
	(void)sb_netpol_free(p);
	p = policy(SB_NET_OPEN, "!*.bad.example !*:25 ok.example:22");
	NAME(p, "x.bad.example", 1, SB_NET_NAME_DENIED);
	NAME(p, "bad.example", 1, SB_NET_OK);
	NAME(p, "any.example", 25, SB_NET_NAME_DENIED);
	NAME(p, "any.example", 26, SB_NET_OK);
	NAME(p, "ok.example", 23, SB_NET_OK); /* the default */
	ADDR(p, "8.8.8.8", 25, SB_NET_ADDR_DENIED);
	ADDR(p, "8.8.8.8", 26, SB_NET_OK);
	RESOLVED(p, "8.8.8.8", 25, SB_NET_ADDR_DENIED);
	(void)sb_netpol_free(p);
}

TEST(star_is_every_name_and_no_address)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "*");

	NAME(p, "a", 443, SB_NET_OK);
	NAME(p, "a.b.c", 80, SB_NET_OK);
	NAME(p, "a.b.c", 81, SB_NET_PORT_NOT_ALLOWED);
	NAME(p, SB_HOST_NAME, 80, SB_NET_NAME_NOT_ALLOWED);
	ADDR(p, "8.8.8.8", 443, SB_NET_ADDR_NOT_ALLOWED);
	RESOLVED(p, "8.8.8.8", 443, SB_NET_OK);
	RESOLVED(p, "10.0.0.1", 443, SB_NET_ADDR_RESTRICTED);
	(void)sb_netpol_free(p);
}

TEST(host_only_by_exact_rule_and_port)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "* *.sendbox.internal *.internal:1-65535 "
						    "host.sendbox.internal:5432");

	NAME(p, SB_HOST_NAME, 5432, SB_NET_OK);
	NAME(p, SB_HOST_NAME, 5433, SB_NET_PORT_NOT_ALLOWED);
	NAME(p, SB_HOST_NAME, 443, SB_NET_PORT_NOT_ALLOWED);
	NAME(p, SB_HOST_NAME, 0, SB_NET_OK);
	NAME(p, "other.sendbox.internal", 443, SB_NET_OK);
	CHECK(!sb_netpol_by_wildcard(p, SB_HOST_NAME));
	(void)sb_netpol_free(p);
	p = policy(SB_NET_FILTER, "*.sendbox.internal:5432");
	NAME(p, SB_HOST_NAME, 5432, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, SB_HOST_NAME, 0, SB_NET_NAME_NOT_ALLOWED);
	CHECK(!sb_netpol_by_wildcard(p, SB_HOST_NAME));
	(void)sb_netpol_free(p);
	p = policy(SB_NET_OPEN, "");
	NAME(p, SB_HOST_NAME, 5432, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, SB_HOST_NAME, 0, SB_NET_NAME_NOT_ALLOWED);
	(void)sb_netpol_free(p);
	p = policy(SB_NET_OPEN, "host.sendbox.internal:5432+5433 !*:5433");
	NAME(p, SB_HOST_NAME, 5432, SB_NET_OK);
	NAME(p, SB_HOST_NAME, 5433, SB_NET_NAME_DENIED);
	NAME(p, SB_HOST_NAME, 5434, SB_NET_PORT_NOT_ALLOWED);
	(void)sb_netpol_free(p);
}

TEST(any_port)
{
	struct sb_netpol *p = policy(SB_NET_FILTER,
				     "a.example:22 !a.example:22 b.example:22+80 !b.example:22 "
				     "!c.example d.example:10-20 !*.example:10-14 !d.example:15-20 "
				     "e.example:10-21 !e.example:15-20 !f.example:7 *.g.example:5 "
				     "!h.example:1-100 !h.example:50-65535");

	NAME(p, "a.example", 0, SB_NET_NAME_DENIED);
	NAME(p, "b.example", 0, SB_NET_OK);
	NAME(p, "c.example", 0, SB_NET_NAME_DENIED);
	NAME(p, "d.example", 0, SB_NET_NAME_DENIED);
	NAME(p, "e.example", 0, SB_NET_OK); /* 21 is left */
	NAME(p, "f.example", 0, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "x.g.example", 0, SB_NET_OK);
	NAME(p, "g.example", 0, SB_NET_NAME_NOT_ALLOWED);
	NAME(p, "h.example", 0, SB_NET_NAME_DENIED);
	(void)sb_netpol_free(p);
	p = policy(SB_NET_OPEN, "!a.example !b.example:1-65534 !c.example:1-100 !c.example:102-65535 "
				"!c.example:50-101");
	NAME(p, "a.example", 0, SB_NET_NAME_DENIED);
	NAME(p, "b.example", 0, SB_NET_OK);
	NAME(p, "c.example", 0, SB_NET_NAME_DENIED);
	NAME(p, "x.example", 0, SB_NET_OK);
	(void)sb_netpol_free(p);
}

TEST(nearest_rule_decides_the_protocol)
{
	struct sb_netpol *p = policy(SB_NET_FILTER,
				     "*:443/any *.a.example:443/auto *.b.a.example:443/https "
				     "x.b.a.example:443/http y.example:443+1-65535/any "
				     "y.example:443/https z.example:443/https z.example:443/auto "
				     "w.example:443 w.example:1-65535/any");

	CHECK_EQ(proto_of(p, "q.example", 443), SB_PROTO_ANY);
	CHECK_EQ(proto_of(p, "a.example", 443), SB_PROTO_ANY);
	CHECK_EQ(proto_of(p, "q.a.example", 443), SB_PROTO_AUTO);
	CHECK_EQ(proto_of(p, "q.b.a.example", 443), SB_PROTO_HTTPS);
	CHECK_EQ(proto_of(p, "x.b.a.example", 443), SB_PROTO_HTTP);
	CHECK_EQ(proto_of(p, "y.example", 443), SB_PROTO_ANY);
	CHECK_EQ(proto_of(p, "z.example", 443), SB_PROTO_AUTO);
	CHECK_EQ(proto_of(p, "w.example", 443), SB_PROTO_HTTPS);
	CHECK_EQ(proto_of(p, "w.example", 444), SB_PROTO_ANY);
	(void)sb_netpol_free(p);
}

TEST(verdict_names_the_rule)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "a.example:22 !*.example:23 b.net:1");
	struct sb_net_verdict v;

	sb_netpol_name(p, "a.example", 22, &v);
	REQUIRE(v.rule);
	CHECK_STR(v.rule->host, "a.example");
	CHECK_STR(v.rule->from, "test");
	sb_netpol_name(p, "a.example", 23, &v);
	REQUIRE(v.rule);
	CHECK_STR(v.rule->host, "*.example");
	CHECK(v.rule->deny);
	sb_netpol_name(p, "c.net", 23, &v);
	CHECK(!v.rule);
	(void)sb_netpol_free(p);
}

TEST(N10_direct_addresses)
{
	struct sb_netpol *p = policy(SB_NET_FILTER,
				     "10.0.0.0/8 10.1.0.0/16:22 !10.2.0.0/16 192.0.2.1:443 8.8.8.0/24 "
				     "0.0.0.0/0:7 [::/0]:7 [fd00::/8]:1-100");

	ADDR(p, "10.0.0.1", 5, SB_NET_OK);
	ADDR(p, "::ffff:10.0.0.1", 5, SB_NET_OK);
	ADDR(p, "10.2.0.1", 5, SB_NET_ADDR_DENIED);
	ADDR(p, "11.0.0.1", 5, SB_NET_PORT_NOT_ALLOWED); /* 7 is open to all */
	ADDR(p, "11.0.0.1", 7, SB_NET_OK);
	ADDR(p, "192.0.2.1", 443, SB_NET_OK);
	ADDR(p, "192.0.2.2", 7, SB_NET_OK);
	ADDR(p, "8.8.8.8", 53, SB_NET_OK);
	ADDR(p, "fd00::1", 100, SB_NET_OK);
	ADDR(p, "fd00::1", 101, SB_NET_PORT_NOT_ALLOWED);
	ADDR(p, "2606:4700::1", 7, SB_NET_OK);
	/* never, whatever the rules say */
	ADDR(p, "127.0.0.1", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "::1", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "0.0.0.0", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "::", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "224.0.0.1", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "ff02::1", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "255.255.255.255", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "169.254.169.254", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "168.63.129.16", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "fd00:ec2::254", 7, SB_NET_ADDR_FORBIDDEN);
	ADDR(p, "64:ff9b::169.254.169.254", 7, SB_NET_ADDR_FORBIDDEN);
	RESOLVED(p, "127.0.0.1", 7, SB_NET_ADDR_FORBIDDEN);
	RESOLVED(p, "169.254.169.254", 7, SB_NET_ADDR_FORBIDDEN);
	/* an IPv4 network grants no translated form of it */
	ADDR(p, "64:ff9b::10.0.0.1", 5, SB_NET_PORT_NOT_ALLOWED);
	(void)sb_netpol_free(p);
}

TEST(N10_restricted_classes_need_a_network)
{
	static const char *const v[] = {
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.0.1", "198.18.0.1",
		"192.0.2.1", "240.0.0.1", "192.0.0.8", "fd00::1", "fe80::1", "fec0::1", "2001:db8::1",
		"64:ff9b::8.8.8.8", "2002:808:808::1", "100::1", "5f00::1",
	};
	struct sb_netpol *filter = policy(SB_NET_FILTER, "* 8.8.8.8");
	struct sb_netpol *open = policy(SB_NET_OPEN, "");

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		ADDR(filter, v[i], 443, SB_NET_ADDR_RESTRICTED);
		ADDR(open, v[i], 443, SB_NET_ADDR_RESTRICTED);
		RESOLVED(filter, v[i], 443, SB_NET_ADDR_RESTRICTED);
		RESOLVED(open, v[i], 443, SB_NET_ADDR_RESTRICTED);
	}
	ADDR(filter, "8.8.8.8", 443, SB_NET_OK); /* positive control */
	ADDR(open, "8.8.4.4", 443, SB_NET_OK);
	(void)sb_netpol_free(filter);
	(void)sb_netpol_free(open);
}

TEST(resolved_addresses)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "a.example !8.8.0.0/16:443 192.168.1.0/24:443");

	RESOLVED(p, "1.1.1.1", 443, SB_NET_OK);
	RESOLVED(p, "8.8.8.8", 443, SB_NET_ADDR_DENIED);
	RESOLVED(p, "8.8.8.8", 80, SB_NET_OK);
	RESOLVED(p, "192.168.1.7", 443, SB_NET_OK);
	RESOLVED(p, "192.168.1.7", 80, SB_NET_PORT_NOT_ALLOWED);
	RESOLVED(p, "192.168.2.7", 443, SB_NET_ADDR_RESTRICTED);
	ADDR(p, "1.1.1.1", 443, SB_NET_ADDR_NOT_ALLOWED);
	(void)sb_netpol_free(p);
}

TEST(prefix_lengths)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "10.0.0.0/7:1 10.0.0.0/9:2 10.0.0.0/31:3 "
						    "[fc00::/7]:1 [fd00::/121]:2 10.0.0.1:4");

	ADDR(p, "10.0.0.0", 1, SB_NET_OK);
	ADDR(p, "10.255.0.0", 1, SB_NET_OK);
	ADDR(p, "10.127.0.0", 2, SB_NET_OK);
	ADDR(p, "10.128.0.0", 2, SB_NET_PORT_NOT_ALLOWED);
	ADDR(p, "10.0.0.1", 3, SB_NET_OK);
	ADDR(p, "10.0.0.2", 3, SB_NET_PORT_NOT_ALLOWED);
	ADDR(p, "10.0.0.1", 4, SB_NET_OK);
	ADDR(p, "fdff::1", 1, SB_NET_OK);
	ADDR(p, "fd00::7f", 2, SB_NET_OK);
	ADDR(p, "fd00::80", 2, SB_NET_PORT_NOT_ALLOWED);
	(void)sb_netpol_free(p);
}

TEST(by_wildcard)
{
	struct sb_netpol *p = policy(SB_NET_FILTER, "*.a.example x.a.example !*.b.example");

	CHECK(sb_netpol_by_wildcard(p, "y.a.example"));
	CHECK(!sb_netpol_by_wildcard(p, "x.a.example"));
	CHECK(!sb_netpol_by_wildcard(p, "a.example"));
	CHECK(!sb_netpol_by_wildcard(p, "y.b.example"));
	CHECK(!sb_netpol_by_wildcard(p, "other"));
	(void)sb_netpol_free(p);
	p = policy(SB_NET_FILTER, "*");
	CHECK(sb_netpol_by_wildcard(p, "other"));
	(void)sb_netpol_free(p);
	p = policy(SB_NET_OPEN, "");
	CHECK(!sb_netpol_by_wildcard(p, "other"));
	(void)sb_netpol_free(p);
}

/* As many labels as a name can have, each suffix with a rule of its own. */
TEST(deepest_name)
{
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	struct sb_netpol *p = NULL;
	char name[SB_NAME_MAX + 1];
	char host[SB_NAME_MAX + 3];
	char from[] = "";

	for (size_t i = 0; i < SB_NAME_MAX; i++)
		name[i] = i % 2 ? '.' : 'a';
	name[SB_NAME_MAX] = '\0';
	for (size_t i = 2; i < SB_NAME_MAX; i += 2) {
		struct sb_net_rule r = { false, host, (uint16_t)(i + 1), (uint16_t)(i + 1), 0, from };

		(void)snprintf(host, sizeof(host), "*.%s", name + i);
		CHECK_EQ(sb_net_rule_add(&n, &r), 0);
	}
	REQUIRE(sb_netpol_new(&n, &p, NULL) == 0);
	for (size_t i = 2; i < SB_NAME_MAX; i += 2)
		NAME(p, name, (uint16_t)(i + 1), SB_NET_OK);
	NAME(p, name, 2, SB_NET_PORT_NOT_ALLOWED);
	NAME(p, name + 2, 3, SB_NET_PORT_NOT_ALLOWED); /* the apex of the first */
	(void)sb_netpol_free(p);
	sb_plan_net_done(&n);
}

/* Ten thousand rules decide as one does. */
TEST(many_rules)
{
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	struct sb_netpol *p = NULL;
	char host[64];
	char from[] = "";

	n.rules = calloc(10000, sizeof(*n.rules));
	REQUIRE(n.rules);
	for (unsigned int i = 0; i < 10000; i++) {
		(void)snprintf(host, sizeof(host), "%sn%u.example", i % 2 ? "*." : "", i);
		n.rules[i] = (struct sb_net_rule){ i % 5 == 0, strdup(host), 443, 443, 0, strdup(from) };
		REQUIRE(n.rules[i].host && n.rules[i].from);
		n.n_rules++;
	}
	REQUIRE(sb_netpol_new(&n, &p, NULL) == 0);
	for (unsigned int i = 0; i < 10000; i++) {
		enum sb_net_reason want = i % 5 == 0 ? SB_NET_NAME_DENIED : SB_NET_OK;

		(void)snprintf(host, sizeof(host), "%sn%u.example", i % 2 ? "x." : "", i);
		NAME(p, host, 443, want);
		(void)snprintf(host, sizeof(host), "%sn%u.example", i % 2 ? "" : "x.", i);
		NAME(p, host, 443, SB_NET_NAME_NOT_ALLOWED);
	}
	(void)sb_netpol_free(p);
	sb_plan_net_done(&n);
}

TEST(out_of_memory_at_every_call)
{
	char host[] = "a.example";
	char from[] = "";
	struct sb_net_rule r[2] = { { false, host, 1, 2, SB_PROTO_AUTO, from },
				    { false, host, 3, 4, SB_PROTO_AUTO, from } };
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };

	REQUIRE(sb_net_rule_add(&n, &r[0]) == 0);
	T_EVERY_FAULT(nth) {
		struct sb_net_amend a = { .seq = 1, .allow = &r[1], .n_allow = 1, .remove = &r[0],
					  .n_remove = 1 };
		struct sb_netpol *p = NULL;
		bool fired;
		int e;

		t_fault_arm(nth);
		e = sb_netpol_new(&n, &p, NULL);
		if (e == 0)
			e = sb_net_amend_apply(&a, &n, NULL);
		fired = t_fault_fired();
		CHECK_EQ(e, fired ? -ENOMEM : 0);
		CHECK_EQ(n.n_rules, 1);
		CHECK_EQ(n.rules[0].port_lo, fired ? 1 : 3);
		(void)sb_netpol_free(p);
		if (!fired)
			break;
	}
	sb_plan_net_done(&n);
}

static void explained(enum sb_net_reason reason, const struct sb_net_rule *rule, const char *target,
		      uint16_t port, const char *session, const char *want)
{
	char out[1024];

	CHECK_EQ(sb_net_explain(reason, rule, target, port, session, out, sizeof(out)), strlen(want));
	CHECK_STR(out, want);
}

TEST(explain)
{
	char host[] = "*.example.com";
	char from[] = "--deny-hosts";
	struct sb_net_rule deny = { true, host, 1, 65535, SB_PROTO_AUTO, from };
	char small[20];

	explained(SB_NET_NAME_NOT_ALLOWED, NULL, "example.com", 443, "0123456789abcdef0123456789abcdef",
		  "sendbox: name-not-allowed: example.com:443 is not in this session's plan. "
		  "To allow it: sendbox run --allow-hosts example.com:443 ..., or now: "
		  "sendbox net 0123456789abcdef0123456789abcdef --allow example.com:443");
	explained(SB_NET_NAME_NOT_ALLOWED, NULL, "example.com", 0, NULL,
		  "sendbox: name-not-allowed: example.com is not in this session's plan. "
		  "To allow it: sendbox run --allow-hosts example.com ...");
	explained(SB_NET_NAME_DENIED, &deny, "a.example.com", 443, NULL,
		  "sendbox: name-denied: a.example.com:443 is denied by a rule (rule \"deny "
		  "*.example.com\" of --deny-hosts). To allow it, start the session without that rule");
	explained(SB_NET_ADDR_NOT_ALLOWED, NULL, "2606:4700::1", 443, NULL,
		  "sendbox: address-not-allowed: [2606:4700::1]:443 was dialled without a name and no "
		  "rule allows the address. To allow it: sendbox run --allow-hosts [2606:4700::1]:443 "
		  "...");
	explained(SB_NET_NAME_NOT_ALLOWED, NULL, SB_HOST_NAME, 5432, NULL,
		  "sendbox: name-not-allowed: host.sendbox.internal:5432 is not in this session's "
		  "plan. To allow it: sendbox run --allow-host-port 5432 ...");
	explained(SB_NET_NAME_MALFORMED, NULL, "a\r\nX: \x1b[1m\xff\"", 0, NULL,
		  "sendbox: name-malformed: a??X:??[1m?? is no well-formed host name");
	CHECK_EQ(sb_net_explain(SB_NET_OK, NULL, "a", 1, NULL, small, sizeof(small)), 19);
	CHECK_STR(small, "sendbox: ok: a:1 is");
	CHECK_EQ(sb_net_explain(SB_NET_OK, NULL, "a", 1, NULL, small, 0), 0);
}

TEST(every_reason_has_a_name_and_a_text)
{
	char longest[SB_NAME_MAX + 1];
	char out[1024];

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (int i = 0; i < SB_NET_N_REASONS; i++) {
		enum sb_net_reason r = (enum sb_net_reason)i;

		CHECK(sb_net_reason_name(r) && sb_net_reason_name(r)[0]);
		CHECK(sb_net_explain(r, NULL, longest, 443, "0123456789abcdef0123456789abcdef", out,
				     sizeof(out)) < sizeof(out) - 1);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(sb_net_reason_name(r), sb_net_reason_name((enum sb_net_reason)k)));
	}
}
