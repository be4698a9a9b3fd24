/*
 * Whether this kernel can give a sandbox its network: the essence of the guest's table (a chain of
 * prerouting with one tproxy rule) is made in a network namespace of its own, which ends with the
 * child that tries it. Source: linux/netfilter/nf_tables.h, linux/netfilter/nfnetlink.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/namespace/namespace.h"

#define ROOM 1024
#define NAME "probe" /* of the table and of the chain */

struct batch {
	_Alignas(8) uint8_t p[ROOM];
	size_t len;
	size_t msg; /* where the message being written begins */
	uint32_t seq;
};

static void put(struct batch *b, const void *p, size_t len)
{
	sb_assert(len + 4 <= ROOM - b->len);
	memcpy(b->p + b->len, p, len);
	b->len += len;
	while (b->len % 4 != 0)
		b->p[b->len++] = 0;
}

static void begin(struct batch *b, uint16_t type, uint16_t flags, uint16_t res)
{
	const struct nlmsghdr h = { .nlmsg_type = type,
				    .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
				    .nlmsg_seq = b->seq++ };
	const struct nfgenmsg g = { .nfgen_family = NFPROTO_INET, .res_id = htons(res) };

	b->msg = b->len;
	put(b, &h, sizeof(h));
	put(b, &g, sizeof(g));
}

static void message(struct batch *b, uint16_t type)
{
	begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_CREATE | NLM_F_ACK, 0);
}

static void end(struct batch *b)
{
	const uint32_t len = (uint32_t)(b->len - b->msg);

	memcpy(b->p + b->msg, &len, sizeof(len));
}

static void attr(struct batch *b, uint16_t type, const void *p, size_t len)
{
	const struct nlattr a = { .nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type };

	put(b, &a, sizeof(a));
	put(b, p, len);
}

static void attr_be32(struct batch *b, uint16_t type, uint32_t v)
{
	v = htonl(v);
	attr(b, type, &v, sizeof(v));
}

static size_t nest(struct batch *b, uint16_t type)
{
	size_t at = b->len;

	attr(b, type | NLA_F_NESTED, "", 0);
	return at;
}

static void nest_end(struct batch *b, size_t at)
{
	const uint16_t len = (uint16_t)(b->len - at);

	memcpy(b->p + at, &len, sizeof(len));
}

static void add_table_and_chain(struct batch *b)
{
	size_t hook;

	message(b, NFT_MSG_NEWTABLE);
	attr(b, NFTA_TABLE_NAME, NAME, sizeof(NAME));
	end(b);
	message(b, NFT_MSG_NEWCHAIN);
	attr(b, NFTA_CHAIN_TABLE, NAME, sizeof(NAME));
	attr(b, NFTA_CHAIN_NAME, NAME, sizeof(NAME));
	hook = nest(b, NFTA_CHAIN_HOOK);
	attr_be32(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	attr_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)-150);
	nest_end(b, hook);
	attr(b, NFTA_CHAIN_TYPE, "filter", sizeof("filter"));
	end(b);
}

/* ip protocol tcp, tproxy to port 1 */
static void add_rule(struct batch *b)
{
	static const uint8_t tcp = IPPROTO_TCP;
	static const uint8_t port[2] = { 0, 1 };
	size_t list;
	size_t e;
	size_t data;
	size_t inner;

	message(b, NFT_MSG_NEWRULE);
	attr(b, NFTA_RULE_TABLE, NAME, sizeof(NAME));
	attr(b, NFTA_RULE_CHAIN, NAME, sizeof(NAME));
	list = nest(b, NFTA_RULE_EXPRESSIONS);
	e = nest(b, NFTA_LIST_ELEM);
	attr(b, NFTA_EXPR_NAME, "meta", sizeof("meta"));
	data = nest(b, NFTA_EXPR_DATA);
	attr_be32(b, NFTA_META_KEY, NFT_META_L4PROTO);
	attr_be32(b, NFTA_META_DREG, NFT_REG_1);
	nest_end(b, data);
	nest_end(b, e);
	e = nest(b, NFTA_LIST_ELEM);
	attr(b, NFTA_EXPR_NAME, "cmp", sizeof("cmp"));
	data = nest(b, NFTA_EXPR_DATA);
	attr_be32(b, NFTA_CMP_SREG, NFT_REG_1);
	attr_be32(b, NFTA_CMP_OP, NFT_CMP_EQ);
	inner = nest(b, NFTA_CMP_DATA);
	attr(b, NFTA_DATA_VALUE, &tcp, sizeof(tcp));
	nest_end(b, inner);
	nest_end(b, data);
	nest_end(b, e);
	e = nest(b, NFTA_LIST_ELEM);
	attr(b, NFTA_EXPR_NAME, "immediate", sizeof("immediate"));
	data = nest(b, NFTA_EXPR_DATA);
	attr_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	inner = nest(b, NFTA_IMMEDIATE_DATA);
	attr(b, NFTA_DATA_VALUE, port, sizeof(port));
	nest_end(b, inner);
	nest_end(b, data);
	nest_end(b, e);
	e = nest(b, NFTA_LIST_ELEM);
	attr(b, NFTA_EXPR_NAME, "tproxy", sizeof("tproxy"));
	data = nest(b, NFTA_EXPR_DATA);
	attr_be32(b, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC);
	attr_be32(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	nest_end(b, data);
	nest_end(b, e);
	nest_end(b, list);
	end(b);
}

/* In the child. Return: 0; a positive errno. */
static int try_rules(void)
{
	const struct timeval patience = { .tv_sec = 5 };
	struct batch b = { .seq = 1 };
	sb_autofd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	_Alignas(8) uint8_t reply[4096];
	int acks = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return errno;
	begin(&b, NFNL_MSG_BATCH_BEGIN, 0, NFNL_SUBSYS_NFTABLES);
	end(&b);
	add_table_and_chain(&b);
	add_rule(&b);
	begin(&b, NFNL_MSG_BATCH_END, 0, NFNL_SUBSYS_NFTABLES);
	end(&b);
	if (send(fd, b.p, b.len, 0) < 0)
		return errno;
	while (acks < 3) { /* table, chain, rule */
		ssize_t n = recv(fd, reply, sizeof(reply), 0);
		struct nlmsghdr *h = (struct nlmsghdr *)(void *)reply;

		if (n < 0)
			return errno;
		for (; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
			struct nlmsgerr e;

			if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(e)))
				continue;
			memcpy(&e, NLMSG_DATA(h), sizeof(e));
			if (e.error != 0)
				return -e.error;
			acks++;
		}
	}
	return 0;
}

void sb_ns_probe_net(struct sb_probe *p)
{
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNET, .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	int status;
	int e;

	if (pid < 0)
		return; /* told as "namespaces" */
	if (pid == 0)
		_exit(try_rules() & 0xff);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return;
	e = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	if (e == 0)
		sb_probe_add(p, "network", SB_CHECK_OK, "", "nf_tables with tproxy");
	else
		sb_probe_add(p, "network", SB_CHECK_FAIL,
			     "as root run: modprobe -a nf_tables nft_tproxy (or use a kernel that has "
			     "them); until then: --no-network, or --runtime microvm",
			     "no nf_tables with tproxy: %s", strerror(e));
}
