/*
 * The output queue: unsealed records by priority, a few sealed ones in front of the carrier.
 * Bounds: control by sb_chan_control, one OPEN a stream, and CREDIT only while little else waits
 * (stream_queue_credits); the other classes by slots_max for data, over which only EOF and RESET frames (one each a stream) may go.
 */
#include "chan_i.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SEALED_MAX 4U         /* records */
#define SPARE_MAX 4U          /* records kept for reuse */
#define SEND_BUDGET (1U << 20) /* bytes a turn */
#define RUN_MAX 8U            /* interactive records before one of bulk */
#define ROOM_MIN 4096U        /* a smaller rest of a record is left unused for data */

static const uint32_t slots_max[N_CLASSES] = {
	[CLASS_CONTROL] = UINT32_MAX,
	[CLASS_INTERACTIVE] = 4,
	[CLASS_BULK] = 8,
};

static struct slot *slot_new(struct sb_chan *c)
{
	struct slot *s = c->spare;

	if (s) {
		c->spare = s->next;
		c->n_spare--;
	} else {
		s = malloc(sizeof(*s));
		if (!s) {
			chan_die(c, -ENOMEM, "no memory for output");
			return NULL;
		}
	}
	s->next = NULL;
	s->len = 0;
	s->sent = 0;
	s->last = 0;
	s->resets = 0;
	s->reserved = false;
	return s;
}

static void slot_free(struct sb_chan *c, struct slot *s)
{
	if (c->n_spare >= SPARE_MAX) {
		free(s);
		return;
	}
	s->next = c->spare;
	c->spare = s;
	c->n_spare++;
}

static void push(struct slot_list *l, struct slot *s)
{
	if (l->tail)
		l->tail->next = s;
	else
		l->head = s;
	l->tail = s;
	l->n++;
}

static struct slot *pop(struct slot_list *l)
{
	struct slot *s = l->head;

	if (!s)
		return NULL;
	l->head = s->next;
	if (!l->head)
		l->tail = NULL;
	l->n--;
	s->next = NULL;
	return s;
}

static uint8_t *text_of(struct slot *s)
{
	return s->buf + SB_REC_HEAD_LEN;
}

/* The newest record of the class if @need more bytes fit, else a new one. */
static struct slot *slot_for(struct sb_chan *c, enum chan_class class, uint32_t need)
{
	struct slot *s = c->queue[class].tail;

	if (s && !s->reserved && SB_REC_TEXT_MAX - s->len >= need)
		return s;
	s = slot_new(c);
	if (s)
		push(&c->queue[class], s);
	return s;
}

bool queue_frame(struct sb_chan *c, enum chan_class class, enum sb_frame_type type,
		 uint32_t stream, const void *p, uint32_t len)
{
	struct slot *s = slot_for(c, class, SB_FRAME_HEAD_LEN + len);

	if (!s)
		return false;
	s->last = s->len;
	sb_frame_head_write(type, stream, len, text_of(s) + s->len);
	if (len > 0)
		memcpy(text_of(s) + s->len + SB_FRAME_HEAD_LEN, p, len);
	s->len += SB_FRAME_HEAD_LEN + len;
	if (type == SB_FRAME_RESET)
		s->resets++;
	chan_want_flush(c);
	return true;
}

/* Whether more bytes of stream @id can go into the last frame of @s. */
static bool extends(const struct slot *s, uint32_t id)
{
	const uint8_t *h = s->buf + SB_REC_HEAD_LEN + s->last;

	return s->len > 0 && sb_frame_head_type(h) == SB_FRAME_DATA &&
	       sb_frame_head_stream(h) == id;
}

/* Room for DATA of @id in the newest record of its class. */
static uint32_t tail_room(const struct slot *s, uint32_t id)
{
	uint32_t used;

	if (!s || s->reserved)
		return 0;
	used = s->len + (extends(s, id) ? 0 : SB_FRAME_HEAD_LEN);
	return used + ROOM_MIN <= SB_REC_TEXT_MAX ? SB_REC_TEXT_MAX - used : 0;
}

