/*
 * Theory of operation
 *
 * States of the channel: CHAN_WAIT_HELLO (guest) or CHAN_WAIT_REPLY (host) -> CHAN_OPEN ->
 * CHAN_DEAD. A stream has a state for each direction (TX_*, RX_*); it starts with the OPEN of one
 * end (the guest's for NET, the host's for all others) and ends when each side has sent its RESET, which is the last frame of that side for the
 * stream; EOF is the promise of no more DATA before it. A RESET after EOF loses nothing: what was
 * received is still delivered. A RESET without EOF abandons the stream at the receiver at once.
 * Either end forgets the stream when its own RESET is sealed and the peer's has arrived, so an
 * identifier that is not in the table is always a violation, and neither end ever has more
 * streams than the other has room for.
 *
 * Output: frames gather in unsealed records ("slots") of three priorities. Sealing, which fixes
 * the order, happens as late as possible: at most SEALED_MAX records wait for the carrier, so a
 * control message overtakes everything but those. Bytes enter a slot only against credit of the
 * peer, so every slot drains as long as the peer reads its carrier, which it always does.
 *
 * Input: records are opened in place in the input buffer and handed to the sinks from there; what
 * a sink does not take is copied to the stream's buffer, which the credit bounds to one window.
 *
 * What an attacker on the carrier controls: before the handshake completes, 52 bytes; afterwards
 * only a peer with the session key gets anything but a dead channel. A hostile peer with the key
 * (the guest) can fill the windows of 64 + max_net streams and one control message; everything else
 * it could send is checked against the state and kills the channel. Nothing is done for all streams
 * of the table at once: what is due to a stream is found in a list (link.wait, link.due).
 *
 * Callbacks may call every function of chan.h; sb_chan_free inside one is put off until the
 * channel is off the stack. The channel dies quietly: chan_die only notes the cause, and
 * ops.closed is called from a timer at the end of the turn.
 */
#include "chan_i.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define IN_ROOM (256U << 10)
#define READS_PER_TURN 4
#define CHR_IOVS 64           /* a port fills one 4 KiB piece at a time */
#define CHR_PIECE 4096U
#define CHR_RETRY_NS 10000000 /* a port without a peer reads as 0 and always polls HUP */
#define CTL_QUEUE_MAX (512U << 10)
#define HELLO_BODY SB_NOISE_OVERHEAD

static void on_io(struct sb_io *io, uint32_t events);
static void on_retry(struct sb_timer *t);

void chan_enter(struct sb_chan *c)
{
	c->busy++;
}

bool chan_leave(struct sb_chan *c)
{
	c->busy--;
	if (c->busy > 0)
		return false;
	stream_bury(c);
	if (!c->free_pending)
		return false;
	(void)sb_chan_free(c);
	return true;
}

static void on_farewell(struct sb_timer *t)
{
	struct sb_chan *c = t->owner;

	chan_enter(c);
	if (!c->free_pending)
		c->ops->closed(c, c->error, c->why);
	stream_free_all(c);
	(void)chan_leave(c);
}

static void silence(struct sb_chan *c)
{
	sb_io_del(&c->io_in);
	sb_io_del(&c->io_out);
	sb_timer_del(&c->retry);
	sb_timer_del(&c->flush);
	sb_noise_done(&c->noise);
	sb_aead_done(&c->tx);
	sb_aead_done(&c->rx);
}

void chan_die(struct sb_chan *c, int err, const char *why)
{
	if (c->state == CHAN_DEAD)
		return;
	c->state = CHAN_DEAD;
	c->error = err;
	c->why = why;
	silence(c);
	sb_timer_set(c->loop, &c->farewell, 0, on_farewell, c);
}

static int watch(struct sb_chan *c)
{
	uint32_t out = c->out_full ? (uint32_t)EPOLLOUT : 0;
	bool same = c->fd_in == c->fd_out;
	int r = 0;

	if (!c->retry.active)
		r = sb_io_set(c->loop, &c->io_in, c->fd_in, EPOLLIN | (same ? out : 0), on_io, c);
	if (r == 0 && !same)
		r = sb_io_set(c->loop, &c->io_out, c->fd_out, out, on_io, c);
	return r;
}

