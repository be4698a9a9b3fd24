#include "init/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"

#define ALIGN 4U       /* of messages and attributes */
#define ATTR_HEAD 4U
#define ANSWER_MAX 8192
#define TIMEOUT_S 10 /* the kernel answers within the send; loading a module takes a while */

void sb_nl_init(struct sb_nl *m)
{
	*m = (struct sb_nl){ 0 };
	sb_buf_init(&m->b, SB_NL_MAX);
}

void sb_nl_done(struct sb_nl *m)
{
	sb_buf_done(&m->b);
}

static void pad(struct sb_nl *m)
{
	static const uint8_t zero[ALIGN] = { 0 };

	sb_buf_add(&m->b, zero, -m->b.len % ALIGN);
}

void sb_nl_begin(struct sb_nl *m, uint16_t type, uint16_t flags, const void *head, size_t len)
{
	struct nlmsghdr h = {
		.nlmsg_type = type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = ++m->seq,
	};

	if (flags & NLM_F_ACK)
		m->acks++;
	m->msg = m->b.len;
	sb_buf_add(&m->b, &h, sizeof(h));
	sb_buf_add(&m->b, head, len);
	pad(m);
}

void sb_nl_end(struct sb_nl *m)
{
	uint32_t len = (uint32_t)(m->b.len - m->msg);

	if (sb_buf_error(&m->b) == 0)
		memcpy(m->b.data + m->msg, &len, sizeof(len)); /* nlmsg_len comes first */
}

void sb_nl_put(struct sb_nl *m, uint16_t type, const void *p, size_t len)
{
	struct nlattr a = { .nla_len = (uint16_t)(ATTR_HEAD + len), .nla_type = type };

	sb_buf_add(&m->b, &a, sizeof(a));
	sb_buf_add(&m->b, p, len);
	pad(m);
}

void sb_nl_put_str(struct sb_nl *m, uint16_t type, const char *s)
{
	sb_nl_put(m, type, s, strlen(s) + 1);
}

void sb_nl_put_be32(struct sb_nl *m, uint16_t type, uint32_t v)
{
	const uint8_t p[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
			       (uint8_t)v };

	sb_nl_put(m, type, p, sizeof(p));
}

void sb_nl_open(struct sb_nl *m, uint16_t type)
{
	sb_assert(m->depth < SB_NL_DEPTH);
	m->nest[m->depth++] = m->b.len;
	sb_nl_put(m, (uint16_t)(type | NLA_F_NESTED), NULL, 0);
}

void sb_nl_close(struct sb_nl *m)
{
	size_t at = m->nest[--m->depth];
	uint16_t len = (uint16_t)(m->b.len - at);

	if (sb_buf_error(&m->b) == 0)
		memcpy(m->b.data + at, &len, sizeof(len)); /* nla_len comes first */
}

int sb_nl_socket(int protocol, int *ret)
{
	const struct timeval tv = { .tv_sec = TIMEOUT_S };
	sb_autofd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0)
		return -errno;
	*ret = sb_fd_take(&fd);
	return 0;
}

int sb_nl_answers(const uint8_t *p, size_t len, uint32_t *ret_seq)
{
	int n = 0;

	while (len >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr h;
		struct nlmsgerr e;

		memcpy(&h, p, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > len)
			return -EBADMSG;
		if (h.nlmsg_type == NLMSG_ERROR) {
			if (h.nlmsg_len < sizeof(h) + sizeof(e))
				return -EBADMSG;
			memcpy(&e, p + sizeof(h), sizeof(e));
			if (e.error != 0) {
				*ret_seq = h.nlmsg_seq;
				return e.error < 0 ? e.error : -EBADMSG;
			}
			n++;
		}
		if (NLMSG_ALIGN(h.nlmsg_len) >= len)
			break;
		p += NLMSG_ALIGN(h.nlmsg_len);
		len -= NLMSG_ALIGN(h.nlmsg_len);
	}
	return n;
}

int sb_nl_send(int fd, const struct sb_nl *m, uint32_t *ret_seq)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	_Alignas(8) uint8_t answer[ANSWER_MAX];
	unsigned int got = 0;

	*ret_seq = 0;
	if (sb_buf_error(&m->b) < 0)
		return sb_buf_error(&m->b);
	if (sendto(fd, m->b.data, m->b.len, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) != (ssize_t)m->b.len)
		return errno ? -errno : -EIO;
	while (got < m->acks) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, answer, sizeof(answer), 0, (struct sockaddr *)&from,
				     &from_len);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (from.nl_pid != 0) /* not the kernel */
			continue;
		r = sb_nl_answers(answer, (size_t)n, ret_seq);
		if (r < 0)
			return r;
		got += (unsigned int)r;
	}
	return 0;
}
