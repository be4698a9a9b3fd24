/*
 * Theory of operation. One loop; sources: the channel, signals (SIGCHLD for reaping), one report
 * pipe and up to four stream ends per command, in a micro-VM the network's relay, and with a command
 * policy for the whole tree the judge's events. The session ends in one of five ways, the first of
 * which counts:
 *
 *   SHUTDOWN from the host   kill, reap, write back files, BYE, return 0
 *   the channel is dead      kill, return its error: there is nobody to tell
 *   a file pump died         kill, FAILED, return -EIO: files are not to be trusted any more
 *   the judge died           kill, FAILED, return -EIO: no program may be started any more
 *   SIGTERM and the like     kill, FAILED, return -EINTR
 *
 * The workload cannot reach this process: another uid (or no capabilities, where rootless has one
 * uid only), not dumpable, PID 1 where it counts, and every signal blocked.
 */
#include "exec/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "conn/chan.h"
#include "conn/plan_env.h"
#include "exec/command.h"
#include "exec/confine.h"
#include "exec/judge.h"
#include "exec/leaf.h"
#include "exec/probe.h"
#include "os/landlock.h"
#include "os/loop.h"
#include "relay/net_relay.h"
#include "wire/ctl.h"

#define END_NS 3000000000ULL /* to wait for the killed and for the carrier at the end */
#define FLUSH_NS 1000000ULL
#define EVENT_ROOM (256U << 10) /* of the control queue, which events leave to other messages */
#define EVENT_RETRY_NS 20000000ULL
#define EVENTS_END_MS 1000 /* for the judge to tell what it has counted */

struct serve {
	const struct sb_guest_env *env;
	const struct sb_plan *plan;
	struct sb_loop *loop;
	struct sb_chan *chan; /* NULL when dead */
	struct sb_commands *commands;
	struct sb_net_relay *relay; /* NULL: no network, or a namespace, where the gate listens */
	struct sb_confine confine;
	struct sb_judge judge;
	struct sb_io judge_io;
	struct sb_timer judge_retry;
	int sigfd;
	struct sb_io sig_io;
	struct sb_probe probe; /* reads back what confines a command, beside the handshake */
	struct sb_io probe_io;
	bool probed;           /* the probe has ended */
	bool scoped;           /* signals of the workload stay within it */
	bool greeted;          /* the host can hear */
	struct sb_err refused; /* why no command may start; told to the host when it can hear */
	bool ran;              /* RUN was seen */
	bool timed;            /* TIME was seen, and the plan is within its time */
	bool ending;           /* nothing new is taken */
	int status;            /* what to return; valid while ending */
};

static void tick(struct sb_timer *t)
{
	(void)t;
}

static void end(struct serve *s, int status)
{
	if (!s->ending) {
		s->ending = true;
		s->status = status;
	}
	sb_loop_stop(s->loop, 0);
}

static void send_ctl(struct serve *s, const struct sb_ctl *m)
{
	struct sb_buf b;
	int r;

	if (!s->chan)
		return;
	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, m);
	r = sb_buf_error(&b);
	if (r == 0)
		r = sb_chan_control(s->chan, b.data, b.len);
	sb_buf_done(&b);
	if (r < 0) /* a host that does not read control messages is as good as gone */
		end(s, r);
}

static void send_failed(struct serve *s, int error, const char *text)
{
	struct sb_ctl m = { .type = SB_CTL_FAILED,
			    .value = (uint32_t)-error,
			    .text = text,
			    .text_len = strlen(text) };

	send_ctl(s, &m);
}

/* --- the judge of executions ------------------------------------------------------------ */

static void send_event(struct serve *s, const struct sb_judge_event *ev)
{
	struct sb_ctl m = { .type = SB_CTL_EXEC_EVENT, .cmd = ev->cmd };

	m.event.pid = ev->pid;
	m.event.rule = ev->rule;
	m.event.count = ev->count;
	m.event.action = ev->action;
	m.event.top_level = ev->top_level;
	m.event.killed = ev->killed;
	m.event.cut = ev->cut;
	m.event.why = ev->why;
	m.event.why_len = strnlen(ev->why, sizeof(ev->why));
	m.text = ev->path;
	m.text_len = strnlen(ev->path, sizeof(ev->path));
	m.argv = ev->argv;
	m.argv_len = SB_MIN((size_t)ev->argv_len, sizeof(ev->argv));
	m.n_argv = ev->n_argv;
	send_ctl(s, &m);
}

