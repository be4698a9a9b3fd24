/*
 * Theory of operation. A connection is a socket and a stream. Each direction is open, blocked
 * (the other side has no room; nothing is read until it has) or done (its end was passed on). The
 * connection ends when both are done, or as a whole by a reset from either side, which the other
 * side sees as one. Bytes go from the socket straight into the channel's queue and from the
 * channel's record straight into the socket; what a slow reader leaves waits in the stream's
 * window, which bounds it.
 *
 * A callback of the channel may end the connection that is being served: it is then only marked,
 * and freed by who holds it.
 */
#include "relay/net_relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/net_addr.h"
#include "relay/dns_relay.h"
#include "wire/net_hello.h"

#define SSH 2                    /* index of its listening socket */
#define READ_BUDGET (256U << 10) /* bytes per event, so that one flood starves nobody */
#define PER_TURN 64              /* connections accepted per event */
#define PAUSE_NS 100000000ULL    /* without descriptors or memory */
#define SPARE_FDS 256U           /* for everything that is no connection */

struct link {
	struct sb_net_relay *r;
	struct link *next;
	struct link *prev;
	struct sb_stream *s; /* NULL: gone */
	struct sb_io io;
	int fd;           /* owned; -1: ended */
	uint8_t hello;    /* bytes of the hello that were sent; SSH has none */
	bool up_blocked;  /* the channel has no room */
	bool up_done;     /* the program's end of file was passed on */
	bool down_blocked; /* the socket has no room */
	bool down_done;
	uint8_t held; /* callers that are serving it: not to be freed */
};

struct sb_net_relay {
	struct sb_loop *loop;
	struct sb_chan *chan; /* borrowed; NULL: none */
	struct link *links;
	struct sb_io listen[3]; /* tcp4, tcp6, the SSH agent's */
	int fd[3];
	struct sb_timer pause;
	struct sb_dns_relay dns;
};

static void reset_fd(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	sb_fd_close(fd);
}

enum ending { ORDERLY = 0, RESET = 1 };

static void end(struct link *l, enum ending how)
{
	struct sb_stream *s = l->s;

	if (l->fd < 0)
		return;
	sb_io_del(&l->io);
	if (how == RESET)
		reset_fd(&l->fd);
	else
		sb_fd_close(&l->fd);
	if (l->prev)
		l->prev->next = l->next;
	else
		l->r->links = l->next;
	if (l->next)
		l->next->prev = l->prev;
	l->s = NULL;
	if (s)
		sb_stream_close(s);
	if (l->held == 0)
		free(l);
}

/* Hold a link over calls that may end it. */
static void hold(struct link *l)
{
	l->held++;
}

/* Return: whether it is still there. */
static bool let_go(struct link *l)
{
	l->held--;
	if (l->fd >= 0)
		return true;
	if (l->held == 0)
		free(l);
	return false;
}

static void on_event(struct sb_io *io, uint32_t events);

/* Wait for what can go on; the end when nothing is left to do. */
static void settle(struct link *l)
{
	uint32_t want = (l->up_done || l->up_blocked ? 0U : (uint32_t)EPOLLIN) |
			(l->down_blocked ? (uint32_t)EPOLLOUT : 0U);

	if (l->fd < 0)
		return;
	if (l->up_done && l->down_done)
		end(l, ORDERLY);
	else if (sb_io_set(l->r->loop, &l->io, l->fd, want, on_event, l) < 0)
		end(l, RESET);
}

/* --- from the program to the channel --- */

