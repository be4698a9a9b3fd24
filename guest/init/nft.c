/*
 * Theory of operation. In nft's own language:
 *
 *   table inet sendbox {
 *     chain prerouting {
 *       type filter hook prerouting priority mangle; policy accept;
 *       ip6 daddr ::1 accept
 *       ip daddr 198.18.0.1 accept
 *       ip6 daddr fd73:656e:6462:6f78::1 accept
 *       ip daddr 127.0.0.0/8 tcp dport != 53 tcp dport != 3128 accept
 *       meta l4proto tcp tproxy to :61080 accept
 *       ip daddr 127.0.0.0/8 accept
 *       icmp type echo-request drop
 *       icmpv6 type echo-request drop
 *     }
 *   }
 *
 * Routes make every address the guest's own, so whatever a program sends comes here through lo.
 * A connection that the proxy rule did not take would be refused by the guest itself: there is no
 * other way out. Datagrams to port 53 need no rule, since the DNS socket is bound there for every
 * address; other datagrams find no socket and the kernel answers "port unreachable" at once. The
 * guest answers no echo request for an address that is not its own: that would look as though
 * the internet was there. No rule uses connection tracking.
 *
 * Source: linux/netfilter/nf_tables.h; nft --debug=netlink.
 */
#include "init/nft.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "core/net_policy.h"

#define TABLE "sendbox"
#define CHAIN "prerouting"
#define PRIORITY (-150) /* mangle: before routing looks at the packet again */

#define ICMP_ECHO_REQUEST 8
#define ICMP6_ECHO_REQUEST 128
#define IP4_DADDR 16 /* offsets in the packet's headers */
#define IP6_DADDR 24
#define TCP_DPORT 2
#define ICMP_TYPE 0

static void begin(struct sb_nl *m, int type, uint16_t flags)
{
	const struct nfgenmsg g = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

	sb_nl_begin(m, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
		    (uint16_t)(NLM_F_CREATE | NLM_F_ACK | flags), &g, sizeof(g));
}

static void batch(struct sb_nl *m, uint16_t type)
{
	const struct nfgenmsg g = {
		.nfgen_family = AF_UNSPEC,
		.version = NFNETLINK_V0,
		.res_id = htons(NFNL_SUBSYS_NFTABLES),
	};

	sb_nl_begin(m, type, 0, &g, sizeof(g));
	sb_nl_end(m);
}

static void open_expr(struct sb_nl *m, const char *name)
{
	sb_nl_open(m, NFTA_LIST_ELEM);
	sb_nl_put_str(m, NFTA_EXPR_NAME, name);
	sb_nl_open(m, NFTA_EXPR_DATA);
}

static void close_expr(struct sb_nl *m)
{
	sb_nl_close(m);
	sb_nl_close(m);
}

static void meta(struct sb_nl *m, uint32_t key)
{
	open_expr(m, "meta");
	sb_nl_put_be32(m, NFTA_META_DREG, NFT_REG_1);
	sb_nl_put_be32(m, NFTA_META_KEY, key);
	close_expr(m);
}

static void payload(struct sb_nl *m, uint32_t base, uint32_t offset, uint32_t len)
{
	open_expr(m, "payload");
	sb_nl_put_be32(m, NFTA_PAYLOAD_DREG, NFT_REG_1);
	sb_nl_put_be32(m, NFTA_PAYLOAD_BASE, base);
	sb_nl_put_be32(m, NFTA_PAYLOAD_OFFSET, offset);
	sb_nl_put_be32(m, NFTA_PAYLOAD_LEN, len);
	close_expr(m);
}

static void cmp(struct sb_nl *m, uint32_t op, const void *p, size_t len)
{
	open_expr(m, "cmp");
	sb_nl_put_be32(m, NFTA_CMP_SREG, NFT_REG_1);
	sb_nl_put_be32(m, NFTA_CMP_OP, op);
	sb_nl_open(m, NFTA_CMP_DATA);
	sb_nl_put(m, NFTA_DATA_VALUE, p, len);
	sb_nl_close(m);
	close_expr(m);
}

static void meta_is(struct sb_nl *m, uint32_t key, uint8_t value)
{
	meta(m, key);
	cmp(m, NFT_CMP_EQ, &value, sizeof(value));
}

