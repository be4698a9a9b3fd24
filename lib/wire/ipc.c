#include "wire/ipc.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"

#define HEADER 8

int sb_ipc_send(int sock, uint16_t type, const void *data, size_t len, const int *fds,
		size_t n_fds)
{
	uint8_t head[HEADER] = {
		(uint8_t)type,	(uint8_t)(type >> 8),  (uint8_t)n_fds,	     0,
		(uint8_t)len,	(uint8_t)(len >> 8),   (uint8_t)(len >> 16), (uint8_t)(len >> 24),
	};
	struct iovec iov[2] = {
		{ .iov_base = head, .iov_len = HEADER },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SB_IPC_MAX_FDS * sizeof(int))];
	} ctl = { .space = { 0 } };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = len > 0 ? 2 : 1 };

	if (len > SB_IPC_MAX_LEN || n_fds > SB_IPC_MAX_FDS)
		return -EMSGSIZE;
	if (n_fds > 0) {
		struct cmsghdr *c;

		mh.msg_control = ctl.space;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	for (;;) {
		ssize_t n = sendmsg(sock, &mh, MSG_NOSIGNAL);

		if (n >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

static void take_fds(struct msghdr *mh, struct sb_ipc_msg *msg, bool *too_many)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (msg->n_fds < SB_IPC_MAX_FDS) {
				msg->fds[msg->n_fds++] = fd;
			} else {
				*too_many = true;
				sb_fd_close(&fd);
			}
		}
	}
}

int sb_ipc_recv(int sock, struct sb_ipc_msg *msg)
{
	uint8_t head[HEADER];
	struct iovec iov[2] = {
		{ .iov_base = head, .iov_len = HEADER },
		{ .iov_base = msg->data, .iov_len = SB_IPC_MAX_LEN },
	};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SB_IPC_MAX_FDS * sizeof(int))];
	} ctl;
	struct msghdr mh = { .msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = ctl.space,
			     .msg_controllen = sizeof(ctl.space) };
	struct sb_rd rd = { .p = head, .len = HEADER };
	bool too_many = false;
	uint16_t want_fds;
	ssize_t n;

	do {
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	msg->n_fds = 0;
	take_fds(&mh, msg, &too_many);
	if (n == 0) {
		sb_ipc_msg_done(msg);
		return SB_IPC_EOF;
	}
	msg->type = sb_rd_le16(&rd);
	want_fds = sb_rd_le16(&rd);
	msg->len = sb_rd_le32(&rd);
	if ((mh.msg_flags & MSG_CTRUNC) != 0 && !too_many && msg->n_fds < want_fds &&
	    want_fds <= SB_IPC_MAX_FDS) {
		sb_ipc_msg_done(msg);
		return -EMFILE;
	}
	if (n < HEADER || (size_t)n - HEADER != msg->len || too_many || want_fds != msg->n_fds ||
	    (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		sb_ipc_msg_done(msg);
		return -EBADMSG;
	}
	return 0;
}

void sb_ipc_msg_done(struct sb_ipc_msg *msg)
{
	for (size_t i = 0; i < SB_MIN(msg->n_fds, (size_t)SB_IPC_MAX_FDS); i++)
		sb_fd_close(&msg->fds[i]);
	msg->n_fds = 0;
	explicit_bzero(msg->data, sizeof(msg->data));
}

const void *sb_ipc_get(const struct sb_ipc_msg *msg, size_t len, size_t n_fds)
{
	return msg->len == len && msg->n_fds == n_fds ? msg->data : NULL;
}

size_t sb_ipc_get_events(const struct sb_ipc_msg *msg, const struct sb_ipc_net_event **ret)
{
	const size_t one = sizeof(struct sb_ipc_net_event);

	_Static_assert(SB_IPC_NET_EVENTS * sizeof(struct sb_ipc_net_event) <= SB_IPC_MAX_LEN,
		       "a whole message of events");
	if (msg->type != SB_IPC_NET_EVENT || msg->n_fds != 0 || msg->len % one != 0)
		return 0;
	*ret = (const struct sb_ipc_net_event *)(const void *)msg->data;
	return msg->len / one;
}

const struct sb_ipc_exec_event *sb_ipc_get_exec_event(const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_exec_event *e = sb_ipc_get(msg, sizeof(*e), 0);
	uint32_t words = 0;

	if (msg->type != SB_IPC_EXEC_EVENT || !e || e->count == 0 ||
	    e->argv_len > sizeof(e->argv) || !memchr(e->why, 0, sizeof(e->why)) ||
	    !memchr(e->path, 0, sizeof(e->path)))
		return NULL;
	for (size_t i = 0; i < e->argv_len; i++)
		words += e->argv[i] == '\0';
	if (words != e->n_argv || (e->argv_len > 0 && e->argv[e->argv_len - 1] != '\0'))
		return NULL;
	return e;
}

const struct sb_ipc_ssh_event *sb_ipc_get_ssh_event(const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_ssh_event *e = sb_ipc_get(msg, sizeof(*e), 0);

	if (msg->type != SB_IPC_SSH_EVENT || !e || e->count == 0 || e->kind < SB_SSH_EV_SIGN ||
	    e->kind > SB_SSH_EV_LOST || !memchr(e->host, 0, sizeof(e->host)) ||
	    !memchr(e->user, 0, sizeof(e->user)))
		return NULL;
	return e;
}
