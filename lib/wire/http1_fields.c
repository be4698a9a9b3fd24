/* Header fields: one line each, read in one way only, and what they mean for the framing. */
#include "wire/http1_i.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static int bad(const char *text, const char **why)
{
	*why = text;
	return -EBADMSG;
}

bool http_is_token(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

bool http_is_text(char c)
{
	uint8_t b = (uint8_t)c;

	return b == '\t' || (b >= 0x20 && b != 0x7f);
}

bool sb_http_str_is(const struct sb_http_str *s, const char *word)
{
	return s->len == strlen(word) && strncasecmp(s->p, word, s->len) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct sb_http_str trim(const char *p, size_t len)
{
	while (len > 0 && is_blank(*p)) {
		p++;
		len--;
	}
	while (len > 0 && is_blank(p[len - 1]))
		len--;
	return (struct sb_http_str){ p, len };
}

/* Decimal digits, no leading zero, and no more than a file offset can be. */
static int length_parse(const struct sb_http_str *s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s->len == 0 || s->len > 19 || (s->len > 1 && s->p[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < s->len; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(s->p[i] - '0');
	}
	if (v > INT64_MAX)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int connection(const struct sb_http_str *value, struct http_fields *f, const char **why)
{
	const char *p = value->p;
	const char *end = p + value->len;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;
		struct sb_http_str token = trim(p, (size_t)(stop - p));

		for (size_t i = 0; i < token.len; i++)
			if (!http_is_token(token.p[i]))
				return bad("malformed Connection field", why);
		f->close = f->close || sb_http_str_is(&token, "close");
		f->keep_alive = f->keep_alive || sb_http_str_is(&token, "keep-alive");
		f->upgrade = f->upgrade || sb_http_str_is(&token, "upgrade");
		p = comma ? comma + 1 : end;
	}
	return 0;
}

static int meaning(const struct sb_http_str *name, const struct sb_http_str *value,
		   struct http_fields *f, const char **why)
{
	if (sb_http_str_is(name, "host")) {
		f->n_host++;
		f->host = *value;
	} else if (sb_http_str_is(name, "content-length")) {
		if (f->has_length)
			return bad("several Content-Length fields", why);
		if (f->chunked)
			return bad("Content-Length with Transfer-Encoding", why);
		if (length_parse(value, &f->length) < 0)
			return bad("malformed Content-Length", why);
		f->has_length = true;
	} else if (sb_http_str_is(name, "transfer-encoding")) {
		if (f->chunked)
			return bad("several Transfer-Encoding fields", why);
		if (f->has_length)
			return bad("Content-Length with Transfer-Encoding", why);
		if (!sb_http_str_is(value, "chunked"))
			return bad("a Transfer-Encoding other than chunked", why);
		f->chunked = true;
	} else if (sb_http_str_is(name, "connection")) {
		return connection(value, f, why);
	} else if (sb_http_str_is(name, "upgrade")) {
		if (f->has_upgrade)
			return bad("several Upgrade fields", why);
		f->has_upgrade = true;
		f->upgrade_to = *value;
	} else if (sb_http_str_is(name, "expect")) {
		f->expect_continue = f->expect_continue || sb_http_str_is(value, "100-continue");
	}
	return 0;
}

/* The line at @at. Return: 0 with its length in @ret_len; -EBADMSG */
static int line_parse(const char *p, size_t len, size_t at, size_t *ret_len,
		      struct sb_http_str *ret_name, struct sb_http_str *ret_value, const char **why)
{
	const char *line = p + at;
	const char *lf = memchr(line, '\n', len - at);
	size_t n;
	size_t colon = 0;

	if (!lf || lf == line || lf[-1] != '\r')
		return bad("bare line feed", why);
	n = (size_t)(lf - line) - 1;
	if (n > 0 && is_blank(line[0]))
		return bad("folded header line", why);
	while (colon < n && http_is_token(line[colon]))
		colon++;
	if (colon == n || line[colon] != ':')
		return bad(colon < n && colon > 0 && is_blank(line[colon])
				   ? "space before the colon"
				   : "malformed field name",
			   why);
	if (colon == 0)
		return bad("empty field name", why);
	for (size_t i = colon + 1; i < n; i++)
		if (!http_is_text(line[i]))
			return bad(line[i] == '\r' ? "bare carriage return"
						   : "control character in a header field",
				   why);
	*ret_name = (struct sb_http_str){ line, colon };
	*ret_value = trim(line + colon + 1, n - colon - 1);
	*ret_len = n + 2;
	return 0;
}

int http_fields_parse(const char *p, size_t len, size_t at, struct http_fields *ret,
		      struct sb_http_request *positions, const char **why)
{
	struct http_fields f = { 0 };
	size_t count = 0;

	while (len - at != 2 || memcmp(p + at, "\r\n", 2) != 0) {
		struct sb_http_str name;
		struct sb_http_str value;
		size_t n;
		int r = line_parse(p, len, at, &n, &name, &value, why);

		if (r == 0)
			r = meaning(&name, &value, &f, why);
		if (r < 0)
			return r;
		sb_assert(count < SB_HTTP_MAX_FIELDS); /* lines were counted */
		if (positions) {
			positions->fields[count].name = name;
			positions->fields[count].value = value;
			positions->fields[count].line = (struct sb_http_str){ p + at, n };
			positions->n_fields = count + 1;
		}
		count++;
		at += n;
	}
	f.upgrade = f.upgrade && f.has_upgrade;
	*ret = f;
	return 0;
}
