/*
 * Theory of operation. One entry for each name that is being looked up or was lately: it holds what
 * came back for A and AAAA, the aliases on the way, and the requests that wait. An entry is ready
 * when both answers are in, or 50 ms after the first one with addresses (RFC 8305, section 3); what
 * comes later is added. Aliases are judged when a result is handed out, not when it is stored, so
 * that an amendment of the policy holds for what is cached.
 *
 * Results are always delivered from a timer, never from inside a call. c-ares sends, repeats,
 * changes servers and goes to TCP; it reads no file (all that it would look for is given), and
 * questions and answers are written and read by wire/dns.h, with identifiers of our own randomness.
 */
#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/log.h"
#include "crypto/crypto.h"
#include "net/gate.h"
#include "net/hash.h"
#include "wire/dns.h"

#define ENTRIES_MAX 4096
#define PENDING_MAX 1024 /* entries with questions under way */
#define RAWS_MAX 512
#define BUCKETS 1024
#define SECOND_WAIT_NS 50000000U
#define TTL_MIN 5
#define TTL_MAX 300
#define TTL_FAILED 1
#define SECOND_NS 1000000000U
#define TRY_MS 2000
#define TRIES 2
#define PER_FAMILY 64
#define QUESTION_MAX 512

enum answer { NOT_ASKED = 0, UNDER_WAY, POSITIVE, NO_NAME, NO_DATA, MALFORMED, TIMED_OUT, UNUSABLE };

struct entry;
struct question {
	struct entry *e;
	uint16_t type;
	enum answer answer;
	struct sb_addr *addrs; /* owned */
	size_t n;
	uint32_t ttl; /* when POSITIVE */
};

struct entry {
	struct entry *next; /* in its bucket */
	struct entry *next_ready;
	struct resolver *r;
	struct question q[2]; /* AAAA, A */
	char *hops;           /* owned; names, each with its NUL */
	size_t hops_len;
	const char *never; /* why it is not looked up at all */
	uint64_t expires_ns;
	struct resolve *waiting;
	struct resolve *delivering;
	struct sb_timer second;
	bool ready;
	bool queued; /* in the list of those to deliver */
	char name[];
};

struct raw {
	struct raw *next;
	struct resolver *r;
	resolve_raw_fn *fn; /* NULL: cancelled */
	void *owner;
	uint16_t type;
	bool done;
	uint8_t *msg; /* owned; NULL: failed */
	size_t len;
	char name[SB_NAME_MAX + 1];
};

struct sock {
	struct sock *next;
	struct sb_io io;
	int fd; /* c-ares' own */
};

struct resolver {
	struct gate *g;
	ares_channel ch; /* NULL: no resolvers */
	bool library;
	struct sock *socks;
	struct sb_timer timeout;
	struct sb_timer deliver;
	struct entry *buckets[BUCKETS];
	size_t n_entries;
	size_t n_pending;
	struct entry *ready;
	struct raw *raws;
	size_t n_raws;
	uint64_t key[2];
	bool closing;
};

/* --- c-ares in our loop --- */

static void kick(struct resolver *r);

static void on_sock(struct sb_io *io, uint32_t events)
{
	struct resolver *r = io->owner;
	bool in = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
	bool out = (events & EPOLLOUT) != 0;
	int fd = io->fd; /* the source may be gone after the call */

	ares_process_fd(r->ch, in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
	kick(r);
}

static void on_sock_state(void *data, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = data;
	uint32_t events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U);
	struct sock **at = &r->socks;
	struct sock *s;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	s = *at;
	if (events == 0) {
		if (s) {
			*at = s->next;
			sb_io_del(&s->io);
			free(s);
		}
		return;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return; /* the question times out */
		s->fd = fd;
		s->next = r->socks;
		r->socks = s;
	}
	if (sb_io_set(r->g->loop, &s->io, fd, events, on_sock, r) < 0)
		sb_debug("a socket of the resolver cannot be waited for");
}

