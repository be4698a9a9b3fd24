#include "attach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "events.h"
#include "fds.h"
#include "hold.h"
#include "prompt.h"
#include "term.h"
#include "wire/termfilter.h"

struct attach {
	struct attach_conf c;
	struct cli_fd in;
	struct cli_fd out[2];
	struct sb_io in_io;
	struct sb_io out_io[2];
	bool in_tty;
	bool tty;
	bool welcome;
	bool eof;
	uint32_t credit; /* bytes of input that may be sent */
	struct sb_buf pending[2];
	size_t owed[2]; /* bytes that came and were not credited yet */
	struct sb_termfilter filter[2];
	bool filtered[2]; /* this client's terminal shows it, and nobody filtered it before */
	uint8_t keys[ATTACH_KEYS_MAX];
	size_t n_keys;
	size_t seen; /* of the keys */
	struct prompt *prompt;   /* a question shows: nothing is written, nothing typed is sent */
	int lost;    /* errno of a write that failed though somebody would read */
};

static int one_key(const char *p, size_t len, uint8_t *ret)
{
	if (len == 6 && strncmp(p, "ctrl-", 5) == 0) {
		char c = p[5];

		if (c >= 'a' && c <= 'z')
			*ret = (uint8_t)(c - 'a' + 1);
		else if (c == '\\' || c == ']' || c == '^' || c == '_' || c == '[' || c == '@')
			*ret = (uint8_t)(c - '@');
		else
			return -EINVAL;
		return 0;
	}
	if (len != 1 || p[0] < 0x21 || p[0] > 0x7e)
		return -EINVAL;
	*ret = (uint8_t)p[0];
	return 0;
}

int attach_keys(const char *text, uint8_t ret[ATTACH_KEYS_MAX], struct sb_err *err)
{
	int n = 0;

	while (*text) {
		size_t len = strcspn(text, ",");

		if (n == ATTACH_KEYS_MAX || one_key(text, len, &ret[n]) < 0)
			return sb_err_set(err, -EINVAL, "--detach-keys: up to %d of ctrl-a ... ctrl-z, "
							"ctrl-], or single characters, with commas between",
					  ATTACH_KEYS_MAX);
		n++;
		text += len + (text[len] == ',');
	}
	return n;
}

static void send_msg(struct attach *a, uint16_t type, const void *p, size_t len)
{
	if (sb_ipc_send(a->c.sock, type, p, len, NULL, 0) < 0)
		sb_debug("message %u to the holder was lost", type);
}

bool attach_tty(const struct attach *a)
{
	return a->tty;
}

void attach_leave(struct attach *a)
{
	send_msg(a, SB_ATT_DETACH, NULL, 0);
}

/* ---- input ---- */

static void watch_input(struct attach *a);

static void stop_input(struct attach *a)
{
	sb_io_del(&a->in_io);
	if (!a->eof && !a->tty)
		send_msg(a, SB_ATT_EOF, NULL, 0);
	a->eof = true;
}

/* Copy @p to @out without the detach keys. Return: bytes, or -1 when they are complete. */
static ssize_t scan_keys(struct attach *a, const uint8_t *p, size_t len, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (a->n_keys > 0 && p[i] == a->keys[a->seen]) {
			if (++a->seen == a->n_keys)
				return -1;
			continue;
		}
		memcpy(out + n, a->keys, a->seen);
		n += a->seen;
		a->seen = 0;
		if (a->n_keys > 0 && p[i] == a->keys[0] && a->n_keys > 1)
			a->seen = 1;
		else
			out[n++] = p[i];
	}
	return (ssize_t)n;
}

