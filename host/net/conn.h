#ifndef SB_HOST_NET_CONN_H
#define SB_HOST_NET_CONN_H
/*
 * The inside of a connection, shared by conn.c, proxy.c, inspect.c, http.c and relay.c; and what
 * gate.c and main.c share.
 *
 * A connection has two halves (sockets) and two ways (up: from the guest, down: to it). Nothing
 * frees a connection but conn_settle(), which every entry from outside (a socket, a timer, a
 * resolver's or dialler's answer) calls last; so any function below may end it at any time, and
 * its callers only look at c->phase.
 */
#include "net/gate.h"
#include "wire/http1.h"

struct pipe;
struct tally;

enum way_mode {
	WAY_HOLD = 0, /* nothing is read */
	WAY_LOOK,     /* what was read goes on when somebody has looked at it */
	WAY_PASS,     /* everything goes on */
	WAY_DROP,     /* read and thrown away */
};
#define WAY_LOOK_MAX (SB_HTTP_HEAD_MAX + 1) /* bytes that wait for a look */

struct way {
	enum way_mode mode;
	bool wait;        /* LOOK: nothing is read or looked at until somebody clears it */
	bool bulk;        /* the last read filled the scratch buffer: splice */
	bool eof;         /* its sender has ended */
	bool ended;       /* its receiver was told */
	uint8_t *buf;     /* owned; NULL when empty */
	uint32_t cap;
	uint32_t at;      /* first byte */
	uint32_t len;     /* bytes from there */
	uint32_t pass;    /* of these: may be sent */
	uint64_t through; /* LOOK: so many further bytes need no look */
	struct pipe *pipe; /* owned while bytes are in it */
	size_t piped;      /* older than what is in buf */
	uint64_t bytes;    /* that were read, for the record */
};

struct half {
	int fd; /* owned; -1 = none */
	struct sb_io io;
	bool tcp;
	bool shut; /* our end was sent */
	bool gone; /* error or hang-up: not watched any more, only read until it tells */
};

enum conn_phase {
	CONN_HELLO = 0,  /* micro-VM: its destination is awaited */
	CONN_PROXY,      /* explicit proxy: its destination is awaited */
	CONN_ASKING,     /* a rule asks: the answer is awaited */
	CONN_OPENING,    /* allowed; looked up and dialled */
	CONN_LINKED,     /* both halves are there */
	CONN_LAST_WORDS, /* a refusal is being written to the guest */
	CONN_DEAD,
};
enum conn_say { /* how a refusal is told to the guest */
	SAY_RESET = 0,
	SAY_TLS,
	SAY_HTTP,
	SAY_SOCKS4,
	SAY_SOCKS5_METHOD, /* no acceptable method */
	SAY_SOCKS5,
};

enum conn_go { CONN_GO_NAME = 0, CONN_GO_HOST, CONN_GO_ADDR };

struct insp; /* inspect.c */

struct conn {
	struct gate *g;
	struct conn *next;
	struct conn **link; /* what points here */
	enum conn_phase phase;
	enum conn_say say;
	struct half client;
	struct half server;
	struct way up;
	struct way down;
	bool kick;       /* look at both ways again */
	bool cleared;    /* the inspection, if any, has let something through */
	bool due;        /* the CONNECT event is to be sent when this turn's bytes are on their way */
	bool told;       /* the CONNECT event is out */
	bool told_allow; /* and it said allowed */
	bool by_addr;    /* target is an address without a name */
	bool by_host;    /* target is SB_HOST_NAME */
	bool asked;      /* the proxy was asked (not transparent) */
	bool approved;   /* the answer about approved_name was yes */
	uint64_t question; /* ASKING: its id */
	char approved_name[256];
	uint16_t approved_port;
	uint8_t socks;   /* proxy: SOCKS version; 0 = HTTP, or not known yet */
	bool socks_offered;
	uint64_t open_by; /* deadlines, CLOCK_MONOTONIC ns; 0 = none */
	uint64_t look_by;
	uint64_t last_ns;   /* a byte went by */
	uint64_t opened_ns; /* CLOCK_REALTIME */
	struct resolve lookup;
	struct dial *dial; /* while active */
	enum conn_go go;   /* how, once the monitor has answered */
	uint64_t pending;  /* that its answer is awaited for; 0 = none */
	bool unsent;       /* the monitor's socket was full */
	struct insp *insp; /* owned; NULL: nothing is looked at (any more) */
	struct tally *tally; /* borrowed from conn.c's table; NULL = no budget for each host */
	struct sb_ipc_net_event ev; /* CONNECT: target (name, port), verdict, rule */
};

