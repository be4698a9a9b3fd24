/*
 * Clients of the holder: processes of the same user. A client that breaks the protocol, or gives more
 * than its window, is cut off; nothing that it does or fails to do stops the session, except that
 * output waits for the foreground client.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "hold_i.h"

struct hold_client *hold_foreground(struct hold *h)
{
	for (size_t i = 0; i < HOLD_CLIENTS; i++)
		if (h->clients[i].h && h->clients[i].foreground)
			return &h->clients[i];
	return NULL;
}

struct hold_client *hold_client_of(struct hold *h, uint32_t cmd)
{
	for (size_t i = 0; i < HOLD_CLIENTS; i++)
		if (h->clients[i].h && cmd != 0 && h->clients[i].cmd == cmd)
			return &h->clients[i];
	return NULL;
}

void hold_client_drop(struct hold_client *c)
{
	struct hold *h = c->h;
	bool foreground = c->foreground;
	bool asks = c->asks;
	bool shows = c->shows;

	if (!h)
		return;
	if (c->cmd != 0) { /* its command loses its terminal */
		struct sb_ipc_signal m = { .cmd = c->cmd, .signo = SIGHUP };

		hold_to_monitor(h, SB_IPC_SIGNAL, &m, sizeof(m));
	}
	sb_io_del(&c->io);
	sb_fd_close(&c->sock);
	sb_buf_done(&c->in);
	*c = (struct hold_client){ .sock = -1 };
	if (foreground)
		hold_output_resume(h);
	if (asks)
		hold_ask_clients(h, shows);
}

void hold_clients_tell(struct hold *h, uint16_t type, const void *p, size_t len, bool events)
{
	for (size_t i = 0; i < HOLD_CLIENTS; i++) {
		struct hold_client *c = &h->clients[i];
		int r;

		if (!c->h || !c->hello || (events && !c->events))
			continue;
		r = sb_ipc_send(c->sock, type, p, len, NULL, 0);
		if (r < 0 && r != -EAGAIN)
			hold_client_drop(c);
	}
}

/* A program that draws the whole screen does so again when its size changes. */
static void redraw(struct hold_client *c, uint16_t rows, uint16_t cols)
{
	struct sb_ipc_resize m = { .rows = rows, .cols = (uint16_t)(cols > 1 ? cols - 1 : cols + 1) };

	hold_to_monitor(c->h, SB_IPC_RESIZE, &m, sizeof(m));
	m.cols = cols;
	hold_to_monitor(c->h, SB_IPC_RESIZE, &m, sizeof(m));
}

static int on_hello(struct hold_client *c, const struct sb_attach_hello *m)
{
	struct run *r = c->h->r;
	struct sb_attach_welcome w = { .version = SB_ATTACH_VERSION,
				       .tty = r->plan->tty,
				       .started = r->started };

	if (c->hello)
		return -EBADMSG;
	c->hello = true;
	c->output = (m->flags & (SB_ATTACH_OUTPUT | SB_ATTACH_FOREGROUND)) != 0;
	c->events = (m->flags & SB_ATTACH_EVENTS) != 0;
	c->asks = c->output && (m->flags & SB_ATTACH_ASK) != 0;
	memcpy(w.session, r->plan->session, sizeof(w.session));
	if (sb_ipc_send(c->sock, SB_ATT_WELCOME, &w, sizeof(w), NULL, 0) < 0)
		return -EPIPE;
	if (c->output && (m->flags & SB_ATTACH_REPLAY) != 0)
		hold_replay(c);
	if (c->output && m->rows != 0 && r->plan->tty && r->started)
		redraw(c, m->rows, m->cols);
	if (c->asks)
		hold_ask_clients(c->h, false);
	return 0;
}

static int on_input(struct hold_client *c, const struct sb_ipc_msg *msg)
{
	struct hold *h = c->h;

	if (c->eof || c->in.len + msg->len > SB_ATTACH_WINDOW)
		return -EBADMSG;
	sb_buf_add(&c->in, msg->data, msg->len);
	if (sb_buf_error(&c->in) < 0)
		return -ENOMEM;
	hold_input(h);
	return 0;
}

