/*
 * Theory of operation. The command line program makes and signs the plan, then hands it with
 * three descriptors to the monitor and waits: for signals, for the monitor's messages, and (with
 * --json) for output. It is the only process that touches the user's terminal. Its exit status is
 * decided by the monitor's last message, DONE, which comes when everything is cleaned up; the end
 * of the monitor without it means that this program clears the session itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
#include "bundle_local.h"
#include "cli.h"
#include "cmd_judge.h"
#include "commands.h"
#include "conf_load.h"
#include "conn/plan_env.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "events.h"
#include "fds.h"
#include "options.h"
#include "os/loop.h"
#include "os/spawn.h"
#include "plan_again.h"
#include "plan_make.h"
#include "plan_net.h"
#include "plan_store.h"
#include "provider/executable.h"
#include "session.h"
#include "summary.h"
#include "term.h"

struct run {
	struct run_options opt;
	struct conf conf;
	struct cli_dirs dirs;
	struct sb_bundle *bundle;
	struct sb_plan *plan;
	char *plan_bytes;
	size_t plan_len;
	char program[201]; /* for messages; the plan is gone by then */
	char *file; /* the signed plan */
	size_t file_len;
	struct cli_session session;
	bool have_session;
	struct sb_loop *loop;
	struct cli_fd io[3];
	struct cli_events *events;
	int sock; /* to the monitor */
	pid_t monitor;
	sigset_t old_mask;
	int sigfd;
	struct sb_io sock_io;
	struct sb_io sig_io;
	bool started;
	bool cancelled;
	bool done;
	struct commands *commands; /* judged executions; not with --json */
	struct summary *summary; /* of what the net gate refused; not with --json */
	struct sb_ipc_done result;
};

static int fail(struct run *r, uint32_t why, struct sb_err *err, int code)
{
	if (r->result.fail == SB_FAIL_NONE) {
		r->result.fail = why;
		if (err->code == 0)
			(void)sb_err_set(err, code, "%s", strerror(-code));
	}
	return code;
}

static int sealed_memfd(const char *name, const void *p, size_t len, int *ret)
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

/* The signed plan as it is printed and kept. */
static int make_file(struct run *r, const uint8_t pub[32], const uint8_t sig[64],
		     struct sb_err *err)
{
	struct sb_plan_file f = { .plan = r->plan_bytes, .plan_len = r->plan_len };
	int k;

	memcpy(f.key, pub, sizeof(f.key));
	memcpy(f.signature, sig, sizeof(f.signature));
	k = sb_plan_file_write(&f, &r->file, &r->file_len);
	return k < 0 ? sb_err_set(err, k, "the signed plan: %s", strerror(-k)) : 0;
}

static int make_plan(struct run *r, uint8_t pub[32], uint8_t sig[64], struct sb_err *err)
{
	uint8_t sec[64];
	uint32_t why = SB_FAIL_INTERNAL;
	const struct plan_input in = { .opt = &r->opt,
				       .conf = &r->conf.loaded,
				       .line = &r->conf.line };
	int k = cli_host_key(&r->dirs.d, pub, sec, err);

	if (k == 0) {
		why = SB_FAIL_PROVIDER;
		k = cli_bundle_open(&r->dirs.d, pub, sec, &r->bundle, err);
	}
	if (k == 0 && r->opt.plan)
		k = plan_again(&r->opt, &r->dirs.d, r->bundle, pub, &r->plan, &why, err);
	else if (k == 0)
		k = plan_make(&in, &r->dirs.d, r->bundle, pub, &r->plan, &why, err);
	if (k == 0 && !r->opt.dry_run) {
		why = SB_FAIL_PLAN;
		k = cmd_judge_start(r->plan, !r->opt.json, err);
	}
	if (k == 0) {
		why = SB_FAIL_PLAN;
		(void)snprintf(r->program, sizeof(r->program), "%.200s", r->plan->argv[0]);
		k = sb_plan_write(r->plan, &r->plan_bytes, &r->plan_len, err);
	}
	if (k == 0)
		sb_sign(r->plan_bytes, r->plan_len, sec, sig);
	if (k == 0)
		k = make_file(r, pub, sig, err);
	sb_wipe(sec, sizeof(sec));
	return k < 0 ? fail(r, why, err, k) : 0;
}

