#ifndef SB_HOST_NET_GATE_H
#define SB_HOST_NET_GATE_H
/*
 * sendbox-net: the one way out of a session. One thread, one loop, jailed before the first byte of
 * the guest. Descriptor 3 is the socket to the monitor; its end ends this process, and the end of
 * this process ends the session.
 *
 *   gate.c     start, messages of the monitor, the front socket, amendments
 *   conn.c     one connection of the guest: target, decision, then inspect and relay
 *   proxy.c    explicit proxy on SB_NET_PROXY_PORT: CONNECT, absolute-form HTTP, SOCKS
 *   inspect.c  agreement of names: ClientHello (tls.c), HTTP requests (http.c)
 *   relay.c    bytes both ways: splice, half-close, idle time, budgets
 *   dial.c     happy eyeballs over checked addresses; route.c: which addresses are the host's
 *   names.c    synthetic addresses; resolve.c: real ones; dns.c: answers to the guest
 *   event.c    what is told to the monitor; viewer.c: sendbox net
 */
#include "core/net_policy.h"
#include "core/plan.h"
#include "os/loop.h"
#include "wire/ipc.h"

struct gate;

/* --- names.c: stable synthetic addresses, 198.18.0.0/15 and fd73:656e:6462:6f78::/64 --- */
struct names;
#define NAMES_MAX 65536
SB_MUST_CHECK int names_new(struct names **ret);
struct names *names_free(struct names *n);
/* The address that stands for @name (normalised). @v6: family. Return: 0; -ENOSPC; -ENOMEM. */
SB_MUST_CHECK int names_addr(struct names *n, const char *name, bool v6, struct sb_addr *ret);
/* The name behind @a. NULL: it stands for nothing. The text lives as long as @n. */
const char *names_of(const struct names *n, const struct sb_addr *a);
bool names_synthetic(const struct sb_addr *a); /* whether @a is inside the pools at all */
bool names_known(const struct names *n, const char *name);

/* --- resolve.c: through the host's resolvers (c-ares), every hop checked --- */
#define RESOLVE_MAX 32 /* addresses of one name */
struct resolver;
struct resolve;
struct resolve_result {
	enum sb_net_reason reason; /* SB_NET_OK, CNAME_DENIED, RESOLVE_FAILED */
	char culprit[SB_NAME_MAX + 1]; /* CNAME_DENIED: the hop; RESOLVE_FAILED: text */
	struct sb_addr addrs[RESOLVE_MAX]; /* of both families, in the resolver's order; unchecked */
	size_t n;
};
typedef void resolve_fn(struct resolve *r, const struct resolve_result *res);
struct resolve { /* one request, embedded in its owner; zero it before the first use */
	resolve_fn *fn;
	void *owner;
	struct resolve *next;
	void *job;
	bool active;
};
SB_MUST_CHECK int resolver_new(struct gate *g, struct resolver **ret, struct sb_err *err);
struct resolver *resolver_free(struct resolver *r);
/* @fn is called once, never from inside this call. @name: normalised. Return: 0; -errno */
SB_MUST_CHECK int resolve_start(struct resolver *r, struct resolve *q, const char *name,
				resolve_fn *fn, void *owner);
void resolve_cancel(struct resolve *q);
/* Any other record type, for the DNS relay: the whole upstream answer, checked for form. */
typedef void resolve_raw_fn(void *owner, const uint8_t *msg, size_t len); /* NULL: failed */
SB_MUST_CHECK int resolve_raw(struct resolver *r, const char *name, uint16_t type,
			      resolve_raw_fn *fn, void *owner);
void resolve_raw_cancel(struct resolver *r, void *owner);

/* --- dns.c: the only resolver that the guest has --- */
struct dns;
SB_MUST_CHECK int dns_new(struct gate *g, struct dns **ret);
struct dns *dns_free(struct dns *d);
/* A bound UDP socket of the sandbox (namespace); taken. Return: 0; -errno */
SB_MUST_CHECK int dns_add_udp(struct dns *d, int *fd);
/* A stream of tagged messages (micro-VM, SB_NET_HELLO_DNS), after its hello; taken. */
SB_MUST_CHECK int dns_add_tagged(struct dns *d, int *fd);
/* A TCP connection to port 53 of any address; taken. */
SB_MUST_CHECK int dns_add_tcp(struct dns *d, int *fd);
/*
 * Before an allowed name is looked up that the guest gave without asking here (a proxy request):
 * names beneath wildcards have a budget of new ones a minute, however they are asked for.
 * @v: the verdict about the name. Return: SB_NET_OK or SB_NET_DNS_NEW_NAMES.
 */
SB_MUST_CHECK enum sb_net_reason dns_admit(struct dns *d, const char *name,
					   const struct sb_net_verdict *v);

/* --- event.c --- */
/* Tell the monitor and every viewer. Time and count (when 0) are filled in. Never blocks: equal
 * refusals are merged, and what does not fit is counted and told as LOST. */
