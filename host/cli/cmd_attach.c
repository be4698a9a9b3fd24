/* sendbox attach, stop, logs: clients of a running session, and its log. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "base/fd.h"
#include "base/num.h"
#include "cmd_instance.h"
#include "run_agent.h"
#include "term.h"
#include "wire/attach.h"
#include "wire/termfilter.h"

struct client {
	struct sb_loop *loop;
	struct attach *a;
	int sock;
	int sigfd;
	struct sb_io sock_io;
	struct sb_io sig_io;
	const char *name;
	bool detached;
	bool done;
	bool raw;
	struct sb_ipc_done result;
};

static void note(void *arg, const char *text)
{
	(void)arg;
	cli_error("%s", text);
}

static void leave(void *arg)
{
	struct client *c = arg;

	c->detached = true;
	sb_loop_stop(c->loop, 0);
}

static void go_raw(struct client *c)
{
	if (c->raw || !attach_tty(c->a) || !isatty(STDIN_FILENO))
		return;
	c->raw = true;
	if (cli_term_raw(STDIN_FILENO) < 0)
		cli_error("cannot set the terminal to raw mode");
}

static void on_message(struct sb_io *io, uint32_t events)
{
	struct client *c = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int k = sb_ipc_recv(c->sock, &msg);

	(void)events;
	if (k == -EAGAIN)
		return;
	k = k == 0 ? attach_message(c->a, &msg) : -EPIPE; /* also at its end */
	if (k < 0) {
		sb_loop_stop(c->loop, 0);
		return;
	}
	go_raw(c);
	if (msg.type == SB_IPC_DONE) {
		memcpy(&c->result, msg.data, sizeof(c->result));
		c->done = true;
		sb_loop_stop(c->loop, 0);
	}
}

static void on_signal(struct sb_io *io, uint32_t events)
{
	struct client *c = io->owner;
	struct signalfd_siginfo si;
	struct sb_ipc_resize m = { 0 };

	(void)events;
	if (read(c->sigfd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_signo == SIGWINCH) {
		cli_term_size(STDOUT_FILENO, &m.rows, &m.cols);
		if (attach_tty(c->a) &&
		    sb_ipc_send(c->sock, SB_IPC_RESIZE, &m, sizeof(m), NULL, 0) < 0)
			leave(c);
		return;
	}
	attach_leave(c->a);
	leave(c);
}

static int watch(struct client *c)
{
	sigset_t set;
	int k;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	c->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->sigfd < 0)
		return -errno;
	k = sb_io_set(c->loop, &c->sig_io, c->sigfd, EPOLLIN, on_signal, c);
	return k < 0 ? k : sb_io_set(c->loop, &c->sock_io, c->sock, EPOLLIN, on_message, c);
}

static int status_of(const struct sb_ipc_done *d)
{
	if (d->fail != SB_FAIL_NONE)
		return cli_exit_of(d->fail);
	return d->exit.kind == SB_EXIT_SIGNAL ? 128 + (int)(d->exit.value & 127)
					      : (int)(d->exit.value & 255);
}

static int attach_to(struct instances *in, const struct instance *i, const char *keys, bool no_input)
{
	static const int stdio[] = { 0, 1, 2 };
	struct client c = { .sock = -1, .sigfd = -1, .name = i->name };
	struct attach_conf conf = { .stdio = stdio, .flags = SB_ATTACH_OUTPUT | SB_ATTACH_REPLAY,
				    .no_input = no_input, .keys = keys, .detached = leave, .note = note,
				    .arg = &c };
	struct sb_err err = { 0 };
	int lost;
	int k = instance_connect(&in->dirs, i, &c.sock, &err);

	if (k == 0)
		k = sb_loop_new(&c.loop);
	conf.loop = c.loop;
	conf.sock = c.sock;
	if (k == 0)
		k = attach_new(&conf, &c.a, &err);
	if (k == 0)
		k = watch(&c);
	if (k == 0)
		k = sb_loop_run(c.loop);
	cli_term_restore(c.detached || !c.done);
	if (c.a && c.done)
		attach_drain(c.a);
	lost = c.a ? attach_lost(c.a) : 0;
	sb_io_del(&c.sock_io);
	sb_io_del(&c.sig_io);
	c.a = attach_free(c.a);
	sb_fd_close(&c.sock);
	sb_fd_close(&c.sigfd);
	c.loop = sb_loop_free(c.loop);
	if (k < 0) {
		cli_error("%s", err.code ? err.text : strerror(-k));
		return k == -ENOTCONN ? SB_EXIT_NO : SB_EXIT_INTERNAL;
	}
	if (c.detached) {
		cli_error("detached: instance %s runs on", i->name);
		return SB_EXIT_OK;
	}
	if (!c.done) {
		cli_error("the session's holder ended unexpectedly, or cut this client off");
		return SB_EXIT_INTERNAL;
	}
	if (lost != 0) {
		cli_error("output of the command is lost: cannot write it: %s", strerror(lost));
		return SB_EXIT_INTERNAL;
	}
	if (c.result.fail != SB_FAIL_NONE)
		cli_error("%s", c.result.text);
	run_agent_settings_tell(&in->dirs.d, i->name);
	return status_of(&c.result);
}

