/* Messages after RFC 9112, and what OpenShell, gh-aw and others were attacked with. */
#include "wire/http1.h"

#include <stdlib.h>

#include "t.h"

static struct sb_http_request r;
static const char *why;
static char *input; /* of the last message; r borrows from it */

/* Exactly as many bytes as there are, so that the sanitizer sees a read behind them. */
static char *copy(const char *p, size_t len)
{
	free(input);
	input = calloc(1, len + (len == 0));
	if (!input)
		abort();
	memcpy(input, p, len);
	return input;
}

static int request(const char *p, size_t len)
{
	why = NULL;
	return sb_http_request_parse(copy(p, len), len, &r, &why);
}
#define REQ(lit) request(lit, sizeof(lit) - 1)

static bool is(const struct sb_http_str *s, const char *want)
{
	bool ok = s->len == strlen(want) && (s->len == 0 || memcmp(s->p, want, s->len) == 0);

	if (!ok)
		printf("# got \"%.*s\", want \"%s\"\n", (int)s->len, s->p ? s->p : "", want);
	return ok;
}

TEST(origin)
{
	CHECK_EQ(REQ("GET /hello.txt?q=1 HTTP/1.1\r\nHost: www.example.com:8080\r\n"
		     "User-Agent:curl/7.64.1\r\nAccept-Language: \t en, mi \t\r\nX:\r\n\r\nrest"), 0);
	CHECK_EQ(r.head_len, 116);
	CHECK(is(&r.method, "GET") && is(&r.target, "/hello.txt?q=1") && is(&r.path, "/hello.txt?q=1"));
	CHECK_EQ(r.minor, 1);
	CHECK_EQ(r.form, SB_HTTP_ORIGIN);
	CHECK(r.has_host && is(&r.host, "www.example.com:8080"));
	CHECK_EQ(r.body, SB_HTTP_NO_BODY);
	CHECK(!r.close && !r.upgrade && !r.expect_continue);
	REQUIRE(r.n_fields == 4);
	CHECK(is(&r.fields[1].name, "User-Agent") && is(&r.fields[1].value, "curl/7.64.1"));
	CHECK(is(&r.fields[2].value, "en, mi"));
	CHECK(is(&r.fields[2].line, "Accept-Language: \t en, mi \t\r\n"));
	CHECK(is(&r.fields[3].value, "") && is(&r.fields[3].line, "X:\r\n"));
}

TEST(absolute)
{
	CHECK_EQ(REQ("GET HTTP://www.example.org:81/pub/WWW/?a HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
		 0);
	CHECK_EQ(r.form, SB_HTTP_ABSOLUTE);
	CHECK(is(&r.scheme, "HTTP") && is(&r.authority, "www.example.org:81"));
	CHECK(is(&r.path, "/pub/WWW/?a") && is(&r.host, "evil.example"));
	CHECK_EQ(REQ("GET https://[2001:db8::1]?x HTTP/1.0\r\n\r\n"), 0);
	CHECK(is(&r.scheme, "https") && is(&r.authority, "[2001:db8::1]") && is(&r.path, "?x"));
	CHECK(!r.has_host && r.close);
	CHECK_EQ(REQ("GET http://example.com HTTP/1.1\r\nHost: example.com\r\n\r\n"), 0);
	CHECK(is(&r.path, ""));
}

TEST(connect)
{
	CHECK_EQ(REQ("CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com:443\r\n"
		     "Proxy-Connection: Keep-Alive\r\n\r\n\x16\3\1"), 0);
	CHECK_EQ(r.form, SB_HTTP_AUTHORITY);
	CHECK(is(&r.authority, "www.example.com:443") && is(&r.path, ""));
	CHECK_EQ(REQ("CONNECT [::1]:443 HTTP/1.0\r\nContent-Length: 0\r\n\r\n"), 0);
	CHECK(is(&r.authority, "[::1]:443"));
}

TEST(asterisk)
{
	CHECK_EQ(REQ("OPTIONS * HTTP/1.1\r\nHost: www.example.com\r\n\r\n"), 0);
	CHECK_EQ(r.form, SB_HTTP_ASTERISK);
	CHECK(is(&r.path, ""));
}

TEST(bodies)
{
	CHECK_EQ(REQ("POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 9223372036854775807\r\n\r\n"), 0);
	CHECK_EQ(r.body, SB_HTTP_LENGTH);
	CHECK_EQ(r.length, INT64_MAX);
	CHECK_EQ(REQ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), 0);
	CHECK_EQ(r.body, SB_HTTP_LENGTH);
	CHECK_EQ(r.length, 0);
	CHECK_EQ(REQ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"), 0);
	CHECK_EQ(r.body, SB_HTTP_CHUNKED);
}

TEST(connection_tokens)
{
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, , Close,x-y\r\n\r\n"), 0);
	CHECK(r.close);
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n"), 0);
	CHECK(!r.close);
	CHECK_EQ(REQ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 0);
	CHECK(!r.close);
	CHECK_EQ(REQ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nConnection: close\r\n\r\n"), 0);
	CHECK(r.close);
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
		     "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"), 0);
	CHECK(r.upgrade && is(&r.upgrade_to, "h2c"));
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"), 0);
	CHECK(!r.upgrade && is(&r.upgrade_to, "websocket"));
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n"), 0);
	CHECK(!r.upgrade);
	CHECK_EQ(REQ("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"), 0);
	CHECK(!r.upgrade);
	CHECK_EQ(REQ("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"), 0);
	CHECK(r.expect_continue);
}

