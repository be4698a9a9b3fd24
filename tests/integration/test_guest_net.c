/* The guest's network in a network namespace of its own: what arrives where. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "init/init.h"
#include "init/net.h"
#include "t.h"
#include "wire/ipc.h"

static struct sb_net_listen at = SB_NET_LISTEN_INIT;
static bool ready;
static bool has_v6;

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address(const char *text, uint16_t port, union address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
		return sizeof(ret->v4);
	}
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons(port);
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) != 1)
		t_fail(__FILE__, __LINE__, "%s is no address", text);
	return sizeof(ret->v6);
}

static const char *show(const union address *a)
{
	static char out[80];
	char text[INET6_ADDRSTRLEN];
	bool v4 = a->sa.sa_family == AF_INET;

	(void)inet_ntop(a->sa.sa_family,
			v4 ? (const void *)&a->v4.sin_addr : (const void *)&a->v6.sin6_addr, text,
			sizeof(text));
	(void)snprintf(out, sizeof(out), "%s %d", text, ntohs(v4 ? a->v4.sin_port : a->v6.sin6_port));
	return out;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;

	if (fd >= 0)
		(void)close(fd);
	return r;
}

TEST(set_up)
{
	struct sb_err err = { 0 };
	char map[64];
	unsigned int uid = geteuid();
	unsigned int gid = getegid();
	int e;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		t_skip("no user namespaces here");
		return;
	}
	(void)write_file("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	CHECK_EQ(write_file("/proc/self/uid_map", map), 0);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	CHECK_EQ(write_file("/proc/self/gid_map", map), 0);
	REQUIRE(sb_init_lo_up() == 0);
	e = sb_init_net(&at, &err);
	if (e == -ENOENT || e == -EOPNOTSUPP || e == -EPROTONOSUPPORT) {
		t_skip(err.text);
		return;
	}
	if (e < 0)
		t_fail(__FILE__, __LINE__, "%s", err.text);
	ready = e == 0;
	has_v6 = at.fd[SB_NET_TCP6] >= 0;
	CHECK(at.fd[SB_NET_TCP4] > 2);
	CHECK(at.fd[SB_NET_UDP4] > 2);
	CHECK_EQ(at.fd[SB_NET_UDP6] >= 0, has_v6);
}

#define NEED(v6)                                                                                   \
	do {                                                                                       \
		if (!ready || ((v6) && !has_v6)) {                                                 \
			t_skip("no network was set up");                                           \
			return;                                                                    \
		}                                                                                  \
	} while (0)

static int dial(int family, const char *text, uint16_t port, int *ret)
{
	union address a;
	socklen_t len = address(text, port, &a);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, &a.sa, len) < 0) {
		int e = -errno;

		(void)close(fd);
		return e;
	}
	*ret = fd;
	return 0;
}

/* What program and relay see of a connection. */
static void arrives(int family, int listener, const char *text, uint16_t port, const char *want,
		    const char *from)
{
	char name[80];
	union address a = { 0 };
	socklen_t len = sizeof(a);
	struct pollfd p = { .fd = at.fd[listener], .events = POLLIN };
	int c = -1;
	int s;
	int e = dial(family, text, port, &c);

	if (e < 0) {
		t_fail(__FILE__, __LINE__, "%s %d: %s", text, port, strerror(-e));
		return;
	}
	if (poll(&p, 1, 1000) != 1) {
		t_fail(__FILE__, __LINE__, "%s %d did not arrive", text, port);
		(void)close(c);
		return;
	}
	s = accept(at.fd[listener], &a.sa, &len);
	CHECK(strncmp(show(&a), from, strlen(from)) == 0);
	len = sizeof(a);
	CHECK_EQ(getsockname(s, &a.sa, &len), 0);
	CHECK_STR(show(&a), want);
	CHECK_EQ(write(c, "up", 2), 2);
	CHECK_EQ(read(s, name, sizeof(name)), 2);
	CHECK_EQ(write(s, "down", 4), 4);
	CHECK_EQ(read(c, name, sizeof(name)), 4);
	len = sizeof(a);
	CHECK_EQ(getpeername(c, &a.sa, &len), 0);
	(void)close(c);
	(void)close(s);
}

