/*
 * Theory of operation. A signature is told before it is handed out, one event each. Refusals are the
 * guest's to cause: the first of its kind is told at once, equal ones that follow within MERGE_NS
 * are counted and told as one, and beyond RATE a second they are only counted (LOST).
 */
#include <string.h>

#include "base/log.h"
#include "ssh.h"

#define MERGE_NS 250000000U
#define RETRY_NS 50000000U
#define RATE 20U

static bool tell(struct relay *r, const struct sb_ipc_ssh_event *ev)
{
	return sb_ipc_send(r->ipc, SB_IPC_SSH_EVENT, ev, sizeof(*ev), NULL, 0) == 0;
}

static void on_retry(struct sb_timer *t);

/* What could not be told before. */
static void tell_lost(struct relay *r)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(r->events.lost); i++) {
		struct sb_ipc_ssh_event ev = { .kind = SB_SSH_EV_LOST,
					       .allow = (uint8_t)i,
					       .time_ns = sb_real_ns(),
					       .count = r->events.lost[i] };

		if (ev.count > 0 && tell(r, &ev))
			r->events.lost[i] = 0;
	}
	if ((r->events.lost[0] > 0 || r->events.lost[1] > 0) && !r->events.retry.active)
		sb_timer_set(r->loop, &r->events.retry, RETRY_NS, on_retry, r);
}

static void on_retry(struct sb_timer *t)
{
	tell_lost(t->owner);
}

static bool within_rate(struct events *e)
{
	uint64_t now = sb_now_ns() / 1000000000U;

	if (now != e->second) {
		e->second = now;
		e->told = 0;
	}
	return e->told++ < RATE;
}

static void refusal(struct relay *r, const struct sb_ipc_ssh_event *ev)
{
	if (!within_rate(&r->events) || !tell(r, ev)) {
		r->events.lost[0] += ev->count;
		if (!r->events.retry.active)
			sb_timer_set(r->loop, &r->events.retry, MERGE_NS, on_retry, r);
	}
}

static void flush(struct relay *r)
{
	struct sb_ipc_ssh_event ev = r->events.last;

	sb_timer_del(&r->events.merge);
	r->events.last = (struct sb_ipc_ssh_event){ 0 };
	if (ev.kind != SB_SSH_EV_NONE && ev.count > 0) {
		ev.time_ns = sb_real_ns();
		refusal(r, &ev);
	}
}

static void on_merge(struct sb_timer *t)
{
	flush(t->owner);
}

static bool equal(const struct sb_ipc_ssh_event *a, const struct sb_ipc_ssh_event *b)
{
	return a->kind == b->kind && a->reason == b->reason && a->has_key == b->has_key &&
	       a->type == b->type && memcmp(a->key, b->key, sizeof(a->key)) == 0 &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->user, b->user) == 0;
}

bool event_send(struct relay *r, const struct sb_ipc_ssh_event *ev)
{
	struct sb_ipc_ssh_event one = *ev;

	one.time_ns = sb_real_ns();
	one.count = 1;
	if (one.allow) {
		flush(r); /* in their order */
		return tell(r, &one);
	}
	if (equal(&r->events.last, &one)) {
		r->events.last.count++;
		return true;
	}
	flush(r);
	refusal(r, &one);
	r->events.last = one;
	r->events.last.count = 0;
	sb_timer_set(r->loop, &r->events.merge, MERGE_NS, on_merge, r);
	return true;
}

void event_text(char *out, size_t cap, const struct sb_ssh_str *s)
{
	size_t n = SB_MIN(s->len, cap - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = s->p[i] >= 0x20 && s->p[i] < 0x7f ? (char)s->p[i] : '?';
	out[n] = '\0';
}

void events_done(struct relay *r)
{
	flush(r);
	tell_lost(r);
	sb_timer_del(&r->events.merge);
	sb_timer_del(&r->events.retry);
}
