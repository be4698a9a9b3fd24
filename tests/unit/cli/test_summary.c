#include "core/net_policy.h"
#include "summary.h"
#include "t.h"

static char said[16384];
static int lines;
static bool builder;

static void on_line(void *arg, const char *text)
{
	(void)arg;
	lines++;
	REQUIRE(strlen(said) + strlen(text) + 2 <= sizeof(said));
	memcpy(said + strlen(said), text, strlen(text) + 1);
	memcpy(said + strlen(said), "\n", 2);
}

/* 10.9.9.9 is this machine's */
static bool own(const struct sb_addr *a)
{
	static const uint8_t v4[] = { 10, 9, 9, 9 };

	return memcmp(a->b + 12, v4, sizeof(v4)) == 0;
}

static void tell(const struct summary *s)
{
	said[0] = '\0';
	lines = 0;
	summary_tell(s, own, builder, on_line, NULL);
}

static void add(struct summary *s, uint8_t kind, bool allow, const char *name, uint16_t port,
		enum sb_net_reason reason, uint64_t count)
{
	struct sb_ipc_net_event ev = { .kind = kind, .allow = allow, .port = port,
				       .reason = (uint16_t)reason, .count = count };

	(void)snprintf(ev.name, sizeof(ev.name), "%s", name);
	summary_add(s, &ev);
}

TEST(nothing_refused_nothing_said)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_DNS, true, "a.test", 0, SB_NET_OK, 3);
	add(s, SB_NET_EV_CONNECT, true, "a.test", 443, SB_NET_OK, 1);
	add(s, SB_NET_EV_CLOSED, true, "a.test", 443, SB_NET_OK, 1);
	tell(s);
	CHECK_STR(said, "");
	s = summary_free(s);
}

TEST(questions_and_connections_of_a_name_are_one)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_DNS, false, "a.test", 0, SB_NET_NAME_NOT_ALLOWED, 2);
	add(s, SB_NET_EV_CONNECT, false, "a.test", 443, SB_NET_NAME_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_DNS, false, "b.test", 0, SB_NET_NAME_NOT_ALLOWED, 0);
	add(s, SB_NET_EV_CONNECT, false, "2001:db8::1", 25, SB_NET_ADDR_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_CONNECT, false, "2001:db8::1", 26, SB_NET_ADDR_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_CLOSED, true, "c.test", 443, SB_NET_BUDGET, 1);
	tell(s);
	CHECK_STR(said, "network: denied 3 times: a.test:443 (name-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts a.test:443 ...\n"
			"network: denied once: b.test (name-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts b.test ...\n"
			"network: denied once: [2001:db8::1]:25 (address-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts [2001:db8::1]:25 ...\n"
			"network: denied once: [2001:db8::1]:26 (address-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts [2001:db8::1]:26 ...\n"
			"network: cut once: c.test:443 (byte-budget)\n");
	s = summary_free(s);
}

TEST(a_port_has_its_own_reason)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_CONNECT, false, "a.test", 81, SB_NET_PORT_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_REQUEST, false, "a.test", 80, SB_NET_HTTP_HOST, 2);
	add(s, SB_NET_EV_CONNECT, false, "a.test", 82, SB_NET_PORT_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_DNS, false, "a.test", 0, SB_NET_PORT_NOT_ALLOWED, 5);
	tell(s);
	CHECK_STR(said, "network: denied 6 times: a.test:81 (port-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts a.test:81 ...\n"
			"network: denied 2 times: a.test:80 (http-host-mismatch)\n"
			"  to allow it unchecked: sendbox run --allow-hosts a.test:80/any ...\n"
			"network: denied once: a.test:82 (port-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts a.test:82 ...\n");
	s = summary_free(s);
}

TEST(ways_out)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_CONNECT, false, "host.sendbox.internal", 5432, SB_NET_PORT_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_CONNECT, false, "a.test", 1, SB_NET_CONNECT_FAILED, 1);
	add(s, SB_NET_EV_CONNECT, false, "b.test", 443, SB_NET_NOT_TLS, 1);
	add(s, SB_NET_EV_DNS, false, "c.test", 0, SB_NET_NAME_DENIED, 1);
	tell(s);
	CHECK_STR(said, "network: denied once: host.sendbox.internal:5432 (port-not-allowed)\n"
			"  to allow it: sendbox run --allow-host-port 5432 ...\n"
			"network: failed once: a.test:1 (connect-failed)\n"
			"  allowed, but nobody answers there\n"
			"network: denied once: b.test:443 (not-tls)\n"
			"  to allow it unchecked: sendbox run --allow-hosts b.test:443/any ...\n"
			"network: denied once: c.test (name-denied)\n"
			"  a rule of --deny-hosts denies it\n");
	s = summary_free(s);
	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_CONNECT, false, "host.sendbox.internal", 1, SB_NET_CONNECT_FAILED, 1);
	tell(s);
	CHECK_STR(said, "network: failed once: host.sendbox.internal:1 (connect-failed)\n"
			"  allowed, but nothing listens there on this machine\n");
	s = summary_free(s);
}

static void restricted(struct summary *s, const char *name, uint8_t a, uint8_t b, uint16_t port)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_CONNECT, .port = port, .count = 1,
				       .reason = SB_NET_ADDR_RESTRICTED, .has_addr = 1,
				       .addr = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, a, b, b, b } };

	(void)snprintf(ev.name, sizeof(ev.name), "%s", name);
	summary_add(s, &ev);
}

