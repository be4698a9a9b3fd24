/*
 * The monitor's side of the SSH relay: it is started when somebody first asks for it, as the net gate
 * is, and gets each connection to the user's agent from here, because its jail has no way to any
 * socket. Nothing that goes over them is read here. The agent is the socket that the command line
 * opened: the relay cannot name another one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "audit.h"
#include "base/fd.h"
#include "base/log.h"
#include "monitor.h"

#define DRAIN_MAX 1024 /* messages of a relay that has ended */

/* --- events --- */

static void tell_lost(struct monitor *m, bool wait)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(m->ssh_lost); i++) {
		struct sb_ipc_ssh_event ev = { .kind = SB_SSH_EV_LOST,
					       .allow = (uint8_t)i,
					       .time_ns = sb_real_ns(),
					       .count = m->ssh_lost[i] };

		if (ev.count == 0 || m->cli_gone)
			continue;
		if (wait)
			mon_to_cli(m, SB_IPC_SSH_EVENT, &ev, sizeof(ev));
		else if (sb_ipc_send(m->cli, SB_IPC_SSH_EVENT, &ev, sizeof(ev), NULL, 0) < 0)
			return;
		m->ssh_lost[i] = 0;
	}
}

/* A signature that was made is worth waiting for the reader; refusals are the guest's to cause. */
static void pass_event(struct monitor *m, const struct sb_ipc_ssh_event *ev)
{
	mon_audit_ssh(m, ev);
	if (m->cli_gone)
		return;
	tell_lost(m, false);
	if (sb_ipc_send(m->cli, SB_IPC_SSH_EVENT, ev, sizeof(*ev), NULL, 0) < 0)
		m->ssh_lost[ev->allow != 0] += ev->count;
}

/* --- the user's agent --- */

/* Through /proc: the very socket that was opened, whatever its path means by now. */
static int connect_agent(const struct monitor *m, int *ret)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	sb_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d", m->ssh_agent);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	*ret = sb_fd_take(&fd);
	return 0;
}

static int give_agent(struct monitor *m)
{
	sb_autofd int fd = -1;
	int r = connect_agent(m, &fd);

	if (r < 0)
		sb_debug("the SSH agent cannot be reached: %s", strerror(-r));
	return sb_ipc_send(m->ssh, SB_IPC_SSH_AGENT, NULL, 0, &fd, fd >= 0 ? 1 : 0);
}

/* --- the relay --- */

/* Return: 0; -errno. */
static int on_relay_message(struct monitor *m, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_ssh_event *ev;
	const void *p;
	struct sb_ipc_failed f;

	switch (msg->type) {
	case SB_IPC_SSH_NEED:
		return sb_ipc_get(msg, 0, 0) ? give_agent(m) : -EBADMSG;
	case SB_IPC_SSH_EVENT:
		ev = sb_ipc_get_ssh_event(msg);
		if (!ev)
			return -EBADMSG;
		pass_event(m, ev);
		return 0;
	case SB_IPC_GATE_PENDING:
		return mon_pending_ssh(m, msg);
	case SB_IPC_APPR_ASK:
		return mon_ask(m, 2, msg);
	case SB_IPC_FAILED:
		p = sb_ipc_get(msg, sizeof(f), 0);
		if (!p)
			return -EBADMSG;
		memcpy(&f, p, sizeof(f));
		f.text[sizeof(f.text) - 1] = '\0';
		mon_end(m, SB_FAIL_INTERNAL, f.text[0] ? f.text : "the SSH relay failed");
		return 0;
	default:
		return -EBADMSG;
	}
}

static void on_relay(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(m->ssh, &msg);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = on_relay_message(m, &msg);
	if (r == 0)
		return;
	sb_io_del(&m->ssh_io);
	if (r == SB_IPC_EOF && m->ssh_child.pid > 0)
		return; /* its end is told by its descriptor, with the reason */
	if (m->state < MON_REAPING)
		mon_end(m, SB_FAIL_INTERNAL, "the SSH relay sent a malformed message");
}

static void waiting_done(struct monitor *m)
{
	sb_io_del(&m->ssh_listener_io);
	sb_fd_close(&m->ssh_listener);
	sb_io_del(&m->ssh_front_io);
	sb_fd_close(&m->ssh_front);
}

void mon_ssh_leave(struct monitor *m)
{
	waiting_done(m);
	if (m->ssh >= 0 && shutdown(m->ssh, SHUT_WR) < 0)
		mon_kill(&m->ssh_child);
}