TEST(tcp4_arrives_with_its_destination)
{
	NEED(false);
	arrives(AF_INET, SB_NET_TCP4, "203.0.113.9", 443, "203.0.113.9 443", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "8.8.8.8", 53, "8.8.8.8 53", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "10.1.2.3", 1, "10.1.2.3 1", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "192.168.0.1", 65535, "192.168.0.1 65535", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "169.254.169.254", 80, "169.254.169.254 80", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "198.18.0.16", 80, "198.18.0.16 80", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "198.19.255.255", 80, "198.19.255.255 80", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "240.0.0.1", 80, "240.0.0.1 80", "198.18.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "1.0.0.0", 80, "1.0.0.0 80", "198.18.0.1 ");
	/* the relay's own port elsewhere */
	arrives(AF_INET, SB_NET_TCP4, "203.0.113.9", 61080, "203.0.113.9 61080", "198.18.0.1 ");
}

TEST(tcp6_arrives_with_its_destination)
{
	NEED(true);
	arrives(AF_INET6, SB_NET_TCP6, "2001:db8::5", 443, "2001:db8::5 443",
		"fd73:656e:6462:6f78::1 ");
	arrives(AF_INET6, SB_NET_TCP6, "fd73:656e:6462:6f78::10", 80, "fd73:656e:6462:6f78::10 80",
		"fd73:656e:6462:6f78::1 ");
	arrives(AF_INET6, SB_NET_TCP6, "64:ff9b::a00:1", 53, "64:ff9b::a00:1 53",
		"fd73:656e:6462:6f78::1 ");
	arrives(AF_INET6, SB_NET_TCP6, "::2", 22, "::2 22", "fd73:656e:6462:6f78::1 ");
	/* IPv4 through an IPv6 socket is IPv4 */
	arrives(AF_INET6, SB_NET_TCP4, "::ffff:1.2.3.4", 80, "1.2.3.4 80", "198.18.0.1 ");
}

TEST(explicit_proxy_and_dns_on_loopback)
{
	NEED(false);
	arrives(AF_INET, SB_NET_TCP4, "127.0.0.1", 3128, "127.0.0.1 3128", "127.0.0.1 ");
	arrives(AF_INET, SB_NET_TCP4, "127.0.0.1", 53, "127.0.0.1 53", "127.0.0.1 ");
}

static void stays(int family, const char *text, uint16_t port)
{
	union address a;
	socklen_t len = address(text, port, &a);
	struct pollfd p[2] = { { .fd = at.fd[SB_NET_TCP4], .events = POLLIN },
			       { .fd = at.fd[SB_NET_TCP6], .events = POLLIN } };
	const int on = 1;
	int l = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int c = -1;
	int s;

	CHECK_EQ(dial(family, text, port, &c), -ECONNREFUSED);
	(void)setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	CHECK_EQ(bind(l, &a.sa, len), 0);
	CHECK_EQ(listen(l, 1), 0);
	CHECK_EQ(dial(family, text, port, &c), 0);
	s = accept(l, NULL, NULL);
	CHECK(s >= 0);
	CHECK_EQ(poll(p, 2, 0), 0);
	(void)close(c);
	(void)close(s);
	(void)close(l);
}

TEST(local_servers_stay_local)
{
	NEED(false);
	stays(AF_INET, "127.0.0.1", 8080);
	stays(AF_INET, "127.0.0.1", 443);
	stays(AF_INET, "127.1.2.3", 80);
	stays(AF_INET, "198.18.0.1", 8080);
}

TEST(local_servers_stay_local_v6)
{
	NEED(true);
	stays(AF_INET6, "::1", 8080);
	stays(AF_INET6, "::1", 3128);
	stays(AF_INET6, "::1", 53);
	stays(AF_INET6, "fd73:656e:6462:6f78::1", 8080);
}

/* A server of the workload on a port that is being dialled elsewhere. */
TEST(open_connections_keep_no_port)
{
	union address any;
	socklen_t len = address("0.0.0.0", 8080, &any);
	const int on = 1;
	int l;
	int c = -1;
	int s;

	NEED(false);
	REQUIRE(dial(AF_INET, "203.0.113.9", 8080, &c) == 0);
	s = accept(at.fd[SB_NET_TCP4], NULL, NULL);
	l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	CHECK_EQ(bind(l, &any.sa, len), 0);
	CHECK_EQ(listen(l, 1), 0);
	/* and what is dialled does not go to it */
	arrives(AF_INET, SB_NET_TCP4, "203.0.113.10", 8080, "203.0.113.10 8080", "198.18.0.1 ");
	(void)close(l);
	(void)close(c);
	(void)close(s);
}

TEST(the_ports_are_taken)
{
	union address a;
	socklen_t len = address("203.0.113.9", 61080, &a);
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(false);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	CHECK(bind(fd, &a.sa, len) < 0 || listen(fd, 1) < 0);
	(void)close(fd);
	len = address("203.0.113.9", 53, &a);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	CHECK(bind(fd, &a.sa, len) < 0);
	(void)close(fd);
}

static void answer4(struct msghdr *m, const union address *asked)
{
	struct in_pktinfo info = { .ipi_spec_dst = asked->v4.sin_addr };
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	m->msg_controllen = CMSG_SPACE(sizeof(info));
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
}

static void answer6(struct msghdr *m, const union address *asked)
{
	struct in6_pktinfo info = { .ipi6_addr = asked->v6.sin6_addr };
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	m->msg_controllen = CMSG_SPACE(sizeof(info));
	c->cmsg_level = IPPROTO_IPV6;
	c->cmsg_type = IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
}

/* A question over UDP and its answer; the program's socket is connected, so a wrong source fails. */
static void asks(int family, int which, const char *text)
{
	union {
		struct cmsghdr align;
		char space[256];
	} ctl = { .space = { 0 } };
	char data[16] = "";
	union address to;
	union address asked = { 0 };
	union address orig = { 0 };
	union address from = { 0 };
	socklen_t len = address(text, 53, &to);
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov,
			    .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof(ctl) };
	struct pollfd p = { .events = POLLIN };
	int c = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(connect(c, &to.sa, len), 0);
	CHECK_EQ(send(c, "what", 4, 0), 4);
	p.fd = at.fd[which];
	if (poll(&p, 1, 1000) != 1 || recvmsg(at.fd[which], &m, 0) != 4) {
		t_fail(__FILE__, __LINE__, "nothing came for %s", text);
		(void)close(c);
		return;
	}
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(h), sizeof(info));
			asked.v4.sin_family = AF_INET;
			asked.v4.sin_port = htons(53);
			asked.v4.sin_addr = info.ipi_addr;
		} else if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(h), sizeof(info));
			asked.v6.sin6_family = AF_INET6;
			asked.v6.sin6_port = htons(53);
			asked.v6.sin6_addr = info.ipi6_addr;
		} else if (h->cmsg_type == (family == AF_INET ? IP_ORIGDSTADDR : IPV6_ORIGDSTADDR)) {
			memcpy(&orig, CMSG_DATA(h),
			       family == AF_INET ? sizeof(orig.v4) : sizeof(orig.v6));
		}
	}
	(void)snprintf(data, sizeof(data), "%s", "then");
	{
		char want[80];

		(void)snprintf(want, sizeof(want), "%s 53", text);
		CHECK_STR(show(&asked), want);
		CHECK_STR(show(&orig), want);
	}
	m.msg_flags = 0;
	iov.iov_len = 4;
	m.msg_control = &ctl;
	m.msg_controllen = sizeof(ctl);
	if (family == AF_INET)
		answer4(&m, &asked);
	else
		answer6(&m, &asked);
	CHECK_EQ(sendmsg(at.fd[which], &m, 0), 4);
	p.fd = c;
	CHECK_EQ(poll(&p, 1, 1000), 1);
	CHECK_EQ(recv(c, data, sizeof(data), MSG_DONTWAIT), 4);
	CHECK_MEM(data, "then", 4);
	(void)close(c);
}

