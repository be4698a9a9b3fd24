/* Requests to the kernel, byte by byte. The tables of linux/netlink.h and its families. */
#include <linux/netlink.h>
#include <sys/socket.h>

#include "init/net.h"
#include "init/nft.h"
#include "t.h"

TEST(an_address)
{
	static const uint8_t want[] = {
		0x28, 0, 0, 0, 20, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0, /* RTM_NEWADDR */
		2, 32, 0, 0, 7, 0, 0, 0,            /* AF_INET, /32, scope universe, lo is 7 */
		8, 0, 2, 0, 198, 18, 0, 1,          /* IFA_LOCAL */
		8, 0, 1, 0, 198, 18, 0, 1,          /* IFA_ADDRESS */
	};
	struct sb_nl m;

	sb_nl_init(&m);
	sb_net_build_addr(&m, AF_INET, 7);
	CHECK_EQ(m.b.len, sizeof(want));
	CHECK_MEM(m.b.data, want, sizeof(want));
	CHECK_EQ(m.acks, 1);
	sb_nl_done(&m);
}

TEST(an_address_v6)
{
	static const uint8_t want[] = {
		0x40, 0, 0, 0, 20, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0,
		10, 128, 2, 0, 1, 0, 0, 0, /* IFA_F_NODAD */
		20, 0, 2, 0, 0xfd, 0x73, 0x65, 0x6e, 0x64, 0x62, 0x6f, 0x78, 0, 0, 0, 0, 0, 0, 0, 1,
		20, 0, 1, 0, 0xfd, 0x73, 0x65, 0x6e, 0x64, 0x62, 0x6f, 0x78, 0, 0, 0, 0, 0, 0, 0, 1,
	};
	struct sb_nl m;

	sb_nl_init(&m);
	sb_net_build_addr(&m, AF_INET6, 1);
	CHECK_EQ(m.b.len, sizeof(want));
	CHECK_MEM(m.b.data, want, sizeof(want));
	sb_nl_done(&m);
}

TEST(the_routes)
{
	static const uint8_t want[] = {
		0x2c, 0, 0, 0, 24, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0, /* RTM_NEWROUTE */
		2, 0, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0, /* local table, static, host, local */
		8, 0, 4, 0, 1, 0, 0, 0,                 /* RTA_OIF */
		8, 0, 7, 0, 198, 18, 0, 1,              /* RTA_PREFSRC */
		0x38, 0, 0, 0, 24, 0, 0x05, 0x06, 2, 0, 0, 0, 0, 0, 0, 0,
		10, 0, 0, 0, 255, 4, 0, 2, 0, 0, 0, 0,
		8, 0, 4, 0, 1, 0, 0, 0,
		20, 0, 7, 0, 0xfd, 0x73, 0x65, 0x6e, 0x64, 0x62, 0x6f, 0x78, 0, 0, 0, 0, 0, 0, 0, 1,
	};
	struct sb_nl m;

	sb_nl_init(&m);
	sb_net_build_route(&m, AF_INET, 1);
	sb_net_build_route(&m, AF_INET6, 1);
	CHECK_EQ(m.b.len, sizeof(want));
	CHECK_MEM(m.b.data, want, sizeof(want));
	CHECK_EQ(m.acks, 2);
	sb_nl_done(&m);
}

TEST(the_table)
{
	static const uint8_t want[] = {
		20, 0, 0, 0, 16, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, /* NFNL_MSG_BATCH_BEGIN */
		0, 0, 0, 10,                                      /* for nf_tables */
		32, 0, 0, 0, 0, 10, 0x05, 0x06, 2, 0, 0, 0, 0, 0, 0, 0, /* NFT_MSG_NEWTABLE */
		1, 0, 0, 0,                                             /* inet */
		12, 0, 1, 0, 's', 'e', 'n', 'd', 'b', 'o', 'x', 0,
		88, 0, 0, 0, 3, 10, 0x05, 0x06, 3, 0, 0, 0, 0, 0, 0, 0, /* NFT_MSG_NEWCHAIN */
		1, 0, 0, 0,
		12, 0, 1, 0, 's', 'e', 'n', 'd', 'b', 'o', 'x', 0,
		15, 0, 3, 0, 'p', 'r', 'e', 'r', 'o', 'u', 't', 'i', 'n', 'g', 0, 0,
		20, 0, 4, 0x80,                       /* NFTA_CHAIN_HOOK */
		8, 0, 1, 0, 0, 0, 0, 0,               /* prerouting */
		8, 0, 2, 0, 0xff, 0xff, 0xff, 0x6a,   /* -150 */
		11, 0, 7, 0, 'f', 'i', 'l', 't', 'e', 'r', 0, 0,
		8, 0, 5, 0, 0, 0, 0, 1, /* policy accept */
	};
	struct sb_nl m;

	sb_nl_init(&m);
	sb_nft_build(&m);
	CHECK_EQ(m.b.error, 0);
	CHECK_EQ(m.depth, 0);
	REQUIRE(m.b.len > sizeof(want));
	CHECK_MEM(m.b.data, want, sizeof(want));
	sb_nl_done(&m);
}

