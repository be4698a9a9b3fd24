/*
 * sendbox exec: one more command in a running instance. The caller's own descriptors go to the session's
 * channel process, as those of `run` do; the holder passes only the beginning, signals and the end on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "approve_note.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cmd_instance.h"
#include "cmd_judge.h"
#include "crypto/crypto.h"
#include "fds.h"
#include "launch_i.h"
#include "plan_make_i.h"
#include "os/loop.h"
#include "term.h"
#include "wire/attach.h"
#include "wire/exec_req.h"

struct exec {
	struct sb_loop *loop;
	int sock;
	int sigfd;
	struct sb_io sock_io;
	struct sb_io sig_io;
	int io[3];
	bool tty;
	bool ended;
	struct sb_ipc_exited exit;
	struct sb_err *err;
};

static void on_message(struct sb_io *io, uint32_t events)
{
	struct exec *x = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const struct sb_ipc_failed *f;
	int k = sb_ipc_recv(x->sock, &msg);

	(void)events;
	if (k == -EAGAIN)
		return;
	if (k != 0 || sb_attach_check(&msg, SB_ATTACH_FROM_HOLDER) < 0) {
		(void)sb_err_set(x->err, -ECONNRESET, "the session has ended");
		sb_loop_stop(x->loop, 0);
		return;
	}
	switch (msg.type) {
	case SB_IPC_STARTED:
		if (x->tty && cli_term_raw(x->io[0]) < 0)
			cli_error("cannot set the terminal to raw mode");
		break;
	case SB_IPC_EXITED:
		memcpy(&x->exit, msg.data, sizeof(x->exit));
		x->ended = true;
		sb_loop_stop(x->loop, 0);
		break;
	case SB_ATT_REFUSED:
		f = (const void *)msg.data;
		(void)sb_err_set(x->err, -EACCES, "%.400s", f->text);
		sb_loop_stop(x->loop, 0);
		break;
	case SB_IPC_DONE:
		(void)sb_err_set(x->err, -ECONNRESET, "the session has ended");
		sb_loop_stop(x->loop, 0);
		break;
	default:
		break;
	}
}

static void on_signal(struct sb_io *io, uint32_t events)
{
	struct exec *x = io->owner;
	struct signalfd_siginfo si;
	struct sb_ipc_resize size = { 0 };
	struct sb_ipc_signal sig = { 0 };
	int k;

	(void)events;
	if (read(x->sigfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_signo == SIGWINCH) {
		cli_term_size(x->io[1], &size.rows, &size.cols);
		k = x->tty ? sb_ipc_send(x->sock, SB_IPC_RESIZE, &size, sizeof(size), NULL, 0) : 0;
	} else {
		sig.signo = si.ssi_signo;
		k = sb_ipc_send(x->sock, SB_IPC_SIGNAL, &sig, sizeof(sig), NULL, 0);
	}
	if (k < 0)
		sb_loop_stop(x->loop, 0);
}

static int watch(struct exec *x)
{
	sigset_t set;
	int k;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGQUIT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	x->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (x->sigfd < 0)
		return -errno;
	k = sb_io_set(x->loop, &x->sig_io, x->sigfd, EPOLLIN, on_signal, x);
	return k < 0 ? k : sb_io_set(x->loop, &x->sock_io, x->sock, EPOLLIN, on_message, x);
}

/* The PATH that the guest will search, or NULL: values are not part of a kept plan. */
static const char *path_of(const struct sb_plan *plan, const struct exec_want *w)
{
	const char *usual = plan_env_path();
	uint8_t sha256[SB_SHA256_LEN];

	for (size_t n = 0; n < w->n_env; n++)
		if (strncmp(w->env[n], "PATH=", 5) == 0)
			return w->env[n] + 5;
	sb_sha256(usual, strlen(usual), sha256);
	for (size_t n = 0; n < plan->n_env; n++)
		if (strcmp(plan->env[n].name, "PATH") == 0)
			return memcmp(plan->env[n].sha256, sha256, sizeof(sha256)) == 0 ? usual : NULL;
	return NULL;
}

/* The command policy says to it what it says to the first command: of the program that the guest will
 * find with this folder and this PATH. */
static int judge(const struct cli_dirs *d, const struct instance *i, const struct exec_want *w,
		 struct sb_err *err)
{
	sb_autoplan struct sb_plan *plan = NULL;
	char name[] = "PATH";
	struct sb_plan_env path = { .name = name };
	struct sb_plan as; /* the plan's but for what is borrowed from @w */
	sb_autofd int dir = -1;
	int k = instance_plan(d, i, &plan, err);