/* The configuration, accepted. */
static int load(struct run *r, struct sb_err *err)
{
	char text[SB_ERR_TEXT_MAX];
	int k = conf_load(&r->dirs, &r->opt, &r->conf, err);

	if (k == -EBADMSG) {
		conf_problem_text(&r->conf.problems, text, sizeof(text));
		if (!r->opt.json) {
			problems_print(&r->conf.problems);
			(void)snprintf(text, sizeof(text), "nothing was started");
		}
		(void)sb_err_set(err, k, "%s", text);
	}
	if (k == 0)
		k = conf_trusted(&r->dirs, &r->opt, &r->conf, !r->opt.json, err);
	return k < 0 ? fail(r, SB_FAIL_USAGE, err, k) : 0;
}

static int open_stdio(struct run *r, struct sb_err *err)
{
	int k = cli_fd_open(0, &r->io[0], err);

	if (k == 0 && r->opt.json) {
		int fds[2];

		k = cli_events_new(r->loop, &r->events, fds, err);
		if (k == 0) {
			r->io[1].fd = fds[0];
			r->io[2].fd = fds[1];
		}
		return k;
	}
	if (k == 0)
		k = cli_fd_open(1, &r->io[1], err);
	if (k == 0)
		k = cli_fd_open(2, &r->io[2], err);
	return k;
}

static int start_monitor(struct run *r, struct sb_err *err)
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

static int send_start(struct run *r, const uint8_t pub[32], const uint8_t sig[64],
		      struct sb_err *err)
{
	struct sb_ipc_start m = { .keep = r->opt.keep };
	sb_autofd int plan = -1;
	sb_autofd int env = -1;
	uint8_t *values = NULL;
	size_t len = 0;
	int fds[6];
	int k = sealed_memfd("sendbox-plan", r->plan_bytes, r->plan_len, &plan);

	if (k == 0)
		k = sb_plan_env_pack(r->plan, &values, &len);
	if (k == 0) {
		k = sealed_memfd("sendbox-env", values, len, &env);
		sb_wipe(values, len);
		free(values);
	}
	sb_plan_env_wipe(r->plan);
	if (k < 0)
		return sb_err_set(err, k, "cannot pass the plan on: %s", strerror(-k));
	for (int i = 1; i < 3 && !r->opt.json; i++)
		if (isatty(i))
			m.terminals = (uint8_t)(m.terminals | 1U << i);
	sb_random(m.psk, sizeof(m.psk));
	memcpy(m.public_key, pub, 32);
	memcpy(m.signature, sig, 64);
	fds[0] = plan;
	fds[1] = env;
	for (int i = 0; i < 3; i++)
		fds[i + 2] = r->io[i].fd;
	fds[5] = r->bundle->fds[SB_BUNDLE_GUEST];
	k = sb_ipc_send(r->sock, SB_IPC_START, &m, sizeof(m), fds, 6);
	sb_wipe(&m, sizeof(m));
	/* from here only the channel process holds them: a closed reader is seen at once */
	for (int i = 0; i < 3; i++)
		sb_fd_close(&r->io[i].fd);
	return k < 0 ? sb_err_set(err, k, "cannot reach the monitor: %s", strerror(-k)) : 0;
}

static void send_size(struct run *r)
{
	struct sb_ipc_resize m = { 0 };

	cli_term_size(STDOUT_FILENO, &m.rows, &m.cols);
	if (sb_ipc_send(r->sock, SB_IPC_RESIZE, &m, sizeof(m), NULL, 0) < 0)
		sb_debug("resize was not sent");
}

