/* The streams of a channel: states, credit, delivery. See the theory in chan.c. */
#include "chan_i.h"

#include <errno.h>
#include <string.h>

static void drop_buffer(struct sb_stream *s)
{
	free(s->buf);
	s->buf = NULL;
	s->head = 0;
	s->len = 0;
	s->room = 0;
}

static bool kind_of_guest(uint32_t kind)
{
	return kind == SB_STREAM_NET || kind == SB_STREAM_SSH;
}

/* Who sends on which kind: the host on STDIN, TERMINAL, NET, SSH, the guest on all but STDIN. */
static struct sb_stream *set_up(struct sb_chan *c, uint32_t id, enum sb_stream_kind kind,
				uint32_t cmd)
{
	bool host_sends = kind == SB_STREAM_STDIN || kind == SB_STREAM_TERMINAL ||
			  kind_of_guest(kind);
	bool guest_sends = kind != SB_STREAM_STDIN;
	bool host = c->role == SB_CHAN_HOST;
	bool receives = host ? guest_sends : host_sends;
	struct sb_stream *s = stream_new(c, id);

	if (!s)
		return NULL;
	s->cmd = cmd;
	s->kind = (uint8_t)kind;
	s->class = kind == SB_STREAM_STDIN || kind == SB_STREAM_TERMINAL ? CLASS_INTERACTIVE :
									   CLASS_BULK;
	s->window = kind_of_guest(kind) ? SB_CHAN_NET_WINDOW : SB_CHAN_WINDOW;
	s->sends = host ? host_sends : guest_sends;
	s->tx = s->sends ? TX_OPEN : TX_EOF;
	s->rx = receives ? RX_OPEN : RX_EOF;
	s->clean = !receives;
	s->eof_told = !receives;
	s->tx_credit = s->sends ? s->window : 0;
	s->rx_credit = receives ? s->window : 0;
	return s;
}

static void put_le32(uint8_t *out, uint32_t v)
{
	for (size_t i = 0; i < 4; i++)
		out[i] = (uint8_t)(v >> (8 * i));
}

static bool kind_of_host(uint32_t kind)
{
	return kind >= SB_STREAM_STDIN && kind <= SB_STREAM_TERMINAL;
}

int sb_stream_open(struct sb_chan *c, enum sb_stream_kind kind, uint32_t cmd,
		   const struct sb_stream_ops *ops, void *owner, struct sb_stream **ret)
{
	bool net = kind_of_guest(kind);
	uint32_t *next = net ? &c->next_net : &c->next_id;
	struct sb_stream *s;
	uint8_t body[8];

	sb_assert(net ? c->role == SB_CHAN_GUEST && cmd == 0 :
			c->role == SB_CHAN_HOST && kind_of_host(kind));
	if (c->state != CHAN_OPEN)
		return -ENOTCONN;
	if (!stream_room(c, net))
		return -ENOBUFS;
	s = set_up(c, *next, kind, cmd);
	if (!s)
		return -ENOMEM;
	put_le32(body, (uint32_t)kind);
	put_le32(body + 4, cmd);
	if (!queue_frame(c, CLASS_CONTROL, SB_FRAME_OPEN, s->id, body, sizeof(body))) {
		stream_free(s);
		return -ENOTCONN;
	}
	(*next)++;
	sb_stream_attach(s, ops, owner);
	*ret = s;
	return 0;
}

void sb_stream_attach(struct sb_stream *s, const struct sb_stream_ops *ops, void *owner)
{
	s->ops = ops;
	s->owner = owner;
	s->app = true;
}

void *sb_stream_owner(const struct sb_stream *s)
{
	return s->owner;
}

/* --- what the sink took --- */

static void taken(struct sb_stream *s, size_t n)
{
	s->rx_taken += (uint32_t)n;
	if (s->rx == RX_OPEN && s->rx_taken >= s->window / 2 && !s->due.next) {
		link_add(&s->chan->due, &s->due);
		chan_want_flush(s->chan);
	}
}

void stream_queue_credits(struct sb_chan *c)
{
	/* a peer that sends and does not read makes the credit wait, not the queue grow */
	while (!link_none(&c->due) && c->queue[CLASS_CONTROL].n < 2) {
		struct sb_stream *s = SB_CONTAINER_OF(c->due.next, struct sb_stream, due);
		uint8_t body[4];

		link_del(&s->due);
		/* nothing may follow our RESET, which is in another class */
		if (!s->app || s->rx != RX_OPEN || s->tx >= TX_RESET_QUEUED)
			continue;
		put_le32(body, s->rx_taken);
		if (!queue_frame(c, CLASS_CONTROL, SB_FRAME_CREDIT, s->id, body, sizeof(body)))
			return;
		s->rx_credit += s->rx_taken;
		s->rx_taken = 0;
	}
}