	if (k < 0 || plan->commands.scope == SB_CMD_SCOPE_NONE)
		return k;
	path.value = (char *)(uintptr_t)path_of(plan, w);
	as = *plan;
	as.env = &path;
	as.n_env = path.value ? 1 : 0;
	as.argv = (char **)(uintptr_t)w->argv;
	if (w->cwd)
		as.cwd = (char *)(uintptr_t)w->cwd;
	if (!path.value && !strchr(w->argv[0], '/')) {
		(void)sb_err_set(err, -EACCES, "\"%.200s\" cannot be judged by the command policy: the "
				 "instance has a PATH of its own; give the program's path", w->argv[0]);
		return command_refused(&d->d, &as, true, "", "own-path", err);
	}
	k = instance_session_dir(d, i, &dir, err);
	return k < 0 ? k : cmd_judge_start(&d->d, &as, NULL, true, dir, w->env, w->n_env, err);
}

static void add_strings(struct sb_buf *b, const char *s, uint32_t *n)
{
	sb_buf_add(b, s, strlen(s) + 1);
	(*n)++;
}

static int request(const struct exec_want *w, bool tty, bool apart, int *ret, struct sb_err *err)
{
	sb_autobuf struct sb_buf argv;
	sb_autobuf struct sb_buf env;
	sb_autobuf struct sb_buf all;
	struct sb_exec_req q = { .flags = (tty ? SB_EXEC_REQ_TTY : 0) |
					  (tty && apart ? SB_EXEC_REQ_SEPARATE_STDERR : 0),
				 .cwd = w->cwd ? w->cwd : "" };
	const char *term = getenv("TERM");
	char text[80];
	int k;

	sb_buf_init(&argv, SB_EXEC_REQ_MAX);
	sb_buf_init(&env, SB_EXEC_REQ_MAX);
	sb_buf_init(&all, SB_EXEC_REQ_MAX);
	for (char *const *a = w->argv; *a; a++)
		add_strings(&argv, *a, &q.n_argv);
	if (tty) {
		(void)snprintf(text, sizeof(text), "TERM=%.64s", term && *term ? term : "xterm-256color");
		add_strings(&env, text, &q.n_env);
	}
	for (size_t i = 0; i < w->n_env; i++)
		add_strings(&env, w->env[i], &q.n_env);
	q.cwd_len = (uint32_t)strlen(q.cwd);
	q.argv = (const char *)argv.data;
	q.argv_len = (uint32_t)argv.len;
	q.env = (const char *)env.data;
	q.env_len = (uint32_t)env.len;
	sb_exec_req_write(&all, &q);
	k = sb_buf_error(&argv) ? sb_buf_error(&argv)
	    : sb_buf_error(&env) ? sb_buf_error(&env)
				 : sb_buf_error(&all);
	if (k == 0)
		k = launch_memfd("sendbox-exec", all.data, all.len, ret);
	return k < 0 ? sb_err_set(err, k, "the command cannot be passed on: %s",
				  k == -EFBIG ? "it is too long" : strerror(-k))
		     : 0;
}

static int send_exec(struct exec *x, const struct exec_want *w, struct cli_fd io[3],
		     struct sb_err *err)
{
	struct sb_attach_hello hello = { .version = SB_ATTACH_VERSION };
	struct sb_ipc_run run = { 0 };
	sb_autofd int req = -1;
	int fds[4];
	int k = request(w, x->tty, x->tty && !isatty(x->io[2]), &req, err);

	for (int i = 0; k == 0 && i < 3; i++) {
		k = cli_fd_open(x->io[i], i > 0, &io[i], err);
		fds[i] = io[i].fd;
		if (i > 0 && isatty(x->io[i]))
			run.terminals |= 1U << i;
	}
	if (k < 0)
		return k;
	if (x->tty)
		cli_term_size(x->io[1], &run.rows, &run.cols);
	fds[3] = req;
	k = sb_ipc_send(x->sock, SB_ATT_HELLO, &hello, sizeof(hello), NULL, 0);
	if (k == 0)
		k = sb_ipc_send(x->sock, SB_ATT_EXEC, &run, sizeof(run), fds, 4);
	for (int i = 0; i < 3; i++)
		sb_fd_close(&io[i].fd);
	return k < 0 ? sb_err_set(err, k, "the session does not answer: %s", strerror(-k)) : 0;
}

static int status_of(const struct sb_ipc_exited *x, const char *program, struct sb_err *err)
{
	if (x->lost != 0) {
		(void)sb_err_set(err, -EIO, "output of the command is lost: cannot write it: %s",
				 strerror((int)x->lost));
		return SB_EXIT_INTERNAL;
	}
	switch (x->kind) {
	case SB_EXIT_CODE:
		return (int)(x->value & 255);
	case SB_EXIT_SIGNAL:
		return 128 + (int)(x->value & 127);
	case SB_EXIT_NOT_FOUND:
		(void)sb_err_set(err, -ENOENT, "%.200s: not found in the sandbox", program);
		return SB_EXIT_NO_PROGRAM;
	case SB_EXIT_NOT_EXEC:
		(void)sb_err_set(err, -EACCES, "%.200s: cannot be executed in the sandbox: %s", program,
				 strerror((int)x->value));
		return SB_EXIT_CANNOT_EXEC;
	default:
		(void)sb_err_set(err, -EIO, "the guest could not set the command up: %s",
				 strerror((int)x->value));
		return SB_EXIT_GUEST;
	}
}

