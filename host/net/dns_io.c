/*
 * Theory of operation. Datagrams are answered from the address that was asked, which the kernel
 * tells with each (IP_PKTINFO, IPV6_PKTINFO). Streams carry frames: TCP {be16 length}, the
 * micro-VM's relay {le16 length, le16 tag}. A stream is not read while much of its output waits or
 * many of its questions are with the resolvers. Of TCP connections there are TCP_MAX; one more
 * ends the one that is idle longest, so that idle ones keep nobody out.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/fd.h"
#include "net/dns_i.h"

#define TCP_MAX 64
#define TAGGED_MAX 4
#define UDP_MAX 8
#define UDP_TURN 32 /* datagrams of one turn */
#define QUERY_MAX SB_NET_DNS_MAX
#define OUT_HIGH 65536U /* no further question before some of it went */
#define OUT_CAP (OUT_HIGH + DNS_ANSWER_MAX + SB_NET_DNS_HEAD)
#define CONN_PENDING_MAX 16
#define IDLE_NS 30000000000U
#define SWEEP_NS 5000000000U

struct dns_udp {
	struct dns_udp *next;
	struct dns *d;
	int fd;
	struct sb_io io;
};

struct dns_conn {
	struct dns_conn *next;
	struct dns *d;
	int fd;
	struct sb_io io;
	bool tagged;
	bool eof;
	bool broken;
	bool busy; /* inside conn_run: it is freed there */
	size_t n_pending;
	uint64_t last_ns;
	struct sb_buf out;
	size_t in_len;
	uint8_t in[SB_NET_DNS_HEAD + QUERY_MAX];
};

/* --- datagrams --- */

static void local_from(struct msghdr *mh, struct dns_from *from)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo pi;

			memcpy(&pi, CMSG_DATA(c), sizeof(pi));
			sb_addr_from_v4((const uint8_t *)&pi.ipi_addr, &from->local);
			from->has_local = true;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo pi;

			memcpy(&pi, CMSG_DATA(c), sizeof(pi));
			memcpy(from->local.b, &pi.ipi6_addr, sizeof(from->local.b));
			from->has_local = true;
		}
	}
}

static void udp_send(const struct dns_from *from, const uint8_t *msg, size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = len };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} ctl = { .space = { 0 } };
	struct msghdr mh = { .msg_name = (void *)(uintptr_t)&from->peer,
			     .msg_namelen = from->peer_len,
			     .msg_iov = &iov,
			     .msg_iovlen = 1 };
	struct in_pktinfo p4 = { 0 };
	struct in6_pktinfo p6 = { 0 };
	bool v6 = from->peer.ss_family == AF_INET6;
	struct cmsghdr *c;

	if (from->has_local) {
		mh.msg_control = ctl.space;
		mh.msg_controllen = v6 ? CMSG_SPACE(sizeof(p6)) : CMSG_SPACE(sizeof(p4));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
		c->cmsg_type = v6 ? IPV6_PKTINFO : IP_PKTINFO;
		c->cmsg_len = v6 ? CMSG_LEN(sizeof(p6)) : CMSG_LEN(sizeof(p4));
		memcpy(&p6.ipi6_addr, from->local.b, sizeof(p6.ipi6_addr));
		memcpy(&p4.ipi_spec_dst, from->local.b + 12, sizeof(p4.ipi_spec_dst));
		memcpy(CMSG_DATA(c), v6 ? (const void *)&p6 : (const void *)&p4,
		       v6 ? sizeof(p6) : sizeof(p4));
	}
	/* what does not go is lost, as datagrams are */
	(void)sendmsg(from->udp->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_udp(struct sb_io *io, uint32_t events)
{
	struct dns_udp *u = io->owner;

	(void)events;
	for (int i = 0; i < UDP_TURN; i++) {
		struct dns_from from = { .udp = u, .datagram = true };
		uint8_t buf[QUERY_MAX];
		struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
		union {
			struct cmsghdr align;
			char space[256];
		} ctl;
		struct msghdr mh = { .msg_name = &from.peer,
				     .msg_namelen = sizeof(from.peer),
				     .msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = ctl.space,
				     .msg_controllen = sizeof(ctl.space) };
		ssize_t n = recvmsg(u->fd, &mh, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EBADF || errno == ENOTSOCK))
			return;
		if (n < 0)
			continue; /* an earlier answer's port unreachable, for instance */
		from.peer_len = mh.msg_namelen;
		local_from(&mh, &from);
		/* a longer one than any question may be is counted as malformed */
		dns_question(u->d, &from, buf, (mh.msg_flags & MSG_TRUNC) ? 0 : (size_t)n);
	}
}