size_t queue_space(const struct sb_chan *c, const struct sb_stream *s)
{
	const struct slot_list *l = &c->queue[s->class];
	size_t room = tail_room(l->tail, s->id);

	if (l->n < slots_max[s->class])
		room += (size_t)(slots_max[s->class] - l->n) * SB_FRAME_DATA_MAX;
	return SB_MIN(room, (size_t)s->tx_credit);
}

size_t sb_stream_space(const struct sb_stream *s)
{
	size_t n = 0;

	if (s->chan->state == CHAN_OPEN && s->tx == TX_OPEN && s->rx != RX_RESET)
		n = queue_space(s->chan, s);
	if (n == 0) /* remembered, though the question changes nothing else */
		stream_block((struct sb_stream *)(uintptr_t)s);
	return n;
}

size_t sb_stream_reserve(struct sb_stream *s, void **ret)
{
	struct sb_chan *c = s->chan;
	uint32_t room;
	struct slot *slot;

	sb_assert(!c->reserved);
	if (sb_stream_space(s) == 0)
		return 0;
	slot = c->queue[s->class].tail;
	room = tail_room(slot, s->id);
	if (room == 0) {
		slot = slot_new(c);
		if (!slot)
			return 0;
		push(&c->queue[s->class], slot);
		room = SB_FRAME_DATA_MAX;
	}
	slot->reserved = true;
	c->reserved = slot;
	c->reserved_for = s;
	c->reserved_at = slot->len + (extends(slot, s->id) ? 0 : SB_FRAME_HEAD_LEN);
	c->reserved_len = SB_MIN(room, s->tx_credit);
	*ret = text_of(slot) + c->reserved_at;
	return c->reserved_len;
}

/* An empty record at the end of its list goes back. */
static void drop_empty_tail(struct sb_chan *c, struct slot_list *l, struct slot *slot)
{
	struct slot *before = NULL;

	if (slot->len > 0 || slot != l->tail)
		return;
	for (struct slot *s = l->head; s != slot; s = s->next)
		before = s;
	if (before)
		before->next = NULL;
	else
		l->head = NULL;
	l->tail = before;
	l->n--;
	slot_free(c, slot);
}

void sb_stream_commit(struct sb_stream *s, size_t len)
{
	struct sb_chan *c = s->chan;
	struct slot *slot = c->reserved;
	uint32_t add = (uint32_t)len;

	if (!slot) {
		sb_assert(len == 0 || c->state == CHAN_DEAD); /* stream_free_all took it back */
		return;
	}
	sb_assert(c->reserved_for == s && len <= c->reserved_len);
	c->reserved = NULL;
	c->reserved_for = NULL;
	slot->reserved = false;
	if (add == 0) {
		drop_empty_tail(c, &c->queue[s->class], slot);
		chan_want_flush(c); /* what was ready behind the reservation */
		return;
	}
	if (extends(slot, s->id)) {
		uint8_t *h = text_of(slot) + slot->last;

		sb_frame_head_write(SB_FRAME_DATA, s->id, sb_frame_head_len(h) + add, h);
		slot->len += add;
	} else {
		slot->last = slot->len;
		sb_frame_head_write(SB_FRAME_DATA, s->id, add, text_of(slot) + slot->len);
		slot->len += SB_FRAME_HEAD_LEN + add;
	}
	s->tx_credit -= add;
	chan_want_flush(c);
}

size_t sb_stream_write(struct sb_stream *s, const void *p, size_t len)
{
	const uint8_t *from = p;
	size_t done = 0;

	while (done < len) {
		void *to;
		size_t room = sb_stream_reserve(s, &to);

		if (room == 0)
			break;
		room = SB_MIN(room, len - done);
		memcpy(to, from + done, room);
		sb_stream_commit(s, room);
		done += room;
	}
	return done;
}

/* --- towards the carrier --- */

static bool ready(const struct slot_list *l)
{
	return l->head && !l->head->reserved;
}

static struct slot_list *pick(struct sb_chan *c)
{
	struct slot_list *q = c->queue;

	if (ready(&q[CLASS_CONTROL]))
		return &q[CLASS_CONTROL];
	if (ready(&q[CLASS_INTERACTIVE]) && (c->run < RUN_MAX || !ready(&q[CLASS_BULK]))) {
		c->run++;
		return &q[CLASS_INTERACTIVE];
	}
	c->run = 0;
	return ready(&q[CLASS_BULK]) ? &q[CLASS_BULK] : NULL;
}

