#ifndef SB_GUEST_INIT_NET_H
#define SB_GUEST_INIT_NET_H
/*
 * The guest's network: there is lo and nothing else. Every address is local, and what listens
 * behind it is the relay of the net gate.
 *
 * The sockets: all of them answer for every address; the local address of a connection that tcp4
 * or tcp6 accepts is what the program dialled. udp4 and udp6 are bound to port 53 and tell with
 * each datagram which address was asked (IP_PKTINFO and IP_RECVORIGDSTADDR, IPV6_ the same); an
 * answer is sent with that address as the source in its IP_PKTINFO. IP_TRANSPARENT is set, so
 * none of this needs a right later. Non-blocking, close-on-exec.
 */
#include <netinet/in.h>

#include "base/err.h"
#include "init/netlink.h"

extern const uint8_t sb_net_own_v4[4];  /* 198.18.0.1, on lo; the source of connections */
extern const uint8_t sb_net_own_v6[16]; /* fd73:656e:6462:6f78::1 */

enum { SB_NET_TCP4, SB_NET_TCP6, SB_NET_UDP4, SB_NET_UDP6, SB_NET_SOCKETS };
struct sb_net_listen {
	int fd[SB_NET_SOCKETS]; /* owned; -1: IPv6 is not in this kernel */
};
#define SB_NET_LISTEN_INIT { { -1, -1, -1, -1 } }
void sb_net_listen_done(struct sb_net_listen *l);
#define sb_autolisten SB_CLEANUP(sb_net_listen_done)

/*
 * sb_init_net - addresses, routes, the nf_tables table and the sockets in this network namespace
 * @ret: set on success; at least the two IPv4 ones
 * lo is up already. Return: 0; -errno with the step that failed in @err; no half-way is left in
 * use: the caller gives up.
 */
SB_MUST_CHECK int sb_init_net(struct sb_net_listen *ret, struct sb_err *err);
/* Hand the sockets to the net gate by its front socket: four, or two without IPv6. */
SB_MUST_CHECK int sb_init_net_give(const struct sb_net_listen *l, int front, struct sb_err *err);

/* Parts, for tests: @family AF_INET or AF_INET6, @lo: number of the interface. */
void sb_net_build_addr(struct sb_nl *m, int family, unsigned int lo);
void sb_net_build_route(struct sb_nl *m, int family, unsigned int lo);

#endif
