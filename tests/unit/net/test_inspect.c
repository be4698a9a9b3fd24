/* Agreement of names: ClientHello and HTTP requests, upgrade, what is never sent upstream. */
#include "rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static struct rig r;
static int srv = -1;

static const char alert[] = "\x15\x03\x03\x00\x02\x02\x31"; /* fatal access_denied */

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

/* --- TLS --- */

static void tls_case(const char *rule, const char *to, const char *sni, bool ech,
		     enum sb_net_reason want)
{
	uint8_t hello[600];
	size_t len = rig_hello(sni, ech, hello, sizeof(hello));
	uint8_t got[600];
	char buf[64];
	int cl;
	int up;

	if (!begin(rule, 443))
		return;
	cl = rig_dial(&r, to, 443);
	up = rig_accept(&r, srv);
	rig_send(&r, cl, hello, len);
	if (want == SB_NET_OK) {
		CHECK_EQ(rig_read(&r, up, got, len), len);
		CHECK_MEM(got, hello, len);
		rig_say(&r, up, "server hello");
		CHECK(rig_expect(&r, cl, "server hello"));
		CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 0)->allow, 1);
	} else {
		CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
		CHECK_MEM(buf, alert, 7);
		CHECK(rig_refused(&r, want));
		if (up >= 0)
			CHECK(rig_is_reset(&r, up)); /* not a byte */
	}
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(tls_names)
{
	tls_case("web.example:443", "web.example", "web.example", false, SB_NET_OK);
	tls_case("web.example:443", "web.example", "WEB.example.", false, SB_NET_OK);
	tls_case("web.example:443", "web.example", "evil.example", false, SB_NET_TLS_NAME);
	tls_case("web.example:443", "web.example", "x.web.example", false, SB_NET_TLS_NAME);
	tls_case("web.example:443", "web.example", NULL, false, SB_NET_TLS_NO_NAME);
	tls_case("web.example:443", "web.example", "web.example", true, SB_NET_TLS_ECH);
	tls_case("web.example:443/auto", "web.example", "evil.example", false, SB_NET_TLS_NAME);
	tls_case("web.example:443/auto", "web.example", "web.example", false, SB_NET_OK);
	tls_case("web.example:443/any", "web.example", "evil.example", false, SB_NET_OK);
	/* a direct address has no name; a denied one is denied all the same */
	tls_case(WEB ":443", WEB, "whatever.example", false, SB_NET_OK);
	tls_case(WEB ":443", WEB, NULL, false, SB_NET_OK);
	tls_case(WEB ":443", WEB, "evil.example", false, SB_NET_NAME_DENIED);
}