struct attach_options {
	const char *keys;
	bool no_input;
};

static int take_attach(void *arg, int id, const char *value, struct sb_err *err)
{
	struct attach_options *o = arg;
	uint8_t keys[ATTACH_KEYS_MAX];

	if (id == 3)
		o->no_input = true;
	if (id != 2)
		return 0;
	o->keys = value;
	return attach_keys(value, keys, err) < 0 ? -EINVAL : 0;
}

/* The one instance that is named, or its refusal as exit status. */
static int one_named(struct instances **in, const char *name, struct instance *ret)
{
	struct sb_err err = { 0 };
	int k;

	if (instances_open(in) < 0)
		return SB_EXIT_INTERNAL;
	k = instance_get((*in)->s, name, ret, &err);
	if (k < 0)
		cli_error("%s", err.text);
	return k == 0 ? 0 : k == -ENOENT ? SB_EXIT_NO : k == -EINVAL ? SB_EXIT_USAGE : SB_EXIT_INTERNAL;
}

int cmd_attach(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "detach-keys", 0, "KEYS", "keys that leave (default ctrl-p,ctrl-q)", 2 },
		{ "no-stdin", 0, NULL, "look only", 3 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox attach [options] NAME",
				       "Join the session of a running instance.", table,
				       SB_ARRAY_LEN(table), take_attach };
	struct attach_options o = { 0 };
	struct instance i = { 0 };
	struct instances *in;
	int at = 0;
	int k = verb_options(&v, &o, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (argc - at != 1) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	k = one_named(&in, argv[at], &i);
	if (k == 0)
		k = attach_to(in, &i, o.keys, o.no_input);
	instance_done(&i);
	return k;
}

/* ---- stop ---- */

/* Wait for DONE or the end of the socket. Return: 1; 0: not within @ms; -errno. */
static int wait_done(int sock, int ms)
{
	uint64_t until = sb_now_ns() + (uint64_t)ms * 1000000U;

	for (;;) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		struct pollfd p = { .fd = sock, .events = POLLIN };
		uint64_t now = sb_now_ns();
		int k;

		if (now >= until)
			return 0;
		if (poll(&p, 1, (int)((until - now) / 1000000U) + 1) <= 0)
			continue;
		k = sb_ipc_recv(sock, &msg);
		if (k == SB_IPC_EOF || (k == 0 && msg.type == SB_IPC_DONE))
			return 1;
		if (k < 0 && k != -EAGAIN)
			return k;
	}
}

static int stop_one(struct instances *in, const char *name, uint64_t ms)
{
	static const uint16_t how[] = { SB_IPC_SIGNAL, SB_IPC_CANCEL, SB_IPC_CANCEL };
	struct sb_attach_hello hello = { .version = SB_ATTACH_VERSION };
	struct sb_ipc_signal m = { .signo = SIGTERM };
	const int patience[] = { (int)SB_MIN(ms, 3600000U), 1, 20000 };
	struct instance i = { 0 };
	struct sb_err err = { 0 };
	sb_autofd int sock = -1;
	int k = instance_get(in->s, name, &i, &err);
	int done = 0;

	if (k == 0 && !instance_runs(&i)) {
		printf("%s\n", name); /* as wanted */
		instance_done(&i);
		return SB_EXIT_OK;
	}
	if (k == 0)
		k = instance_connect(&in->dirs, &i, &sock, &err);
	if (k == 0)
		k = sb_ipc_send(sock, SB_ATT_HELLO, &hello, sizeof(hello), NULL, 0);
	for (size_t n = 0; k == 0 && done == 0 && n < SB_ARRAY_LEN(how); n++) {
		if (sb_ipc_send(sock, how[n], &m, sizeof(m), NULL, 0) < 0)
			break;
		done = wait_done(sock, patience[n]);
	}
	if (k == 0 && done == 0)
		k = sb_err_set(&err, -ETIMEDOUT, "instance \"%s\" did not end", name);
	instance_done(&i);
	if (k < 0) {
		cli_error("%s", err.code ? err.text : strerror(-k));
		return SB_EXIT_NO;
	}
	printf("%s\n", name);
	run_agent_settings_tell(&in->dirs.d, name);
	return SB_EXIT_OK;
}

static int take_stop(void *arg, int id, const char *value, struct sb_err *err)
{
	uint64_t *ms = arg;

	(void)id;
	if (strcmp(value, "0") == 0) {
		*ms = 0;
		return 0;
	}
	return sb_num_duration_ms(value, ms) < 0
		       ? sb_err_set(err, -EINVAL, "--time takes a time, as 10 or 1m")
		       : 0;
}

int cmd_stop(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "time", 't', "TIME", "how long it may take to end by itself (default 10)", 2 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox stop [--time TIME] NAME...",
				       "End the sessions of running instances; their files stay.", table,
				       SB_ARRAY_LEN(table), take_stop };
	uint64_t ms = 10000;
	struct instances *in;
	int status = SB_EXIT_OK;
	int at = 0;
	int k = verb_options(&v, &ms, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (at >= argc) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	if (instances_open(&in) < 0)
		return SB_EXIT_INTERNAL;
	for (int i = at; i < argc; i++)
		status |= stop_one(in, argv[i], ms);
	in->s = state_close(in->s);
	return status;
}

