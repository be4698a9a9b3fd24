/*
 * Input and output of the program. Output waits for the foreground client, as a pipe would; every
 * other client is told how much it missed. Bytes that were read when the foreground client had no
 * room are kept, at most one message of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "hold_i.h"

static void on_out(struct sb_io *io, uint32_t events);

static int one_pipe(int *ours, int *theirs, bool input)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	*ours = p[input ? 1 : 0];
	*theirs = p[input ? 0 : 1];
	return 0;
}

int hold_streams_open(struct hold *h, struct sb_err *err)
{
	int r = one_pipe(&h->in, &h->r->io[0].fd, true);

	for (int i = 0; r == 0 && i < 2; i++) {
		r = one_pipe(&h->out[i], &h->r->io[i + 1].fd, false);
		if (r == 0)
			r = sb_io_set(h->r->loop, &h->out_io[i], h->out[i], EPOLLIN, on_out, h);
	}
	return r < 0 ? sb_err_set(err, r, "cannot make a pipe: %s", strerror(-r)) : 0;
}

/* ---- input ---- */

static void credit(struct hold_client *c, size_t n)
{
	struct sb_attach_credit m = { .stream = 0, .bytes = (uint32_t)n };

	if (n > 0 && sb_ipc_send(c->sock, SB_ATT_CREDIT, &m, sizeof(m), NULL, 0) < 0)
		hold_client_drop(c);
}

static void close_input(struct hold *h)
{
	sb_io_del(&h->in_io);
	sb_fd_close(&h->in);
}

static void on_in(struct sb_io *io, uint32_t events)
{
	struct hold *h = io->owner;

	(void)events;
	sb_io_del(&h->in_io);
	hold_input(h);
}

/* Return: false when the pipe is full. */
static bool put(struct hold *h, struct hold_client *c)
{
	while (c->in.len > 0) {
		ssize_t n = h->in < 0 ? (ssize_t)c->in.len : write(h->in, c->in.data, c->in.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) { /* nobody reads any more */
			close_input(h);
			continue;
		}
		sb_buf_drop(&c->in, (size_t)n);
		credit(c, (size_t)n);
		if (!c->h)
			return true;
	}
	if (c->eof && c->foreground)
		close_input(h);
	return true;
}

void hold_input(struct hold *h)
{
	for (size_t i = 0; i < HOLD_CLIENTS; i++) {
		struct hold_client *c = &h->clients[i];

		if (c->h && !put(h, c)) {
			if (sb_io_set(h->r->loop, &h->in_io, h->in, EPOLLOUT, on_in, h) < 0)
				close_input(h);
			return;
		}
	}
}

/* ---- output ---- */

void hold_output_close(struct hold *h, int i)
{
	sb_io_del(&h->out_io[i]);
	sb_fd_close(&h->out[i]);
	hold_maybe_end(h);
}

static void tell_skipped(struct hold_client *c)
{
	struct sb_attach_skipped m = { .bytes = c->skipped };

	if (c->skipped > 0 &&
	    sb_ipc_send(c->sock, SB_ATT_SKIPPED, &m, sizeof(m), NULL, 0) == 0)
		c->skipped = 0;
}

/* Return: 0; -EAGAIN: no room now; -errno. */
static int give(struct hold_client *c, int i, const uint8_t *p, size_t len)
{
	int r;

	if (c->window[i] < len)
		return -EAGAIN;
	tell_skipped(c);
	r = sb_ipc_send(c->sock, i == 0 ? SB_ATT_STDOUT : SB_ATT_STDERR, p, len, NULL, 0);
	if (r == 0)
		c->window[i] -= (uint32_t)len;
	return r;
}

/* To everybody but the foreground client. */
static void give_others(struct hold *h, int i, const uint8_t *p, size_t len)
{
	for (size_t k = 0; k < HOLD_CLIENTS; k++) {
		struct hold_client *c = &h->clients[k];
		int r;

		if (!c->h || !c->output || c->foreground)
			continue;
		r = give(c, i, p, len);
		if (r == -EAGAIN)
			c->skipped += len;
		else if (r < 0)
			hold_client_drop(c);
	}
}

/* Return: false when the foreground client has no room. */
static bool give_foreground(struct hold *h, int i, const uint8_t *p, size_t len)
{
	struct hold_client *c = hold_foreground(h);
	int r = c ? give(c, i, p, len) : 0;

	if (r == -EAGAIN) {
		/* with a window it is the socket that is full: wait for it */
		if (c->window[i] >= len && sb_io_want(&c->io, EPOLLIN | EPOLLOUT) < 0)
			hold_client_drop(c);
		return !hold_foreground(h);
	}
	if (r < 0)
		hold_client_drop(c);
	return true;
}

static void pause_output(struct hold *h)
{
	for (int i = 0; i < 2; i++)
		sb_io_del(&h->out_io[i]);
}

/* Return: whether there may be more at once. */
static bool take(struct hold *h, int i)
{
	const struct hold_client *fg = hold_foreground(h);
	size_t room = fg ? SB_MIN(sizeof(h->kept), (size_t)fg->window[i]) : sizeof(h->kept);
	ssize_t n;

	if (room == 0) {
		sb_io_del(&h->out_io[i]);
		return false;
	}
	n = read(h->out[i], h->kept, room);
	if (n < 0)
		return errno == EINTR;
	if (n == 0) {
		hold_output_close(h, i);
		return false;
	}
	hold_log_add(&h->log, h->kept, (size_t)n);
	give_others(h, i, h->kept, (size_t)n);
	if (give_foreground(h, i, h->kept, (size_t)n))
		return true;
	h->n_kept = (size_t)n;
	h->kept_from = i;
	pause_output(h);
	return false;
}

static void on_out(struct sb_io *io, uint32_t events)
{
	struct hold *h = io->owner;
	int i = io == &h->out_io[1];

	(void)events;
	for (int n = 0; n < 16 && take(h, i); n++)
		continue;
}

void hold_output_resume(struct hold *h)
{
	if (h->n_kept > 0) {
		size_t n = h->n_kept;

		if (!give_foreground(h, h->kept_from, h->kept, n))
			return;
		h->n_kept = 0;
	}
	for (int i = 0; i < 2; i++)
		if (h->out[i] >= 0 && !h->out_io[i].active &&
		    sb_io_set(h->r->loop, &h->out_io[i], h->out[i], EPOLLIN, on_out, h) < 0)
			hold_output_close(h, i);
	hold_maybe_end(h);
}

void hold_replay(struct hold_client *c)
{
	static char ring[HOLD_RING];
	size_t len = hold_log_ring(&c->h->log, ring);
	size_t at = 0;

	while (at < len) {
		size_t n = SB_MIN(len - at, (size_t)SB_ATTACH_DATA);

		if (give(c, 0, (const uint8_t *)ring + at, n) < 0)
			return;
		at += n;
	}
}
