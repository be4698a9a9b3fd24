/*
 * Theory of operation. A connection of the guest goes HELLO (micro-VM: destination awaited) or
 * PROXY (explicit proxy: request awaited), OPENING (allowed: lookup and dial run), LINKED, DEAD.
 * The decision falls in the turn in which the destination is known; a refusal is told and answered
 * in that turn too. The inspection (inspect.c) runs beside the dial from the first byte on; what it
 * has not let through stays in the way's buffer, so nothing of the guest reaches a server early.
 *
 * Each connection has one CONNECT event: refused, or, allowed, when it is linked and something was
 * let through (or it ends, or the server speaks first), and then one CLOSED event. A refusal after
 * that is a REQUEST event.
 *
 * What the guest controls: how many connections (max_connections), how long it says nothing
 * (deadlines, one timer for all, set again lazily), how much it sends (back pressure, budgets).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/approval.h"
#include "crypto/crypto.h"
#include "net/conn.h"
#include "net/hash.h"
#include "wire/net_hello.h"
#include "wire/socks.h"
#include "wire/tls_hello.h"

#define ASK_NS 3700000000000ULL /* longer than any answer may take; the state machine has its own time */
#define OPEN_NS 60000000000ULL /* lookup and dial, which have shorter limits of their own */
#define LAST_WORDS_NS 2000000000ULL
#define SWEEP_MIN_NS 20000000ULL
#define RING 256
#define TALLY_BUCKETS 1024
#define TALLY_MAX 65536 /* targets with a budget of their own */
#define UNKNOWN_MAX 64  /* streams beyond the limit whose destination is not known yet */

uint64_t conn_look_ns = 30000000000ULL;

struct tally {
	struct tally *next;
	uint64_t bytes;
	char name[];
};

struct conns {
	struct relay *relay;
	struct sb_timer sweep;
	uint64_t sweep_at; /* when it is set: for when */
	struct tally *tallies[TALLY_BUCKETS];
	uint32_t n_tallies;
	uint64_t key[2]; /* of their hash */
	struct sb_ipc_net_flow *ring; /* owned; RING */
	uint64_t n_closed;            /* all so far; modulo RING: the next place */
};

static struct conns *priv(const struct gate *g)
{
	return g->conns_priv;
}

struct relay *conns_relay(struct gate *g)
{
	return priv(g)->relay;
}

int conns_new(struct gate *g)
{
	sb_autofree struct conns *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	sb_random(p->key, sizeof(p->key));
	r = relay_new(g, &p->relay);
	if (r < 0)
		return r;
	p->ring = calloc(RING, sizeof(*p->ring));
	if (!p->ring) {
		p->relay = relay_free(p->relay);
		return -ENOMEM;
	}
	g->conns_priv = sb_take(&p);
	return 0;
}

/* --- budgets --- */

/* Return: NULL when there is no memory or too many targets */
static struct tally *tally_get(struct gate *g, const char *name)
{
	struct conns *p = priv(g);
	size_t h = hash_name(p->key, name) % TALLY_BUCKETS;
	size_t len = strlen(name);
	struct tally *t;

	for (t = p->tallies[h]; t; t = t->next)
		if (strcmp(t->name, name) == 0)
			return t;
	if (p->n_tallies >= TALLY_MAX)
		return NULL;
	t = calloc(1, sizeof(*t) + len + 1);
	if (!t)
		return NULL;
	memcpy(t->name, name, len + 1);
	t->next = p->tallies[h];
	p->tallies[h] = t;
	p->n_tallies++;
	return t;
}

uint64_t conn_budget(const struct conn *c)
{
	const struct sb_plan_net *n = &c->g->plan->net;
	uint64_t left = UINT64_MAX;

	if (c->ev.name[0] == '\0')
		return left; /* no target yet: nothing of this passes */
	if (n->session_bytes > 0)
		left = n->session_bytes - SB_MIN(n->session_bytes, c->g->bytes);
	if (c->tally)
		left = SB_MIN(left, n->host_bytes - SB_MIN(n->host_bytes, c->tally->bytes));
	return left;
}

