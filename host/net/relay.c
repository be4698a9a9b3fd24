/*
 * Theory of operation. Each way is pumped until it is dry or its receiver is full: first what is
 * in the pipe, then what is in the buffer (as far as somebody let it pass), then a new read. So a
 * sender is read only when everything before has been taken, which is the back pressure, and a
 * way holds a pipe or a buffer only while bytes are in it. Small reads go through one scratch
 * buffer of the process (two system calls a message); a read that fills it switches the way to
 * splice, and a short one back.
 *
 * Level-triggered: after every entry relay_watch() asks for exactly what could make progress, and
 * a half whose both directions are over, or that has failed, is not watched at all, because epoll
 * would report its hang-up for ever.
 *
 * An error or hang-up of the guest's half ends the connection at once. One of the server's half
 * lets what it had sent before reach the guest first: then the guest gets the reset.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/conn.h"
#include "wire/net_hello.h"

#define SCRATCH (64U << 10)
#define PIPE_SIZE (1U << 20)
#define FILLS 8 /* reads of one way in one turn */
#define SPARE_PIPES 16

struct pipe {
	int fd[2];
	size_t size;
	struct pipe *next;
};

struct relay {
	uint8_t scratch[SCRATCH];
	struct pipe *spare;
	unsigned int n_spare;
};

int relay_new(struct gate *g, struct relay **ret)
{
	struct relay *r = malloc(sizeof(*r));

	(void)g;
	if (!r)
		return -ENOMEM;
	r->spare = NULL;
	r->n_spare = 0;
	*ret = r;
	return 0;
}

static void pipe_close(struct pipe *p)
{
	sb_fd_close(&p->fd[0]);
	sb_fd_close(&p->fd[1]);
	free(p);
}

struct relay *relay_free(struct relay *r)
{
	while (r && r->spare) {
		struct pipe *p = r->spare;

		r->spare = p->next;
		pipe_close(p);
	}
	free(r);
	return NULL;
}

/* Return: NULL when there is none to be had: then bytes are copied. */
static struct pipe *pipe_get(struct relay *r)
{
	struct pipe *p = r->spare;
	int n;

