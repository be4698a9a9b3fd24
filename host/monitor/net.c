/*
 * The monitor's side of the net gate. Most commands never use the network, so the gate is started
 * when somebody first asks for it: the front socket (micro-VM) or one of the sandbox's listening
 * sockets (namespace) becomes readable, or a viewer comes. Until then connections wait in the
 * backlog, and nothing is read here. A gate that cannot be started ends the session. Its events go on to the command line, as they come: when the command line does not
 * take one, the gate is not read until it does, and the gate merges and counts meanwhile. So a stuck
 * reader costs no memory here and never blocks the monitor.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "audit.h"
#include "base/fd.h"
#include "base/log.h"
#include "monitor.h"

#define DRAIN_MAX 4096 /* messages of a gate that has ended; its socket holds fewer */

/* Return: whether the gate may be read on. */
static bool pass_events(struct monitor *m, const struct sb_ipc_net_event *ev, size_t n)
{
	int r = m->cli_gone ? 0 : sb_ipc_send(m->cli, SB_IPC_NET_EVENT, ev, n * sizeof(*ev), NULL, 0);

	if (r == -EAGAIN) {
		memmove(m->held, ev, n * sizeof(*ev));
		m->n_held = n;
		return false;
	}
	if (r < 0)
		sb_debug("events were lost: %s", strerror(-r));
	return true;
}

static bool pass_held(struct monitor *m)
{
	size_t n = m->n_held;

	m->n_held = 0;
	return n == 0 || pass_events(m, m->held, n);
}

/* Return: 0; 1 = held; -EBADMSG. */
static int on_gate_message(struct monitor *m, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_net_event *ev;
	const void *p;
	size_t n;

	switch (msg->type) {
	case SB_IPC_NET_UP:
		if (!sb_ipc_get(msg, 0, 0) || m->gate_up)
			return -EBADMSG;
		m->gate_up = true;
		return 0;
	case SB_IPC_NET_EVENT:
		n = sb_ipc_get_events(msg, &ev);
		if (n == 0)
			return -EBADMSG;
		for (size_t i = 0; i < n; i++)
			mon_audit_net(m, &ev[i]);
		return pass_events(m, ev, n) ? 0 : 1;
	case SB_IPC_GATE_PENDING:
		return mon_pending_net(m, msg);
	case SB_IPC_APPR_ASK:
		return mon_ask(m, 1, msg);
	case SB_IPC_FAILED: {
		struct sb_ipc_failed f;

		p = sb_ipc_get(msg, sizeof(f), 0);
		if (!p)
			return -EBADMSG;
		memcpy(&f, p, sizeof(f));
		f.text[sizeof(f.text) - 1] = '\0';
		if (f.fail < SB_FAIL_PLAN || f.fail > SB_FAIL_INTERNAL)
			f.fail = SB_FAIL_INTERNAL;
		mon_end(m, f.fail, f.text[0] ? f.text : "the net gate failed");
		return 0;
	}
	default:
		return -EBADMSG;
	}
}

static void gate_done(struct monitor *m)
{
	sb_io_del(&m->gate_io);
	sb_fd_close(&m->gate);
}

static void on_gate(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(m->gate, &msg);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r == 0) {
		r = on_gate_message(m, &msg);
		if (r == 0)
			return;
		if (r == 1) {
			sb_io_del(&m->gate_io); /* not even its end until there is room */
			if (sb_io_want(&m->cli_io, EPOLLIN | EPOLLOUT) == 0)
				return;
			r = -EIO;
		}
	}
	gate_done(m);
	if (r == SB_IPC_EOF && m->gate_child.pid > 0)
		return; /* its end is told by its descriptor, with the reason */
	if (m->state < MON_REAPING)
		mon_end(m, SB_FAIL_INTERNAL, "the net gate sent a malformed message");
}

void mon_gate_resume(struct monitor *m)
{
	if (m->n_held == 0 || !pass_held(m))
		return;
	if (!m->cli_gone && sb_io_want(&m->cli_io, EPOLLIN) < 0)
		sb_debug("the command line's socket cannot be watched");
	if (m->gate >= 0 && sb_io_set(m->loop, &m->gate_io, m->gate, EPOLLIN, on_gate, m) < 0)
		mon_end(m, SB_FAIL_INTERNAL, "the net gate cannot be watched");
}

static void listeners_done(struct monitor *m)
{
	for (size_t i = 0; i < m->n_listeners; i++) {
		sb_io_del(&m->listener_io[i]);
		sb_fd_close(&m->listeners[i]);
	}
	m->n_listeners = 0;
	sb_io_del(&m->front_io);
	sb_fd_close(&m->front);
}

static void viewers_done(struct monitor *m)
{
	sb_io_del(&m->viewers_io);
	if (m->viewers >= 0 && unlinkat(m->session_dir, "net.sock", 0) < 0)
		sb_debug("net.sock stays: %s", strerror(errno));
	sb_fd_close(&m->viewers);
}

void mon_gate_leave(struct monitor *m)
{
	viewers_done(m);
	listeners_done(m);
	if (m->gate >= 0 && shutdown(m->gate, SHUT_WR) < 0)
		mon_kill(&m->gate_child);
}

void mon_gate_drain(struct monitor *m)
{
	viewers_done(m);
	listeners_done(m);
	sb_io_del(&m->gate_io);
	if (m->gate < 0)
		return;
	if (!m->cli_gone && sb_fd_set_nonblock(m->cli, false) == 0)
		(void)pass_held(m);
	for (int i = 0; i < DRAIN_MAX; i++) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_net_event *ev;
		size_t n;

		if (sb_ipc_recv(m->gate, &msg) != 0)
			break;
		n = sb_ipc_get_events(&msg, &ev);
		for (size_t k = 0; k < n; k++)
			mon_audit_net(m, &ev[k]);
		if (n > 0)
			(void)pass_events(m, ev, n);
	}
	if (!m->cli_gone && sb_fd_set_nonblock(m->cli, true) < 0)
		sb_debug("the command line's socket may block");
	m->n_held = 0;
	sb_fd_close(&m->gate);
}

