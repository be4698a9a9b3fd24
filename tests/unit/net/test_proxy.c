/* The explicit proxy: CONNECT, absolute form, SOCKS; decisions and answers. */
#include "rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static struct rig r;
static int srv = -1;
static int srv2 = -1;

static bool begin(void)
{
	if (!rig_init(&r, SB_PROVIDER_NAMESPACE))
		return false;
	(void)rig_pin(&r, "web.example", WEB);
	(void)rig_pin(&r, "two.example", OTHER);
	if (!rig_rule(&r, "web.example") || !rig_rule(&r, "two.example") ||
	    !rig_rule(&r, "web.example:5000/any") || !rig_rule(&r, "dead.example") ||
	    !rig_rule(&r, "web.example:5999/any") || !rig_rule(&r, "deny evil.example") ||
	    !rig_rule(&r, WEB ":5000/any") || !rig_start(&r))
		return false;
	return true;
}

static void finish(void)
{
	sb_fd_close(&srv);
	sb_fd_close(&srv2);
	rig_done(&r);
}

static int proxy(void)
{
	return rig_dial(&r, "127.0.0.1", SB_NET_PROXY_PORT);
}

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

TEST(connect_opaque)
{
	const struct sb_ipc_net_event *ev;
	int cl;
	int up;

	if (!begin())
		return;
	srv = rig_serve(WEB, 5000);
	cl = proxy();
	/* what comes with the request is part of the tunnel */
	rig_say(&r, cl,
		"CONNECT Web.Example:5000 HTTP/1.1\r\nHost: web.example:5000\r\n"
		"Proxy-Connection: keep-alive\r\n\r\nearly");
	up = rig_accept(&r, srv);
	CHECK(rig_expect(&r, cl, established));
	CHECK(rig_expect(&r, up, "early"));
	rig_say(&r, up, "pong");
	CHECK(rig_expect(&r, cl, "pong"));
	ev = rig_event(&r, SB_NET_EV_CONNECT, 0);
	REQUIRE(ev);
	CHECK_EQ(ev->via, SB_NET_VIA_CONNECT);
	CHECK_EQ(ev->allow, 1);
	CHECK_STR(ev->name, "web.example");
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(connect_inspected)
{
	static const char *const snis[] = { "web.example", "evil.example" };

	for (int i = 0; i < 2; i++) {
		uint8_t hello[600];
		size_t len = rig_hello(snis[i], false, hello, sizeof(hello));
		char buf[64];
		int cl;
		int up;

		if (!begin())
			return;
		srv = rig_serve(WEB, 443);
		cl = proxy();
		rig_say(&r, cl, "CONNECT web.example:443 HTTP/1.1\r\nHost: web.example:443\r\n\r\n");
		CHECK(rig_expect(&r, cl, established));
		up = rig_accept(&r, srv);
		rig_send(&r, cl, hello, len);
		if (i == 0) {
			CHECK_EQ(rig_read(&r, up, hello, len), len);
		} else {
			CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
			CHECK_MEM(buf, "\x15\x03\x03\x00\x02\x02\x31", 7);
			CHECK(rig_is_reset(&r, up));
			CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 0)->reason, SB_NET_TLS_NAME);
		}
		sb_fd_close(&cl);
		sb_fd_close(&up);
		finish();
	}
}