static void pump_in(struct sb_chan *c);

static void flush_now(struct sb_chan *c)
{
	int r;

	sb_timer_del(&c->flush);
	r = queue_send(c);
	if (r == 0 && c->state != CHAN_DEAD)
		r = watch(c);
	if (r == -EPIPE || r == -ECONNRESET) {
		/* the peer left; its last words may still wait on our side of the carrier */
		pump_in(c);
		chan_die(c, 0, "carrier ended");
		return;
	}
	if (r < 0) {
		chan_die(c, r, "carrier write failed");
		return;
	}
	stream_wake(c);
}

static void on_flush(struct sb_timer *t)
{
	struct sb_chan *c = t->owner;

	chan_enter(c);
	if (c->state != CHAN_DEAD && !c->free_pending)
		flush_now(c);
	(void)chan_leave(c);
}

void chan_want_flush(struct sb_chan *c)
{
	if (c->state != CHAN_DEAD && !c->flush.active)
		sb_timer_set(c->loop, &c->flush, 0, on_flush, c);
}

/* --- handshake --- */

static int send_hello(struct sb_chan *c)
{
	struct slot *s = queue_raw(c);
	int r;

	if (!s)
		return -ENOMEM;
	sb_rec_head_write(HELLO_BODY, s->buf);
	r = sb_noise_write(&c->noise, NULL, 0, s->buf + SB_REC_HEAD_LEN);
	if (r < 0)
		return r;
	s->len = SB_REC_HEAD_LEN + HELLO_BODY;
	chan_want_flush(c);
	return 0;
}

static void open_up(struct sb_chan *c)
{
	int r = sb_noise_split(&c->noise, &c->tx, &c->rx, NULL);

	sb_noise_done(&c->noise);
	if (r < 0) {
		chan_die(c, r, "handshake incomplete");
		return;
	}
	c->state = CHAN_OPEN;
	if (c->ops->ready)
		c->ops->ready(c);
}

static void take_hello(struct sb_chan *c, const uint8_t *msg)
{
	int r = sb_noise_read(&c->noise, msg, HELLO_BODY, NULL);

	if (r < 0) {
		chan_die(c, r, "handshake refused");
		return;
	}
	if (c->state == CHAN_WAIT_HELLO) {
		r = send_hello(c);
		if (r < 0) {
			chan_die(c, r, "handshake reply failed");
			return;
		}
	}
	open_up(c);
}

/* --- records in --- */

static int take_control(struct sb_chan *c, const struct sb_frame *f, const char **why)
{
	int r;

	if (f->len > SB_CTL_MAX - c->ctl.len) {
		*why = "control message too long";
		return -EBADMSG;
	}
	if (f->type == SB_FRAME_CONTROL && c->ctl.len == 0) {
		r = c->ops->control(c, f->p, f->len);
	} else {
		sb_buf_add(&c->ctl, f->p, f->len);
		if (sb_buf_error(&c->ctl)) {
			*why = "no memory for a control message";
			return sb_buf_error(&c->ctl);
		}
		if (f->type == SB_FRAME_CONTROL_MORE)
			return 0;
		r = c->ops->control(c, c->ctl.data, c->ctl.len);
		sb_buf_done(&c->ctl);
	}
	if (r < 0)
		*why = "control message refused";
	return r < 0 ? r : 0;
}

static void take_frames(struct sb_chan *c, const uint8_t *text, size_t len)
{
	struct sb_rd rd = { .p = text, .len = len };
	const char *why = "malformed frame";

	while (c->state == CHAN_OPEN && !c->free_pending) {
		struct sb_frame f;
		int r = sb_frame_next(&rd, &f);

		if (r == SB_FRAME_END)
			return;
		if (r == 0 && f.stream == 0)
			r = take_control(c, &f, &why);
		else if (r == 0)
			r = stream_frame(c, &f, &why);
		if (r < 0) {
			chan_die(c, r, why);
			return;
		}
	}
}