/* --- conn.c --- */
SB_MUST_CHECK int conns_new(struct gate *g);
/* The last call of each entry: frees what died, otherwise says what is waited for. */
void conn_settle(struct conn *c);
/* Decide about a destination and start the way there. @name: normalised. */
void conn_to_name(struct conn *c, const char *name, uint16_t port);
void conn_to_addr(struct conn *c, const struct sb_addr *a, uint16_t port);
/* The target is @text as the guest wrote it (an address or a name). */
void conn_to_text(struct conn *c, const char *text, size_t len, uint16_t port);
/* The answer to a question of a connection. */
void conn_answer(struct gate *g, const struct sb_ipc_appr_answer *a);
/* Refused: event, the answer that c->say asks for, end. @rule may be NULL. */
void conn_refuse(struct conn *c, enum sb_net_reason reason, const struct sb_net_rule *rule);
/* The end of a refusal that http_put_off() had put off. */
void conn_part(struct conn *c, enum sb_net_reason reason);
/* Abrupt end of both halves. */
void conn_cut(struct conn *c, enum sb_net_reason reason);
/* Orderly end: everything was passed on. */
void conn_over(struct conn *c);
/* The guest left before there was a verdict about its bytes. */
void conn_left(struct conn *c);
/* Linked, and the inspection lets through: the CONNECT event, once. */
void conn_tell(struct conn *c);
/* The inspection has let something through. */
void conn_clear(struct conn *c);
/* Proxy, further request: leave the present target; up and its buffer stay. */
void conn_leave(struct conn *c);
void conn_look_within(struct conn *c, uint64_t *by, uint64_t ns); /* set a deadline */
/* Bytes that may still pass; 0 = the budget is used up. */
uint64_t conn_budget(const struct conn *c);
void conn_count(struct conn *c, struct way *w, size_t n);
extern uint64_t conn_look_ns; /* for a hello, a head, a proxy's request; tests shorten it */

/* Allowed and on record: look up, dial. */
void conn_go(struct conn *c);

/* --- pending.c: nothing is dialled before the monitor says that it is on record --- */
/* Ask about @c->ev. conn_go() or conn_refuse() follow, never from inside this call. */
SB_MUST_CHECK int pending_ask(struct conn *c);
/* Return: 0; -EBADMSG */
SB_MUST_CHECK int pending_answer(struct gate *g, const struct sb_ipc_msg *msg);

/* --- looking: what to do with c->up (or c->down) from its first byte on --- */
enum look {
	LOOK_MORE = 0, /* more bytes are needed, or something else is awaited (wait is set) */
	LOOK_ON,       /* something changed: go on */
};
enum look conn_look(struct conn *c, struct way *w); /* conn.c: dispatch */

/* --- inspect.c --- */
/* Begin what the verdict's protocol asks for. Return: 0; -ENOMEM */
SB_MUST_CHECK int inspect_begin(struct conn *c);
enum look inspect_look(struct conn *c, struct way *w);
void inspect_done(struct conn *c);
/* Up has ended without a byte that waits. Return: true when that was dealt with. */
bool inspect_eof(struct conn *c);
/* Whether @text (as the guest wrote it) may stand for the target; refuses otherwise.
 * @reason: for a mismatch. */
bool inspect_agree(struct conn *c, const char *text, size_t len, enum sb_net_reason reason);
/* Whether the name inside has to be the target's. */
bool inspect_strict(const struct conn *c);
enum insp_kind {
	INSP_NONE = 0,
	INSP_FIRST, /* what it is shows with the first bytes */
	INSP_TLS,
	INSP_TLS_REPLY, /* the hello went on: its answer is awaited */
	INSP_TLS_AGAIN, /* the server asked for another hello */
	INSP_HTTP,
};
struct insp {
	enum insp_kind kind;
	/* HTTP: the request and the response that are going by */
	bool req_body;
	bool rsp_body;
	struct sb_http_flow req;
	struct sb_http_flow rsp;
	uint32_t seen;   /* bytes of an unfinished head that were parsed in vain */
	uint32_t flight; /* requests without a complete response */
	uint64_t heads;  /* bit n: the n-th of them is HEAD */
	bool lost;       /* where a response ends is not known any more */
	bool upgrading;  /* the last of them asks for websocket */
	enum sb_net_reason put_off; /* the request behind them is refused, when they are served */
};

