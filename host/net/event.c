/*
 * Theory of operation. Events gather for BATCH_NS, so that a connection does not wait while the
 * monitor is woken for it. The first refusal of its kind (also the first answer to a question) is
 * told with the next batch and opens a slot for the rest of the window of 250 ms; equal ones only count in the slot
 * and are told as one event when the window ends. What the monitor's socket does not take waits in
 * the ring; of what the ring does not take the first refusal by each reason and rule is kept, so that no
 * flood hides one of another kind; the rest is counted, for allowed and refused ones apart, and told as
 * LOST as soon as there is room. A guest chooses how many events there are, never how much memory
 * they take, and no event vanishes without being counted.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "net/gate.h"

#define MERGE_NS 250000000U
#define MERGE_SLOTS 64
#define QUEUE_MAX 256
#define SPARE_MAX 64
#define BATCH_NS 2000000U
#define BATCH_MAX 64 /* events that do not wait for the end of it */
#define PARTING_NS 25000000000ULL
#define RETRY_NS 20000000U /* the socket is shared with gate.c, so its room is asked for by clock */

struct slot {
	struct sb_ipc_net_event ev; /* the last one; count = how many are not told yet */
	bool used;
};

struct events {
	struct gate *g;
	struct slot *slots; /* MERGE_SLOTS, while a window is open */
	size_t n_slots;
	struct sb_ipc_net_event *queue; /* ring of QUEUE_MAX, from the first event on */
	size_t head;
	size_t n;
	struct sb_ipc_net_event *spare; /* SPARE_MAX, while the ring is full: one of each reason and rule */
	size_t n_spare;
	uint64_t lost[2]; /* refused, allowed */
	struct sb_timer merge;
	struct sb_timer retry;
	bool blocked; /* the monitor's socket was full when it was last tried */
	bool closed; /* the monitor is gone; gate.c learns it from its own reading */
};

static struct events *events_of(struct gate *g)
{
	struct events *e = g->events;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return NULL;
		e->g = g;
		if (sb_fd_set_nonblock(g->ipc, true) < 0)
			sb_debug("the monitor's socket may block");
		g->events = e;
	}
	return e;
}

/* Return: 0; -EAGAIN. A dead monitor takes everything: the session is over. */
static int to_monitor(struct events *e, const struct sb_ipc_net_event *ev, size_t n)
{
	int r;

	if (e->closed)
		return 0;
	r = sb_ipc_send(e->g->ipc, SB_IPC_NET_EVENT, ev, n * sizeof(*ev), NULL, 0);
	if (r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM)
		return -EAGAIN;
	if (r < 0)
		e->closed = true;
	return 0;
}

static bool lost_to(struct events *e, size_t allow)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_LOST,
				       .allow = (uint8_t)allow,
				       .time_ns = sb_real_ns(),
				       .count = e->lost[allow] };

	if (ev.count == 0)
		return true;
	if (to_monitor(e, &ev, 1) < 0)
		return false;
	e->lost[allow] = 0;
	return true;
}

/* Give the monitor what waits. Return: whether all of it went. */
static bool drain(struct events *e)
{
	while (e->n > 0) {
		size_t n = SB_MIN(SB_MIN(e->n, QUEUE_MAX - e->head), (size_t)SB_IPC_NET_EVENTS);

		if (to_monitor(e, &e->queue[e->head], n) < 0)
			return false;
		e->head = (e->head + n) % QUEUE_MAX;
		e->n -= n;
	}
	e->head = 0; /* the same few pages each time */
	while (e->n_spare > 0) {
		if (to_monitor(e, &e->spare[e->n_spare - 1], 1) < 0)
			return false;
		e->n_spare--;
	}
	free(sb_take(&e->spare));
	return lost_to(e, 0) && lost_to(e, 1);
}

static void on_retry(struct sb_timer *t);

static void flush(struct events *e)
{
	sb_timer_del(&e->retry);
	e->blocked = !drain(e);
	if (e->blocked)
		sb_timer_set(e->g->loop, &e->retry, RETRY_NS, on_retry, e);
}

static void on_retry(struct sb_timer *t)
{
	flush(t->owner);
}

/* Return: whether a refusal that the ring does not take is kept. */
static bool keep_first(struct events *e, const struct sb_ipc_net_event *ev)
{
	if (ev->allow)
		return false;
	for (size_t i = 0; i < e->n_spare; i++)
		if (e->spare[i].kind == ev->kind && e->spare[i].reason == ev->reason &&
		    strcmp(e->spare[i].rule, ev->rule) == 0)
			return false;
	if (!e->spare)
		e->spare = calloc(SPARE_MAX, sizeof(*e->spare));
	if (!e->spare || e->n_spare == SPARE_MAX)
		return false;
	e->spare[e->n_spare++] = *ev;
	return true;
}