/* Where the program wanted to go: all addresses are local, so it is the socket's own name. */
static int destination(int fd, struct sb_net_hello *ret)
{
	union sb_dns_addr a = { 0 };
	socklen_t len = sizeof(a);
	struct sb_addr addr = { { 0 } };

	if (getsockname(fd, &a.sa, &len) < 0)
		return -errno;
	ret->kind = SB_NET_HELLO_TCP;
	if (a.sa.sa_family == AF_INET) {
		uint8_t v4[4];

		memcpy(v4, &a.v4.sin_addr, sizeof(v4));
		sb_addr_from_v4(v4, &addr);
		memcpy(ret->addr, addr.b, sizeof(ret->addr));
		ret->port = ntohs(a.v4.sin_port);
	} else {
		memcpy(ret->addr, &a.v6.sin6_addr, sizeof(ret->addr));
		ret->port = ntohs(a.v6.sin6_port);
	}
	return 0;
}

/* Return: 1 when it is through, 0 when the channel has no room; -errno. */
static int send_hello(struct link *l)
{
	struct sb_net_hello h = { 0 };
	uint8_t text[SB_NET_HELLO_LEN];
	int e;

	if (l->hello == sizeof(text))
		return 1;
	e = destination(l->fd, &h);
	if (e < 0)
		return e;
	sb_net_hello_write(&h, text);
	while (l->hello < sizeof(text) && sb_stream_space(l->s) > 0)
		l->hello = (uint8_t)(l->hello + sb_stream_write(l->s, text + l->hello,
								sizeof(text) - l->hello));
	return l->hello == sizeof(text) ? 1 : 0;
}

/* Return: whether there may be more. */
static bool read_some(struct link *l, size_t *budget)
{
	void *p;
	size_t room = sb_stream_reserve(l->s, &p);
	ssize_t n;

	if (room == 0) {
		l->up_blocked = true; /* until writable() */
		return false;
	}
	n = read(l->fd, p, SB_MIN(room, *budget));
	sb_stream_commit(l->s, n > 0 ? (size_t)n : 0);
	if (n > 0) {
		*budget -= (size_t)n;
		return *budget > 0;
	}
	if (n == 0) {
		l->up_done = true;
		sb_stream_send_eof(l->s);
		return false;
	}
	if (errno == EINTR)
		return true;
	if (errno != EAGAIN)
		end(l, RESET);
	return false;
}

static void pump(struct link *l)
{
	size_t budget = READ_BUDGET;
	int e;

	hold(l);
	e = send_hello(l);
	if (e < 0)
		end(l, RESET);
	l->up_blocked = e == 0;
	while (l->fd >= 0 && !l->up_done && !l->up_blocked && read_some(l, &budget))
		continue;
	if (let_go(l))
		settle(l);
}

/* --- from the channel to the program --- */

static size_t on_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct link *l = sb_stream_owner(s);
	size_t done = 0;

	while (done < len) {
		ssize_t n = send(l->fd, p + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			done += (size_t)n;
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n == 0 || errno == EAGAIN) {
			l->down_blocked = true;
			settle(l);
			return done;
		} else { /* the program closed without reading */
			end(l, RESET);
			return len;
		}
	}
	return len;
}

static void on_eof(struct sb_stream *s)
{
	struct link *l = sb_stream_owner(s);

	l->down_done = true;
	if (shutdown(l->fd, SHUT_WR) < 0)
		end(l, RESET);
	else
		settle(l);
}

static void on_reset(struct sb_stream *s)
{
	struct link *l = sb_stream_owner(s);

	l->s = NULL;
	end(l, RESET);
}

static void on_writable(struct sb_stream *s)
{
	struct link *l = sb_stream_owner(s);

	if (l->up_blocked)
		pump(l);
}

static const struct sb_stream_ops stream_ops = {
	.data = on_data, .eof = on_eof, .reset = on_reset, .writable = on_writable,
};

static void on_event(struct sb_io *io, uint32_t events)
{
	struct link *l = io->owner;

	if (events & EPOLLERR) {
		end(l, RESET);
		return;
	}
	hold(l);
	if ((events & EPOLLOUT) && l->down_blocked) {
		l->down_blocked = false;
		sb_stream_resume(l->s);
	}
	if (!let_go(l))
		return;
	if ((events & (EPOLLIN | EPOLLHUP)) && !l->up_blocked && !l->up_done)
		pump(l);
	else if ((events & EPOLLHUP) && !(events & EPOLLOUT))
		sb_io_del(io); /* would be told again and again; settle() brings it back */
	else
		settle(l);
}

