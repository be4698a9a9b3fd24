/*
 * Judged executions on their way to the monitor. What its socket does not take waits in a ring; what
 * the ring does not take is counted, for refused and other ones apart, and told as "lost" as soon as
 * there is room. The guest chooses how many there are, never how much memory they take.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "channel.h"

#define RING 64
#define RETRY_NS 20000000U

struct exec_events {
	struct sb_ipc_exec_event ring[RING];
	size_t head;
	size_t n;
	uint64_t lost[2]; /* refused, others */
	struct sb_timer retry;
};

/* Return: whether it went; a dead monitor takes everything. */
static bool to_monitor(struct session *ses, const struct sb_ipc_exec_event *ev)
{
	int r = sb_ipc_send(ses->ipc, SB_IPC_EXEC_EVENT, ev, sizeof(*ev), NULL, 0);

	return r != -EAGAIN && r != -ENOBUFS && r != -ENOMEM;
}

/* Return: whether nothing is left. */
static bool drain(struct session *ses)
{
	struct exec_events *e = ses->exec_events;

	while (e->n > 0) {
		if (!to_monitor(ses, &e->ring[e->head]))
			return false;
		e->head = (e->head + 1) % RING;
		e->n--;
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(e->lost); i++) {
		struct sb_ipc_exec_event ev = { .time_ns = sb_real_ns(),
						.count = e->lost[i],
						.rule = UINT32_MAX,
						.action = i == 0 ? SB_CMD_DENY : SB_CMD_LOG,
						.why = "lost" };

		if (ev.count == 0)
			continue;
		if (!to_monitor(ses, &ev))
			return false;
		e->lost[i] = 0;
	}
	return true;
}

static void on_retry(struct sb_timer *t)
{
	struct session *ses = t->owner;

	if (!drain(ses))
		sb_timer_set(ses->loop, t, RETRY_NS, on_retry, ses);
}

static void fill(struct sb_ipc_exec_event *ev, const struct sb_ctl *m)
{
	*ev = (struct sb_ipc_exec_event){
		.time_ns = sb_real_ns(),
		.count = m->event.count,
		.cmd = m->cmd,
		.pid = m->event.pid,
		.rule = m->event.rule,
		.action = m->event.action,
		.top_level = m->event.top_level,
		.killed = m->event.killed,
		.cut = m->event.cut,
		.n_argv = (uint16_t)m->n_argv,
		.argv_len = (uint16_t)m->argv_len,
	};
	_Static_assert(sizeof(ev->why) > SB_CTL_MAX_WHY &&
			       sizeof(ev->path) > SB_CTL_MAX_EVENT_PATH &&
			       sizeof(ev->argv) >= SB_CTL_MAX_EVENT_ARGV,
		       "what the parser lets through fits");
	memcpy(ev->why, m->event.why, m->event.why_len);
	if (m->text_len > 0)
		memcpy(ev->path, m->text, m->text_len);
	if (m->argv_len > 0)
		memcpy(ev->argv, m->argv, m->argv_len);
}

int exec_event(struct session *ses, const struct sb_ctl *m)
{
	struct exec_events *e;
	struct sb_ipc_exec_event ev;

	if (!ses->judges || (m->event.rule != SB_CTL_NO_RULE && m->event.rule >= ses->n_rules))
		return -EBADMSG;
	if (!ses->exec_events)
		ses->exec_events = calloc(1, sizeof(*ses->exec_events));
	e = ses->exec_events;
	if (!e)
		return -ENOMEM;
	fill(&ev, m);
	if (drain(ses) && to_monitor(ses, &ev))
		return 0;
	if (e->n < RING)
		e->ring[(e->head + e->n++) % RING] = ev;
	else
		e->lost[ev.action != SB_CMD_DENY] += ev.count;
	if (!e->retry.active)
		sb_timer_set(ses->loop, &e->retry, RETRY_NS, on_retry, ses);
	return 0;
}

void exec_events_flush(struct session *ses)
{
	if (ses->exec_events && !drain(ses))
		sb_debug("judged executions were not told");
}

void exec_events_done(struct session *ses)
{
	if (ses->exec_events)
		sb_timer_del(&ses->exec_events->retry);
	free(ses->exec_events);
	ses->exec_events = NULL;
}
