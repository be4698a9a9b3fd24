/*
 * Theory of operation. States of a command:
 *
 *   NEW       streams are attached; bytes for stdin wait inside the channel (data() takes none)
 *   STARTING  a child exists; its report pipe tells whether exec happened
 *   RUNNING   exec happened, STARTED was sent, streams flow
 *   ENDED     the main process was reaped (or never ran); the rest was killed; outputs drain
 *
 * Bytes are never buffered here. Input goes from the channel's receive window straight into the
 * pipe or terminal; when that is full, data() takes less and resume() comes with EPOLLOUT. Output
 * is read straight into the channel's send queue; when that has no room, the source leaves the
 * loop until writable(). So both directions stall independently, and memory is what the windows
 * are.
 *
 * The workload controls: how much it writes, when it reads, who inherits its pipes, when it dies.
 * An output ends at EOF, which only dead writers give. A writer outside the command (a descriptor
 * passed to another command) must not hold up the end: DRAIN_NS after the kill, an empty pipe
 * counts as ended.
 */
#include "exec/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "exec/kin.h"
#include "exec/leaf.h"
#include "exec/pty.h"
#include "exec/resolve.h"
#include "exec/spawn_child.h"

#define PIPE_BYTES (1 << 20)          /* the most an unprivileged process may ask for */
#define READ_BUDGET (512U << 10)      /* bytes per event, so that one flood starves nobody */
#define DRAIN_NS 1000000000ULL
#define REMOVE_RETRY_NS 10000000ULL
#define REMOVE_TRIES 500 /* 5 s */

enum state { NEW = 0, STARTING, RUNNING, ENDED };

struct input { /* stdin pipe, or the terminal's keyboard side */
	struct sb_command *cmd;
	struct sb_stream *stream; /* NULL when the host let go of it, or never had it */
	int fd;                   /* owned; -1 = what comes is thrown away */
	struct sb_io io;          /* active only while the sink is full */
	bool eof;                 /* the host sent EOF */
	uint8_t last;             /* last byte given to the terminal */
};

struct output {
	struct sb_command *cmd;
	struct sb_stream *stream;
	int fd; /* owned; -1 = ended */
	struct sb_io io;
	bool blocked; /* out of the loop until the stream is writable */
};

struct sb_command {
	struct sb_commands *set;
	struct sb_command *next;
	uint32_t id;
	enum state state;
	bool tty;
	bool drained; /* an empty pipe counts as ended */
	pid_t pid;    /* 0 = reaped or never there */
	int report;
	struct sb_io report_io;
	struct input in;
	struct output out[2]; /* stdout or terminal; stderr */
	int leaf;             /* directory, -1 = none */
	struct sb_kin kin;
	struct sb_timer timer;
	struct sb_ctl result;
};

struct leaving { /* a leaf whose last process is still dying */
	struct leaving *next;
	uint32_t id;
	int tries;
};

struct sb_commands {
	struct sb_commands_config cfg;
	struct sb_command *list;
	size_t n;
	struct leaving *leaving;
	struct sb_timer remove_timer;
};

static const struct sb_stream_ops input_ops;
static const struct sb_stream_ops output_ops;
static const struct sb_stream_ops terminal_ops;
static void output_pump(struct output *o);
static void maybe_done(struct sb_command *c);

/* --- leaves ----------------------------------------------------------------------------- */

static void remove_leaves(struct sb_timer *t)
{
	struct sb_commands *set = t->owner;
	struct leaving **at = &set->leaving;

	while (*at) {
		struct leaving *l = *at;

		if (sb_leaf_remove(set->cfg.cgroup, l->id) == -EBUSY && ++l->tries < REMOVE_TRIES) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
	}
	if (set->leaving)
		sb_timer_set(set->cfg.loop, t, REMOVE_RETRY_NS, remove_leaves, set);
}

static void leave(struct sb_command *c)
{
	struct sb_commands *set = c->set;
	struct leaving *l;

	if (c->leaf < 0)
		return;
	sb_fd_close(&c->leaf);
	if (sb_leaf_remove(set->cfg.cgroup, c->id) != -EBUSY)
		return;
	l = calloc(1, sizeof(*l));
	if (!l)
		return; /* an empty directory more until the guest ends */
	l->id = c->id;
	l->next = set->leaving;
	set->leaving = l;
	if (!set->remove_timer.active)
		sb_timer_set(set->cfg.loop, &set->remove_timer, REMOVE_RETRY_NS, remove_leaves,
			     set);
}

