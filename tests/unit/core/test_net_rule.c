#include "core/net_policy.h"
#include "t.h"

/* The rules of one text, joined by spaces. */
struct got {
	char text[1024];
	size_t n;
};

static int take(void *arg, const struct sb_net_rule *r)
{
	struct got *g = arg;
	char one[SB_NET_RULE_TEXT];

	CHECK_STR(r->from, "test");
	(void)snprintf(one, sizeof(one), "%s%s %u-%u %d", g->n ? "|" : "", r->host,
		       (unsigned int)r->port_lo, (unsigned int)r->port_hi, (int)r->proto);
	(void)strncat(g->text, one, sizeof(g->text) - strlen(g->text) - 1);
	g->n++;
	return 0;
}

static void parse(const char *text, bool deny, const char *want)
{
	struct got g = { "", 0 };
	struct sb_err e = { 0 };

	if (sb_net_rule_parse(text, strlen(text), deny, "test", take, &g, &e) < 0)
		t_fail(__FILE__, __LINE__, "refused \"%s\": %s", text, e.text);
	CHECK_STR(g.text, want);
}

static void refused(const char *text, size_t len, bool deny)
{
	struct got g = { "", 0 };
	struct sb_err e = { 0 };

	if (sb_net_rule_parse(text, len, deny, "test", take, &g, &e) != -EINVAL || g.n != 0)
		t_fail(__FILE__, __LINE__, "accepted \"%s\": %s", text, g.text);
	CHECK(e.text[0]);
}

/* Protocols: 0 auto, 1 https, 2 http, 3 any. */
TEST(forms)
{
	parse("example.com", false, "example.com 443-443 1|example.com 80-80 2");
	parse("Example.COM.", false, "example.com 443-443 1|example.com 80-80 2");
	parse("example.com/any", false, "example.com 443-443 3|example.com 80-80 3");
	parse("example.com/https", false, "example.com 443-443 1");
	parse("example.com/http", false, "example.com 80-80 2");
	parse("example.com:443", false, "example.com 443-443 1");
	parse("example.com:80", false, "example.com 80-80 2");
	parse("example.com:22", false, "example.com 22-22 0");
	parse("example.com:8443/https", false, "example.com 8443-8443 1");
	parse("example.com:443/auto", false, "example.com 443-443 0");
	parse("example.com:22+443+8000-8010", false,
	      "example.com 22-22 0|example.com 443-443 1|example.com 8000-8010 0");
	parse("example.com:1-65535", false, "example.com 1-65535 0");
	parse("*.Example.com:443", false, "*.example.com 443-443 1");
	parse("*:25", true, "* 25-25 0");
	parse("*", false, "* 443-443 1|* 80-80 2");
	parse("example.com", true, "example.com 1-65535 0");
	parse("10.0.0.0/8", false, "10.0.0.0/8 1-65535 0");
	parse("10.0.0.0/8:443", false, "10.0.0.0/8 443-443 0");
	parse("10.0.0.0/8:443/https", false, "10.0.0.0/8 443-443 1");
	parse("10.0.0.0/8/any", false, "10.0.0.0/8 1-65535 3");
	parse("192.0.2.1", false, "192.0.2.1 443-443 0|192.0.2.1 80-80 0");
	parse("192.0.2.1/any", false, "192.0.2.1 443-443 3|192.0.2.1 80-80 3");
	parse("192.0.2.1/32", false, "192.0.2.1 1-65535 0");
	parse("[fd00::/8]", false, "fd00::/8 1-65535 0");
	parse("[fd00::]/8", false, "fd00::/8 1-65535 0");
	parse("[::]/0:443/any", false, "::/0 443-443 3");
	parse("[fd00::]/any", false, "fd00:: 443-443 3|fd00:: 80-80 3");
	parse("[FD00:0::1]:5432", false, "fd00::1 5432-5432 0");
	parse("[fd00::/8]:443/any", false, "fd00::/8 443-443 3");
	parse("[::ffff:10.0.0.0/104]:1", false, "10.0.0.0/8 1-1 0");
	parse("host.sendbox.internal:5432+6379", false,
	      "host.sendbox.internal 5432-5432 0|host.sendbox.internal 6379-6379 0");
	parse("host.sendbox.internal", true, "host.sendbox.internal 1-65535 0");
}

