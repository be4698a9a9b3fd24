/*
 * Theory of operation. As the net gate's: the plan is verified outside of the jail, then two sockets
 * speak to us. The monitor's is trusted. The front socket is held by the guest's side; what does not
 * fit there ends the session. A namespace sends its listening socket once; a micro-VM sends one
 * stream for each connection, and the end of its front socket is the end of the session.
 */
#include "ssh.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "conn/plan_fd.h"

#define PER_TURN 16
#define PAUSE_NS 100000000U /* without descriptors or memory */

void relay_fail(struct relay *r, const char *fmt, ...)
{
	struct sb_ipc_failed f = { .fail = SB_FAIL_INTERNAL };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	sb_log("%s", f.text);
	if (sb_ipc_send(r->ipc, SB_IPC_FAILED, &f, sizeof(f), NULL, 0) < 0)
		sb_debug("the monitor was not told");
	sb_loop_stop(r->loop, 1);
}

int relay_open(struct relay *r, const struct sb_ipc_net_start *start, int *front, int plan_fd,
	       struct sb_err *err)
{
	const struct sb_plan_expect x = { .signature = start->signature,
					  .public_key = start->public_key };
	int k = sb_plan_from_fd(plan_fd, &x, &r->plan, NULL, NULL, err);

	if (k < 0)
		return k;
	if (r->plan->ssh.n_keys == 0)
		return sb_err_set(err, -EINVAL, "the plan has no SSH agent");
	k = sb_loop_new(&r->loop);
	if (k == 0)
		k = sb_fd_set_nonblock(r->ipc, true);
	if (k == 0)
		k = sb_fd_set_nonblock(*front, true);
	if (k < 0)
		return sb_err_set(err, k, "start: errno %d", -k);
	r->front = sb_fd_take(front);
	return 0;
}

void relay_done(struct relay *r)
{
	clients_done(r);
	events_done(r);
	sb_timer_del(&r->pause);
	sb_io_del(&r->listen_io);
	sb_fd_close(&r->listener);
	sb_io_del(&r->front_io);
	sb_fd_close(&r->front);
	sb_io_del(&r->ipc_io);
	r->plan = sb_plan_free(r->plan);
	r->loop = sb_loop_free(r->loop);
}

/* --- the sandbox's listening socket --- */

static void on_pause(struct sb_timer *t)
{
	struct relay *r = t->owner;

	if (r->listener >= 0 && sb_io_want(&r->listen_io, EPOLLIN) < 0)
		relay_fail(r, "the listening socket cannot be watched");
}

static void on_listener(struct sb_io *io, uint32_t events)
{
	struct relay *r = io->owner;

	(void)events;
	for (int i = 0; i < PER_TURN; i++) {
		int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			client_new(r, &fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			if (sb_io_want(io, 0) < 0)
				relay_fail(r, "the listening socket cannot be watched");
			sb_timer_set(r->loop, &r->pause, PAUSE_NS, on_pause, r);
			return;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static bool is_stream(int fd, bool listening)
{
	static const int options[] = { SO_DOMAIN, SO_TYPE, SO_ACCEPTCONN };
	const int want[] = { AF_UNIX, SOCK_STREAM, listening };

	for (size_t i = 0; i < SB_ARRAY_LEN(options); i++) {
		socklen_t len = sizeof(int);
		int got = -1;

		if (getsockopt(fd, SOL_SOCKET, options[i], &got, &len) < 0 || got != want[i])
			return false;
	}
	return true;
}

/* Return: 0; -EBADMSG; -errno. */
static int on_front_message(struct relay *r, struct sb_ipc_msg *msg)
{
	bool vm = r->plan->provider == SB_PROVIDER_MICROVM;
	int k;

	if (msg->type != (vm ? SB_IPC_SSH_STREAM : SB_IPC_SSH_LISTEN) || !sb_ipc_get(msg, 0, 1) ||
	    !is_stream(msg->fds[0], !vm))
		return -EBADMSG;
	k = sb_fd_set_nonblock(msg->fds[0], true);
	if (k < 0)
		return k;
	if (vm) {
		client_new(r, &msg->fds[0]);
		return 0;
	}
	r->listener = sb_fd_take(&msg->fds[0]);
	sb_io_del(&r->front_io);
	sb_fd_close(&r->front);
	return sb_io_set(r->loop, &r->listen_io, r->listener, EPOLLIN, on_listener, r);
}

static void on_front(struct sb_io *io, uint32_t events)
{
	struct relay *r = io->owner;

	(void)events;
	for (int i = 0; i < PER_TURN && r->front >= 0; i++) {
		sb_automsg struct sb_ipc_msg msg;
		int k;

		msg.n_fds = 0;
		k = sb_ipc_recv(r->front, &msg);
		if (k == -EAGAIN)
			return;
		if (k == -EMFILE)
			continue; /* that stream is lost: its other end sees a reset */
		if (k == SB_IPC_EOF) {
			sb_io_del(&r->front_io);
			sb_fd_close(&r->front);
			sb_loop_stop(r->loop, 0);
			return;
		}
		if (k == 0)
			k = on_front_message(r, &msg);
		if (k < 0) {
			relay_fail(r, "message of the sandbox to the SSH relay: errno %d", -k);
			return;
		}
	}
}

/* --- the monitor --- */

static bool take_answer(struct relay *r, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_gate_answer *a = sb_ipc_get(msg, sizeof(*a), 0);

	if (!a || a->reason >= SB_SSH_N_REASONS)
		return false;
	client_recorded(r, a->id, a->allow != 0, (enum sb_ssh_reason)a->reason);
	return true;
}

static void on_ipc(struct sb_io *io, uint32_t events)
{
	struct relay *r = io->owner;
	sb_automsg struct sb_ipc_msg msg;
	int none = -1;
	int k;

	(void)events;
	msg.n_fds = 0;
	k = sb_ipc_recv(r->ipc, &msg);
	if (k == -EAGAIN)
		return;
	if (k == -EMFILE) {
		client_agent(r, &none);
		return;
	}
	if (k == 0 && msg.type == SB_IPC_SSH_AGENT && msg.len == 0 && msg.n_fds <= 1) {
		if (msg.n_fds == 1 && sb_fd_set_nonblock(msg.fds[0], true) < 0)
			sb_fd_close(&msg.fds[0]);
		client_agent(r, msg.n_fds == 1 ? &msg.fds[0] : &none);
		return;
	}
	if (k == 0 && msg.type == SB_IPC_GATE_ANSWER && take_answer(r, &msg))
		return;
	if (k == 0 && msg.type == SB_IPC_APPR_ANSWER &&
	    sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_answer), 0)) {
		client_answer(r, (const void *)msg.data);
		return;
	}
	if (k != SB_IPC_EOF)
		sb_log("message of the monitor: errno %d", k < 0 ? -k : EBADMSG);
	sb_loop_stop(r->loop, k == SB_IPC_EOF ? 0 : 1);
}

int relay_serve(struct relay *r)
{
	int k = sb_io_set(r->loop, &r->ipc_io, r->ipc, EPOLLIN, on_ipc, r);

	return k < 0 ? k : sb_io_set(r->loop, &r->front_io, r->front, EPOLLIN, on_front, r);
}
