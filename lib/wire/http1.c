/*
 * Requests and responses. The start line is judged as soon as it is there, the fields when the
 * head has ended; where a lenient reader would see its end, ours does too, and refuses it.
 */
#include "wire/http1.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "wire/http1_i.h"

#define METHOD_MAX 64

static int bad(const char *text, const char **why)
{
	*why = text;
	return -EBADMSG;
}

static int too_big(const char *text, const char **why)
{
	*why = text;
	return -E2BIG;
}

static bool str_has(const struct sb_http_str *s, char c)
{
	return memchr(s->p, c, s->len) != NULL;
}

/* Whether the first bytes can be a request line at all. What a lenient server might take for one
 * must not be passed off as another protocol. */
static int request_start(const char *p, size_t len, const char **why)
{
	size_t n = 0;

	if (len == 0)
		return SB_HTTP_MORE;
	if (memchr(" \t\r\n\v\f", p[0], 6))
		return bad("blank before the request line", why);
	if (!http_is_token(p[0]) || (len >= 4 && memcmp(p, "SSH-", 4) == 0))
		return -EPROTO;
	while (n < len && n <= METHOD_MAX && http_is_token(p[n]))
		n++;
	if (n > METHOD_MAX)
		return bad("method too long", why);
	if (n < len && p[n] != ' ')
		return bad("malformed request line", why);
	return n < len ? 0 : SB_HTTP_MORE;
}

static int response_start(const char *p, size_t len)
{
	static const char version[] = "HTTP/1.";
	size_t n = SB_MIN(len, sizeof(version) - 1);

	if (n > 0 && memcmp(p, version, n) != 0)
		return -EPROTO;
	return n == sizeof(version) - 1 ? 0 : SB_HTTP_MORE;
}

/* The first line, without its CRLF. */
static int line_get(const char *p, size_t len, struct sb_http_str *ret, const char **why)
{
	const char *lf = memchr(p, '\n', SB_MIN(len, (size_t)HTTP_LINE_MAX + 2));

	if (!lf)
		return len >= HTTP_LINE_MAX + 2 ? too_big("first line too long", why)
						: SB_HTTP_MORE;
	if (lf == p || lf[-1] != '\r')
		return bad("bare line feed", why);
	*ret = (struct sb_http_str){ p, (size_t)(lf - p) - 1 };
	if (str_has(ret, '\r'))
		return bad("bare carriage return", why);
	return 0;
}

/* End of the head as the most lenient reader sees it. Lines are counted here already, so that a
 * head that comes byte by byte is not walked too often. */
static int head_get(const char *p, size_t len, size_t at, size_t *ret_len, const char **why)
{
	size_t max = SB_MIN(len, (size_t)SB_HTTP_HEAD_MAX);
	unsigned int lines = 0;

	at--; /* the line feed of the first line */
	while (at < max) {
		const char *lf;

		if (at + 1 < max && p[at + 1] == '\n') {
			*ret_len = at + 2;
			return 0;
		}
		if (at + 2 < max && p[at + 1] == '\r' && p[at + 2] == '\n') {
			*ret_len = at + 3;
			return 0;
		}
		lf = memchr(p + at + 1, '\n', max - at - 1);
		if (!lf)
			break;
		if (++lines > SB_HTTP_MAX_FIELDS)
			return too_big("too many header fields", why);
		at = (size_t)(lf - p);
	}
	return len >= SB_HTTP_HEAD_MAX ? too_big("head too large", why) : SB_HTTP_MORE;
}

static int absolute_parse(struct sb_http_request *r, const char **why)
{
	const char *p = r->target.p;
	const char *end = p + r->target.len;
	const char *colon = memchr(p, ':', r->target.len);
	struct sb_http_str host;
	uint16_t port;
	size_t n = 0;
	bool v6;

	r->form = SB_HTTP_ABSOLUTE;
	if (!colon || end - colon < 3 || memcmp(colon, "://", 3) != 0)
		return bad("malformed request target", why);
	r->scheme = (struct sb_http_str){ p, (size_t)(colon - p) };
	if (!sb_http_str_is(&r->scheme, "http") && !sb_http_str_is(&r->scheme, "https"))
		return bad("scheme of the target is not http", why);
	p = colon + 3;
	while (n < (size_t)(end - p) && p[n] != '/' && p[n] != '?')
		n++;
	r->authority = (struct sb_http_str){ p, n };
	r->path = (struct sb_http_str){ p + n, (size_t)(end - p) - n };
	if (sb_http_authority(&r->authority, &host, &v6, &port) < 0)
		return bad("malformed host in the request target", why);
	return 0;
}

