#include "core/net_policy.h"
#include "t.h"

#include <stdlib.h>

static const char literal[] =
	"{\"allow\":[{\"deny\":false,\"from\":\"sendbox net\",\"host\":\"a.example\","
	"\"port_hi\":443,\"port_lo\":443,\"proto\":\"https\"}],\"format\":\"sendbox-net-amend\","
	"\"remove\":[{\"host\":\"b.example\",\"port_hi\":80,\"port_lo\":80}],\"seq\":7,"
	"\"session\":\"000102030405060708090a0b0c0d0e0f\",\"version\":1}";

static int add(void *arg, const struct sb_net_rule *r)
{
	return sb_net_rule_add(arg, r);
}

static void rules(struct sb_plan_net *n, const char *const *v, bool deny)
{
	for (; *v; v++)
		CHECK_EQ(sb_net_rule_parse(*v, strlen(*v), deny, "test", add, n, NULL), 0);
}

TEST(read_and_written)
{
	struct sb_net_amend a = { 0 };
	struct sb_err e = { 0 };
	char *out = NULL;
	size_t len = 0;

	REQUIRE(sb_net_amend_parse(literal, sizeof(literal) - 1, &a, &e) == 0);
	CHECK_EQ(a.seq, 7);
	CHECK_EQ(a.session[15], 15);
	REQUIRE(a.n_allow == 1 && a.n_remove == 1);
	CHECK_STR(a.allow[0].host, "a.example");
	CHECK_STR(a.allow[0].from, "sendbox net");
	CHECK_EQ(a.allow[0].port_lo, 443);
	CHECK_EQ(a.allow[0].port_hi, 443);
	CHECK_EQ(a.allow[0].proto, SB_PROTO_HTTPS);
	CHECK(!a.allow[0].deny);
	CHECK_STR(a.remove[0].host, "b.example");
	CHECK_EQ(a.remove[0].port_lo, 80);
	CHECK_EQ(sb_net_amend_write(&a, &out, &len), 0);
	CHECK_STR(out, literal);
	CHECK_EQ(len, sizeof(literal) - 1);
	free(out);
	sb_net_amend_done(&a);
	CHECK(!a.allow && !a.remove && a.n_allow == 0);
}

static void refuse(const char *from, const char *to)
{
	char buf[8192];
	const char *at = strstr(literal, from);
	struct sb_net_amend a = { .seq = 99 };
	int n;

	if (!at) {
		t_fail(__FILE__, __LINE__, "no %s in the literal", from);
		return;
	}
	n = snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - literal), literal, to,
		     at + strlen(from));
	if (sb_net_amend_parse(buf, (size_t)n, &a, NULL) != -EBADMSG)
		t_fail(__FILE__, __LINE__, "accepted %s -> %s", from, to);
	CHECK_EQ(a.seq, 99); /* untouched */
}

TEST(refused)
{
	static char big[5000];
	struct sb_net_amend a;

	refuse("\"seq\":7", "\"seq\":0");
	refuse("\"seq\":7", "\"seq\":-1");
	refuse("\"seq\":7", "\"seq\":\"7\"");
	refuse("\"seq\":7", "\"seq\": 7");
	refuse("\"seq\":7,", "");
	refuse("\"seq\":7", "\"seq\":7,\"seq\":7");
	refuse("\"version\":1", "\"version\":2");
	refuse("\"version\":1}", "\"version\":1,\"x\":1}");
	refuse("\"version\":1}", "\"version\":1} ");
	refuse("sendbox-net-amend", "sendbox-plan");
	refuse("\"deny\":false", "\"deny\":true");
	refuse("\"host\":\"a.example\"", "\"host\":\"A.example\"");
	refuse("\"host\":\"a.example\"", "\"host\":\"host.sendbox.internal.\"");
	refuse("\"host\":\"b.example\"", "\"host\":\"b.example.\"");
	refuse("\"host\":\"b.example\"", "\"from\":\"x\",\"host\":\"b.example\"");
	refuse("\"port_lo\":80", "\"port_lo\":0");
	refuse("\"port_hi\":80", "\"port_hi\":65616");
	refuse("\"session\":\"00", "\"session\":\"0g");
	refuse("\"remove\":[", "\"remove\":[[],");
	refuse("\"remove\":[{", "\"remove\":[null,{");
	CHECK_EQ(sb_net_amend_parse("", 0, &a, NULL), -EBADMSG);
	CHECK_EQ(sb_net_amend_parse("{}", 2, &a, NULL), -EBADMSG);
	CHECK_EQ(sb_net_amend_parse("[]", 2, &a, NULL), -EBADMSG);
	memset(big, ' ', sizeof(big));
	memcpy(big, literal, sizeof(literal) - 1);
	CHECK_EQ(sb_net_amend_parse(big, SB_NET_AMEND_MAX + 1, &a, NULL), -EBADMSG);
}

TEST(nothing_to_do_is_refused)
{
	static const char empty[] =
		"{\"allow\":[],\"format\":\"sendbox-net-amend\",\"remove\":[],\"seq\":1,"
		"\"session\":\"000102030405060708090a0b0c0d0e0f\",\"version\":1}";
	struct sb_net_amend a = { .seq = 1 };
	char *out = NULL;
	size_t len;

	CHECK_EQ(sb_net_amend_parse(empty, sizeof(empty) - 1, &a, NULL), -EBADMSG);
	CHECK_EQ(sb_net_amend_write(&a, &out, &len), -EINVAL);
	CHECK(!out);
}