static void tell_line(void *arg, const char *text)
{
	(void)arg;
	cli_error("%s", text);
}

static void on_command(struct run *r, const struct sb_ipc_exec_event *ev)
{
	if (r->events)
		cli_event_command(r->plan, ev);
	else if (r->commands)
		commands_add(r->commands, ev, tell_line, NULL);
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
	if (k != 0) { /* the monitor is gone */
		sb_loop_stop(r->loop, 0);
		return;
	}
	switch (msg.type) {
	case SB_IPC_STARTED:
		r->started = true;
		if (r->events)
			cli_event_started(r->plan->session,
					  sb_provider_get(r->plan->provider)->name);
		if (r->plan->tty && cli_term_raw(STDIN_FILENO) < 0)
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
	/* the first one asks the program to end, the second one ends everything */
	r->cancelled = true;
	m.signo = si.ssi_signo;
	if (sb_ipc_send(r->sock, SB_IPC_CANCEL, &m, sizeof(m), NULL, 0) < 0)
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
	r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->sigfd < 0)
		return sb_err_set(err, -errno, "signalfd: %s", strerror(errno));
	k = sb_io_set(r->loop, &r->sig_io, r->sigfd, EPOLLIN, on_signal, r);
	return k < 0 ? sb_err_set(err, k, "signals: %s", strerror(-k)) : 0;
}

/* The session's directory need not survive a power cut: no fsync. */
static int put_file(int dir, const char *name, const void *p, size_t len)
{
	sb_autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : sb_fd_write_all(fd, p, len);
}

/* Everything from the session directory to the monitor's last message. */
static int run_session(struct run *r, const uint8_t pub[32], const uint8_t sig[64],
		       struct sb_err *err)
{
	size_t cleared = 0;
	struct sb_err gc_err = { 0 };
	int k;

	if (cli_gc(&r->dirs.d, false, &cleared, &gc_err) < 0)
		cli_error("remains of an earlier session could not be cleared: %s", gc_err.text);
	k = cli_session_new(&r->dirs.d, r->plan->session, &r->session, err);
	if (k < 0)
		return k;
	r->have_session = true;
	k = put_file(r->session.dir, "plan.json", r->plan_bytes, r->plan_len);
	if (k == 0 && r->opt.keep)
		k = put_file(r->session.dir, "keep", "", 0);
	if (k < 0)
		return sb_err_set(err, k, "cannot write to %s: %s", r->session.path, strerror(-k));
	k = catch_signals(r, err);
	if (k == 0)
		k = open_stdio(r, err);
	if (k == 0)
		k = start_monitor(r, err);
	if (k == 0)
		k = sb_io_set(r->loop, &r->sock_io, r->sock, EPOLLIN, on_message, r);
	if (k == 0)
		k = send_start(r, pub, sig, err);
	/* while the others start: syncing takes its time. Without a record nothing goes on. */
	if (k == 0)
		k = plan_store_put(&r->dirs.d, r->plan->session, r->file, r->file_len, err);
	if (k == 0)
		k = sb_loop_run(r->loop);
	return k;
}

static void wait_monitor(struct run *r)
{
	if (r->monitor <= 0)
		return;
	while (waitpid(r->monitor, NULL, 0) < 0 && errno == EINTR)
		continue;
	r->monitor = 0;
}

/* Undo in reverse order; the first error stays the one that is told. */
static void finish(struct run *r, struct sb_err *err)
{
	bool abnormal = !r->done || r->result.fail != SB_FAIL_NONE;

	cli_term_restore(abnormal);
	sb_io_del(&r->sock_io);
	sb_io_del(&r->sig_io);
	sb_fd_close(&r->sock); /* the monitor sees it and ends, if it has not yet */
	wait_monitor(r);
	for (int i = 0; i < 3; i++)
		cli_fd_done(&r->io[i], i > 0);
	if (r->events) {
		cli_events_drain(r->events);
		r->events = cli_events_free(r->events);
	}
	if (r->have_session) {
		cli_session_done(&r->session);
		if (!r->done) { /* the monitor died: its clean-up is ours */
			size_t n = 0;

			if (cli_gc(&r->dirs.d, false, &n, err) < 0)
				cli_error("clean-up: %s", err->text);
		}
	}
	sb_fd_close(&r->sigfd);
	r->loop = sb_loop_free(r->loop);
	r->bundle = sb_bundle_free(r->bundle);
	free(r->plan_bytes);
	free(r->file);
	conf_done(&r->conf);
}