TEST(every_prefix_wants_more)
{
	static const char m[] = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n"
		"Transfer-Encoding: chunked\r\n\r\n";

	for (size_t n = 0; n < sizeof(m) - 1; n++)
		if (request(m, n) != SB_HTTP_MORE)
			t_fail(__FILE__, __LINE__, "%zu bytes", n);
	CHECK_EQ(REQ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n"
		     "Transfer-Encoding: chunked\r\n\r\n"), 0);
}

struct bad {
	const char *why;
	const char *p;
	size_t len;
};
#define BAD(why, lit) { why, lit, sizeof(lit) - 1 }
#define GET(fields) "GET / HTTP/1.1\r\n" fields "\r\n"
#define GETH(fields) "GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

static const struct bad bad_requests[] = {
	/* the request line */
	BAD("blank before the request line", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("blank before the request line", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("blank before the request line", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("blank before the request line", "\vGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	BAD("HTTP/2 prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	BAD("HTTP/2 prior knowledge", "PRI * HTTP/2.0\r\n"),
	BAD("malformed request line", "GET\r\n"),
	BAD("malformed request line", "GET\t/ HTTP/1.1\r\n"),
	BAD("malformed request line", "GE(T / HTTP/1.1\r\n"),
	BAD("malformed request line", "G\0ET / HTTP/1.1\r\n"),
	BAD("malformed request line", "GET  / HTTP/1.1\r\n"),
	BAD("request line without version", "GET /\r\n"),
	BAD("request line without version", "GET \r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/1.1 \r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET /  HTTP/1.1\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET /a b HTTP/1.1\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/1.2\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/1.10\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/2.0\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/0.9\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/01.1\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / http/1.1\r\n"),
	BAD("version is not HTTP/1.0 or HTTP/1.1", "GET / HTTP/1.\r\n"),
	BAD("bare line feed", "GET / HTTP/1.1\nHost: a\n\n"),
	BAD("bare carriage return", "GET / HTTP/1.1\r\r\n"),
	BAD("bare carriage return", "GET /\rx HTTP/1.1\r\n"),
	BAD("method too long",
	    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
	/* the target */
	BAD("malformed request target", "GET example.com HTTP/1.1\r\n"),
	BAD("malformed request target", "GET http:/example.com/ HTTP/1.1\r\n"),
	BAD("malformed request target", "GET example.com:80 HTTP/1.1\r\n"),
	BAD("malformed request target", "GET *x HTTP/1.1\r\n"),
	BAD("target * without OPTIONS", "GET * HTTP/1.1\r\n"),
	BAD("target * without OPTIONS", "options * HTTP/1.1\r\n"),
	BAD("scheme of the target is not http", "GET ftp://example.com/ HTTP/1.1\r\n"),
	BAD("scheme of the target is not http", "GET ://example.com/ HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "GET /a\0b HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "GET /a\tb HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "GET /\x7f HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "GET /\xc3\xa4 HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "GET /#x HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "GET http://allowed#@evil/ HTTP/1.1\r\n"),
	BAD("malformed host in the request target", "GET http://user@host/ HTTP/1.1\r\n"),
	BAD("malformed host in the request target", "GET http://allowed:x@evil/ HTTP/1.1\r\n"),
	BAD("malformed host in the request target", "GET http://allowed:80@evil/ HTTP/1.1\r\n"),
	BAD("malformed host in the request target", "GET http:/// HTTP/1.1\r\n"),
	BAD("malformed host in the request target", "GET http://a\\@b/ HTTP/1.1\r\n"),
	BAD("malformed host in the request target", "GET http://a%2eb/ HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT example.com HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT example.com: HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT :443 HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT / HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT http://example.com:443/ HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT user@example.com:443 HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT example.com:0443 HTTP/1.1\r\n"),
	BAD("malformed host or port in CONNECT", "CONNECT 2606:2800:220::1:443 HTTP/1.1\r\n"),
	BAD("illegal character in the request target", "CONNECT evil\0.allowed.com:443 HTTP/1.1\r\n"),
	BAD("CONNECT in another case", "Connect example.com:443 HTTP/1.1\r\n"),
	BAD("CONNECT with a body", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
	BAD("CONNECT with a body",
	    "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
	/* fields */
	BAD("bare line feed", GETH("X: a\n")),
	BAD("bare line feed", "GET / HTTP/1.1\r\nHost: a\r\n\n"),
	BAD("bare line feed", "GET / HTTP/1.1\r\nHost: a\n\r\n"),
	BAD("bare line feed", "GET / HTTP/1.1\r\n\n"),
	BAD("folded header line", GETH("X: a\r\n b\r\n")),
	BAD("folded header line", GETH("X: a\r\n\tb\r\n")),
	BAD("folded header line", GET(" Host: a\r\n")),
	BAD("folded header line", GETH(" \r\n")),
	BAD("space before the colon", GETH("X : a\r\n")),
	BAD("space before the colon", GETH("Transfer-Encoding\t: chunked\r\n")),
	BAD("malformed field name", GETH("X\0Y: a\r\n")),
	BAD("malformed field name", GETH("X\rY: a\r\n")),
	BAD("malformed field name", GETH("\x0bX: a\r\n")),
	BAD("malformed field name", GETH("X(y): a\r\n")),
	BAD("malformed field name", GETH("\xe4: a\r\n")),
	BAD("space before the colon", GETH("no colon\r\n")),
	BAD("malformed field name", GETH("nocolon\r\n")),
	BAD("empty field name", GETH(": a\r\n")),
	BAD("bare carriage return", GETH("X: a\rY: b\r\n")),
	BAD("bare carriage return", GETH("X: a\r\r\n")),
	BAD("control character in a header field", GETH("X: a\0b\r\n")),
	BAD("control character in a header field", GETH("X: a\x7f\r\n")),
	BAD("control character in a header field", GETH("X: a\x1b[0m\r\n")),
	BAD("control character in a header field", GETH("X: \x0b\r\n")),
	/* Host */
	BAD("no Host field", GET("")),
	BAD("no Host field", GET("X-Host: a\r\n")),
	BAD("several Host fields", GETH("Host: b\r\n")),
	BAD("several Host fields", GETH("HOST: a\r\n")),
	BAD("several Host fields", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
	BAD("malformed Host field", GET("Host:\r\n")),
	BAD("malformed Host field", GET("Host: a b\r\n")),
	BAD("malformed Host field", GET("Host: a, b\r\n")),
	BAD("malformed Host field", GET("Host: user@a\r\n")),
	BAD("malformed Host field", GET("Host: a/b\r\n")),
	BAD("malformed Host field", GET("Host: a:b\r\n")),
	BAD("malformed Host field", GET("Host: ::1\r\n")),
	BAD("malformed Host field", GET("Host: http://a\r\n")),
	/* framing */
	BAD("Content-Length with Transfer-Encoding",
	    GETH("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")),
	BAD("Content-Length with Transfer-Encoding",
	    GETH("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n")),
	BAD("several Content-Length fields", GETH("Content-Length: 5\r\nContent-Length: 6\r\n")),
	BAD("several Content-Length fields", GETH("Content-Length: 5\r\ncontent-length: 5\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 5, 5\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: +5\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: -5\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 0x5\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 5 5\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 05\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 1e2\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 5.0\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length:\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: \"5\"\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 9223372036854775808\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 18446744073709551621\r\n")),
	BAD("malformed Content-Length", GETH("Content-Length: 99999999999999999999\r\n")),
	BAD("several Transfer-Encoding fields",
	    GETH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: chunked, chunked\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: gzip, chunked\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: chunked, identity\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: identity\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: xchunked\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: \"chunked\"\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: chunked;q=1\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding: chunked,\r\n")),
	BAD("a Transfer-Encoding other than chunked", GETH("Transfer-Encoding:\r\n")),
	BAD("Transfer-Encoding in HTTP/1.0",
	    "GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("malformed Connection field", GETH("Connection: close; x\r\n")),
	BAD("several Upgrade fields", GETH("Upgrade: websocket\r\nUpgrade: h2c\r\n")),
};

TEST(refused)
{
	for (size_t i = 0; i < sizeof(bad_requests) / sizeof(bad_requests[0]); i++) {
		const struct bad *b = &bad_requests[i];
		int k;

		r.head_len = 77;
		k = request(b->p, b->len);
		if (k != -EBADMSG || !why || strcmp(why, b->why) != 0 || r.head_len != 77)
			t_fail(__FILE__, __LINE__, "%zu: %d, \"%s\", want \"%s\"", i, k,
			       why ? why : "", b->why);
	}
}

/* tchar of RFC 9110 5.6.2 */
TEST(tokens)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (unsigned int c = 0; c < 256; c++) {
		char m[] = "GET / HTTP/1.1\r\nHost: a\r\nX?Y: z\r\n\r\n";
		bool want = c == ':' || (c != 0 && strchr(token, (int)c));

		m[26] = (char)c;
		if (request(m, sizeof(m) - 1) != (want ? 0 : -EBADMSG))
			t_fail(__FILE__, __LINE__, "byte %u in a name", c);
		memcpy(m + 25, "X:Y? z", 6);
		m[28] = (char)c;
		want = c == '\t' || (c >= 0x20 && c != 0x7f);
		if (request(m, sizeof(m) - 1) != (want ? 0 : -EBADMSG))
			t_fail(__FILE__, __LINE__, "byte %u in a value", c);
	}
}

TEST(host_characters)
{
	static const char good[] = "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (unsigned int c = 0; c < 256; c++) {
		char m[] = "GET / HTTP/1.1\r\nHost: a?b\r\n\r\n";
		bool want = c != 0 && strchr(good, (int)c);

		m[23] = (char)c;
		if (request(m, sizeof(m) - 1) != (want ? 0 : -EBADMSG))
			t_fail(__FILE__, __LINE__, "byte %u", c);
	}
}

TEST(blanks)
{
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost:a\r\nA: \r\nB:\t \r\nC:x\r\nD:\tx y\t\r\n\r\n"), 0);
	CHECK(is(&r.fields[1].value, "") && is(&r.fields[2].value, ""));
	CHECK(is(&r.fields[3].value, "x") && is(&r.fields[4].value, "x y"));
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nX:\x01\r\n\r\n"), -EBADMSG);
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection: (close\r\n\r\n"), -EBADMSG);
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection:,close\r\n\r\n"), 0);
	CHECK(r.close);
	CHECK_EQ(REQ("GET / HTTP/1.1\r\nHost: a\r\nConnection:,\r\nConnection: x,close\r\n\r\n"), 0);
	CHECK(r.close);
}

TEST(another_protocol)
{
	CHECK_EQ(REQ("\x16\3\1"), -EPROTO);
	CHECK_EQ(REQ("\x16"), -EPROTO);
	CHECK_EQ(REQ("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), -EPROTO);
	CHECK_EQ(REQ("SSH-"), -EPROTO);
	CHECK_EQ(REQ("SSH"), SB_HTTP_MORE);
	CHECK_EQ(REQ("\5\1\0"), -EPROTO); /* SOCKS5 */
	CHECK_EQ(REQ("\4\1\0\x50\1\2\3\4\0"), -EPROTO); /* SOCKS4 */
	CHECK_EQ(REQ("{\"a\":1}"), -EPROTO);
	CHECK_EQ(REQ("\0"), -EPROTO);
	CHECK_EQ(REQ("\xff"), -EPROTO);
}

static char big[256 << 10];

TEST(limits)
{
	size_t n;

	/* the request line: 16384 bytes and not one more */
	memset(big, 'a', sizeof(big));
	memcpy(big, "GET /", 5);
	memcpy(big + 16384 - 9, " HTTP/1.1\r\nHost: a\r\n\r\n", 22);
	CHECK_EQ(request(big, 16384 - 9 + 22), 0);
	CHECK_EQ(r.target.len, 16384 - 9 - 4);
	memcpy(big + 16384 - 9, "a HTTP/1.1\r\nHost: a\r\n\r\n", 23);
	CHECK_EQ(request(big, 16384 - 9 + 23), -E2BIG);
	CHECK_STR(why, "first line too long");
	CHECK_EQ(request(big, 16385), SB_HTTP_MORE);
	CHECK_EQ(request(big, 16386), -E2BIG);
	/* the head: 65536 bytes and not one more */
	memset(big, 'a', sizeof(big));
	memcpy(big, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 28);
	memcpy(big + 65536 - 4, "\r\n\r\n", 4);
	CHECK_EQ(request(big, 65536), 0);
	CHECK_EQ(r.head_len, 65536);
	CHECK_EQ(request(big, 65535), SB_HTTP_MORE);
	memcpy(big + 65536 - 4, "a\r\n\r\n", 5);
	CHECK_EQ(request(big, 65537), -E2BIG);
	CHECK_STR(why, "head too large");
	CHECK_EQ(request(big, 65536), -E2BIG);
	/* fields: 200 and not one more */
	n = (size_t)snprintf(big, sizeof(big), "GET / HTTP/1.1\r\nHost: a\r\n");
	for (unsigned int i = 1; i < 200; i++, n += 5)
		memcpy(big + n, "X:y\r\n", 5);
	memcpy(big + n, "\r\n", 2);
	CHECK_EQ(request(big, n + 2), 0);
	CHECK_EQ(r.n_fields, 200);
	memcpy(big + n, "X:y\r\n\r\n", 7);
	CHECK_EQ(request(big, n + 4), SB_HTTP_MORE);
	CHECK_EQ(request(big, n + 5), -E2BIG); /* before the end has come */
	CHECK_EQ(request(big, n + 7), -E2BIG);
	CHECK_STR(why, "too many header fields");
}

/* --- responses --- */

static struct sb_http_response s;

static int response(const char *p, size_t len)
{
	why = NULL;
	return sb_http_response_parse(copy(p, len), len, &s, &why);
}
#define RES(lit) response(lit, sizeof(lit) - 1)

TEST(responses)
{
	CHECK_EQ(RES("HTTP/1.1 200 OK\r\nContent-Length: 51\r\n\r\nHello"), 0);
	CHECK_EQ(s.head_len, 39);
	CHECK_EQ(s.status, 200);
	CHECK_EQ(s.minor, 1);
	CHECK_EQ(s.body, SB_HTTP_LENGTH);
	CHECK_EQ(s.length, 51);
	CHECK(!s.close && !s.upgrade);
	CHECK_EQ(RES("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n"
		     "Connection: close\r\n\r\n"), 0);
	CHECK_EQ(s.status, 404);
	CHECK_EQ(s.body, SB_HTTP_CHUNKED);
	CHECK(s.close);
	CHECK_EQ(RES("HTTP/1.0 200\r\n\r\n"), 0);
	CHECK_EQ(s.body, SB_HTTP_UNTIL_CLOSE);
	CHECK(s.close);
	CHECK_EQ(RES("HTTP/1.1 200 \r\n\r\n"), 0);
	CHECK_EQ(RES("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		     "Connection: Upgrade\r\n\r\n"), 0);
	CHECK(s.upgrade);
	CHECK_EQ(s.status, 101);
	CHECK_EQ(RES("HTTP/1."), SB_HTTP_MORE);
	CHECK_EQ(RES(""), SB_HTTP_MORE);
	CHECK_EQ(RES("HTTP/1.1 200 OK\r\nX: y\r\n"), SB_HTTP_MORE);
	CHECK_EQ(RES("HTTP/2 200\r\n"), -EPROTO);
	CHECK_EQ(RES("ICY 200 OK\r\n"), -EPROTO);
	CHECK_EQ(RES("220 smtp"), -EPROTO);
}

static const struct bad bad_responses[] = {
	BAD("malformed status line", "HTTP/1.2 200 OK\r\n"),
	BAD("malformed status line", "HTTP/1.1200 OK\r\n"),
	BAD("malformed status line", "HTTP/1.1 2000\r\n"),
	BAD("malformed status line", "HTTP/1.1 20\r\n"),
	BAD("malformed status", "HTTP/1.1 2x0 OK\r\n"),
	BAD("malformed status", "HTTP/1.1 099 OK\r\n"),
	BAD("control character in the status line", "HTTP/1.1 200 O\0K\r\n"),
	BAD("bare line feed", "HTTP/1.1 200 OK\n"),
	BAD("Content-Length with Transfer-Encoding",
	    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("several Content-Length fields",
	    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"),
	BAD("Transfer-Encoding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD("folded header line", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"),
};

TEST(responses_refused)
{
	for (size_t i = 0; i < sizeof(bad_responses) / sizeof(bad_responses[0]); i++) {
		const struct bad *b = &bad_responses[i];
		int k = response(b->p, b->len);

		if (k != -EBADMSG || !why || strcmp(why, b->why) != 0)
			t_fail(__FILE__, __LINE__, "%zu: %d, \"%s\", want \"%s\"", i, k,
			       why ? why : "", b->why);
	}
}

/* --- hosts with ports --- */

TEST(authority)
{
	static const struct {
		const char *text;
		const char *host; /* NULL: refused */
		bool v6;
		uint16_t port;
	} cases[] = {
		{ "example.com", "example.com", false, 0 },
		{ "Example.COM.:65535", "Example.COM.", false, 65535 },
		{ "a_b-c:1", "a_b-c", false, 1 },
		{ "a:10976", "a", false, 10976 },
		{ "192.0.2.1:80", "192.0.2.1", false, 80 },
		{ "[2001:db8::1]", "2001:db8::1", true, 0 },
		{ "[::ffff:192.0.2.1]:443", "::ffff:192.0.2.1", true, 443 },
		{ "", NULL }, { ":80", NULL }, { "a:", NULL }, { "a:0", NULL }, { "a:65536", NULL },
		{ "a:0443", NULL }, { "a: 443", NULL }, { "a:443-1", NULL }, { "a:4e2", NULL },
		{ "a:+1", NULL }, { "a:99999", NULL }, { "a:100000", NULL }, { "a:80:80", NULL },
		{ "user@a", NULL }, { "allowed:x@evil", NULL }, { "allowed#@evil", NULL },
		{ "allowed:80@evil", NULL }, { "@a", NULL }, { "a b", NULL }, { " a", NULL },
		{ "a/", NULL }, { "a\\b", NULL }, { "a%00b", NULL }, { "a,b", NULL }, { "a;b", NULL },
		{ "\xc3\xa4", NULL }, { "2606:2800:220::1", NULL }, { "2606:2800::1:443", NULL },
		{ "::1", NULL }, { "[]", NULL }, { "[::1", NULL }, { "[::1]80", NULL },
		{ "[::1]:", NULL }, { "[::1]:0", NULL }, { "[::1]]", NULL }, { "[[::1]]", NULL },
		{ "[fe80::1%25eth0]", NULL }, { "[fe80::1%eth0]:80", NULL }, { "[v1.a]", NULL },
		{ "[192.0.2.1]", NULL }, { "[abc]", NULL }, { "[a]:1", NULL }, { "x[::1]", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *c = copy(cases[i].text, strlen(cases[i].text));
		struct sb_http_str in = { c, strlen(cases[i].text) };
		struct sb_http_str host = { NULL, 0 };
		uint16_t port = 0;
		bool v6 = false;
		int k = sb_http_authority(&in, &host, &v6, &port);

		if (k != (cases[i].host ? 0 : -EINVAL))
			t_fail(__FILE__, __LINE__, "\"%s\": %d", cases[i].text, k);
		else if (k == 0 && (!is(&host, cases[i].host) || v6 != cases[i].v6 ||
				    port != cases[i].port))
			t_fail(__FILE__, __LINE__, "\"%s\"", cases[i].text);
	}
}

TEST(authority_with_nul)
{
	struct sb_http_str in = { "evil\0.allowed.com", 17 };
	struct sb_http_str host;
	uint16_t port;
	bool v6;

	CHECK_EQ(sb_http_authority(&in, &host, &v6, &port), -EINVAL);
	memset(big, 'a', 256);
	in = (struct sb_http_str){ big, 255 };
	CHECK_EQ(sb_http_authority(&in, &host, &v6, &port), 0);
	in.len = 256;
	CHECK_EQ(sb_http_authority(&in, &host, &v6, &port), -EINVAL);
}

TEST(words)
{
	CHECK(sb_http_str_is(&(struct sb_http_str){ "Host", 4 }, "hOST"));
	CHECK(!sb_http_str_is(&(struct sb_http_str){ "Host", 3 }, "host"));
	CHECK(!sb_http_str_is(&(struct sb_http_str){ "Host:", 5 }, "host"));
}