TEST(N24_port_text)
{
	static const char *const v[] = {
		"a.b:0", "a.b:65536", "a.b:0443", "a.b: 443", "a.b:443 ", "a.b:443-1", "a.b:4e2",
		"a.b:", "a.b:-1", "a.b:+443", "a.b:443+", "a.b:443++80", "a.b:443,80", "a.b:1-",
		"a.b:-", "a.b:1-2-3", "a.b:0-10", "a.b:0x1bb", "a.b:443:80", "a.b:99999999999999999999",
		"a.b:/any", "a.b:http", "a.b:443\n",
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		refused(v[i], strlen(v[i]), false);
	refused("a.b:443\0", 8, false);
	refused("a.b:4\0" "3", 7, false);
}

TEST(N25_literals_need_brackets)
{
	static const char *const v[] = {
		"2606:4700::1111", "2606:4700::1111:443", "::1", "fd00::/8", "[fd00::/8", "fd00::/8]",
		"[fd00::1]443", "[fd00::1]]:443", "[[fd00::1]]:443", "[10.0.0.1]:443", "[]:443",
		"[fd00::1%eth0]:443", "[fd00::1/8]", "[example.com]:443", "[fd00::1]x",
		"[fd00::1]/8", "[fd00::]/129", "[fd00::/8]/8", "[fd00::]/", "[fd00::]/08",
		"[fd00::]/8x", "[fd00::]/8/8", "[0000:0000:0000:0000:0000:0000:0000:0000:0000]/0",
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		refused(v[i], strlen(v[i]), false);
}

TEST(N20_N22_malformed)
{
	static const char *const v[] = {
		"", ":443", "/any", "a b", "a.b/", "a.b/tcp", "a.b/HTTPS", "a.b/https/any", "a.b/8",
		"*a.b", "*.", "**", "*.*.a", "a.*", "*..a", "user@host", "allowed:x@evil",
		"allowed#@evil", "a.b;c", "a.b\\c", "https://a.b", "10.0.0.1/8", "10.0.0.0/33",
		"10.0.0.0/08", "127.1", "0177.0.0.1", "2130706433", "*.1", ("b\xc3\xbc" "cher.example"),
		"a.b\t", "deny a.b", ".a.b", "-a.b",
	};
	char big[1200];

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		refused(v[i], strlen(v[i]), false);
		refused(v[i], strlen(v[i]), true);
	}
	refused("evil\0.allowed.com", 17, false);
	refused("a.b/any", 7, true); /* what is denied has no protocol */
	refused("host.sendbox.internal", 21, false);
	refused("host.sendbox.internal:1-65535", 29, false);
	refused("host.sendbox.internal:80+90-91", 30, false);
	memset(big, '1', sizeof(big));
	memcpy(big, "a.b:", 4);
	big[sizeof(big) - 1] = '\0';
	refused(big, sizeof(big) - 1, false);
}

static void hinted(const char *text, bool deny, const char *want)
{
	struct got g = { "", 0 };
	struct sb_err e = { 0 };
	size_t n = strlen(want);

	CHECK_EQ(sb_net_rule_parse(text, strlen(text), deny, "test", take, &g, &e), -EINVAL);
	CHECK_EQ(g.n, 0);
	if (strlen(e.text) < n || strcmp(e.text + strlen(e.text) - n, want) != 0)
		t_fail(__FILE__, __LINE__, "\"%s\": %s", text, e.text);
}

TEST(what_to_write_instead)
{
	static const struct {
		const char *text;
		const char *want;
	} v[] = {
		{ "http://x/", "\"http://x/\": write x:80" },
		{ "https://example.com", ": write example.com:443" },
		{ "HTTPS://Example.com/", ": write Example.com:443" },
		{ "https://example.com:8443/a/b?x=1", ": write example.com:8443" },
		{ "https://user:pw@example.com/@x", ": write example.com:443" },
		{ "https://[2001:db8::1]/x", ": write [2001:db8::1]:443" },
		{ "https://[2001:db8::1]:99/", ": write [2001:db8::1]:99" },
		{ "https://example.com?q", ": write example.com:443" },
		{ "ssh://git@github.com/foo", ": write github.com:22" },
		{ "git@github.com:foo/bar", ": write github.com:22" },
		{ "user:pw@example.com", ": write example.com" },
		{ "foo://example.com/", ": write example.com" },
		{ "postgres://u:p@db.test/x", ": write db.test:5432" },
		{ "http://localhost:3000/", ": for a server of this host write "
					    "host.sendbox.internal:3000, the name that it has inside" },
		{ "http://[::1]:3000", "write host.sendbox.internal:3000, the name that it has inside" },
		{ "::1", "write host.sendbox.internal:PORT, the name that it has inside" },
		{ "example.com:https", ": write example.com:443" },
		{ "example.com:", ": write example.com" },
		{ "example.com:443/https:8443", ": write example.com:443" },
		{ "example.com/a/b", ": write example.com; behind \"/\" stands one of https, http, "
				     "auto, any" },
		{ "2001:db8::1", ": write [2001:db8::1]" },
		{ "fd00::/8", ": write [fd00::/8]" },
		{ "fd00::1/8", ": write [fd00::/8]" },
		{ "10.0.0.5/8", ": write 10.0.0.0/8" },
		{ "10.1.2.3/0", ": write 0.0.0.0/0" },
		{ "\"example.com\"", ": write example.com" },
		{ "b\xc3\xbc" "cher.example", ", xn--..." },
		{ "https://b\xc3\xbc" "cher.example", ", xn--..." },
		/* nothing better is known */
		{ "https://", "no port behind \":\"" },
		{ "https:///x", "no port behind \":\"" },
		{ "https://a b/", "no port behind \":\"" },
		{ "https://[::1", "in brackets: [ADDRESS]:PORT" },
		{ "example.com:65536", "several with \"+\"" },
		{ "host.sendbox.internal", "as in host.sendbox.internal:5432" },
		{ "10.0.0.1/33", "address or network (without host bits)" },
		{ "10.0.0.1/99999999999999", "address or network (without host bits)" },
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		hinted(v[i].text, false, v[i].want);
	hinted("https://example.com/", true, ": write example.com");
	hinted("https://example.com:8443/", true, ": write example.com:8443");
	hinted("http://127.0.0.1:80/", true, ": write 127.0.0.1:80");
	hinted("example.com/https", true, ": write example.com; a deny rule has no protocol");
	hinted("443-", false, "several ports of a host stand as HOST:80+443");
}

static int stop(void *arg, const struct sb_net_rule *r)
{
	(void)r;
	return --*(int *)arg ? 0 : -E2BIG;
}

TEST(failure_of_add_is_returned)
{
	int n = 2;

	CHECK_EQ(sb_net_rule_parse("a.b:1+2+3", 9, false, NULL, stop, &n, NULL), -E2BIG);
	CHECK_EQ(n, 0);
}

static void text_of(const char *host, uint16_t lo, uint16_t hi, enum sb_net_proto proto, bool deny,
		    const char *want)
{
	char h[SB_NAME_MAX + 3];
	struct sb_net_rule r = { deny, h, lo, hi, proto, NULL };
	char out[SB_NET_RULE_TEXT];

	(void)snprintf(h, sizeof(h), "%s", host);
	sb_net_rule_text(&r, out, sizeof(out));
	CHECK_STR(out, want);
}

TEST(text)
{
	text_of("example.com", 443, 443, SB_PROTO_HTTPS, false, "example.com:443/https");
	text_of("example.com", 443, 443, SB_PROTO_AUTO, false, "example.com:443/auto");
	text_of("example.com", 22, 22, SB_PROTO_AUTO, false, "example.com:22");
	text_of("example.com", 1, 65535, SB_PROTO_AUTO, false, "example.com:1-65535");
	text_of("*.example.com", 1, 65535, SB_PROTO_AUTO, true, "deny *.example.com");
	text_of("*", 25, 25, SB_PROTO_AUTO, true, "deny *:25");
	text_of("10.0.0.0/8", 1, 65535, SB_PROTO_AUTO, false, "10.0.0.0/8");
	text_of("10.0.0.0/8", 443, 443, SB_PROTO_AUTO, false, "10.0.0.0/8:443");
	text_of("10.0.0.1", 443, 443, SB_PROTO_AUTO, false, "10.0.0.1:443");
	text_of("10.0.0.1", 1, 65535, SB_PROTO_AUTO, false, "10.0.0.1:1-65535");
	text_of("fd00::/8", 443, 443, SB_PROTO_ANY, false, "[fd00::/8]:443/any");
	text_of("fd00::1", 1, 65535, SB_PROTO_AUTO, true, "deny [fd00::1]");
}

static struct sb_net_rule rule(char *host, uint16_t lo, uint16_t hi)
{
	return (struct sb_net_rule){ false, host, lo, hi, SB_PROTO_AUTO, NULL };
}

TEST(add_copies_and_knows_what_it_has)
{
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	char host[] = "a.example";
	struct sb_net_rule r = rule(host, 1, 2);

	CHECK_EQ(sb_net_rule_add(&n, &r), 0);
	CHECK_EQ(sb_net_rule_add(&n, &r), 0);
	CHECK_EQ(n.n_rules, 1);
	r.port_hi = 3;
	CHECK_EQ(sb_net_rule_add(&n, &r), 0);
	r.proto = SB_PROTO_ANY;
	CHECK_EQ(sb_net_rule_add(&n, &r), 0);
	CHECK_EQ(n.n_rules, 3);
	host[0] = 'b';
	CHECK_STR(n.rules[0].host, "a.example");
	CHECK_STR(n.rules[0].from, "");
	CHECK_EQ(sb_plan_net_check(&n, NULL), 0);
	sb_plan_net_done(&n);
	CHECK(!n.rules);
	CHECK_EQ(n.n_rules, 0);
}

static void bad_rule(const char *host, uint16_t lo, uint16_t hi, int proto, bool deny)
{
	char h[300];
	char from[] = "test";
	struct sb_net_rule r = { deny, h, lo, hi, (enum sb_net_proto)proto, from };
	struct sb_plan_net n = {
		.mode = SB_NET_FILTER, .max_connections = 1, .rules = &r, .n_rules = 1
	};

	(void)snprintf(h, sizeof(h), "%s", host);
	if (sb_plan_net_check(&n, NULL) != -EINVAL)
		t_fail(__FILE__, __LINE__, "accepted %s %d-%d", host, (int)lo, (int)hi);
}

TEST(check_wants_canonical_rules)
{
	bad_rule("Example.com", 1, 1, 0, false);
	bad_rule("example.com.", 1, 1, 0, false);
	bad_rule("*.Example.com", 1, 1, 0, false);
	bad_rule("10.0.0.1/8", 1, 1, 0, false);
	bad_rule("10.0.0.1/32", 1, 1, 0, false);
	bad_rule("::ffff:10.0.0.1", 1, 1, 0, false);
	bad_rule("[fd00::1]", 1, 1, 0, false);
	bad_rule("FD00::1", 1, 1, 0, false);
	bad_rule("", 1, 1, 0, false);
	bad_rule("a b", 1, 1, 0, false);
	bad_rule("example.com", 0, 1, 0, false);
	bad_rule("example.com", 2, 1, 0, false);
	bad_rule("example.com", 1, 1, 4, false);
	bad_rule("example.com", 1, 1, -1, false);
	bad_rule("example.com", 1, 1, SB_PROTO_ANY, true);
	bad_rule("host.sendbox.internal", 1, 2, 0, false);
}

static int net(struct sb_plan_net n)
{
	return sb_plan_net_check(&n, NULL);
}

TEST(check_of_the_rest)
{
	char name[] = "a.example";
	char upper[] = "A.example";
	char host_name[] = SB_HOST_NAME;
	char v4[] = "192.0.2.1";
	char mapped[] = "::ffff:192.0.2.1";
	struct sb_net_pin pin = { name, v4 };
	char r1[] = "127.0.0.53:53";
	char r2[] = "[fd00::53]:53";
	char r3[] = "10.0.0.1:5353";
	char r4[] = "10.0.0.2:53";
	char r5[] = "10.0.0.3:53";
	char *resolvers[] = { r1, r2, r3, r4, NULL, NULL };
	char t1[] = "TXT";
	char t2[] = "HTTPS";
	char *types[] = { t1, t2, NULL };
	static char bad_resolvers[][32] = {
		"10.0.0.1", "10.0.0.1:", "10.0.0.1:0",
		"fd00::53:53", "[10.0.0.1]:53", "[FD00::1]:53",
		"dns.example:53", "[fd00::1%lo]:53", "",
		"[::ffff:10.0.0.1]:53", "[fd00::1:53",
	};
	static char bad_types[][16] = {
		"A", "AAAA", "ANY", "AXFR",
		"txt", "", "T T", "12",
		"ABCDEFGHIJK",
	};
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 512, .pins = &pin,
				 .n_pins = 1, .resolvers = resolvers, .dns_types = types };

	CHECK_EQ(net(n), 0);
	n.mode = SB_NET_OPEN;
	CHECK_EQ(net(n), 0);
	n.mode = (enum sb_net_mode)3;
	CHECK_EQ(net(n), -EINVAL);
	n.mode = SB_NET_FILTER;
	n.max_connections = 0;
	CHECK_EQ(net(n), -EINVAL);
	n.max_connections = 4097;
	CHECK_EQ(net(n), -EINVAL);
	n.max_connections = 4096;
	CHECK_EQ(net(n), 0);
	pin.name = upper;
	CHECK_EQ(net(n), -EINVAL);
	pin.name = host_name;
	CHECK_EQ(net(n), -EINVAL);
	pin.name = name;
	pin.addr = mapped;
	CHECK_EQ(net(n), -EINVAL);
	pin.addr = v4;
	resolvers[4] = r5; /* a fifth */
	CHECK_EQ(net(n), -EINVAL);
	resolvers[4] = NULL;
	resolvers[3] = r1; /* twice */
	CHECK_EQ(net(n), -EINVAL);
	resolvers[1] = NULL;
	for (size_t i = 0; i < sizeof(bad_resolvers) / sizeof(bad_resolvers[0]); i++) {
		resolvers[0] = bad_resolvers[i];
		if (net(n) != -EINVAL)
			t_fail(__FILE__, __LINE__, "accepted %s", bad_resolvers[i]);
	}
	n.resolvers = NULL;
	CHECK_EQ(net(n), 0);
	for (size_t i = 0; i < sizeof(bad_types) / sizeof(bad_types[0]); i++) {
		types[0] = bad_types[i];
		if (net(n) != -EINVAL)
			t_fail(__FILE__, __LINE__, "accepted %s", bad_types[i]);
	}
	types[0] = t2; /* twice */
	CHECK_EQ(net(n), -EINVAL);
}

TEST(no_network_has_no_rules)
{
	char t1[] = "TXT";
	char *types[] = { t1, NULL };
	char *empty[] = { NULL };

	CHECK_EQ(net((struct sb_plan_net){ 0 }), 0);
	CHECK_EQ(net((struct sb_plan_net){ .resolvers = empty, .dns_types = empty }), 0);
	CHECK_EQ(net((struct sb_plan_net){ .n_rules = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .n_pins = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .resolvers = types }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .dns_types = types }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .max_connections = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .idle_ms = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .session_bytes = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .host_bytes = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .dns_queries = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .dns_new_names = 1 }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .proxy_env = true }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .cname_strict = true }), -EINVAL);
	CHECK_EQ(net((struct sb_plan_net){ .ech_outer = true }), -EINVAL);
}