/* Offer bytes to the sink. Return: how many it took; the stream may be gone afterwards. */
static size_t offer(struct sb_stream *s, const uint8_t *p, size_t len)
{
	uint32_t id = s->id;
	size_t n;

	s->delivering = true;
	n = s->ops->data(s, p, len);
	if (s->id != id || !s->app)
		return len; /* closed by its own callback: the rest has nobody */
	s->delivering = false;
	sb_assert(n <= len);
	s->full = n < len;
	taken(s, n);
	return n;
}

static int keep(struct sb_stream *s, const uint8_t *p, size_t len)
{
	uint32_t want = s->len + (uint32_t)len;

	/* the credit check came first, so this can be no more than one window */
	sb_assert(want <= s->window);
	if (s->head > 0 && s->head + want > s->room) {
		memmove(s->buf, s->buf + s->head, s->len);
		s->head = 0;
	}
	if (want > s->room) {
		uint32_t room = SB_MAX(want, SB_MIN(s->room * 2, s->window));
		uint8_t *bigger = realloc(s->buf, room);

		if (!bigger)
			return -ENOMEM;
		s->buf = bigger;
		s->room = room;
	}
	memcpy(s->buf + s->head + s->len, p, len);
	s->len = want;
	return 0;
}

static void queue_reset(struct sb_stream *s)
{
	s->tx = TX_RESET_QUEUED;
	(void)queue_frame(s->chan, (enum chan_class)s->class, SB_FRAME_RESET, s->id, NULL, 0);
}

/* The application is out of it; the entry stays until both RESETs went through. */
static void let_go(struct sb_stream *s)
{
	struct sb_chan *c = s->chan;

	if (c->reserved_for == s)
		sb_stream_commit(s, 0);
	s->app = false;
	s->blocked = false;
	link_del(&s->wait);
	link_del(&s->due);
	drop_buffer(s);
	if (c->state == CHAN_OPEN)
		queue_reset(s);
}

/* The peer abandoned it. */
static void abandon(struct sb_stream *s)
{
	let_go(s);
	if (s->ops->reset)
		s->ops->reset(s);
}

static void tell_eof(struct sb_stream *s)
{
	if (!s->clean || s->eof_told || s->len > 0 || s->delivering || !s->app)
		return;
	s->eof_told = true;
	s->ops->eof(s);
	/* its RESET came before everything was taken: now it is the end of the other direction too */
	if (s->app && s->rx == RX_RESET && s->tx == TX_OPEN)
		abandon(s);
}

static void drain(struct sb_stream *s)
{
	uint32_t id = s->id;

	do {
		s->resume_again = false;
		s->full = false;
		while (s->len > 0 && !s->full) {
			size_t n = offer(s, s->buf + s->head, s->len);

			if (s->id != id || !s->app)
				return;
			s->head += (uint32_t)n;
			s->len -= (uint32_t)n;
			if (s->len == 0)
				drop_buffer(s);
		}
	} while (s->resume_again);
	tell_eof(s);
}

void sb_stream_resume(struct sb_stream *s)
{
	struct sb_chan *c = s->chan;

	if (c->state != CHAN_OPEN || !s->app)
		return;
	if (s->delivering) {
		s->resume_again = true;
		return;
	}
	chan_enter(c);
	drain(s);
	(void)chan_leave(c);
}

/* --- endings --- */

void stream_reset_sealed(struct sb_chan *c, uint32_t id)
{
	struct sb_stream *s = stream_find(c, id);

	if (!s)
		return;
	s->tx = TX_RESET;
	if (s->rx == RX_RESET)
		stream_free(s);
}

void sb_stream_send_eof(struct sb_stream *s)
{
	if (s->chan->state != CHAN_OPEN || s->tx != TX_OPEN)
		return;
	s->tx = TX_EOF;
	if (s->rx != RX_RESET)
		(void)queue_frame(s->chan, (enum chan_class)s->class, SB_FRAME_EOF, s->id, NULL,
				  0);
}

void sb_stream_close(struct sb_stream *s)
{
	if (!s->app)
		return;
	let_go(s);
	if (s->chan->state == CHAN_DEAD)
		stream_free(s);
}

/* --- frames in --- */

