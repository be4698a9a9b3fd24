/* A body going by: where it ends, and whether its chunks are well-formed. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "wire/http1_i.h"

#define EXTENSION_MAX 256
#define TRAILER_MAX 8192
#define DIGITS_MAX 16

enum state {
	SIZE = 0, /* digits of a chunk's size */
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER, /* at the start of a line */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	END_LF,
};

void sb_http_flow_init(struct sb_http_flow *f, enum sb_http_body body, uint64_t length)
{
	*f = (struct sb_http_flow){ .body = body };
	if (body == SB_HTTP_LENGTH)
		f->left = length;
	f->done = body == SB_HTTP_NO_BODY || (body == SB_HTTP_LENGTH && length == 0);
}

static int bad(const char *text, const char **why)
{
	*why = text;
	return -EBADMSG;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int size_take(struct sb_http_flow *f, char c, const char **why)
{
	int d = digit(c);

	if (d >= 0) {
		if (f->line_len == DIGITS_MAX || f->left > INT64_MAX >> 4)
			return bad("chunk too large", why);
		f->left = f->left << 4 | (uint64_t)d;
		f->line_len++;
		return 0;
	}
	if (f->line_len == 0 || (c != ';' && c != '\r'))
		return bad("malformed chunk size", why);
	f->line_len = 0;
	f->state = c == ';' ? EXTENSION : SIZE_LF;
	return 0;
}

static int extension_take(struct sb_http_flow *f, char c, const char **why)
{
	if (c == '\r') {
		f->line_len = 0;
		f->state = SIZE_LF;
		return 0;
	}
	if (!http_is_text(c))
		return bad("control character in a chunk extension", why);
	if (++f->line_len > EXTENSION_MAX - 1) /* the semicolon counts */
		return bad("chunk extension too long", why);
	return 0;
}

static int trailer_take(struct sb_http_flow *f, char c, const char **why)
{
	if (++f->trailer_len > TRAILER_MAX)
		return bad("trailer too large", why);
	switch (f->state) {
	case TRAILER:
		if (c == '\r') {
			f->state = END_LF;
			return 0;
		}
		f->state = TRAILER_NAME;
		return http_is_token(c) ? 0 : bad("malformed trailer", why);
	case TRAILER_NAME:
		if (c == ':')
			f->state = TRAILER_VALUE;
		return c == ':' || http_is_token(c) ? 0 : bad("malformed trailer", why);
	default:
		if (c == '\r')
			f->state = TRAILER_LF;
		return c == '\r' || http_is_text(c) ? 0 : bad("malformed trailer", why);
	}
}

/* One byte of framing. */
static int framing_take(struct sb_http_flow *f, char c, const char **why)
{
	switch ((enum state)f->state) {
	case SIZE:
		return size_take(f, c, why);
	case EXTENSION:
		return extension_take(f, c, why);
	case SIZE_LF:
		f->state = f->left > 0 ? DATA : TRAILER;
		break;
	case DATA_CR:
		f->state = DATA_LF;
		return c == '\r' ? 0 : bad("chunk longer than its size", why);
	case DATA_LF:
		f->state = SIZE;
		break;
	case TRAILER_LF:
		f->trailer_len++;
		f->state = TRAILER;
		break;
	case END_LF:
		f->done = true;
		break;
	case TRAILER:
	case TRAILER_NAME:
	case TRAILER_VALUE:
		return trailer_take(f, c, why);
	case DATA:
	default:
		sb_assert(false); /* data is no framing */
	}
	return c == '\n' ? 0 : bad("bare carriage return", why);
}

ssize_t sb_http_flow_take(struct sb_http_flow *f, const char *p, size_t len, const char **why)
{
	struct sb_http_flow now = *f;
	size_t at = 0;

	if (len > SSIZE_MAX)
		len = SSIZE_MAX;
	while (at < len && !now.done) {
		bool data = now.body != SB_HTTP_CHUNKED || now.state == DATA;
		size_t n = len - at;
		int r;

		if (!data) {
			r = framing_take(&now, p[at], why);
			if (r < 0)
				return r;
			at++;
			continue;
		}
		if (now.body != SB_HTTP_UNTIL_CLOSE) {
			n = (size_t)SB_MIN(now.left, (uint64_t)n);
			now.left -= n;
			if (now.left == 0 && now.body == SB_HTTP_LENGTH)
				now.done = true;
			else if (now.left == 0)
				now.state = DATA_CR;
		}
		at += n;
	}
	*f = now;
	return (ssize_t)at;
}