TEST(dns_is_answered_from_the_address_that_was_asked)
{
	NEED(false);
	asks(AF_INET, SB_NET_UDP4, "127.0.0.1");
	asks(AF_INET, SB_NET_UDP4, "8.8.8.8");
	asks(AF_INET, SB_NET_UDP4, "127.0.0.53");
	asks(AF_INET, SB_NET_UDP4, "198.18.0.1");
}

TEST(dns_is_answered_from_the_address_that_was_asked_v6)
{
	NEED(true);
	asks(AF_INET6, SB_NET_UDP6, "2001:4860:4860::8888");
	asks(AF_INET6, SB_NET_UDP6, "::1");
}

static void unreachable(int family, const char *text, uint16_t port)
{
	struct timespec a;
	struct timespec b;
	union address to;
	socklen_t len = address(text, port, &to);
	struct pollfd p = { .events = POLLIN };
	char data[4];
	int c = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK_EQ(connect(c, &to.sa, len), 0);
	CHECK_EQ(send(c, "quic", 4, 0), 4);
	p.fd = c;
	CHECK_EQ(poll(&p, 1, 1000), 1);
	CHECK_EQ(recv(c, data, sizeof(data), MSG_DONTWAIT), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 500);
	(void)close(c);
}

TEST(other_datagrams_are_refused_at_once)
{
	NEED(false);
	unreachable(AF_INET, "203.0.113.9", 443);
	unreachable(AF_INET, "8.8.8.8", 853);
	unreachable(AF_INET, "8.8.8.8", 61080);
	unreachable(AF_INET, "127.0.0.1", 443);
	if (has_v6)
		unreachable(AF_INET6, "2001:db8::5", 443);
}

TEST(local_datagrams_stay)
{
	union address a;
	socklen_t len = address("127.0.0.1", 9999, &a);
	char data[4];
	int l = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int c = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	NEED(false);
	CHECK_EQ(bind(l, &a.sa, len), 0);
	CHECK_EQ(sendto(c, "x", 1, 0, &a.sa, len), 1);
	CHECK_EQ(recv(l, data, sizeof(data), 0), 1);
	(void)close(l);
	(void)close(c);
}