static void on_timeout(struct sb_timer *t)
{
	struct resolver *r = t->owner;

	ares_process_fd(r->ch, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	kick(r);
}

/* After each call into c-ares: when it wants to be called next. */
static void kick(struct resolver *r)
{
	struct timeval tv = { 0 };

	if (ares_timeout(r->ch, NULL, &tv))
		sb_timer_set(r->g->loop, &r->timeout,
			     (uint64_t)tv.tv_sec * SECOND_NS + (uint64_t)tv.tv_usec * 1000U + 1000U,
			     on_timeout, r);
	else
		sb_timer_del(&r->timeout);
}

static int send_question(struct resolver *r, const char *name, uint16_t type, ares_callback fn,
			 void *arg)
{
	uint8_t msg[QUESTION_MAX];
	uint16_t id;
	size_t len;

	sb_random(&id, sizeof(id));
	len = sb_dns_query_write(id, name, type, msg);
	if (len == 0)
		return -EINVAL;
	ares_send(r->ch, msg, (int)len, fn, arg);
	return 0;
}

/* --- delivery --- */

static void on_deliver(struct sb_timer *t);

static void deliver_soon(struct resolver *r)
{
	if (!r->deliver.active && !r->closing)
		sb_timer_set(r->g->loop, &r->deliver, 0, on_deliver, r);
}

static void entry_queue(struct entry *e)
{
	struct entry **at = &e->r->ready;

	if (e->queued)
		return;
	while (*at)
		at = &(*at)->next_ready;
	*at = e;
	e->next_ready = NULL;
	e->queued = true;
	deliver_soon(e->r);
}

static bool is_local_name(const char *name)
{
	static const char local[] = "localhost";
	size_t len = strlen(name);
	size_t n = sizeof(local) - 1;

	if (strcmp(name, SB_HOST_NAME) == 0)
		return true;
	return len >= n && strcmp(name + len - n, local) == 0 &&
	       (len == n || name[len - n - 1] == '.');
}

static bool hop_allowed(const struct resolver *r, const char *hop)
{
	struct sb_net_verdict v = { 0 };
	char name[SB_NAME_MAX + 1];

	if (sb_name_normalise(hop, strlen(hop), name) < 0 || is_local_name(name))
		return false;
	sb_netpol_name(r->g->pol, name, 0, &v);
	if (v.allow)
		return true;
	return !r->g->plan->net.cname_strict && v.reason != SB_NET_NAME_DENIED;
}

static const char *failure_of(const struct entry *e)
{
	static const struct {
		enum answer answer;
		const char *text;
	} texts[] = {
		{ NO_NAME, "there is no such name" },
		{ MALFORMED, "the resolvers' answer is malformed" },
		{ UNUSABLE, "the resolvers gave no usable answer" },
		{ TIMED_OUT, "the resolvers do not answer" },
		{ NO_DATA, "the name has no address" },
	};

	if (e->never)
		return e->never;
	for (size_t i = 0; i < SB_ARRAY_LEN(texts); i++) {
		if (e->q[0].answer == texts[i].answer || e->q[1].answer == texts[i].answer)
			return texts[i].text;
	}
	return "it was not looked up";
}

static void put_text(struct resolve_result *res, enum sb_net_reason reason, const char *text)
{
	res->reason = reason;
	(void)snprintf(res->culprit, sizeof(res->culprit), "%s", text);
}

static void result_of(const struct entry *e, struct resolve_result *res)
{
	size_t n6 = e->q[0].n;
	size_t n4 = e->q[1].n;

	memset(res, 0, sizeof(*res));
	for (const char *h = e->hops; h && h < e->hops + e->hops_len; h += strlen(h) + 1) {
		if (!hop_allowed(e->r, h)) {
			put_text(res, SB_NET_CNAME_DENIED, h);
			return;
		}
	}
	if (n6 + n4 == 0) {
		put_text(res, SB_NET_RESOLVE_FAILED, failure_of(e));
		return;
	}
	/* room for both families */
	n6 = SB_MIN(n6, RESOLVE_MAX - SB_MIN(n4, (size_t)RESOLVE_MAX / 2));
	n4 = SB_MIN(n4, RESOLVE_MAX - n6);
	for (size_t i = 0; i < n6; i++)
		res->addrs[res->n++] = e->q[0].addrs[i];
	for (size_t i = 0; i < n4; i++)
		res->addrs[res->n++] = e->q[1].addrs[i];
}

static void entry_deliver(struct entry *e)
{
	struct resolve_result res;

	if (!e->waiting)
		return;
	result_of(e, &res);
	e->delivering = sb_take(&e->waiting); /* callbacks may ask again, or cancel others */
	while (e->delivering) {
		struct resolve *q = e->delivering;

		e->delivering = q->next;
		q->next = NULL;
		q->active = false;
		q->job = NULL;
		q->fn(q, &res);
	}
}

static void raws_deliver(struct resolver *r)
{
	for (struct raw **at = &r->raws; *at;) {
		struct raw *w = *at;

		if (!w->done) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		r->n_raws--;
		if (w->fn)
			w->fn(w->owner, w->msg, w->len);
		free(w->msg);
		free(w);
		at = &r->raws; /* the callback may have changed the list */
	}
}

static void on_deliver(struct sb_timer *t)
{
	struct resolver *r = t->owner;
	struct entry *list = sb_take(&r->ready);

	while (list) {
		struct entry *e = list;

		list = e->next_ready;
		e->next_ready = NULL;
		entry_deliver(e); /* still marked as queued, so that nobody drops it */
		e->queued = false;
		if (e->waiting && e->ready)
			entry_queue(e);
	}
	raws_deliver(r);
}

/* --- entries --- */

static bool entry_pending(const struct entry *e)
{
	return e->q[0].answer == UNDER_WAY || e->q[1].answer == UNDER_WAY;
}

static void entry_clear(struct entry *e)
{
	for (size_t i = 0; i < 2; i++) {
		free(sb_take(&e->q[i].addrs));
		e->q[i].n = 0;
		e->q[i].answer = NOT_ASKED;
	}
	free(sb_take(&e->hops));
	e->hops_len = 0;
	e->never = NULL;
	e->ready = false;
	sb_timer_del(&e->second);
}

static struct entry **bucket_of(struct resolver *r, const char *name)
{
	return &r->buckets[hash_name(r->key, name) % BUCKETS];
}

static struct entry *entry_find(struct resolver *r, const char *name)
{
	struct entry *e = *bucket_of(r, name);

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

static void entry_drop(struct entry *e)
{
	struct entry **at = bucket_of(e->r, e->name);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	e->r->n_entries--;
	entry_clear(e);
	free(e);
}

/* Make room: drop what expires first and is not in use. */
static void evict(struct resolver *r)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct entry *e = r->buckets[i]; e; e = e->next) {
			if (!entry_pending(e) && !e->waiting && !e->delivering && !e->queued &&
			    (!oldest || e->expires_ns < oldest->expires_ns))
				oldest = e;
		}
	}
	if (oldest)
		entry_drop(oldest);
}

