#ifndef SB_GUEST_RELAY_NET_RELAY_H
#define SB_GUEST_RELAY_NET_RELAY_H
/*
 * The network of a micro-VM: each connection that a program makes, to whatever address, becomes a
 * stream of the channel towards the net gate, which decides. The socket of the SSH agent is served the
 * same way, towards the SSH relay of the host. Nothing is decided or understood here. On the loop of PID 1; a connection costs no buffer of its own.
 */
#include "conn/chan.h"

struct sb_net_relay;

/*
 * sb_net_relay_new - listen for connections and DNS questions
 * @fd:  tcp4, tcp6, udp4, udp6 as guest/init/net.h makes them; borrowed; those of IPv6 may be -1;
 *       NULL: no network
 * @ssh: the listening socket of guest/init/ssh.h; borrowed; -1 = none
 * @max: connections at a time (the channel refuses more); the file limit is raised to this
 * Until it has a channel every connection is reset. Return: 0; -ENOMEM; -errno.
 */
SB_MUST_CHECK int sb_net_relay_new(struct sb_loop *loop, const int fd[4], int ssh, uint32_t max,
				   struct sb_net_relay **ret);
/* The channel to use from now on; NULL: it died, its streams are gone, connections are reset. */
void sb_net_relay_channel(struct sb_net_relay *r, struct sb_chan *c);
/* Resets what is open. Takes NULL. Return: NULL. */
struct sb_net_relay *sb_net_relay_free(struct sb_net_relay *r);

#endif