/* --- connections --- */

static void on_pause_over(struct sb_timer *t);
static void on_connection(struct sb_io *io, uint32_t events);

static int listen_again(struct sb_net_relay *r)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(r->listen); i++) {
		int e = r->fd[i] < 0 ? 0 : sb_io_set(r->loop, &r->listen[i], r->fd[i], EPOLLIN,
						     on_connection, r);

		if (e < 0)
			return e;
	}
	return 0;
}

/* Connections wait in the kernel's queue meanwhile. */
static void pause_listening(struct sb_net_relay *r)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(r->listen); i++)
		sb_io_del(&r->listen[i]);
	sb_timer_set(r->loop, &r->pause, PAUSE_NS, on_pause_over, r);
}

static void on_pause_over(struct sb_timer *t)
{
	struct sb_net_relay *r = t->owner;

	if (listen_again(r) < 0)
		pause_listening(r);
}

static void take(struct sb_net_relay *r, int *fd, bool ssh)
{
	enum sb_stream_kind kind = ssh ? SB_STREAM_SSH : SB_STREAM_NET;
	struct link *l = calloc(1, sizeof(*l));

	if (!l || !r->chan || sb_stream_open(r->chan, kind, 0, &stream_ops, l, &l->s) < 0) {
		free(l);
		reset_fd(fd);
		return;
	}
	l->r = r;
	l->hello = ssh ? SB_NET_HELLO_LEN : 0;
	l->fd = sb_fd_take(fd);
	l->next = r->links;
	if (l->next)
		l->next->prev = l;
	r->links = l;
	pump(l);
}

static void on_connection(struct sb_io *io, uint32_t events)
{
	struct sb_net_relay *r = io->owner;

	(void)events;
	for (int i = 0; i < PER_TURN; i++) {
		int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			take(r, &fd, io == &r->listen[SSH]);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			sb_debug("no descriptor for a connection: %s", strerror(errno));
			pause_listening(r);
			return;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static void raise_file_limit(uint32_t max)
{
	struct rlimit rl;
	rlim_t want = (rlim_t)max + SPARE_FDS;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur >= want)
		return;
	rl.rlim_cur = want;
	rl.rlim_max = SB_MAX(rl.rlim_max, want);
	if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
		sb_log("the file limit stays low: %s", strerror(errno));
}

int sb_net_relay_new(struct sb_loop *loop, const int fd[4], int ssh, uint32_t max,
		     struct sb_net_relay **ret)
{
	struct sb_net_relay *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->loop = loop;
	r->fd[0] = fd ? fd[0] : -1;
	r->fd[1] = fd ? fd[1] : -1;
	r->fd[SSH] = ssh;
	raise_file_limit(max);
	e = listen_again(r);
	if (e == 0 && fd)
		e = sb_dns_relay_init(&r->dns, loop, fd[2], fd[3]);
	if (e < 0) {
		(void)sb_net_relay_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

static void end_all(struct sb_net_relay *r, bool streams_gone)
{
	for (struct link *l = r->links, *next; l; l = next) {
		next = l->next;
		if (streams_gone)
			l->s = NULL;
		end(l, RESET);
	}
}

void sb_net_relay_channel(struct sb_net_relay *r, struct sb_chan *c)
{
	r->chan = c;
	end_all(r, true);
	sb_dns_relay_channel(&r->dns, c);
}

struct sb_net_relay *sb_net_relay_free(struct sb_net_relay *r)
{
	if (!r)
		return NULL;
	end_all(r, false);
	sb_dns_relay_done(&r->dns);
	sb_timer_del(&r->pause);
	for (size_t i = 0; i < SB_ARRAY_LEN(r->listen); i++)
		sb_io_del(&r->listen[i]);
	free(r);
	return NULL;
}
