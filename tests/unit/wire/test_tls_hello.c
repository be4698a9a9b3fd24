/* The whole message is the one of RFC 8448 3; the others are put together around extensions. */
#include "wire/tls_hello.h"

#include <stdlib.h>

#include "t.h"

static const uint8_t rfc8448[] = {
	0x16, 0x03, 0x01, 0x00, 0xc4, 0x01, 0x00, 0x00, 0xc0, 0x03, 0x03, 0xcb, 0x34, 0xec, 0xb1,
	0xe7, 0x81, 0x63, 0xba, 0x1c, 0x38, 0xc6, 0xda, 0xcb, 0x19, 0x6a, 0x6d, 0xff, 0xa2, 0x1a,
	0x8d, 0x99, 0x12, 0xec, 0x18, 0xa2, 0xef, 0x62, 0x83, 0x02, 0x4d, 0xec, 0xe7, 0x00, 0x00,
	0x06, 0x13, 0x01, 0x13, 0x03, 0x13, 0x02, 0x01, 0x00, 0x00, 0x91, 0x00, 0x00, 0x00, 0x0b,
	0x00, 0x09, 0x00, 0x00, 0x06, 0x73, 0x65, 0x72, 0x76, 0x65, 0x72, 0xff, 0x01, 0x00, 0x01,
	0x00, 0x00, 0x0a, 0x00, 0x14, 0x00, 0x12, 0x00, 0x1d, 0x00, 0x17, 0x00, 0x18, 0x00, 0x19,
	0x01, 0x00, 0x01, 0x01, 0x01, 0x02, 0x01, 0x03, 0x01, 0x04, 0x00, 0x23, 0x00, 0x00, 0x00,
	0x33, 0x00, 0x26, 0x00, 0x24, 0x00, 0x1d, 0x00, 0x20, 0x99, 0x38, 0x1d, 0xe5, 0x60, 0xe4,
	0xbd, 0x43, 0xd2, 0x3d, 0x8e, 0x43, 0x5a, 0x7d, 0xba, 0xfe, 0xb3, 0xc0, 0x6e, 0x51, 0xc1,
	0x3c, 0xae, 0x4d, 0x54, 0x13, 0x69, 0x1e, 0x52, 0x9a, 0xaf, 0x2c, 0x00, 0x2b, 0x00, 0x03,
	0x02, 0x03, 0x04, 0x00, 0x0d, 0x00, 0x20, 0x00, 0x1e, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03,
	0x02, 0x03, 0x08, 0x04, 0x08, 0x05, 0x08, 0x06, 0x04, 0x01, 0x05, 0x01, 0x06, 0x01, 0x02,
	0x01, 0x04, 0x02, 0x05, 0x02, 0x06, 0x02, 0x02, 0x02, 0x00, 0x2d, 0x00, 0x02, 0x01, 0x01,
	0x00, 0x1c, 0x00, 0x02, 0x40, 0x01,
};

static uint8_t out[256 << 10];

static int parse(const uint8_t *p, size_t len, struct sb_tls_hello *h)
{
	uint8_t *c = calloc(1, len + (len == 0));
	int r;

	if (!c)
		abort();
	memcpy(c, p, len);
	r = sb_tls_hello_parse(c, len, h);
	free(c);
	return r;
}

/* Cut the message @p into records of @size bytes. */
static size_t fragment(const uint8_t *p, size_t len, size_t size)
{
	size_t n = 0;

	for (size_t at = 0; at < len; at += size) {
		size_t part = len - at < size ? len - at : size;

		memcpy(out + n, "\x16\3\1", 3);
		out[n + 3] = (uint8_t)(part >> 8);
		out[n + 4] = (uint8_t)part;
		memcpy(out + n + 5, p + at, part);
		n += 5 + part;
	}
	return n;
}

