/* Bodies after RFC 9112 6 and 7, in one piece and in every cut. */
#include "wire/http1.h"

#include <stdlib.h>

#include "t.h"

/* Feed @p in pieces of @step. Return: bytes of the body; -EBADMSG */
static ssize_t feed(struct sb_http_flow *f, const char *p, size_t len, size_t step, const char **why)
{
	size_t at = 0;

	while (at < len && !f->done) {
		size_t n = len - at < step ? len - at : step;
		char *c = calloc(1, n);
		ssize_t took;

		if (!c)
			abort();
		memcpy(c, p + at, n);
		took = sb_http_flow_take(f, c, n, why);
		free(c);
		if (took < 0)
			return took;
		if ((size_t)took < n && !f->done)
			t_fail(__FILE__, __LINE__, "took %zd of %zu", took, n);
		at += (size_t)took;
	}
	return (ssize_t)at;
}

TEST(none)
{
	struct sb_http_flow f;
	const char *why;

	sb_http_flow_init(&f, SB_HTTP_NO_BODY, 0);
	CHECK(f.done);
	CHECK_EQ(sb_http_flow_take(&f, "abc", 3, &why), 0);
	sb_http_flow_init(&f, SB_HTTP_LENGTH, 0);
	CHECK(f.done);
}

TEST(length)
{
	struct sb_http_flow f;
	const char *why;

	sb_http_flow_init(&f, SB_HTTP_LENGTH, 5);
	CHECK(!f.done);
	CHECK_EQ(sb_http_flow_take(&f, "ab", 2, &why), 2);
	CHECK(!f.done);
	CHECK_EQ(sb_http_flow_take(&f, "cdeGET /", 8, &why), 3);
	CHECK(f.done);
	CHECK_EQ(sb_http_flow_take(&f, "GET /", 5, &why), 0);
}

TEST(until_close)
{
	struct sb_http_flow f;
	const char *why;

	sb_http_flow_init(&f, SB_HTTP_UNTIL_CLOSE, 0);
	CHECK_EQ(sb_http_flow_take(&f, "0\r\n\r\n", 5, &why), 5);
	CHECK(!f.done);
}

#define CHUNKS \
	"4\r\nWiki\r\n" "7;a=b; c=\"d\"\r\npedia i\r\n" "000B\r\nn \r\nchunks.\r\n" \
	"0;last\r\nExpires: Wed, 21 Oct 2015 07:28:00 GMT\r\nX:\r\n\r\n"

TEST(chunked)
{
	static const char m[] = CHUNKS "GET / HTTP/1.1\r\n";
	struct sb_http_flow f;
	const char *why;

	for (size_t step = 1; step <= sizeof(m); step++) {
		sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
		if (feed(&f, m, sizeof(m) - 1, step, &why) != sizeof(CHUNKS) - 1 || !f.done)
			t_fail(__FILE__, __LINE__, "pieces of %zu", step);
	}
	for (size_t n = 0; n < sizeof(CHUNKS) - 1; n++) {
		sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
		if (feed(&f, m, n, 1000, &why) != (ssize_t)n || f.done)
			t_fail(__FILE__, __LINE__, "%zu bytes of it", n);
	}
}

TEST(sizes)
{
	static const char digits[] = "123456789abcdefABCDEF";
	static const char second[] = "1\r\nx\r\n" "0000000000000002\r\nyz\r\n" "0\r\n\r\n";
	struct sb_http_flow f;
	const char *why;

	for (size_t i = 0; i < sizeof(digits) - 1; i++) {
		char m[] = "?\r\n";

		m[0] = digits[i];
		sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
		CHECK_EQ(sb_http_flow_take(&f, m, 3, &why), 3);
		CHECK_EQ(f.left, i < 15 ? i + 1 : i - 5);
	}
	/* every size has its 16 digits */
	sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
	CHECK_EQ(sb_http_flow_take(&f, second, sizeof(second) - 1, &why), sizeof(second) - 1);
	CHECK(f.done);
}

TEST(largest_chunk)
{
	struct sb_http_flow f;
	const char *why;

	sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
	CHECK_EQ(sb_http_flow_take(&f, "7fffffffffffffff\r\nabc", 21, &why), 21);
	CHECK(f.left == 0x7ffffffffffffffc);
}

