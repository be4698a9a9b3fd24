/*
 * Theory of operation. A viewer (sendbox net) asks for the list, and perhaps follows, or amends.
 * What its socket does not take at once waits in a list of compact items: one each connection
 * that is listed, at most EVENTS_MAX events; further events are counted and told as LOST. A viewer
 * is never waited for. The list ends with the names that were refused lately, each one once: a
 * program that learns of no address makes no connection that could be listed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "net/gate.h"

#define VIEWERS_MAX 8
#define EVENTS_MAX 512
#define REFUSED_MAX 64
#define FIXED offsetof(struct sb_ipc_net_event, name)

struct item {
	struct item *next;
	enum sb_ipc_type type; /* NET_FLOW, NET_EVENT, NET_END */
	uint64_t number;       /* FLOW: opened_ns; END: seq */
	uint32_t code;         /* FLOW: open; END: fail */
	size_t name_len;       /* END: of the text */
	size_t rule_len;
	uint8_t fixed[FIXED];
	char text[]; /* name, rule; no NUL */
};

struct viewer {
	struct viewer *next;
	struct gate *g;
	int fd;
	struct sb_io io;
	struct item *first;
	struct item **last;
	size_t n_events;
	uint64_t lost[2];
	bool follow;
	bool dead; /* freed by its own callback */
};

struct refused {
	struct sb_ipc_net_event ev[REFUSED_MAX]; /* the oldest first */
	size_t n;
};

static void viewer_free(struct viewer *v)
{
	struct viewer **at = (struct viewer **)&v->g->viewers;

	while (*at && *at != v)
		at = &(*at)->next;
	if (*at)
		*at = v->next;
	sb_io_del(&v->io);
	sb_fd_close(&v->fd);
	while (v->first) {
		struct item *i = v->first;

		v->first = i->next;
		free(i);
	}
	free(v);
}

static void event_unpack(const struct item *i, struct sb_ipc_net_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	memcpy(ev, i->fixed, FIXED);
	memcpy(ev->name, i->text, i->name_len);
	memcpy(ev->rule, i->text + i->name_len, i->rule_len);
}

static int item_send(const struct viewer *v, const struct item *i)
{
	struct sb_ipc_net_flow flow = { .opened_ns = i->number, .open = i->code != 0 };
	struct sb_ipc_net_end end = { .fail = i->code, .seq = i->number };

	if (i->type == SB_IPC_NET_END) {
		memcpy(end.text, i->text, SB_MIN(i->name_len, sizeof(end.text) - 1));
		return sb_ipc_send(v->fd, SB_IPC_NET_END, &end, sizeof(end), NULL, 0);
	}
	event_unpack(i, &flow.ev);
	if (i->type == SB_IPC_NET_FLOW)
		return sb_ipc_send(v->fd, SB_IPC_NET_FLOW, &flow, sizeof(flow), NULL, 0);
	return sb_ipc_send(v->fd, SB_IPC_NET_EVENT, &flow.ev, sizeof(flow.ev), NULL, 0);
}

static bool full(int r)
{
	return r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM;
}

static int lost_send(struct viewer *v, size_t allow)
{
	struct sb_ipc_net_event ev = { .kind = SB_NET_EV_LOST,
				       .allow = (uint8_t)allow,
				       .count = v->lost[allow] };
	int r;

	if (ev.count == 0)
		return 0;
	ev.time_ns = sb_real_ns();
	r = sb_ipc_send(v->fd, SB_IPC_NET_EVENT, &ev, sizeof(ev), NULL, 0);
	if (r == 0)
		v->lost[allow] = 0;
	return r;
}

/* Send what waits, as far as the socket takes it. */
static void drain(struct viewer *v)
{
	int r = 0;

	while (r == 0 && v->first) {
		struct item *i = v->first;

		r = item_send(v, i);
		if (r < 0)
			break;
		v->first = i->next;
		if (!v->first)
			v->last = &v->first;
		v->n_events -= i->type == SB_IPC_NET_EVENT;
		free(i);
	}
	for (size_t allow = 0; r == 0 && allow < 2; allow++)
		r = lost_send(v, allow);
	if (r < 0 && !full(r))
		v->dead = true;
	if (!v->dead && sb_io_want(&v->io, r < 0 ? EPOLLIN | EPOLLOUT : EPOLLIN) < 0)
		v->dead = true;
}

static void item_add(struct viewer *v, struct item *i)
{
	*v->last = i;
	v->last = &i->next;
	v->n_events += i->type == SB_IPC_NET_EVENT;
}

static struct item *item_new(enum sb_ipc_type type, const struct sb_ipc_net_event *ev)
{
	size_t name_len = strnlen(ev->name, sizeof(ev->name) - 1);
	size_t rule_len = strnlen(ev->rule, sizeof(ev->rule) - 1);
	struct item *i = calloc(1, sizeof(*i) + name_len + rule_len);

	if (!i)
		return NULL;
	i->type = type;
	i->name_len = name_len;
	i->rule_len = rule_len;
	memcpy(i->fixed, ev, FIXED);
	memcpy(i->text, ev->name, name_len);
	memcpy(i->text + name_len, ev->rule, rule_len);
	return i;
}

static void end_add(struct viewer *v, uint32_t fail, const char *text)
{
	size_t len = strlen(text);
	struct item *i = calloc(1, sizeof(*i) + len);

	if (!i) {
		v->dead = true;
		return;
	}
	i->type = SB_IPC_NET_END;
	i->code = fail;
	i->number = v->g->amended;
	i->name_len = len;
	memcpy(i->text, text, len);
	item_add(v, i);
}