static int on_open(struct sb_chan *c, const struct sb_frame *f, const char **why)
{
	bool net = c->role == SB_CHAN_HOST;
	uint32_t *next = net ? &c->next_net : &c->next_id;
	struct sb_stream *s;
	int r;

	*why = "bad OPEN";
	if (f->stream != *next || !stream_room(c, net) || !c->ops->opened ||
	    (net ? !kind_of_guest(f->value[0]) || f->value[1] != 0 : !kind_of_host(f->value[0])))
		return -EBADMSG;
	*why = "no memory for a stream";
	s = set_up(c, *next, (enum sb_stream_kind)f->value[0], f->value[1]);
	if (!s)
		return -ENOMEM;
	(*next)++;
	r = c->ops->opened(c, s, (enum sb_stream_kind)s->kind, s->cmd);
	if (r < 0) {
		*why = "stream refused";
		return r;
	}
	if (s->id == f->stream && !s->app && s->tx < TX_RESET_QUEUED)
		return -EINVAL; /* accepted but not attached */
	return 0;
}

static int on_data(struct sb_stream *s, const struct sb_frame *f, const char **why)
{
	uint32_t id = s->id;
	size_t n = 0;

	*why = "DATA without credit or out of place";
	if (s->rx != RX_OPEN || f->len > s->rx_credit)
		return -EBADMSG;
	s->rx_credit -= f->len;
	if (!s->app)
		return 0; /* in flight while our RESET travels */
	if (s->len == 0 && !s->full && !s->delivering) {
		n = offer(s, f->p, f->len);
		if (s->id != id || !s->app)
			return 0;
	}
	if (n < f->len) {
		*why = "no memory for input";
		if (keep(s, f->p + n, f->len - n) < 0)
			return -ENOMEM;
	}
	if (s->resume_again)
		drain(s);
	return 0;
}

static int on_eof(struct sb_stream *s, const char **why)
{
	*why = "EOF out of place";
	if (s->rx != RX_OPEN)
		return -EBADMSG;
	s->rx = RX_EOF;
	s->clean = true;
	tell_eof(s);
	return 0;
}

static int on_reset(struct sb_stream *s)
{
	s->rx = RX_RESET;
	if (!s->app) {
		if (s->tx == TX_RESET)
			stream_free(s);
		return 0;
	}
	/* complete, or complete once the sink took the rest: the application will close it */
	if (s->clean && (!s->eof_told || s->tx != TX_OPEN))
		return 0;
	abandon(s);
	return 0;
}

static int on_credit(struct sb_stream *s, const struct sb_frame *f, const char **why)
{
	*why = "CREDIT beyond the window or out of place";
	if (!s->sends || f->value[0] > s->window - s->tx_credit)
		return -EBADMSG;
	s->tx_credit += f->value[0];
	if (s->blocked) {
		link_add(&s->chan->wait[s->class], &s->wait);
		chan_want_flush(s->chan); /* which calls writable() */
	}
	return 0;
}

int stream_frame(struct sb_chan *c, const struct sb_frame *f, const char **why)
{
	struct sb_stream *s;

	if (f->type == SB_FRAME_OPEN)
		return on_open(c, f, why);
	*why = "frame for an unknown stream";
	s = stream_find(c, f->stream);
	if (!s || s->rx == RX_RESET)
		return -EBADMSG;
	switch (f->type) {
	case SB_FRAME_DATA:
		return on_data(s, f, why);
	case SB_FRAME_EOF:
		return on_eof(s, why);
	case SB_FRAME_RESET:
		return on_reset(s);
	case SB_FRAME_CREDIT:
		return on_credit(s, f, why);
	default:
		return -EBADMSG;
	}
}

/* --- blocked streams --- */

void stream_block(struct sb_stream *s)
{
	struct sb_chan *c = s->chan;

	if (!s->app || c->state != CHAN_OPEN || s->tx != TX_OPEN || s->rx == RX_RESET)
		return;
	s->blocked = true;
	if (s->tx_credit > 0) /* else CREDIT brings it into the list */
		link_add(&c->wait[s->class], &s->wait);
}

/* The one that waited longest comes first, so that one busy stream cannot starve the others. */
static void wake_class(struct sb_chan *c, enum chan_class class)
{
	struct link *head = &c->wait[class];

	while (!link_none(head)) {
		struct sb_stream *s = SB_CONTAINER_OF(head->next, struct sb_stream, wait);

		if (s->tx_credit > 0 && s->tx == TX_OPEN && s->rx != RX_RESET) {
			if (queue_space(c, s) == 0)
				return; /* no room, for the others neither */
			s->blocked = false;
		}
		link_del(&s->wait);
		if (s->blocked)
			continue;
		if (s->ops->writable)
			s->ops->writable(s);
		if (c->state != CHAN_OPEN || c->free_pending)
			return;
	}
}

void stream_wake(struct sb_chan *c)
{
	if (c->state == CHAN_OPEN && !c->free_pending)
		wake_class(c, CLASS_INTERACTIVE);
	if (c->state == CHAN_OPEN && !c->free_pending)
		wake_class(c, CLASS_BULK);
}
