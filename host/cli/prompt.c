#include "prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "term.h"

#define SETTLE_NS 400000000ULL /* of silence: what is typed before is no answer to what was not seen yet */

/*
 * Whatever a program left behind: a string that was not ended (also one that only its end ends), the Linux console's
 * palette, colours of the terminal's own, no screen held back or reversed, plain
 * text and characters, cursor on, no margins or scroll region, no insert mode, keyboard not locked;
 * then beneath everything that is shown, in colours that are said.
 */
#define CLEAN \
	"\033\\\030\033]R\033\\" \
	"\033]104\007\033]110\007\033]111\007\033]112\007\033[?2026l\033[?5l\033[?69l" \
	"\033[0m\033(B\017\033[?6l\033[r\033[?7h\033[?25h\033[2l\033[4l\033[999;1H\r\n\033[0;97;40m"
#define PLAIN "\033[0m"

struct prompt {
	struct prompt_conf c;
	struct sb_ipc_appr_question q;
	int fd; /* owned */
	struct termios saved;
	struct sb_io io;
	struct sb_timer settle;
	uint64_t quiet_ns; /* when it was drawn, or the last byte came before it settled */
	bool settled;
	struct prompt_line line;
};

static void put(const struct prompt *p, const char *text)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLOUT };
	size_t len = strlen(text);

	/* a terminal that takes nothing for a second is not waited for */
	while (len > 0 && poll(&pfd, 1, 1000) > 0) {
		ssize_t n = write(p->fd, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static int take_terminal(struct prompt *p)
{
	struct termios t;

	p->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (p->fd < 0 || !isatty(p->fd) || tcgetpgrp(p->fd) != getpgrp() ||
	    tcgetattr(p->fd, &p->saved) < 0)
		return -ENOTTY;
	t = p->saved;
	cfmakeraw(&t);
	t.c_oflag |= OPOST | ONLCR;
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	/* discards what was typed ahead, in one step with the change */
	return tcsetattr(p->fd, TCSAFLUSH, &t) < 0 ? -errno : 0;
}

/* What does not fit on this terminal cannot be approved here. */
static bool fits(const struct prompt *p)
{
	uint16_t rows;
	uint16_t cols;

	cli_term_size(p->fd, &rows, &cols);
	return rows > 12 && cols > 30 &&
	       strlen(p->q.subject) + strlen(p->q.rule) < (size_t)(rows - 12) * (cols - 12U);
}

/* The answers that are possible. */
static void words(const struct prompt *p, struct sb_text *t)
{
	if (p->q.may & 1U << SB_APPR_ONCE)
		sb_text_add(t, "once, ");
	if (p->q.may & 1U << SB_APPR_SESSION)
		sb_text_add(t, "session, ");
	if (p->q.may & 1U << SB_APPR_PATTERN)
		sb_text_add(t, "pattern P, ");
	if (p->q.may & 1U << SB_APPR_FOREVER)
		sb_text_add(t, "forever, ");
	sb_text_add(t, "no, never");
}

static void draw(struct prompt *p)
{
	const char *kind = sb_appr_kind_name((enum sb_appr_kind)p->q.kind);
	char buf[4096] = "";
	struct sb_text t = { .p = buf, .cap = sizeof(buf) };

	if (!fits(p))
		p->q.may = 1U << SB_APPR_NO | 1U << SB_APPR_NEVER;
	sb_text_add(&t, CLEAN "---- sendbox asks (question %llu; the session is held) ----\n",
		    (unsigned long long)p->q.number);
	sb_text_add(&t, "  %s: ", kind ? kind : "?");
	sb_text_add(&t, "%s\n  rule: ", p->q.subject);
	sb_text_add(&t, "%s\n", p->q.rule);
	sb_text_add(&t, "  answers: ");
	if (!(p->q.may & 1U << SB_APPR_ONCE))
		sb_text_add(&t, "(too long for this terminal: allow it with sendbox approve) ");
	words(p, &t);
	sb_text_add(&t, "; in %llu s: no\nsendbox: allow it? ",
		    (unsigned long long)(p->q.left_ms + 999) / 1000);
	put(p, buf);
}

static void again(struct prompt *p, const char *why)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "\n%s\nsendbox: allow it? ", why);
	put(p, text);
	prompt_line_clear(&p->line);
}

/* Return: 1: answered; 0. */
static int on_line(struct prompt *p, enum sb_appr_answer *answer, const char **pattern)
{
	if (prompt_line_answer(&p->line, answer, pattern) < 0) {
		char text[100] = "";
		struct sb_text t = { .p = text, .cap = sizeof(text) };

		words(p, &t);
		again(p, text);
		return 0;
	}
	if (!(p->q.may & 1U << *answer)) {
		again(p, "that answer is not possible here");
		return 0;
	}
	if (*pattern && (sb_appr_pattern_check(*pattern, NULL) < 0 ||
			 !sb_appr_pattern_match(*pattern, p->q.subject))) {
		again(p, "the pattern must match what is asked for, and not everything");
		return 0;
	}
	return 1;
}

/* One typed byte. @ret: what it does to the line, which is shown. Return: 0; -EIO: the terminal is gone. */
static int typed(struct prompt *p, enum prompt_event *ret)
{
	uint8_t c;
	ssize_t n = read(p->fd, &c, 1);

	*ret = PROMPT_NOTHING;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EIO;
	if (!p->settled) { /* no answer; but a paste that begins here goes on */
		(void)prompt_line_byte(&p->line, c);
		prompt_line_clear(&p->line);
		p->quiet_ns = sb_now_ns();
		return 0;
	}
	*ret = prompt_line_byte(&p->line, c);
	if (*ret == PROMPT_ECHO)
		put(p, (char[2]){ (char)c });
	else if (*ret == PROMPT_ERASE)
		put(p, "\b \b");
	return 0;
}

