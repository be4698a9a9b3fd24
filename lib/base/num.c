#include "base/num.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

int sb_num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = s;

	if (*p == '\0' || (*p == '0' && p[1] != '\0'))
		return -EINVAL;
	for (; *p; p++) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	}
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

__extension__ typedef unsigned __int128 u128;

struct unit {
	const char *name;
	uint64_t factor;
};

/* Digits, optional decimals (at most 9), a unit of @units; the result in whole base units. */
static int scaled(const char *s, const struct unit *units, size_t n, uint64_t *ret)
{
	uint64_t whole = 0;
	uint64_t frac = 0;
	uint64_t div = 1;
	const char *p = s;
	size_t i;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
			return -ERANGE;
	}
	if (*p == '.') {
		p++;
		if (*p < '0' || *p > '9')
			return -EINVAL;
		for (; *p >= '0' && *p <= '9'; p++) {
			if (div >= 1000000000)
				return -EINVAL;
			frac = frac * 10 + (uint64_t)(*p - '0');
			div *= 10;
		}
	}
	for (i = 0; i < n; i++)
		if (strcasecmp(p, units[i].name) == 0)
			break;
	if (i == n)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, units[i].factor, &whole))
		return -ERANGE;
	/* frac < 1e9 and factor <= 2^40: the product may need 70 bits, so divide in 128 bits */
	if (__builtin_add_overflow(
		    whole, (uint64_t)((u128)frac * units[i].factor / div), &whole))
		return -ERANGE;
	if (whole == 0)
		return -ERANGE;
	*ret = whole;
	return 0;
}

int sb_num_size(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "b", 1 },
		{ "", 1ULL << 20 },
		{ "k", 1ULL << 10 },
		{ "kb", 1ULL << 10 },
		{ "m", 1ULL << 20 },
		{ "mb", 1ULL << 20 },
		{ "g", 1ULL << 30 },
		{ "gb", 1ULL << 30 },
		{ "t", 1ULL << 40 },
		{ "tb", 1ULL << 40 },
	};

	return scaled(s, units, SB_ARRAY_LEN(units), ret);
}

int sb_num_duration_ms(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "ms", 1 },	  { "", 1000 },	     { "s", 1000 },
		{ "m", 60000 },	  { "h", 3600000 },  { "d", 86400000 },
	};
	uint64_t v;
	int r = scaled(s, units, SB_ARRAY_LEN(units), &v);

	if (r < 0)
		return r;
	if (v > 366ULL * 86400000)
		return -ERANGE;
	*ret = v;
	return 0;
}

void sb_hex_write(const uint8_t *in, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[in[i] >> 4];
		out[2 * i + 1] = digits[in[i] & 15];
	}
	out[2 * len] = '\0';
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int sb_hex_parse(const char *s, uint8_t *out, size_t len)
{
	if (strlen(s) != 2 * len)
		return -EINVAL;
	for (size_t i = 0; i < 2 * len; i++)
		if (nibble(s[i]) < 0)
			return -EINVAL;
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(nibble(s[2 * i]) << 4 | nibble(s[2 * i + 1]));
	return 0;
}
