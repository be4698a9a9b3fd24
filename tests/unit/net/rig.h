#ifndef SB_TESTS_NET_RIG_H
#define SB_TESTS_NET_RIG_H
/*
 * The gate in this process, between three network namespaces of the test's own:
 *
 *   guest     every address is local, as in a sandbox; rig_dial() accepts there for the gate
 *   host      the gate's: a default route to the internet, address 192.0.2.1
 *   internet  192.0.2.2, 93.184.216.34, 93.184.216.35, 10.1.2.3; servers of the test
 *
 * All sockets are non-blocking; every wait turns the gate's loop.
 */
#include <poll.h>

#include "net/conn.h"
#include "t.h"

#define WEB "93.184.216.34"
#define OTHER "93.184.216.35"
#define LAN "10.1.2.3"
#define RIG_EVENTS 256

struct rig {
	struct gate g;
	struct sb_plan *plan; /* owned until rig_start */
	int monitor;          /* our end of the gate's ipc socket */
	uint16_t refuse_pending; /* answer questions with this reason */
	bool hold_pending;       /* or not at all */
	size_t n_pending;
	int front;            /* our end of the front socket */
	uint8_t secret[64];
	struct sb_ipc_net_event ev[RIG_EVENTS]; /* what the monitor was told, DNS excepted */
	size_t n_ev;
	uint64_t told[8][2]; /* by kind and allow: how many, merged ones counted */
	bool stopped; /* the gate said that it failed */
	int fds_before;
};

/* Whether namespaces can be had; otherwise skips the running test. */
bool rig_usable(void);
/* A plan for @provider in filter mode without a rule; change it before rig_start. */
bool rig_init(struct rig *r, enum sb_provider_id provider);
bool rig_rule(struct rig *r, const char *rule); /* "deny RULE" denies */
bool rig_pin(struct rig *r, const char *name, const char *addr);
bool rig_start(struct rig *r);
void rig_done(struct rig *r); /* checks that no descriptor is left */

/* Turn the loop for at most @ms until @fd is ready for @events. */
bool rig_ready(struct rig *r, int fd, short events, int ms);
void rig_spin(struct rig *r, int ms);

/* A server on @addr:@port of the internet. Return: listening descriptor */
int rig_serve(const char *addr, uint16_t port);
int rig_accept(struct rig *r, int listener); /* -1: nobody came within a second */
extern void (*rig_before)(void); /* called when a connection is about to reach the gate */
/* A program of the guest dials. @to: an address, or a name (its synthetic address is used). */
int rig_dial(struct rig *r, const char *to, uint16_t port);
int rig_guest_socket(int type, uint16_t port); /* bound; a stream listens */
int rig_guest_connect(const char *addr, uint16_t port);
/* As a micro-VM does it: a stream with a hello. */
int rig_stream(struct rig *r, const char *to, uint16_t port);
int rig_front_stream(struct rig *r); /* without a hello */

void rig_send(struct rig *r, int fd, const void *p, size_t len);
void rig_say(struct rig *r, int fd, const char *s);
/* Read until @len bytes, the end or a second. Return: bytes read */
size_t rig_read(struct rig *r, int fd, void *buf, size_t len);
/* Read exactly @want, as text. */
bool rig_expect(struct rig *r, int fd, const char *want);
/* Read to the end; text into @buf. Return: 0 = orderly; -errno (ECONNRESET); -ETIMEDOUT */
int rig_rest(struct rig *r, int fd, char *buf, size_t cap);
bool rig_is_reset(struct rig *r, int fd); /* reset without a byte */
bool rig_quiet(struct rig *r, int fd, int ms); /* nothing comes */

/* The @n-th event of @kind, waiting for it up to a second; NULL = there is none. */
const struct sb_ipc_net_event *rig_event(struct rig *r, uint8_t kind, size_t n);
/* Exactly one CONNECT event so far, refused for @reason. */
bool rig_refused(struct rig *r, enum sb_net_reason reason);
size_t rig_count(struct rig *r, uint8_t kind); /* after a short wait */
int rig_amend(struct rig *r, uint64_t seq, const char *allow, const char *remove);

/* A TLS ClientHello with these parts. Return: length */
size_t rig_hello(const char *sni, bool ech, uint8_t *out, size_t cap);

#endif
