#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sb_buf_init(struct sb_buf *b, size_t cap)
{
	*b = (struct sb_buf){ .cap = cap };
}

void sb_buf_done(struct sb_buf *b)
{
	free(b->data);
	*b = (struct sb_buf){ .cap = b->cap };
}

static bool reserve(struct sb_buf *b, size_t more)
{
	size_t want;
	size_t room;
	uint8_t *bigger;

	if (b->error)
		return false;
	if (!sb_add_size(b->len, more, &want) || want > b->cap) {
		b->error = -EFBIG;
		return false;
	}
	if (want <= b->room)
		return true;
	room = SB_MAX(b->room * 2, (size_t)256);
	room = SB_MIN(SB_MAX(room, want), b->cap);
	bigger = realloc(b->data, room);
	if (!bigger) {
		b->error = -ENOMEM;
		return false;
	}
	b->data = bigger;
	b->room = room;
	return true;
}

void sb_buf_add(struct sb_buf *b, const void *p, size_t len)
{
	if (len == 0 || !reserve(b, len))
		return;
	memcpy(b->data + b->len, p, len);
	b->len += len;
}

void sb_buf_add_str(struct sb_buf *b, const char *s)
{
	sb_buf_add(b, s, strlen(s));
}

void sb_buf_addf(struct sb_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !reserve(b, (size_t)n + 1)) {
		if (n < 0 && !b->error)
			b->error = -EFBIG;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

static void add_le(struct sb_buf *b, uint64_t v, size_t n)
{
	uint8_t t[8];

	for (size_t i = 0; i < n; i++)
		t[i] = (uint8_t)(v >> (8 * i));
	sb_buf_add(b, t, n);
}

void sb_buf_add_u8(struct sb_buf *b, uint8_t v)
{
	add_le(b, v, 1);
}

void sb_buf_add_le16(struct sb_buf *b, uint16_t v)
{
	add_le(b, v, 2);
}

void sb_buf_add_le32(struct sb_buf *b, uint32_t v)
{
	add_le(b, v, 4);
}

void sb_buf_add_le64(struct sb_buf *b, uint64_t v)
{
	add_le(b, v, 8);
}

void sb_buf_drop(struct sb_buf *b, size_t n)
{
	sb_assert(n <= b->len);
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

const uint8_t *sb_rd_bytes(struct sb_rd *r, size_t len)
{
	const uint8_t *p = r->p;

	if (r->bad || len > r->len) {
		r->bad = true;
		return NULL;
	}
	r->p += len;
	r->len -= len;
	return p;
}

static uint64_t get_le(struct sb_rd *r, size_t n)
{
	const uint8_t *p = sb_rd_bytes(r, n);
	uint64_t v = 0;

	for (size_t i = 0; p && i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t sb_rd_u8(struct sb_rd *r)
{
	return (uint8_t)get_le(r, 1);
}

uint16_t sb_rd_le16(struct sb_rd *r)
{
	return (uint16_t)get_le(r, 2);
}

uint32_t sb_rd_le32(struct sb_rd *r)
{
	return (uint32_t)get_le(r, 4);
}

uint64_t sb_rd_le64(struct sb_rd *r)
{
	return get_le(r, 8);
}

int sb_rd_end(const struct sb_rd *r)
{
	return r->bad || r->len != 0 ? -EBADMSG : 0;
}
