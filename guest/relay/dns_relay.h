#ifndef SB_GUEST_RELAY_DNS_RELAY_H
#define SB_GUEST_RELAY_DNS_RELAY_H
/*
 * DNS over UDP in a micro-VM: datagrams to port 53 of any address go to the net gate over one
 * stream, and answers come back from the address that was asked. Nothing is read out of them.
 * What does not fit (too long, no room in the channel, too many questions) is dropped, as UDP is.
 */
#include "conn/chan.h"
#include "relay/dns_tags.h"
#include "wire/net_hello.h"

struct sb_dns_relay {
	struct sb_loop *loop;
	struct sb_chan *chan;     /* borrowed; NULL: there is none */
	struct sb_stream *stream; /* opened with the first question */
	uint64_t open_after_ns;   /* a stream that was reset is not opened again before */
	struct sb_io io[2];       /* IPv4, IPv6 */
	struct sb_dns_tags tags;
	size_t len;               /* bytes in @in */
	uint8_t in[SB_NET_DNS_HEAD + SB_NET_DNS_MAX]; /* an answer that is not complete */
};

/* @d is zeroed; @fd: as in guest/init/net.h, borrowed; @fd6 may be -1. Return: 0; -errno. */
SB_MUST_CHECK int sb_dns_relay_init(struct sb_dns_relay *d, struct sb_loop *loop, int fd4, int fd6);
void sb_dns_relay_channel(struct sb_dns_relay *d, struct sb_chan *c);
void sb_dns_relay_done(struct sb_dns_relay *d);

#endif
