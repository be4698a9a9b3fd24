/*
 * Theory of operation. This side of a running session: it hands the plan with three descriptors to
 * the monitor and waits: for signals, for the monitor's messages, and (with --json) for output. It
 * is the only process that touches the user's terminal. The exit status is decided by the
 * monitor's last message, DONE, which comes when everything is cleaned up; the end of the monitor
 * without it means that this program clears the session itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "asking.h"
#include "attach.h"
#include "audit_key.h"
#include "cli.h"
#include "conn/plan_env.h"
#include "crypto/crypto.h"
#include "hold.h"
#include "launch_i.h"
#include "os/spawn.h"
#include "plan_store.h"
#include "provider/executable.h"
#include "remember.h"
#include "run_snaps.h"
#include "ssh_plan.h"
#include "term.h"

int launch_memfd(const char *name, const void *p, size_t len, int *ret)
{
	sb_autofd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = sb_fd_write_all(fd, p, len);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	*ret = sb_fd_take(&fd);
	return 0;
}

static int open_stdio(struct run *r, struct sb_err *err)
{
	int k = cli_fd_open(r->stdio[0], false, &r->io[0], err);

	if (k == 0 && r->json) {
		int fds[2];

		k = cli_events_new(r->loop, &r->events, fds, err);
		if (k == 0) {
			r->io[1].fd = fds[0];
			r->io[2].fd = fds[1];
		}
		return k;
	}
	if (k == 0)
		k = cli_fd_open(r->stdio[1], true, &r->io[1], err);
	if (k == 0)
		k = cli_fd_open(r->stdio[2], true, &r->io[2], err);
	return k;
}

int launch_monitor(struct run *r, struct sb_err *err)
{
	const char *path = "sendbox-monitor";
	sb_autofd int exe = -1;
	const char *argv[] = { path, r->dirs.libexec, r->dirs.cache, r->session.path,
			       NULL };
	char debug[] = "SENDBOX_DEBUG=1";
	const char *env[] = { getenv("SENDBOX_DEBUG") ? debug : NULL, NULL };
	struct sb_spawn_fd fds[6];
	int sv[2];
	int k;

	exe = sb_exe_open(r->plan, r->dirs.cache, "monitor", &path, NULL, err);
	if (exe < 0)
		return exe;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	fds[0] = (struct sb_spawn_fd){ sv[1], SB_IPC_SOCK_FD };
	fds[1] = (struct sb_spawn_fd){ r->session.dir, 4 };
	fds[2] = (struct sb_spawn_fd){ r->session.lock, 5 };
	fds[3] = (struct sb_spawn_fd){ STDERR_FILENO, STDERR_FILENO };
	k = sb_spawn_start(&(struct sb_spawn){ .path = path,
					       .exe = exe,
					       .argv = argv,
					       .env = env,
					       .fds = fds,
					       .n_fds = fcntl(2, F_GETFD) >= 0 ? 4 : 3,
					       .new_session = true,
					       .outlive_parent = true },
			   &r->monitor, NULL, err);
	sb_fd_close(&sv[1]);
	if (k < 0) {
		sb_fd_close(&sv[0]);
		return k;
	}
	r->sock = sv[0];
	return 0;
}

/* Where the session's records go. */
static int send_audit(struct run *r, struct sb_err *err)
{
	sb_autofd int dir = -1;
	sb_autofd int key = -1;
	int fds[2];
	int k = audit_open(&r->dirs.d, &dir, &key, NULL, err);

	if (k < 0)
		return launch_fail(r, SB_FAIL_AUDIT, err, k);
	fds[0] = dir;
	fds[1] = key;
	k = sb_ipc_send(r->sock, SB_IPC_AUDIT, NULL, 0, fds, 2);
	return k < 0 ? sb_err_set(err, k, "cannot reach the monitor: %s", strerror(-k)) : 0;
}