static struct entry *entry_new(struct resolver *r, const char *name)
{
	size_t len = strlen(name) + 1;
	struct entry **bucket = bucket_of(r, name);
	struct entry *e;

	if (r->n_entries >= ENTRIES_MAX)
		evict(r);
	if (r->n_entries >= ENTRIES_MAX + PENDING_MAX)
		return NULL;
	e = calloc(1, sizeof(*e) + len);
	if (!e)
		return NULL;
	memcpy(e->name, name, len);
	e->r = r;
	e->q[0] = (struct question){ .e = e, .type = SB_DNS_AAAA };
	e->q[1] = (struct question){ .e = e, .type = SB_DNS_A };
	e->next = *bucket;
	*bucket = e;
	r->n_entries++;
	return e;
}

static void keep_for(struct entry *e, uint64_t seconds)
{
	e->expires_ns = sb_now_ns() + seconds * SECOND_NS;
}

/* How long what is known by now may be used. */
static uint64_t lifetime_of(const struct entry *e)
{
	uint64_t ttl = TTL_MAX;

	if (e->q[0].n + e->q[1].n == 0) {
		for (size_t i = 0; i < 2; i++) {
			if (e->q[i].answer != NO_NAME && e->q[i].answer != NO_DATA)
				return TTL_FAILED;
		}
		return TTL_MIN;
	}
	for (size_t i = 0; i < 2; i++) {
		if (e->q[i].answer == POSITIVE)
			ttl = SB_MIN(ttl, (uint64_t)e->q[i].ttl);
	}
	return SB_MAX(ttl, (uint64_t)TTL_MIN);
}