void conn_count(struct conn *c, struct way *w, size_t n)
{
	w->bytes += n;
	c->last_ns = sb_now_ns();
	c->g->bytes += n;
	if (c->tally)
		c->tally->bytes += n;
	if (w == &c->down && !c->told)
		conn_tell(c);
}

/* --- deadlines --- */

static void on_sweep(struct sb_timer *t);

static void sweep_by(struct gate *g, uint64_t at)
{
	struct conns *p = priv(g);
	uint64_t now = sb_now_ns();

	if (p->sweep.active && p->sweep_at <= at)
		return;
	p->sweep_at = SB_MAX(at, now + SWEEP_MIN_NS);
	sb_timer_set(g->loop, &p->sweep, p->sweep_at - now, on_sweep, g);
}

void conn_look_within(struct conn *c, uint64_t *by, uint64_t ns)
{
	*by = sb_now_ns() + ns;
	sweep_by(c->g, *by);
}

static uint64_t idle_at(const struct conn *c)
{
	uint64_t idle = c->g->plan->net.idle_ms;

	if (idle == 0 || c->phase != CONN_LINKED)
		return UINT64_MAX;
	return c->last_ns + idle * 1000000U;
}

static uint64_t due_at(const struct conn *c)
{
	uint64_t at = idle_at(c);

	if (c->open_by > 0)
		at = SB_MIN(at, c->open_by);
	if (c->look_by > 0)
		at = SB_MIN(at, c->look_by);
	return at;
}

static void expire(struct conn *c, uint64_t now)
{
	if (c->phase == CONN_LAST_WORDS) {
		conn_cut(c, SB_NET_OK);
	} else if (c->phase == CONN_HELLO || c->phase == CONN_PROXY) {
		conn_left(c);
	} else if (c->phase == CONN_ASKING) {
		conn_refuse(c, SB_NET_NOT_APPROVED, NULL);
	} else if (c->look_by > 0 && c->look_by <= now && c->told) {
		conn_cut(c, SB_NET_IDLE);
	} else if (c->look_by > 0 && c->look_by <= now) {
		conn_refuse(c, SB_NET_IDLE, NULL);
	} else if (c->open_by > 0 && c->open_by <= now) {
		conn_refuse(c, c->dial ? SB_NET_CONNECT_FAILED : SB_NET_RESOLVE_FAILED, NULL);
	} else {
		conn_cut(c, SB_NET_IDLE);
	}
}

static void on_sweep(struct sb_timer *t)
{
	struct gate *g = t->owner;
	uint64_t now = sb_now_ns();
	uint64_t at = UINT64_MAX;

	for (struct conn *c = g->conns, *next; c; c = next) {
		next = c->next;
		if (due_at(c) <= now) {
			expire(c, now);
			if (c->phase != CONN_DEAD)
				at = SB_MIN(at, due_at(c));
			conn_settle(c);
		} else {
			at = SB_MIN(at, due_at(c));
		}
	}
	if (at != UINT64_MAX)
		sweep_by(g, at);
}

/* --- life --- */

static struct conn *conn_new(struct gate *g, int *fd, bool tcp)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->g = g;
	c->client = (struct half){ .fd = sb_fd_take(fd), .tcp = tcp };
	c->server = (struct half){ .fd = -1, .tcp = true };
	c->ev.via = SB_NET_VIA_DIRECT;
	c->ev.kind = SB_NET_EV_CONNECT;
	c->last_ns = sb_now_ns();
	c->opened_ns = sb_real_ns();
	c->ev.id = ++g->next_id;
	c->next = g->conns;
	c->link = &g->conns;
	if (c->next)
		c->next->link = &c->next;
	g->conns = c;
	g->n_conns++;
	return c;
}

/* Whoever was to answer need not any more. */
static void ask_gone(struct conn *c)
{
	struct sb_ipc_appr_ask q = { .id = c->question };

	if (c->question != 0 && sb_ipc_send(c->g->ipc, SB_IPC_APPR_ASK, &q, sizeof(q), NULL, 0) < 0)
		sb_debug("a question stays open");
	c->question = 0;
}