static int run(struct exec *x, const struct exec_want *w, struct sb_err *err)
{
	struct cli_fd io[3] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
	int k = sb_loop_new(&x->loop);

	if (k == 0)
		k = watch(x);
	if (k == 0)
		k = send_exec(x, w, io, err);
	if (k == 0)
		k = sb_loop_run(x->loop);
	cli_term_restore(!x->ended);
	sb_io_del(&x->sock_io);
	sb_io_del(&x->sig_io);
	sb_fd_close(&x->sock);
	sb_fd_close(&x->sigfd);
	for (int i = 0; i < 3; i++)
		cli_fd_done(&io[i], i > 0);
	x->loop = sb_loop_free(x->loop);
	return k;
}

int instance_exec(struct instances *in, const struct exec_want *w, int *ret, struct sb_err *err)
{
	struct exec x = { .sock = -1, .sigfd = -1, .err = err };
	struct instance i = { 0 };
	int k = instance_get(in->s, w->name, &i, err);

	for (int n = 0; n < 3; n++)
		x.io[n] = w->io[n] >= 0 ? w->io[n] : n;
	x.tty = w->tty < 0 ? isatty(x.io[0]) && isatty(x.io[1]) : w->tty != 0;
	if (k == 0)
		k = judge(&in->dirs, &i, w, err);
	if (k == 0)
		k = instance_connect(&in->dirs, &i, &x.sock, err);
	instance_done(&i);
	if (k == 0)
		k = run(&x, w, err);
	if (k < 0)
		return k;
	if (!x.ended)
		return err->code ? err->code : sb_err_set(err, -ECONNRESET, "the session has ended");
	*ret = status_of(&x.exit, w->argv[0], err);
	return 0;
}

/* ---- sendbox exec ---- */

struct exec_options {
	struct exec_want w;
	char *env[512];
	bool json;
};

static int take(void *arg, int id, const char *value, struct sb_err *err)
{
	struct exec_options *o = arg;
	const char *v;
	char *kv = NULL;

	switch (id) {
	case 2:
		if (value[0] != '/')
			return sb_err_set(err, -EINVAL, "--cwd takes an absolute path of the sandbox");
		o->w.cwd = value;
		return 0;
	case 3:
		if (o->w.n_env == SB_ARRAY_LEN(o->env))
			return sb_err_set(err, -EINVAL, "too many --env");
		v = strchr(value, '=') ? NULL : getenv(value);
		if (!strchr(value, '=') && !v)
			return sb_err_set(err, -EINVAL, "--env %.60s: not set here", value);
		if (asprintf(&kv, "%s%s%s", value, v ? "=" : "", v ? v : "") < 0)
			return sb_err_set(err, -ENOMEM, "out of memory");
		if (kv[0] == '=')
			return sb_err_set(err, -EINVAL, "--env: no name");
		o->env[o->w.n_env++] = kv;
		return 0;
	case 4:
		if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
			return sb_err_set(err, -EINVAL, "--interactive needs a terminal on standard input "
							"and output");
		o->w.tty = 1;
		return 0;
	default:
		o->w.tty = 0;
		return 0;
	}
}

int cmd_exec(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "cwd", 'w', "DIR", "working directory in the sandbox", 2 },
		{ "env", 'e', "NAME[=VALUE]", "set a variable, or pass the caller's on", 3 },
		{ "interactive", 'i', NULL, "use a terminal (default when stdin and stdout are one)", 4 },
		{ "tty", 't', NULL, "the same as --interactive", 4 },
		{ "no-tty", 'T', NULL, "use none", 5 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox exec [options] NAME -- PROGRAM [ARG...]",
				       "Run one more program in a running instance.", table,
				       SB_ARRAY_LEN(table), take, true };
	static struct exec_options o = { .w = { .tty = -1, .io = { -1, -1, -1 } } };
	struct instances *in;
	struct sb_err err = { 0 };
	int status = SB_EXIT_INTERNAL;
	int at = 0;
	int k = verb_options(&v, &o, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (at < argc) { /* options may stand on both sides of the name */
		int more = 0;

		o.w.name = argv[at++];
		k = verb_options(&v, &o, argc - at, argv + at, &more);
		if (k != 0)
			return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
		at += more;
	}
	if (at >= argc) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	o.w.argv = argv + at;
	o.w.env = (const char *const *)o.env;
	if (instances_open(&in) < 0)
		return SB_EXIT_INTERNAL;
	k = instance_exec(in, &o.w, &status, &err);
	if (err.code != 0)
		cli_error("%s", err.text);
	if (k == -EACCES)
		return SB_EXIT_PLAN_REFUSED;
	if (k == -ENOENT || k == -ENOTCONN)
		return SB_EXIT_NO;
	return k == -EINVAL ? SB_EXIT_USAGE : k < 0 ? SB_EXIT_INTERNAL : status;
}
