#include "text.h"

#include <stdio.h>
#include <string.h>

size_t text_char(const char *s, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char c = len > 0 ? (unsigned char)s[0] : 0x80;
	uint32_t v;
	size_t n;

	if (c < 0x80) {
		*ret = c;
		return 1;
	}
	n = c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
	if (n == 0 || c >= 0xf8 || n > len)
		return 0;
	v = c & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | ((unsigned char)s[i] & 0x3fU);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*ret = v;
	return n;
}

void text_place_init(struct text_place *p, const char *bytes, size_t len)
{
	*p = (struct text_place){ .bytes = bytes, .len = len, .line = 1, .col = 1 };
}

void text_place_to(struct text_place *p, size_t pos)
{
	pos = SB_MIN(pos, p->len);
	if (pos < p->pos)
		text_place_init(p, p->bytes, p->len);
	for (; p->pos < pos; p->pos++) {
		unsigned char c = (unsigned char)p->bytes[p->pos];

		if (c == '\n' ||
		    (c == '\r' && (p->pos + 1 == p->len || p->bytes[p->pos + 1] != '\n'))) {
			p->line++;
			p->col = 1;
		} else if ((c & 0xc0) != 0x80 && c != '\r') {
			p->col++;
		}
	}
}

static bool unseen(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       c >= 0xe0000 || (c >= 0xfff0 && c <= 0xffff) || c == 0x61c || c == 0x180e;
}

void text_show(const char *in, size_t len, char *out, size_t cap)
{
	size_t n = 0;
	size_t cut = 0; /* where "..." would go */

	for (size_t i = 0; i < len;) {
		uint32_t c = 0;
		size_t k = text_char(in + i, len - i, &c);
		bool hex = k == 0 || unseen(c);
		size_t take = SB_MAX(k, (size_t)1);
		size_t need = hex ? 4 * take : take;

		if (n + 4 <= cap)
			cut = n;
		if (n + need + 1 > cap) {
			memcpy(out + cut, "...", SB_MIN((size_t)4, cap));
			return;
		}
		for (size_t j = 0; j < take; j++, i++) {
			if (hex)
				(void)snprintf(out + n, cap - n, "\\x%02x", (unsigned char)in[i]);
			else
				out[n] = in[i];
			n += hex ? 4 : 1;
		}
	}
	out[n] = '\0';
}

bool text_append(char *out, size_t cap, const char *s, size_t len)
{
	size_t n = strlen(out);
	size_t take = SB_MIN(len, cap - 1 - n);

	memcpy(out + n, s, take);
	out[n + take] = '\0';
	return take == len;
}
