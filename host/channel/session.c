/*
 * Theory of operation. SES_BOOT -> SES_GREET -> SES_READY -> SES_CLOSING -> SES_OVER. Whatever
 * goes wrong is told to the monitor once (FAILED) and ends in SES_OVER, where only the end of the
 * ipc socket is awaited. What the guest says is checked against the state: READY once and first,
 * STARTED and EXITED once and only for commands that were started, BYE only after SHUTDOWN.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "channel.h"

#define CLOCK_NS 30000000000ULL /* between two TIME messages */

void session_tell(struct session *ses, uint16_t type, const void *p, size_t len)
{
	int r;

	if (ses->ipc < 0)
		return;
	r = sb_ipc_send(ses->ipc, type, p, len, NULL, 0);
	if (r < 0)
		sb_debug("message %u to the monitor was lost: errno %d", type, -r);
}

static void over(struct session *ses)
{
	ses->state = SES_OVER;
	sb_timer_del(&ses->deadline);
	sb_timer_del(&ses->clock);
	sb_io_del(&ses->carrier_io);
	for (size_t i = 0; i < MAX_COMMANDS; i++)
		if (ses->commands[i].ses)
			command_free(&ses->commands[i]);
	bridge_stop(ses);
	exec_events_done(ses);
	ses->chan = sb_chan_free(ses->chan);
	sb_fd_close(&ses->carrier);
}

void session_fail(struct session *ses, enum sb_fail fail, const char *fmt, ...)
{
	struct sb_ipc_failed f = { .fail = (uint32_t)fail };
	va_list ap;

	if (ses->state == SES_OVER)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	session_tell(ses, SB_IPC_FAILED, &f, sizeof(f));
	over(ses);
}

int session_control(struct session *ses, const struct sb_ctl *m)
{
	sb_autobuf struct sb_buf b;
	int r;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, m);
	r = sb_buf_error(&b);
	return r < 0 ? r : sb_chan_control(ses->chan, b.data, b.len);
}

static void on_clock(struct sb_timer *t);

/* The guest has no clock but the one it was started with: tell it the time, now and again. */
static void send_time(struct session *ses)
{
	struct sb_ctl m = { .type = SB_CTL_TIME };
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec <= 0)
		return;
	m.time_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
	if (session_control(ses, &m) < 0)
		sb_debug("the guest was not told the time");
	sb_timer_set(ses->loop, &ses->clock, CLOCK_NS, on_clock, ses);
}

static void on_clock(struct sb_timer *t)
{
	struct session *ses = t->owner;

	if (ses->state == SES_READY)
		send_time(ses);
}

void session_close(struct session *ses)
{
	struct sb_ctl m = { .type = SB_CTL_SHUTDOWN };

	if (ses->state != SES_READY) {
		session_fail(ses, SB_FAIL_GUEST, "closed before the guest was ready");
		return;
	}
	ses->state = SES_CLOSING;
	if (session_control(ses, &m) < 0)
		session_fail(ses, SB_FAIL_GUEST, "the guest takes no more messages");
}

/* --- what the guest says --- */

/* Guest text for people: printable ASCII stays, the rest becomes '?'. */
static void clean_text(const char *text, size_t len, char *out, size_t cap)
{
	size_t n = SB_MIN(len, cap - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	out[n] = '\0';
}

static void log_report(const struct sb_ctl *m)
{
	size_t at = 0;

	while (at < m->text_len) {
		const char *nl = memchr(m->text + at, '\n', m->text_len - at);
		size_t n = nl ? (size_t)(nl - (m->text + at)) : m->text_len - at;
		char line[400];

		clean_text(m->text + at, n, line, sizeof(line));
		sb_debug("in force: %s", line);
		at += n + 1;
	}
}

static int on_exited(struct session *ses, const struct sb_ctl *m)
{
	struct command *cmd = command_find(ses, m->cmd);

	if (!cmd || cmd->exited)
		return ses->state == SES_CLOSING ? 0 : -EBADMSG;
	exec_events_flush(ses);
	command_exited(cmd, m);
	return 0;
}

/* Nothing is started in a guest that does not have in force what the plan asks for. */
static int on_ready(struct session *ses, const struct sb_ctl *m)
{
	struct sb_err err = { 0 };
	int r;

	if (ses->state != SES_GREET)
		return -EBADMSG;
	r = sb_controls_check(&ses->controls, m->text, m->text_len, &err);
	if (r == -EBADMSG)
		return r;
	if (r < 0) {
		session_fail(ses, SB_FAIL_GUEST, "%s", err.text);
		return 0;
	}
	send_time(ses);
	if (sb_log_debug_on())
		log_report(m);
	sb_timer_del(&ses->deadline);
	ses->state = SES_READY;
	session_tell(ses, SB_IPC_READY, NULL, 0);
	return 0;
}

static int on_message(struct session *ses, const struct sb_ctl *m)
{
	struct sb_ipc_started started = { .cmd = m->cmd };
	struct command *cmd;
	char text[400];

	if (ses->state == SES_GREET && m->type != SB_CTL_READY && m->type != SB_CTL_FAILED)
		return -EBADMSG;
	switch ((enum sb_ctl_type)m->type) {
	case SB_CTL_READY:
		return on_ready(ses, m);
	case SB_CTL_STARTED:
		cmd = command_find(ses, m->cmd);
		if (!cmd)
			return ses->state == SES_CLOSING ? 0 : -EBADMSG;
		if (cmd->started) /* a time-out is counted from it */
			return -EBADMSG;
		cmd->started = true;
		session_tell(ses, SB_IPC_STARTED, &started, sizeof(started));
		return 0;
	case SB_CTL_EXITED:
		return on_exited(ses, m);
	case SB_CTL_FAILED:
		clean_text(m->text, m->text_len, text, sizeof(text));
		session_fail(ses, SB_FAIL_GUEST, "the guest reports: %s", text);
		return 0;
	case SB_CTL_EXEC_EVENT:
		return exec_event(ses, m);
	case SB_CTL_BYE:
		if (ses->state != SES_CLOSING)
			return -EBADMSG;
		exec_events_flush(ses);
		session_tell(ses, SB_IPC_CLOSED, NULL, 0);
		over(ses);
		return 0;
	case SB_CTL_NONE:
	case SB_CTL_RUN:
	case SB_CTL_EXEC:
	case SB_CTL_SIGNAL:
	case SB_CTL_KILL:
	case SB_CTL_RESIZE:
	case SB_CTL_SHUTDOWN:
	case SB_CTL_TIME:
	default:
		return -EBADMSG;
	}
}

static int on_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	struct session *ses = sb_chan_owner(c);
	struct sb_ctl m;
	int r = sb_ctl_parse(msg, len, &m);

	return r < 0 ? r : on_message(ses, &m);
}