/* --- the set ---------------------------------------------------------------------------- */

int sb_commands_new(const struct sb_commands_config *cfg, struct sb_commands **ret)
{
	struct sb_commands *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->cfg = *cfg;
	*ret = set;
	return 0;
}

static struct sb_command *find(const struct sb_commands *set, uint32_t id)
{
	for (struct sb_command *c = set->list; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

static struct sb_command *get(struct sb_commands *set, uint32_t id)
{
	struct sb_command *c = find(set, id);

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->set = set;
	c->id = id;
	c->report = -1;
	c->leaf = -1;
	c->in.cmd = c;
	c->in.fd = -1;
	for (int i = 0; i < 2; i++) {
		c->out[i].cmd = c;
		c->out[i].fd = -1;
	}
	c->next = set->list;
	set->list = c;
	set->n++;
	return c;
}

static void close_input(struct input *in)
{
	sb_io_del(&in->io);
	sb_fd_close(&in->fd);
}

static void close_output(struct output *o)
{
	sb_io_del(&o->io);
	sb_fd_close(&o->fd);
}

static void drop(struct sb_command *c)
{
	struct sb_command **at = &c->set->list;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->set->n--;
	sb_timer_del(&c->timer);
	sb_io_del(&c->report_io);
	sb_fd_close(&c->report);
	close_input(&c->in);
	for (int i = 0; i < 2; i++)
		close_output(&c->out[i]);
	leave(c);
	free(c);
}

struct sb_commands *sb_commands_free(struct sb_commands *set)
{
	if (!set)
		return NULL;
	while (set->list)
		drop(set->list);
	/* the last leaves: their processes are dead, the directories follow */
	for (int i = 0; set->leaving && i < REMOVE_TRIES; i++) {
		remove_leaves(&set->remove_timer);
		if (set->leaving)
			(void)usleep(REMOVE_RETRY_NS / 1000);
	}
	sb_timer_del(&set->remove_timer);
	free(set);
	return NULL;
}

size_t sb_commands_count(const struct sb_commands *set)
{
	return set->n;
}

int sb_commands_attach(struct sb_commands *set, struct sb_stream *s, enum sb_stream_kind kind,
		       uint32_t id)
{
	struct sb_command *c = get(set, id);
	bool has_term;

	if (!c)
		return -ENOMEM;
	if (c->state != NEW)
		return -EPROTO;
	has_term = c->in.stream && c->in.stream == c->out[0].stream;
	switch (kind) {
	case SB_STREAM_STDIN:
		if (c->in.stream || has_term)
			return -EPROTO;
		c->in.stream = s;
		sb_stream_attach(s, &input_ops, &c->in);
		return 0;
	case SB_STREAM_STDOUT:
	case SB_STREAM_STDERR: {
		struct output *o = &c->out[kind == SB_STREAM_STDERR];

		if (o->stream)
			return -EPROTO;
		o->stream = s;
		sb_stream_attach(s, &output_ops, o);
		return 0;
	}
	case SB_STREAM_TERMINAL:
		if (c->in.stream || c->out[0].stream)
			return -EPROTO;
		c->in.stream = s;
		c->out[0].stream = s;
		sb_stream_attach(s, &terminal_ops, c);
		return 0;
	case SB_STREAM_NONE:
	default:
		return -EPROTO;
	}
}

/* --- input ------------------------------------------------------------------------------ */

static bool is_terminal(const struct sb_command *c)
{
	return c->in.stream && c->in.stream == c->out[0].stream;
}

static void input_event(struct sb_io *io, uint32_t events);

static int input_wait(struct input *in)
{
	return sb_io_set(in->cmd->set->cfg.loop, &in->io, in->fd, EPOLLOUT, input_event, in);
}

/* All bytes are through: a pipe is closed, a terminal gets its end-of-file character. */
static void input_finish(struct input *in)
{
	int r;

	if (in->fd < 0)
		return;
	if (!in->cmd->tty) {
		close_input(in);
		return;
	}
	r = sb_pty_send_eof(in->fd, &in->last);
	if (r == -EAGAIN && input_wait(in) == 0)
		return;
	close_input(in);
}

static size_t input_data(struct input *in, const uint8_t *p, size_t len)
{
	size_t done = 0;

	if (in->cmd->state == NEW || in->cmd->state == STARTING)
		return 0;
	while (in->fd >= 0 && done < len) {
		ssize_t n = write(in->fd, p + done, len - done);

		if (n > 0) {
			done += (size_t)n;
			in->last = p[done - 1];
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n == 0 || errno == EAGAIN) {
			if (input_wait(in) == 0)
				return done;
			close_input(in);
		} else { /* EPIPE, EIO: nobody will ever read it */
			close_input(in);
		}
	}
	return len;
}

static void input_event(struct sb_io *io, uint32_t events)
{
	struct input *in = io->owner;

	sb_io_del(io);
	if ((events & (EPOLLERR | EPOLLHUP)) && !(events & EPOLLOUT))
		close_input(in);
	if (in->eof)
		input_finish(in);
	else if (in->stream)
		sb_stream_resume(in->stream);
}

static void input_eof(struct input *in)
{
	in->eof = true;
	if (in->cmd->state == RUNNING)
		input_finish(in);
}

/* The host thought better of it before the start. */
static bool forget_idle(struct sb_command *c)
{
	if (c->state != NEW || c->in.stream || c->out[0].stream || c->out[1].stream)
		return false;
	drop(c);
	return true;
}

static size_t on_stdin_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	return input_data(sb_stream_owner(s), p, len);
}
static void on_stdin_eof(struct sb_stream *s)
{
	input_eof(sb_stream_owner(s));
}
static void on_stdin_reset(struct sb_stream *s)
{
	struct input *in = sb_stream_owner(s);

	in->stream = NULL;
	if (!forget_idle(in->cmd))
		input_eof(in);
}
static void on_nothing(struct sb_stream *s)
{
	(void)s;
}
static const struct sb_stream_ops input_ops = {
	.data = on_stdin_data,
	.eof = on_stdin_eof,
	.reset = on_stdin_reset,
	.writable = on_nothing,
};

/* --- output ----------------------------------------------------------------------------- */

static void output_finish(struct output *o)
{
	close_output(o);
	o->blocked = false;
	if (o->stream)
		sb_stream_send_eof(o->stream);
	maybe_done(o->cmd); /* may free the command */
}

static void output_event(struct sb_io *io, uint32_t events)
{
	(void)events;
	output_pump(io->owner);
}

static int output_listen(struct output *o)
{
	return sb_io_set(o->cmd->set->cfg.loop, &o->io, o->fd, EPOLLIN, output_event, o);
}

static void output_pump(struct output *o)
{
	size_t budget = READ_BUDGET;

	while (o->fd >= 0 && budget > 0) {
		void *p;
		size_t room = sb_stream_reserve(o->stream, &p);
		ssize_t n;

		if (room == 0) {
			/* out of the loop: a hang-up would be reported again and again */
			sb_io_del(&o->io);
			o->blocked = true;
			return;
		}
		n = read(o->fd, p, SB_MIN(room, budget));
		if (n > 0) {
			sb_stream_commit(o->stream, (size_t)n);
			budget -= (size_t)n;
			continue;
		}
		sb_stream_commit(o->stream, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && !o->cmd->drained)
			break;
		output_finish(o); /* EOF; EIO: the terminal's last user is gone */
		return;
	}
	if (o->fd >= 0 && !o->io.active && output_listen(o) < 0)
		output_finish(o);
}

/* The host will not read any more: close the pipe, so that the program learns it. */
static void output_abandon(struct output *o)
{
	o->stream = NULL;
	o->blocked = false;
	if (forget_idle(o->cmd) || o->fd < 0)
		return;
	close_output(o);
	maybe_done(o->cmd);
}

static void output_writable(struct output *o)
{
	if (!o->blocked)
		return;
	o->blocked = false;
	output_pump(o);
}

static size_t on_output_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	(void)s;
	(void)p;
	return len;
}
static void on_output_reset(struct sb_stream *s)
{
	output_abandon(sb_stream_owner(s));
}
static void on_output_writable(struct sb_stream *s)
{
	output_writable(sb_stream_owner(s));
}
static const struct sb_stream_ops output_ops = {
	.data = on_output_data,
	.eof = on_nothing,
	.reset = on_output_reset,
	.writable = on_output_writable,
};