struct bad {
	const char *why;
	const char *p;
	size_t len;
};
#define BAD(why, lit) { why, lit, sizeof(lit) - 1 }
static const struct bad bad_chunks[] = {
	BAD("malformed chunk size", "\r\n"),
	BAD("malformed chunk size", "0x5\r\n"),
	BAD("malformed chunk size", "-5\r\n"),
	BAD("malformed chunk size", "+5\r\n"),
	BAD("malformed chunk size", " 5\r\n"),
	BAD("malformed chunk size", "5 \r\n"),
	BAD("malformed chunk size", "5\t;x\r\n"),
	BAD("malformed chunk size", "5g\r\n"),
	BAD("malformed chunk size", "5\n"),
	BAD("malformed chunk size", "5_0\r\n"),
	BAD("malformed chunk size", ";x\r\n"),
	BAD("malformed chunk size", "5\0\r\n"),
	BAD("bare carriage return", "5\rx"),
	BAD("bare carriage return", "5\r\r\n"),
	BAD("chunk too large", "8000000000000000\r\n"),
	BAD("chunk too large", "00000000000000005\r\n"),
	BAD("chunk too large", "ffffffffffffffff5\r\n"),
	BAD("control character in a chunk extension", "5;a\n"),
	BAD("control character in a chunk extension", "5;a\0b\r\n"),
	BAD("bare carriage return", "5;a\rb\r\n"),
	BAD("chunk longer than its size", "4\r\nWikip\r\n"),
	BAD("chunk longer than its size", "4\r\nWiki\n"),
	BAD("bare carriage return", "4\r\nWiki\rx"),
	BAD("malformed trailer", "0\r\nX: a\r\n b\r\n\r\n"),
	BAD("malformed trailer", "0\r\n: a\r\n\r\n"),
	BAD("malformed trailer", "0\r\nX : a\r\n\r\n"),
	BAD("malformed trailer", "0\r\nX\r\n\r\n"),
	BAD("malformed trailer", "0\r\nGET / HTTP/1.1\r\n\r\n"),
	BAD("malformed trailer", "0\r\nX: a\n\n"),
	BAD("malformed trailer", "0\r\nX: a\0\r\n\r\n"),
	BAD("malformed trailer", "0\r\n\n"),
	BAD("bare carriage return", "0\r\nX: a\rb\r\n\r\n"),
	BAD("bare carriage return", "0\r\n\rGET / HTTP/1.1\r\n\r\n"),
};

TEST(chunks_refused)
{
	for (size_t i = 0; i < sizeof(bad_chunks) / sizeof(bad_chunks[0]); i++) {
		const struct bad *b = &bad_chunks[i];

		for (size_t step = 1; step < 40; step += 13) {
			struct sb_http_flow f;
			const char *why = "";
			ssize_t k;

			sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
			k = feed(&f, b->p, b->len, step, &why);
			if (k != -EBADMSG || strcmp(why, b->why) != 0)
				t_fail(__FILE__, __LINE__, "%zu: %zd, \"%s\", want \"%s\"", i, k, why,
				       b->why);
		}
	}
}

TEST(limits)
{
	static char m[16384];
	struct sb_http_flow f;
	const char *why = "";

	/* an extension of 256 bytes with its semicolon */
	memset(m, 'x', sizeof(m));
	memcpy(m, "1;", 2);
	memcpy(m + 257, "\r\n", 2);
	sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
	CHECK_EQ(sb_http_flow_take(&f, m, 259, &why), 259);
	memcpy(m + 257, "x\r\n", 3);
	sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
	CHECK_EQ(sb_http_flow_take(&f, m, 260, &why), -EBADMSG);
	CHECK_STR(why, "chunk extension too long");
	/* a trailer without end */
	memset(m, 'x', sizeof(m));
	memcpy(m, "0\r\n", 3);
	sb_http_flow_init(&f, SB_HTTP_CHUNKED, 0);
	CHECK_EQ(sb_http_flow_take(&f, m, 3 + 8192, &why), 3 + 8192);
	CHECK_EQ(sb_http_flow_take(&f, "x", 1, &why), -EBADMSG);
	CHECK_STR(why, "trailer too large");
}
