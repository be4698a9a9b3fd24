#include "wire/net_hello.h"
#include "t.h"

static const uint8_t tcp[SB_NET_HELLO_LEN] = {
	1, 1, 0xbb, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1
};

TEST(literal)
{
	uint8_t out[SB_NET_HELLO_LEN];
	struct sb_net_hello h;

	CHECK_EQ(sb_net_hello_parse(tcp, &h), 0);
	CHECK_EQ(h.kind, SB_NET_HELLO_TCP);
	CHECK_EQ(h.port, 443);
	CHECK_MEM(h.addr, tcp + 4, 16);
	sb_net_hello_write(&h, out);
	CHECK_MEM(out, tcp, sizeof(tcp));
}

TEST(dns)
{
	static const uint8_t dns[SB_NET_HELLO_LEN] = { 1, 2 };
	uint8_t out[SB_NET_HELLO_LEN];
	struct sb_net_hello h;

	CHECK_EQ(sb_net_hello_parse(dns, &h), 0);
	CHECK_EQ(h.kind, SB_NET_HELLO_DNS);
	CHECK_EQ(h.port, 0);
	sb_net_hello_write(&h, out);
	CHECK_MEM(out, dns, sizeof(dns));
}

TEST(refused)
{
	struct sb_net_hello h = { .kind = 77 };
	uint8_t in[SB_NET_HELLO_LEN];

	for (unsigned int v = 0; v < 256; v++) {
		memcpy(in, tcp, sizeof(in));
		in[0] = (uint8_t)v;
		if (v != 1)
			CHECK_EQ(sb_net_hello_parse(in, &h), -EBADMSG);
		memcpy(in, tcp, sizeof(in));
		in[1] = (uint8_t)v;
		if (v != 1)
			CHECK_EQ(sb_net_hello_parse(in, &h), -EBADMSG);
	}
	memcpy(in, tcp, sizeof(in));
	in[2] = in[3] = 0;
	CHECK_EQ(sb_net_hello_parse(in, &h), -EBADMSG);
	memset(in, 0, sizeof(in));
	in[0] = 1;
	in[1] = 2;
	in[3] = 1; /* DNS with a port */
	CHECK_EQ(sb_net_hello_parse(in, &h), -EBADMSG);
	in[3] = 0;
	in[19] = 1; /* DNS with an address */
	CHECK_EQ(sb_net_hello_parse(in, &h), -EBADMSG);
	CHECK_EQ(h.kind, 77);
}