/* Give back what a target needs; the client's half stays. */
static void leave_target(struct conn *c, bool reset)
{
	ask_gone(c);
	resolve_cancel(&c->lookup);
	if (c->dial) {
		dial_cancel(c->dial);
		c->dial = NULL;
	}
	half_close(&c->server, reset);
	c->pending = 0;
	c->unsent = false;
	c->open_by = 0;
	c->look_by = 0;
}

static void conn_free(struct conn *c)
{
	leave_target(c, true);
	inspect_done(c);
	way_clear(c, &c->up);
	way_clear(c, &c->down);
	half_close(&c->client, true);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->g->n_conns--;
	free(c);
}

static void remember(struct conn *c)
{
	struct conns *p = priv(c->g);
	struct sb_ipc_net_flow *f = &p->ring[p->n_closed++ % RING];

	*f = (struct sb_ipc_net_flow){ .ev = c->ev, .opened_ns = c->opened_ns };
}

static void tell(struct conn *c, uint8_t kind, bool allow, enum sb_net_reason reason)
{
	struct sb_ipc_net_event ev = c->ev;

	ev.kind = kind;
	ev.allow = allow;
	ev.reason = (uint16_t)reason;
	ev.up = c->up.bytes;
	ev.down = c->down.bytes;
	event_send(c->g, &ev);
}

void conn_tell(struct conn *c)
{
	if (c->told)
		return;
	c->told = true;
	c->told_allow = true;
	c->ev.allow = 1;
	c->ev.reason = SB_NET_OK;
	tell(c, SB_NET_EV_CONNECT, true, SB_NET_OK);
}

static void tell_due(struct conn *c)
{
	if (c->due && c->phase == CONN_LINKED)
		conn_tell(c);
	c->due = false;
}

void conn_settle(struct conn *c)
{
	tell_due(c);
	if (c->phase != CONN_DEAD)
		relay_watch(c);
	if (c->phase == CONN_DEAD)
		conn_free(c);
}

/* The end of a target's events. */
static void tell_end(struct conn *c, enum sb_net_reason reason)
{
	if (c->ev.name[0] == '\0')
		return; /* never had a target */
	if (!c->told)
		conn_tell(c); /* it was allowed, and nothing came of it */
	if (c->told_allow)
		tell(c, SB_NET_EV_CLOSED, true, reason);
	c->ev.up = c->up.bytes;
	c->ev.down = c->down.bytes;
	c->ev.allow = c->told_allow;
	if (c->told_allow)
		c->ev.reason = (uint16_t)reason;
	remember(c);
	c->ev.name[0] = '\0';
}

static void end(struct conn *c, bool reset, enum sb_net_reason reason)
{
	if (c->phase == CONN_DEAD)
		return;
	tell_end(c, reason);
	c->phase = CONN_DEAD;
	leave_target(c, reset);
	half_close(&c->client, reset);
}

void conn_cut(struct conn *c, enum sb_net_reason reason)
{
	end(c, true, reason);
}

void conn_over(struct conn *c)
{
	end(c, false, SB_NET_OK);
}

void conn_left(struct conn *c)
{
	end(c, true, SB_NET_OK);
}

void conn_clear(struct conn *c)
{
	c->cleared = true;
	c->look_by = 0;
	if (c->phase == CONN_LINKED)
		c->due = true;
}

/* --- refusals --- */

static size_t last_words(const struct conn *c, enum sb_net_reason reason,
			 const struct sb_net_rule *rule, int error, uint8_t *out, size_t cap)
{
	switch (c->say) {
	case SAY_TLS:
		sb_tls_alert_write(49, out);
		return SB_TLS_ALERT_LEN;
	case SAY_HTTP:
		/* within the responses of a server it would be taken for one of them */
		return http_quiet(c) ? http_answer(c, reason, rule, (char *)out, cap) : 0;
	case SAY_SOCKS5_METHOD:
		out[0] = 5;
		out[1] = 0xff;
		return 2;
	case SAY_SOCKS4:
	case SAY_SOCKS5:
		return proxy_socks_answer(c, reason, error, out);
	case SAY_RESET:
		break;
	}
	return 0;
}

