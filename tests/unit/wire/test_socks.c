/* Requests after RFC 1928 3-4 and the protocol notes of SOCKS 4 and 4a. */
#include "wire/socks.h"

#include <stdlib.h>

#include "t.h"

static int request(const char *p, size_t len, struct sb_socks_request *r)
{
	uint8_t *c = calloc(1, len + (len == 0));
	int k;

	if (!c)
		abort();
	memcpy(c, p, len);
	k = sb_socks_request(c, len, r);
	free(c);
	return k;
}
#define REQ(lit) request(lit, sizeof(lit) - 1, &r)

TEST(offer)
{
	bool no_auth = false;
	size_t len = 77;

	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\5\2\0\2\5", 5, &len, &no_auth), 0);
	CHECK_EQ(len, 4);
	CHECK(no_auth);
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\5\1", 2, &len, &no_auth), SB_SOCKS_MORE);
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\5\1\2", 3, &len, &no_auth), 0);
	CHECK_EQ(len, 3);
	CHECK(!no_auth);
	len = 77;
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"", 0, &len, &no_auth), SB_SOCKS_MORE);
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\5", 1, &len, &no_auth), SB_SOCKS_MORE);
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\5\2\0", 3, &len, &no_auth), SB_SOCKS_MORE);
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\5\0", 2, &len, &no_auth), -EBADMSG);
	CHECK_EQ(sb_socks5_offer((const uint8_t *)"\4\1\0", 3, &len, &no_auth), -EBADMSG);
	CHECK_EQ(len, 77);
}

