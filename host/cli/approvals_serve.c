/*
 * approvals.sock in the session's directory: other processes of the same user see the questions and
 * answer them, or ask for one more command. A client that breaks the protocol is cut off; nothing in
 * here waits for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "approvals_i.h"
#include "base/fd.h"
#include "base/log.h"

static void drop(struct watcher *w)
{
	struct approvals *a = w->a;
	bool followed = w->follows;
	uint64_t asked = w->asked;

	sb_io_del(&w->io);
	sb_fd_close(&w->sock);
	*w = (struct watcher){ .sock = -1 };
	if (asked != 0)
		approvals_gone(a, APPROVALS_FROM_COMMAND, asked);
	for (uint64_t n = 0; followed && !serve_watched(a);) {
		const struct sb_appr_question *o = sb_appr_next(a->appr, n);

		if (!o)
			break;
		n = o->number;
		approvals_lost(a, n, SB_APPR_WATCHER);
	}
}

static bool send_to(struct watcher *w, uint16_t type, const void *p, size_t len)
{
	if (sb_ipc_send(w->sock, type, p, len, NULL, 0) == 0)
		return true;
	drop(w);
	return false;
}

bool serve_watched(const struct approvals *a)
{
	for (size_t i = 0; i < APPROVALS_CLIENTS; i++)
		if (a->watchers[i].a && a->watchers[i].follows)
			return true;
	return false;
}

void serve_question(struct approvals *a, const struct sb_appr_question *o)
{
	struct sb_ipc_appr_question q;

	if (!o)
		return;
	approvals_fill(a, o, &q);
	for (size_t i = 0; i < APPROVALS_CLIENTS; i++)
		if (a->watchers[i].a && a->watchers[i].follows)
			(void)send_to(&a->watchers[i], SB_IPC_APPR_QUESTION, &q, sizeof(q));
}

static struct sb_ipc_appr_closed closed(uint64_t number, const struct sb_appr_result *res)
{
	return (struct sb_ipc_appr_closed){ .number = number,
					    .allow = res->verdict == SB_APPR_ALLOWED,
					    .reason = (uint32_t)res->reason,
					    .grant = res->grant };
}

void serve_closed(struct approvals *a, uint64_t number, const struct sb_appr_result *res)
{
	struct sb_ipc_appr_closed m = closed(number, res);

	for (size_t i = 0; i < APPROVALS_CLIENTS; i++)
		if (a->watchers[i].a && (a->watchers[i].follows || a->watchers[i].decides == number))
			(void)send_to(&a->watchers[i], SB_IPC_APPR_CLOSED, &m, sizeof(m));
}

bool serve_decided(struct approvals *a, uint64_t id, uint64_t number, const struct sb_appr_result *res)
{
	struct sb_ipc_appr_closed m = closed(number, res);

	for (size_t i = 0; i < APPROVALS_CLIENTS; i++) {
		struct watcher *w = &a->watchers[i];

		if (!w->a || w->asked != id)
			continue;
		w->asked = 0;
		if (!w->follows)
			(void)send_to(w, SB_IPC_APPR_CLOSED, &m, sizeof(m));
		return true;
	}
	return false;
}

static int on_watch(struct watcher *w, const struct sb_ipc_appr_watch *m)
{
	struct approvals *a = w->a;
	struct sb_ipc_failed end = { 0 };
	const struct sb_appr_question *o = NULL;

	if (!m || m->follow > 1)
		return -EBADMSG;
	while ((o = sb_appr_next(a->appr, o ? o->number : 0)) != NULL) {
		struct sb_ipc_appr_question q;

		approvals_fill(a, o, &q);
		if (!send_to(w, SB_IPC_APPR_QUESTION, &q, sizeof(q)))
			return 0;
	}
	if (m->follow) {
		w->follows = true;
		sb_appr_gained(a->appr, SB_APPR_WATCHER);
	}
	(void)send_to(w, SB_IPC_APPR_END, &end, sizeof(end));
	return 0;
}

static int on_decide(struct watcher *w, const struct sb_ipc_appr_decide *m)
{
	struct sb_ipc_failed end = { 0 };
	struct sb_err err = { 0 };
	struct approvals *a = w->a;
	int r;

	if (!m || m->answer >= SB_APPR_N_ANSWERS || !memchr(m->pattern, 0, sizeof(m->pattern)))
		return -EBADMSG;
	w->decides = m->number;
	r = approvals_answer(a, m->number, (enum sb_appr_answer)m->answer,
			     m->pattern[0] ? m->pattern : NULL, "command line", &err);
	if (!w->a) /* it was cut off meanwhile */
		return 0;
	w->decides = 0;
	end.fail = (uint32_t)-r;
	(void)snprintf(end.text, sizeof(end.text), "%.490s", err.text);
	(void)send_to(w, SB_IPC_APPR_END, &end, sizeof(end));
	return 0;
}