static int target_parse(struct sb_http_request *r, const char **why)
{
	const struct sb_http_str *t = &r->target;

	for (size_t i = 0; i < t->len; i++)
		if (t->p[i] <= 0x20 || t->p[i] >= 0x7f || t->p[i] == '#')
			return bad("illegal character in the request target", why);
	if (sb_http_str_is(&r->method, "CONNECT")) {
		struct sb_http_str host;
		uint16_t port;
		bool v6;

		if (memcmp(r->method.p, "CONNECT", 7) != 0)
			return bad("CONNECT in another case", why);
		if (sb_http_authority(t, &host, &v6, &port) < 0 || port == 0)
			return bad("malformed host or port in CONNECT", why);
		r->form = SB_HTTP_AUTHORITY;
		r->authority = *t;
		return 0;
	}
	if (t->p[0] == '/') {
		r->form = SB_HTTP_ORIGIN;
		r->path = *t;
		return 0;
	}
	if (t->len == 1 && t->p[0] == '*') {
		r->form = SB_HTTP_ASTERISK;
		if (r->method.len != 7 || memcmp(r->method.p, "OPTIONS", 7) != 0)
			return bad("target * without OPTIONS", why);
		return 0;
	}
	return absolute_parse(r, why);
}

static int request_line(const struct sb_http_str *line, struct sb_http_request *r, const char **why)
{
	const char *end = line->p + line->len;
	const char *sp = memchr(line->p, ' ', line->len);
	const char *sp2 = sp ? memchr(sp + 1, ' ', (size_t)(end - sp) - 1) : NULL;

	if (!sp)
		return bad("malformed request line", why);
	r->method = (struct sb_http_str){ line->p, (size_t)(sp - line->p) };
	if (sb_http_str_is(&r->method, "PRI"))
		return bad("HTTP/2 prior knowledge", why);
	if (!sp2)
		return bad("request line without version", why);
	r->target = (struct sb_http_str){ sp + 1, (size_t)(sp2 - sp) - 1 };
	if (r->target.len == 0)
		return bad("malformed request line", why);
	if (end - sp2 != 9 || memcmp(sp2, " HTTP/1.", 8) != 0 || (sp2[8] != '0' && sp2[8] != '1'))
		return bad("version is not HTTP/1.0 or HTTP/1.1", why);
	r->minor = (uint8_t)(sp2[8] - '0');
	return target_parse(r, why);
}

static int request_check(struct sb_http_request *r, const struct http_fields *f, const char **why)
{
	struct sb_http_str host;
	uint16_t port;
	bool v6;

	if (f->n_host > 1)
		return bad("several Host fields", why);
	if (f->n_host == 0 && r->minor == 1)
		return bad("no Host field", why);
	if (f->n_host == 1 && sb_http_authority(&f->host, &host, &v6, &port) < 0)
		return bad("malformed Host field", why);
	if (f->chunked && r->minor == 0)
		return bad("Transfer-Encoding in HTTP/1.0", why);
	if (r->form == SB_HTTP_AUTHORITY && (f->chunked || f->length > 0))
		return bad("CONNECT with a body", why);
	r->has_host = f->n_host == 1;
	r->host = f->host;
	r->body = f->chunked ? SB_HTTP_CHUNKED : f->has_length ? SB_HTTP_LENGTH : SB_HTTP_NO_BODY;
	r->length = f->length;
	r->close = f->close || (r->minor == 0 && !f->keep_alive);
	r->upgrade = f->upgrade && r->minor == 1;
	r->upgrade_to = f->upgrade_to;
	r->expect_continue = f->expect_continue && r->minor == 1;
	return 0;
}

