/*
 * A ClientHello read in one piece is the same when its records are cut into single bytes, and
 * every part of it short of the end wants more, as far as the limit allows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tls_hello.h"

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* The payload of the records, each byte in a record of its own. */
static size_t cut(const uint8_t *p, size_t len, uint8_t *out, size_t cap)
{
	size_t n = 0;

	for (size_t at = 0; len - at > 5;) {
		size_t body = (size_t)p[at + 3] << 8 | p[at + 4];

		if (p[at] != 0x16)
			break;
		at += 5;
		for (; body > 0 && at < len && n + 6 <= cap; body--, at++, n += 6) {
			memcpy(out + n, "\x16\3\3\0\1", 5);
			out[n + 5] = p[at];
		}
		if (body > 0)
			break;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t pieces[SB_TLS_HELLO_MAX];
	struct sb_tls_hello h = { .name_len = 999 };
	struct sb_tls_hello again = { 0 };
	size_t all = size;
	size_t len;
	int r = sb_tls_hello_parse(data, size, &h);

	must(r == 0 || r == SB_TLS_MORE || r == -EPROTO || r == -EBADMSG);
	if (r != 0) {
		must(h.name_len == 999);
		must(r != SB_TLS_MORE || size < SB_TLS_HELLO_MAX);
		return 0;
	}
	must(strlen(h.name) == h.name_len && h.has_name == (h.name_len > 0));
	while (all > 0 && sb_tls_hello_parse(data, all - 1, &again) == 0)
		all--; /* what comes after it */
	must(memcmp(&h, &again, sizeof(h)) == 0 || all == size);
	must(sb_tls_hello_parse(data, all - 1, &again) == SB_TLS_MORE);
	len = cut(data, all, pieces, sizeof(pieces));
	if (len / 6 * 6 == len && len < sizeof(pieces) - 6) {
		must(sb_tls_hello_parse(pieces, len, &again) == 0);
		must(h.ech == again.ech && h.h2 == again.h2 && h.has_name == again.has_name);
		must(strcmp(h.name, again.name) == 0);
	}
	return 0;
}
