/* Ways around the agreement of names and around the budgets that were found by trying. */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/net_hello.h"

static struct rig r;
static int srv = -1;

static bool begin(const char *rule, uint16_t port)
{
	if (!rig_init(&r, SB_PROVIDER_NAMESPACE))
		return false;
	(void)rig_pin(&r, "web.example", WEB);
	(void)rig_rule(&r, "deny evil.example");
	if (!rig_rule(&r, rule) || !rig_start(&r))
		return false;
	srv = rig_serve(WEB, port);
	return true;
}

static void finish(void)
{
	sb_fd_close(&srv);
	rig_done(&r);
}

/* What a lenient server reads as HTTP or TLS must not pass as another protocol. */
static void first_bytes(const char *bytes, size_t len, enum sb_net_reason want)
{
	char buf[2048];
	int cl;
	int up;

	if (!begin("web.example:8000", 8000))
		return;
	cl = rig_dial(&r, "web.example", 8000);
	up = rig_accept(&r, srv);
	rig_send(&r, cl, bytes, len);
	if (want == SB_NET_OK) {
		CHECK_EQ(rig_read(&r, up, buf, len), len);
		CHECK_MEM(buf, bytes, len);
	} else {
		(void)rig_rest(&r, cl, buf, sizeof(buf));
		if (!rig_refused(&r, want))
			printf("# first bytes %02x %02x\n", (uint8_t)bytes[0], (uint8_t)bytes[1]);
		CHECK(rig_is_reset(&r, up));
	}
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(blanks_of_lenient_servers)
{
	static const char *const cases[] = {
		" GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"\tGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"\xa0GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"\x1cGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"\r\n \r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET\xa0/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET\x1c/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET\x85/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"PROPFIND /\x01 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET\t/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++)
		first_bytes(cases[i], strlen(cases[i]), SB_NET_HTTP_MALFORMED);
}

/* A ClientHello in the form of SSL 2 has no server name; nginx with OpenSSL 3 answers it. */
TEST(hello_of_ssl_2)
{
	static const char hello[] = "\x80\x2f\x01\x03\x03\x00\x06\x00\x00\x00\x20"
				    "\x00\xc0\x2f\x00\x00\x2f"
				    "0123456789abcdef0123456789abcdef";
	static const char other[] = "\x80\x2f\x01\x03\x03\x00\x06\x00\x00\x00\x21"
				    "\x00\xc0\x2f\x00\x00\x2f"
				    "0123456789abcdef0123456789abcdef";

	static const char newer[] = "\x80\x2f\x01\x03\xff\x00\x06\x00\x00\x00\x20"
				    "\x00\xc0\x2f\x00\x00\x2f"
				    "0123456789abcdef0123456789abcdef";

	first_bytes(hello, sizeof(hello) - 1, SB_NET_TLS_NO_NAME);
	first_bytes(newer, sizeof(newer) - 1, SB_NET_TLS_NO_NAME);
	first_bytes(other, sizeof(other) - 1, SB_NET_OK); /* its lengths do not fit */
	first_bytes("\x94\x00\x01\xa3" "foo", 7, SB_NET_OK);
}

/* Go's server reads over a warning that comes first. */
TEST(records_before_the_hello)
{
	static const char *const before[] = { "\x15\x03\x01\x00\x02\x01\x5a", "\x14\x03\x03\x00\x01\x01",
					      "\x17\x03\x03\x00\x00", "\x18\x03\x01\x00\x00" };
	static const size_t len[] = { 7, 6, 5, 5 };

	for (size_t i = 0; i < SB_ARRAY_LEN(before); i++) {
		uint8_t out[700];

		memcpy(out, before[i], len[i]);
		first_bytes((const char *)out,
			    len[i] + rig_hello("evil.example", false, out + len[i], 600),
			    SB_NET_TLS_MALFORMED);
	}
	/* the version of a record is to be ignored, and Go's server does */
	for (size_t i = 0; i < 2; i++) {
		static const char alert[] = "\x15\x02\x01\x00\x02\x01\x5a";
		size_t skip = i ? sizeof(alert) - 1 : 0;
		uint8_t out[700];
		size_t n;

		memcpy(out, alert, skip);
		n = skip + rig_hello("evil.example", false, out + skip, 600);
		out[skip + 1] = 2;
		first_bytes((const char *)out, n, SB_NET_TLS_MALFORMED);
	}
	first_bytes("\x16\x02\x01\x00\x05\x02hello", 11, SB_NET_OK);
	first_bytes("\x15\x02\x01\x00\x05\x01hello", 11, SB_NET_OK);
	/* a message of 789 bytes in a protocol with lengths in front */
	first_bytes("\x15\x03\x00\x00\x07\x01\x00\x00", 8, SB_NET_OK);
}

/* --- a second ClientHello --- */

#define RETRY \
	"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" \
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"
static const char retry[] = "\x16\x03\x03\x00\x2c\x02\x00\x00\x28\x03\x03" RETRY
			    "\x00\x13\x01\x00\x00\x00"
			    "\x14\x03\x03\x00\x01\x01";
static const char ccs[] = "\x14\x03\x03\x00\x01\x01";
static const char early[] = "\x17\x03\x03\x00\x03" "abc";

/* nginx takes the name of the second hello for the connection's. */
static void again(const char *rule, const char *second, bool ahead)
{
	uint8_t hello[600];
	uint8_t out[1400];
	uint8_t got[1400];
	size_t len = rig_hello("web.example", false, hello, sizeof(hello));
	size_t n = 0;
	int cl;
	int up;

	if (!begin(rule, 8443))
		return;
	memcpy(out, early, sizeof(early) - 1);
	n = sizeof(early) - 1;
	memcpy(out + n, ccs, sizeof(ccs) - 1);
	n += sizeof(ccs) - 1;
	n += rig_hello(second, false, out + n, 600);
	cl = rig_dial(&r, "web.example", 8443);
	up = rig_accept(&r, srv);
	rig_send(&r, cl, hello, len);
	if (ahead)
		rig_send(&r, cl, out, n);
	CHECK_EQ(rig_read(&r, up, got, len), len);
	CHECK_MEM(got, hello, len);
	CHECK(rig_quiet(&r, up, 30));
	rig_send(&r, up, retry, sizeof(retry) - 1);
	CHECK_EQ(rig_read(&r, cl, got, sizeof(retry) - 1), sizeof(retry) - 1);
	if (!ahead)
		rig_send(&r, cl, out, n);
	if (strcmp(second, "web.example") == 0) {
		CHECK_EQ(rig_read(&r, up, got, n), n);
		CHECK_MEM(got, out, n);
		rig_say(&r, up, "anything");
		CHECK(rig_expect(&r, cl, "anything"));
		rig_say(&r, cl, "at all");
		CHECK(rig_expect(&r, up, "at all"));
	} else {
		size_t skip = sizeof(early) - 1 + sizeof(ccs) - 1;

		CHECK_EQ(rig_read(&r, up, got, skip + 1), skip); /* not a byte of the hello */
		REQUIRE(rig_event(&r, SB_NET_EV_REQUEST, 0));
		CHECK_EQ(rig_event(&r, SB_NET_EV_REQUEST, 0)->reason, SB_NET_TLS_NAME);
	}
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(second_hello)
{
	static const char *const rules[] = { "web.example:8443/https", "web.example:8443" };

	for (int i = 0; i < 4; i++) {
		again(rules[i % 2], "web.example", i / 2);
		again(rules[i % 2], "evil.example", i / 2);
	}
}

/* What the server answers otherwise opens the way, whatever it is and however it comes. */
TEST(answers_to_a_hello)
{
	static const char *const answers[] = { ("\x16\x03\x03\x01\x7a\x02\x01\x01\x76\x03\x03"
						"0123456789abcdef0123456789abcdef01"),
					       "\x15\x03\x03\x30\x02\x02\x28", "HTTP/1.1 400 Bad\r\n",
					       "\x16\x03\x03\x30" };

	for (size_t i = 0; i < SB_ARRAY_LEN(answers); i++) {
		uint8_t hello[600];
		size_t len = rig_hello("web.example", false, hello, sizeof(hello));
		char buf[64];
		int cl;
		int up;

		if (!begin("web.example:8443/https", 8443))
			return;
		cl = rig_dial(&r, "web.example", 8443);
		up = rig_accept(&r, srv);
		rig_send(&r, cl, hello, len);
		CHECK_EQ(rig_read(&r, up, hello, len), len);
		for (const char *p = answers[i]; *p; p++) {
			rig_send(&r, up, p, 1);
			rig_spin(&r, 1);
		}
		if (i == 3)
			sb_fd_close(&up); /* in the middle of a record */
		CHECK(rig_expect(&r, cl, answers[i]));
		if (i != 3) {
			rig_say(&r, cl, "\x16\x03\x03 more");
			CHECK(rig_expect(&r, up, "\x16\x03\x03 more"));
		} else {
			CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
		}
		sb_fd_close(&cl);
		sb_fd_close(&up);
		finish();
	}
}

/* --- budgets --- */

/* What is sent ahead, with the request to the proxy, counts for the target too. */
TEST(budget_of_a_host_behind_the_proxy)
{
	static const char connect[] =
		"CONNECT web.example:5000 HTTP/1.1\r\nHost: web.example:5000\r\n\r\n";
	static const char socks[] = "\x05\x01\x00\x03\x0bweb.example\x13\x88";
	static const char plain[] = "POST http://web.example:5000/ HTTP/1.1\r\n"
				    "Host: web.example:5000\r\nContent-Length: 4000\r\n\r\n";
	char bytes[8192];
	size_t total = 0;

	if (!rig_init(&r, SB_PROVIDER_NAMESPACE))
		return;
	r.plan->net.host_bytes = 10000;
	(void)rig_pin(&r, "web.example", WEB);
	REQUIRE(rig_rule(&r, "web.example:5000/any") && rig_start(&r));
	srv = rig_serve(WEB, 5000);
	for (int i = 0; i < 9; i++) {
		int cl = rig_dial(&r, "127.0.0.1", SB_NET_PROXY_PORT);
		char got[8192];
		int up;

		memset(bytes, 'x', sizeof(bytes));
		if (i % 3 == 1) {
			rig_send(&r, cl, "\x05\x01\x00", 3);
			CHECK_EQ(rig_read(&r, cl, got, 2), 2);
			memcpy(bytes, socks, sizeof(socks) - 1);
		} else {
			memcpy(bytes, i % 3 ? plain : connect,
			       (i % 3 ? sizeof(plain) : sizeof(connect)) - 1);
		}
		rig_send(&r, cl, bytes, 4000);
		up = total < 10000 ? rig_accept(&r, srv) : -1;
		if (up >= 0)
			total += rig_read(&r, up, got, sizeof(got));
		sb_fd_close(&cl);
		sb_fd_close(&up);
		rig_spin(&r, 5);
	}
	CHECK(total > 6000);
	CHECK(total <= 10000);
	if (total > 10000)
		printf("# %zu bytes\n", total);
	finish();
}

/* The destination that a micro-VM's relay says first is none of the guest's bytes. */
TEST(budget_of_a_session_of_streams)
{
	static const char thirty[] = "012345678901234567890123456789";
	int cl;
	int up;

	if (!rig_init(&r, SB_PROVIDER_MICROVM))
		return;
	r.plan->net.session_bytes = 60;
	(void)rig_pin(&r, "web.example", WEB);
	REQUIRE(rig_rule(&r, "web.example:5000/any") && rig_start(&r));
	srv = rig_serve(WEB, 5000);
	for (int i = 0; i < 2; i++) {
		cl = rig_stream(&r, "web.example", 5000);
		up = rig_accept(&r, srv);
		rig_say(&r, cl, thirty);
		CHECK(rig_expect(&r, up, thirty));
		sb_fd_close(&cl);
		sb_fd_close(&up);
		rig_spin(&r, 5);
	}
	cl = rig_stream(&r, "web.example", 5000);
	CHECK(rig_ready(&r, cl, POLLHUP, 500));
	sb_fd_close(&cl);
	finish();
}

/* --- descriptors --- */

/* No descriptor is left for a stream, or for who wants to look: that one is lost, nothing else. */
TEST(no_descriptor_left)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: web.example:5000\r\n\r\n";
	struct rlimit old;
	struct rlimit few;
	int st[4];
	int cl;
	int up;

	if (!rig_init(&r, SB_PROVIDER_MICROVM))
		return;
	(void)rig_pin(&r, "web.example", WEB);
	REQUIRE(rig_rule(&r, "web.example:5000") && rig_start(&r));
	srv = rig_serve(WEB, 5000);
	for (size_t i = 0; i < SB_ARRAY_LEN(st); i++) {
		int sv[2];

		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) == 0);
		/* to the gate, and (as a viewer) from the monitor */
		REQUIRE(sb_ipc_send(i % 2 ? r.monitor : r.front,
				    i % 2 ? SB_IPC_NET_CLIENT : SB_IPC_NET_STREAM, NULL, 0, &sv[1],
				    1) == 0);
		sb_fd_close(&sv[1]);
		st[i] = sv[0];
	}
	REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = old;
	few.rlim_cur = 3;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
	rig_spin(&r, 10);
	REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
	rig_spin(&r, 10);
	CHECK(!r.stopped);
	for (size_t i = 0; i < SB_ARRAY_LEN(st); i++) {
		CHECK(rig_ready(&r, st[i], POLLIN, 1000));
		sb_fd_close(&st[i]);
	}
	cl = rig_stream(&r, "web.example", 5000);
	rig_say(&r, cl, get);
	up = rig_accept(&r, srv);
	CHECK(rig_expect(&r, up, get));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

