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
#include "exec/command_i.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "exec/leaf.h"
#include "exec/pty.h"
#include "exec/resolve.h"
#include "exec/spawn_child.h"

#define PIPE_BYTES (1 << 20)          /* the most an unprivileged process may ask for */
#define DRAIN_NS 1000000000ULL
#define REMOVE_RETRY_NS 10000000ULL
#define REMOVE_TRIES 500 /* 5 s */

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
	port_close_input(&c->in);
	for (int i = 0; i < 2; i++)
		port_close_output(&c->out[i]);
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

	if (!c)
		return -ENOMEM;
	return c->state == NEW ? port_attach(c, s, kind) : -EPROTO;
}

/* The host thought better of it before the start. */
bool command_forget_idle(struct sb_command *c)
{
	if (c->state != NEW || c->in.stream || c->out[0].stream || c->out[1].stream)
		return false;
	drop(c);
	return true;
}

/* --- end -------------------------------------------------------------------------------- */

/* Whether a descendant of @c can be alive though its main process is reaped. */
static bool may_have_kin(const struct sb_command *c)
{
	pid_t known[64];
	size_t n = 0;

	if (c->pid > 0)
		return true;
	if (c->set->cfg.judge->pid > 0)
		known[n++] = c->set->cfg.judge->pid;
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

void command_maybe_done(struct sb_command *c)
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
	port_close_streams(c);
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
			port_output_pump(o);
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
	port_close_input(&c->in);
	if (c->in.stream) /* what still comes is thrown away */
		sb_stream_resume(c->in.stream);
	sb_timer_set(c->set->cfg.loop, &c->timer, DRAIN_NS, drain_late, c);
	command_maybe_done(c);
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
		port_close_output(&c->out[i]);
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
		if (c->out[i].fd >= 0 && port_output_listen(&c->out[i]) < 0)
			port_close_output(&c->out[i]);
	if (c->in.eof)
		port_input_finish(&c->in);
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
		.judge = cfg->judge->sock,
		.cmd = c->id,
		.mark = !cfg->cgroup,
		.export_plan = cfg->plan->task == SB_TASK_EXPORT ? cfg->plan : NULL,
		.export = cfg->export,
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
	if (c->state != NEW || (req->tty && c->in.stream && !port_is_terminal(c)) ||
	    (!req->tty && port_is_terminal(c)))
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
		port_close_input(&c->in);
		for (int i = 0; i < 2; i++) {
			c->out[i].stream = NULL;
			c->out[i].blocked = false;
			port_close_output(&c->out[i]);
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