static void on_judge(struct sb_io *io, uint32_t events);

static void judge_again(struct sb_timer *t)
{
	struct serve *s = t->owner;

	if (sb_io_set(s->loop, &s->judge_io, s->judge.sock, EPOLLIN, on_judge, s) < 0)
		end(s, -ENOMEM);
}

/* Pass on what waits, as far as the host reads it. Return: as sb_judge_next at the end. */
static int pass_events(struct serve *s)
{
	struct sb_judge_event ev;
	int r = -EAGAIN;

	if (s->judge.sock < 0)
		return -EAGAIN;
	while (s->chan && sb_chan_control_room(s->chan) > EVENT_ROOM) {
		r = sb_judge_next(&s->judge, &ev);
		if (r != 0)
			return r;
		send_event(s, &ev);
	}
	return -ENOBUFS;
}

static void on_judge(struct sb_io *io, uint32_t events)
{
	struct serve *s = io->owner;
	int r = pass_events(s);

	(void)events;
	if (r == -EAGAIN || r == SB_JUDGE_FLUSHED)
		return;
	sb_io_del(&s->judge_io); /* an end is told by the death of the process */
	if (r == -ENOBUFS)
		sb_timer_set(s->loop, &s->judge_retry, EVENT_RETRY_NS, judge_again, s);
}

/* What the judge has only counted so far belongs to the session's record. */
static void last_events(struct serve *s)
{
	uint64_t deadline = sb_now_ns() + EVENTS_END_MS * 1000000ULL;
	struct sb_timer t = { 0 };
	int r = -EAGAIN;

	sb_io_del(&s->judge_io);
	sb_timer_del(&s->judge_retry);
	if (s->judge.sock < 0 || !s->chan || sb_judge_flush(&s->judge) < 0)
		return;
	while ((r == -EAGAIN || r == -ENOBUFS) && s->chan && sb_now_ns() < deadline) {
		r = pass_events(s);
		if (r != -EAGAIN && r != -ENOBUFS)
			break;
		sb_timer_set(s->loop, &t, FLUSH_NS, tick, NULL);
		if (sb_loop_turn(s->loop, -1) < 0)
			break;
	}
	sb_timer_del(&t);
}

static bool has_judge(const struct sb_plan *p)
{
	return p->commands.scope == SB_CMD_SCOPE_TREE || (p->log_blocked && !p->test_root);
}

static int start_judge(struct serve *s, struct sb_err *err)
{
	struct sb_judge_config cfg = {
		.plan = s->plan,
		/* its copy of our memory need not hold the key of the channel */
		.secret = (void *)(uintptr_t)s->env->boot->psk,
		.secret_len = sizeof(s->env->boot->psk),
	};
	int r;

	if (!has_judge(s->plan))
		return 0;
	if (s->confine.asking.len > 0)
		cfg.plain = &s->confine.filter;
	r = sb_judge_start(&cfg, &s->judge, err);
	if (r < 0)
		return r;
	r = sb_io_set(s->loop, &s->judge_io, s->judge.sock, EPOLLIN, on_judge, s);
	return r < 0 ? sb_err_set(err, r, "command policy: %s", strerror(-r)) : 0;
}

/* --- commands --------------------------------------------------------------------------- */

static void on_started(void *owner, uint32_t id)
{
	struct sb_ctl m = { .type = SB_CTL_STARTED, .cmd = id };

	send_ctl(owner, &m);
}

static void on_exited(void *owner, const struct sb_ctl *m)
{
	(void)pass_events(owner); /* what it did comes before its end */
	send_ctl(owner, m);
}

