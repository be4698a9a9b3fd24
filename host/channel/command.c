/*
 * One command: its streams, and the order of its end. EXITED may overtake the last output (it is
 * more urgent inside the channel), so it is told to the monitor only when every output stream
 * ended and everything was written, or nobody reads it any more.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "channel.h"
#include "crypto/crypto.h"
#include "wire/exec_req.h"

/* --- stdin --- */

static size_t no_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	(void)s;
	(void)p;
	return len;
}

static void no_eof(struct sb_stream *s)
{
	(void)s;
}

static void in_reset(struct sb_stream *s)
{
	struct command *cmd = sb_stream_owner(s);

	source_done(&cmd->in);
}

static void in_writable(struct sb_stream *s)
{
	struct command *cmd = sb_stream_owner(s);

	source_pump(&cmd->in);
}

static const struct sb_stream_ops in_ops = {
	.data = no_data, .eof = no_eof, .reset = in_reset, .writable = in_writable
};

/* --- stdout, stderr, terminal --- */

static size_t out_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct sink *k = sb_stream_owner(s);

	return sink_data(k, p, len);
}

static void out_eof(struct sb_stream *s)
{
	sink_eof(sb_stream_owner(s));
}

static void out_reset(struct sb_stream *s)
{
	struct sink *k = sb_stream_owner(s);
	struct command *cmd = k->cmd;

	if (k == &cmd->out && cmd->in.s == s)
		source_done(&cmd->in);
	k->s = NULL;
	sink_done(k);
	command_check(cmd);
}

static void out_writable(struct sb_stream *s)
{
	struct sink *k = sb_stream_owner(s);

	source_pump(&k->cmd->in); /* terminal only */
}

static const struct sb_stream_ops out_ops = {
	.data = out_data, .eof = out_eof, .reset = out_reset, .writable = out_writable
};

/* --- life --- */

struct command *command_find(struct session *ses, uint32_t id)
{
	for (size_t i = 0; i < MAX_COMMANDS; i++)
		if (ses->commands[i].ses && ses->commands[i].id == id)
			return &ses->commands[i];
	return NULL;
}

static void close_stream(struct sb_stream **s)
{
	struct sb_stream *was = *s;

	*s = NULL;
	if (was)
		sb_stream_close(was);
}

void command_free(struct command *cmd)
{
	struct sb_stream *in = cmd->in.s;

	source_done(&cmd->in);
	if (in && in != cmd->out.s)
		close_stream(&in);
	close_stream(&cmd->out.s);
	close_stream(&cmd->err.s);
	sink_done(&cmd->out);
	sink_done(&cmd->err);
	*cmd = (struct command){ 0 };
}

void command_check(struct command *cmd)
{
	struct session *ses = cmd->ses;
	struct sb_ipc_exited x = cmd->exit;

	if (!ses || !cmd->exited || (cmd->out.used && !cmd->out.done) ||
	    (cmd->err.used && !cmd->err.done))
		return;
	x.lost = (uint32_t)cmd->lost;
	command_free(cmd);
	session_tell(ses, SB_IPC_EXITED, &x, sizeof(x));
}

void command_exited(struct command *cmd, const struct sb_ctl *m)
{
	cmd->exited = true;
	cmd->exit = (struct sb_ipc_exited){
		.cmd = cmd->id,
		.kind = m->exit.kind,
		.value = m->exit.value,
		.oom = m->exit.oom ? 1 : 0,
		.user_us = m->exit.user_us,
		.sys_us = m->exit.sys_us,
		.max_rss = m->exit.max_rss,
	};
	command_check(cmd);
}

static int open_streams(struct session *ses, struct command *cmd)
{
	int r;

	if (cmd->tty) {
		r = sb_stream_open(ses->chan, SB_STREAM_TERMINAL, cmd->id, &out_ops, &cmd->out,
				   &cmd->out.s);
		cmd->in.s = cmd->out.s;
	} else {
		r = sb_stream_open(ses->chan, SB_STREAM_STDIN, cmd->id, &in_ops, cmd,
				   &cmd->in.s);
		if (r == 0)
			r = sb_stream_open(ses->chan, SB_STREAM_STDOUT, cmd->id, &out_ops,
					   &cmd->out, &cmd->out.s);
	}
	if (r == 0 && cmd->err.used)
		r = sb_stream_open(ses->chan, SB_STREAM_STDERR, cmd->id, &out_ops, &cmd->err,
				   &cmd->err.s);
	return r;
}