static void verdict(struct sb_nl *m, uint32_t code)
{
	open_expr(m, "immediate");
	sb_nl_put_be32(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	sb_nl_open(m, NFTA_IMMEDIATE_DATA);
	sb_nl_open(m, NFTA_DATA_VERDICT);
	sb_nl_put_be32(m, NFTA_VERDICT_CODE, code);
	sb_nl_close(m);
	sb_nl_close(m);
	close_expr(m);
}

static void open_rule(struct sb_nl *m)
{
	begin(m, NFT_MSG_NEWRULE, NLM_F_APPEND);
	sb_nl_put_str(m, NFTA_RULE_TABLE, TABLE);
	sb_nl_put_str(m, NFTA_RULE_CHAIN, CHAIN);
	sb_nl_open(m, NFTA_RULE_EXPRESSIONS);
}

static void close_rule(struct sb_nl *m, uint32_t code)
{
	verdict(m, code);
	sb_nl_close(m);
	sb_nl_end(m);
}

/* Destination @addr, all of it or its first bytes. */
static void to_v4(struct sb_nl *m, const uint8_t *addr, size_t len)
{
	meta_is(m, NFT_META_NFPROTO, NFPROTO_IPV4);
	payload(m, NFT_PAYLOAD_NETWORK_HEADER, IP4_DADDR, (uint32_t)len);
	cmp(m, NFT_CMP_EQ, addr, len);
}

static void to_v6(struct sb_nl *m, const uint8_t addr[16])
{
	meta_is(m, NFT_META_NFPROTO, NFPROTO_IPV6);
	payload(m, NFT_PAYLOAD_NETWORK_HEADER, IP6_DADDR, 16);
	cmp(m, NFT_CMP_EQ, addr, 16);
}

static void not_to_port(struct sb_nl *m, uint16_t port)
{
	const uint8_t p[2] = { (uint8_t)(port >> 8), (uint8_t)port };

	payload(m, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DPORT, sizeof(p));
	cmp(m, NFT_CMP_NEQ, p, sizeof(p));
}

static void to_proxy(struct sb_nl *m, uint16_t port)
{
	const uint8_t p[2] = { (uint8_t)(port >> 8), (uint8_t)port };

	open_expr(m, "immediate");
	sb_nl_put_be32(m, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	sb_nl_open(m, NFTA_IMMEDIATE_DATA);
	sb_nl_put(m, NFTA_DATA_VALUE, p, sizeof(p));
	sb_nl_close(m);
	close_expr(m);
	open_expr(m, "tproxy");
	sb_nl_put_be32(m, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC); /* the packet's own */
	sb_nl_put_be32(m, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	close_expr(m);
}

static void drop_echo(struct sb_nl *m, uint8_t protocol, uint8_t type)
{
	open_rule(m);
	meta_is(m, NFT_META_L4PROTO, protocol);
	payload(m, NFT_PAYLOAD_TRANSPORT_HEADER, ICMP_TYPE, 1);
	cmp(m, NFT_CMP_EQ, &type, sizeof(type));
	close_rule(m, NF_DROP);
}

static void add_rules(struct sb_nl *m)
{
	static const uint8_t loopback = 127;
	static const uint8_t loopback6[16] = { [15] = 1 };

	open_rule(m);
	to_v6(m, loopback6);
	close_rule(m, NF_ACCEPT);
	open_rule(m);
	to_v4(m, sb_net_own_v4, sizeof(sb_net_own_v4));
	close_rule(m, NF_ACCEPT);
	open_rule(m);
	to_v6(m, sb_net_own_v6);
	close_rule(m, NF_ACCEPT);

	open_rule(m);
	to_v4(m, &loopback, 1);
	meta_is(m, NFT_META_L4PROTO, IPPROTO_TCP);
	not_to_port(m, 53);
	not_to_port(m, SB_NET_PROXY_PORT);
	close_rule(m, NF_ACCEPT);
	open_rule(m);
	meta_is(m, NFT_META_L4PROTO, IPPROTO_TCP);
	to_proxy(m, SB_NET_RELAY_PORT);
	close_rule(m, NF_ACCEPT);

	open_rule(m);
	to_v4(m, &loopback, 1);
	close_rule(m, NF_ACCEPT);
	drop_echo(m, IPPROTO_ICMP, ICMP_ECHO_REQUEST);
	drop_echo(m, IPPROTO_ICMPV6, ICMP6_ECHO_REQUEST);
}

/* In the order of the messages: their numbers count from 1. */
static const char *const steps[] = {
	"nf_tables",
	"nf_tables: batch",
	"table " TABLE,
	"chain " CHAIN,
	"rule: own IPv6 loopback",
	"rule: own IPv4 address",
	"rule: own IPv6 address",
	"rule: own IPv4 loopback",
	"rule: TCP to the relay (tproxy)",
	"rule: other IPv4 loopback",
	"rule: ICMP echo",
	"rule: ICMPv6 echo",
};

const char *sb_nft_step(uint32_t seq)
{
	return seq < SB_ARRAY_LEN(steps) ? steps[seq] : "nf_tables: commit";
}

void sb_nft_build(struct sb_nl *m)
{
	batch(m, NFNL_MSG_BATCH_BEGIN);
	begin(m, NFT_MSG_NEWTABLE, NLM_F_EXCL);
	sb_nl_put_str(m, NFTA_TABLE_NAME, TABLE);
	sb_nl_end(m);
	begin(m, NFT_MSG_NEWCHAIN, NLM_F_EXCL);
	sb_nl_put_str(m, NFTA_CHAIN_TABLE, TABLE);
	sb_nl_put_str(m, NFTA_CHAIN_NAME, CHAIN);
	sb_nl_open(m, NFTA_CHAIN_HOOK);
	sb_nl_put_be32(m, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	sb_nl_put_be32(m, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
	sb_nl_close(m);
	sb_nl_put_str(m, NFTA_CHAIN_TYPE, "filter");
	sb_nl_put_be32(m, NFTA_CHAIN_POLICY, NF_ACCEPT);
	sb_nl_end(m);
	add_rules(m);
	batch(m, NFNL_MSG_BATCH_END);
}