int launch_send_start(struct run *r, struct sb_err *err)
{
	struct sb_ipc_start m = { .keep = r->opt->keep, .hold = run_snaps_wanted(r) };
	sb_autofd int plan = -1;
	sb_autofd int env = -1;
	uint8_t *values = NULL;
	size_t len = 0;
	sb_autofd int agent = -1;
	int fds[7];
	int k = launch_memfd("sendbox-plan", r->plan_bytes, r->plan_len, &plan);

	if (k == 0)
		k = sb_plan_env_pack(r->plan, &values, &len);
	if (k == 0) {
		k = launch_memfd("sendbox-env", values, len, &env);
		sb_wipe(values, len);
		free(values);
	}
	sb_plan_env_wipe(r->plan);
	if (k < 0)
		return sb_err_set(err, k, "cannot pass the plan on: %s", strerror(-k));
	m.terminals = r->terminals;
	k = send_audit(r, err);
	if (k < 0)
		return k;
	if (r->plan->ssh.n_keys > 0) {
		k = ssh_agent_open(&agent, err);
		if (k < 0)
			return k;
	}
	sb_random(m.psk, sizeof(m.psk));
	memcpy(m.public_key, r->pub, 32);
	memcpy(m.signature, r->sig, 64);
	fds[0] = plan;
	fds[1] = env;
	for (int i = 0; i < 3; i++)
		fds[i + 2] = r->io[i].fd;
	fds[5] = r->bundle->fds[SB_BUNDLE_GUEST];
	fds[6] = agent;
	k = sb_ipc_send(r->sock, SB_IPC_START, &m, sizeof(m), fds, agent >= 0 ? 7 : 6);
	sb_wipe(&m, sizeof(m));
	/* from here only the channel process holds them: a closed reader is seen at once */
	for (int i = 0; i < 3; i++)
		sb_fd_close(&r->io[i].fd);
	return k < 0 ? sb_err_set(err, k, "cannot reach the monitor: %s", strerror(-k)) : 0;
}

static void send_size(struct run *r)
{
	struct sb_ipc_resize m = { 0 };

	cli_term_size(r->stdio[1], &m.rows, &m.cols);
	if (sb_ipc_send(r->sock, SB_IPC_RESIZE, &m, sizeof(m), NULL, 0) < 0)
		sb_debug("resize was not sent");
}

void launch_say(void *arg, const char *text)
{
	const struct run *r = arg;

	if (!r->l->quiet)
		cli_error("%s", text);
}

static void on_command(struct run *r, const struct sb_ipc_exec_event *ev)
{
	if (r->events)
		cli_event_command(r->plan, ev);
	else if (r->commands)
		commands_add(r->commands, ev, launch_say, r);
}

/* The session goes on without this process. */
static void on_detached(void *arg)
{
	struct run *r = arg;

	r->detached = true;
	sb_loop_stop(r->loop, 0);
}

static void on_message(struct sb_io *io, uint32_t events)
{
	struct run *r = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const struct sb_ipc_net_event *ev;
	size_t n_ev;
	const void *p;
	int k = sb_ipc_recv(r->sock, &msg);

	(void)events;
	if (k == -EAGAIN)
		return;
	if (k != 0) { /* the monitor is gone, or the holder */
		sb_loop_stop(r->loop, 0);
		return;
	}
	if (r->attach && (k = attach_message(r->attach, &msg)) != 0) {
		if (k < 0)
			sb_loop_stop(r->loop, 0);
		return;
	}
	if (asking_message(r->asking, &msg))
		return;
	switch (msg.type) {
	case SB_IPC_STARTED:
		r->started = true;
		if (r->hold && r->hold->detach) {
			attach_leave(r->attach);
			on_detached(r);
			break;
		}
		if (r->events)
			cli_event_started(r->plan->session,
					  sb_provider_get(r->plan->provider)->name);
		if (r->plan->tty && cli_term_raw(r->stdio[0]) < 0)
			cli_error("cannot set the terminal to raw mode");
		if (r->plan->tty)
			send_size(r);
		break;
	case SB_IPC_NET_EVENT:
		n_ev = sb_ipc_get_events(&msg, &ev);
		for (size_t i = 0; i < n_ev; i++) {
			if (r->events)
				cli_event_network(&ev[i]);
			else if (r->summary)
				summary_add(r->summary, &ev[i]);
		}
		break;
	case SB_IPC_EXEC_EVENT:
		p = sb_ipc_get_exec_event(&msg);
		if (p)
			on_command(r, p);
		break;
	case SB_IPC_SSH_EVENT:
		p = sb_ipc_get_ssh_event(&msg);
		if (p && r->events)
			cli_event_ssh(r->plan, p);
		else if (p && r->ssh)
			ssh_summary_add(r->ssh, p);
		break;
	case SB_IPC_DONE:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_done), 0);
		if (p) {
			r->result = *(const struct sb_ipc_done *)p;
			r->done = true;
		}
		sb_loop_stop(r->loop, 0);
		break;
	default:
		sb_debug("message %u ignored", msg.type);
	}
}