void event_send(struct gate *g, const struct sb_ipc_net_event *ev);
/* Fill name, port, reason and rule text from a verdict. */
void event_fill(struct sb_ipc_net_event *ev, const char *target, uint16_t port,
		const struct sb_net_verdict *v);
/* Before the socket to the monitor closes: tell what waits (some seconds at most) and free. */
void events_done(struct gate *g);

/* --- viewer.c --- */
SB_MUST_CHECK int viewer_new(struct gate *g, int *fd);
/* Tell those that follow; a refused name is kept for those that come later. */
void viewer_event(struct gate *g, const struct sb_ipc_net_event *ev);
void viewers_done(struct gate *g);

/* --- dial.c, route.c --- */
struct dial;
struct dial_result {
	int fd; /* owned by the callee; -1 on failure */
	enum sb_net_reason reason; /* OK, ADDR_*, CONNECT_FAILED */
	int error;                 /* CONNECT_FAILED: errno of the last attempt */
	struct sb_addr addr;       /* that was connected, or the one that decided the refusal */
	const struct sb_net_rule *rule;
};
typedef void dial_fn(struct dial *d, struct dial_result *res);
/*
 * Connect to one of @addrs at @port: both families interleaved, the next one after 250 ms or a
 * failure, at most 8 attempts and 30 s in all. Each address is judged right before its attempt
 * (sb_netpol_resolved unless @judged, host's own addresses always); refused ones are passed over.
 * @fn is called once, never from inside this call; it takes res->fd, and the dial is gone when it
 * returns. Return: 0; -ENOMEM
 */
SB_MUST_CHECK int dial_start(struct gate *g, const struct sb_addr *addrs, size_t n, uint16_t port,
			     bool judged, dial_fn *fn, void *owner, struct dial **ret);
/* The host's own port, granted by rule: 127.0.0.1, then ::1. */
SB_MUST_CHECK int dial_host(struct gate *g, uint16_t port, dial_fn *fn, void *owner,
			    struct dial **ret);
void dial_cancel(struct dial *d);
void *dial_owner(const struct dial *d);

/* Whether the kernel would deliver @a to this host itself (an address of an interface, a local or
 * broadcast route). Asks the routing table through a netlink socket opened before the jail.
 * Return: 1, 0; -errno (treat as yes). */
SB_MUST_CHECK int route_open(int *ret_fd);
SB_MUST_CHECK int route_is_local(int fd, const struct sb_addr *a);

/* --- conn.c --- */
struct conn;
/* A connection accepted in the sandbox (namespace): its destination is the socket's own address. */
void conn_accepted(struct gate *g, int *fd);
/* The end of a stream of the channel: a struct sb_net_hello comes first. */
void conn_stream(struct gate *g, int *fd);
void conns_done(struct gate *g);
/* After an amendment: cut what is not allowed any more. Return: how many were cut. */
size_t conns_recheck(struct gate *g);
/* For viewers: call @fn for each open connection, then for those closed lately (a ring of 256). */
void conns_each(struct gate *g, void (*fn)(void *arg, const struct sb_ipc_net_flow *f), void *arg);

/* --- gate.c --- */
struct gate {
	struct sb_loop *loop;
	struct sb_plan *plan;   /* owned; its net part changes with amendments */
	struct sb_netpol *pol;  /* owned; replaced as a whole */
	char session[33];       /* hex */
	uint8_t public_key[32];
	uint64_t amended;       /* sequence number of the last amendment */
	int ipc;                /* owned */
	int front;              /* owned; -1 once the namespace's listeners have come */
	int route;              /* owned; netlink */
	struct sb_io ipc_io;
	struct sb_io front_io;
	int listeners[2];       /* owned; namespace: tcp4, tcp6 */
	struct sb_io listen_io[2];
	struct sb_timer pause;  /* no more accepts until then */
	uint64_t next_pending;  /* pending.c */
	struct sb_timer pending_retry;
	struct names *names;
	struct resolver *resolver;
	struct dns *dns;
	struct conn *conns;     /* list */
	uint32_t n_conns;
	uint64_t next_id;
	uint64_t next_question;
	uint64_t bytes;         /* both directions, whole session */
	void *events;           /* event.c's own */
	void *viewers;          /* viewer.c's own */
	void *refused;          /* viewer.c's own: the names that were refused lately */
	void *conns_priv;       /* conn.c's own: per-target counters, ring of closed ones, pipes */
};
/* Verify, apply and record an amendment. Return: 0; -EKEYREJECTED; -ESTALE (sequence);
 * -errno with text. */
SB_MUST_CHECK int gate_amend(struct gate *g, const uint8_t signature[64], const char *bytes,
			     size_t len, struct sb_err *err);
/* The session cannot go on: tell and stop. */
void gate_fail(struct gate *g, const char *fmt, ...) SB_PRINTF(2, 3);

#endif
