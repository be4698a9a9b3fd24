/*
 * Theory of operation. The holder begins as a copy of the command line with a signed plan, leaves its
 * terminal and descriptors, makes the session's directory and the monitor, and then lives as long as
 * the session: the monitor's messages go to the clients, the clients' to the monitor, the program's
 * output to the log and to them. When the monitor is done and all output is delivered, the end is
 * recorded, the clients are told (DONE), and the holder ends. Killed at any point it leaves a session
 * whose monitor ends it, and an instance whose lock is free.
 */
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "cli.h"
#include "conn/plan_env.h"
#include "crypto/crypto.h"
#include "hold_i.h"
#include "os/spawn.h"
#include "plan_store.h"
#include "remember.h"
#include "run_snaps.h"
#include "state/state.h"

void hold_to_monitor(struct hold *h, uint16_t type, const void *p, size_t len)
{
	if (h->r->sock >= 0 && sb_ipc_send(h->r->sock, type, p, len, NULL, 0) < 0)
		sb_debug("message %u to the monitor was lost", type);
}

/* ---- the end ---- */

static void record(struct hold *h)
{
	struct run *r = h->r;
	struct sb_err err = { 0 };
	sb_autostate struct state *s = NULL;
	int code = r->done ? launch_status(r) : -1;
	int k = state_open(&r->dirs.d, &s, &err);

	if (k == 0 && h->conf->rm)
		k = instance_forget(s, h->conf->id, &err);
	else if (k == 0)
		k = instance_stopped(s, h->conf->id, code, &err);
	if (k < 0)
		hold_clients_tell(h, SB_ATT_NOTE, err.text, strlen(err.text), false);
}

static void monitor_over(struct hold *h)
{
	struct run *r = h->r;
	struct sb_err err = { 0 };
	size_t n = 0;

	sb_io_del(&r->sock_io);
	sb_fd_close(&r->sock);
	hold_ask_close(h);
	h->over = true;
	while (r->monitor > 0 && waitpid(r->monitor, NULL, 0) < 0 && errno == EINTR)
		continue;
	r->monitor = 0;
	cli_session_done(&r->session);
	if (!r->done) { /* it died: its clean-up is ours */
		(void)launch_fail(r, SB_FAIL_INTERNAL, &err,
				  sb_err_set(&err, -ESRCH, "the session's monitor ended unexpectedly; "
							   "everything was cleared"));
		if (cli_gc(&r->dirs.d, false, &n, &err) < 0)
			sb_log("clean-up: %s", err.text);
	}
	run_snaps_end(r);
	remember_end(r);
	record(h);
	/* it may be started again while the last output is being read */
	sb_fd_close(h->conf->lock);
	hold_maybe_end(h);
}

void hold_maybe_end(struct hold *h)
{
	if (h->over && h->out[0] < 0 && h->out[1] < 0 && h->n_kept == 0)
		sb_loop_stop(h->r->loop, 0);
}

/* ---- messages of the monitor ---- */

static void on_exited(struct hold *h, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_exited *x = sb_ipc_get(msg, sizeof(*x), 0);
	struct hold_client *c = x ? hold_client_of(h, x->cmd) : NULL;

	if (!c)
		return;
	c->cmd = 0;
	if (sb_ipc_send(c->sock, SB_IPC_EXITED, x, sizeof(*x), NULL, 0) < 0)
		hold_client_drop(c);
}

static void on_started(struct hold *h, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_started *m = sb_ipc_get(msg, sizeof(*m), 0);
	struct hold_client *c = m ? hold_client_of(h, m->cmd) : NULL;

	if (m && m->cmd == 0) {
		h->r->started = true;
		hold_clients_tell(h, SB_IPC_STARTED, m, sizeof(*m), false);
	} else if (c && sb_ipc_send(c->sock, SB_IPC_STARTED, m, sizeof(*m), NULL, 0) < 0) {
		hold_client_drop(c);
	}
}

static void on_monitor(struct sb_io *io, uint32_t events)
{
	struct hold *h = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const struct sb_ipc_done *d;
	int k = sb_ipc_recv(h->r->sock, &msg);

	(void)events;
	if (k == -EAGAIN)
		return;
	if (k != 0) {
		monitor_over(h);
		return;
	}
	switch (msg.type) {
	case SB_IPC_STARTED:
		on_started(h, &msg);
		break;
	case SB_IPC_EXITED:
		on_exited(h, &msg);
		break;
	case SB_IPC_APPR_ASK:
		(void)hold_ask_message(h, &msg);
		break;
	case SB_IPC_NET_EVENT:
	case SB_IPC_EXEC_EVENT:
	case SB_IPC_SSH_EVENT:
		hold_clients_tell(h, msg.type, msg.data, msg.len, true);
		break;
	case SB_IPC_DONE:
		d = sb_ipc_get(&msg, sizeof(*d), 0);
		if (d) {
			h->r->result = *d;
			h->r->done = true;
		}
		monitor_over(h);
		break;
	default:
		sb_debug("message %u ignored", msg.type);
	}
}

