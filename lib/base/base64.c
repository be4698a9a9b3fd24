#include "base/base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sb_base64_write(const void *in, size_t len, char *out)
{
	const uint8_t *p = in;

	for (; len > 0; p += 3, out += 4) {
		uint32_t v = (uint32_t)p[0] << 16;

		if (len > 1)
			v |= (uint32_t)p[1] << 8;
		if (len > 2)
			v |= p[2];
		out[0] = alphabet[v >> 18];
		out[1] = alphabet[v >> 12 & 63];
		out[2] = len > 1 ? alphabet[v >> 6 & 63] : '=';
		out[3] = len > 2 ? alphabet[v & 63] : '=';
		len = len > 3 ? len - 3 : 0;
	}
	*out = '\0';
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

int sb_base64_parse(const char *in, size_t len, uint8_t *out, size_t *ret_len)
{
	size_t pad = 0;
	size_t n = 0;

	if (len % 4 != 0)
		return -EINVAL;
	if (len > 0 && in[len - 1] == '=')
		pad = in[len - 2] == '=' ? 2 : 1;
	for (size_t i = 0; i < len; i += 4) {
		size_t have = i + 4 == len ? 4 - pad : 4;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k < have ? digit(in[i + k]) : 0;

			if (d < 0)
				return -EINVAL;
			v = v << 6 | (uint32_t)d;
		}
		if ((have == 2 && (v & 0xffff) != 0) || (have == 3 && (v & 0xff) != 0))
			return -EINVAL;
		out[n++] = (uint8_t)(v >> 16);
		if (have > 2)
			out[n++] = (uint8_t)(v >> 8);
		if (have > 3)
			out[n++] = (uint8_t)v;
	}
	*ret_len = n;
	return 0;
}