static int run(struct serve *s, const struct sb_ctl *m)
{
	struct sb_command_request req = {
		.argv = s->plan->argv,
		.cwd = s->plan->cwd,
		.tty = s->plan->tty,
		.separate_stderr = s->plan->separate_stderr,
		.rows = m->rows,
		.cols = m->cols,
	};

	char **env = NULL;
	size_t len = 0;
	int r;

	if (s->ran || (s->env->vm && !s->timed))
		return -EPROTO;
	s->ran = true;
	r = sb_plan_env_vector(s->plan, &env, &len);
	if (r < 0)
		return r;
	req.env = env;
	r = sb_commands_start(s->commands, m->cmd, &req);
	sb_plan_env_wipe(s->env->boot->plan); /* not wanted any more */
	sb_wipe(env, len);
	free(env);
	return r;
}

/* Point @n strings that lie back to back into @ret[0..n], NULL-terminated. */
static int split(const char *p, size_t len, uint32_t n, char **ret)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t one = strnlen(p, len);

		if (one == len)
			return -EBADMSG;
		ret[i] = (char *)(uintptr_t)p;
		p += one + 1;
		len -= one + 1;
	}
	ret[n] = NULL;
	return len == 0 ? 0 : -EBADMSG;
}

static int exec_further(struct serve *s, const struct sb_ctl *m)
{
	struct sb_command_request req = {
		.tty = m->flags & SB_CTL_F_TTY,
		.separate_stderr = m->flags & SB_CTL_F_SEPARATE_STDERR,
		.rows = m->rows,
		.cols = m->cols,
	};
	sb_autofree char **v = NULL;
	sb_autofree char *cwd = NULL;
	size_t n = (size_t)m->n_argv + m->n_env + 2;
	int r;

	if (m->n_argv == 0 || memchr(m->text ? m->text : "", '\0', m->text_len))
		return -EBADMSG;
	v = calloc(n, sizeof(*v));
	cwd = m->text_len ? strndup(m->text, m->text_len) : strdup(s->plan->cwd);
	if (!v || !cwd)
		return -ENOMEM;
	r = split(m->argv, m->argv_len, m->n_argv, v);
	if (r == 0)
		r = split(m->env, m->env_len, m->n_env, v + m->n_argv + 1);
	if (r < 0)
		return r;
	req.argv = v;
	req.env = v + m->n_argv + 1;
	req.cwd = cwd;
	return sb_commands_start(s->commands, m->cmd, &req);
}

/* --- channel ---------------------------------------------------------------------------- */

/* READY's text: what the start told, what the probe found. */
static int report(struct serve *s, char *text, size_t cap, struct sb_err *err)
{
	const char *found;
	char pids[48] = "";
	int r = sb_probe_text(&s->probe, &found, err);
	int n;

	if (r == 0 && s->env->cgroup)
		r = sb_leaf_pids(s->env->cgroup, pids, sizeof(pids), err);
	if (r < 0)
		return r;
	n = snprintf(text, cap, "%ssignals=%s\n%s%s",
		     s->env->ready_text ? s->env->ready_text : "",
		     s->env->vm ? "by user" : s->scoped ? "scoped" : "open", pids, found);
	return n < 0 || (size_t)n >= cap ? sb_err_set(err, -E2BIG, "the report is too long") : 0;
}

/* When both are there: somebody to tell, and something to say. */
static void maybe_ready(struct serve *s)
{
	static char text[SB_CONTROLS_MAX_TEXT];
	struct sb_ctl m = { .type = SB_CTL_READY, .text = text };

	if (!s->greeted || s->ending || (!s->probed && s->refused.code == 0))
		return;
	if (s->refused.code == 0)
		(void)report(s, text, sizeof(text), &s->refused);
	if (s->refused.code < 0) {
		send_failed(s, s->refused.code, s->refused.text);
		end(s, s->refused.code);
		return;
	}
	m.text_len = strlen(text);
	send_ctl(s, &m);
}

static void on_ready(struct sb_chan *c)
{
	struct serve *s = sb_chan_owner(c);

	s->greeted = true;
	maybe_ready(s);
}

static void on_probe(struct sb_io *io, uint32_t events)
{
	struct serve *s = io->owner;

	(void)events;
	sb_io_del(&s->probe_io);
	s->probed = true;
	maybe_ready(s);
}

/*
 * Files get the host's times: a clock that is behind makes them come from the future. With the
 * first message it is known whether the plan is still good.
 */