void mon_ssh_drain(struct monitor *m)
{
	waiting_done(m);
	sb_io_del(&m->ssh_io);
	sb_fd_close(&m->ssh_agent);
	for (int i = 0; m->ssh >= 0 && i < DRAIN_MAX; i++) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_ssh_event *ev;

		if (sb_ipc_recv(m->ssh, &msg) != 0)
			break;
		ev = sb_ipc_get_ssh_event(&msg);
		if (ev)
			pass_event(m, ev);
	}
	sb_fd_close(&m->ssh);
	tell_lost(m, true);
}

/* --- start --- */

static int start_relay(struct monitor *m, int front, struct sb_err *err)
{
	static const char *const argv[] = { "sendbox-ssh", NULL };
	sb_autofd int theirs = -1;
	struct sb_ipc_net_start msg = { 0 };
	int fds[2] = { front, m->plan_memfd };
	int sv[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	m->ssh = sv[0];
	theirs = sv[1];
	r = sb_fd_set_nonblock(m->ssh, true);
	if (r < 0)
		return sb_err_set(err, r, "the SSH relay's socket: %s", strerror(-r));
	r = mon_spawn(m, &m->ssh_child, "SSH relay", argv, theirs, NULL, 0, err);
	if (r < 0)
		return r;
	memcpy(msg.signature, m->start.signature, sizeof(msg.signature));
	memcpy(msg.public_key, m->start.public_key, sizeof(msg.public_key));
	r = sb_ipc_send(m->ssh, SB_IPC_SSH_START, &msg, sizeof(msg), fds, 2);
	if (r == 0)
		r = sb_io_set(m->loop, &m->ssh_io, m->ssh, EPOLLIN, on_relay, m);
	return r < 0 ? sb_err_set(err, r, "cannot reach the SSH relay: %s", strerror(-r)) : 0;
}

/* The listening socket goes on as it came: over a front socket. */
static int start_with_listener(struct monitor *m, struct sb_err *err)
{
	sb_autofd int ours = -1;
	sb_autofd int front = -1;
	int sv[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	ours = sv[0];
	front = sv[1];
	r = sb_ipc_send(ours, SB_IPC_SSH_LISTEN, NULL, 0, &m->ssh_listener, 1);
	if (r < 0)
		return sb_err_set(err, r, "cannot pass the listener on: %s", strerror(-r));
	return start_relay(m, front, err);
}

static void on_wanted(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	struct sb_err err = { 0 };
	char c;
	int r;

	(void)events;
	if (io == &m->ssh_front_io && recv(m->ssh_front, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		waiting_done(m); /* the channel ended, and nobody ever asked */
		return;
	}
	if (m->state >= MON_REAPING)
		return;
	r = m->ssh_listener >= 0 ? start_with_listener(m, &err)
				 : start_relay(m, m->ssh_front, &err);
	waiting_done(m);
	if (r < 0)
		mon_end(m, SB_FAIL_INTERNAL, err.text);
}

static void on_listen(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(m->ssh_front, &msg);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r == 0 && (msg.type != SB_IPC_SSH_LISTEN || !sb_ipc_get(&msg, 0, 1)))
		r = -EBADMSG;
	if (r == 0) {
		m->ssh_listener = sb_fd_take(&msg.fds[0]);
		r = sb_io_set(m->loop, &m->ssh_listener_io, m->ssh_listener, EPOLLIN, on_wanted, m);
	}
	sb_io_del(&m->ssh_front_io);
	sb_fd_close(&m->ssh_front);
	if (r < 0)
		mon_end(m, SB_FAIL_INTERNAL, "the guest sent no usable socket for the SSH agent");
	/* the end of the socket without a message: the guest ended, and its end is told elsewhere */
}

int mon_open_ssh(struct monitor *m, int *ret_front, struct sb_err *err)
{
	bool vm = m->provider->is_vm;
	sb_autofd int theirs = -1;
	int sv[2];
	int r;

	if (m->ssh_agent < 0)
		return sb_err_set(err, -EINVAL, "the plan has an SSH agent, and none was handed over");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	m->ssh_front = sv[0];
	theirs = sv[1];
	r = sb_io_set(m->loop, &m->ssh_front_io, m->ssh_front, EPOLLIN, vm ? on_wanted : on_listen, m);
	if (r < 0)
		return sb_err_set(err, r, "the SSH relay's front socket: %s", strerror(-r));
	*ret_front = sb_fd_take(&theirs);
	return 0;
}