/* --- terminal: one stream, both ways ---------------------------------------------------- */

static size_t on_term_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct sb_command *c = sb_stream_owner(s);

	return input_data(&c->in, p, len);
}
static void on_term_eof(struct sb_stream *s)
{
	struct sb_command *c = sb_stream_owner(s);

	input_eof(&c->in);
}
static void on_term_reset(struct sb_stream *s)
{
	struct sb_command *c = sb_stream_owner(s);

	c->in.stream = NULL;
	close_input(&c->in); /* with the output side the last master: a hang-up */
	output_abandon(&c->out[0]);
}
static void on_term_writable(struct sb_stream *s)
{
	struct sb_command *c = sb_stream_owner(s);

	output_writable(&c->out[0]);
}
static const struct sb_stream_ops terminal_ops = {
	.data = on_term_data,
	.eof = on_term_eof,
	.reset = on_term_reset,
	.writable = on_term_writable,
};

/* --- end -------------------------------------------------------------------------------- */

/* Whether a descendant of @c can be alive though its main process is reaped. */
static bool may_have_kin(const struct sb_command *c)
{
	pid_t known[64];
	size_t n = 0;

	if (c->pid > 0)
		return true;
	for (const struct sb_command *o = c->set->list; o; o = o->next)
		if (o->pid > 0 && n < SB_ARRAY_LEN(known))
			known[n++] = o->pid;
	return sb_kin_orphans(known, n);
}