/* ---- logs ---- */

struct logs {
	bool follow;
	uint64_t tail; /* lines; UINT64_MAX = all */
	struct sb_termfilter filter;
	bool filtered;
};

static int put(struct logs *l, const uint8_t *p, size_t len)
{
	static uint8_t out[SB_TERMFILTER_ROOM(16384)];
	size_t n = len;

	if (l->filtered) {
		n = sb_termfilter_run(&l->filter, p, len, out);
		p = out;
	}
	return sb_fd_write_all(STDOUT_FILENO, p, n);
}

/* From @at to the end. Return: where it ended; -errno. */
static off_t copy_rest(struct logs *l, int fd, off_t at)
{
	static uint8_t buf[16384];
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		int k = put(l, buf, (size_t)n);

		if (k < 0)
			return k;
		at += n;
	}
	return n < 0 ? -errno : at;
}

/* Where the last @lines lines of a file begin; @lines is lessened by what was found. */
static off_t tail_of(int fd, uint64_t *lines)
{
	static uint8_t buf[16384];
	struct stat st;
	off_t at = fstat(fd, &st) == 0 ? st.st_size : 0;
	bool last = true;

	while (at > 0) {
		off_t from = at > (off_t)sizeof(buf) ? at - (off_t)sizeof(buf) : 0;
		ssize_t n = pread(fd, buf, (size_t)(at - from), from);

		if (n <= 0)
			return 0;
		for (ssize_t i = n; i > 0; i--) {
			bool first_seen = last;

			last = false;
			if (buf[i - 1] != '\n' || first_seen)
				continue;
			if (--*lines == 0)
				return from + i;
		}
		at = from;
	}
	return 0;
}

static int show_logs(struct instances *in, const struct instance *i, struct logs *l)
{
	struct sb_err err = { 0 };
	char path[4200];
	sb_autofd int dir = -1;
	sb_autofd int old = -1;
	sb_autofd int now = -1;
	uint64_t lines = l->tail;
	off_t at = 0;
	off_t old_at = -1;
	int k = instance_dir(in->s, i->id, path, sizeof(path), &dir, &err);

	if (k < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_INTERNAL;
	}
	old = openat(dir, "console.log.1", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	now = openat(dir, "console.log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (l->tail != UINT64_MAX && l->tail > 0) {
		at = now >= 0 ? tail_of(now, &lines) : 0;
		old_at = lines > 0 && at == 0 && old >= 0 ? tail_of(old, &lines) : -1;
	} else if (l->tail == 0) {
		struct stat st;

		at = now >= 0 && fstat(now, &st) == 0 ? st.st_size : 0;
	} else {
		old_at = 0;
	}
	if (old >= 0 && old_at >= 0 && copy_rest(l, old, old_at) < 0)
		return SB_EXIT_OUTPUT;
	for (;;) {
		struct instance again = { 0 };
		struct stat mine;
		struct stat there;
		bool runs;

		runs = l->follow && instance_get(in->s, i->name, &again, &err) == 0 &&
		       instance_runs(&again);
		instance_done(&again);
		if (now >= 0) {
			at = copy_rest(l, now, at);
			if (at < 0)
				return SB_EXIT_OUTPUT;
		}
		if (!runs)
			break;
		(void)usleep(200000);
		if (fstatat(dir, "console.log", &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (now < 0 || fstat(now, &mine) < 0 || mine.st_ino != there.st_ino)) {
			if (now >= 0 && copy_rest(l, now, at) < 0)
				return SB_EXIT_OUTPUT;
			sb_fd_close(&now);
			now = openat(dir, "console.log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
			at = 0;
		}
	}
	return SB_EXIT_OK;
}

static int take_logs(void *arg, int id, const char *value, struct sb_err *err)
{
	struct logs *l = arg;

	if (id == 2)
		l->follow = true;
	else if (id == 3 && sb_num_u64(value, 0, UINT64_MAX - 1, &l->tail) < 0)
		return sb_err_set(err, -EINVAL, "--tail takes a number of lines");
	return 0;
}

int cmd_logs(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "follow", 'f', NULL, "go on as long as it runs", 2 },
		{ "tail", 'n', "N", "the last N lines (default: all that is kept)", 3 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox logs [options] NAME",
				       "Print what the sessions of an instance printed.", table,
				       SB_ARRAY_LEN(table), take_logs };
	static struct logs l;
	struct instance i = { 0 };
	struct instances *in;
	int at = 0;
	int k;

	l.tail = UINT64_MAX;
	l.filtered = isatty(STDOUT_FILENO);
	k = verb_options(&v, &l, argc, argv, &at);
	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (argc - at != 1) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	k = one_named(&in, argv[at], &i);
	if (k == 0)
		k = show_logs(in, &i, &l);
	instance_done(&i);
	return k;
}