TEST(http_answers)
{
	static const struct {
		const char *bytes;
		const char *status;
		const char *reason;
	} cases[] = {
		{ "CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "403", "name-denied" },
		{ "CONNECT other.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "403",
		  "name-not-allowed" },
		{ "CONNECT web.example:22 HTTP/1.1\r\nHost: x\r\n\r\n", "403",
		  "port-not-allowed" },
		{ "CONNECT 127.0.0.1:5000 HTTP/1.1\r\nHost: x\r\n\r\n", "403",
		  "address-forbidden" },
		{ "CONNECT [::1]:5000 HTTP/1.1\r\nHost: x\r\n\r\n", "403", "address-forbidden" },
		{ "CONNECT [::ffff:127.0.0.1]:5000 HTTP/1.1\r\nHost: x\r\n\r\n", "403",
		  "address-forbidden" },
		{ "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n", "403",
		  "address-forbidden" },
		{ "CONNECT 2130706433:5000 HTTP/1.1\r\nHost: x\r\n\r\n", "400",
		  "name-malformed" },
		{ "CONNECT 0x7f.1:5000 HTTP/1.1\r\nHost: x\r\n\r\n", "400", "name-malformed" },
		{ "CONNECT web.example HTTP/1.1\r\nHost: x\r\n\r\n", "400", "proxy-malformed" },
		{ "CONNECT web.example:0443 HTTP/1.1\r\nHost: x\r\n\r\n", "400",
		  "proxy-malformed" },
		{ "CONNECT web.example:65536 HTTP/1.1\r\nHost: x\r\n\r\n", "400",
		  "proxy-malformed" },
		{ "CONNECT web.example:0 HTTP/1.1\r\nHost: x\r\n\r\n", "400", "proxy-malformed" },
		{ "CONNECT user@web.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "400",
		  "proxy-malformed" },
		{ "CONNECT web.example:5999 HTTP/1.1\r\nHost: x\r\n\r\n", "502",
		  "connect-failed" },
		{ "CONNECT dead.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "502",
		  "resolve-failed" },
		{ "GET / HTTP/1.1\r\nHost: web.example\r\n\r\n", "400", "proxy-malformed" },
		{ "GET https://web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n", "400",
		  "proxy-malformed" },
		{ "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403",
		  "name-denied" },
		{ "GET http://web.example/ HTTP/1.1\r\nHost: two.example\r\n\r\n", "403",
		  "http-host-mismatch" },
		{ "GET http://web.example:443/ HTTP/1.1\r\nHost: web.example:443\r\n\r\n", "403",
		  "not-tls" },
		{ "GET http://dead.example/ HTTP/1.1\r\nHost: dead.example\r\n\r\n", "502",
		  "resolve-failed" },
		{ "GET http://u:p@web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n", "400",
		  "proxy-malformed" },
		{ "\x16\x03\x01\x02", "400", "proxy-malformed" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		char want[128];
		char buf[2048];
		int cl;

		if (!begin())
			return;
		cl = proxy();
		rig_say(&r, cl, cases[i].bytes);
		CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
		(void)snprintf(want, sizeof(want), "\r\nX-Sendbox-Reason: %s\r\n",
			       cases[i].reason);
		if (strncmp(buf, "HTTP/1.1 ", 9) != 0 ||
		    strncmp(buf + 9, cases[i].status, 3) != 0 || !strstr(buf, want))
			t_fail(__FILE__, __LINE__, "case %zu: %s", i, buf);
		CHECK_EQ(rig_count(&r, SB_NET_EV_CONNECT), 1);
		sb_fd_close(&cl);
		CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 0);
		finish();
	}
}

TEST(absolute_form)
{
	const struct sb_ipc_net_event *ev;
	int cl;
	int up;
	int up2;

	if (!begin())
		return;
	srv = rig_serve(WEB, 80);
	srv2 = rig_serve(OTHER, 80);
	cl = proxy();
	rig_say(&r, cl,
		"GET http://web.example/a?b HTTP/1.1\r\nAccept: */*\r\nHost: web.example\r\n"
		"Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n\r\n");
	up = rig_accept(&r, srv);
	CHECK(rig_expect(&r, up,
			 "GET /a?b HTTP/1.1\r\nHost: web.example\r\nAccept: */*\r\n\r\n"));
	rig_say(&r, up, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
	CHECK(rig_expect(&r, cl, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"));

	/* the same upstream, then two requests at once, the second for somebody else */
	rig_say(&r, cl,
		"POST http://web.example HTTP/1.1\r\nHost: web.example\r\nContent-Length: 4\r\n\r\n"
		"bodyGET http://two.example/ HTTP/1.1\r\nHost: two.example\r\n\r\n");
	CHECK(rig_expect(&r, up,
			 "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 4\r\n\r\nbody"));
	CHECK(rig_quiet(&r, srv2, 30)); /* not before the response */
	rig_say(&r, up, "HTTP/1.1 204 No Content\r\n\r\n");
	CHECK(rig_expect(&r, cl, "HTTP/1.1 204 No Content\r\n\r\n"));
	up2 = rig_accept(&r, srv2);
	CHECK(up2 >= 0);
	CHECK(rig_expect(&r, up2, "GET / HTTP/1.1\r\nHost: two.example\r\n\r\n"));
	rig_say(&r, up2, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
	CHECK(rig_expect(&r, cl, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo"));

	/* and a third that is not allowed */
	rig_say(&r, cl, "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	CHECK(rig_expect(&r, cl, "HTTP/1.1 403 Forbidden\r\n"));
	ev = rig_event(&r, SB_NET_EV_CONNECT, 2);
	REQUIRE(ev);
	CHECK_EQ(ev->allow, 0);
	CHECK_STR(ev->name, "evil.example");
	ev = rig_event(&r, SB_NET_EV_CONNECT, 1);
	CHECK_STR(ev->name, "two.example");
	CHECK_EQ(ev->via, SB_NET_VIA_HTTP);
	CHECK_EQ(ev->allow, 1);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 2);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	sb_fd_close(&up2);
	finish();
}

static void socks_ok(const void *request, size_t len, const void *reply, size_t reply_len)
{
	uint8_t got[64];
	int cl;
	int up;

	if (!begin())
		return;
	srv = rig_serve(WEB, 5000);
	cl = proxy();
	if (*(const uint8_t *)request == 5) {
		rig_send(&r, cl, "\x05\x02\x00\x01", 4);
		CHECK_EQ(rig_read(&r, cl, got, 2), 2);
		CHECK_MEM(got, "\x05\x00", 2);
	}
	rig_send(&r, cl, request, len);
	up = rig_accept(&r, srv);
	CHECK_EQ(rig_read(&r, cl, got, reply_len), reply_len);
	CHECK_MEM(got, reply, reply_len);
	rig_say(&r, cl, "ping");
	CHECK(rig_expect(&r, up, "ping"));
	CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 0)->via, SB_NET_VIA_SOCKS);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(socks_connects)
{
	static const char ok5[] = "\x05\x00\x00\x01\x00\x00\x00\x00\x00";
	static const char ok4[] = "\x00\x5a\x00\x00\x00\x00\x00";

	socks_ok("\x05\x01\x00\x03\x0bweb.example\x13\x88", 18, ok5, 10);
	socks_ok("\x05\x01\x00\x01\x5d\xb8\xd8\x22\x13\x88", 10, ok5, 10);
	socks_ok("\x04\x01\x13\x88\x5d\xb8\xd8\x22me\x00", 11, ok4, 8);
	socks_ok("\x04\x01\x13\x88\x00\x00\x00\x01me\x00web.example\x00", 23, ok4, 8);
}

TEST(socks_refuses)
{
	static const struct {
		const char *bytes;
		size_t len;
		uint8_t code;
		enum sb_net_reason reason;
	} cases[] = {
		{ "\x05\x01\x00\x03\x0c" "evil.example\x01\xbb", 19, 2, SB_NET_NAME_DENIED },
		{ "\x05\x01\x00\x03\x0bweb.example\x00\x16", 18, 2, SB_NET_PORT_NOT_ALLOWED },
		{ "\x05\x01\x00\x01\x7f\x00\x00\x01\x13\x88", 10, 2, SB_NET_ADDR_FORBIDDEN },
		{ "\x05\x01\x00\x03\x0b" "evil\x00.examp\x13\x88", 18, 1, SB_NET_PROXY_MALFORMED },
		{ "\x05\x02\x00\x03\x0bweb.example\x13\x88", 18, 7, SB_NET_PROXY_COMMAND },
		{ "\x05\x03\x00\x03\x0bweb.example\x13\x88", 18, 7, SB_NET_PROXY_COMMAND },
		{ "\x05\x01\x00\x03\x0bweb.example\x17\x6f", 18, 5, SB_NET_CONNECT_FAILED },
		{ "\x04\x01\x01\xbb\x00\x00\x00\x01\x00" "evil.example\x00", 22, 91,
		  SB_NET_NAME_DENIED },
		{ "\x04\x02\x13\x88\x5d\xb8\xd8\x22\x00", 9, 91, SB_NET_PROXY_COMMAND },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		uint8_t got[64];
		int cl;

		if (!begin())
			return;
		cl = proxy();
		if (cases[i].bytes[0] == 5) {
			rig_send(&r, cl, "\x05\x01\x00", 3);
			CHECK_EQ(rig_read(&r, cl, got, 2), 2);
		}
		rig_send(&r, cl, cases[i].bytes, cases[i].len);
		CHECK(rig_read(&r, cl, got, sizeof(got)) >= 8);
		if (got[1] != cases[i].code)
			t_fail(__FILE__, __LINE__, "case %zu: code %d", i, got[1]);
		if (!rig_refused(&r, cases[i].reason))
			printf("# case %zu\n", i);
		sb_fd_close(&cl);
		finish();
	}
}

TEST(socks_method)
{
	uint8_t got[8];
	int cl;

	if (!begin())
		return;
	cl = proxy();
	rig_send(&r, cl, "\x05\x01\x02", 3); /* password only */
	CHECK_EQ(rig_read(&r, cl, got, sizeof(got)), 2);
	CHECK_MEM(got, "\x05\xff", 2);
	sb_fd_close(&cl);
	finish();
}