static void set_time(struct serve *s, uint64_t ns)
{
	struct sb_err err = { 0 };
	struct timespec want = { .tv_sec = (time_t)(ns / 1000000000U),
				 .tv_nsec = (long)(ns % 1000000000U) };

	if (clock_settime(CLOCK_REALTIME, &want) < 0)
		sb_log("cannot set the clock: %s", strerror(errno));
	if (s->timed)
		return;
	s->timed = true;
	if (sb_plan_check_time(s->plan, ns / 1000000000U, &err) < 0) {
		sb_log("%s", err.text);
		send_failed(s, err.code, err.text);
		end(s, err.code);
	}
}

static int on_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	struct serve *s = sb_chan_owner(c);
	struct sb_ctl m;
	int r = sb_ctl_parse(msg, len, &m);

	if (r < 0)
		return r;
	if (s->ending)
		return 0;
	switch ((enum sb_ctl_type)m.type) {
	case SB_CTL_RUN:
		return run(s, &m);
	case SB_CTL_EXEC:
		return exec_further(s, &m);
	case SB_CTL_SIGNAL:
		sb_commands_signal(s->commands, m.cmd, m.value);
		return 0;
	case SB_CTL_KILL:
		sb_commands_kill(s->commands, m.cmd);
		return 0;
	case SB_CTL_RESIZE:
		sb_commands_resize(s->commands, m.cmd, m.rows, m.cols);
		return 0;
	case SB_CTL_SHUTDOWN:
		end(s, 0);
		return 0;
	case SB_CTL_TIME:
		if (s->env->vm) /* in a namespace the clock is the host's own */
			set_time(s, m.time_ns);
		return 0;
	case SB_CTL_NONE:
	case SB_CTL_READY:
	case SB_CTL_STARTED:
	case SB_CTL_EXITED:
	case SB_CTL_FAILED:
	case SB_CTL_BYE:
	case SB_CTL_EXEC_EVENT:
	default:
		return -EPROTO; /* ours to send */
	}
}

static int on_opened(struct sb_chan *c, struct sb_stream *stream, enum sb_stream_kind kind,
		     uint32_t cmd)
{
	struct serve *s = sb_chan_owner(c);

	return sb_commands_attach(s->commands, stream, kind, cmd);
}

static void on_closed(struct sb_chan *c, int err, const char *why)
{
	struct serve *s = sb_chan_owner(c);

	sb_log("channel closed: %s", why ? why : strerror(-err));
	sb_commands_forget_streams(s->commands);
	if (s->relay)
		sb_net_relay_channel(s->relay, NULL);
	s->chan = sb_chan_free(c);
	end(s, err < 0 ? err : -ECONNRESET);
}

static const struct sb_chan_ops chan_ops = {
	.ready = on_ready,
	.control = on_control,
	.opened = on_opened,
	.closed = on_closed,
};

/* --- signals and children --------------------------------------------------------------- */

static bool is_pump(const struct serve *s, pid_t pid)
{
	for (size_t i = 0; i < s->env->n_pumps; i++)
		if (s->env->pumps[i] == pid)
			return true;
	return false;
}

static void reap(struct serve *s)
{
	for (;;) {
		struct rusage ru;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG, &ru);

		if (pid <= 0)
			return;
		if (is_pump(s, pid) && !s->ending) {
			send_failed(s, -EIO, "a file server connection broke");
			end(s, -EIO);
		}
		if (pid == s->judge.pid) {
			s->judge.pid = 0;
			if (!s->ending) {
				send_failed(s, -EIO, "the judge of commands ended");
				end(s, -EIO);
			}
		}
		sb_commands_reaped(s->commands, pid, status, &ru);
	}
}

static void on_signal(struct sb_io *io, uint32_t events)
{
	struct serve *s = io->owner;
	struct signalfd_siginfo si[8];
	ssize_t n = read(s->sigfd, si, sizeof(si));

	(void)events;
	for (ssize_t i = 0; i * (ssize_t)sizeof(si[0]) < n; i++) {
		if (si[i].ssi_signo == SIGCHLD || s->ending)
			continue;
		send_failed(s, -EINTR, "the guest was told to stop");
		end(s, -EINTR);
	}
	reap(s);
}