static void flow_add(void *arg, const struct sb_ipc_net_flow *f)
{
	struct viewer *v = arg;
	struct item *i = item_new(SB_IPC_NET_FLOW, &f->ev);

	if (!i) {
		v->dead = true;
		return;
	}
	i->number = f->opened_ns;
	i->code = f->open;
	item_add(v, i);
}

static void refused_keep(struct gate *g, const struct sb_ipc_net_event *ev)
{
	struct refused *list = g->refused;
	uint64_t count = ev->count;
	size_t at;

	if (!list)
		list = g->refused = calloc(1, sizeof(*list));
	if (!list)
		return; /* it is told all the same, but not listed */
	for (at = 0; at < list->n; at++)
		if (list->ev[at].reason == ev->reason &&
		    strncmp(list->ev[at].name, ev->name, sizeof(ev->name)) == 0)
			break;
	if (at < list->n)
		count += list->ev[at].count;
	else if (list->n == REFUSED_MAX)
		at = 0;
	if (at < list->n)
		memmove(&list->ev[at], &list->ev[at + 1], (--list->n - at) * sizeof(*ev));
	list->ev[list->n] = *ev;
	list->ev[list->n++].count = count;
}

static void refused_each(struct viewer *v)
{
	const struct refused *list = v->g->refused;

	for (size_t i = 0; list && i < list->n; i++) {
		const struct sb_ipc_net_flow f = { .ev = list->ev[i],
						   .opened_ns = list->ev[i].time_ns };

		flow_add(v, &f);
	}
}

static int on_message(struct viewer *v, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_net_watch *w;
	struct sb_ipc_net_amend a;
	struct sb_err err = { 0 };
	int r;

	if (msg->n_fds > 0)
		return -EBADMSG;
	if (msg->type == SB_IPC_NET_WATCH) {
		w = sb_ipc_get(msg, sizeof(*w), 0);
		if (!w || v->first) /* one thing at a time */
			return -EBADMSG;
		conns_each(v->g, flow_add, v);
		refused_each(v);
		end_add(v, 0, "");
		v->follow = w->follow != 0;
		return 0;
	}
	if (msg->type == SB_IPC_NET_AMEND && msg->len >= sizeof(a)) {
		memcpy(&a, msg->data, sizeof(a));
		r = gate_amend(v->g, a.signature, (const char *)msg->data + sizeof(a),
			       msg->len - sizeof(a), &err);
		end_add(v, r < 0 ? (uint32_t)-r : 0,
			r == 0 ? "" : (err.text[0] ? err.text : strerror(-r)));
		return 0;
	}
	return -EBADMSG;
}

static void on_viewer(struct sb_io *io, uint32_t events)
{
	struct viewer *v = io->owner;
	int r = 0;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		struct sb_ipc_msg msg = { 0 };

		r = sb_ipc_recv(v->fd, &msg);
		if (r == 0) {
			r = on_message(v, &msg);
			sb_ipc_msg_done(&msg);
		}
		if (r == -EAGAIN)
			r = 0;
	}
	if (r == 0 && !v->dead)
		drain(v);
	if (r != 0 || v->dead)
		viewer_free(v);
}

static bool has_room(const struct gate *g)
{
	size_t n = 0;

	for (const struct viewer *v = g->viewers; v; v = v->next)
		n++;
	return n < VIEWERS_MAX;
}

static void refuse(int fd)
{
	struct sb_ipc_net_end end = { .fail = EBUSY };

	(void)snprintf(end.text, sizeof(end.text), "%d others look at this session already",
		       VIEWERS_MAX);
	if (sb_ipc_send(fd, SB_IPC_NET_END, &end, sizeof(end), NULL, 0) < 0)
		return; /* it sees the end of the socket instead */
}

int viewer_new(struct gate *g, int *fd)
{
	struct viewer *v;
	int r = sb_fd_set_nonblock(*fd, true);

	if (r < 0)
		return r;
	if (!has_room(g)) {
		refuse(*fd);
		return -EBUSY;
	}
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->g = g;
	v->last = &v->first;
	r = sb_io_set(g->loop, &v->io, *fd, EPOLLIN, on_viewer, v);
	if (r < 0) {
		free(v);
		return r;
	}
	v->fd = sb_fd_take(fd);
	v->next = g->viewers;
	g->viewers = v;
	return 0;
}

void viewer_event(struct gate *g, const struct sb_ipc_net_event *ev)
{
	if (ev->kind == SB_NET_EV_DNS && !ev->allow)
		refused_keep(g, ev);
	for (struct viewer *v = g->viewers; v; v = v->next) {
		struct item *i = NULL;

		if (!v->follow || v->dead)
			continue;
		if (v->n_events < EVENTS_MAX && v->lost[0] + v->lost[1] == 0)
			i = item_new(SB_IPC_NET_EVENT, ev);
		if (i)
			item_add(v, i);
		else
			v->lost[ev->allow != 0] += ev->count;
		/* a callback of this viewer may be running: it is freed by the loop, see dead */
		if (!(v->io.events & EPOLLOUT) && sb_io_want(&v->io, EPOLLIN | EPOLLOUT) < 0)
			v->dead = true;
	}
}

void viewers_done(struct gate *g)
{
	while (g->viewers) {
		struct viewer *v = g->viewers;

		drain(v);
		viewer_free(v);
	}
	free(g->refused);
	g->refused = NULL;
}