/* A ClientHello of TLS 1.2 with these bytes after the compression methods. */
static size_t message(const char *tail, size_t len, uint8_t *to)
{
	static const uint8_t start[] = "\1\0\0\0\3\3" "0123456789abcdef0123456789abcdef"
		"\0\0\2\xc0\x2f\1";
	size_t body = sizeof(start) - 4 + len; /* the literal's NUL is the compression method */

	memcpy(to, start, sizeof(start));
	to[1] = (uint8_t)(body >> 16);
	to[2] = (uint8_t)(body >> 8);
	to[3] = (uint8_t)body;
	memcpy(to + sizeof(start), tail, len);
	return sizeof(start) + len;
}

static int with_tail(const char *tail, size_t len, struct sb_tls_hello *h)
{
	uint8_t m[2048];

	return parse(out, fragment(m, message(tail, len, m), 16384), h);
}
#define TAIL(lit) with_tail(lit, sizeof(lit) - 1, &h)
#define NAME "\0\0\0\x10\0\x0e\0\0\x0b" "example.com" /* 20 bytes */

TEST(rfc8448_hello)
{
	struct sb_tls_hello h;

	CHECK_EQ(parse(rfc8448, sizeof(rfc8448), &h), 0);
	CHECK(h.has_name && !h.ech && !h.h2);
	CHECK_STR(h.name, "server");
	CHECK_EQ(h.name_len, 6);
}

TEST(every_prefix_wants_more)
{
	struct sb_tls_hello h = { .name_len = 77 };

	for (size_t n = 0; n < sizeof(rfc8448); n++)
		if (parse(rfc8448, n, &h) != SB_TLS_MORE)
			t_fail(__FILE__, __LINE__, "%zu bytes", n);
	CHECK_EQ(h.name_len, 77);
}

TEST(every_fragmentation)
{
	for (size_t size = 1; size < sizeof(rfc8448); size++) {
		struct sb_tls_hello h = { 0 };
		size_t len = fragment(rfc8448 + 5, sizeof(rfc8448) - 5, size);

		if (parse(out, len, &h) != 0 || strcmp(h.name, "server") != 0)
			t_fail(__FILE__, __LINE__, "records of %zu bytes", size);
		for (size_t n = 0; n < len; n++)
			if (parse(out, n, &h) != SB_TLS_MORE)
				t_fail(__FILE__, __LINE__, "records of %zu bytes, %zu of them", size, n);
	}
}

TEST(bytes_after_the_record)
{
	uint8_t m[sizeof(rfc8448) + 8] = { 0 };
	struct sb_tls_hello h;

	memcpy(m, rfc8448, sizeof(rfc8448));
	memcpy(m + sizeof(rfc8448), "\x17\3\3\0\3abc", 8); /* early data */
	CHECK_EQ(parse(m, sizeof(m), &h), 0);
	CHECK_STR(h.name, "server");
	/* the record goes on after the message */
	memcpy(m, rfc8448, sizeof(rfc8448));
	m[4]++;
	CHECK_EQ(parse(m, sizeof(rfc8448), &h), -EBADMSG);
	CHECK_EQ(parse(m, sizeof(rfc8448) + 1, &h), -EBADMSG);
}

TEST(not_tls)
{
	struct sb_tls_hello h;

	CHECK_EQ(parse((const uint8_t *)"GET / HTTP/1.1\r\n", 16, &h), -EPROTO);
	CHECK_EQ(parse((const uint8_t *)"SSH-2.0-x\r\n", 11, &h), -EPROTO);
	CHECK_EQ(parse((const uint8_t *)"\x80\x2e\1\3\1\0\x15", 7, &h), -EPROTO); /* SSL 2 */
	CHECK_EQ(parse((const uint8_t *)"\x16\2\1\0\1", 5, &h), -EPROTO);
	CHECK_EQ(parse((const uint8_t *)"\x16\xfe\xff", 3, &h), -EPROTO); /* DTLS */
	CHECK_EQ(parse((const uint8_t *)"\x16\2", 2, &h), -EPROTO);
	CHECK_EQ(parse((const uint8_t *)"\x13\3", 2, &h), -EPROTO);
	CHECK_EQ(parse((const uint8_t *)"\x19\3", 2, &h), -EPROTO);
	CHECK_EQ(parse((const uint8_t *)"\0", 1, &h), -EPROTO);
}

