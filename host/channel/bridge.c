/*
 * Theory of operation. Each NET or SSH stream that the guest opens is joined to one end of a
 * socket pair, whose other end goes to the net gate or the SSH relay (below: the gate) over its front
 * socket. The bytes are not looked at: what
 * they ask for is the gate's to judge.
 *
 *	guest's EOF     shutdown(SHUT_WR)         gate's EOF            EOF
 *	guest's RESET   close                     gate's close          RESET
 *
 * The gate's end of file is a close if the socket hung up as well and the guest's EOF was not
 * passed on before: otherwise a close after both EOFs is orderly. When the gate takes no more
 * (EPIPE) what it said before is still passed on (gone). The descriptor is watched only while
 * something is wanted of it, because a hang-up is reported always and would spin.
 *
 * What a hostile guest can cost: max_net socket pairs, with at most a window waiting in the stream
 * and a send buffer in the socket each. A gate that does not take its descriptors makes UNSENT_MAX
 * of them wait; further streams are reset.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "channel.h"

#define SEND_BUFFER (256 << 10) /* bytes; the kernel counts twice that with its overhead */

struct bridge {
	struct session *ses;
	struct front *front;
	struct sb_stream *s; /* NULL = over */
	struct bridge *next;
	struct bridge *prev;
	struct sb_io io;
	int fd;        /* owned */
	int gate_fd;   /* owned; -1 = the gate has it */
	uint32_t slot; /* in unsent, if queued */
	bool queued;   /* gate_fd waits for room on the front socket */
	bool no_room;  /* the stream takes no more */
	bool stalled;  /* the socket takes no more */
	bool eof_in;   /* the gate's EOF was passed on */
	bool eof_out;  /* the guest's EOF was passed on */
	bool gone;     /* the gate reads no more; its last words may wait in the socket */
	bool held;     /* on the stack: freed by who holds it */
};

static void release(struct bridge *b)
{
	struct session *ses = b->ses;

	sb_io_del(&b->io);
	sb_fd_close(&b->fd);
	sb_fd_close(&b->gate_fd);
	if (b->queued)
		b->front->unsent[b->slot] = NULL;
	if (b->prev)
		b->prev->next = b->next;
	else
		ses->bridges = b->next;
	if (b->next)
		b->next->prev = b->prev;
	if (!b->held)
		free(b);
}

/* The stream ends here too: after both EOFs in order, else abandoned. */
static void finish(struct bridge *b)
{
	struct sb_stream *s = b->s;

	b->s = NULL;
	release(b);
	sb_stream_close(s);
}

static void on_io(struct sb_io *io, uint32_t events);

/* Return: whether @b is still there. */
static bool watch(struct bridge *b)
{
	uint32_t events = 0;

	if (!b->eof_in && !b->no_room)
		events |= (uint32_t)EPOLLIN;
	if (b->stalled && !b->gone)
		events |= (uint32_t)EPOLLOUT;
	if (events == 0 && !b->eof_in) {
		sb_io_del(&b->io); /* writable() brings us back */
		return true;
	}
	/* after the gate's EOF only its hang-up is awaited */
	if (sb_io_set(b->ses->loop, &b->io, b->fd, events, on_io, b) == 0)
		return true;
	finish(b);
	return false;
}

static bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* From the gate. One read at most: the loop comes back for more. */
static void pump(struct bridge *b)
{
	void *to;
	size_t room = sb_stream_reserve(b->s, &to);
	ssize_t n;

	b->no_room = room == 0;
	if (room == 0)
		return;
	n = recv(b->fd, to, room, MSG_DONTWAIT);
	sb_stream_commit(b->s, n > 0 ? (size_t)n : 0);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (n < 0 || (!b->eof_out && hung_up(b->fd))) {
		finish(b);
		return;
	}
	b->eof_in = true;
	sb_stream_send_eof(b->s);
	if (b->eof_out)
		finish(b);
}

static void turn(struct bridge *b, uint32_t events)
{
	const uint32_t hup = EPOLLHUP | EPOLLERR;

	b->held = true;
	if (b->eof_in && (events & hup))
		finish(b);
	else if (!b->eof_in && !b->no_room && (events & (EPOLLIN | hup)))
		pump(b);
	if (b->s && b->stalled && (events & (EPOLLOUT | hup))) {
		b->stalled = false;
		sb_stream_resume(b->s);
	}
	if (b->s)
		(void)watch(b);
	b->held = false;
	if (!b->s)
		free(b);
}

static void on_io(struct sb_io *io, uint32_t events)
{
	turn(io->owner, events);
}

/* --- from the guest --- */

static size_t on_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct bridge *b = sb_stream_owner(s);
	size_t done = 0;

	while (done < len && !b->gone && !b->stalled) {
		ssize_t n = send(b->fd, p + done, len - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			b->stalled = true;
		else if (errno != EINTR)
			b->gone = true;
	}
	if (b->gone) {
		if (b->eof_in)
			finish(b);
		else
			(void)watch(b);
		return len;
	}
	if (b->stalled && !watch(b))
		return len;
	return done;
}

static void on_eof(struct sb_stream *s)
{
	struct bridge *b = sb_stream_owner(s);

	if (b->gone)
		return;
	if (hung_up(b->fd)) { /* it did not wait for this */
		b->gone = true;
		if (b->eof_in)
			finish(b);
		return;
	}
	(void)shutdown(b->fd, SHUT_WR);
	b->eof_out = true;
	if (b->eof_in)
		finish(b);
}

