/*
 * Theory of operation. A connection that the policy allows is OPENING, and first asks the monitor,
 * which records it (and may have somebody asked). Nothing is looked up or dialled before the answer;
 * the guest's bytes wait meanwhile as during a dial. What the guest gives up is forgotten: the answer
 * finds nobody. There is one question for each target, and its number is never used again.
 */
#include <errno.h>
#include <string.h>

#include "net/conn.h"

#define RETRY_NS 5000000U

/* Return: 0; -EAGAIN; -errno */
static int send_one(struct conn *c)
{
	struct {
		struct sb_ipc_gate_pending head;
		struct sb_ipc_net_event ev;
	} m = { .head = { .id = c->pending, .verdict = 1 }, .ev = c->ev };

	_Static_assert(sizeof(m) == sizeof(m.head) + sizeof(m.ev) && sizeof(m) <= SB_IPC_MAX_LEN,
		       "one message");
	m.ev.time_ns = sb_real_ns();
	return sb_ipc_send(c->g->ipc, SB_IPC_GATE_PENDING, &m, sizeof(m), NULL, 0);
}

static void on_retry(struct sb_timer *t);

static void later(struct conn *c)
{
	c->unsent = true;
	if (!c->g->pending_retry.active)
		sb_timer_set(c->g->loop, &c->g->pending_retry, RETRY_NS, on_retry, c->g);
}

static void on_retry(struct sb_timer *t)
{
	struct gate *g = t->owner;

	for (struct conn *c = g->conns; c; c = c->next) {
		if (!c->unsent)
			continue;
		if (send_one(c) == -EAGAIN) {
			later(c);
			return;
		}
		c->unsent = false; /* a dead monitor is seen by gate.c */
	}
}

int pending_ask(struct conn *c)
{
	int r;

	c->pending = ++c->g->next_pending;
	c->unsent = false;
	r = send_one(c);
	if (r == -EAGAIN || r == -ENOBUFS) {
		later(c);
		return 0;
	}
	return r == -EPIPE ? 0 : r;
}

int pending_answer(struct gate *g, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_gate_answer *a = sb_ipc_get(msg, sizeof(*a), 0);
	struct conn *c = g->conns;

	if (!a || a->id == 0 || a->id > g->next_pending || a->reason >= SB_NET_N_REASONS)
		return -EBADMSG;
	while (c && c->pending != a->id)
		c = c->next;
	if (!c)
		return 0;
	c->pending = 0;
	if (a->allow)
		conn_go(c);
	else
		conn_refuse(c, a->reason ? (enum sb_net_reason)a->reason : SB_NET_NOT_RECORDED, NULL);
	relay_run(c, true, true);
	conn_settle(c);
	return 0;
}