TEST(not_a_hello_first)
{
	struct sb_tls_hello h;

	CHECK_EQ(parse((const uint8_t *)"\x15\3\1\0\2\1\0", 7, &h), -EBADMSG); /* an alert */
	CHECK_EQ(parse((const uint8_t *)"\x14\3\3\0\1\1", 6, &h), -EBADMSG);
	CHECK_EQ(parse((const uint8_t *)"\x17\3\3", 3, &h), -EBADMSG);
	CHECK_EQ(parse((const uint8_t *)"\x15\3", 2, &h), -EBADMSG);
	CHECK_EQ(parse((const uint8_t *)"\x18\3\3", 3, &h), -EBADMSG);
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\1\1\x16\2", 8, &h), -EBADMSG);
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\1\1\x16", 7, &h), SB_TLS_MORE);
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\4\0\0\0\0", 9, &h), -EBADMSG); /* HelloRequest */
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\1\2", 6, &h), -EBADMSG); /* ServerHello */
	CHECK_EQ(parse((const uint8_t *)"\x16\3\5\0\1\1", 6, &h), -EBADMSG); /* version 3.5 */
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\0", 5, &h), -EBADMSG); /* empty record */
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\x40\1", 5, &h), -EBADMSG); /* 16385 bytes */
	/* another kind of record between the pieces */
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\1\1\x15\3\1\0\2\1\0", 13, &h), -EBADMSG);
	CHECK_EQ(parse((const uint8_t *)"\x16\3\1\0\1\1\x16\2\1", 9, &h), -EBADMSG);
}

TEST(without_name)
{
	struct sb_tls_hello h = { .has_name = true };

	CHECK_EQ(TAIL(""), 0);
	CHECK(!h.has_name);
	CHECK_EQ(TAIL("\0\0"), 0);
	CHECK_EQ(TAIL("\0\4\0\x17\0\0"), 0);
	CHECK(!h.has_name && !h.ech && !h.h2);
	CHECK_STR(h.name, "");
}

TEST(name)
{
	struct sb_tls_hello h;

	CHECK_EQ(TAIL("\0\x14" NAME), 0);
	CHECK_STR(h.name, "example.com");
	CHECK_EQ(TAIL("\0\x18\0\x17\0\0" NAME), 0);
	CHECK_STR(h.name, "example.com");
}

TEST(name_longest)
{
	char tail[2 + 9 + 256];
	struct sb_tls_hello h;

	for (unsigned int n = 255; n <= 256; n++) {
		memset(tail, 'a', sizeof(tail));
		tail[0] = (char)((9 + n) >> 8);
		tail[1] = (char)(9 + n);
		memcpy(tail + 2, "\0\0\1?\1?\0\1?", 9);
		tail[5] = (char)(5 + n);
		tail[7] = (char)(3 + n);
		tail[9] = (char)(n >> 8);
		tail[10] = (char)n;
		CHECK_EQ(with_tail(tail, 11 + n, &h), n == 255 ? 0 : -EBADMSG);
		if (n == 255)
			CHECK_EQ(strlen(h.name), 255);
	}
}

