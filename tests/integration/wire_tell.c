/*
 * What our parsers say about bytes, for tests that hold other implementations against them.
 * Standard input: frames of {u8 what, u32le length, bytes}; output: one JSON object a line, text
 * from the bytes as hexadecimal digits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/dns.h"
#include "wire/http1.h"
#include "wire/socks.h"
#include "wire/tls_hello.h"

#define INPUT_MAX (1U << 20)

static void hex(const char *key, const void *p, size_t len)
{
	const uint8_t *b = p;

	printf(",\"%s\":\"", key);
	for (size_t i = 0; i < len; i++)
		printf("%02x", b[i]);
	printf("\"");
}

static void str(const char *key, const struct sb_http_str *s)
{
	hex(key, s->p, s->len);
}

static void num(const char *key, uint64_t v)
{
	printf(",\"%s\":%llu", key, (unsigned long long)v);
}

/* The query, an answer to it, and a refusal of it. */
static void dns_query(const uint8_t *p, size_t len)
{
	static const uint8_t v4[] = { 198, 18, 0, 16 };
	static const uint8_t v6[] = { 0xfd, 0x73, 0x65, 0x6e, 0x64, 0x62, 0x6f, 0x78,
				      0,    0,	  0,	0,    0,    0,	  0,	0x10 };
	struct sb_dns_query q = { 0 };
	struct sb_dns_answer yes = { .ttl = 60, .ede = SB_EDE_NONE };
	struct sb_dns_answer no = { .rcode = SB_DNS_NXDOMAIN,
				    .ede = SB_EDE_BLOCKED,
				    .ede_text = "not allowed by the plan" };
	enum sb_dns_rcode rcode = SB_DNS_NOERROR;
	uint8_t out[1232];
	int r = sb_dns_query_parse(p, len, &q, &rcode);

	printf("{\"r\":%d", r);
	num("rcode", (uint64_t)rcode);
	num("id", q.id);
	num("rd", q.rd);
	num("cd", q.cd);
	num("type", q.type);
	num("class", q.klass);
	num("edns", q.edns);
	num("udp_size", q.udp_size);
	hex("name", q.name, strlen(q.name));
	hex("wire_name", q.wire_name, q.name_len);
	yes.addr = q.type == SB_DNS_A ? v4 : v6;
	hex("yes", out, sb_dns_answer_write(&q, &yes, out, sizeof(out)));
	hex("no", out, sb_dns_answer_write(&q, &no, out, sizeof(out)));
}

/* A NUL-terminated name and two bytes of type (big-endian), then the message. */
static void dns_reply(const uint8_t *p, size_t len)
{
	static struct sb_dns_reply a;
	const uint8_t *nul = memchr(p, 0, len);
	size_t head = nul ? (size_t)(nul - p) + 3 : len + 1;
	uint16_t type;
	int r;

	if (head > len)
		exit(2);
	type = (uint16_t)(p[head - 2] << 8 | p[head - 1]);
	memset(&a, 0, sizeof(a));
	r = sb_dns_reply_parse(p + head, len - head, (const char *)p, type, &a);
	printf("{\"r\":%d,\"check\":%d", r,
	       sb_dns_reply_check(p + head, len - head, (const char *)p, type));
	num("id", a.id);
	num("rcode", (uint64_t)a.rcode);
	num("truncated", a.truncated);
	num("ttl", a.ttl);
	hex("addrs", a.addrs, 16 * a.n_addrs);
	printf(",\"hops\":[");
	for (size_t i = 0; i < a.n_hops; i++) {
		printf("%s\"", i ? "," : "");
		for (const char *c = a.hops[i]; *c; c++)
			printf("%02x", (unsigned int)(uint8_t)*c);
		printf("\"");
	}
	printf("]");
}

/* Two bytes of id, two of type (big-endian), the name. */
static void dns_write(const uint8_t *p, size_t len)
{
	uint8_t out[512];
	char name[1024];

	if (len < 4 || len - 4 >= sizeof(name))
		exit(2);
	memcpy(name, p + 4, len - 4);
	name[len - 4] = '\0';
	printf("{\"r\":0");
	hex("message", out,
	    sb_dns_query_write((uint16_t)(p[0] << 8 | p[1]), name, (uint16_t)(p[2] << 8 | p[3]),
			       out));
}