static void on_in(struct sb_io *io, uint32_t events)
{
	struct attach *a = io->owner;
	uint8_t buf[SB_ATTACH_DATA - ATTACH_KEYS_MAX];
	uint8_t out[SB_ATTACH_DATA];
	size_t room = a->credit > ATTACH_KEYS_MAX ? a->credit - ATTACH_KEYS_MAX : 0;
	ssize_t n;

	(void)events;
	if (room == 0) {
		sb_io_del(&a->in_io);
		return;
	}
	n = read(a->in.fd, buf, SB_MIN(room, sizeof(buf)));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		stop_input(a);
		return;
	}
	if (a->in_tty && a->tty) {
		n = scan_keys(a, buf, (size_t)n, out);
		if (n < 0) {
			attach_leave(a);
			sb_io_del(&a->in_io);
			a->c.detached(a->c.arg);
			return;
		}
	} else {
		memcpy(out, buf, (size_t)n);
	}
	if (n == 0)
		return;
	if (sb_ipc_send(a->c.sock, SB_ATT_INPUT, out, (size_t)n, NULL, 0) < 0) {
		sb_io_del(&a->in_io);
		return;
	}
	a->credit -= (uint32_t)n;
}

static void watch_input(struct attach *a)
{
	if (!a->prompt && !a->c.no_input && a->welcome && !a->eof && a->in.fd >= 0 && !a->in_io.active &&
	    a->credit > ATTACH_KEYS_MAX &&
	    sb_io_set(a->c.loop, &a->in_io, a->in.fd, EPOLLIN, on_in, a) < 0)
		stop_input(a);
}

/* ---- output ---- */

static void give_credit(struct attach *a, int i, size_t n)
{
	struct sb_attach_credit m = { .stream = (uint32_t)i + 1 };

	while (n > 0) {
		m.bytes = (uint32_t)SB_MIN(n, (size_t)SB_ATTACH_WINDOW);
		send_msg(a, SB_ATT_CREDIT, &m, sizeof(m));
		n -= m.bytes;
	}
}

static void nobody_reads(struct attach *a, int i)
{
	struct sb_attach_stream m = { .stream = (uint32_t)i + 1 };

	sb_io_del(&a->out_io[i]);
	cli_fd_done(&a->out[i], false);
	sb_buf_drop(&a->pending[i], a->pending[i].len);
	send_msg(a, SB_ATT_CLOSE, &m, sizeof(m));
}

/* Return: false when the reader has no room. */
static bool flush_out(struct attach *a, int i)
{
	struct sb_buf *b = &a->pending[i];

	if (a->prompt)
		return false;
	while (b->len > 0 && a->out[i].fd >= 0) {
		ssize_t n = write(a->out[i].fd, b->data, b->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) {
			int e = errno;

			if (e != EPIPE && e != ECONNRESET && !isatty(a->out[i].fd) && a->lost == 0)
				a->lost = e;
			nobody_reads(a, i);
			return true;
		}
		sb_buf_drop(b, (size_t)n);
	}
	return true;
}

static void settle(struct attach *a, int i)
{
	give_credit(a, i, a->owed[i]);
	a->owed[i] = 0;
}

static void on_out(struct sb_io *io, uint32_t events)
{
	struct attach *a = io->owner;
	int i = io == &a->out_io[1];

	(void)events;
	if (flush_out(a, i)) {
		sb_io_del(&a->out_io[i]);
		settle(a, i);
	}
}

static void add_filtered(struct attach *a, int i, const uint8_t *p, size_t len)
{
	uint8_t out[SB_TERMFILTER_ROOM(SB_ATTACH_DATA)];

	sb_buf_add(&a->pending[i], out, sb_termfilter_run(&a->filter[i], p, len, out));
}

static int on_output(struct attach *a, int i, const uint8_t *p, size_t len)
{
	a->owed[i] += len;
	if (a->c.json) {
		cli_event_output(i == 0 ? "stdout" : "stderr", p, len);
		settle(a, i);
		return 1;
	}
	if (a->out[i].fd < 0) {
		settle(a, i);
		return 1;
	}
	if (a->filtered[i])
		add_filtered(a, i, p, len);
	else
		sb_buf_add(&a->pending[i], p, len);
	if (sb_buf_error(&a->pending[i]) < 0)
		return -EBADMSG;
	if (flush_out(a, i)) {
		settle(a, i);
		return 1;
	}
	if (!a->prompt && !a->out_io[i].active &&
	    sb_io_set(a->c.loop, &a->out_io[i], a->out[i].fd, EPOLLOUT, on_out, a) < 0)
		nobody_reads(a, i);
	return 1;
}

