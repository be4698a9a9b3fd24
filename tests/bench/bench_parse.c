/*
 * Time to read what the guest sends first: a ClientHello, a request head, a DNS query; and what
 * the most tedious guest costs, who sends the largest head byte by byte and has it looked at each
 * time. One JSON line a figure, medians of ROUNDS rounds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "wire/dns.h"
#include "wire/http1.h"
#include "wire/tls_hello.h"

#define ROUNDS 15

static uint8_t hello[8192];
static size_t hello_len;
static uint8_t pieces[SB_TLS_HELLO_MAX];
static size_t pieces_len;
static char big[SB_HTTP_HEAD_MAX];

static const char request[] =
	"GET /v1/projects/sendbox/releases?page=2&per_page=100 HTTP/1.1\r\n"
	"Host: api.example.com\r\n"
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
	"Accept-Language: en-US,en;q=0.5\r\n"
	"Accept-Encoding: gzip, deflate\r\n"
	"Connection: keep-alive\r\n"
	"Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
	"Upgrade-Insecure-Requests: 1\r\n"
	"If-None-Match: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"\r\n\r\n";

static const uint8_t query[] = "\x12\x34\1\0\0\1\0\0\0\0\0\1\3api\7example\3com\0\0\1\0\1"
			       "\0\0\x29\4\xd0\0\0\0\0\0\x0c\0\x0a\0\x08"
			       "abcdefgh";

/* An extension for hello_make(). */
static void put(uint16_t type, const void *p, size_t len)
{
	uint8_t *to = hello + hello_len;

	to[0] = (uint8_t)(type >> 8);
	to[1] = (uint8_t)type;
	to[2] = (uint8_t)(len >> 8);
	to[3] = (uint8_t)len;
	if (p)
		memcpy(to + 4, p, len);
	hello_len += 4 + len;
}

static void length_at(size_t at, size_t end)
{
	hello[at] = (uint8_t)((end - at - 2) >> 8);
	hello[at + 1] = (uint8_t)(end - at - 2);
}

/* About what a browser says: 17 extensions, a key share of 1216 bytes. */
static void hello_make(void)
{
	static const uint8_t head[] = "\x16\3\1\0\0\1\0\0\0\3\3"
				      "0123456789abcdef0123456789abcdef"
				      "\x20"
				      "0123456789abcdef0123456789abcdef"
				      "\0\x20"
				      "0123456789abcdef0123456789abcdef"
				      "\1\0";
	size_t extensions;

	memcpy(hello, head, sizeof(head) - 1);
	extensions = sizeof(head) - 1;
	hello_len = extensions + 2;
	put(0x1a1a, NULL, 0);
	put(0,
	    "\0\x12\0\0\x0f"
	    "api.example.com",
	    20);
	put(23, NULL, 0);
	put(0xff01, "", 1);
	put(10, NULL, 12);
	put(11, NULL, 2);
	put(35, NULL, 0);
	put(16, "\0\x0c\2h2\x08http/1.1", 14);
	put(5, NULL, 5);
	put(13, NULL, 18);
	put(18, NULL, 0);
	put(51, NULL, 1263);
	put(45, NULL, 2);
	put(43, NULL, 7);
	put(27, NULL, 3);
	put(17513, NULL, 5);
	put(0xfe0d, NULL, 218);
	length_at(extensions, hello_len);
	length_at(7, hello_len);
	length_at(3, hello_len);
	for (size_t i = 5; i < hello_len; i++, pieces_len += 6) {
		memcpy(pieces + pieces_len, "\x16\3\1\0\1", 5);
		pieces[pieces_len + 5] = hello[i];
	}
}

static void big_make(void)
{
	static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\n";
	size_t n = sizeof(start) - 1;

	memcpy(big, start, n);
	for (; n + 500 < sizeof(big); n += 400) {
		memset(big + n, 'x', 400);
		big[n + 1] = ':';
		memcpy(big + n + 398, "\r\n", 2);
	}
	memset(big + n, 'x', sizeof(big) - n);
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void one_hello(void)
{
	struct sb_tls_hello h;

	must(sb_tls_hello_parse(hello, hello_len, &h) == 0 && h.h2 && h.ech && h.name_len == 15);
}

static void one_hello_in_pieces(void)
{
	struct sb_tls_hello h;

	must(sb_tls_hello_parse(pieces, pieces_len, &h) == 0 && h.name_len == 15);
}

static void one_request(void)
{
	static struct sb_http_request r;
	const char *why;

	must(sb_http_request_parse(request, sizeof(request) - 1, &r, &why) == 0 && r.n_fields == 9);
}

static void one_query(void)
{
	struct sb_dns_query q;
	enum sb_dns_rcode rcode;

	must(sb_dns_query_parse(query, sizeof(query) - 1, &q, &rcode) == 0 && q.edns);
}

static void one_query_with_answer(void)
{
	static const uint8_t addr[4] = { 198, 18, 0, 16 };
	struct sb_dns_answer a = { .ttl = 60, .addr = addr, .ede = SB_EDE_NONE };
	struct sb_dns_query q;
	enum sb_dns_rcode rcode;
	uint8_t out[512];

	must(sb_dns_query_parse(query, sizeof(query) - 1, &q, &rcode) == 0);
	must(sb_dns_answer_write(&q, &a, out, sizeof(out)) > 0);
}

static void head_byte_by_byte(void)
{
	static struct sb_http_request r;
	const char *why;

	for (size_t n = 0; n < sizeof(big); n++)
		must(sb_http_request_parse(big, n, &r, &why) == SB_HTTP_MORE);
	must(sb_http_request_parse(big, sizeof(big), &r, &why) == -E2BIG);
}

static void hello_byte_by_byte(void)
{
	struct sb_tls_hello h;

	for (size_t n = 0; n < pieces_len; n++)
		must(sb_tls_hello_parse(pieces, n, &h) == SB_TLS_MORE);
}

static void bench(const char *name, void (*fn)(void), unsigned int times)
{
	double v[ROUNDS];

	fn(); /* warm */
	for (unsigned int i = 0; i < ROUNDS; i++) {
		double from = bench_now_ns();

		for (unsigned int n = 0; n < times; n++)
			fn();
		v[i] = (bench_now_ns() - from) / times;
	}
	bench_report(name, "ns", 0, v, ROUNDS);
}

int main(void)
{
	hello_make();
	big_make();
	bench("parse_client_hello", one_hello, 20000);
	bench("parse_client_hello_1_byte_records", one_hello_in_pieces, 2000);
	bench("parse_http_request", one_request, 20000);
	bench("parse_dns_query", one_query, 50000);
	bench("parse_dns_query_and_answer", one_query_with_answer, 50000);
	bench("parse_64k_head_byte_by_byte", head_byte_by_byte, 1);
	bench("parse_1_byte_records_byte_by_byte", hello_byte_by_byte, 1);
	return 0;
}