static void on_reset(struct sb_stream *s)
{
	struct bridge *b = sb_stream_owner(s);

	b->s = NULL;
	release(b);
}

static void on_writable(struct sb_stream *s)
{
	struct bridge *b = sb_stream_owner(s);

	b->no_room = false;
	if (!b->eof_in)
		turn(b, EPOLLIN);
}

static const struct sb_stream_ops bridge_ops = {
	.data = on_data, .eof = on_eof, .reset = on_reset, .writable = on_writable
};

/* --- the front socket --- */

static void on_front(struct sb_io *io, uint32_t events);

static void front_gone(struct front *f)
{
	sb_io_del(&f->io);
	if (f->ses->state != SES_CLOSING) /* then the monitor ends it */
		session_fail(f->ses, SB_FAIL_INTERNAL, "the %s ended", f->name);
}

/* Return: 0 = sent, or the stream had to be given up; -EAGAIN; -EPIPE = the gate is gone. */
static int pass_on(struct bridge *b)
{
	int r = sb_ipc_send(b->front->fd, b->front->type, NULL, 0, &b->gate_fd, 1);

	if (r == -EAGAIN || r == -EPIPE)
		return r;
	if (r == -ECONNRESET || r == -ENOTCONN)
		return -EPIPE;
	b->front->unsent[b->slot] = NULL;
	b->queued = false;
	sb_fd_close(&b->gate_fd);
	if (r < 0) /* no memory, or too many descriptors on their way */
		finish(b);
	return 0;
}

static void send_waiting(struct front *f)
{
	while (f->n_unsent > 0) {
		struct bridge *b = f->unsent[f->head];
		int r = b ? pass_on(b) : 0;

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			front_gone(f);
			return;
		}
		f->head = (f->head + 1) % UNSENT_MAX;
		f->n_unsent--;
	}
}

static int front_watch(struct front *f)
{
	return sb_io_set(f->ses->loop, &f->io, f->fd, f->n_unsent > 0 ? (uint32_t)EPOLLOUT : 0,
			 on_front, f);
}

static void on_front(struct sb_io *io, uint32_t events)
{
	struct front *f = io->owner;

	if (events & (EPOLLHUP | EPOLLERR))
		front_gone(f);
	else
		send_waiting(f);
	if (f->fd >= 0 && io->active && front_watch(f) < 0)
		session_fail(f->ses, SB_FAIL_INTERNAL, "cannot watch the %s", f->name);
}

static void submit(struct bridge *b)
{
	struct front *f = b->front;

	if (f->n_unsent == UNSENT_MAX || !f->io.active) {
		finish(b);
		return;
	}
	b->slot = (f->head + f->n_unsent++) % UNSENT_MAX;
	f->unsent[b->slot] = b;
	b->queued = true;
	if (f->n_unsent == 1)
		send_waiting(f);
	if (f->n_unsent > 0 && f->io.active && front_watch(f) < 0)
		session_fail(f->ses, SB_FAIL_INTERNAL, "cannot watch the %s", f->name);
}

/* --- life --- */

/* Return: 0; -errno: this stream cannot be had, the session goes on. */
static int join(struct session *ses, struct bridge **ret)
{
	const int size = SEND_BUFFER;
	sb_autofree struct bridge *b = calloc(1, sizeof(*b));
	int sv[2];

	if (!b)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) /* less is slower, no more */
		(void)setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	b->ses = ses;
	b->fd = sv[0];
	b->gate_fd = sv[1];
	*ret = sb_take(&b);
	return 0;
}

int bridge_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind, uint32_t cmd)
{
	struct session *ses = sb_chan_owner(c);
	struct front *f = kind == SB_STREAM_SSH ? &ses->ssh : &ses->net;
	struct bridge *b = NULL;

	(void)cmd;
	if (f->fd < 0) /* the plan has no such thing, and the guest knows the plan */
		return -EBADMSG;
	if (join(ses, &b) < 0) {
		sb_stream_attach(s, &bridge_ops, NULL);
		sb_stream_close(s);
		return 0;
	}
	sb_stream_attach(s, &bridge_ops, b);
	b->s = s;
	b->front = f;
	b->next = ses->bridges;
	if (b->next)
		b->next->prev = b;
	ses->bridges = b;
	if (watch(b))
		submit(b);
	return 0;
}

int bridge_start(struct session *ses)
{
	int r = 0;

	ses->net.ses = ses->ssh.ses = ses;
	ses->net.name = "net gate";
	ses->net.type = SB_IPC_NET_STREAM;
	ses->ssh.name = "SSH relay";
	ses->ssh.type = SB_IPC_SSH_STREAM;
	if (ses->net.fd >= 0)
		r = front_watch(&ses->net);
	if (r == 0 && ses->ssh.fd >= 0)
		r = front_watch(&ses->ssh);
	return r;
}

static void front_stop(struct front *f)
{
	sb_io_del(&f->io);
	sb_fd_close(&f->fd);
	f->n_unsent = 0;
}

void bridge_stop(struct session *ses)
{
	while (ses->bridges)
		finish(ses->bridges);
	front_stop(&ses->net);
	front_stop(&ses->ssh);
}