int sb_http_request_parse(const char *p, size_t len, struct sb_http_request *ret, const char **why)
{
	struct sb_http_request r = { 0 };
	struct http_fields f;
	struct sb_http_str line;
	int k = request_start(p, len, why);

	if (k != 0)
		return k;
	k = line_get(p, len, &line, why);
	if (k != 0)
		return k;
	k = request_line(&line, &r, why);
	if (k == 0)
		k = head_get(p, len, line.len + 2, &r.head_len, why);
	if (k == 0)
		k = http_fields_parse(p, r.head_len, line.len + 2, &f, &r, why);
	if (k == 0)
		k = request_check(&r, &f, why);
	if (k == 0)
		*ret = r;
	return k;
}

/* "HTTP/1.1 200 OK"; the reason, and the space before it, may be missing. */
static int status_line(const struct sb_http_str *line, struct sb_http_response *r, const char **why)
{
	const char *p = line->p;

	if (line->len < 12 || (p[7] != '0' && p[7] != '1') || p[8] != ' ' ||
	    (line->len > 12 && p[12] != ' '))
		return bad("malformed status line", why);
	for (size_t i = 9; i < 12; i++) {
		if (p[i] < '0' || p[i] > '9')
			return bad("malformed status", why);
		r->status = (uint16_t)(r->status * 10 + (p[i] - '0'));
	}
	if (r->status < 100)
		return bad("malformed status", why);
	for (size_t i = 12; i < line->len; i++)
		if (!http_is_text(p[i]))
			return bad("control character in the status line", why);
	r->minor = (uint8_t)(p[7] - '0');
	return 0;
}

int sb_http_response_parse(const char *p, size_t len, struct sb_http_response *ret,
			   const char **why)
{
	struct sb_http_response r = { 0 };
	struct http_fields f;
	struct sb_http_str line;
	int k = response_start(p, len);

	if (k != 0)
		return k;
	k = line_get(p, len, &line, why);
	if (k != 0)
		return k;
	k = status_line(&line, &r, why);
	if (k == 0)
		k = head_get(p, len, line.len + 2, &r.head_len, why);
	if (k == 0)
		k = http_fields_parse(p, r.head_len, line.len + 2, &f, NULL, why);
	if (k != 0)
		return k;
	if (f.chunked && r.minor == 0)
		return bad("Transfer-Encoding in HTTP/1.0", why);
	r.body = f.chunked ? SB_HTTP_CHUNKED : f.has_length ? SB_HTTP_LENGTH : SB_HTTP_UNTIL_CLOSE;
	r.length = f.length;
	r.close = f.close || (r.minor == 0 && !f.keep_alive);
	r.upgrade = f.upgrade;
	*ret = r;
	return 0;
}

static bool is_host_char(char c, bool v6)
{
	if ((c >= '0' && c <= '9') || c == '.')
		return true;
	if (v6)
		return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

int sb_http_authority(const struct sb_http_str *s, struct sb_http_str *ret_host, bool *ret_v6,
		      uint16_t *ret_port)
{
	struct sb_http_str host = { s->p, 0 };
	bool v6 = s->len > 0 && s->p[0] == '[';
	size_t at = v6 ? 1 : 0;
	uint32_t port = 0;

	host.p = s->p + at;
	while (at < s->len && is_host_char(s->p[at], v6)) {
		at++;
		host.len++;
	}
	if (host.len == 0 || host.len > 255)
		return -EINVAL;
	if (v6 && (at == s->len || s->p[at++] != ']' || !str_has(&host, ':')))
		return -EINVAL;
	if (at < s->len) {
		size_t digits = s->len - at - 1;

		if (s->p[at++] != ':' || digits < 1 || digits > 5 || s->p[at] == '0')
			return -EINVAL;
		for (; at < s->len; at++) {
			if (s->p[at] < '0' || s->p[at] > '9')
				return -EINVAL;
			port = port * 10 + (uint32_t)(s->p[at] - '0');
		}
		if (port > UINT16_MAX)
			return -EINVAL;
	}
	*ret_host = host;
	*ret_v6 = v6;
	*ret_port = (uint16_t)port;
	return 0;
}