static int status_of(const struct run *r, const char **text, char *buf, size_t cap)
{
	const struct sb_ipc_exited *x = &r->result.exit;

	*text = NULL;
	if (r->result.fail != SB_FAIL_NONE) {
		*text = r->result.text;
		return cli_exit_of(r->result.fail);
	}
	if (x->lost != 0) {
		(void)snprintf(buf, cap, "output of the command is lost: cannot write it: %s",
			       strerror((int)x->lost));
		*text = buf;
		return SB_EXIT_INTERNAL;
	}
	switch (x->kind) {
	case SB_EXIT_CODE:
		return (int)(x->value & 255);
	case SB_EXIT_SIGNAL:
		if (x->oom) {
			*text = "the command was killed because it used more memory than its "
				"limit; give more with --memory";
		}
		return 128 + (int)(x->value & 127);
	case SB_EXIT_NOT_FOUND:
		(void)snprintf(buf, cap, "%.200s: not found in the sandbox", r->program);
		*text = buf;
		return SB_EXIT_NO_PROGRAM;
	case SB_EXIT_NOT_EXEC:
		(void)snprintf(buf, cap, "%.200s: cannot be executed in the sandbox: %s",
			       r->program, strerror((int)x->value));
		*text = buf;
		return SB_EXIT_CANNOT_EXEC;
	default:
		(void)snprintf(buf, cap, "the guest could not set the command up: %s",
			       strerror((int)x->value));
		*text = buf;
		return SB_EXIT_GUEST;
	}
}

static int report(const struct run *r)
{
	char buf[300];
	const char *text;
	int status = status_of(r, &text, buf, sizeof(buf));

	if (!r->opt.json) {
		if (text && *text)
			cli_error("%s", text);
		return status;
	}
	if (r->result.fail == SB_FAIL_NONE && r->result.exit.lost == 0 &&
	    (r->result.exit.kind == SB_EXIT_CODE || r->result.exit.kind == SB_EXIT_SIGNAL))
		cli_event_exit(status, &r->result.exit);
	else
		cli_event_error(status, text ? text : "");
	if (ferror(stdout)) { /* nobody got that line: this is the only other way to tell */
		cli_error("cannot write the events to standard output");
		return SB_EXIT_INTERNAL;
	}
	return status;
}

static int dry_run(const struct run *r)
{
	int k = sb_fd_write_all(STDOUT_FILENO, r->file, r->file_len);

	if (k < 0)
		cli_error("cannot write the plan to standard output: %s", strerror(-k));
	return k < 0 ? SB_EXIT_INTERNAL : SB_EXIT_OK;
}

/* A grant of a port of this host that the program never used by its name, and then failed. */
static bool host_unused(const struct run *r)
{
	const struct sb_plan_net *n = &r->plan->net;
	bool granted = false;

	for (size_t i = 0; i < n->n_rules; i++)
		granted |= !n->rules[i].deny && strcmp(n->rules[i].host, SB_HOST_NAME) == 0;
	return granted && !summary_saw_host(r->summary) && r->done &&
	       r->result.fail == SB_FAIL_NONE && r->result.exit.kind == SB_EXIT_CODE &&
	       r->result.exit.value != 0;
}

static void tell_summary(const struct run *r, bool unused)
{
	summary_tell(r->summary, plan_net_is_own, tell_line, NULL);
	if (unused)
		cli_error("network: the allowed port of this host was not used: inside, this host is "
			  SB_HOST_NAME ", and localhost is the sandbox itself");
}