static int on_credit(struct hold_client *c, const struct sb_attach_credit *m)
{
	uint32_t *w = &c->window[m->stream - 1];

	if (*w + m->bytes > SB_ATTACH_WINDOW)
		return -EBADMSG;
	*w += m->bytes;
	if (c->foreground)
		hold_output_resume(c->h);
	return 0;
}

/* RESIZE, SIGNAL and CANCEL are for what the client is for. */
static int on_control(struct hold_client *c, const struct sb_ipc_msg *msg)
{
	struct sb_ipc_signal m;
	uint16_t type = msg->type;

	_Static_assert(sizeof(struct sb_ipc_signal) == sizeof(struct sb_ipc_resize), "both are copied");
	memcpy(&m, msg->data, sizeof(m));
	m.cmd = c->cmd;
	if (c->cmd != 0 && type == SB_IPC_CANCEL)
		type = SB_IPC_SIGNAL;
	hold_to_monitor(c->h, type, &m, sizeof(m));
	return 0;
}

static int on_message(struct hold_client *c, struct sb_ipc_msg *msg)
{
	if (sb_attach_check(msg, SB_ATTACH_FROM_CLIENT) < 0)
		return -EBADMSG;
	if (msg->type != SB_ATT_HELLO && !c->hello)
		return -EBADMSG;
	switch (msg->type) {
	case SB_ATT_HELLO:
		return on_hello(c, (const void *)msg->data);
	case SB_ATT_INPUT:
		return on_input(c, msg);
	case SB_ATT_EOF:
		c->eof = true;
		hold_input(c->h);
		return 0;
	case SB_ATT_EXEC:
		return hold_exec(c, msg);
	case SB_ATT_CLOSE:
		if (c->foreground)
			hold_output_close(c->h,
					  (int)((const struct sb_attach_stream *)(const void *)msg->data)
							  ->stream - 1);
		return 0;
	case SB_ATT_CREDIT:
		return on_credit(c, (const void *)msg->data);
	case SB_IPC_APPR_DECIDE:
		hold_ask_decide(c, (const void *)msg->data);
		return 0;
	case SB_IPC_RESIZE:
	case SB_IPC_SIGNAL:
	case SB_IPC_CANCEL:
		return on_control(c, msg);
	default: /* DETACH */
		return -ECONNRESET;
	}
}

static void on_client(struct sb_io *io, uint32_t events)
{
	struct hold_client *c = io->owner;

	if ((events & EPOLLOUT) != 0) {
		struct hold *h = c->h;

		if (sb_io_want(&c->io, EPOLLIN) < 0) {
			hold_client_drop(c);
			return;
		}
		hold_output_resume(h);
	}
	for (int n = 0; n < 32 && c->h; n++) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		int r = sb_ipc_recv(c->sock, &msg);

		if (r == -EAGAIN)
			return;
		if (r == 0)
			r = on_message(c, &msg);
		if (r == 0)
			continue;
		if (r == -EBADMSG)
			sb_debug("a client was cut off");
		hold_client_drop(c);
	}
}

int hold_client_add(struct hold *h, int *sock)
{
	struct hold_client *c = NULL;
	int r;

	for (size_t i = 0; i < HOLD_CLIENTS && !c; i++)
		if (!h->clients[i].h)
			c = &h->clients[i];
	if (!c)
		return -EUSERS;
	*c = (struct hold_client){ .h = h, .sock = *sock,
				   .window = { SB_ATTACH_WINDOW, SB_ATTACH_WINDOW } };
	sb_buf_init(&c->in, SB_ATTACH_WINDOW);
	r = sb_fd_set_nonblock(c->sock, true);
	if (r == 0)
		r = sb_io_set(h->r->loop, &c->io, c->sock, EPOLLIN, on_client, c);
	if (r < 0) {
		*c = (struct hold_client){ .sock = -1 };
		return r;
	}
	*sock = -1;
	return 0;
}