static void on_signal(struct sb_io *io, uint32_t events)
{
	struct hold *h = io->owner;
	struct signalfd_siginfo si;
	struct sb_ipc_signal m = { 0 };

	(void)events;
	if (read(h->r->sigfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	m.signo = si.ssi_signo;
	hold_to_monitor(h, SB_IPC_CANCEL, &m, sizeof(m));
}

/* ---- who connects ---- */

static void on_connect(struct sb_io *io, uint32_t events)
{
	struct hold *h = io->owner;
	sb_autofd int fd = accept4(h->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred;
	socklen_t len = sizeof(cred);

	(void)events;
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != geteuid()) {
		sb_debug("a connection of user %u was refused", (unsigned int)cred.uid);
		return;
	}
	if (hold_client_add(h, &fd) < 0)
		sb_debug("too many clients");
}

static int listen_here(struct hold *h, struct sb_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	mode_t old;
	int r;

	h->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->listen < 0)
		return sb_err_set(err, -errno, "socket: %s", strerror(errno));
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/attach.sock",
		       h->r->session.dir);
	old = umask(0177);
	r = bind(h->listen, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(h->listen, 8) < 0 ? -errno
											     : 0;
	(void)umask(old);
	if (r == 0)
		r = sb_io_set(h->r->loop, &h->listen_io, h->listen, EPOLLIN, on_connect, h);
	return r < 0 ? sb_err_set(err, r, "cannot serve attach.sock: %s", strerror(-r)) : 0;
}

/* ---- start ---- */

static int become(struct run *r, int sock, const struct hold_conf *conf)
{
	int keep[3] = { sock, r->bundle->fds[SB_BUNDLE_GUEST], *conf->lock };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool debug = getenv("SENDBOX_DEBUG") != NULL;
	sigset_t set;

	if (null < 0)
		return -errno;
	for (int i = 0; i < (debug ? 2 : 3); i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (setsid() < 0 || sb_close_others(keep, 3) < 0)
		return -errno;
	(void)prctl(PR_SET_NAME, "sendbox-hold", 0, 0, 0);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->sigfd < 0 ? -errno : sb_loop_new(&r->loop);
}

static int mark_started(struct hold *h, struct sb_err *err)
{
	struct run *r = h->r;
	sb_autostate struct state *s = NULL;
	uint8_t digest[SB_SHA256_LEN];
	int k = state_open(&r->dirs.d, &s, err);

	sb_sha256(r->plan_bytes, r->plan_len, digest);
	return k < 0 ? k : instance_started(s, h->conf->id, r->plan->session, digest, err);
}

static int start(struct hold *h, struct sb_err *err)
{
	struct run *r = h->r;
	int k = launch_session_dir(r, err);

	if (k == 0)
		k = sb_io_set(r->loop, &r->sig_io, r->sigfd, EPOLLIN, on_signal, h);
	if (k == 0)
		k = hold_log_open(&h->log, h->conf->dir, err);
	if (k == 0)
		k = hold_streams_open(h, err);
	if (k == 0)
		k = sb_plan_env_vector(r->plan, &h->env, &h->env_len);
	if (k == 0)
		k = launch_monitor(r, err);
	if (k == 0)
		k = sb_io_set(r->loop, &r->sock_io, r->sock, EPOLLIN, on_monitor, h);
	if (k == 0)
		k = listen_here(h, err);
	if (k == 0)
		k = hold_ask_open(h, err);
	/* before the command can run: whoever looks finds the session by the instance's name */
	if (k == 0)
		k = mark_started(h, err);
	if (k == 0)
		k = launch_send_start(r, err);
	if (k == 0)
		k = run_snaps_begin(r, err);
	if (k == 0)
		k = plan_store_put(&r->dirs.d, r->plan->session, r->file, r->file_len, err);
	if (k == 0)
		k = remember_begin(r, err);
	return k;
}

SB_NORETURN static void hold_main(struct run *r, const struct hold_conf *conf, int sock)
{
	static struct hold h;
	struct sb_err err = { 0 };
	int k = become(r, sock, conf);

	h = (struct hold){ .r = r, .conf = conf, .listen = -1, .in = -1, .out = { -1, -1 } };
	h.log.dir = h.log.fd = -1;
	for (size_t i = 0; i < HOLD_CLIENTS; i++)
		h.clients[i].sock = -1;
	if (k == 0)
		k = hold_client_add(&h, &sock);
	if (k < 0)
		_exit(1);
	h.clients[0].foreground = true;
	k = start(&h, &err);
	if (k == 0)
		k = sb_loop_run(r->loop);
	else
		(void)launch_fail(r, SB_FAIL_INTERNAL, &err, k);
	if (!h.over) { /* it never came about */
		sb_io_del(&r->sock_io);
		sb_fd_close(&r->sock);
		for (int i = 0; i < 3; i++)
			sb_fd_close(&r->io[i].fd);
		monitor_over(&h);
	}
	r->result.exit.cmd = 0;
	for (size_t i = 0; i < HOLD_CLIENTS; i++)
		h.clients[i].hello |= h.clients[i].h != NULL;
	hold_clients_tell(&h, SB_IPC_DONE, &r->result, sizeof(r->result), false);
	if (h.env)
		sb_wipe(h.env, h.env_len);
	_exit(0);
}

int hold_start(struct run *r, const struct hold_conf *conf, int *ret, struct sb_err *err)
{
	int sv[2];
	pid_t pid;
	int r0 = hold_check(r, conf, err);

	if (r0 < 0)
		return r0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	(void)fflush(NULL);
	pid = fork();
	if (pid < 0) {
		int k = sb_err_set(err, -errno, "fork: %s", strerror(errno));

		sb_fd_close(&sv[0]);
		sb_fd_close(&sv[1]);
		return k;
	}
	if (pid == 0)
		hold_main(r, conf, sv[1]);
	sb_fd_close(&sv[1]);
	sb_fd_close(conf->lock);
	*ret = sv[0];
	return sb_fd_set_nonblock(*ret, true);
}