TEST(socks5)
{
	struct sb_socks_request r;

	CHECK_EQ(REQ("\5\1\0\3\x0b" "example.com\1\xbb" "early"), 0);
	CHECK_EQ(r.version, 5);
	CHECK_EQ(r.cmd, SB_SOCKS_CONNECT);
	CHECK(r.is_name);
	CHECK_STR(r.host, "example.com");
	CHECK_EQ(r.host_len, 11);
	CHECK_EQ(r.port, 443);
	CHECK_EQ(r.len, 18);
	CHECK_EQ(REQ("\5\1\0\1\xc0\0\2\1\0\x50"), 0);
	CHECK(!r.is_name);
	CHECK_MEM(r.addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1", 16);
	CHECK_EQ(r.port, 80);
	CHECK_EQ(r.len, 10);
	CHECK_EQ(REQ("\5\1\0\4\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50"), 0);
	CHECK_MEM(r.addr, "\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	CHECK_EQ(r.len, 22);
	/* commands that the caller refuses */
	CHECK_EQ(REQ("\5\2\0\1\0\0\0\0\0\0"), 0);
	CHECK_EQ(r.cmd, SB_SOCKS_BIND);
	CHECK_EQ(REQ("\5\3\0\1\0\0\0\0\0\0"), 0);
	CHECK_EQ(r.cmd, SB_SOCKS_UDP);
	CHECK_EQ(REQ("\5\xf0\0\1\0\0\0\0\0\0"), 0); /* Tor's RESOLVE */
	CHECK_EQ(r.cmd, 0xf0);
}

TEST(socks4)
{
	struct sb_socks_request r;

	CHECK_EQ(REQ("\4\1\0\x50\xc0\0\2\1\0"), 0);
	CHECK_EQ(r.version, 4);
	CHECK(!r.is_name);
	CHECK_MEM(r.addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1", 16);
	CHECK_EQ(r.port, 80);
	CHECK_EQ(r.len, 9);
	CHECK_EQ(REQ("\4\1\1\xbb\xc0\0\2\1me\0x"), 0);
	CHECK_EQ(r.len, 11);
	CHECK_EQ(REQ("\4\1\1\xbb\0\0\0\1me\0example.com\0x"), 0);
	CHECK(r.is_name);
	CHECK_STR(r.host, "example.com");
	CHECK_EQ(r.port, 443);
	CHECK_EQ(r.len, 23);
	/* 0.0.0.0 is an address, 0.0.1.1 too */
	CHECK_EQ(REQ("\4\1\1\xbb\0\0\0\0\0example.com\0"), 0);
	CHECK(!r.is_name);
	CHECK_EQ(r.len, 9);
	CHECK_EQ(REQ("\4\1\1\xbb\0\0\1\1\0"), 0);
	CHECK(!r.is_name);
	CHECK_EQ(REQ("\4\1\1\xbb\1\0\0\1\0"), 0);
	CHECK(!r.is_name);
	CHECK_EQ(REQ("\4\1\1\xbb\0\1\0\1\0"), 0);
	CHECK(!r.is_name);
}

TEST(every_prefix_wants_more)
{
	static const char v5[] = "\5\1\0\3\x0b" "example.com\1\xbb";
	static const char v6[] = "\5\1\0\4\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50";
	static const char v4[] = "\4\1\1\xbb\0\0\0\1me\0example.com\0";
	struct sb_socks_request r = { .port = 77 };

	for (size_t n = 0; n < sizeof(v5) - 1; n++)
		CHECK_EQ(request(v5, n, &r), SB_SOCKS_MORE);
	for (size_t n = 0; n < sizeof(v6) - 1; n++)
		CHECK_EQ(request(v6, n, &r), SB_SOCKS_MORE);
	for (size_t n = 0; n < sizeof(v4) - 1; n++)
		CHECK_EQ(request(v4, n, &r), SB_SOCKS_MORE);
	CHECK_EQ(r.port, 77);
}

TEST(malformed)
{
	struct sb_socks_request r = { .port = 77 };

	CHECK_EQ(REQ("\6"), -EBADMSG);
	CHECK_EQ(REQ("GET / HTTP/1.1\r\n"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\1"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\0\6"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\0\3\0"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\1\1\xc0\0\2\1\0\x50"), -EBADMSG);         /* reserved byte */
	CHECK_EQ(REQ("\5\1\0\0\xc0\0\2\1\0\x50"), -EBADMSG);         /* address types */
	CHECK_EQ(REQ("\5\1\0\2\xc0\0\2\1\0\x50"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\0\5\xc0\0\2\1\0\x50"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\0\3\0\1\xbb"), -EBADMSG);                 /* empty name */
	CHECK_EQ(REQ("\5\1\0\3\x11" "evil\0.allowed.com\1\xbb"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\0\3\4abc\0\1\xbb"), -EBADMSG);
	CHECK_EQ(REQ("\5\1\0\1\xc0\0\2\1\0\0"), -EBADMSG);           /* port 0 */
	CHECK_EQ(REQ("\4\1\0\0\xc0\0\2\1\0"), -EBADMSG);
	CHECK_EQ(REQ("\4\1\1\xbb\0\0\0\1me\0\0"), -EBADMSG);         /* empty name */
	CHECK_EQ(r.port, 77);
}

TEST(limits)
{
	struct sb_socks_request r;
	char m[2048];

	/* a name of 255 bytes */
	memset(m, 'a', sizeof(m));
	memcpy(m, "\5\1\0\3\xff", 5);
	memcpy(m + 260, "\1\xbb", 2);
	CHECK_EQ(request(m, 262, &r), 0);
	CHECK_EQ(strlen(r.host), 255);
	/* SOCKS 4a: 255 and not one more */
	memset(m, 'a', sizeof(m));
	memcpy(m, "\4\1\1\xbb\0\0\0\1\0", 9);
	m[9 + 255] = '\0';
	CHECK_EQ(request(m, 9 + 256, &r), 0);
	CHECK_EQ(r.host_len, 255);
	m[9 + 255] = 'a';
	m[9 + 256] = '\0';
	CHECK_EQ(request(m, 9 + 257, &r), -EBADMSG);
	/* a user id without end */
	memset(m, 'a', sizeof(m));
	memcpy(m, "\4\1\1\xbb\xc0\0\2\1", 8);
	CHECK_EQ(request(m, 1023, &r), SB_SOCKS_MORE);
	CHECK_EQ(request(m, 1024, &r), -EBADMSG);
	m[1023] = '\0';
	CHECK_EQ(request(m, 1024, &r), 0);
	CHECK_EQ(r.len, 1024);
	m[1023] = 'a';
	m[1024] = '\0';
	CHECK_EQ(request(m, 2048, &r), -EBADMSG);
}

TEST(reply)
{
	static const uint8_t v4[16] = "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1";
	static const uint8_t v6[16] = "\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1";
	uint8_t out[SB_SOCKS_REPLY_MAX];

	CHECK_EQ(sb_socks_reply(5, 0, v4, 443, out), 10);
	CHECK_MEM(out, "\5\0\0\1\xc0\0\2\1\1\xbb", 10);
	CHECK_EQ(sb_socks_reply(5, 0, v6, 80, out), 22);
	CHECK_MEM(out, "\5\0\0\4\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50", 22);
	CHECK_EQ(sb_socks_reply(5, 2, NULL, 0, out), 10);
	CHECK_MEM(out, "\5\2\0\1\0\0\0\0\0\0", 10);
	CHECK_EQ(sb_socks_reply(4, 0, v4, 443, out), 8);
	CHECK_MEM(out, "\0\x5a\1\xbb\xc0\0\2\1", 8);
	CHECK_EQ(sb_socks_reply(4, 2, NULL, 0, out), 8);
	CHECK_MEM(out, "\0\x5b\0\0\0\0\0\0", 8);
	CHECK_EQ(sb_socks_reply(4, 0, v6, 443, out), 8);
	CHECK_MEM(out, "\0\x5a\1\xbb\0\0\0\0", 8);
}