/* A free entry, its descriptors taken. Return: 0; -EEXIST; -ENOBUFS; -errno. */
static int begin(struct session *ses, const struct sb_ipc_run *run, int fds[3], bool tty,
		 bool separate_stderr, struct command **ret)
{
	struct command *cmd = NULL;
	int r;

	for (size_t i = 0; i < MAX_COMMANDS && !cmd; i++)
		if (!ses->commands[i].ses)
			cmd = &ses->commands[i];
	if (!cmd || command_find(ses, run->cmd))
		return cmd ? -EEXIST : -ENOBUFS;
	*cmd = (struct command){ .ses = ses, .id = run->cmd, .tty = tty,
				 .separate_stderr = separate_stderr };
	cmd->in.fd = cmd->out.fd = cmd->err.fd = -1;
	r = source_init(&cmd->in, cmd, &fds[0]);
	if (r == 0)
		r = sink_init(&cmd->out, cmd, &fds[1], tty || (run->terminals & 2) != 0);
	if (r == 0 && (!tty || separate_stderr))
		r = sink_init(&cmd->err, cmd, &fds[2], (run->terminals & 4) != 0);
	if (r == 0)
		r = open_streams(ses, cmd);
	if (r < 0) {
		command_free(cmd);
		return r;
	}
	*ret = cmd;
	return 0;
}

/* Ask the guest, last: everything else is there. */
static int ask(struct session *ses, struct command *cmd, struct sb_ctl *m)
{
	int r;

	m->flags = (cmd->tty ? SB_CTL_F_TTY : 0) |
		   (cmd->separate_stderr ? SB_CTL_F_SEPARATE_STDERR : 0);
	r = session_control(ses, m);
	if (r < 0) {
		command_free(cmd);
		return r;
	}
	source_pump(&cmd->in);
	return 0;
}

int command_start(struct session *ses, const struct sb_ipc_run *run, int fds[3])
{
	struct sb_ctl m = { .type = SB_CTL_RUN, .cmd = run->cmd, .rows = run->rows,
			    .cols = run->cols };
	struct command *cmd = NULL;
	int r = begin(ses, run, fds, ses->tty, ses->separate_stderr, &cmd);

	return r < 0 ? r : ask(ses, cmd, &m);
}

int command_exec(struct session *ses, const struct sb_ipc_run *run, int fds[3], int req)
{
	sb_autofree uint8_t *buf = malloc(SB_EXEC_REQ_MAX + 1);
	struct sb_ctl m = { .type = SB_CTL_EXEC, .cmd = run->cmd, .rows = run->rows,
			    .cols = run->cols };
	struct sb_exec_req q;
	struct command *cmd = NULL;
	ssize_t len = buf ? sb_fd_read_most(req, buf, SB_EXEC_REQ_MAX + 1) : -ENOMEM;
	int r = len < 0 ? (int)len : sb_exec_req_parse(buf, (size_t)len, &q);

	if (r == 0)
		r = begin(ses, run, fds, (q.flags & SB_EXEC_REQ_TTY) != 0,
			  (q.flags & SB_EXEC_REQ_SEPARATE_STDERR) != 0, &cmd);
	if (r == 0) {
		m.text = q.cwd;
		m.text_len = q.cwd_len;
		m.argv = q.argv;
		m.argv_len = q.argv_len;
		m.n_argv = q.n_argv;
		m.env = q.env;
		m.env_len = q.env_len;
		m.n_env = q.n_env;
		r = ask(ses, cmd, &m);
	}
	if (buf)
		sb_wipe(buf, len < 0 ? SB_EXEC_REQ_MAX + 1 : (size_t)len);
	return r;
}