/* ---- questions ---- */

static void hold_back(struct attach *a)
{
	sb_io_del(&a->in_io);
	for (int i = 0; i < 2; i++)
		sb_io_del(&a->out_io[i]);
	a->seen = 0;
}

static void go_on(struct attach *a)
{
	struct sb_ipc_resize m = { 0 };

	a->prompt = prompt_free(a->prompt, NULL);
	for (int i = 0; i < 2; i++) {
		if (flush_out(a, i))
			settle(a, i);
		else if (sb_io_set(a->c.loop, &a->out_io[i], a->out[i].fd, EPOLLOUT, on_out, a) < 0)
			nobody_reads(a, i);
	}
	watch_input(a);
	if (!a->tty || !isatty(a->c.stdio[1]))
		return;
	/* a program that draws the whole screen does so again when its size changes */
	cli_term_size(a->c.stdio[1], &m.rows, &m.cols);
	m.cols = (uint16_t)(m.cols > 1 ? m.cols - 1 : m.cols + 1);
	send_msg(a, SB_IPC_RESIZE, &m, sizeof(m));
	cli_term_size(a->c.stdio[1], &m.rows, &m.cols);
	send_msg(a, SB_IPC_RESIZE, &m, sizeof(m));
}

static void on_answer(void *arg, uint64_t number, enum sb_appr_answer answer, const char *pattern)
{
	struct attach *a = arg;
	struct sb_ipc_appr_decide m = { .number = number, .answer = (uint32_t)answer };

	if (pattern)
		(void)snprintf(m.pattern, sizeof(m.pattern), "%s", pattern);
	send_msg(a, SB_IPC_APPR_DECIDE, &m, sizeof(m)); /* APPR_CLOSED or APPR_END ends the prompt */
}

static void on_question_lost(void *arg, uint64_t number)
{
	on_answer(arg, number, SB_APPR_NO, NULL);
	go_on(arg);
}

static int on_question(struct attach *a, const struct sb_ipc_appr_question *q)
{
	const struct prompt_conf c = { a->c.loop, on_answer, on_question_lost, a };

	if ((a->c.flags & SB_ATTACH_ASK) == 0 || a->prompt)
		return -EBADMSG;
	hold_back(a);
	if (prompt_show(&c, q, &a->prompt) < 0) {
		on_answer(a, q->number, SB_APPR_NO, NULL);
		go_on(a);
	}
	return 1;
}

/* ---- messages ---- */

static int on_welcome(struct attach *a, const struct sb_attach_welcome *w)
{
	if (a->welcome)
		return -EBADMSG;
	a->welcome = true;
	a->tty = w->tty;
	/* a terminal session is filtered before it gets here */
	for (int i = 0; i < 2; i++)
		a->filtered[i] = !w->tty && isatty(a->c.stdio[i + 1]);
	a->credit = SB_ATTACH_WINDOW;
	watch_input(a);
	return 1;
}

static void note(struct attach *a, const char *p, size_t len)
{
	char text[600];

	(void)snprintf(text, sizeof(text), "%.*s", (int)SB_MIN(len, sizeof(text) - 1), p);
	a->c.note(a->c.arg, text);
}