static void kill_rest(struct sb_command *c)
{
	struct sb_commands *set = c->set;

	if (c->leaf >= 0) {
		if (sb_leaf_kill(c->leaf) == 0)
			return;
	} else if (set->cfg.alone && set->n == 1) {
		(void)kill(-1, SIGKILL); /* atomic: no fork can slip through */
		return;
	}
	if (may_have_kin(c))
		sb_kin_kill(&c->kin);
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
}

static void close_streams(struct sb_command *c)
{
	struct sb_stream *in = c->in.stream;
	struct sb_stream *out[2] = { c->out[0].stream, c->out[1].stream };

	c->in.stream = c->out[0].stream = c->out[1].stream = NULL;
	if (in)
		sb_stream_close(in);
	for (int i = 0; i < 2; i++)
		if (out[i] && out[i] != in)
			sb_stream_close(out[i]);
}

static void maybe_done(struct sb_command *c)
{
	struct sb_commands *set = c->set;
	struct sb_ctl m;

	if (c->state != ENDED || c->out[0].fd >= 0 || c->out[1].fd >= 0)
		return;
	m = c->result;
	m.type = SB_CTL_EXITED;
	m.cmd = c->id;
	if (c->leaf >= 0)
		m.exit.oom = sb_leaf_oom(c->leaf);
	close_streams(c);
	drop(c);
	set->cfg.exited(set->cfg.owner, &m);
}

static void drain_late(struct sb_timer *t)
{
	struct sb_command *c = t->owner;

	c->drained = true;
	/* finishing the last output frees the command, so look at the other one first */
	for (int i = 1; i >= 0; i--) {
		struct output *o = &c->out[i];
		bool last = c->out[1 - i].fd < 0;

		if (o->fd >= 0 && !o->blocked) {
			output_pump(o);
			if (last)
				return;
		}
	}
}

/* The main process is gone, or there never was one that ran. */
static void ended(struct sb_command *c)
{
	c->state = ENDED;
	c->pid = 0;
	sb_io_del(&c->report_io);
	sb_fd_close(&c->report);
	kill_rest(c);
	close_input(&c->in);
	if (c->in.stream) /* what still comes is thrown away */
		sb_stream_resume(c->in.stream);
	sb_timer_set(c->set->cfg.loop, &c->timer, DRAIN_NS, drain_late, c);
	maybe_done(c);
}

/* A command that never ran: say why where the host cannot know, and end its streams. */
static void failed(struct sb_command *c, enum sb_exit_kind kind, int error, const char *what,
		   const char *about)
{
	struct output *o = &c->out[c->out[1].stream != NULL];

	c->result.exit.kind = (uint8_t)kind;
	c->result.exit.value = (uint32_t)error;
	if (kind == SB_EXIT_SETUP && o->stream) {
		char text[512];
		int n = snprintf(text, sizeof(text), "sendbox: %s: %.300s: %s%s", what, about,
				 strerror(error), c->tty ? "\r\n" : "\n");

		if (n > 0)
			(void)sb_stream_write(o->stream, text,
					      SB_MIN((size_t)n, sizeof(text) - 1));
	}
	for (int i = 0; i < 2; i++) {
		close_output(&c->out[i]);
		if (c->out[i].stream)
			sb_stream_send_eof(c->out[i].stream);
	}
	ended(c);
}

/* --- start ------------------------------------------------------------------------------ */

static void report_event(struct sb_io *io, uint32_t events);

