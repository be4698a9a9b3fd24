/*
 * HTTP/1. Of an accepted head every shorter part wants more, every borrowed piece lies inside it,
 * its fields put together give the head again, and none of its bytes has two readings. A body
 * fed in one piece ends where it ends fed byte by byte.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/http1.h"

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void inside(const struct sb_http_str *s, const char *p, size_t len)
{
	must(s->len == 0 || (s->p >= p && s->p + s->len <= p + len));
}

static void head_bytes(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)p[i];

		must(c != 0x7f && (c >= 0x20 || c == '\t' || c == '\r' || c == '\n'));
		must(c != '\n' || (i > 0 && p[i - 1] == '\r'));
		must(c != '\r' || (i + 1 < len && p[i + 1] == '\n'));
		must(c != '\n' || i + 1 == len || (p[i + 1] != ' ' && p[i + 1] != '\t'));
	}
}

static void flow(enum sb_http_body body, uint64_t length, const char *p, size_t len)
{
	struct sb_http_flow whole;
	struct sb_http_flow bytes;
	const char *why = NULL;
	ssize_t took;
	size_t n = 0;
	int r = 0;

	sb_http_flow_init(&whole, body, length);
	bytes = whole;
	took = sb_http_flow_take(&whole, p, len, &why);
	must(took >= -EBADMSG && took <= (ssize_t)len && (took >= 0 || why));
	must(took < 0 || (size_t)took == len || whole.done);
	while (n < len && !bytes.done && r == 0) {
		ssize_t k = sb_http_flow_take(&bytes, p + n, 1, &why);

		must(k == 1 || k == -EBADMSG);
		n += k == 1;
		r = k < 0;
	}
	must(took < 0 ? r == 1 : n == (size_t)took && r == 0);
	if (took >= 0)
		must(bytes.done == whole.done && bytes.left == whole.left &&
		     bytes.state == whole.state);
}

static void accepted(const struct sb_http_request *r, const char *p, size_t len)
{
	struct sb_http_str host;
	struct sb_http_request again;
	const char *why;
	const char *at = memchr(p, '\n', len);
	uint16_t port;
	bool v6;

	must(r->head_len <= len && r->head_len <= SB_HTTP_HEAD_MAX);
	must(r->n_fields <= SB_HTTP_MAX_FIELDS && r->form != SB_HTTP_NO_FORM && r->minor <= 1);
	must(memcmp(p + r->head_len - 4, "\r\n\r\n", 4) == 0);
	head_bytes(p, r->head_len);
	inside(&r->method, p, r->head_len);
	inside(&r->target, p, r->head_len);
	inside(&r->scheme, r->target.p, r->target.len);
	inside(&r->authority, r->target.p, r->target.len);
	inside(&r->path, r->target.p, r->target.len);
	must(at != NULL);
	at++;
	for (size_t i = 0; i < r->n_fields; i++) {
		must(r->fields[i].line.p == at);
		inside(&r->fields[i].name, at, r->fields[i].line.len);
		inside(&r->fields[i].value, at, r->fields[i].line.len);
		at += r->fields[i].line.len;
	}
	must(at == p + r->head_len - 2);
	must(r->minor == 0 || r->has_host);
	must(!r->has_host || sb_http_authority(&r->host, &host, &v6, &port) == 0);
	must((r->form == SB_HTTP_ABSOLUTE || r->form == SB_HTTP_AUTHORITY) ==
	     (r->authority.len > 0));
	if (r->authority.len > 0)
		must(sb_http_authority(&r->authority, &host, &v6, &port) == 0 &&
		     !memchr(host.p, '@', host.len));
	for (size_t n = 0; n < r->head_len; n += 1 + n / 8)
		must(sb_http_request_parse(p, n, &again, &why) == SB_HTTP_MORE);
	must(sb_http_request_parse(p, r->head_len - 1, &again, &why) == SB_HTTP_MORE);
	must(sb_http_request_parse(p, r->head_len, &again, &why) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_http_request r;
	const char *p = (const char *)data;
	struct sb_http_response s = { 0 };
	const char *why = NULL;
	int k = sb_http_request_parse(p, size, &r, &why);

	must(k == 0 || k == SB_HTTP_MORE || k == -EPROTO ||
	     ((k == -EBADMSG || k == -E2BIG) && why));
	must(k != SB_HTTP_MORE || size < SB_HTTP_HEAD_MAX);
	if (k == 0) {
		accepted(&r, p, size);
		flow(r.body, r.length, p + r.head_len, size - r.head_len);
	}
	why = NULL;
	k = sb_http_response_parse(p, size, &s, &why);
	must(k == 0 || k == SB_HTTP_MORE || k == -EPROTO ||
	     ((k == -EBADMSG || k == -E2BIG) && why));
	if (k == 0) {
		must(s.head_len <= size && s.status >= 100 && s.status <= 999);
		head_bytes(p, s.head_len);
		flow(s.body, s.length, p + s.head_len, size - s.head_len);
	}
	flow(SB_HTTP_CHUNKED, 0, p, size);
	return 0;
}