static void on_signal(struct sb_io *io, uint32_t events)
{
	struct run *r = io->owner;
	struct signalfd_siginfo si;
	struct sb_ipc_signal m = { 0 };

	(void)events;
	if (read(r->sigfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_signo == SIGWINCH) {
		if (r->plan->tty && r->started)
			send_size(r);
		return;
	}
	if (r->attach && si.ssi_signo == SIGHUP) { /* the terminal is gone, the instance stays */
		attach_leave(r->attach);
		on_detached(r);
		return;
	}
	/* the first one asks the program to end, the second one ends everything */
	r->cancelled = true;
	m.signo = si.ssi_signo;
	if (sb_ipc_send(r->sock, SB_IPC_CANCEL, &m, sizeof(m), NULL, 0) < 0)
		sb_loop_stop(r->loop, 0);
	/* of a builder that is stopped nothing is kept: there is nothing to wait for */
	else if (r->plan->builder && sb_ipc_send(r->sock, SB_IPC_CANCEL, &m, sizeof(m), NULL, 0) < 0)
		sb_loop_stop(r->loop, 0);
}

static int catch_signals(struct run *r, struct sb_err *err)
{
	static const int which[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	sigset_t set;
	int k;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < SB_ARRAY_LEN(which); i++) {
		struct sigaction sa;

		/* nohup and background jobs ignore some: keep it so */
		if (which[i] != SIGWINCH && sigaction(which[i], NULL, &sa) == 0 &&
		    sa.sa_handler == SIG_IGN)
			continue;
		(void)sigaddset(&set, which[i]);
	}
	if (sigprocmask(SIG_BLOCK, &set, &r->old_mask) < 0)
		return sb_err_set(err, -errno, "sigprocmask: %s", strerror(errno));
	r->masked = true;
	r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->sigfd < 0)
		return sb_err_set(err, -errno, "signalfd: %s", strerror(errno));
	k = sb_io_set(r->loop, &r->sig_io, r->sigfd, EPOLLIN, on_signal, r);
	return k < 0 ? sb_err_set(err, k, "signals: %s", strerror(-k)) : 0;
}

/* A caller that goes on gets its signals back; else they stay held until the program ends, which
 * is now. */
