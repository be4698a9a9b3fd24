/* SOCKS. What parses, written again after the RFC, is what came; every shorter part wants more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/socks.h"

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void again(const struct sb_socks_request *r, const uint8_t *p)
{
	uint8_t port[2] = { (uint8_t)(r->port >> 8), (uint8_t)r->port };

	if (r->version == 4) {
		must(memcmp(p + 2, port, 2) == 0 && p[r->len - 1] == 0);
		if (r->is_name)
			must(memcmp(p + r->len - r->host_len - 1, r->host, r->host_len + 1) == 0);
		else
			must(memcmp(r->addr + 12, p + 4, 4) == 0);
		return;
	}
	must(memcmp(p + r->len - 2, port, 2) == 0);
	if (r->is_name)
		must(p[3] == 3 && p[4] == r->host_len && memcmp(p + 5, r->host, r->host_len) == 0 &&
		     r->len == r->host_len + 7);
	else if (p[3] == 1)
		must(r->len == 10 && memcmp(r->addr + 12, p + 4, 4) == 0);
	else
		must(r->len == 22 && memcmp(r->addr, p + 4, 16) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_socks_request r = { 0 };
	struct sb_socks_request part;
	bool no_auth = false;
	size_t len = 0;
	int k = sb_socks5_offer(data, size, &len, &no_auth);

	must(k == 0 || k == SB_SOCKS_MORE || k == -EBADMSG);
	if (k == 0) {
		must(len >= 3 && len <= size && len == 2U + data[1]);
		data += len; /* what a client may send on */
		size -= len;
	}
	k = sb_socks_request(data, size, &r);
	must(k == 0 || k == SB_SOCKS_MORE || k == -EBADMSG);
	must(k != SB_SOCKS_MORE || size < SB_SOCKS_MAX);
	if (k != 0)
		return 0;
	must(r.len <= size && r.len <= SB_SOCKS_MAX && r.version == data[0] && r.cmd == data[1]);
	must(r.is_name == (r.host_len > 0) && strlen(r.host) == r.host_len);
	must(r.cmd != SB_SOCKS_CONNECT || r.port != 0);
	again(&r, data);
	for (size_t n = 0; n < r.len; n++)
		must(sb_socks_request(data, n, &part) == SB_SOCKS_MORE);
	must(sb_socks_request(data, r.len, &part) == 0);
	return 0;
}