/* ---- start ---- */

static int start_gate(struct monitor *m, int front, struct sb_err *err)
{
	static const char *const argv[] = { "sendbox-net", NULL };
	sb_autofd int theirs = -1;
	struct sb_ipc_net_start msg = { 0 };
	int fds[2] = { front, m->plan_memfd };
	int sv[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	m->gate = sv[0];
	theirs = sv[1];
	r = sb_fd_set_nonblock(m->gate, true);
	if (r < 0)
		return sb_err_set(err, r, "the net gate's socket: %s", strerror(-r));
	r = mon_spawn(m, &m->gate_child, "net gate", argv, theirs, NULL, 0, err);
	if (r < 0)
		return r;
	memcpy(msg.signature, m->start.signature, sizeof(msg.signature));
	memcpy(msg.public_key, m->start.public_key, sizeof(msg.public_key));
	r = sb_ipc_send(m->gate, SB_IPC_NET_START, &msg, sizeof(msg), fds, 2);
	if (r == 0)
		r = sb_io_set(m->loop, &m->gate_io, m->gate, EPOLLIN, on_gate, m);
	return r < 0 ? sb_err_set(err, r, "cannot reach the net gate: %s", strerror(-r)) : 0;
}

/* The listening sockets go to the gate as they came: over a front socket. */
static int start_with_listeners(struct monitor *m, struct sb_err *err)
{
	sb_autofd int ours = -1;
	sb_autofd int front = -1;
	int sv[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	ours = sv[0];
	front = sv[1];
	r = sb_ipc_send(ours, SB_IPC_NET_LISTEN, NULL, 0, m->listeners, m->n_listeners);
	if (r < 0)
		return sb_err_set(err, r, "cannot pass the listeners on: %s", strerror(-r));
	return start_gate(m, front, err);
}

/* Return: whether the gate runs. */
static bool want_gate(struct monitor *m)
{
	struct sb_err err = { 0 };
	int r;

	if (m->gate >= 0)
		return true;
	if (m->state >= MON_REAPING || (m->front < 0 && m->n_listeners == 0))
		return false;
	r = m->n_listeners > 0 ? start_with_listeners(m, &err) : start_gate(m, m->front, &err);
	listeners_done(m);
	if (r < 0)
		mon_end(m, SB_FAIL_INTERNAL, err.text);
	return r == 0;
}

static void on_wanted(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	char c;

	(void)events;
	if (io == &m->front_io && recv(m->front, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		listeners_done(m); /* the channel ended, and nobody ever asked */
	else
		(void)want_gate(m);
}

/* The namespace's listeners. */
static int take_listeners(struct monitor *m, struct sb_ipc_msg *msg)
{
	if (msg->type != SB_IPC_NET_LISTEN || (msg->n_fds != 2 && msg->n_fds != MON_LISTENERS) ||
	    !sb_ipc_get(msg, 0, msg->n_fds))
		return -EBADMSG;
	for (size_t i = 0; i < msg->n_fds; i++) {
		int r;

		m->listeners[i] = sb_fd_take(&msg->fds[i]);
		m->n_listeners = i + 1;
		r = sb_io_set(m->loop, &m->listener_io[i], m->listeners[i], EPOLLIN, on_wanted, m);
		if (r < 0)
			return r;
	}
	return 0;
}

static void on_listen(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(m->front, &msg);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = take_listeners(m, &msg);
	sb_io_del(&m->front_io);
	sb_fd_close(&m->front);
	if (r < 0)
		mon_end(m, SB_FAIL_INTERNAL, "the guest sent no usable listening sockets");
	/* the end of the socket without a message: the guest ended, and its end is told elsewhere */
}

/* ---- sendbox net ---- */

static void on_viewer(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	sb_autofd int fd = accept4(m->viewers, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		sb_debug("sendbox net: accept: %s", strerror(errno));
		sb_io_del(&m->viewers_io);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid()) {
		sb_debug("sendbox net: a caller of another user was turned away");
		return;
	}
	if (!want_gate(m) || sb_ipc_send(m->gate, SB_IPC_NET_CLIENT, NULL, 0, &fd, 1) < 0)
		sb_debug("sendbox net: a caller could not be passed on");
}

/* The path through /proc: that of the directory may be longer than a socket's address. */
static int listen_viewers(struct monitor *m, struct sb_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	sb_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);
	int r = 0;

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/net.sock",
		       m->session_dir);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 8) < 0)
		r = -errno;
	(void)umask(mask);
	if (r == 0)
		r = sb_io_set(m->loop, &m->viewers_io, fd, EPOLLIN, on_viewer, m);
	if (r < 0)
		return sb_err_set(err, r, "cannot listen on %s/net.sock: %s", m->session_path,
				  strerror(-r));
	m->viewers = sb_fd_take(&fd);
	return 0;
}

int mon_open_gate(struct monitor *m, int *ret_front, struct sb_err *err)
{
	bool vm = m->provider->is_vm;
	sb_autofd int theirs = -1;
	int sv[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	m->front = sv[0];
	theirs = sv[1];
	r = sb_io_set(m->loop, &m->front_io, m->front, EPOLLIN, vm ? on_wanted : on_listen, m);
	if (r < 0)
		return sb_err_set(err, r, "the front socket: %s", strerror(-r));
	r = listen_viewers(m, err);
	if (r == 0)
		*ret_front = sb_fd_take(&theirs);
	return r;
}