TEST(alpn)
{
	struct sb_tls_hello h;

	CHECK_EQ(TAIL("\0\x12\0\x10\0\x0e\0\x0c\2h2\x08http/1.1"), 0);
	CHECK(h.h2);
	CHECK_EQ(TAIL("\0\x12\0\x10\0\x0e\0\x0c\x08http/1.1\2h2"), 0);
	CHECK(h.h2);
	CHECK_EQ(TAIL("\0\x0f\0\x10\0\x0b\0\x09\x08http/1.1"), 0);
	CHECK(!h.h2);
	CHECK_EQ(TAIL("\0\x0a\0\x10\0\6\0\4\3h2c"), 0);
	CHECK(!h.h2);
	CHECK_EQ(TAIL("\0\6\0\x10\0\2\0\0"), -EBADMSG);       /* no protocol */
	CHECK_EQ(TAIL("\0\7\0\x10\0\3\0\1\0"), -EBADMSG);     /* an empty one */
	CHECK_EQ(TAIL("\0\x08\0\x10\0\4\0\2\2h"), -EBADMSG);  /* one beyond the list */
	CHECK_EQ(TAIL("\0\x0a\0\x10\0\6\0\3\2h2x"), -EBADMSG); /* a byte behind the list */
}

TEST(encrypted_hello)
{
	struct sb_tls_hello h;

	CHECK_EQ(TAIL("\0\x1a" NAME "\xfe\x0d\0\2\0\0"), 0);
	CHECK(h.ech && h.has_name);
	CHECK_EQ(TAIL("\0\x1a\xff\xce\0\2\0\0" NAME), 0);
	CHECK(h.ech);
	CHECK_EQ(TAIL("\0\x1a\xfe\x08\0\2\0\0" NAME), 0); /* drafts */
	CHECK(h.ech);
	CHECK_EQ(TAIL("\0\x1a\xff\2\0\2\0\0" NAME), 0);
	CHECK(h.ech);
	CHECK_EQ(TAIL("\0\x1a\xff\3\0\2\0\0" NAME), 0);
	CHECK(h.ech);
	CHECK_EQ(TAIL("\0\x1a\xfe\7\0\2\0\0" NAME), 0);
	CHECK(!h.ech);
	CHECK_EQ(TAIL("\0\x1a\xfe\x0e\0\2\0\0" NAME), 0);
	CHECK(!h.ech);
	CHECK_EQ(TAIL("\0\x1a\xfa\xfa\0\2\0\0" NAME), 0); /* GREASE (RFC 8701) */
	CHECK(!h.ech);
}

struct bad {
	const char *what;
	const char *p;
	size_t len;
};
#define BAD(what, lit) { what, lit, sizeof(lit) - 1 }
static const struct bad bad_tails[] = {
	BAD("half a length", "\0"),
	BAD("bytes behind the extensions", "\0\0x"),
	BAD("extensions beyond the message", "\0\1"),
	BAD("half an extension", "\0\3\0\x17\0"),
	BAD("extension beyond the list", "\0\4\0\x17\0\1"),
	BAD("two names", "\0\x28" NAME NAME),
	BAD("two of anything", "\0\x08\0\x17\0\0\0\x17\0\0"),
	BAD("two of GREASE", "\0\x08\xfa\xfa\0\0\xfa\xfa\0\0"),
	BAD("empty name extension", "\0\4\0\0\0\0"),
	BAD("empty name list", "\0\6\0\0\0\2\0\0"),
	BAD("empty name", "\0\x09\0\0\0\5\0\3\0\0\0"),
	BAD("name of another kind", "\0\x0a\0\0\0\6\0\4\1\0\1a"),
	BAD("two names in the list", "\0\x0e\0\0\0\x0a\0\x08\0\0\1a\0\0\1b"),
	BAD("another kind behind the name", "\0\x0e\0\0\0\x0a\0\x08\0\0\1a\1\0\1b"),
	BAD("a byte behind the list", "\0\x0b\0\0\0\7\0\4\0\0\1ax"),
	BAD("a byte behind the name", "\0\x0b\0\0\0\7\0\5\0\0\1ax"),
	BAD("name beyond the list", "\0\x0b\0\0\0\7\0\4\0\0\2ax"),
	BAD("list beyond the extension", "\0\x0e\0\0\0\6\0\x08\0\0\1a\0\x17\0\0"),
	BAD("NUL in the name", "\0\x0d\0\0\0\x09\0\7\0\0\4a\0.b"),
};