static void tls(const uint8_t *p, size_t len)
{
	struct sb_tls_hello h = { 0 };

	printf("{\"r\":%d", sb_tls_hello_parse(p, len, &h));
	num("has_name", h.has_name);
	hex("name", h.name, h.name_len);
	num("ech", h.ech);
	num("h2", h.h2);
}

/* A whole message with its body: as many requests as there are, one after the other. */
static void http(const char *p, size_t len)
{
	static struct sb_http_request q;
	const char *why = "";
	const char *sep = "";
	size_t at = 0;
	int r = 0;

	printf("{\"requests\":[");
	while (at < len) {
		struct sb_http_flow f;
		ssize_t body;

		r = sb_http_request_parse(p + at, len - at, &q, &why);
		if (r != 0)
			break;
		sb_http_flow_init(&f, q.body, q.length);
		body = sb_http_flow_take(&f, p + at + q.head_len, len - at - q.head_len, &why);
		printf("%s{\"at\":%zu", sep, at);
		sep = ",";
		str("method", &q.method);
		str("target", &q.target);
		num("minor", q.minor);
		num("form", (uint64_t)q.form);
		str("authority", &q.authority);
		str("host", &q.host);
		num("body", (uint64_t)q.body);
		num("length", q.length);
		num("close", q.close);
		num("upgrade", q.upgrade);
		num("continue", q.expect_continue);
		num("head", q.head_len);
		num("done", body >= 0 && f.done);
		printf(",\"taken\":%zd}", body);
		if (body < 0) {
			r = (int)body;
			break;
		}
		at += q.head_len + (size_t)body;
		if (!f.done || q.form == SB_HTTP_AUTHORITY || q.upgrade)
			break;
	}
	printf("],\"r\":%d,\"why\":\"%s\"", r, r < 0 ? why : "");
	num("end", at);
}

static void response(const char *p, size_t len)
{
	struct sb_http_response s = { 0 };
	const char *why = "";
	int r = sb_http_response_parse(p, len, &s, &why);

	printf("{\"r\":%d", r);
	if (r == 0) {
		struct sb_http_flow f;
		ssize_t body;

		sb_http_flow_init(&f, s.body, s.length);
		body = sb_http_flow_take(&f, p + s.head_len, len - s.head_len, &why);
		printf(",\"taken\":%zd", body);
		num("done", body >= 0 && f.done);
	}
	num("status", s.status);
	num("head", s.head_len);
	num("body", (uint64_t)s.body);
	num("length", s.length);
	num("close", s.close);
	num("upgrade", s.upgrade);
}

static void socks(const uint8_t *p, size_t len)
{
	struct sb_socks_request q = { 0 };
	bool no_auth = false;
	uint8_t out[SB_SOCKS_REPLY_MAX];
	size_t offer = 0;

	printf("{\"offer\":%d", sb_socks5_offer(p, len, &offer, &no_auth));
	num("offer_len", offer);
	num("no_auth", no_auth);
	printf(",\"r\":%d", sb_socks_request(p, len, &q));
	num("version", q.version);
	num("cmd", q.cmd);
	num("is_name", q.is_name);
	hex("host", q.host, q.host_len);
	hex("addr", q.addr, 16);
	num("port", q.port);
	num("len", q.len);
	hex("yes", out, sb_socks_reply(q.version, 0, q.addr, q.port, out));
	hex("no", out, sb_socks_reply(q.version, 2, NULL, 0, out));
}

int main(void)
{
	uint8_t head[5];

	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		size_t len = (size_t)head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16 |
			     (size_t)head[4] << 24;
		uint8_t *p = len <= INPUT_MAX ? calloc(1, len + (len == 0)) : NULL;

		if (!p || fread(p, 1, len, stdin) != len)
			return 2;
		if (head[0] == 'q')
			dns_query(p, len);
		else if (head[0] == 'r')
			dns_reply(p, len);
		else if (head[0] == 'w')
			dns_write(p, len);
		else if (head[0] == 't')
			tls(p, len);
		else if (head[0] == 'h')
			http((const char *)p, len);
		else if (head[0] == 's')
			response((const char *)p, len);
		else if (head[0] == 'k')
			socks(p, len);
		else
			return 2;
		printf("}\n");
		(void)fflush(stdout);
		free(p);
	}
	return 0;
}