/* The last words, as far as the protocol has some, then the end. */
static void part(struct conn *c, enum sb_net_reason reason, const struct sb_net_rule *rule,
		 int error)
{
	uint8_t words[2048];
	size_t len = last_words(c, reason, rule, error, words, sizeof(words));

	if (len == 0 || way_say(&c->down, words, len) < 0) {
		conn_cut(c, reason);
		return;
	}
	leave_target(c, true);
	inspect_done(c);
	way_clear(c, &c->up);
	c->up.mode = WAY_DROP;
	c->up.wait = false;
	c->down.mode = WAY_HOLD;
	c->down.eof = true; /* after these words */
	c->down.ended = false;
	c->phase = CONN_LAST_WORDS;
	c->kick = true;
	conn_look_within(c, &c->look_by, LAST_WORDS_NS);
}

static void refuse(struct conn *c, enum sb_net_reason reason, const struct sb_net_rule *rule,
		   int error)
{
	if (c->phase == CONN_DEAD || c->phase == CONN_LAST_WORDS)
		return;
	tell_due(c); /* this is about a further request */
	c->ev.allow = 0;
	c->ev.reason = (uint16_t)reason;
	if (rule)
		sb_net_rule_text(rule, c->ev.rule, sizeof(c->ev.rule));
	tell(c, c->told ? SB_NET_EV_REQUEST : SB_NET_EV_CONNECT, false, reason);
	c->told = true;
	if (c->say == SAY_HTTP && http_put_off(c, reason)) {
		/* the requests before it are served first */
		way_clear(c, &c->up);
		c->up.mode = WAY_HOLD;
		conn_look_within(c, &c->look_by, conn_look_ns);
		return;
	}
	part(c, reason, rule, error);
}

void conn_part(struct conn *c, enum sb_net_reason reason)
{
	part(c, reason, NULL, 0);
}

void conn_refuse(struct conn *c, enum sb_net_reason reason, const struct sb_net_rule *rule)
{
	refuse(c, reason, rule, 0);
}

/* Nobody to be refused yet: no memory, too many. */
static void turn_away(struct gate *g, int *fd, const struct sb_addr *a, uint16_t port, bool tcp,
		      enum sb_net_reason reason)
{
	struct sb_ipc_net_event ev = { .id = ++g->next_id,
				       .kind = SB_NET_EV_CONNECT,
				       .via = SB_NET_VIA_DIRECT,
				       .reason = (uint16_t)reason,
				       .port = port };
	struct half h = { .fd = sb_fd_take(fd), .tcp = tcp };
	const char *name = a && names_synthetic(a) ? names_of(g->names, a) : NULL;

	if (name)
		(void)snprintf(ev.name, sizeof(ev.name), "%s", name);
	else if (a)
		sb_addr_format(a, ev.name);
	event_send(g, &ev);
	half_close(&h, true);
}

/* --- the way to a target --- */