/* From here on nothing is looked at. */
enum look inspect_over(struct conn *c);

/* --- tls.c --- */
enum look tls_up(struct conn *c);
enum look tls_down(struct conn *c);
/* A first record that is none of a hello, but that some server reads over; a hello in the form of
 * SSL 2. Return: 1; 0 = more bytes are needed; -1 = none */
int tls_stray_record(const uint8_t *p, size_t len);
int tls_old_hello(const uint8_t *p, size_t len);
enum look tls_refuse(struct conn *c, enum sb_net_reason reason);

/* --- http.c --- */
enum look http_up(struct conn *c);
enum look http_down(struct conn *c);
/* Responses are in flight: note a refusal for when they have gone by. Return: whether they are */
bool http_put_off(struct conn *c, enum sb_net_reason reason);
bool http_is_2(const uint8_t *p, size_t len); /* HTTP/2 without TLS */
/* A body of known length goes by: some of it went. */
void http_through(struct conn *c, const struct way *w);
/* Whether a whole response of ours can be put on the way down. */
bool http_quiet(const struct conn *c);
/* The answer to a refused request, with the text of sb_net_explain. Return: length. */
size_t http_answer(const struct conn *c, enum sb_net_reason reason,
		   const struct sb_net_rule *rule, char *out, size_t cap);
/* Whether the head offers a change to HTTP/2; then it goes on without that. */
bool http_offers_2(const struct sb_http_request *q);
struct sb_buf;
void http_add_field(struct sb_buf *b, const struct sb_http_request *q, size_t i);
/* A request's head passed the checks: replace it by @head (NULL: as it is) and count it. */
SB_MUST_CHECK int http_pass(struct conn *c, const struct sb_http_request *q, const char *head,
			    size_t len);

/* --- proxy.c --- */
void proxy_begin(struct conn *c);
enum look proxy_look(struct conn *c);
/* The upstream is there: tell the client, begin the inspection. */
void proxy_linked(struct conn *c);
/* A request in absolute form on a proxy connection, checked for form already. */
enum look proxy_request(struct conn *c, const struct sb_http_request *q);
size_t proxy_socks_answer(const struct conn *c, enum sb_net_reason reason, int error, uint8_t *out);

/* --- relay.c --- */
struct relay;
SB_MUST_CHECK int relay_new(struct gate *g, struct relay **ret);
struct relay *relay_free(struct relay *r);
void relay_run(struct conn *c, bool up, bool down);
void relay_watch(struct conn *c); /* what both halves wait for */
void relay_on_client(struct sb_io *io, uint32_t events);
void relay_on_server(struct sb_io *io, uint32_t events);
/* Put bytes of our own on @w, behind what is there. Return: 0; -EBUSY: something there is still
 * looked at; -ENOMEM */
SB_MUST_CHECK int way_say(struct way *w, const void *p, size_t len);
/* Replace the first @old bytes, which were looked at. Return: 0; -ENOMEM */
SB_MUST_CHECK int way_replace(struct way *w, size_t old, const void *p, size_t len);
void way_drop(struct way *w, size_t n);
void way_clear(struct conn *c, struct way *w); /* forget every byte */
void half_close(struct half *h, bool reset);
struct relay *conns_relay(struct gate *g);

/* --- gate.c --- */
/* Everything that is opened before the jail. @front, @plan_fd: of the start message. */
SB_MUST_CHECK int gate_open(struct gate *g, const struct sb_ipc_net_start *start, int *front,
			    int plan_fd, struct sb_err *err);
/* After the jail: from here on the guest's bytes come. */
SB_MUST_CHECK int gate_serve(struct gate *g);
void gate_done(struct gate *g);
uint32_t gate_descriptors(const struct gate *g); /* how many it may need */

#endif
