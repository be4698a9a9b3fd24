#include "wire/net_hello.h"

#include <errno.h>
#include <string.h>

#define VERSION 1

void sb_net_hello_write(const struct sb_net_hello *h, uint8_t out[SB_NET_HELLO_LEN])
{
	out[0] = VERSION;
	out[1] = h->kind;
	out[2] = (uint8_t)h->port;
	out[3] = (uint8_t)(h->port >> 8);
	memcpy(out + 4, h->addr, sizeof(h->addr));
}

int sb_net_hello_parse(const uint8_t in[SB_NET_HELLO_LEN], struct sb_net_hello *ret)
{
	static const uint8_t zero[sizeof(ret->addr)];
	struct sb_net_hello h = { .kind = in[1], .port = (uint16_t)(in[2] | in[3] << 8) };

	memcpy(h.addr, in + 4, sizeof(h.addr));
	if (in[0] != VERSION)
		return -EBADMSG;
	switch (h.kind) {
	case SB_NET_HELLO_TCP:
		if (h.port == 0)
			return -EBADMSG;
		break;
	case SB_NET_HELLO_DNS:
		if (h.port != 0 || memcmp(h.addr, zero, sizeof(zero)) != 0)
			return -EBADMSG;
		break;
	default:
		return -EBADMSG;
	}
	*ret = h;
	return 0;
}