static void on_closed(struct sb_chan *c, int err, const char *why)
{
	struct session *ses = sb_chan_owner(c);

	if (err == 0)
		session_fail(ses, SB_FAIL_GUEST, "the guest ended unexpectedly");
	else
		session_fail(ses, SB_FAIL_GUEST, "the channel to the guest failed: %s (errno %d)",
			     why, -err);
}

static const struct sb_chan_ops chan_ops = {
	.control = on_control, .opened = bridge_opened, .closed = on_closed
};

/* --- start --- */

static void on_deadline(struct sb_timer *t)
{
	struct session *ses = t->owner;

	session_fail(ses, SB_FAIL_TIMEOUT, "the guest was not ready within %u ms%s",
		     ses->ready_timeout_ms,
		     ses->state == SES_BOOT ? " (it did not read its plan)" : "");
}

static void greet(struct session *ses)
{
	struct sb_chan_config cfg = { .loop = ses->loop,
				      .role = SB_CHAN_HOST,
				      .fd_in = ses->carrier,
				      .fd_out = ses->carrier,
				      .prologue = ses->prologue,
				      .prologue_len = sizeof(ses->prologue),
				      .max_net = ses->max_net,
				      .ops = &chan_ops,
				      .owner = ses };
	int r;

	sb_io_del(&ses->carrier_io);
	memcpy(cfg.psk, ses->psk, sizeof(cfg.psk));
	r = sb_chan_new(&cfg, &ses->chan);
	sb_wipe(cfg.psk, sizeof(cfg.psk));
	sb_wipe(ses->psk, sizeof(ses->psk));
	sb_wipe(ses->boot, ses->boot_len);
	free(ses->boot);
	ses->boot = NULL;
	if (r < 0) {
		session_fail(ses, SB_FAIL_INTERNAL, "channel: errno %d", -r);
		return;
	}
	ses->state = SES_GREET;
}

static void on_boot(struct sb_io *io, uint32_t events)
{
	struct session *ses = io->owner;
	ssize_t n;

	(void)events;
	n = write(ses->carrier, ses->boot + ses->boot_at, ses->boot_len - ses->boot_at);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			session_fail(ses, SB_FAIL_GUEST, "the guest left before it had its plan");
		return;
	}
	ses->boot_at += (size_t)n;
	if (ses->boot_at == ses->boot_len)
		greet(ses);
}

int session_start(struct session *ses)
{
	int r = bridge_start(ses);

	if (r < 0)
		return r;
	if (ses->ready_timeout_ms > 0)
		sb_timer_set(ses->loop, &ses->deadline, ses->ready_timeout_ms * 1000000ULL,
			     on_deadline, ses);
	ses->state = SES_BOOT;
	return sb_io_set(ses->loop, &ses->carrier_io, ses->carrier, EPOLLOUT, on_boot, ses);
}

void session_done(struct session *ses)
{
	over(ses);
	sb_io_del(&ses->ipc_io);
	sb_fd_close(&ses->ipc);
	if (ses->boot)
		sb_wipe(ses->boot, ses->boot_len);
	free(ses->boot);
	ses->boot = NULL;
	sb_wipe(ses->psk, sizeof(ses->psk));
	sb_controls_done(&ses->controls);
}