int attach_message(struct attach *a, const struct sb_ipc_msg *msg)
{
	const struct sb_attach_credit *credit = (const void *)msg->data;
	char text[100];

	if (sb_attach_check(msg, SB_ATTACH_FROM_HOLDER) < 0)
		return -EBADMSG;
	switch (msg->type) {
	case SB_ATT_WELCOME:
		return on_welcome(a, (const void *)msg->data);
	case SB_ATT_STDOUT:
		return on_output(a, 0, msg->data, msg->len);
	case SB_ATT_STDERR:
		return on_output(a, 1, msg->data, msg->len);
	case SB_ATT_CREDIT:
		if (a->credit + credit->bytes > SB_ATTACH_WINDOW)
			return -EBADMSG;
		a->credit += credit->bytes;
		watch_input(a);
		return 1;
	case SB_ATT_SKIPPED:
		(void)snprintf(text, sizeof(text), "%llu bytes of output were skipped: this reader is slow; "
						   "sendbox logs has them",
			       (unsigned long long)((const struct sb_attach_skipped *)(const void *)
							    msg->data)->bytes);
		a->c.note(a->c.arg, text);
		return 1;
	case SB_IPC_APPR_QUESTION:
		return on_question(a, (const void *)msg->data);
	case SB_IPC_APPR_CLOSED:
	case SB_IPC_APPR_END:
		if (a->prompt)
			go_on(a);
		return 1;
	case SB_ATT_NOTE:
		note(a, (const char *)msg->data, msg->len);
		return 1;
	default:
		return 0;
	}
}

/* ---- life ---- */

static int open_fds(struct attach *a, struct sb_err *err)
{
	int k = 0;

	if (!a->c.no_input)
		k = cli_fd_open(a->c.stdio[0], false, &a->in, err);
	for (int i = 0; k == 0 && i < 2 && !a->c.json; i++)
		k = cli_fd_open(a->c.stdio[i + 1], true, &a->out[i], err);
	return k;
}

int attach_new(const struct attach_conf *c, struct attach **ret, struct sb_err *err)
{
	struct attach *a = calloc(1, sizeof(*a));
	struct sb_attach_hello hello = { .version = SB_ATTACH_VERSION, .flags = c->flags };
	int k;

	if (!a)
		return sb_err_set(err, -ENOMEM, "out of memory");
	a->c = *c;
	a->in.fd = a->out[0].fd = a->out[1].fd = -1;
	if (!c->json && (c->flags & SB_ATTACH_OUTPUT) != 0 && !c->no_input && cli_term_can_ask()) {
		a->c.flags |= SB_ATTACH_ASK;
		hello.flags = a->c.flags;
	}
	for (int i = 0; i < 2; i++)
		sb_buf_init(&a->pending[i], 4 * SB_ATTACH_WINDOW);
	a->in_tty = isatty(c->stdio[0]);
	k = attach_keys(c->keys ? c->keys : HOLD_KEYS, a->keys, err);
	if (k >= 0) {
		a->n_keys = (size_t)k;
		k = open_fds(a, err);
	}
	if (k == 0) {
		if (isatty(c->stdio[1]))
			cli_term_size(c->stdio[1], &hello.rows, &hello.cols);
		k = sb_ipc_send(c->sock, SB_ATT_HELLO, &hello, sizeof(hello), NULL, 0);
		if (k < 0)
			(void)sb_err_set(err, k, "the session does not answer: %s", strerror(-k));
	}
	if (k < 0) {
		(void)attach_free(a);
		return k;
	}
	*ret = a;
	return 0;
}

void attach_drain(struct attach *a)
{
	a->prompt = prompt_free(a->prompt, NULL);
	for (int i = 0; i < 2; i++) {
		uint8_t rest[SB_TERMFILTER_SLACK];

		if (a->filtered[i] && a->out[i].fd >= 0)
			sb_buf_add(&a->pending[i], rest, sb_termfilter_end(&a->filter[i], rest));
		while (!flush_out(a, i)) {
			struct pollfd p = { .fd = a->out[i].fd, .events = POLLOUT };

			if (poll(&p, 1, -1) < 0 && errno != EINTR)
				break;
		}
	}
}

int attach_lost(const struct attach *a)
{
	return a->lost;
}

struct attach *attach_free(struct attach *a)
{
	if (a) {
		a->prompt = prompt_free(a->prompt, NULL);
		sb_io_del(&a->in_io);
		cli_fd_done(&a->in, false);
		for (int i = 0; i < 2; i++) {
			sb_io_del(&a->out_io[i]);
			cli_fd_done(&a->out[i], true);
			sb_buf_done(&a->pending[i]);
		}
		free(a);
	}
	return NULL;
}