TEST(private_addresses)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	restricted(s, "a.test", 10, 1, 443);
	restricted(s, "10.2.2.2", 10, 2, 22);
	restricted(s, "b.test", 10, 9, 5432);
	tell(s);
	CHECK_STR(said, "network: denied once: a.test:443 (address-restricted)\n"
			"  to allow its address too: add --allow-hosts 10.1.1.1:443\n"
			"network: denied once: 10.2.2.2:22 (address-restricted)\n"
			"  to allow it: sendbox run --allow-hosts 10.2.2.2:22 ...\n"
			"network: denied once: b.test:5432 (address-restricted)\n"
			"  an address of this machine; to allow the port: sendbox run "
			"--allow-host-port 5432 ..., as host.sendbox.internal\n");
	s = summary_free(s);
}

TEST(the_host_by_its_name)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_DNS, false, "xhost.sendbox.internal", 0, SB_NET_NAME_NOT_ALLOWED, 1);
	CHECK(!summary_saw_host(s));
	s = summary_free(s);
	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_DNS, false, "host.sendbox.internal", 0, SB_NET_NAME_NOT_ALLOWED, 1);
	CHECK(summary_saw_host(s));
	tell(s);
	CHECK_STR(said, "network: denied once: host.sendbox.internal (name-not-allowed)\n"
			"  to allow it: sendbox run --allow-host-port PORT ...\n");
	s = summary_free(s);
	REQUIRE(summary_new(&s) == 0);
	add(s, SB_NET_EV_CONNECT, true, "host.sendbox.internal", 1, SB_NET_OK, 1);
	CHECK(summary_saw_host(s));
	s = summary_free(s);
}

static void question(struct summary *s, const char *name, uint16_t type, enum sb_net_reason reason)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_DNS, .count = 1, .dns_type = type,
				       .reason = (uint16_t)reason };

	(void)snprintf(ev.name, sizeof(ev.name), "%s", name);
	summary_add(s, &ev);
}

TEST(other_records)
{
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	question(s, "_http._tcp.a.test", 33, SB_NET_NAME_NOT_ALLOWED);
	question(s, "b.test", 1, SB_NET_NAME_NOT_ALLOWED);
	question(s, "b.test", 65, SB_NET_NAME_NOT_ALLOWED);
	question(s, "c.test", 16, SB_NET_DNS_TYPE);
	question(s, "d.test", 999, SB_NET_DNS_TYPE);
	tell(s);
	CHECK_STR(said, "network: denied once: _http._tcp.a.test (name-not-allowed)\n"
			"  asked for SRV only; to allow it: sendbox run --allow-hosts "
			"_http._tcp.a.test --dns-types SRV ...\n"
			"network: denied 2 times: b.test (name-not-allowed)\n"
			"  to allow it: sendbox run --allow-hosts b.test ...\n"
			"network: denied once: c.test (dns-type)\n"
			"  to allow it: sendbox run --dns-types TXT ...\n"
			"network: denied once: d.test (dns-type)\n");
	s = summary_free(s);
}

TEST(bounded)
{
	struct summary *s;
	char name[32];

	REQUIRE(summary_new(&s) == 0);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "n%d.test", i);
		add(s, SB_NET_EV_DNS, false, name, 0, SB_NET_NAME_NOT_ALLOWED, 1);
	}
	add(s, SB_NET_EV_LOST, false, "", 0, SB_NET_OK, 100);
	add(s, SB_NET_EV_LOST, true, "", 0, SB_NET_OK, 7);
	tell(s);
	CHECK(lines <= SUMMARY_LINES);
	CHECK(strstr(said, "n0.test"));
	/* 9 names of two lines are told; the other 4991 and what was lost are counted */
	CHECK(strstr(said, "and 5091 more refusals"));
	s = summary_free(s);
}

TEST(a_name_without_end)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_DNS, .count = 1, .reason = 9999 };
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	memset(ev.name, 'x', sizeof(ev.name));
	summary_add(s, &ev);
	summary_add(s, &ev);
	tell(s);
	CHECK(strstr(said, "denied 2 times: xxx"));
	s = summary_free(s);
}

TEST(a_builder_is_told_the_key_of_its_definition)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_CONNECT, .port = 443, .count = 1,
				       .reason = SB_NET_ADDR_RESTRICTED, .has_addr = 1,
				       .name = "npm.test",
				       .addr = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 1, 2, 3 } };
	struct summary *s;

	REQUIRE(summary_new(&s) == 0);
	summary_add(s, &ev);
	add(s, SB_NET_EV_CONNECT, false, "other.test", 80, SB_NET_NAME_NOT_ALLOWED, 1);
	add(s, SB_NET_EV_CONNECT, false, "third.test", 80, SB_NET_NOT_HTTP, 1);
	builder = true;
	tell(s);
	builder = false;
	CHECK_STR(said, "network: denied once: npm.test:443 (address-restricted)\n"
			"  the name is allowed, its private address is not; for installations to reach "
			"it: \"10.1.2.3:443\" in packageGroups of the agent's definition, too\n"
			"network: denied once: other.test:80 (name-not-allowed)\n"
			"  for installations to reach it: \"other.test:80\" in packageGroups of the "
			"agent's definition\n"
			"network: denied once: third.test:80 (not-http)\n");
	s = summary_free(s);
}