TEST(the_proxy_rule)
{
	static const uint8_t port[] = {
		0x2c, 0, 1, 0x80, 14, 0, 1, 0, 'i', 'm', 'm', 'e', 'd', 'i', 'a', 't', 'e', 0, 0, 0,
		24, 0, 2, 0x80,
		8, 0, 1, 0, 0, 0, 0, 1,                   /* to register 1 */
		12, 0, 2, 0x80, 6, 0, 1, 0, 0xee, 0x98, 0, 0, /* port 61080 */
	};
	static const uint8_t tproxy[] = {
		36, 0, 1, 0x80, 11, 0, 1, 0, 't', 'p', 'r', 'o', 'x', 'y', 0, 0,
		20, 0, 2, 0x80,
		8, 0, 1, 0, 0, 0, 0, 0, /* any family */
		8, 0, 3, 0, 0, 0, 0, 1, /* port from register 1 */
	};
	struct sb_nl m;
	const uint8_t *p;

	sb_nl_init(&m);
	sb_nft_build(&m);
	p = memmem(m.b.data, m.b.len, port, sizeof(port));
	REQUIRE(p != NULL);
	CHECK_MEM(p + sizeof(port), tproxy, sizeof(tproxy));
	sb_nl_done(&m);
}

TEST(the_batch_is_whole)
{
	struct sb_nl m;
	size_t at = 0;
	uint32_t n = 0;
	struct nlmsghdr h = { 0 };

	sb_nl_init(&m);
	sb_nft_build(&m);
	while (at < m.b.len) {
		memcpy(&h, m.b.data + at, sizeof(h));
		REQUIRE(h.nlmsg_len >= 20 && h.nlmsg_len % 4 == 0 && h.nlmsg_len <= m.b.len - at);
		CHECK_EQ(h.nlmsg_seq, ++n);
		at += h.nlmsg_len;
	}
	CHECK_EQ(n, 12);                /* begin, table, chain, eight rules, end */
	CHECK_EQ(h.nlmsg_type, 17);     /* NFNL_MSG_BATCH_END */
	CHECK_EQ(m.acks, 10);
	CHECK_STR(sb_nft_step(0), "nf_tables");
	CHECK_STR(sb_nft_step(2), "table sendbox");
	CHECK_STR(sb_nft_step(8), "rule: TCP to the relay (tproxy)");
	CHECK_STR(sb_nft_step(11), "rule: ICMPv6 echo");
	CHECK_STR(sb_nft_step(4000000000U), "nf_tables: commit");
	sb_nl_done(&m);
}

TEST(answers)
{
	static const uint8_t good[] = { 36, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
					0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	uint8_t bad[sizeof(good)];
	uint32_t seq = 9;

	memcpy(bad, good, sizeof(good));
	CHECK_EQ(sb_nl_answers(good, sizeof(good), &seq), 1);
	CHECK_EQ(seq, 9);
	bad[16] = 0xef; /* -17 */
	bad[17] = bad[18] = bad[19] = 0xff;
	CHECK_EQ(sb_nl_answers(bad, sizeof(bad), &seq), -17);
	CHECK_EQ(seq, 1);
	bad[0] = 20;
	CHECK_EQ(sb_nl_answers(bad, sizeof(bad), &seq), -EBADMSG);
	bad[0] = 40;
	CHECK_EQ(sb_nl_answers(bad, sizeof(bad), &seq), -EBADMSG);
	bad[0] = 15;
	CHECK_EQ(sb_nl_answers(bad, sizeof(bad), &seq), -EBADMSG);
	CHECK_EQ(sb_nl_answers(bad, 12, &seq), 0);
}