static void release_signals(struct run *r)
{
	struct signalfd_siginfo si;

	while (r->sigfd >= 0 && read(r->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		r->cancelled |= si.ssi_signo != SIGWINCH;
	sb_fd_close(&r->sigfd);
	if (r->masked && r->l->quiet)
		(void)sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	r->masked = false;
}

/* The session's directory need not survive a power cut: no fsync. */
static int put_file(int dir, const char *name, const void *p, size_t len)
{
	sb_autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : sb_fd_write_all(fd, p, len);
}

int launch_session_dir(struct run *r, struct sb_err *err)
{
	size_t cleared = 0;
	struct sb_err gc_err = { 0 };
	char text[700];
	int k;

	if (cli_gc(&r->dirs.d, false, &cleared, &gc_err) < 0) {
		(void)snprintf(text, sizeof(text), "remains of an earlier session could not be "
						   "cleared: %s", gc_err.text);
		launch_say(r, text);
	}
	k = cli_session_new(&r->dirs.d, r->plan->session, &r->session, err);
	if (k < 0)
		return k;
	r->have_session = true;
	k = put_file(r->session.dir, "plan.json", r->plan_bytes, r->plan_len);
	if (k == 0 && r->opt->keep)
		k = put_file(r->session.dir, "keep", "", 0);
	return k < 0 ? sb_err_set(err, k, "cannot write to %s: %s", r->session.path, strerror(-k)) : 0;
}

/* By a monitor of our own. */
static int run_plain(struct run *r, struct sb_err *err)
{
	int k = launch_session_dir(r, err);

	if (k == 0)
		k = asking_new(r, &r->asking, err);
	if (k == 0)
		k = catch_signals(r, err);
	if (k == 0)
		k = open_stdio(r, err);
	if (k == 0)
		k = launch_monitor(r, err);
	if (k == 0)
		k = sb_io_set(r->loop, &r->sock_io, r->sock, EPOLLIN, on_message, r);
	if (k == 0)
		k = launch_send_start(r, err);
	if (k == 0)
		k = run_snaps_begin(r, err);
	/* while the others start: syncing takes its time. Without a record nothing goes on. */
	if (k == 0)
		k = plan_store_put(&r->dirs.d, r->plan->session, r->file, r->file_len, err);
	if (k == 0)
		k = remember_begin(r, err);
	return k == 0 ? sb_loop_run(r->loop) : k;
}

/* By a holder, whose first client this process is. */
static int run_held(struct run *r, struct sb_err *err)
{
	struct attach_conf c = { .stdio = r->stdio,
				 .flags = SB_ATTACH_FOREGROUND | SB_ATTACH_OUTPUT | SB_ATTACH_EVENTS,
				 .json = r->json,
				 .keys = r->hold->keys,
				 .no_input = r->hold->detach,
				 .detached = on_detached,
				 .note = launch_say,
				 .arg = r };
	int k = hold_start(r, r->hold, &r->sock, err);

	if (k < 0)
		return k;
	k = catch_signals(r, err);
	c.loop = r->loop;
	c.sock = r->sock;
	if (k == 0)
		k = attach_new(&c, &r->attach, err);
	if (k == 0)
		k = sb_io_set(r->loop, &r->sock_io, r->sock, EPOLLIN, on_message, r);
	return k == 0 ? sb_loop_run(r->loop) : k;
}

int launch_session(struct run *r, struct sb_err *err)
{
	for (int i = 1; i < 3 && !r->json; i++)
		if (isatty(r->stdio[i]) && (!r->hold || r->plan->tty))
			r->terminals = (uint8_t)(r->terminals | 1U << i);
	return r->hold ? run_held(r, err) : run_plain(r, err);
}

static void wait_monitor(struct run *r)
{
	if (r->monitor <= 0)
		return;
	while (waitpid(r->monitor, NULL, 0) < 0 && errno == EINTR)
		continue;
	r->monitor = 0;
}

void launch_session_end(struct run *r)
{
	struct sb_err err = { 0 };
	bool abnormal = r->detached || !r->done || r->result.fail != SB_FAIL_NONE;

	r->asking = asking_free(r->asking);
	cli_term_restore(abnormal);
	sb_io_del(&r->sock_io);
	sb_io_del(&r->sig_io);
	sb_fd_close(&r->sock); /* the monitor sees it and ends, if it has not yet */
	wait_monitor(r);
	if (r->attach) {
		if (!r->detached)
			attach_drain(r->attach);
		if (r->result.exit.lost == 0)
			r->result.exit.lost = (uint32_t)attach_lost(r->attach);
		r->attach = attach_free(r->attach);
	}
	for (int i = 0; i < 3; i++)
		cli_fd_done(&r->io[i], i > 0);
	if (r->events) {
		cli_events_drain(r->events);
		r->events = cli_events_free(r->events);
	}
	if (r->have_session || r->hold) {
		cli_session_done(&r->session);
		if (!r->done && !r->detached) { /* the monitor died: its clean-up is ours */
			size_t n = 0;

			if (cli_gc(&r->dirs.d, false, &n, &err) < 0)
				cli_error("clean-up: %s", err.text);
		}
	}
	run_snaps_end(r);
	remember_end(r);
	release_signals(r);
}