static void push(struct events *e, const struct sb_ipc_net_event *ev)
{
	viewer_event(e->g, ev);
	if (!e->queue)
		e->queue = calloc(QUEUE_MAX, sizeof(*e->queue));
	if (e->queue && e->n < QUEUE_MAX)
		e->queue[(e->head + e->n++) % QUEUE_MAX] = *ev;
	else if (!keep_first(e, ev))
		e->lost[ev->allow != 0] += ev->count;
	if (e->blocked)
		return; /* the retry is due anyway */
	if (e->n >= BATCH_MAX)
		flush(e);
	else if (!e->retry.active)
		sb_timer_set(e->g->loop, &e->retry, BATCH_NS, on_retry, e);
}

static void flush_slots(struct events *e)
{
	for (size_t i = 0; i < e->n_slots; i++) {
		if (e->slots[i].ev.count > 0)
			push(e, &e->slots[i].ev);
	}
	e->n_slots = 0;
}

static void on_merge(struct sb_timer *t)
{
	struct events *e = t->owner;
	bool again = false;

	for (size_t i = 0; i < e->n_slots; i++)
		again = again || e->slots[i].ev.count > 0;
	if (again) { /* a flood goes on: keep the slots, so that it stays merged */
		for (size_t i = 0; i < e->n_slots; i++) {
			if (e->slots[i].ev.count > 0)
				push(e, &e->slots[i].ev);
			e->slots[i].used = e->slots[i].ev.count > 0;
			e->slots[i].ev.count = 0;
		}
		for (size_t i = 0; i < e->n_slots;) {
			if (e->slots[i].used)
				i++;
			else
				e->slots[i] = e->slots[--e->n_slots];
		}
		sb_timer_set(e->g->loop, &e->merge, MERGE_NS, on_merge, e);
		return;
	}
	e->n_slots = 0;
	free(sb_take(&e->slots));
}

static bool mergeable(const struct sb_ipc_net_event *ev)
{
	return ev->kind == SB_NET_EV_DNS ||
	       (!ev->allow && (ev->kind == SB_NET_EV_CONNECT || ev->kind == SB_NET_EV_REQUEST));
}

static bool equal(const struct sb_ipc_net_event *a, const struct sb_ipc_net_event *b)
{
	return a->kind == b->kind && a->allow == b->allow && a->via == b->via &&
	       a->reason == b->reason && a->port == b->port && a->dns_type == b->dns_type &&
	       strncmp(a->name, b->name, sizeof(a->name)) == 0;
}

/* Return: true when a slot has counted @ev. */
static bool merge(struct events *e, const struct sb_ipc_net_event *ev)
{
	if (!mergeable(ev))
		return false;
	for (size_t i = 0; i < e->n_slots; i++) {
		if (equal(&e->slots[i].ev, ev)) {
			uint64_t count = e->slots[i].ev.count + ev->count;

			e->slots[i].ev = *ev;
			e->slots[i].ev.count = count;
			return true;
		}
	}
	if (!e->slots)
		e->slots = calloc(MERGE_SLOTS, sizeof(*e->slots));
	if (!e->slots || e->n_slots == MERGE_SLOTS)
		return false;
	e->slots[e->n_slots].ev = *ev;
	e->slots[e->n_slots].used = true;
	e->slots[e->n_slots++].ev.count = 0;
	if (!e->merge.active)
		sb_timer_set(e->g->loop, &e->merge, MERGE_NS, on_merge, e);
	return false; /* the first of its kind is told at once */
}

void event_send(struct gate *g, const struct sb_ipc_net_event *ev)
{
	struct sb_ipc_net_event copy = *ev;
	struct events *e = events_of(g);

	if (copy.time_ns == 0)
		copy.time_ns = sb_real_ns();
	if (copy.count == 0)
		copy.count = 1;
	copy.name[sizeof(copy.name) - 1] = '\0';
	copy.rule[sizeof(copy.rule) - 1] = '\0';
	if (!e) /* nothing can be counted any more */
		gate_fail(g, "no memory for events");
	else if (!merge(e, &copy))
		push(e, &copy);
}

void event_fill(struct sb_ipc_net_event *ev, const char *target, uint16_t port,
		const struct sb_net_verdict *v)
{
	size_t len = strnlen(target, sizeof(ev->name) - 1);

	memcpy(ev->name, target, len);
	memset(ev->name + len, 0, sizeof(ev->name) - len);
	ev->port = port;
	ev->reason = (uint16_t)v->reason;
	ev->allow = v->allow;
	ev->proto = (uint8_t)v->proto;
	memset(ev->rule, 0, sizeof(ev->rule));
	if (v->rule)
		sb_net_rule_text(v->rule, ev->rule, sizeof(ev->rule));
}

/* At the end the monitor gets some seconds to take what waits: less than its own patience. */
void events_done(struct gate *g)
{
	struct events *e = g->events;
	uint64_t end = sb_now_ns() + PARTING_NS;

	if (!e)
		return;
	flush_slots(e);
	while (!drain(e) && sb_now_ns() < end) {
		struct pollfd p = { .fd = g->ipc, .events = POLLOUT };

		if (poll(&p, 1, 50) < 0 && errno != EINTR)
			break;
	}
	sb_timer_del(&e->merge);
	sb_timer_del(&e->retry);
	free(e->queue);
	free(e->spare);
	free(e->slots);
	free(sb_take(&g->events));
}
