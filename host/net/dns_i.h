#ifndef SB_HOST_NET_DNS_I_H
#define SB_HOST_NET_DNS_I_H
/* Shared by dns.c (decisions) and dns_io.c (sockets) only. */
#include <sys/socket.h>

#include "base/buf.h"
#include "net/gate.h"
#include "wire/dns.h"
#include "wire/net_hello.h"

#define DNS_UDP_ROOM 1232 /* no fragments (DNS flag day 2020) */
#define DNS_ANSWER_MAX 65535

struct dns_conn;
struct dns_udp;

struct dns_from { /* where an answer goes */
	struct dns_udp *udp; /* or */
	struct dns_conn *conn;
	uint16_t tag;
	bool datagram; /* its answers have the room of a datagram, whatever carries them */
	struct sockaddr_storage peer; /* udp */
	socklen_t peer_len;
	struct sb_addr local; /* udp: the address that was asked */
	bool has_local;
};

struct dns_pending { /* a question that went to the resolvers */
	struct dns_pending *next;
	struct dns *d;
	struct dns_from from;
	struct sb_dns_query q;
};

struct dns_bucket {
	uint64_t per_minute; /* 0 = no limit */
	uint64_t credit_ns;
	uint64_t last_ns;
};

struct dns {
	struct gate *g;
	uint16_t types[SB_NET_MAX_TYPES];
	size_t n_types;
	struct dns_bucket queries;
	struct dns_bucket new_names;
	struct dns_pending *pending;
	size_t n_pending;
	struct dns_udp *udps;
	struct dns_conn *conns;
	struct sb_timer sweep;
};

/* One message of the guest: answered at once through dns_io_send, or later, or not at all. */
void dns_question(struct dns *d, const struct dns_from *from, const uint8_t *msg, size_t len);
void dns_forget(struct dns *d, const struct dns_conn *c); /* what is pending for it */

void dns_io_send(const struct dns_from *from, const uint8_t *msg, size_t len);
void dns_io_pending(const struct dns_from *from, int change);
void dns_io_done(struct dns *d);

#endif