/* Exec keeps what is ignored, so nothing may be. SIGPIPE is blocked like the rest. */
static int set_signals(struct serve *s, struct sb_err *err)
{
	sigset_t all;
	sigset_t wanted;

	(void)sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return sb_err_set(err, -errno, "signal mask: %s", strerror(errno));
	for (int i = 1; i < NSIG; i++) {
		struct sigaction sa;

		if (sigaction(i, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN) {
			sa = (struct sigaction){ .sa_handler = SIG_DFL };
			(void)sigaction(i, &sa, NULL);
		}
	}
	(void)sigemptyset(&wanted);
	(void)sigaddset(&wanted, SIGCHLD);
	(void)sigaddset(&wanted, SIGTERM);
	(void)sigaddset(&wanted, SIGINT);
	(void)sigaddset(&wanted, SIGHUP);
	s->sigfd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->sigfd < 0)
		return sb_err_set(err, -errno, "signalfd: %s", strerror(errno));
	return 0;
}

/* --- start and end ---------------------------------------------------------------------- */

/* What each command needs to be confined; without all of it none is started. */
static int prepare_walls(struct serve *s, struct sb_err *err)
{
	const struct sb_guest_env *env = s->env;
	int r = env->cgroup ? sb_leaf_setup(env->cgroup, s->plan, err) : 0;

	if (r < 0)
		return r;
	r = sb_confine_prepare(s->plan, env->vm, env->cgroup != NULL, &s->confine, err);
	if (r == 0)
		r = start_judge(s, err);
	/* the judge and the pumps are there already: nobody whom this process starts from here on
	 * reaches them, though he may have their user */
	if (r == 0 && !env->vm)
		s->scoped = sb_landlock_scope_signals() == 0;
	if (r == 0)
		r = sb_probe_start(s->plan, &s->confine, s->judge.sock, &s->probe, err);
	if (r < 0)
		return r;
	r = sb_io_set(s->loop, &s->probe_io, s->probe.done, EPOLLIN, on_probe, s);
	return r < 0 ? sb_err_set(err, r, "event loop: %s", strerror(-r)) : 0;
}

static int prepare(struct serve *s, struct sb_err *err)
{
	const struct sb_guest_env *env = s->env;
	struct sb_commands_config cc = {
		.plan = s->plan,
		.confine = &s->confine,
		.cgroup = env->cgroup,
		.judge = &s->judge,
		.export = env->export,
		.alone = getpid() == 1 && env->n_pumps == 0 && !has_judge(s->plan),
		.started = on_started,
		.exited = on_exited,
		.owner = s,
	};
	int fd;
	int r;

	/* descriptors 0 to 2 must be taken, or a pipe could become one of them */
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return sb_err_set(err, -errno, "/dev/null: %s", strerror(errno));
	} while (fd < 3);
	sb_fd_close(&fd);
	r = set_signals(s, err);
	if (r < 0)
		return r;
	if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return sb_err_set(err, -errno, "subreaper: %s", strerror(errno));
	r = sb_loop_new(&s->loop);
	if (r == 0)
		r = sb_io_set(s->loop, &s->sig_io, s->sigfd, EPOLLIN, on_signal, s);
	if (r == 0) {
		cc.loop = s->loop;
		r = sb_commands_new(&cc, &s->commands);
	}
	return r < 0 ? sb_err_set(err, r, "event loop: %s", strerror(-r)) : 0;
}

static int open_channel(struct serve *s)
{
	const struct sb_boot *boot = s->env->boot;
	uint8_t prologue[SB_PROLOGUE_LEN];
	struct sb_chan_config cfg = {
		.loop = s->loop,
		.role = SB_CHAN_GUEST,
		.fd_in = s->env->carrier,
		.fd_out = s->env->carrier,
		.prologue = prologue,
		.prologue_len = sizeof(prologue),
		.max_net = SB_CHAN_NET_ROOM(s->plan),
		.ops = &chan_ops,
		.owner = s,
	};
	int r = 0;

	if (s->env->net || s->env->ssh) {
		r = sb_net_relay_new(s->loop, s->env->net, s->env->ssh ? *s->env->ssh : -1,
				     cfg.max_net, &s->relay);
		if (r < 0)
			return r;
	}

	sb_boot_prologue(boot->session, boot->plan_sha256, prologue);
	memcpy(cfg.psk, boot->psk, sizeof(cfg.psk));
	r = sb_chan_new(&cfg, &s->chan);
	explicit_bzero(cfg.psk, sizeof(cfg.psk));
	if (r == 0 && s->relay)
		sb_net_relay_channel(s->relay, s->chan);
	return r;
}