static void running(struct sb_command *c)
{
	struct sb_commands *set = c->set;

	c->state = RUNNING;
	set->cfg.started(set->cfg.owner, c->id);
	for (int i = 0; i < 2; i++)
		if (c->out[i].fd >= 0 && output_listen(&c->out[i]) < 0)
			close_output(&c->out[i]);
	if (c->in.eof)
		input_finish(&c->in);
	else if (c->in.stream)
		sb_stream_resume(c->in.stream);
}

/* Return: true when the command is still there. */
static bool take_report(struct sb_command *c)
{
	struct sb_launch_report rep;
	enum sb_exit_kind kind = SB_EXIT_SETUP;

	if (sb_launch_result(c->report, &rep) != 0)
		return true;
	sb_io_del(&c->report_io);
	sb_fd_close(&c->report);
	if (rep.stage == SB_LAUNCH_OK) {
		running(c);
		return true;
	}
	if (rep.stage == SB_LAUNCH_NOT_FOUND)
		kind = SB_EXIT_NOT_FOUND;
	else if (rep.stage == SB_LAUNCH_NOT_EXEC)
		kind = SB_EXIT_NOT_EXEC;
	failed(c, kind, rep.error, sb_launch_stage_text((enum sb_launch_stage)rep.stage),
	       "command");
	return false;
}

static void report_event(struct sb_io *io, uint32_t events)
{
	(void)events;
	(void)take_report(io->owner);
}

/* The child's ends of its standard streams; owned, -1 when not open. */
struct ends {
	int fd[3];
};
static void ends_done(struct ends *e)
{
	for (int i = 0; i < 3; i++)
		sb_fd_close(&e->fd[i]);
}
#define autoends SB_CLEANUP(ends_done)

static int make_pipe(const struct sb_plan *plan, int *ours, int *theirs, bool we_read)
{
	int p[2];
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	int r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	rd = p[0];
	wr = p[1];
	/* larger is faster; what the kernel gives is good enough */
	(void)fcntl(rd, F_SETPIPE_SZ, PIPE_BYTES);
	/* so that the program may open /dev/stdout and the like */
	if (!plan->test_root && fchown(rd, plan->uid, plan->gid) < 0)
		return -errno;
	r = sb_fd_set_nonblock(we_read ? rd : wr, true);
	if (r < 0)
		return r;
	*ours = sb_fd_take(we_read ? &rd : &wr);
	*theirs = sb_fd_take(we_read ? &wr : &rd);
	return 0;
}

static int open_null(int *ret)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

static int make_terminal(struct sb_command *c, const struct sb_command_request *req,
			 struct ends *e)
{
	const struct sb_plan *plan = c->set->cfg.plan;
	struct sb_pty_config pc = {
		.uid = plan->uid, .gid = plan->gid, .rows = req->rows, .cols = req->cols
	};
	int r = sb_pty_open(&pc, &c->out[0].fd, &e->fd[0]);

	if (r < 0)
		return r;
	c->in.fd = fcntl(c->out[0].fd, F_DUPFD_CLOEXEC, 3);
	e->fd[1] = fcntl(e->fd[0], F_DUPFD_CLOEXEC, 3);
	if (c->in.fd < 0 || e->fd[1] < 0)
		return -errno;
	if (c->out[1].stream) /* a second terminal, so that programs still see one on 2 */
		return sb_pty_open(&pc, &c->out[1].fd, &e->fd[2]);
	e->fd[2] = fcntl(e->fd[0], F_DUPFD_CLOEXEC, 3);
	return e->fd[2] < 0 ? -errno : 0;
}

static int make_ends(struct sb_command *c, const struct sb_command_request *req, struct ends *e)
{
	const struct sb_plan *plan = c->set->cfg.plan;
	int r = 0;

	if (req->tty)
		return make_terminal(c, req, e);
	r = c->in.stream ? make_pipe(plan, &c->in.fd, &e->fd[0], false) : open_null(&e->fd[0]);
	for (int i = 0; r == 0 && i < 2; i++)
		r = c->out[i].stream ? make_pipe(plan, &c->out[i].fd, &e->fd[1 + i], true)
				     : open_null(&e->fd[1 + i]);
	return r;
}