static void on_dialled(struct dial *d, struct dial_result *res)
{
	struct conn *c = dial_owner(d);
	int one = 1;

	c->dial = NULL;
	c->open_by = 0;
	if (res->reason != SB_NET_OK || res->fd < 0) {
		enum sb_net_reason why = res->reason ? res->reason : SB_NET_CONNECT_FAILED;

		memcpy(c->ev.addr, res->addr.b, sizeof(c->ev.addr));
		c->ev.has_addr = 1;
		refuse(c, why, res->rule, res->error);
	} else {
		c->server.fd = sb_fd_take(&res->fd);
		memcpy(c->ev.addr, res->addr.b, sizeof(c->ev.addr));
		c->ev.has_addr = 1;
		(void)setsockopt(c->server.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->phase = CONN_LINKED;
		c->last_ns = sb_now_ns();
		if (idle_at(c) != UINT64_MAX)
			sweep_by(c->g, idle_at(c));
		c->due = c->cleared;
		if (c->asked && !c->cleared)
			proxy_linked(c);
	}
	relay_run(c, true, false);
	conn_settle(c);
}

static int dial_to(struct conn *c, const struct sb_addr *addrs, size_t n, bool judged)
{
	return dial_start(c->g, addrs, n, c->ev.port, judged, on_dialled, c, &c->dial);
}

static void on_resolved(struct resolve *q, const struct resolve_result *res)
{
	struct conn *c = q->owner;

	if (res->reason != SB_NET_OK)
		refuse(c, res->reason, NULL, 0);
	else if (dial_to(c, res->addrs, res->n, false) < 0)
		refuse(c, SB_NET_INTERNAL, NULL, 0);
	relay_run(c, true, true);
	conn_settle(c);
}

/* What was read before its target was known counts for the target. Return: whether it may pass */
static bool charge_ahead(struct conn *c)
{
	if (!c->tally)
		return true;
	if (c->up.len > c->g->plan->net.host_bytes - c->tally->bytes)
		return false;
	c->tally->bytes += c->up.len;
	return true;
}

/* Fill the event of a decision. Return: whether to go on. */
static bool decided(struct conn *c, const char *target, uint16_t port,
		    const struct sb_net_verdict *v)
{
	event_fill(&c->ev, target, port, v);
	c->ev.kind = SB_NET_EV_CONNECT;
	c->ev.allow = v->allow;
	c->ev.proto = (uint8_t)v->proto;
	if (!v->allow) {
		conn_refuse(c, v->reason, v->rule);
		return false;
	}
	c->tally = NULL;
	if (c->g->plan->net.host_bytes > 0) {
		c->tally = tally_get(c->g, c->ev.name);
		if (!c->tally) {
			conn_refuse(c, SB_NET_BUDGET, v->rule);
			return false;
		}
	}
	if (conn_budget(c) == 0 || !charge_ahead(c)) {
		conn_refuse(c, SB_NET_BUDGET, v->rule);
		return false;
	}
	return true;
}

/* @v: an allowance. Return: whether it has to wait for an answer, or was refused. */
static bool asks(struct conn *c, const char *target, uint16_t port, const struct sb_net_verdict *v)
{
	struct sb_ipc_appr_ask q = { .id = ++c->g->next_question, .kind = SB_APPR_NETWORK };

	if (!v->ask || (c->approved && c->approved_port == port && strcmp(c->approved_name, target) == 0))
		return false;
	c->approved = false;
	c->approved_port = port;
	(void)snprintf(c->approved_name, sizeof(c->approved_name), "%s", target);
	(void)snprintf(q.subject, sizeof(q.subject), strchr(target, ':') ? "[%s]:%u" : "%s:%u", target,
		       port);
	(void)snprintf(q.rule, sizeof(q.rule), "%.300s (%.180s)", c->ev.rule, v->rule ? v->rule->from : "");
	if (sb_ipc_send(c->g->ipc, SB_IPC_APPR_ASK, &q, sizeof(q), NULL, 0) < 0) {
		conn_refuse(c, SB_NET_NOT_APPROVED, v->rule);
		return true;
	}
	c->question = q.id;
	c->phase = CONN_ASKING;
	conn_look_within(c, &c->open_by, ASK_NS);
	return true;
}

static void opening(struct conn *c, int r)
{
	if (r < 0) {
		conn_refuse(c, SB_NET_INTERNAL, NULL);
		return;
	}
	c->phase = CONN_OPENING;
	conn_look_within(c, &c->open_by, OPEN_NS);
	/* a proxy's client says nothing of its own before it has the answer */
	if (!c->asked && inspect_begin(c) < 0)
		conn_refuse(c, SB_NET_INTERNAL, NULL);
}

void conn_go(struct conn *c)
{
	struct sb_addr a;
	int r = -EINVAL;

	switch (c->go) {
	case CONN_GO_HOST:
		r = dial_host(c->g, c->ev.port, on_dialled, c, &c->dial);
		break;
	case CONN_GO_ADDR:
		memcpy(a.b, c->ev.addr, sizeof(a.b));
		r = dial_to(c, &a, 1, true);
		break;
	case CONN_GO_NAME:
		r = resolve_start(c->g->resolver, &c->lookup, c->ev.name, on_resolved, c);
		break;
	}
	if (r < 0)
		conn_refuse(c, SB_NET_INTERNAL, NULL);
}

void conn_to_name(struct conn *c, const char *name, uint16_t port)
{
	struct sb_net_verdict v;
	enum sb_net_reason admit;

	sb_netpol_name(c->g->pol, name, port, &v);
	if (!decided(c, name, port, &v))
		return;
	c->by_addr = false;
	c->by_host = strcmp(name, SB_HOST_NAME) == 0;
	if (asks(c, name, port, &v))
		return;
	c->go = c->by_host ? CONN_GO_HOST : CONN_GO_NAME;
	if (c->by_host) {
		opening(c, pending_ask(c));
		return;
	}
	/* who was given a synthetic address has asked already */
	admit = c->asked ? dns_admit(c->g->dns, name, &v) : SB_NET_OK;
	if (admit != SB_NET_OK) {
		conn_refuse(c, admit, v.rule);
		return;
	}
	opening(c, pending_ask(c));
}

static bool is_loopback(const struct sb_addr *a)
{
	return sb_addr_classify(a) == SB_ADDR_LOOPBACK;
}

void conn_to_addr(struct conn *c, const struct sb_addr *a, uint16_t port)
{
	struct sb_net_verdict v = { .reason = SB_NET_ADDR_FORBIDDEN };
	const char *name = names_synthetic(a) ? names_of(c->g->names, a) : NULL;
	char text[SB_ADDR_TEXT];

	if (name) {
		conn_to_name(c, name, port);
		return;
	}
	sb_addr_format(a, text);
	if (names_synthetic(a))
		v.reason = SB_NET_NAME_UNKNOWN;
	else if (!is_loopback(a))
		sb_netpol_addr(c->g->pol, a, port, &v);
	memcpy(c->ev.addr, a->b, sizeof(c->ev.addr));
	c->ev.has_addr = 1;
	if (!decided(c, text, port, &v))
		return;
	c->by_addr = true;
	c->by_host = false;
	if (asks(c, text, port, &v))
		return;
	c->go = CONN_GO_ADDR;
	opening(c, pending_ask(c));
}

void conn_to_text(struct conn *c, const char *text, size_t len, uint16_t port)
{
	char name[SB_NAME_MAX + 1];
	struct sb_addr a;

	if (sb_addr_parse(text, len, &a) == 0) {
		conn_to_addr(c, &a, port);
	} else if (sb_name_normalise(text, len, name) == 0) {
		conn_to_name(c, name, port);
	} else {
		struct sb_net_verdict v = { .reason = SB_NET_NAME_MALFORMED };

		for (size_t i = 0; i < SB_MIN(len, sizeof(name) - 1); i++)
			name[i] = text[i] > 0x20 && text[i] < 0x7f ? text[i] : '?';
		name[SB_MIN(len, sizeof(name) - 1)] = '\0';
		(void)decided(c, name[0] ? name : "?", port, &v);
	}
}

static struct conn *that_asks(struct gate *g, uint64_t question)
{
	for (struct conn *c = g->conns; c; c = c->next)
		if (c->phase == CONN_ASKING && c->question == question)
			return c;
	return NULL;
}

/* Decided again with the policy of now: it may have been amended while the question was open. */
void conn_answer(struct gate *g, const struct sb_ipc_appr_answer *a)
{
	struct conn *c = that_asks(g, a->id);
	struct sb_addr addr;

	if (!c || a->id == 0)
		return;
	c->question = 0;
	c->open_by = 0;
	if (a->allow != 1) {
		conn_refuse(c, SB_NET_NOT_APPROVED, NULL);
	} else {
		c->approved = true;
		c->phase = CONN_PROXY;
		if (c->tally) /* charged again by the decision */
			c->tally->bytes -= SB_MIN(c->tally->bytes, (uint64_t)c->up.len);
		if (c->asked && c->ev.via == SB_NET_VIA_HTTP) {
			c->ev.name[0] = '\0'; /* the request, which is still there, is looked at again */
			c->up.wait = false;
		} else if (c->by_addr) {
			memcpy(addr.b, c->ev.addr, sizeof(addr.b));
			conn_to_addr(c, &addr, c->approved_port);
		} else {
			conn_to_name(c, c->approved_name, c->approved_port);
		}
	}
	relay_run(c, true, true);
	conn_settle(c);
}

void conn_leave(struct conn *c)
{
	if (c->tally) /* what waits goes to somebody else */
		c->tally->bytes -= SB_MIN(c->tally->bytes, (uint64_t)c->up.len);
	tell_end(c, SB_NET_OK);
	leave_target(c, false);
	c->down.len = c->down.pass; /* behind the response nothing was asked for */
	way_drop(&c->down, 0);
	c->down.eof = false;
	c->down.ended = false;
	c->down.bulk = false;
	c->up.bytes = 0;
	c->down.bytes = 0;
	c->up.ended = false;
	c->told = false;
	c->told_allow = false;
	c->cleared = false;
	c->approved = false;
	c->tally = NULL;
	c->phase = CONN_PROXY;
	c->ev = (struct sb_ipc_net_event){ .id = ++c->g->next_id,
					   .kind = SB_NET_EV_CONNECT,
					   .via = SB_NET_VIA_HTTP };
	c->opened_ns = sb_real_ns();
}

/* --- where the guest's connections come in --- */

/* A destination as the guest dialled it. */
static void route(struct conn *c, const struct sb_addr *a, uint16_t port)
{
	static const uint8_t proxy[4] = { 127, 0, 0, 1 };
	struct sb_addr local;

	sb_addr_from_v4(proxy, &local);
	if (port == 53) {
		sb_io_del(&c->client.io);
		if (dns_add_tcp(c->g->dns, &c->client.fd) < 0)
			half_close(&c->client, true);
		conn_left(c);
	} else if (port == SB_NET_PROXY_PORT && memcmp(a, &local, sizeof(local)) == 0) {
		proxy_begin(c);
	} else {
		conn_to_addr(c, a, port);
	}
}

static int dialled(int fd, struct sb_addr *ret, uint16_t *ret_port)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage ss;
	} u = { 0 };
	socklen_t len = sizeof(u);

	if (getsockname(fd, &u.sa, &len) < 0)
		return -errno;
	if (u.sa.sa_family == AF_INET) {
		sb_addr_from_v4((const uint8_t *)&u.in.sin_addr, ret);
		*ret_port = ntohs(u.in.sin_port);
	} else if (u.sa.sa_family == AF_INET6) {
		memcpy(ret->b, &u.in6.sin6_addr, sizeof(ret->b));
		*ret_port = ntohs(u.in6.sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

void conn_accepted(struct gate *g, int *fd)
{
	struct sb_addr a;
	struct conn *c;
	uint16_t port;

	if (dialled(*fd, &a, &port) < 0) {
		sb_fd_close(fd);
		return;
	}
	if (g->n_conns >= g->plan->net.max_connections && port != 53) {
		turn_away(g, fd, &a, port, true, SB_NET_TOO_MANY);
		return;
	}
	c = conn_new(g, fd, true);
	if (!c) {
		turn_away(g, fd, &a, port, true, SB_NET_INTERNAL);
		return;
	}
	/* TCP_NODELAY comes from the listening socket */
	route(c, &a, port);
	if (c->kick)
		relay_run(c, true, true);
	conn_settle(c);
}

void conn_stream(struct gate *g, int *fd)
{
	struct conn *c = NULL;

	if (g->n_conns < g->plan->net.max_connections + UNKNOWN_MAX)
		c = conn_new(g, fd, false);
	if (!c) {
		turn_away(g, fd, NULL, 0, false, SB_NET_TOO_MANY);
		return;
	}
	c->up.mode = WAY_LOOK;
	conn_look_within(c, &c->look_by, conn_look_ns);
	relay_run(c, true, false);
	conn_settle(c);
}

static enum look hello_look(struct conn *c)
{
	struct sb_net_hello h;
	struct sb_addr a;

	if (c->up.len < SB_NET_HELLO_LEN)
		return LOOK_MORE;
	if (sb_net_hello_parse(c->up.buf + c->up.at, &h) < 0) {
		conn_left(c);
		return LOOK_ON;
	}
	way_drop(&c->up, SB_NET_HELLO_LEN);
	c->g->bytes -= c->up.bytes; /* the hello, and nothing else */
	c->up.bytes = 0;
	c->look_by = 0;
	if (h.kind == SB_NET_HELLO_DNS) {
		sb_io_del(&c->client.io);
		if (dns_add_tagged(c->g->dns, &c->client.fd) < 0)
			half_close(&c->client, true);
		conn_left(c);
		return LOOK_ON;
	}
	memcpy(a.b, h.addr, sizeof(a.b));
	if (c->g->n_conns > c->g->plan->net.max_connections && h.port != 53) {
		sb_io_del(&c->client.io);
		turn_away(c->g, &c->client.fd, &a, h.port, false, SB_NET_TOO_MANY);
		conn_left(c);
		return LOOK_ON;
	}
	route(c, &a, h.port);
	return LOOK_ON;
}

enum look conn_look(struct conn *c, struct way *w)
{
	if (w == &c->down)
		return c->insp && c->insp->kind == INSP_TLS_REPLY ? tls_down(c) : http_down(c);
	switch (c->phase) {
	case CONN_HELLO:
		return hello_look(c);
	case CONN_PROXY:
		return proxy_look(c);
	case CONN_ASKING:
		return LOOK_MORE;
	case CONN_OPENING:
	case CONN_LINKED:
		return c->insp ? inspect_look(c, w) : LOOK_MORE;
	case CONN_LAST_WORDS:
	case CONN_DEAD:
		break;
	}
	return LOOK_MORE;
}

/* --- everything --- */

void conns_done(struct gate *g)
{
	struct conns *p = priv(g);

	if (!p)
		return;
	while (g->conns) {
		conn_cut(g->conns, SB_NET_OK);
		conn_free(g->conns);
	}
	sb_timer_del(&p->sweep);
	for (size_t i = 0; i < TALLY_BUCKETS; i++) {
		while (p->tallies[i]) {
			struct tally *t = p->tallies[i];

			p->tallies[i] = t->next;
			free(t);
		}
	}
	p->relay = relay_free(p->relay);
	free(p->ring);
	free(p);
	g->conns_priv = NULL;
}

/* What it does now would not be allowed any more, or not without a look. */
static bool revoked(const struct conn *c)
{
	struct sb_net_verdict v;
	struct sb_addr a;

	if (c->ev.name[0] == '\0' || c->phase == CONN_LAST_WORDS)
		return false;
	memcpy(a.b, c->ev.addr, sizeof(a.b));
	if (c->by_addr)
		sb_netpol_addr(c->g->pol, &a, c->ev.port, &v);
	else
		sb_netpol_name(c->g->pol, c->ev.name, c->ev.port, &v);
	if (!v.allow || (v.proto != c->ev.proto && v.proto != SB_PROTO_ANY))
		return true;
	if (c->by_addr || c->by_host || c->phase != CONN_LINKED)
		return false;
	sb_netpol_resolved(c->g->pol, &a, c->ev.port, &v);
	return !v.allow;
}

size_t conns_recheck(struct gate *g)
{
	size_t n = 0;

	for (struct conn *c = g->conns, *next; c; c = next) {
		next = c->next;
		if (!revoked(c))
			continue;
		conn_cut(c, SB_NET_REVOKED);
		conn_settle(c);
		n++;
	}
	return n;
}

void conns_each(struct gate *g, void (*fn)(void *arg, const struct sb_ipc_net_flow *f), void *arg)
{
	struct conns *p = priv(g);
	uint64_t first = p->n_closed > RING ? p->n_closed - RING : 0;

	for (const struct conn *c = g->conns; c; c = c->next) {
		struct sb_ipc_net_flow f = { .ev = c->ev, .opened_ns = c->opened_ns, .open = 1 };

		if (c->ev.name[0] == '\0')
			continue;
		f.ev.up = c->up.bytes;
		f.ev.down = c->down.bytes;
		fn(arg, &f);
	}
	for (uint64_t i = first; i < p->n_closed; i++)
		fn(arg, &p->ring[i % RING]);
}
