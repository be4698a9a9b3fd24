/*
 * Terminal filter: the same output however the input is cut; bounded; what comes out comes out
 * again unchanged; and none of the forbidden sequences is in it, looked for in another way.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/termfilter.h"

static size_t run(const uint8_t *in, size_t len, size_t step, uint8_t *out)
{
	struct sb_termfilter f = { 0 };
	size_t n = 0;

	for (size_t at = 0; at < len; at += step) {
		size_t part = SB_MIN(step, len - at);
		size_t m = sb_termfilter_run(&f, in + at, part, out + n);

		if (n + m > 2 * (at + part) || m > SB_TERMFILTER_ROOM(part))
			abort();
		n += m;
	}
	return n + sb_termfilter_end(&f, out + n);
}

static void look(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == 0x05)
			abort();
		if (p[i] == 0xc2 && i + 1 < n && p[i + 1] >= 0x80 && p[i + 1] <= 0x9f)
			abort();
		if (p[i] != 0x1b || i + 1 >= n)
			continue;
		if (memchr("PX^_k%", p[i + 1], 6))
			abort();
		if (p[i + 1] == ']' && i + 4 < n && memcmp(p + i + 2, "52;", 3) == 0)
			abort();
		if (p[i + 1] == '[' && i + 4 < n && memcmp(p + i + 2, "21t", 3) == 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *a = malloc(SB_TERMFILTER_ROOM(size));
	uint8_t *b = malloc(SB_TERMFILTER_ROOM(size) + SB_TERMFILTER_ROOM(7));
	size_t n;

	if (!a || !b)
		abort();
	n = run(data, size, size + 1, a);
	if (run(data, size, 1, b) != n || memcmp(a, b, n) != 0)
		abort();
	if (run(data, size, 7, b) != n || memcmp(a, b, n) != 0)
		abort();
	look(a, n);
	if (run(a, n, n + 1, b) != n || memcmp(a, b, n) != 0)
		abort();
	free(a);
	free(b);
	return 0;
}