/* Return: 1: answered; 0: not yet; -EIO: the terminal is gone. */
static int step(struct prompt *p, enum sb_appr_answer *answer, const char **pattern)
{
	enum prompt_event key;
	int r = typed(p, &key);

	if (r < 0)
		return r;
	if (key == PROMPT_LINE)
		return on_line(p, answer, pattern);
	if (key != PROMPT_CANCEL)
		return 0;
	*answer = SB_APPR_NO;
	*pattern = NULL;
	return 1;
}

static void on_settled(struct sb_timer *t)
{
	struct prompt *p = t->owner;

	(void)tcflush(p->fd, TCIFLUSH);
	prompt_line_clear(&p->line);
	p->settled = true;
}

static void on_in(struct sb_io *io, uint32_t events)
{
	struct prompt *p = io->owner;
	enum sb_appr_answer answer;
	const char *pattern;
	int r = step(p, &answer, &pattern);

	(void)events;
	if (r == 0) {
		if (!p->settled)
			sb_timer_set(p->c.loop, &p->settle, SETTLE_NS, on_settled, p);
		return;
	}
	sb_io_del(&p->io);
	if (r < 0)
		p->c.lost(p->c.arg, p->q.number);
	else
		p->c.answer(p->c.arg, p->q.number, answer, pattern);
}

static int begin(const struct sb_ipc_appr_question *q, struct prompt **ret)
{
	struct prompt *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->q = *q;
	r = take_terminal(p);
	if (r < 0) {
		sb_fd_close(&p->fd);
		free(p);
		return r;
	}
	draw(p);
	p->quiet_ns = sb_now_ns();
	*ret = p;
	return 0;
}

struct prompt *prompt_free(struct prompt *p, const char *why)
{
	if (!p)
		return NULL;
	sb_io_del(&p->io);
	sb_timer_del(&p->settle);
	put(p, PLAIN "\n");
	if (why) {
		put(p, why);
		put(p, "\n");
	}
	/* discards what was typed after the answer */
	(void)tcsetattr(p->fd, TCSAFLUSH, &p->saved);
	sb_fd_close(&p->fd);
	free(p);
	return NULL;
}

int prompt_show(const struct prompt_conf *c, const struct sb_ipc_appr_question *q, struct prompt **ret)
{
	struct prompt *p = NULL;
	int r = begin(q, &p);

	if (r < 0)
		return r;
	p->c = *c;
	r = sb_io_set(c->loop, &p->io, p->fd, EPOLLIN, on_in, p);
	if (r < 0) {
		(void)prompt_free(p, NULL);
		return r;
	}
	sb_timer_set(c->loop, &p->settle, SETTLE_NS, on_settled, p);
	*ret = p;
	return 0;
}

/* Without a loop: until something may have been typed. Return: 1: so; 0: look again; -ETIMEDOUT: it is @end. */
static int wait_typed(struct prompt *p, uint64_t end)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	uint64_t now = sb_now_ns();

	if (!p->settled && now - p->quiet_ns >= SETTLE_NS)
		on_settled(&(struct sb_timer){ .owner = p });
	if (now >= end)
		return -ETIMEDOUT;
	(void)poll(&pfd, 1, p->settled ? 1000 : 50);
	return pfd.revents != 0;
}

int prompt_wait(const struct sb_ipc_appr_question *q, enum sb_appr_answer *ret, char *pattern)
{
	uint64_t end = sb_now_ns() + q->left_ms * 1000000ULL;
	struct prompt *p = NULL;
	const char *text = NULL;
	int r = begin(q, &p);

	if (r < 0)
		return r;
	for (r = 0; r == 0;) {
		r = wait_typed(p, end);
		if (r == 1)
			r = step(p, ret, &text);
	}
	pattern[0] = '\0';
	if (r == 1 && text)
		(void)snprintf(pattern, SB_APPR_PATTERN_MAX + 1, "%s", text);
	(void)prompt_free(p, NULL);
	return r == 1 ? 0 : r == -EIO ? -ENOTTY : r;
}

void prompt_clean(void)
{
	struct prompt p = { .fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) };

	if (p.fd >= 0)
		put(&p, CLEAN PLAIN);
	sb_fd_close(&p.fd);
}

bool prompt_yes(const char *question, uint64_t for_ms)
{
	uint64_t end = sb_now_ns() + for_ms * 1000000ULL;
	struct prompt p = { .fd = -1 };
	enum prompt_event key = PROMPT_NOTHING;
	int r = take_terminal(&p);
	bool yes;

	if (r < 0) {
		sb_fd_close(&p.fd);
		return false;
	}
	put(&p, question);
	p.quiet_ns = sb_now_ns();
	while (r >= 0 && key != PROMPT_LINE && key != PROMPT_CANCEL) {
		r = wait_typed(&p, end);
		if (r == 1)
			r = typed(&p, &key);
	}
	yes = key == PROMPT_LINE && (p.line.text[0] == 'y' || p.line.text[0] == 'Y');
	put(&p, "\n");
	(void)tcsetattr(p.fd, TCSAFLUSH, &p.saved);
	sb_fd_close(&p.fd);
	return yes;
}