/* One record at the front of the input. Return: whether there was a whole one. */
static bool take_record(struct sb_chan *c)
{
	uint8_t *p = c->in + c->in_head;
	bool open = c->state == CHAN_OPEN;
	uint32_t body;
	int r = sb_rec_head_parse(p, c->in_len, open ? 0 : HELLO_BODY, &body);

	if (r == SB_REC_MORE)
		return false;
	if (r < 0) {
		chan_die(c, r, "record length out of range");
		return false;
	}
	if (c->in_len < SB_REC_HEAD_LEN + body)
		return false;
	c->in_head += SB_REC_HEAD_LEN + body;
	c->in_len -= SB_REC_HEAD_LEN + body;
	if (!open) {
		take_hello(c, p + SB_REC_HEAD_LEN);
		return true;
	}
	r = sb_aead_open(&c->rx, p, SB_REC_HEAD_LEN, p + SB_REC_HEAD_LEN, body);
	if (r < 0) {
		chan_die(c, r, "record not authentic");
		return false;
	}
	take_frames(c, p + SB_REC_HEAD_LEN, body - SB_REC_TAG_LEN);
	return true;
}

/* Return: bytes read; 0 = the carrier ended; -EAGAIN; -errno. */
static ssize_t fill(struct sb_chan *c, size_t *ret_room)
{
	struct iovec iov[CHR_IOVS];
	uint8_t *to;
	size_t room;
	ssize_t n;
	int n_iov = 0;

	if (c->in_len == 0)
		c->in_head = 0;
	if (c->in_head > 0 && IN_ROOM - c->in_head - c->in_len < SB_REC_MAX) {
		memmove(c->in, c->in + c->in_head, c->in_len);
		c->in_head = 0;
	}
	to = c->in + c->in_head + c->in_len;
	room = IN_ROOM - c->in_head - c->in_len;
	*ret_room = room;
	if (!c->in_is_chr) {
		n = read(c->fd_in, to, room);
		return n < 0 ? -errno : n;
	}
	for (; n_iov < CHR_IOVS && room > 0; n_iov++) {
		size_t piece = SB_MIN(room, (size_t)CHR_PIECE);

		iov[n_iov] = (struct iovec){ .iov_base = to, .iov_len = piece };
		to += piece;
		room -= piece;
	}
	n = readv(c->fd_in, iov, n_iov);
	return n < 0 ? -errno : n;
}

static void no_peer_yet(struct sb_chan *c)
{
	sb_io_del(&c->io_in);
	sb_timer_set(c->loop, &c->retry, CHR_RETRY_NS, on_retry, c);
}

static void pump_in(struct sb_chan *c)
{
	for (int i = 0; i < READS_PER_TURN; i++) {
		size_t room;
		ssize_t n = fill(c, &room);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			return;
		if (n == 0 && c->in_is_chr) {
			no_peer_yet(c);
			return;
		}
		if (n <= 0) {
			bool cut = c->in_len > 0;

			if (n == -ECONNRESET)
				n = 0;
			chan_die(c, n < 0 ? (int)n : cut ? -ECONNABORTED : 0,
				 n < 0 ? "carrier read failed" :
				 cut   ? "carrier ended inside a record" :
					 "carrier ended");
			return;
		}
		c->in_len += (size_t)n;
		while (c->state != CHAN_DEAD && !c->free_pending && take_record(c))
			;
		if (c->state == CHAN_DEAD || c->free_pending || (size_t)n < room)
			return;
	}
}

static void on_retry(struct sb_timer *t)
{
	struct sb_chan *c = t->owner;
	int r;

	chan_enter(c);
	pump_in(c);
	if (c->state != CHAN_DEAD && !c->free_pending && !c->retry.active) {
		r = watch(c);
		if (r < 0)
			chan_die(c, r, "event loop");
	}
	if (c->state != CHAN_DEAD && !c->free_pending)
		chan_want_flush(c);
	(void)chan_leave(c);
}

