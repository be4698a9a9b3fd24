#include "relay/dns_relay.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define REOPEN_NS 1000000000ULL
#define PER_TURN 64 /* datagrams of one socket */

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct sockaddr_in6))];
};

/* --- answers --- */

static void set_source(struct msghdr *m, const struct sb_dns_asker *who)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct in_pktinfo v4 = { 0 };
	struct in6_pktinfo v6 = { 0 };
	bool is_v4 = who->client.sa.sa_family == AF_INET;
	size_t len = is_v4 ? sizeof(v4) : sizeof(v6);

	memcpy(&v4.ipi_spec_dst, who->asked, sizeof(v4.ipi_spec_dst));
	memcpy(&v6.ipi6_addr, who->asked, sizeof(v6.ipi6_addr));
	m->msg_controllen = CMSG_SPACE(len);
	c->cmsg_level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = is_v4 ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), is_v4 ? (const void *)&v4 : (const void *)&v6, len);
}

static void answer(struct sb_dns_relay *d, uint16_t tag, const uint8_t *p, size_t len)
{
	struct sb_dns_asker who;
	union control ctl = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = &ctl, .msg_controllen = sizeof(ctl) };
	bool v4;

	if (sb_dns_tags_take(&d->tags, sb_now_ns(), tag, &who) < 0)
		return;
	v4 = who.client.sa.sa_family == AF_INET;
	m.msg_name = &who.client;
	m.msg_namelen = v4 ? sizeof(who.client.v4) : sizeof(who.client.v6);
	set_source(&m, &who);
	(void)sendmsg(d->io[v4 ? 0 : 1].fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void drop_stream(struct sb_dns_relay *d)
{
	d->stream = NULL;
	d->len = 0;
	d->open_after_ns = sb_now_ns() + REOPEN_NS;
	sb_dns_tags_clear(&d->tags);
}

static uint16_t get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* Frames as in wire/net_hello.h, cut anywhere. */
static size_t on_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct sb_dns_relay *d = sb_stream_owner(s);
	size_t left = len;

	while (left > 0) {
		size_t want = SB_NET_DNS_HEAD;
		size_t n;

		if (d->len >= SB_NET_DNS_HEAD)
			want += get_le16(d->in);
		n = SB_MIN(left, want - d->len);
		memcpy(d->in + d->len, p, n);
		d->len += n;
		p += n;
		left -= n;
		if (d->len < SB_NET_DNS_HEAD)
			break;
		want = get_le16(d->in);
		if (want == 0 || want > SB_NET_DNS_MAX) { /* not what the gate says */
			drop_stream(d);
			sb_stream_close(s);
			return len;
		}
		if (d->len == SB_NET_DNS_HEAD + want) {
			answer(d, get_le16(d->in + 2), d->in + SB_NET_DNS_HEAD, want);
			d->len = 0;
		}
	}
	return len;
}

static void on_eof(struct sb_stream *s)
{
	drop_stream(sb_stream_owner(s));
	sb_stream_close(s);
}

static void on_reset(struct sb_stream *s)
{
	drop_stream(sb_stream_owner(s));
}

static const struct sb_stream_ops ops = { .data = on_data, .eof = on_eof, .reset = on_reset };

/* --- questions --- */

static bool open_stream(struct sb_dns_relay *d)
{
	const struct sb_net_hello hello = { .kind = SB_NET_HELLO_DNS };
	uint8_t text[SB_NET_HELLO_LEN];

	if (d->stream)
		return true;
	if (!d->chan || sb_now_ns() < d->open_after_ns)
		return false;
	if (sb_stream_open(d->chan, SB_STREAM_NET, 0, &ops, d, &d->stream) < 0)
		return false;
	sb_net_hello_write(&hello, text);
	if (sb_stream_space(d->stream) >= sizeof(text) &&
	    sb_stream_write(d->stream, text, sizeof(text)) == sizeof(text))
		return true;
	sb_stream_close(d->stream);
	drop_stream(d);
	return false;
}

/* Return: 0; -ENOENT: the kernel did not say which address was asked. */
static int asked_address(struct msghdr *m, struct sb_dns_asker *who)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(who->asked, &info.ipi_addr, sizeof(info.ipi_addr));
			return 0;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(who->asked, &info.ipi6_addr, sizeof(info.ipi6_addr));
			return 0;
		}
	}
	return -ENOENT;
}

static void question(struct sb_dns_relay *d, const struct sb_dns_asker *who, uint8_t *frame,
		     size_t len)
{
	uint16_t tag;

	if (len == 0 || len > SB_NET_DNS_MAX || !open_stream(d))
		return;
	/* all of it or nothing: half a frame would make a mess of every later one */
	if (sb_stream_space(d->stream) < SB_NET_DNS_HEAD + len ||
	    sb_dns_tags_put(&d->tags, sb_now_ns(), who, &tag) < 0)
		return;
	frame[0] = (uint8_t)len;
	frame[1] = (uint8_t)(len >> 8);
	frame[2] = (uint8_t)tag;
	frame[3] = (uint8_t)(tag >> 8);
	len += SB_NET_DNS_HEAD;
	if (sb_stream_write(d->stream, frame, len) != len) {
		sb_stream_close(d->stream);
		drop_stream(d);
	}
}

static void on_datagram(struct sb_io *io, uint32_t events)
{
	struct sb_dns_relay *d = io->owner;
	uint8_t frame[SB_NET_DNS_HEAD + SB_NET_DNS_MAX + 1]; /* one more shows what is too long */

	(void)events;
	for (int i = 0; i < PER_TURN; i++) {
		struct sb_dns_asker who = { 0 };
		union control ctl;
		struct iovec iov = { .iov_base = frame + SB_NET_DNS_HEAD,
				     .iov_len = SB_NET_DNS_MAX + 1 };
		struct msghdr m = { .msg_name = &who.client, .msg_namelen = sizeof(who.client),
				    .msg_iov = &iov, .msg_iovlen = 1,
				    .msg_control = &ctl, .msg_controllen = sizeof(ctl) };
		ssize_t n = recvmsg(io->fd, &m, MSG_DONTWAIT);

		if (n < 0)
			return;
		if (asked_address(&m, &who) == 0)
			question(d, &who, frame, (size_t)n);
	}
}

int sb_dns_relay_init(struct sb_dns_relay *d, struct sb_loop *loop, int fd4, int fd6)
{
	int e;

	d->loop = loop;
	e = sb_io_set(loop, &d->io[0], fd4, EPOLLIN, on_datagram, d);
	if (e == 0 && fd6 >= 0)
		e = sb_io_set(loop, &d->io[1], fd6, EPOLLIN, on_datagram, d);
	if (e < 0)
		sb_io_del(&d->io[0]);
	return e;
}

void sb_dns_relay_channel(struct sb_dns_relay *d, struct sb_chan *c)
{
	d->chan = c;
	d->stream = NULL; /* of a dead channel; it is gone with it */
	d->len = 0;
	d->open_after_ns = 0;
}

void sb_dns_relay_done(struct sb_dns_relay *d)
{
	if (d->stream)
		sb_stream_close(d->stream);
	d->stream = NULL;
	sb_io_del(&d->io[0]);
	sb_io_del(&d->io[1]);
}