int dns_add_udp(struct dns *d, int *fd)
{
	struct dns_udp *u;
	size_t n = 0;
	int r;

	for (u = d->udps; u; u = u->next)
		n++;
	if (n >= UDP_MAX)
		return -EMFILE;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->d = d;
	r = sb_io_set(d->g->loop, &u->io, *fd, EPOLLIN, on_udp, u);
	if (r < 0) {
		free(u);
		return r;
	}
	u->fd = sb_fd_take(fd);
	u->next = d->udps;
	d->udps = u;
	return 0;
}

/* --- streams --- */

static void conn_free(struct dns_conn *c)
{
	struct dns_conn **at = &c->d->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	dns_forget(c->d, c);
	sb_io_del(&c->io);
	sb_fd_close(&c->fd);
	sb_buf_done(&c->out);
	free(c);
}

/* The next whole frame. Return: 1, 0 = not yet there; -EBADMSG */
static int frame_next(const struct dns_conn *c, size_t at, size_t *ret_head, size_t *ret_len,
		      uint16_t *ret_tag)
{
	const uint8_t *p = c->in + at;
	size_t head = c->tagged ? SB_NET_DNS_HEAD : 2;
	size_t have = c->in_len - at;
	size_t len;

	if (have < head)
		return 0;
	len = c->tagged ? (size_t)p[0] | (size_t)p[1] << 8 : (size_t)p[0] << 8 | p[1];
	if (len == 0 || len > QUERY_MAX)
		return -EBADMSG;
	if (have - head < len)
		return 0;
	*ret_head = head;
	*ret_len = len;
	*ret_tag = (uint16_t)(c->tagged ? p[2] | p[3] << 8 : 0);
	return 1;
}

static bool throttled(const struct dns_conn *c)
{
	return c->out.len > OUT_HIGH || c->n_pending >= CONN_PENDING_MAX;
}

static void conn_frames(struct dns_conn *c)
{
	size_t at = 0;

	while (!c->broken && !throttled(c)) {
		struct dns_from from = { .conn = c, .datagram = c->tagged };
		size_t head;
		size_t len;
		int r = frame_next(c, at, &head, &len, &from.tag);

		if (r < 0)
			c->broken = true;
		if (r <= 0)
			break;
		dns_question(c->d, &from, c->in + at + head, len);
		at += head + len;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
}

static void conn_write(struct dns_conn *c)
{
	while (c->out.len > 0 && !c->broken) {
		ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			c->broken = errno != EAGAIN;
			return;
		}
		sb_buf_drop(&c->out, (size_t)n);
		c->last_ns = sb_now_ns();
	}
}

static void conn_read(struct dns_conn *c)
{
	ssize_t n;

	if (c->eof || c->broken || throttled(c) || c->in_len == sizeof(c->in))
		return;
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n > 0) {
		c->in_len += (size_t)n;
		c->last_ns = sb_now_ns();
	} else if (n == 0) {
		c->eof = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		c->broken = true;
	}
}

/* Do what can be done. The connection may be gone afterwards. */
static void conn_run(struct dns_conn *c)
{
	uint32_t want;

	if (c->busy)
		return;
	c->busy = true;
	conn_frames(c);
	conn_write(c);
	if (!throttled(c)) /* what waited for room */
		conn_frames(c);
	conn_write(c);
	c->busy = false;
	if (c->eof && c->out.len == 0 && c->n_pending == 0) {
		if (shutdown(c->fd, SHUT_WR) < 0)
			c->broken = true;
		c->broken = true;
	}
	want = (c->eof || throttled(c) ? 0U : EPOLLIN) | (c->out.len > 0 ? EPOLLOUT : 0U);
	if (c->broken || sb_io_want(&c->io, want) < 0)
		conn_free(c);
}