static int launch(struct sb_command *c, const struct sb_command_request *req)
{
	const struct sb_commands_config *cfg = &c->set->cfg;
	autoends struct ends e = { { -1, -1, -1 } };
	sb_autofree char **env = NULL;
	sb_autofree char **candidates = NULL;
	struct sb_launch l = {
		.confine = cfg->confine,
		.argv = req->argv,
		.cwd = req->cwd,
		.tty = req->tty,
		.mark = !cfg->cgroup,
	};
	int r = sb_resolve_env(cfg->plan, req->env, req->cwd, req->tty, &env);

	if (r == 0)
		r = sb_resolve_program(req->argv[0], sb_resolve_getenv(env, "PATH"), &candidates);
	if (r == 0)
		r = make_ends(c, req, &e);
	if (r == 0 && cfg->cgroup)
		r = sb_leaf_new(cfg->cgroup, c->id, &c->leaf);
	if (r < 0)
		return r;
	l.env = env;
	l.candidates = candidates;
	l.cgroup = c->leaf;
	memcpy(l.stdio, e.fd, sizeof(l.stdio));
	r = sb_launch_start(&l, &c->pid, &c->report);
	if (r < 0)
		return r;
	if (l.mark)
		sb_kin_init(&c->kin, c->pid);
	c->state = STARTING;
	return sb_io_set(cfg->loop, &c->report_io, c->report, EPOLLIN, report_event, c);
}

int sb_commands_start(struct sb_commands *set, uint32_t id, const struct sb_command_request *req)
{
	struct sb_command *c = get(set, id);
	int r;

	if (!c)
		return -ENOMEM;
	if (c->state != NEW || (req->tty && c->in.stream && !is_terminal(c)) ||
	    (!req->tty && is_terminal(c)))
		return -EPROTO;
	c->tty = req->tty;
	r = launch(c, req);
	if (r == -ENOENT && req->argv[0][0] == '\0')
		failed(c, SB_EXIT_NOT_FOUND, ENOENT, "program not found", "");
	else if (r < 0)
		failed(c, SB_EXIT_SETUP, -r, "cannot start", req->argv[0]);
	return 0;
}

/* --- events from outside ---------------------------------------------------------------- */

void sb_commands_signal(struct sb_commands *set, uint32_t id, uint32_t signo)
{
	struct sb_command *c = find(set, id);
	pid_t group = 0;

	if (!c || c->pid <= 0 || signo == 0 || signo > 64)
		return;
	if (c->tty && c->out[0].fd >= 0)
		group = sb_pty_foreground(c->out[0].fd);
	(void)kill(group > 1 ? -group : c->pid, (int)signo);
}

void sb_commands_kill(struct sb_commands *set, uint32_t id)
{
	struct sb_command *c = find(set, id);

	if (c && c->pid > 0)
		kill_rest(c);
}

void sb_commands_resize(struct sb_commands *set, uint32_t id, uint16_t rows, uint16_t cols)
{
	struct sb_command *c = find(set, id);

	if (!c || !c->tty)
		return;
	for (int i = 0; i < 2; i++)
		if (c->out[i].fd >= 0)
			sb_pty_resize(c->out[i].fd, rows, cols);
}

void sb_commands_kill_all(struct sb_commands *set)
{
	for (struct sb_command *c = set->list; c; c = c->next)
		if (c->state != NEW)
			kill_rest(c);
	if (set->cfg.alone)
		(void)kill(-1, SIGKILL);
}

bool sb_commands_alive(const struct sb_commands *set)
{
	for (const struct sb_command *c = set->list; c; c = c->next)
		if (c->pid > 0)
			return true;
	return false;
}

void sb_commands_forget_streams(struct sb_commands *set)
{
	for (struct sb_command *c = set->list; c; c = c->next) {
		c->in.stream = NULL;
		close_input(&c->in);
		for (int i = 0; i < 2; i++) {
			c->out[i].stream = NULL;
			c->out[i].blocked = false;
			close_output(&c->out[i]);
		}
	}
}

void sb_commands_reaped(struct sb_commands *set, pid_t pid, int status, const struct rusage *ru)
{
	struct sb_command *c = set->list;

	while (c && c->pid != pid)
		c = c->next;
	if (!c)
		return;
	c->pid = 0;
	/* whether exec happened was written before the death */
	if (c->state == STARTING && !take_report(c))
		return;
	c->result.exit.kind = WIFSIGNALED(status) ? SB_EXIT_SIGNAL : SB_EXIT_CODE;
	c->result.exit.value = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status)
							      : WEXITSTATUS(status));
	c->result.exit.user_us = (uint64_t)ru->ru_utime.tv_sec * 1000000U +
				 (uint64_t)ru->ru_utime.tv_usec;
	c->result.exit.sys_us = (uint64_t)ru->ru_stime.tv_sec * 1000000U +
				(uint64_t)ru->ru_stime.tv_usec;
	c->result.exit.max_rss = (uint64_t)ru->ru_maxrss * 1024U;
	ended(c);
}