	if (p) {
		r->spare = p->next;
		r->n_spare--;
		return p;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	if (pipe2(p->fd, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(p);
		return NULL;
	}
	n = fcntl(p->fd[1], F_SETPIPE_SZ, PIPE_SIZE); /* the user's limit may refuse */
	p->size = n > 0 ? (size_t)n : 65536;
	return p;
}

/* @empty: nothing is in it. */
static void pipe_put(struct relay *r, struct pipe **slot, bool empty)
{
	struct pipe *p = sb_take(slot);

	if (!p)
		return;
	if (!empty || r->n_spare >= SPARE_PIPES) {
		pipe_close(p);
		return;
	}
	p->next = r->spare;
	r->spare = p;
	r->n_spare++;
}

/* --- the buffer of a way --- */

static int way_append(struct way *w, const void *p, size_t len)
{
	size_t need = (size_t)w->len + len;
	uint8_t *bigger;

	if (w->at > 0 && w->len > 0)
		memmove(w->buf, w->buf + w->at, w->len);
	w->at = 0;
	if (need > w->cap) {
		size_t cap = SB_MAX(need, (size_t)w->cap * 2);

		bigger = realloc(w->buf, cap);
		if (!bigger)
			return -ENOMEM;
		w->buf = bigger;
		w->cap = (uint32_t)cap;
	}
	memcpy(w->buf + w->len, p, len);
	w->len += (uint32_t)len;
	return 0;
}

void way_drop(struct way *w, size_t n)
{
	sb_assert(n <= w->len);
	w->at += (uint32_t)n;
	w->len -= (uint32_t)n;
	w->pass -= SB_MIN(w->pass, (uint32_t)n);
	if (w->len == 0) {
		free(w->buf);
		w->buf = NULL;
		w->at = 0;
		w->cap = 0;
	}
}

int way_say(struct way *w, const void *p, size_t len)
{
	int r;

	if (w->pass != w->len)
		return -EBUSY;
	r = way_append(w, p, len);
	if (r == 0)
		w->pass = w->len;
	return r;
}

int way_replace(struct way *w, size_t old, const void *p, size_t len)
{
	size_t rest = w->len - old;
	uint8_t *fresh;

	sb_assert(w->pass == 0 && old <= w->len);
	fresh = malloc(len + rest);
	if (!fresh)
		return -ENOMEM;
	memcpy(fresh, p, len);
	if (rest > 0)
		memcpy(fresh + len, w->buf + w->at + old, rest);
	free(w->buf);
	w->buf = fresh;
	w->at = 0;
	w->cap = (uint32_t)(len + rest);
	w->len = (uint32_t)(len + rest);
	return 0;
}

void way_clear(struct conn *c, struct way *w)
{
	way_drop(w, w->len);
	w->through = 0;
	pipe_put(conns_relay(c->g), &w->pipe, w->piped == 0);
	w->piped = 0;
}

/* --- halves --- */

void half_close(struct half *h, bool reset)
{
	struct linger abort = { .l_onoff = 1, .l_linger = 0 };

	if (h->fd < 0)
		return;
	sb_io_del(&h->io);
	if (reset && h->tcp)
		(void)setsockopt(h->fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	sb_fd_close(&h->fd);
	h->shut = false;
	h->gone = false;
}

static struct half *sender(struct conn *c, const struct way *w)
{
	return w == &c->up ? &c->client : &c->server;
}

static struct half *receiver(struct conn *c, const struct way *w)
{
	return w == &c->up ? &c->server : &c->client;
}

/* The receiver takes nothing any more. */
static void lost_receiver(struct conn *c, struct way *w)
{
	if (w == &c->down) {
		conn_cut(c, SB_NET_OK);
		return;
	}
	/* the server's last words may still be on their way: then its half tells the end */
	way_clear(c, w);
	w->mode = WAY_DROP;
}

static void lost_sender(struct conn *c)
{
	conn_cut(c, SB_NET_OK);
}

/* --- out --- */

/* Return: bytes; 0 = not now; -1 = the receiver is lost (dealt with) */
static ssize_t put(struct conn *c, struct way *w, const void *p, size_t len)
{
	ssize_t n = send(receiver(c, w)->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM)
		return 0;
	lost_receiver(c, w);
	return -1;
}

static int drain_pipe(struct conn *c, struct way *w)
{
	while (w->piped > 0) {
		ssize_t n = splice(w->pipe->fd[0], NULL, receiver(c, w)->fd, NULL, w->piped,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n > 0) {
			w->piped -= (size_t)n;
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		lost_receiver(c, w);
		return -1;
	}
	pipe_put(conns_relay(c->g), &w->pipe, true);
	return 1;
}

/* Return: 1 = nothing waits to be sent; 0 = not now; -1 = the receiver is lost */
static int drain(struct conn *c, struct way *w)
{
	int r;

	if (w->piped == 0 && w->pass == 0)
		return 1;
	if (receiver(c, w)->fd < 0)
		return 0;
	r = drain_pipe(c, w);
	if (r <= 0)
		return r;
	while (w->pass > 0) {
		ssize_t n = put(c, w, w->buf + w->at, w->pass);

		if (n <= 0)
			return (int)n;
		way_drop(w, (size_t)n);
	}
	return 1;
}

/* --- in --- */

enum fill { FILL_DRY = 0, FILL_SOME, FILL_MORE, FILL_END };

static enum fill fill_failed(struct conn *c)
{
	if (errno == EAGAIN || errno == EINTR)
		return FILL_DRY;
	lost_sender(c);
	return FILL_END;
}

static void went_through(struct conn *c, struct way *w, size_t n)
{
	if (c->phase == CONN_DEAD || w->mode != WAY_LOOK)
		return;
	w->through -= n;
	http_through(c, w);
}

static enum fill fill_pipe(struct conn *c, struct way *w, size_t most)
{
	struct relay *r = conns_relay(c->g);
	ssize_t n;

	n = splice(sender(c, w)->fd, NULL, w->pipe->fd[1], NULL, SB_MIN(most, w->pipe->size),
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n <= 0)
		pipe_put(r, &w->pipe, true);
	if (n < 0) {
		w->bulk = false;
		return fill_failed(c);
	}
	if (n == 0) {
		w->eof = true;
		return FILL_SOME;
	}
	w->piped = (size_t)n;
	w->bulk = n >= (ssize_t)(SCRATCH / 4);
	conn_count(c, w, (size_t)n);
	went_through(c, w, (size_t)n);
	return w->bulk ? FILL_MORE : FILL_SOME;
}

/* What was read and may pass: at once as far as it goes, the rest waits. */
static void forward(struct conn *c, struct way *w, const uint8_t *p, size_t len)
{
	ssize_t n = put(c, w, p, len);

	if (n < 0 || (size_t)n == len)
		return;
	if (way_append(w, p + n, len - (size_t)n) < 0)
		conn_cut(c, SB_NET_INTERNAL);
	else
		w->pass = w->len;
}

static enum fill fill_copy(struct conn *c, struct way *w, size_t most, bool direct)
{
	struct relay *r = conns_relay(c->g);
	ssize_t n = recv(sender(c, w)->fd, r->scratch, SB_MIN(most, (size_t)SCRATCH), MSG_DONTWAIT);

	if (n < 0)
		return fill_failed(c);
	if (n == 0) {
		w->eof = true;
		return FILL_SOME;
	}
	if (w->mode == WAY_DROP)
		return FILL_SOME;
	conn_count(c, w, (size_t)n);
	if (direct) {
		w->bulk = n == (ssize_t)SCRATCH;
		forward(c, w, r->scratch, (size_t)n);
		went_through(c, w, (size_t)n);
	} else if (way_append(w, r->scratch, (size_t)n) < 0) {
		conn_cut(c, SB_NET_INTERNAL);
	}
	if (c->phase == CONN_DEAD)
		return FILL_END;
	return n == (ssize_t)SB_MIN(most, (size_t)SCRATCH) ? FILL_MORE : FILL_SOME;
}

/* Whether @w would read now: nothing of it waits to be sent. */
static bool hungry(struct conn *c, const struct way *w)
{
	if (w->eof || sender(c, w)->fd < 0)
		return false;
	switch (w->mode) {
	case WAY_PASS:
		return receiver(c, w)->fd >= 0;
	case WAY_LOOK:
		if (w->through > 0)
			return receiver(c, w)->fd >= 0;
		return !w->wait && w->len < WAY_LOOK_MAX;
	case WAY_DROP:
		return true;
	case WAY_HOLD:
		break;
	}
	return false;
}

/* The budget is used up: one more byte is too much, an end is not. */
static enum fill fill_over(struct conn *c, struct way *w)
{
	char byte;
	ssize_t n = recv(sender(c, w)->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	if (n < 0)
		return fill_failed(c);
	if (n == 0) {
		w->eof = true;
		return FILL_SOME;
	}
	conn_cut(c, SB_NET_BUDGET);
	return FILL_END;
}

static enum fill fill(struct conn *c, struct way *w)
{
	bool direct = w->mode == WAY_PASS || (w->mode == WAY_LOOK && w->through > 0);
	uint64_t most = PIPE_SIZE;

	if (w->mode != WAY_DROP) {
		most = SB_MIN(most, conn_budget(c));
		if (most == 0)
			return fill_over(c, w);
	}
	if (w->mode == WAY_LOOK)
		most = SB_MIN(most, direct ? w->through : (uint64_t)(WAY_LOOK_MAX - w->len));
	if (c->phase == CONN_HELLO) /* what comes behind may be somebody else's to read */
		most = SB_NET_HELLO_LEN - w->len;
	if (direct && w->bulk && !w->pipe)
		w->pipe = pipe_get(conns_relay(c->g));
	if (direct && w->bulk && w->pipe)
		return fill_pipe(c, w, (size_t)most);
	return fill_copy(c, w, (size_t)most, direct);
}

/* --- pump --- */

/* Everything that came was passed on, and no more will come. */
static void finish(struct conn *c, struct way *w)
{
	struct half *to = receiver(c, w);
	struct way *other = w == &c->up ? &c->down : &c->up;

	if (w->ended)
		return;
	if (w == &c->up && c->insp && inspect_eof(c))
		return;
	if (c->phase == CONN_OPENING || c->phase == CONN_ASKING || c->phase == CONN_PROXY ||
	    c->phase == CONN_HELLO) {
		if (c->phase != CONN_OPENING && c->phase != CONN_ASKING)
			conn_left(c);
		return; /* its half of the connection is told when there is one */
	}
	w->ended = true;
	if (to->fd >= 0 && !to->gone) {
		if (shutdown(to->fd, SHUT_WR) < 0 && errno != ENOTCONN) {
			lost_receiver(c, w);
			return;
		}
		to->shut = true;
	}
	if (w == &c->down && c->server.gone)
		conn_cut(c, SB_NET_OK);
	/* or what the guest's further bytes wait for will not come */
	else if (other->ended || (w == &c->down && (c->up.mode == WAY_HOLD || c->up.wait)))
		conn_over(c);
}

/* Let pass what needs no look, or have it looked at. Return: whether something changed. */
static bool consider(struct conn *c, struct way *w)
{
	if (w->len == 0 || w->pass > 0)
		return false;
	if (w->mode == WAY_PASS) {
		w->pass = w->len;
		return true;
	}
	if (w->mode == WAY_DROP) {
		way_clear(c, w);
		return true;
	}
	if (w->mode != WAY_LOOK)
		return false;
	if (w->through > 0) {
		w->pass = (uint32_t)SB_MIN(w->through, (uint64_t)w->len);
		went_through(c, w, w->pass);
		return true;
	}
	return !w->wait && conn_look(c, w) == LOOK_ON;
}

static void pump(struct conn *c, struct way *w)
{
	enum fill got = FILL_MORE;

	for (int fills = 0; c->phase != CONN_DEAD;) {
		if (drain(c, w) <= 0)
			return;
		if (consider(c, w))
			continue;
		if (c->phase == CONN_DEAD)
			return;
		if (w->wait && c->down.ended) {
			conn_over(c); /* what it waits for will not come */
			return;
		}
		if (w->eof && w->len == 0) {
			finish(c, w);
			return;
		}
		if (w->eof && w->mode == WAY_LOOK && !w->wait) {
			conn_left(c); /* in the middle of something */
			return;
		}
		/* a half that is not watched any more has to be read to its end */
		if (!hungry(c, w) || (!sender(c, w)->gone && (got != FILL_MORE || fills++ == FILLS)))
			return;
		got = fill(c, w);
		if (got == FILL_DRY && sender(c, w)->gone)
			lost_sender(c);
		if (got == FILL_DRY || got == FILL_END)
			return;
	}
}

void relay_run(struct conn *c, bool up, bool down)
{
	do {
		c->kick = false;
		if (up && c->phase != CONN_DEAD)
			pump(c, &c->up);
		if (down && c->phase != CONN_DEAD)
			pump(c, &c->down);
		up = down = true;
	} while (c->kick && c->phase != CONN_DEAD);
}

/* --- events --- */

void relay_on_client(struct sb_io *io, uint32_t events)
{
	struct conn *c = io->owner;

	if ((events & EPOLLERR) || ((events & EPOLLHUP) && !c->client.shut))
		conn_cut(c, SB_NET_OK); /* abrupt, or its last words were not wanted */
	else
		relay_run(c, events & (EPOLLIN | EPOLLHUP), events & EPOLLOUT);
	conn_settle(c);
}

void relay_on_server(struct sb_io *io, uint32_t events)
{
	struct conn *c = io->owner;

	if ((events & EPOLLERR) || ((events & EPOLLHUP) && !c->server.shut)) {
		c->server.gone = true;
		sb_io_del(io);
		relay_run(c, false, true);
	} else {
		relay_run(c, events & EPOLLOUT, events & (EPOLLIN | EPOLLHUP));
	}
	conn_settle(c);
}

static void watch_half(struct conn *c, struct half *h, const struct way *in, const struct way *out,
		       sb_io_fn *fn)
{
	bool pending = in->piped > 0 || in->pass > 0;
	uint32_t events = 0;

	if (h->fd < 0)
		return;
	if (!pending && hungry(c, in))
		events |= EPOLLIN;
	if (out->piped > 0 || out->pass > 0)
		events |= EPOLLOUT;
	/* after both ends a hang-up is reported for ever, wanted or not */
	if (h->gone || (h->shut && events == 0)) {
		sb_io_del(&h->io);
		return;
	}
	if (sb_io_set(c->g->loop, &h->io, h->fd, events, fn, c) < 0)
		conn_cut(c, SB_NET_INTERNAL);
}

void relay_watch(struct conn *c)
{
	watch_half(c, &c->client, &c->up, &c->down, relay_on_client);
	if (c->phase != CONN_DEAD)
		watch_half(c, &c->server, &c->down, &c->up, relay_on_server);
}