static void tell_open(const struct run *r)
{
	const struct plan_input in = { .opt = &r->opt,
				       .conf = &r->conf.loaded,
				       .line = &r->conf.line };
	const struct cfg_value *v = conf_set(&in, "policy.network.mode");
	char where[600];

	conf_where(&in, v ? v : conf_set(&in, "policy.network.default_action"), where, sizeof(where));
	cli_error("%s: the network is not filtered, every public name and address is in reach", where);
}

int cmd_run(int argc, char **argv)
{
	struct run r = { .sock = -1,
			 .sigfd = -1,
			 .session = { .dir = -1, .lock = -1 },
			 .io = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } } };
	struct sb_err err = { 0 };
	uint8_t pub[32];
	uint8_t sig[64];
	bool unused;
	int k = run_options_parse(argc, argv, &r.opt, &err);

	if (k < 0) { /* --json may stand anywhere before the error: look again */
		for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
			r.opt.json |= strcmp(argv[i], "--json") == 0;
		(void)fail(&r, SB_FAIL_USAGE, &err, k);
	} else if (r.opt.help) {
		run_options_help();
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	if (k == 0 && (k = sb_crypto_init()) < 0)
		(void)fail(&r, SB_FAIL_INTERNAL, &err, k);
	if (k == 0 && (k = cli_dirs_init(&r.dirs, &err)) < 0)
		(void)fail(&r, SB_FAIL_INTERNAL, &err, k);
	if (k == 0 && !r.opt.plan)
		k = load(&r, &err);
	if (k == 0)
		k = make_plan(&r, pub, sig, &err);
	if (k == 0 && r.opt.dry_run)
		return dry_run(&r);
	if (k == 0 && (k = sb_loop_new(&r.loop)) < 0)
		(void)fail(&r, SB_FAIL_INTERNAL, &err, k);
	if (k == 0 && !r.opt.json && (k = summary_new(&r.summary)) < 0)
		(void)fail(&r, SB_FAIL_INTERNAL, &err, k);
	if (k == 0 && !r.opt.json && (k = commands_new(r.plan, !r.plan->tty, &r.commands)) < 0)
		(void)fail(&r, SB_FAIL_INTERNAL, &err, k);
	if (k == 0) {
		if (r.plan->provider == SB_PROVIDER_NAMESPACE && !r.opt.json)
			cli_error("runtime namespace shares the host's kernel: weaker than a "
				  "virtual machine");
		if (r.plan->net.mode == SB_NET_OPEN)
			tell_open(&r);
		if (r.plan->test_root && !r.opt.json)
			cli_error("SENDBOX_TEST_GUEST_ROOT is set: the command runs as root of the "
				  "guest");
		k = run_session(&r, pub, sig, &err);
		if (k < 0)
			(void)fail(&r, SB_FAIL_INTERNAL, &err, k);
		else if (!r.done)
			(void)fail(&r, SB_FAIL_INTERNAL,
				   &err, sb_err_set(&err, -ESRCH,
						    "the session's monitor ended unexpectedly; "
						    "everything was cleared"));
	}
	if (k < 0 || !r.done) {
		struct sb_err first = err;

		(void)snprintf(r.result.text, sizeof(r.result.text), "%.499s", first.text);
	}
	unused = r.plan && r.summary && host_unused(&r);
	finish(&r, &err);
	if (r.opt.keep && r.have_session && !r.opt.json)
		cli_error("session kept in %s; clear it with: sendbox gc --all", r.session.path);
	if (r.commands)
		commands_tell(r.commands, tell_line, NULL);
	r.commands = commands_free(r.commands);
	if (r.summary)
		tell_summary(&r, unused);
	r.summary = summary_free(r.summary);
	r.plan = sb_plan_free(r.plan);
	return report(&r);
}