TEST(extensions_malformed)
{
	for (size_t i = 0; i < sizeof(bad_tails) / sizeof(bad_tails[0]); i++) {
		struct sb_tls_hello h = { .name_len = 77 };
		int r = with_tail(bad_tails[i].p, bad_tails[i].len, &h);

		if (r != -EBADMSG || h.name_len != 77)
			t_fail(__FILE__, __LINE__, "%s: %d", bad_tails[i].what, r);
	}
}

TEST(body_malformed)
{
	static const struct {
		size_t at;
		uint8_t to;
	} changes[] = {
		{ 9, 2 },     /* legacy_version 2.3 */
		{ 43, 33 },   /* session_id */
		{ 43, 255 },
		{ 45, 0 },    /* no cipher suites */
		{ 45, 5 },    /* an odd number of bytes */
		{ 44, 255 },
		{ 52, 0 },    /* no compression method */
		{ 52, 255 },
		{ 55, 0x90 }, /* extensions */
		{ 55, 0x92 },
		{ 8, 0xbf },  /* the message */
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint8_t m[sizeof(rfc8448)];
		struct sb_tls_hello h;

		memcpy(m, rfc8448, sizeof(m));
		m[changes[i].at] = changes[i].to;
		if (parse(m, sizeof(m), &h) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "byte %zu", changes[i].at);
	}
}

TEST(session_id)
{
	for (unsigned int n = 31; n <= 33; n++) {
		uint8_t m[128] = "\x16\3\1\0?\1\0\0?\3\3";
		struct sb_tls_hello h;

		m[43] = (uint8_t)n;
		memcpy(m + 44 + n, "\0\2\xc0\x2f\1\0", 6);
		m[8] = (uint8_t)(35 + n + 6);
		m[4] = (uint8_t)(m[8] + 4);
		CHECK_EQ(parse(m, 44 + n + 6, &h), n <= 32 ? 0 : -EBADMSG);
	}
}

/* One large extension; the limit counts the heads of the records. */
static size_t large(size_t total, uint8_t *m)
{
	static char tail[65536];
	size_t len = total - 45; /* what message() makes around it */

	memset(tail, 0, sizeof(tail));
	tail[0] = (char)((len - 2) >> 8);
	tail[1] = (char)(len - 2);
	tail[3] = 0x15; /* padding */
	tail[4] = (char)((len - 6) >> 8);
	tail[5] = (char)(len - 6);
	return message(tail, len, m);
}

TEST(size_limit)
{
	static uint8_t m[65536];
	struct sb_tls_hello h;
	size_t len;

	/* two records of 16384 bytes with their heads are 10 bytes more than allowed */
	len = fragment(m, large(32768 - 10, m), 16384);
	CHECK_EQ(len, 32768);
	CHECK_EQ(parse(out, len, &h), 0);
	CHECK_EQ(parse(out, len - 1, &h), SB_TLS_MORE);
	len = fragment(m, large(32768 - 9, m), 16384);
	CHECK_EQ(parse(out, len, &h), -EBADMSG);
	CHECK_EQ(parse(out, 32768, &h), -EBADMSG);
	/* too long is said with the first record */
	len = fragment(m, large(40000, m), 16384);
	CHECK_EQ(parse(out, 9, &h), -EBADMSG);
	/* records of one byte */
	len = fragment(m, large(5461, m), 1);
	CHECK_EQ(len, 32766);
	CHECK_EQ(parse(out, len, &h), 0);
	len = fragment(m, large(5462, m), 1);
	CHECK_EQ(parse(out, 32767, &h), SB_TLS_MORE);
	CHECK_EQ(parse(out, 32768, &h), -EBADMSG);
	CHECK_EQ(parse(out, len, &h), -EBADMSG);
}

TEST(alert)
{
	uint8_t a[SB_TLS_ALERT_LEN];

	sb_tls_alert_write(49, a);
	CHECK_MEM(a, "\x15\3\3\0\2\2\x31", 7);
}
