/*
 * The ends of a command's streams: between the channel on one side and pipes or a terminal on the
 * other. The theory of operation is in command.c.
 */
#include "exec/command_i.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "exec/pty.h"

#define READ_BUDGET (512U << 10) /* bytes per event, so that one flood starves nobody */

void port_close_input(struct input *in)
{
	sb_io_del(&in->io);
	sb_fd_close(&in->fd);
}

void port_close_output(struct output *o)
{
	sb_io_del(&o->io);
	sb_fd_close(&o->fd);
}

bool port_is_terminal(const struct sb_command *c)
{
	return c->in.stream && c->in.stream == c->out[0].stream;
}

/* --- input ------------------------------------------------------------------------------ */

static void input_event(struct sb_io *io, uint32_t events);

static int input_wait(struct input *in)
{
	return sb_io_set(in->cmd->set->cfg.loop, &in->io, in->fd, EPOLLOUT, input_event, in);
}

/* All bytes are through: a pipe is closed, a terminal gets its end-of-file character. */
void port_input_finish(struct input *in)
{
	int r;

	if (in->fd < 0)
		return;
	if (!in->cmd->tty) {
		port_close_input(in);
		return;
	}
	r = sb_pty_send_eof(in->fd, &in->last);
	if (r == -EAGAIN && input_wait(in) == 0)
		return;
	port_close_input(in);
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
			port_close_input(in);
		} else { /* EPIPE, EIO: nobody will ever read it */
			port_close_input(in);
		}
	}
	return len;
}

static void input_event(struct sb_io *io, uint32_t events)
{
	struct input *in = io->owner;

	sb_io_del(io);
	if ((events & (EPOLLERR | EPOLLHUP)) && !(events & EPOLLOUT))
		port_close_input(in);
	if (in->eof)
		port_input_finish(in);
	else if (in->stream)
		sb_stream_resume(in->stream);
}

static void input_eof(struct input *in)
{
	in->eof = true;
	if (in->cmd->state == RUNNING)
		port_input_finish(in);
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
	if (!command_forget_idle(in->cmd))
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
	port_close_output(o);
	o->blocked = false;
	if (o->stream)
		sb_stream_send_eof(o->stream);
	command_maybe_done(o->cmd); /* may free the command */
}

static void output_event(struct sb_io *io, uint32_t events)
{
	(void)events;
	port_output_pump(io->owner);
}

int port_output_listen(struct output *o)
{
	return sb_io_set(o->cmd->set->cfg.loop, &o->io, o->fd, EPOLLIN, output_event, o);
}

void port_output_pump(struct output *o)
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
	if (o->fd >= 0 && !o->io.active && port_output_listen(o) < 0)
		output_finish(o);
}

/* The host will not read any more: close the pipe, so that the program learns it. */
static void output_abandon(struct output *o)
{
	o->stream = NULL;
	o->blocked = false;
	if (command_forget_idle(o->cmd) || o->fd < 0)
		return;
	port_close_output(o);
	command_maybe_done(o->cmd);
}

static void output_writable(struct output *o)
{
	if (!o->blocked)
		return;
	o->blocked = false;
	port_output_pump(o);
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
	port_close_input(&c->in); /* with the output side the last master: a hang-up */
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

void port_close_streams(struct sb_command *c)
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

int port_attach(struct sb_command *c, struct sb_stream *s, enum sb_stream_kind kind)
{
	switch (kind) {
	case SB_STREAM_STDIN:
		if (c->in.stream)
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
	case SB_STREAM_NET:
	case SB_STREAM_SSH:
	default:
		return -EPROTO;
	}
}
