#include "init/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "init/init.h"
#include "init/nft.h"
#include "wire/ipc.h"

#define BACKLOG 1024
#define DNS_PORT 53

const uint8_t sb_net_own_v4[4] = { 198, 18, 0, 1 };
const uint8_t sb_net_own_v6[16] = { 0xfd, 0x73, 0x65, 0x6e, 0x64, 0x62, 0x6f, 0x78, [15] = 1 };

int sb_init_lo_up(void)
{
	sb_autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo" };

	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		return -errno;
	ifr.ifr_flags = (short)(ifr.ifr_flags | IFF_UP);
	return ioctl(fd, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

/* --- addresses and routes --- */

void sb_net_build_addr(struct sb_nl *m, int family, unsigned int lo)
{
	bool v4 = family == AF_INET;
	const uint8_t *own = v4 ? sb_net_own_v4 : sb_net_own_v6;
	size_t len = v4 ? sizeof(sb_net_own_v4) : sizeof(sb_net_own_v6);
	const struct ifaddrmsg head = {
		.ifa_family = (uint8_t)family,
		.ifa_prefixlen = (uint8_t)(8 * len),
		.ifa_flags = v4 ? 0 : IFA_F_NODAD,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = lo,
	};

	sb_nl_begin(m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof(head));
	sb_nl_put(m, IFA_LOCAL, own, len);
	sb_nl_put(m, IFA_ADDRESS, own, len);
	sb_nl_end(m);
}

/* In the local table, where the kernel looks first and what it asks whether an address is its own. */
void sb_net_build_route(struct sb_nl *m, int family, unsigned int lo)
{
	bool v4 = family == AF_INET;
	const struct rtmsg head = {
		.rtm_family = (uint8_t)family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = v4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL,
	};
	const uint32_t oif = lo;

	sb_nl_begin(m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof(head));
	sb_nl_put(m, RTA_OIF, &oif, sizeof(oif));
	sb_nl_put(m, RTA_PREFSRC, v4 ? sb_net_own_v4 : sb_net_own_v6,
		  v4 ? sizeof(sb_net_own_v4) : sizeof(sb_net_own_v6));
	sb_nl_end(m);
}

static int do_step(int fd, void (*build)(struct sb_nl *m, int family, unsigned int lo), int family,
		   unsigned int lo, const char *what, struct sb_err *err)
{
	sb_autonl struct sb_nl m;
	uint32_t seq;
	int e;

	sb_nl_init(&m);
	build(&m, family, lo);
	e = sb_nl_send(fd, &m, &seq);
	return e < 0 ? sb_err_set(err, e, "cannot set up the guest's network: %s: %s", what,
				  strerror(-e)) : 0;
}

/* A new namespace may start without IPv6 where the host switched it off for itself. */
static void ask_for_v6(void)
{
	static const char *const at[] = { "/proc/sys/net/ipv6/conf/all/disable_ipv6",
					  "/proc/sys/net/ipv6/conf/lo/disable_ipv6" };

	for (size_t i = 0; i < SB_ARRAY_LEN(at); i++) {
		sb_autofd int fd = open(at[i], O_WRONLY | O_CLOEXEC);

		if (fd >= 0 && write(fd, "0", 1) != 1)
			sb_debug("%s cannot be written", at[i]);
	}
}

/* Return: 1 with IPv6, 0 without; -errno. */
static int set_addresses(struct sb_err *err)
{
	sb_autofd int fd = -1;
	sb_autofd int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int lo = if_nametoindex("lo");
	struct sb_err none = { 0 };
	int e = sb_nl_socket(NETLINK_ROUTE, &fd);

	if (e < 0 || lo == 0)
		return sb_err_set(err, e < 0 ? e : -ENODEV, "cannot set up the guest's network: %s",
				  e < 0 ? strerror(-e) : "no lo");
	e = do_step(fd, sb_net_build_addr, AF_INET, lo, "IPv4 address", err);
	if (e == 0)
		e = do_step(fd, sb_net_build_route, AF_INET, lo, "IPv4 route", err);
	if (e < 0 || probe < 0)
		return e;
	ask_for_v6();
	e = do_step(fd, sb_net_build_addr, AF_INET6, lo, "IPv6 address", &none);
	if (e == -EACCES || e == -EOPNOTSUPP) { /* switched off, and stays so */
		sb_debug("%s", none.text);
		return 0;
	}
	if (e < 0)
		return sb_err_set(err, e, "%s", none.text);
	e = do_step(fd, sb_net_build_route, AF_INET6, lo, "IPv6 route", err);
	return e < 0 ? e : 1;
}

/* --- nf_tables --- */

static int set_rules(struct sb_err *err)
{
	sb_autonl struct sb_nl m;
	sb_autofd int fd = -1;
	uint32_t seq = 0;
	int e;

	sb_nl_init(&m);
	sb_nft_build(&m);
	e = sb_nl_socket(NETLINK_NETFILTER, &fd);
	if (e == 0)
		e = sb_nl_send(fd, &m, &seq);
	if (e == -ENOENT || e == -EOPNOTSUPP || e == -EPROTONOSUPPORT)
		return sb_err_set(err, e, "cannot set up the guest's network: this kernel lacks "
				  "nf_tables with tproxy (modules nf_tables and nft_tproxy; "
				  "--no-network does without): %s: %s",
				  sb_nft_step(seq), strerror(-e));
	return e < 0 ? sb_err_set(err, e, "cannot set up the guest's network: %s: %s",
				  sb_nft_step(seq), strerror(-e)) : 0;
}

/* --- sockets --- */

static int set(int fd, int level, int option)
{
	const int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

static int bind_any(int fd, int family, uint16_t port)
{
	const struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int r = family == AF_INET ?
			bind(fd, (const struct sockaddr *)&any4, sizeof(any4)) :
			bind(fd, (const struct sockaddr *)&any6, sizeof(any6));

	return r < 0 ? -errno : 0;
}

static int open_socket(int family, int type, int *ret)
{
	sb_autofd int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int e = fd < 0 ? -errno : 0;

	if (e == 0 && family == AF_INET6)
		e = set(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (e == 0)
		e = family == AF_INET ? set(fd, IPPROTO_IP, IP_TRANSPARENT) :
					set(fd, IPPROTO_IPV6, IPV6_TRANSPARENT);
	if (e == 0)
		*ret = sb_fd_take(&fd);
	return e;
}

static int open_tcp(int family, int *ret)
{
	sb_autofd int fd = -1;
	int e = open_socket(family, SOCK_STREAM, &fd);

	/* what is accepted inherits both; it must not keep a server off the port that was dialled */
	if (e == 0)
		e = set(fd, SOL_SOCKET, SO_REUSEADDR);
	if (e == 0)
		e = set(fd, IPPROTO_TCP, TCP_NODELAY);
	if (e == 0)
		e = bind_any(fd, family, SB_NET_RELAY_PORT);
	if (e == 0 && listen(fd, BACKLOG) < 0)
		e = -errno;
	if (e == 0)
		*ret = sb_fd_take(&fd);
	return e;
}

/* Without SO_REUSEADDR, which would let the workload bind a closer match. */
static int open_udp(int family, int *ret)
{
	sb_autofd int fd = -1;
	int e = open_socket(family, SOCK_DGRAM, &fd);

	if (e == 0 && family == AF_INET) {
		e = set(fd, IPPROTO_IP, IP_PKTINFO);
		if (e == 0)
			e = set(fd, IPPROTO_IP, IP_RECVORIGDSTADDR);
	} else if (e == 0) {
		e = set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
		if (e == 0)
			e = set(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR);
	}
	if (e == 0)
		e = bind_any(fd, family, DNS_PORT);
	if (e == 0)
		*ret = sb_fd_take(&fd);
	return e;
}

void sb_net_listen_done(struct sb_net_listen *l)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(l->fd); i++)
		sb_fd_close(&l->fd[i]);
}

int sb_init_net(struct sb_net_listen *ret, struct sb_err *err)
{
	sb_autolisten struct sb_net_listen l = SB_NET_LISTEN_INIT;
	int v6 = set_addresses(err);
	int e = v6 < 0 ? v6 : set_rules(err);

	if (e < 0)
		return e;
	e = open_tcp(AF_INET, &l.fd[SB_NET_TCP4]);
	if (e == 0)
		e = open_udp(AF_INET, &l.fd[SB_NET_UDP4]);
	if (e == 0 && v6 > 0)
		e = open_tcp(AF_INET6, &l.fd[SB_NET_TCP6]);
	if (e == 0 && v6 > 0)
		e = open_udp(AF_INET6, &l.fd[SB_NET_UDP6]);
	if (e < 0)
		return sb_err_set(err, e, "cannot set up the guest's network: sockets: %s",
				  strerror(-e));
	for (size_t i = 0; i < SB_ARRAY_LEN(l.fd); i++)
		ret->fd[i] = sb_fd_take(&l.fd[i]);
	return 0;
}

int sb_init_net_give(const struct sb_net_listen *l, int front, struct sb_err *err)
{
	int fds[SB_NET_SOCKETS];
	size_t n = 0;
	int e;

	for (size_t i = 0; i < SB_ARRAY_LEN(l->fd); i++)
		if (l->fd[i] >= 0)
			fds[n++] = l->fd[i];
	e = sb_ipc_send(front, SB_IPC_NET_LISTEN, NULL, 0, fds, n);
	return e < 0 ? sb_err_set(err, e, "cannot reach the net gate: %s", strerror(-e)) : 0;
}