/* Turn the loop until @done or the deadline. */
static void turn_until(struct serve *s, bool (*done)(const struct serve *s))
{
	uint64_t deadline = sb_now_ns() + END_NS;
	struct sb_timer t = { 0 };

	while (!done(s) && sb_now_ns() < deadline) {
		sb_timer_set(s->loop, &t, FLUSH_NS, tick, NULL);
		if (sb_loop_turn(s->loop, -1) < 0)
			break;
	}
	sb_timer_del(&t);
}

static bool is_dead(const struct serve *s)
{
	return !sb_commands_alive(s->commands);
}
static bool is_flushed(const struct serve *s)
{
	return !s->chan || sb_chan_flushed(s->chan);
}

/* What a dead command left in the page cache belongs on the host before BYE says "done". */
static int write_back(const struct serve *s)
{
	for (size_t i = 0; i < s->plan->n_mounts; i++) {
		sb_autofd int fd = -1;

		if (s->plan->mounts[i].mode != SB_MOUNT_RW || !sb_plan_served(s->plan, i))
			continue;
		fd = open(s->plan->mounts[i].guest, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && syncfs(fd) < 0)
			sb_log("writing back %s: %s", s->plan->mounts[i].guest, strerror(errno));
	}
	/* of namespaces it is a folder on the host: what is in the cache is there, and syncfs would
	 * write out everything that anybody has in that file system */
	if (s->env->vm && s->plan->upper.kind != SB_UPPER_TMPFS) {
		sb_autofd int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 || syncfs(fd) < 0) { /* then there is no BYE, and the session has failed */
			sb_log("writing back the root file system: %s", strerror(errno));
			return -EIO;
		}
	}
	return 0;
}

static void finish(struct serve *s)
{
	struct sb_ctl bye = { .type = SB_CTL_BYE };

	s->ending = true;
	if (s->commands) {
		sb_commands_kill_all(s->commands);
		turn_until(s, is_dead);
	}
	last_events(s);
	s->relay = sb_net_relay_free(s->relay);
	if (s->status == 0) {
		/* in a namespace those that are not served are the host's own file systems */
		if (s->env->vm || s->env->n_pumps > 0)
			s->status = write_back(s);
		if (s->status == 0)
			send_ctl(s, &bye);
	}
	if (s->chan) {
		turn_until(s, is_flushed);
		if (s->commands)
			sb_commands_forget_streams(s->commands);
		s->chan = sb_chan_free(s->chan);
	}
	s->commands = sb_commands_free(s->commands);
	sb_judge_stop(&s->judge);
}

int sb_guest_serve(const struct sb_guest_env *env)
{
	struct serve s = { .env = env, .plan = env->boot->plan, .judge = SB_JUDGE_INIT, .sigfd = -1,
			   .probe = SB_PROBE_INIT };
	struct sb_err err = { 0 };
	int r;

	s.confine.landlock = -1;
	r = prepare(&s, &err);
	if (r < 0) {
		sb_log("cannot serve: %s", err.text);
		s.status = r;
	} else {
		r = prepare_walls(&s, &s.refused);
		if (r < 0)
			sb_log("no command may start: %s", s.refused.text);
		r = open_channel(&s);
		if (r == 0)
			r = sb_loop_run(s.loop);
		if (r < 0 && !s.ending)
			s.status = r;
	}
	if (s.loop)
		finish(&s);
	sb_io_del(&s.sig_io);
	sb_io_del(&s.probe_io);
	sb_probe_end(&s.probe);
	sb_fd_close(&s.sigfd);
	sb_confine_done(&s.confine);
	s.loop = sb_loop_free(s.loop);
	return s.status;
}
