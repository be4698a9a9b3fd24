/*
 * Whether the kernel would deliver an address to this host itself: the answer of the routing table
 * (rtnetlink(7), RTM_GETROUTE), which knows addresses of all interfaces, broadcast and anycast
 * addresses and whatever "ip route add local" made local. The answer comes within the send call,
 * so nothing here waits.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "net/gate.h"

int route_open(int *ret_fd)
{
	static const struct timeval patience = { .tv_sec = 2 };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	sb_autofd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	*ret_fd = sb_fd_take(&fd);
	return 0;
}

static int verdict_of(uint8_t type)
{
	switch (type) {
	case RTN_LOCAL:
	case RTN_BROADCAST:
	case RTN_ANYCAST:
	case RTN_MULTICAST:
		return 1;
	case RTN_UNICAST:
	case RTN_UNREACHABLE: /* the connect fails by itself */
	case RTN_PROHIBIT:
	case RTN_BLACKHOLE:
	case RTN_THROW:
		return 0;
	default:
		return -EPROTO;
	}
}

static int verdict_of_error(int error)
{
	switch (error) {
	case -ENETUNREACH: /* as above, in IPv4's way of telling */
	case -EHOSTUNREACH:
	case -EACCES:
		return 0;
	default:
		return error < 0 ? error : -EPROTO;
	}
}

/* One answer to request @seq. Return: 1, 0; -EAGAIN: it belongs to another request; -errno. */
static int answer_of(const void *buf, size_t len, uint32_t seq)
{
	struct nlmsghdr h;
	struct rtmsg rt;
	struct nlmsgerr e;

	if (len < sizeof(h))
		return -EPROTO;
	memcpy(&h, buf, sizeof(h));
	if (h.nlmsg_seq != seq)
		return -EAGAIN;
	if (h.nlmsg_type == NLMSG_ERROR && len >= NLMSG_HDRLEN + sizeof(e)) {
		memcpy(&e, (const char *)buf + NLMSG_HDRLEN, sizeof(e));
		return verdict_of_error(e.error);
	}
	if (h.nlmsg_type != RTM_NEWROUTE || len < NLMSG_HDRLEN + sizeof(rt))
		return -EPROTO;
	memcpy(&rt, (const char *)buf + NLMSG_HDRLEN, sizeof(rt));
	return verdict_of(rt.rtm_type);
}

int route_is_local(int fd, const struct sb_addr *a)
{
	static uint32_t seq;
	bool v4 = sb_addr_is_v4(a);
	size_t alen = v4 ? 4 : 16;
	struct {
		struct nlmsghdr h;
		struct rtmsg rt;
		struct rtattr dst;
		uint8_t addr[16];
	} req = {
		.h = { .nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(struct rtmsg)) + RTA_LENGTH(alen)),
		       .nlmsg_type = RTM_GETROUTE,
		       .nlmsg_flags = NLM_F_REQUEST,
		       .nlmsg_seq = ++seq },
		.rt = { .rtm_family = v4 ? AF_INET : AF_INET6, .rtm_dst_len = v4 ? 32 : 128 },
		.dst = { .rta_len = (uint16_t)RTA_LENGTH(alen), .rta_type = RTA_DST },
	};

	memcpy(req.addr, v4 ? a->b + 12 : a->b, alen);
	if (send(fd, &req, req.h.nlmsg_len, MSG_NOSIGNAL) < 0)
		return -errno;
	for (int tries = 0; tries < 16; tries++) {
		_Alignas(8) char buf[4096];
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = answer_of(buf, (size_t)n, req.h.nlmsg_seq);
		if (r != -EAGAIN)
			return r;
	}
	return -EPROTO;
}