static int on_new(struct watcher *w, const struct sb_ipc_appr_ask *m)
{
	struct approvals *a = w->a;

	if (!m || w->asked != 0 || !memchr(m->subject, 0, sizeof(m->subject)) ||
	    !memchr(m->rule, 0, sizeof(m->rule)))
		return -EBADMSG;
	w->asked = ++a->next_own;
	approvals_ask(a, APPROVALS_FROM_COMMAND, w->asked, SB_APPR_COMMAND, m->subject, m->rule);
	return 0;
}

static void on_client(struct sb_io *io, uint32_t events)
{
	struct watcher *w = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(w->sock, &msg);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r == 0) {
		switch (msg.type) {
		case SB_IPC_APPR_WATCH:
			r = on_watch(w, sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_watch), 0));
			break;
		case SB_IPC_APPR_DECIDE:
			r = on_decide(w, sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_decide), 0));
			break;
		case SB_IPC_APPR_NEW:
			r = on_new(w, sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_ask), 0));
			break;
		default:
			r = -EBADMSG;
		}
	}
	if (r != 0 && w->a)
		drop(w);
}

static void on_connect(struct sb_io *io, uint32_t events)
{
	struct approvals *a = io->owner;
	sb_autofd int fd = accept4(a->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct watcher *w = NULL;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	(void)events;
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != geteuid())
		return;
	for (size_t i = 0; i < APPROVALS_CLIENTS && !w; i++)
		if (!a->watchers[i].a)
			w = &a->watchers[i];
	if (!w) {
		sb_debug("too many look at the questions");
		return;
	}
	*w = (struct watcher){ .a = a, .sock = sb_fd_take(&fd) };
	if (sb_io_set(a->loop, &w->io, w->sock, EPOLLIN, on_client, w) < 0) {
		sb_fd_close(&w->sock);
		*w = (struct watcher){ .sock = -1 };
	}
}

int serve_open(struct approvals *a, int session_dir, struct sb_err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	mode_t old;
	int r;

	a->dir = fcntl(session_dir, F_DUPFD_CLOEXEC, 3);
	a->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->dir < 0 || a->listen < 0)
		return sb_err_set(err, -errno, "socket: %s", strerror(errno));
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" APPROVALS_SOCKET, a->dir);
	old = umask(0177);
	r = bind(a->listen, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(a->listen, 8) < 0 ? -errno
											       : 0;
	(void)umask(old);
	if (r == 0)
		r = sb_io_set(a->loop, &a->listen_io, a->listen, EPOLLIN, on_connect, a);
	return r < 0 ? sb_err_set(err, r, "cannot serve " APPROVALS_SOCKET ": %s", strerror(-r)) : 0;
}

void serve_close(struct approvals *a)
{
	for (size_t i = 0; i < APPROVALS_CLIENTS; i++)
		if (a->watchers[i].a)
			drop(&a->watchers[i]);
	sb_io_del(&a->listen_io);
	sb_fd_close(&a->listen);
	if (a->dir >= 0)
		(void)unlinkat(a->dir, APPROVALS_SOCKET, 0);
	sb_fd_close(&a->dir);
}