static void note_resets(struct sb_chan *c, struct slot *s)
{
	for (uint32_t at = 0; s->resets > 0 && at < s->len;) {
		const uint8_t *h = text_of(s) + at;

		if (sb_frame_head_type(h) == SB_FRAME_RESET)
			stream_reset_sealed(c, sb_frame_head_stream(h));
		at += SB_FRAME_HEAD_LEN + sb_frame_head_len(h);
	}
}

static int seal(struct sb_chan *c, struct slot *s)
{
	int r;

	note_resets(c, s);
	sb_rec_head_write(s->len + SB_REC_TAG_LEN, s->buf);
	r = sb_aead_seal(&c->tx, s->buf, SB_REC_HEAD_LEN, text_of(s), s->len);
	if (r < 0)
		return r;
	s->len += SB_REC_HEAD_LEN + SB_REC_TAG_LEN;
	push(&c->sealed, s);
	return 0;
}

static int seal_some(struct sb_chan *c)
{
	if (c->state != CHAN_OPEN)
		return 0; /* only a handshake message may wait */
	while (c->sealed.n < SEALED_MAX) {
		struct slot_list *l;
		int r;

		stream_queue_credits(c);
		l = pick(c);
		if (!l || c->state != CHAN_OPEN)
			return 0;
		r = seal(c, pop(l));
		if (r < 0)
			return r;
	}
	return 0;
}

static ssize_t write_some(struct sb_chan *c)
{
	struct iovec iov[SEALED_MAX];
	struct msghdr mh = { .msg_iov = iov };
	size_t n = 0;
	ssize_t w;

	for (struct slot *s = c->sealed.head; s && n < SEALED_MAX; s = s->next)
		iov[n++] = (struct iovec){ .iov_base = s->buf + s->sent,
					   .iov_len = s->len - s->sent };
	mh.msg_iovlen = n;
	do {
		/* not every program that uses this ignores SIGPIPE */
		w = c->out_is_sock ? sendmsg(c->fd_out, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) :
				     writev(c->fd_out, iov, (int)n);
	} while (w < 0 && errno == EINTR);
	return w < 0 ? -errno : w;
}

static void advance(struct sb_chan *c, size_t done)
{
	while (done > 0) {
		struct slot *s = c->sealed.head;
		size_t rest = s->len - s->sent;

		if (done < rest) {
			s->sent += (uint32_t)done;
			return;
		}
		done -= rest;
		slot_free(c, pop(&c->sealed));
	}
}

int queue_send(struct sb_chan *c)
{
	size_t budget = SEND_BUDGET;

	if (c->out_full)
		return 0;
	for (;;) {
		int r = seal_some(c);
		ssize_t n;

		if (r < 0)
			return r;
		if (c->state == CHAN_DEAD || !c->sealed.head)
			return 0;
		n = write_some(c);
		if (n == -EAGAIN || n == 0) {
			c->out_full = true;
			return 0;
		}
		if (n < 0)
			return (int)n;
		advance(c, (size_t)n);
		if ((size_t)n >= budget) {
			chan_want_flush(c); /* go on in the next turn */
			return 0;
		}
		budget -= (size_t)n;
	}
}

bool queue_empty(const struct sb_chan *c)
{
	if (c->sealed.head || !link_none(&c->due))
		return false;
	for (int i = 0; i < N_CLASSES; i++)
		if (c->queue[i].head)
			return false;
	return true;
}

struct slot *queue_raw(struct sb_chan *c)
{
	struct slot *s = slot_new(c);

	if (s)
		push(&c->sealed, s);
	return s;
}

static void free_list(struct slot *s)
{
	while (s) {
		struct slot *next = s->next;

		sb_wipe(s->buf, sizeof(s->buf));
		free(s);
		s = next;
	}
}

void queue_done(struct sb_chan *c)
{
	for (int i = 0; i < N_CLASSES; i++)
		free_list(c->queue[i].head);
	free_list(c->sealed.head);
	free_list(c->spare);
}