TEST(too_large_to_write)
{
	static const char *const v[] = { "a.example:1+3+5+7+9+11+13+15+17+19+21+23+25+27+29+31+33+35+37"
					 "+39+41+43+45+47+49+51+53+55+57+59+61+63", NULL };
	struct sb_plan_net n = { 0 };
	struct sb_net_amend a = { .seq = 1 };
	char *out = NULL;
	size_t len;

	rules(&n, v, false);
	CHECK_EQ(n.n_rules, 32);
	a.allow = n.rules;
	a.n_allow = 32;
	CHECK_EQ(sb_net_amend_write(&a, &out, &len), 0);
	CHECK(len <= SB_NET_AMEND_MAX);
	free(out);
	out = NULL;
	a.remove = n.rules;
	a.n_remove = 32;
	CHECK_EQ(sb_net_amend_write(&a, &out, &len), -E2BIG);
	CHECK(!out);
	sb_plan_net_done(&n);
}

/* All rules of @n as text, one behind the other. */
static void listing(const struct sb_plan_net *n, char *out, size_t cap)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n->n_rules; i++) {
		char text[SB_NET_RULE_TEXT];

		sb_net_rule_text(&n->rules[i], text, sizeof(text));
		at += (size_t)snprintf(out + at, cap - at, "%s%s", i ? " " : "", text);
	}
}

static void apply(struct sb_plan_net *n, const char *const *allow, const char *const *remove,
		  int want, const char *after)
{
	struct sb_plan_net add_rules = { 0 };
	struct sb_plan_net del_rules = { 0 };
	struct sb_net_amend a = { .seq = 1 };
	char text[1024];

	rules(&add_rules, allow, false);
	rules(&del_rules, remove, false);
	a.allow = add_rules.rules;
	a.n_allow = add_rules.n_rules;
	a.remove = del_rules.rules;
	a.n_remove = del_rules.n_rules;
	CHECK_EQ(sb_net_amend_apply(&a, n, NULL), want);
	listing(n, text, sizeof(text));
	CHECK_STR(text, after);
	CHECK_EQ(sb_plan_net_check(n, NULL), 0);
	sb_plan_net_done(&add_rules);
	sb_plan_net_done(&del_rules);
}

TEST(applied)
{
	static const char *const none[] = { NULL };
	static const char *const a22[] = { "a.example:22", NULL };
	static const char *const a443[] = { "a.example:443", NULL };
	static const char *const a443_any[] = { "a.example:443/any", NULL };
	static const char *const b[] = { "b.example:22", NULL };
	static const char *const two[] = { "c.example:22", "b.example:22", NULL };
	static const char *const first[] = { "a.example:443", "a.example:22", "c.example:22", NULL };
	static const char *const deny[] = { "d.example:22", NULL };
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };

	rules(&n, first, false);
	rules(&n, deny, true);
	/* add; again is no change */
	apply(&n, b, none, 0,
	      "a.example:443/https a.example:22 c.example:22 deny d.example:22 b.example:22");
	apply(&n, b, none, 0,
	      "a.example:443/https a.example:22 c.example:22 deny d.example:22 b.example:22");
	/* replace */
	apply(&n, a443_any, a443, 0,
	      "a.example:22 c.example:22 deny d.example:22 b.example:22 a.example:443/any");
	/* the protocol of what is taken away does not count */
	apply(&n, none, a443, 0, "a.example:22 c.example:22 deny d.example:22 b.example:22");
	/* one of them is not there: nothing happens */
	apply(&n, a443, first, -ENOENT, "a.example:22 c.example:22 deny d.example:22 b.example:22");
	/* a deny rule cannot be taken away */
	apply(&n, none, deny, -ENOENT, "a.example:22 c.example:22 deny d.example:22 b.example:22");
	apply(&n, none, two, 0, "a.example:22 deny d.example:22");
	apply(&n, none, a22, 0, "deny d.example:22");
	apply(&n, none, none, -EINVAL, "deny d.example:22");
	n.rules[0].deny = false;
	apply(&n, none, deny, 0, "");
	sb_plan_net_done(&n);
}

TEST(no_network_stays_none)
{
	static const char *const v[] = { "a.example:22", NULL };
	static const char *const none[] = { NULL };
	struct sb_plan_net n = { 0 };

	apply(&n, v, none, -EINVAL, "");
}

TEST(deny_rules_cannot_be_added)
{
	static const char *const v[] = { "a.example", NULL };
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	struct sb_plan_net d = { 0 };
	struct sb_net_amend a = { .seq = 1 };

	rules(&d, v, true);
	a.allow = d.rules;
	a.n_allow = d.n_rules;
	CHECK_EQ(sb_net_amend_apply(&a, &n, NULL), -EINVAL);
	CHECK_EQ(n.n_rules, 0);
	sb_plan_net_done(&d);
}

TEST(full)
{
	static const char *const v[] = { "a.example:22", NULL };
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	struct sb_plan_net more = { 0 };
	struct sb_net_amend a = { .seq = 1 };

	n.rules = calloc(SB_NET_MAX_RULES, sizeof(*n.rules));
	REQUIRE(n.rules);
	for (; n.n_rules < SB_NET_MAX_RULES; n.n_rules++)
		n.rules[n.n_rules] = (struct sb_net_rule){ false, strdup("b.example"), 1, 1, 0,
							   strdup("") };
	rules(&more, v, false);
	a.allow = more.rules;
	a.n_allow = 1;
	CHECK_EQ(sb_net_amend_apply(&a, &n, NULL), -EINVAL);
	CHECK_EQ(n.n_rules, SB_NET_MAX_RULES);
	CHECK_STR(n.rules[SB_NET_MAX_RULES - 1].host, "b.example");
	CHECK_EQ(sb_net_rule_add(&n, &more.rules[0]), -E2BIG);
	sb_plan_net_done(&more);
	sb_plan_net_done(&n);
}