TEST(tls_outer_name)
{
	uint8_t hello[600];
	size_t len = rig_hello("web.example", true, hello, sizeof(hello));
	int cl;
	int up;

	if (!rig_init(&r, SB_PROVIDER_NAMESPACE))
		return;
	(void)rig_pin(&r, "web.example", WEB);
	(void)rig_rule(&r, "web.example");
	r.plan->net.ech_outer = true;
	REQUIRE(rig_start(&r));
	srv = rig_serve(WEB, 443);
	cl = rig_dial(&r, "web.example", 443);
	up = rig_accept(&r, srv);
	rig_send(&r, cl, hello, len);
	CHECK_EQ(rig_read(&r, up, hello, len), len);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

/* One byte at a time, and split into records of one byte. */
TEST(tls_fragmented)
{
	uint8_t hello[600];
	uint8_t cut[4000];
	size_t len = rig_hello("web.example", false, hello, sizeof(hello));
	size_t n = 0;
	int cl;
	int up;

	if (!begin("web.example", 443))
		return;
	cl = rig_dial(&r, "web.example", 443);
	up = rig_accept(&r, srv);
	for (size_t i = 0; i < len; i++) {
		if (i == len - 1)
			CHECK(rig_quiet(&r, up, 10));
		rig_send(&r, cl, hello + i, 1);
		rig_spin(&r, 0);
	}
	CHECK_EQ(rig_read(&r, up, cut, len), len);
	CHECK_MEM(cut, hello, len);
	sb_fd_close(&cl);
	sb_fd_close(&up);

	for (size_t i = 5; i < len; i++) {
		memcpy(cut + n, "\x16\x03\x01\x00\x01", 5);
		cut[n + 5] = hello[i];
		n += 6;
	}
	cl = rig_dial(&r, "web.example", 443);
	up = rig_accept(&r, srv);
	rig_send(&r, cl, cut, n);
	CHECK_EQ(rig_read(&r, up, cut, n), n);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(not_tls)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum sb_net_reason reason;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n", 16, SB_NET_NOT_TLS },
		{ "SSH-2.0-x\r\n", 11, SB_NET_NOT_TLS },
		{ "\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9, SB_NET_TLS_MALFORMED },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		char buf[64];
		int cl;
		int up;

		if (!begin("web.example:443", 443))
			return;
		cl = rig_dial(&r, "web.example", 443);
		up = rig_accept(&r, srv);
		rig_send(&r, cl, cases[i].bytes, cases[i].len);
		CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
		CHECK_MEM(buf, alert, 7);
		CHECK(rig_is_reset(&r, up));
		CHECK(rig_refused(&r, cases[i].reason));
		sb_fd_close(&cl);
		sb_fd_close(&up);
		finish();
	}
}

/* On an https port the server's bytes wait for the client's hello; an end in it ends both. */
TEST(server_does_not_speak_first)
{
	int cl;
	int up;

	if (!begin("web.example:443", 443))
		return;
	cl = rig_dial(&r, "web.example", 443);
	up = rig_accept(&r, srv);
	rig_say(&r, up, "220 ready\r\n");
	CHECK(rig_quiet(&r, cl, 50));
	CHECK_EQ(shutdown(cl, SHUT_WR), 0);
	CHECK(rig_is_reset(&r, cl));
	CHECK(rig_is_reset(&r, up));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(server_speaks_first)
{
	int cl;
	int up;

	if (!begin("web.example:25", 25))
		return;
	cl = rig_dial(&r, "web.example", 25);
	up = rig_accept(&r, srv);
	rig_say(&r, up, "220 ready\r\n");
	CHECK(rig_expect(&r, cl, "220 ready\r\n"));
	rig_say(&r, cl, "EHLO me\r\n");
	CHECK(rig_expect(&r, up, "EHLO me\r\n"));
	rig_say(&r, up, "250 ok\r\n");
	CHECK(rig_expect(&r, cl, "250 ok\r\n"));
	CHECK_EQ(rig_event(&r, SB_NET_EV_CONNECT, 0)->allow, 1);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

/* --- HTTP --- */

#define GET "GET / HTTP/1.1\r\nHost: web.example\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

TEST(http_requests_go_through)
{
	static const char *const good[] = {
		GET,
		"GET http://web.example/x HTTP/1.1\r\nHost: WEB.example:80\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\n\r\nabcde",
		"POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n0\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: web.example.\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: web.example\r\n\r\n",
		GET GET GET,
	};
	int cl;
	int up;

	if (!begin("web.example:80", 80))
		return;
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	for (size_t i = 0; i < SB_ARRAY_LEN(good); i++) {
		bool head = strncmp(good[i], "HEAD", 4) == 0;

		rig_say(&r, cl, good[i]);
		CHECK(rig_expect(&r, up, good[i]));
		rig_say(&r, up, head ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" : OK);
		CHECK(rig_expect(&r, cl, head ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" : OK));
	}
	rig_say(&r, up, "HTTP/1.1 100 Continue\r\n\r\n" OK
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
	CHECK(rig_expect(&r, cl,
			 "HTTP/1.1 100 Continue\r\n\r\n" OK
			 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"));
	CHECK_EQ(rig_count(&r, SB_NET_EV_CONNECT), 1);
	CHECK_EQ(rig_count(&r, SB_NET_EV_REQUEST), 0);
	/* everything is answered, so a refusal can be told between the responses */
	rig_say(&r, cl, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	CHECK(rig_expect(&r, cl, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"));
	CHECK(rig_is_reset(&r, up));
	CHECK_EQ(rig_event(&r, SB_NET_EV_REQUEST, 0)->reason, SB_NET_HTTP_HOST);
	sb_fd_close(&cl);
	sb_fd_close(&up);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 1);
	finish();
}

TEST(http_refused)
{
	static const struct {
		const char *bytes;
		const char *status;
		enum sb_net_reason reason;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403", SB_NET_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: web.example:8080\r\n\r\n", "403", SB_NET_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: " WEB "\r\n\r\n", "403", SB_NET_HTTP_HOST },
		{ "GET / HTTP/1.0\r\n\r\n", "403", SB_NET_HTTP_HOST },
		{ "GET / HTTP/1.1\r\n\r\n", "400", SB_NET_HTTP_MALFORMED },
		{ "GET / HTTP/1.1\r\nHost: web.example\r\nHost: web.example\r\n\r\n", "400",
		  SB_NET_HTTP_MALFORMED },
		{ "GET / HTTP/1.1\r\nHost: web.example@evil.example\r\n\r\n", "400",
		  SB_NET_HTTP_MALFORMED },
		{ "GET http://evil.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n", "403",
		  SB_NET_HTTP_HOST },
		{ "GET http://web.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403",
		  SB_NET_HTTP_HOST },
		{ "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		  "400", SB_NET_HTTP_MALFORMED },
		{ "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\n"
		  "Content-Length: 6\r\n\r\nabcdef",
		  "400", SB_NET_HTTP_MALFORMED },
		{ "GET / HTTP/1.1\r\nHost : web.example\r\n\r\n", "400", SB_NET_HTTP_MALFORMED },
		{ "GET / HTTP/1.1\nHost: web.example\n\n", "400", SB_NET_HTTP_MALFORMED },
		{ "GET / HTTP/1.1\r\nHost: web.example\r\nUpgrade: TLS/1.0\r\n"
		  "Connection: Upgrade\r\n\r\n",
		  "403", SB_NET_HTTP_UPGRADE },
		{ "GET / HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade\r\n"
		  "Upgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
		  "400", SB_NET_HTTP_MALFORMED },
		{ "GET / HTTP/1.1\r\nHost: web.example\r\nUpgrade: websocket\r\n\r\n", "403",
		  SB_NET_HTTP_UPGRADE },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "403", SB_NET_HTTP_UPGRADE },
		{ "CONNECT evil.example:443 HTTP/1.1\r\nHost: web.example\r\n\r\n", "403",
		  SB_NET_PROXY_COMMAND },
		{ "SSH-2.0-OpenSSH_9.2\r\n", "400", SB_NET_NOT_HTTP },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		char want[256];
		char buf[2048];
		int cl;
		int up;

		if (!begin("web.example:80", 80))
			return;
		cl = rig_dial(&r, "web.example", 80);
		up = rig_accept(&r, srv);
		rig_say(&r, cl, cases[i].bytes);
		CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
		(void)snprintf(want, sizeof(want), "\r\nX-Sendbox-Reason: %s\r\n",
			       sb_net_reason_name(cases[i].reason));
		if (strncmp(buf + 9, cases[i].status, 3) != 0 || !strstr(buf, want))
			t_fail(__FILE__, __LINE__, "case %zu: %s", i, buf);
		CHECK(strstr(buf, "\r\nConnection: close\r\n"));
		CHECK(strstr(buf, "web.example"));
		if (!rig_refused(&r, cases[i].reason))
			printf("# case %zu\n", i);
		CHECK(rig_is_reset(&r, up)); /* not a byte of it */
		sb_fd_close(&cl);
		sb_fd_close(&up);
		finish();
	}
}

/* A good request with a bad one behind it: the good one is served, the bad one never seen. */
TEST(http_pipelined)
{
	char buf[512];
	int cl;
	int up;

	if (!begin("web.example:80", 80))
		return;
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, GET "GET /secret HTTP/1.1\r\nHost: evil.example\r\n\r\n" GET);
	CHECK(rig_expect(&r, up, GET));
	CHECK(rig_quiet(&r, up, 30));
	CHECK_EQ(rig_event(&r, SB_NET_EV_REQUEST, 0)->reason, SB_NET_HTTP_HOST);
	rig_say(&r, up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh");
	rig_spin(&r, 5);
	rig_say(&r, up, "i");
	CHECK(rig_expect(&r, cl, OK "HTTP/1.1 403"));
	CHECK_EQ(rig_rest(&r, cl, buf, sizeof(buf)), 0);
	CHECK(rig_is_reset(&r, up));
	CHECK_EQ(rig_count(&r, SB_NET_EV_CONNECT), 1);
	CHECK_EQ(rig_count(&r, SB_NET_EV_REQUEST), 1);
	sb_fd_close(&cl);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CLOSED), 1);
	sb_fd_close(&up);

	/* a response without a visible end: only the end is told */
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, GET "GET /secret HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	CHECK(rig_expect(&r, up, GET));
	rig_say(&r, up, "HTTP/1.1 200 OK\r\n\r\nto the end");
	sb_fd_close(&up);
	(void)rig_rest(&r, cl, buf, sizeof(buf));
	CHECK_STR(buf, "HTTP/1.1 200 OK\r\n\r\nto the end");
	sb_fd_close(&cl);
	finish();
}

#define WS                                                                                         \
	"GET /ws HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

TEST(websocket)
{
	static const char switching[] =
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
	int cl;
	int up;

	if (!begin("web.example:80", 80))
		return;
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, WS "\x81\x05hello");
	CHECK(rig_expect(&r, up, WS));
	CHECK(rig_quiet(&r, up, 50)); /* held until the server has agreed */
	rig_say(&r, up, switching);
	CHECK(rig_expect(&r, cl, switching));
	CHECK(rig_expect(&r, up, "\x81\x05hello"));
	rig_say(&r, up, "\x81\x02yo");
	CHECK(rig_expect(&r, cl, "\x81\x02yo"));
	sb_fd_close(&cl);
	sb_fd_close(&up);

	/* refused by the server: the next request is checked as ever */
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, WS "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	CHECK(rig_expect(&r, up, WS));
	rig_say(&r, up, OK);
	CHECK(rig_expect(&r, cl, OK "HTTP/1.1 403"));
	CHECK(rig_is_reset(&r, up));
	sb_fd_close(&cl);
	sb_fd_close(&up);

	/* nobody asked for it */
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	rig_say(&r, cl, GET);
	CHECK(rig_expect(&r, up, GET));
	rig_say(&r, up, switching);
	CHECK(rig_is_reset(&r, cl));
	CHECK(rig_is_reset(&r, up));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

/* An offer of HTTP/2 in plain text does not reach the server. */
TEST(http2_offer)
{
	int cl;
	int up;

	if (!begin("web.example:80", 80))
		return;
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	rig_say(&r, cl,
		"POST /x HTTP/1.1\r\nConnection: Upgrade, close , HTTP2-Settings\r\n"
		"Host: web.example\r\nContent-Length: 2\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
		"Upgrade: h2c\r\nAccept: */*\r\n\r\nhi");
	CHECK(rig_expect(&r, up,
			 "POST /x HTTP/1.1\r\nConnection: close\r\nHost: web.example\r\n"
			 "Content-Length: 2\r\nAccept: */*\r\n\r\nhi"));
	rig_say(&r, up, OK);
	CHECK(rig_expect(&r, cl, OK));
	rig_say(&r, cl,
		"GET / HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade, HTTP2-Settings\r\n"
		"Upgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n");
	CHECK(rig_expect(&r, up, GET));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

TEST(http_on_an_auto_port)
{
	static const struct {
		const char *bytes;
		enum sb_net_reason reason;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: web.example:8000\r\n\r\n", SB_NET_OK },
		{ "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", SB_NET_HTTP_HOST },
		{ "get / HTTP/1.1\r\nHost: evil.example\r\n\r\n", SB_NET_HTTP_HOST },
		{ "\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", SB_NET_HTTP_MALFORMED },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SB_NET_HTTP_UPGRADE },
		{ "NICK me\r\nUSER me\r\n", SB_NET_OK },
		{ "\x01\x02\x03", SB_NET_OK },
		{ "SSH-2.0-OpenSSH_9.2\r\n", SB_NET_OK },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		char buf[2048];
		int cl;
		int up;

		if (!begin("web.example:8000", 8000))
			return;
		cl = rig_dial(&r, "web.example", 8000);
		up = rig_accept(&r, srv);
		rig_say(&r, cl, cases[i].bytes);
		if (cases[i].reason == SB_NET_OK) {
			CHECK(rig_expect(&r, up, cases[i].bytes));
		} else {
			(void)rig_rest(&r, cl, buf, sizeof(buf));
			if (!rig_refused(&r, cases[i].reason))
				printf("# case %zu\n", i);
			CHECK(rig_is_reset(&r, up));
		}
		sb_fd_close(&cl);
		sb_fd_close(&up);
		finish();
	}
}

/* Large bodies: spliced down, spliced up, and the next request is found behind them. */
TEST(http_large_bodies)
{
	static uint8_t block[1 << 20];
	char head[128];
	int cl;
	int up;

	if (!begin("web.example:80", 80))
		return;
	cl = rig_dial(&r, "web.example", 80);
	up = rig_accept(&r, srv);
	for (int round = 0; round < 2; round++) {
		size_t got = 0;
		size_t sent = 0;

		(void)snprintf(head, sizeof(head),
			       "PUT / HTTP/1.1\r\nHost: web.example\r\nContent-Length: %zu\r\n\r\n",
			       sizeof(block));
		rig_say(&r, cl, head);
		CHECK(rig_expect(&r, up, head));
		while (got < sizeof(block)) {
			ssize_t n = send(cl, block + sent, sizeof(block) - sent, MSG_NOSIGNAL);

			sent += n > 0 ? (size_t)n : 0;
			rig_spin(&r, 0);
			n = recv(up, block, sizeof(block) - got, 0);
			got += n > 0 ? (size_t)n : 0;
		}
		(void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
			       sizeof(block));
		rig_say(&r, up, head);
		CHECK(rig_expect(&r, cl, head));
		for (got = sent = 0; got < sizeof(block);) {
			ssize_t n = send(up, block + sent, sizeof(block) - sent, MSG_NOSIGNAL);

			sent += n > 0 ? (size_t)n : 0;
			rig_spin(&r, 0);
			n = recv(cl, block, sizeof(block) - got, 0);
			got += n > 0 ? (size_t)n : 0;
		}
	}
	rig_say(&r, cl, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	CHECK(rig_expect(&r, cl, "HTTP/1.1 403"));
	sb_fd_close(&cl);
	sb_fd_close(&up);
	finish();
}

/* Open mode: any name inside, but one that a deny rule names. */
TEST(open_mode)
{
	static const char *const hosts[] = { "other.example", "evil.example" };

	for (int i = 0; i < 2; i++) {
		uint8_t hello[600];
		size_t len = rig_hello(hosts[i], false, hello, sizeof(hello));
		int cl;
		int up;

		if (!rig_init(&r, SB_PROVIDER_NAMESPACE))
			return;
		r.plan->net.mode = SB_NET_OPEN;
		(void)rig_pin(&r, "web.example", WEB);
		(void)rig_rule(&r, "deny evil.example");
		REQUIRE(rig_start(&r));
		srv = rig_serve(WEB, 443);
		cl = rig_dial(&r, "web.example", 443);
		up = rig_accept(&r, srv);
		rig_send(&r, cl, hello, len);
		if (i == 0)
			CHECK_EQ(rig_read(&r, up, hello, len), len);
		else
			CHECK(rig_is_reset(&r, up));
		sb_fd_close(&cl);
		sb_fd_close(&up);
		finish();
	}
}