static void on_second(struct sb_timer *t)
{
	struct entry *e = t->owner;

	e->ready = true;
	entry_queue(e);
}

/* An answer is in. */
static void entry_progress(struct entry *e)
{
	bool some = e->q[0].n + e->q[1].n > 0;

	keep_for(e, lifetime_of(e));
	if (!entry_pending(e)) {
		e->r->n_pending--;
		sb_timer_del(&e->second);
		e->ready = true;
		entry_queue(e);
	} else if (some && !e->ready && !e->second.active) {
		sb_timer_set(e->r->g->loop, &e->second, SECOND_WAIT_NS, on_second, e);
	}
}

static int hops_add(struct entry *e, const struct sb_dns_reply *rep)
{
	for (size_t i = 0; i < rep->n_hops; i++) {
		size_t len = strlen(rep->hops[i]) + 1;
		char *more = realloc(e->hops, e->hops_len + len);

		if (!more)
			return -ENOMEM;
		e->hops = more;
		memcpy(e->hops + e->hops_len, rep->hops[i], len);
		e->hops_len += len;
	}
	return 0;
}

static enum answer take_reply(struct question *q, const struct sb_dns_reply *rep)
{
	size_t n = SB_MIN(rep->n_addrs, (size_t)PER_FAMILY);

	if (rep->truncated || (rep->rcode != SB_DNS_NOERROR && rep->rcode != SB_DNS_NXDOMAIN))
		return MALFORMED;
	if (hops_add(q->e, rep) < 0)
		return TIMED_OUT;
	if (rep->rcode == SB_DNS_NXDOMAIN)
		return NO_NAME;
	if (n == 0)
		return NO_DATA;
	q->addrs = calloc(n, sizeof(*q->addrs));
	if (!q->addrs)
		return TIMED_OUT;
	for (size_t i = 0; i < n; i++)
		memcpy(q->addrs[i].b, rep->addrs[i], sizeof(q->addrs[i].b));
	q->n = n;
	q->ttl = rep->ttl;
	return POSITIVE;
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *msg, int len)
{
	struct question *q = arg;
	struct sb_dns_reply rep;

	(void)timeouts;
	if (q->e->r->closing)
		return;
	if (status != ARES_SUCCESS || !msg || len < 0) {
		/* refusals and failures of servers are not told apart by c-ares */
		q->answer = status == ARES_ETIMEOUT ? TIMED_OUT : UNUSABLE;
	} else if (sb_dns_reply_parse(msg, (size_t)len, q->e->name, q->type, &rep) < 0) {
		q->answer = MALFORMED;
	} else {
		q->answer = take_reply(q, &rep);
	}
	entry_progress(q->e);
}

static void entry_never(struct entry *e, const char *why)
{
	e->never = why;
	e->ready = true;
	keep_for(e, 0);
	entry_queue(e);
}