static void on_conn(struct sb_io *io, uint32_t events)
{
	struct dns_conn *c = io->owner;

	if (events & EPOLLIN)
		conn_read(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		c->broken = true; /* nobody reads the answers any more */
	conn_run(c);
}

static void on_sweep(struct sb_timer *t)
{
	struct dns *d = t->owner;
	uint64_t now = sb_now_ns();
	struct dns_conn *next;
	bool any = false;

	for (struct dns_conn *c = d->conns; c; c = next) {
		next = c->next;
		if (!c->tagged && now - c->last_ns > IDLE_NS) {
			(void)shutdown(c->fd, SHUT_WR);
			conn_free(c);
		} else {
			any = true;
		}
	}
	if (any)
		sb_timer_set(d->g->loop, &d->sweep, SWEEP_NS, on_sweep, d);
}

/* Room for one more: the longest idle one goes. */
static void make_room(struct dns *d, bool tagged)
{
	struct dns_conn *oldest = NULL;
	size_t n = 0;

	for (struct dns_conn *c = d->conns; c; c = c->next) {
		if (c->tagged != tagged)
			continue;
		n++;
		if (!c->busy && (!oldest || c->last_ns < oldest->last_ns))
			oldest = c;
	}
	if (n >= (size_t)(tagged ? TAGGED_MAX : TCP_MAX) && oldest)
		conn_free(oldest);
}

static int conn_add(struct dns *d, int *fd, bool tagged)
{
	struct dns_conn *c;
	int r;

	make_room(d, tagged);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->d = d;
	c->tagged = tagged;
	c->last_ns = sb_now_ns();
	sb_buf_init(&c->out, OUT_CAP);
	r = sb_io_set(d->g->loop, &c->io, *fd, EPOLLIN, on_conn, c);
	if (r < 0) {
		free(c);
		return r;
	}
	c->fd = sb_fd_take(fd);
	c->next = d->conns;
	d->conns = c;
	if (!d->sweep.active)
		sb_timer_set(d->g->loop, &d->sweep, SWEEP_NS, on_sweep, d);
	return 0;
}

int dns_add_tagged(struct dns *d, int *fd)
{
	return conn_add(d, fd, true);
}

int dns_add_tcp(struct dns *d, int *fd)
{
	return conn_add(d, fd, false);
}

/* --- answers --- */

static void conn_send(const struct dns_from *from, const uint8_t *msg, size_t len)
{
	struct dns_conn *c = from->conn;

	if (len == 0 || len > (c->tagged ? (size_t)SB_NET_DNS_MAX : (size_t)DNS_ANSWER_MAX))
		return;
	if (c->tagged) {
		sb_buf_add_le16(&c->out, (uint16_t)len);
		sb_buf_add_le16(&c->out, from->tag);
	} else {
		sb_buf_add_u8(&c->out, (uint8_t)(len >> 8));
		sb_buf_add_u8(&c->out, (uint8_t)len);
	}
	sb_buf_add(&c->out, msg, len);
	if (sb_buf_error(&c->out))
		c->broken = true;
}

void dns_io_send(const struct dns_from *from, const uint8_t *msg, size_t len)
{
	if (from->udp)
		udp_send(from, msg, len);
	else
		conn_send(from, msg, len);
}

void dns_io_pending(const struct dns_from *from, int change)
{
	struct dns_conn *c = from->conn;

	if (!c)
		return;
	if (change > 0) {
		c->n_pending++;
	} else {
		c->n_pending--;
		conn_run(c);
	}
}

void dns_io_done(struct dns *d)
{
	sb_timer_del(&d->sweep);
	while (d->conns)
		conn_free(d->conns);
	while (d->udps) {
		struct dns_udp *u = d->udps;

		d->udps = u->next;
		sb_io_del(&u->io);
		sb_fd_close(&u->fd);
		free(u);
	}
}