/* --- a guest that lies --- */

/* Streams to where no program could have dialled, with everything allowed that a plan can allow. */
TEST(streams_to_forbidden_places)
{
	static const struct {
		const char *to;
		uint16_t port;
		enum sb_net_reason reason;
	} cases[] = {
		{ "127.0.0.1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "127.0.0.1", 3129, SB_NET_ADDR_FORBIDDEN },
		{ "127.0.0.2", SB_NET_PROXY_PORT, SB_NET_ADDR_FORBIDDEN },
		{ "::1", SB_NET_PROXY_PORT, SB_NET_ADDR_FORBIDDEN },
		{ "0.0.0.0", 80, SB_NET_ADDR_FORBIDDEN },
		{ "::", 80, SB_NET_ADDR_FORBIDDEN },
		{ "224.0.0.1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "ff02::1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "255.255.255.255", 80, SB_NET_ADDR_FORBIDDEN },
		{ "169.254.169.254", 80, SB_NET_ADDR_FORBIDDEN },
		{ "fd00:ec2::254", 80, SB_NET_ADDR_FORBIDDEN },
		{ "::127.0.0.1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "::ffff:0:127.0.0.1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "64:ff9b::127.0.0.1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "64:ff9b::169.254.169.254", 80, SB_NET_ADDR_FORBIDDEN },
		{ "2002:7f00:1::1", 80, SB_NET_ADDR_FORBIDDEN },
		{ "192.0.2.1", 80, SB_NET_ADDR_HOST },
		{ "192.0.2.255", 80, SB_NET_ADDR_HOST },
		{ "198.18.0.1", 80, SB_NET_NAME_UNKNOWN },
		{ "198.19.255.255", 80, SB_NET_NAME_UNKNOWN },
		{ "fd73:656e:6462:6f78::1", 80, SB_NET_NAME_UNKNOWN },
		{ "fd73:656e:6462:6f78:ffff:ffff:ffff:ffff", 80, SB_NET_NAME_UNKNOWN },
	};

	for (int mode = 0; mode < 2; mode++) {
		if (!rig_init(&r, SB_PROVIDER_MICROVM))
			return;
		r.plan->net.mode = mode ? SB_NET_OPEN : SB_NET_FILTER;
		REQUIRE(rig_rule(&r, "0.0.0.0/0") && rig_rule(&r, "[::/0]") && rig_rule(&r, "*:1-65535"));
		REQUIRE(rig_start(&r));
		for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
			int st = rig_stream(&r, cases[i].to, cases[i].port);
			const struct sb_ipc_net_event *ev = rig_event(&r, SB_NET_EV_CONNECT, i);

			REQUIRE(ev);
			if (ev->allow || ev->reason != cases[i].reason)
				t_fail(__FILE__, __LINE__, "%s: %s", cases[i].to,
				       sb_net_reason_name((enum sb_net_reason)ev->reason));
			CHECK(rig_ready(&r, st, POLLHUP, 500));
			sb_fd_close(&st);
		}
		CHECK_EQ(r.g.n_conns, 0);
		rig_done(&r);
	}
}

/* Streams opened, half told and given up, and frames of DNS of no length: the next one is served. */
TEST(storm_of_streams)
{
	static const uint8_t dns[20] = { 1, SB_NET_HELLO_DNS };
	static const uint8_t frames[][4] = { { 0, 0, 1, 0 }, { 0xff, 0xff, 1, 0 } };
	static const char get[] = "GET / HTTP/1.1\r\nHost: web.example:5000\r\n\r\n";
	int cl;
	int up;

	if (!rig_init(&r, SB_PROVIDER_MICROVM))
		return;
	(void)rig_pin(&r, "web.example", WEB);
	REQUIRE(rig_rule(&r, "web.example:5000") && rig_start(&r));
	srv = rig_serve(WEB, 5000);
	for (size_t i = 0; i < 600; i++) {
		uint8_t bytes[20] = { 1, SB_NET_HELLO_TCP, 0x88, 0x13 };

		cl = rig_front_stream(&r);
		rig_send(&r, cl, bytes, i % 21);
		if (i % 3 == 0)
			CHECK_EQ(shutdown(cl, SHUT_WR), 0);
		sb_fd_close(&cl);
	}
	for (size_t i = 0; i < 20; i++) {
		cl = rig_front_stream(&r);
		rig_send(&r, cl, dns, sizeof(dns));
		rig_send(&r, cl, frames[i % 2], 4);
		CHECK(rig_ready(&r, cl, POLLHUP, 500));
		sb_fd_close(&cl);
	}
	rig_spin(&r, 20);
	CHECK(!r.stopped);
	CHECK_EQ(r.g.n_conns, 0);
	cl = rig_stream(&r, "web.example", 5000);
	rig_say(&r, cl, get);
	up = rig_accept(&r, srv);
	CHECK(rig_expect(&r, up, get));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}