/* The addresses that the plan has fixed. Return: how many; -ENOMEM */
static int entry_pin(struct entry *e)
{
	const struct sb_plan_net *n = &e->r->g->plan->net;
	int found = 0;

	for (size_t i = 0; i < n->n_pins; i++) {
		struct sb_addr a;
		struct question *q;
		struct sb_addr *more;

		if (strcmp(n->pins[i].name, e->name) != 0 ||
		    sb_addr_parse(n->pins[i].addr, strlen(n->pins[i].addr), &a) < 0)
			continue;
		q = &e->q[sb_addr_is_v4(&a)];
		more = realloc(q->addrs, (q->n + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		q->addrs = more;
		q->addrs[q->n++] = a;
		q->answer = POSITIVE;
		found++;
	}
	return found;
}

static int entry_ask(struct entry *e)
{
	struct resolver *r = e->r;

	e->q[0].answer = e->q[1].answer = UNDER_WAY; /* an answer may come from inside the call */
	r->n_pending++;
	for (size_t i = 0; i < 2; i++) {
		if (send_question(r, e->name, e->q[i].type, on_answer, &e->q[i]) < 0) {
			e->q[i].answer = MALFORMED;
			entry_progress(e);
		}
	}
	kick(r);
	return 0;
}

static int entry_start(struct entry *e)
{
	struct resolver *r = e->r;
	int pinned;

	entry_clear(e);
	e->expires_ns = 0;
	pinned = entry_pin(e);
	if (pinned < 0)
		return pinned;
	if (pinned > 0) {
		keep_for(e, TTL_MAX);
		e->ready = true;
		entry_queue(e);
		return 0;
	}
	if (is_local_name(e->name))
		entry_never(e, "it is never looked up");
	else if (!r->ch)
		entry_never(e, "no resolver is configured");
	else if (r->n_pending >= PENDING_MAX)
		entry_never(e, "too many names are being looked up");
	else
		return entry_ask(e);
	return 0;
}

int resolve_start(struct resolver *r, struct resolve *q, const char *name, resolve_fn *fn,
		  void *owner)
{
	struct entry *e = entry_find(r, name);
	struct resolve **at;
	int s = 0;

	sb_assert(!q->active);
	if (!e) {
		e = entry_new(r, name);
		if (!e)
			return -ENOMEM;
		s = entry_start(e);
	} else if (e->ready && !entry_pending(e) && !e->queued && sb_now_ns() >= e->expires_ns) {
		s = entry_start(e);
	}
	if (s < 0) {
		entry_never(e, "out of memory");
		return s;
	}
	*q = (struct resolve){ .fn = fn, .owner = owner, .job = e, .active = true };
	at = &e->waiting;
	while (*at)
		at = &(*at)->next;
	*at = q;
	if (e->ready)
		entry_queue(e);
	return 0;
}

static bool unlink_from(struct resolve **at, const struct resolve *q)
{
	while (*at && *at != q)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = q->next;
	return true;
}

void resolve_cancel(struct resolve *q)
{
	struct entry *e = q->job;

	if (!q->active)
		return;
	if (!unlink_from(&e->waiting, q))
		(void)unlink_from(&e->delivering, q);
	q->next = NULL;
	q->job = NULL;
	q->active = false;
}

/* --- other types --- */

static void on_raw(void *arg, int status, int timeouts, unsigned char *msg, int len)
{
	struct raw *w = arg;

	(void)timeouts;
	if (w->r->closing)
		return;
	if (status == ARES_SUCCESS && msg && len > 0 &&
	    sb_dns_reply_check(msg, (size_t)len, w->name, w->type) == 0) {
		w->msg = malloc((size_t)len);
		if (w->msg) {
			memcpy(w->msg, msg, (size_t)len);
			w->len = (size_t)len;
		}
	}
	w->done = true;
	deliver_soon(w->r);
}

int resolve_raw(struct resolver *r, const char *name, uint16_t type, resolve_raw_fn *fn, void *owner)
{
	sb_autofree struct raw *w = NULL;
	int s;

	if (!r->ch)
		return -EHOSTUNREACH;
	if (r->n_raws >= RAWS_MAX)
		return -EBUSY;
	if (strlen(name) > SB_NAME_MAX || is_local_name(name))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->r = r;
	w->fn = fn;
	w->owner = owner;
	w->type = type;
	memcpy(w->name, name, strlen(name));
	s = send_question(r, name, type, on_raw, w);
	if (s < 0)
		return s;
	w->next = r->raws;
	r->raws = sb_take(&w);
	r->n_raws++;
	kick(r);
	return 0;
}

void resolve_raw_cancel(struct resolver *r, void *owner)
{
	for (struct raw *w = r->raws; w; w = w->next) {
		if (w->owner == owner)
			w->fn = NULL; /* c-ares still holds it */
	}
}

/* --- the whole --- */

/* Everything that c-ares would otherwise look for in files and in the environment. */
static int channel_new(struct resolver *r, struct sb_err *err)
{
	struct in_addr nobody = { .s_addr = htonl(INADDR_LOOPBACK) };
	char lookups[] = "b";
	struct ares_options o = {
		/* no ARES_FLAG_EDNS: it would cut an OPT record off that our questions have not */
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TRY_MS,
		.tries = TRIES,
		.ndots = 1,
		.servers = &nobody,
		.nservers = 1,
		.lookups = lookups,
		.sock_state_cb = on_sock_state,
		.sock_state_cb_data = r,
	};
	char csv[SB_NET_MAX_RESOLVERS * 64];
	size_t len = 0;
	int s;

	csv[0] = '\0';
	for (char **p = r->g->plan->net.resolvers; p && *p; p++) {
		int n = snprintf(csv + len, sizeof(csv) - len, "%s%s", len ? "," : "", *p);

		if (n < 0 || (size_t)n >= sizeof(csv) - len)
			return sb_err_set(err, -E2BIG, "too many resolvers");
		len += (size_t)n;
	}
	if (len == 0)
		return 0;
	s = ares_library_init(ARES_LIB_INIT_ALL);
	if (s != ARES_SUCCESS)
		return sb_err_set(err, -EIO, "c-ares: %s", ares_strerror(s));
	r->library = true;
	s = ares_init_options(&r->ch, &o,
			      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
				      ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
				      ARES_OPT_SORTLIST | ARES_OPT_SOCK_STATE_CB |
				      ARES_OPT_NOROTATE);
	if (s == ARES_SUCCESS)
		s = ares_set_servers_ports_csv(r->ch, csv);
	if (s != ARES_SUCCESS)
		return sb_err_set(err, -EINVAL, "resolvers %s: %s", csv, ares_strerror(s));
	return 0;
}

int resolver_new(struct gate *g, struct resolver **ret, struct sb_err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int s;

	if (!r)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r->g = g;
	sb_random(r->key, sizeof(r->key));
	s = channel_new(r, err);
	if (s < 0) {
		(void)resolver_free(r);
		return s;
	}
	*ret = r;
	return 0;
}

struct resolver *resolver_free(struct resolver *r)
{
	if (!r)
		return NULL;
	r->closing = true;
	if (r->ch)
		ares_destroy(r->ch); /* calls back for each question under way */
	if (r->library)
		ares_library_cleanup();
	sb_timer_del(&r->timeout);
	sb_timer_del(&r->deliver);
	for (size_t i = 0; i < BUCKETS; i++) {
		while (r->buckets[i]) {
			while (r->buckets[i]->waiting)
				resolve_cancel(r->buckets[i]->waiting);
			entry_drop(r->buckets[i]);
		}
	}
	while (r->raws) {
		struct raw *w = r->raws;

		r->raws = w->next;
		free(w->msg);
		free(w);
	}
	free(r);
	return NULL;
}