static bool pongs(int family, const char *text)
{
	union address to;
	socklen_t len = address(text, 0, &to);
	struct icmphdr q4 = { .type = ICMP_ECHO };
	struct icmp6_hdr q6 = { .icmp6_type = ICMP6_ECHO_REQUEST };
	struct pollfd p = { .events = POLLIN };
	bool v4 = family == AF_INET;
	bool got;

	p.fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	CHECK(p.fd >= 0);
	CHECK(sendto(p.fd, v4 ? (const void *)&q4 : (const void *)&q6, 8, 0, &to.sa, len) == 8);
	got = poll(&p, 1, 200) == 1;
	(void)close(p.fd);
	return got;
}

TEST(no_echo_pretends_that_the_internet_is_there)
{
	NEED(false);
	if (write_file("/proc/sys/net/ipv4/ping_group_range", "0 0") < 0) {
		t_skip("ping sockets cannot be allowed here");
		return;
	}
	CHECK(!pongs(AF_INET, "8.8.8.8"));
	CHECK(pongs(AF_INET, "127.0.0.1"));
	if (has_v6) {
		CHECK(!pongs(AF_INET6, "2001:db8::5"));
		CHECK(pongs(AF_INET6, "::1"));
	}
}

/* glibc refuses a family that has no address but the loopback one. */
static int configured(int family, const char *text)
{
	const struct addrinfo hint = { .ai_flags = AI_ADDRCONFIG | AI_NUMERICHOST,
				       .ai_family = family,
				       .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	int r = getaddrinfo(text, NULL, &hint, &list);

	if (r == 0)
		freeaddrinfo(list);
	return r;
}

TEST(both_families_count_as_configured)
{
	NEED(true);
	CHECK_EQ(configured(AF_INET, "203.0.113.9"), 0);
	CHECK_EQ(configured(AF_INET6, "2001:db8::5"), 0);
}

TEST(groups_have_no_route)
{
	int c = -1;

	NEED(false);
	CHECK_EQ(dial(AF_INET, "255.255.255.255", 80, &c), -ENETUNREACH);
	CHECK_EQ(dial(AF_INET, "224.0.0.1", 80, &c), -ENETUNREACH);
	CHECK_EQ(dial(AF_INET, "0.0.0.0", 80, &c), -ECONNREFUSED); /* means 127.0.0.1 */
	if (has_v6)
		CHECK_EQ(dial(AF_INET6, "ff02::1", 80, &c), -ENETUNREACH);
}

TEST(a_second_time_is_refused_and_names_the_step)
{
	sb_autolisten struct sb_net_listen l = SB_NET_LISTEN_INIT;
	struct sb_err err = { 0 };
	int fds = t_open_fds();

	NEED(false);
	CHECK_EQ(sb_init_net(&l, &err), -EEXIST);
	CHECK_STR(err.text, "cannot set up the guest's network: IPv4 address: File exists");
	CHECK_EQ(l.fd[SB_NET_TCP4], -1);
	CHECK_EQ(t_open_fds(), fds);
}

TEST(the_gate_gets_the_sockets)
{
	struct sb_ipc_msg m = { 0 };
	struct sb_err err = { 0 };
	int type = 0;
	socklen_t len = sizeof(type);
	int p[2];

	NEED(true);
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) == 0);
	CHECK_EQ(sb_init_net_give(&at, p[0], &err), 0);
	REQUIRE(sb_ipc_recv(p[1], &m) == 0);
	CHECK_EQ(m.type, 80);
	CHECK_EQ(m.len, 0);
	REQUIRE(m.n_fds == 4);
	CHECK_EQ(getsockopt(m.fds[1], SOL_SOCKET, SO_TYPE, &type, &len), 0);
	CHECK_EQ(type, SOCK_STREAM);
	CHECK_EQ(getsockopt(m.fds[2], SOL_SOCKET, SO_TYPE, &type, &len), 0);
	CHECK_EQ(type, SOCK_DGRAM);
	sb_ipc_msg_done(&m);
	(void)close(at.fd[SB_NET_TCP6]);
	(void)close(at.fd[SB_NET_UDP6]);
	at.fd[SB_NET_TCP6] = -1;
	at.fd[SB_NET_UDP6] = -1;
	CHECK_EQ(sb_init_net_give(&at, p[0], &err), 0);
	REQUIRE(sb_ipc_recv(p[1], &m) == 0);
	CHECK_EQ(m.n_fds, 2);
	sb_ipc_msg_done(&m);
	(void)close(p[1]);
	CHECK(sb_init_net_give(&at, p[0], &err) < 0);
	(void)close(p[0]);
	sb_net_listen_done(&at);
}