static void on_io(struct sb_io *io, uint32_t events)
{
	struct sb_chan *c = io->owner;

	chan_enter(c);
	if (io == &c->io_in && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		pump_in(c);
	else if (io == &c->io_out && (events & (EPOLLHUP | EPOLLERR)))
		chan_die(c, 0, "carrier ended");
	if (c->state != CHAN_DEAD && !c->free_pending && (events & EPOLLOUT)) {
		c->out_full = false;
		flush_now(c);
	}
	(void)chan_leave(c);
}

/* --- life --- */

static int start(struct sb_chan *c, const struct sb_chan_config *cfg)
{
	enum sb_noise_role role =
		cfg->role == SB_CHAN_HOST ? SB_NOISE_INITIATOR : SB_NOISE_RESPONDER;
	struct stat st;
	int r;

	if (fstat(c->fd_in, &st) < 0)
		return -errno;
	c->in_is_chr = S_ISCHR(st.st_mode);
	if (fstat(c->fd_out, &st) < 0)
		return -errno;
	c->out_is_sock = S_ISSOCK(st.st_mode);
	c->in = malloc(IN_ROOM);
	if (!c->in)
		return -ENOMEM;
	r = table_init(c, cfg->max_net);
	if (r < 0)
		return r;
	sb_noise_init(&c->noise, role, cfg->psk, cfg->prologue, cfg->prologue_len, NULL);
	c->state = cfg->role == SB_CHAN_HOST ? CHAN_WAIT_REPLY : CHAN_WAIT_HELLO;
	r = watch(c);
	if (r == 0 && cfg->role == SB_CHAN_HOST)
		r = send_hello(c);
	return r;
}

int sb_chan_new(const struct sb_chan_config *cfg, struct sb_chan **ret)
{
	struct sb_chan *c;
	int r;

	if ((cfg->role != SB_CHAN_HOST && cfg->role != SB_CHAN_GUEST) || !cfg->ops ||
	    !cfg->ops->control || !cfg->ops->closed || cfg->max_net > SB_CHAN_MAX_NET)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->loop = cfg->loop;
	c->ops = cfg->ops;
	c->owner = cfg->owner;
	c->role = cfg->role;
	c->fd_in = cfg->fd_in;
	c->fd_out = cfg->fd_out;
	sb_buf_init(&c->ctl, SB_CTL_MAX);
	r = start(c, cfg);
	if (r < 0) {
		(void)sb_chan_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct sb_chan *sb_chan_free(struct sb_chan *c)
{
	if (!c)
		return NULL;
	if (c->busy > 0) {
		/* the memory stays until the stack is clear; the descriptors are let go at once */
		c->state = CHAN_DEAD;
		silence(c);
		sb_timer_del(&c->farewell);
		c->free_pending = true;
		return NULL;
	}
	silence(c);
	sb_timer_del(&c->farewell);
	table_done(c);
	queue_done(c);
	sb_buf_done(&c->ctl);
	if (c->in)
		sb_wipe(c->in, IN_ROOM);
	free(c->in);
	sb_wipe(c, sizeof(*c));
	free(c);
	return NULL;
}

void *sb_chan_owner(const struct sb_chan *c)
{
	return c->owner;
}

bool sb_chan_flushed(const struct sb_chan *c)
{
	return c->state != CHAN_DEAD && queue_empty(c);
}

size_t sb_chan_control_room(const struct sb_chan *c)
{
	size_t queued = 0;

	if (c->state != CHAN_OPEN)
		return 0;
	for (const struct slot *s = c->queue[CLASS_CONTROL].head; s; s = s->next)
		queued += s->len;
	return queued < CTL_QUEUE_MAX ? CTL_QUEUE_MAX - queued : 0;
}

int sb_chan_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	if (c->state != CHAN_OPEN)
		return -ENOTCONN;
	if (len == 0 || len > SB_CTL_MAX)
		return -EMSGSIZE;
	if (len > sb_chan_control_room(c))
		return -ENOBUFS;
	while (len > 0) {
		uint32_t part = (uint32_t)SB_MIN(len, (size_t)SB_FRAME_DATA_MAX);
		bool last = part == len;

		if (!queue_frame(c, CLASS_CONTROL, last ? SB_FRAME_CONTROL : SB_FRAME_CONTROL_MORE,
				 0, msg, part))
			return -ENOTCONN; /* no memory: the channel died of it */
		msg += part;
		len -= part;
	}
	return 0;
}
