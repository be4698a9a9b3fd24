/*
 * A process of its own draws and copies, so that the session may take the whole of this one. It ends
 * when its pipe is closed, which it is when this process ends in whatever way.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/term.h"
#include "environment/build.h"
#include "wire/termfilter.h"

#define EVERY_MS 100
#define CHUNK 8192
#define TAIL_BYTES 16384
#define TAIL_LINES 20

struct view {
	const char *title;
	int log;
	off_t at; /* of the log's bytes that were shown */
	bool verbose;
	bool tty;
	uint16_t cols;
	struct sb_termfilter filter;
};

static void put(const void *p, size_t len)
{
	if (sb_fd_write_all(STDERR_FILENO, p, len) < 0)
		_exit(0); /* nobody looks */
}

static void copy_new(struct view *v)
{
	uint8_t in[CHUNK];
	uint8_t out[SB_TERMFILTER_ROOM(CHUNK)];

	for (;;) {
		ssize_t n = pread(v->log, in, sizeof(in), v->at);

		if (n <= 0)
			return;
		v->at += n;
		if (v->tty)
			put(out, sb_termfilter_run(&v->filter, in, (size_t)n, out));
		else
			put(in, (size_t)n);
	}
}

static void draw(const struct view *v, unsigned int turn, long seconds)
{
	static const char *const frames[] = { "\u280b", "\u2819", "\u2839", "\u2838", "\u283c",
					      "\u2834", "\u2826", "\u2827", "\u2807", "\u280f" };
	char time[32];
	char line[256];
	char title[200];
	int n;

	(void)snprintf(time, sizeof(time), "%ld:%02ld", seconds / 60, seconds % 60);
	/* frame, blank, title, blank, time, and never the last column */
	env_one_line(v->title, title,
		     v->cols > strlen(time) + 8
			     ? SB_MIN(sizeof(title), v->cols - strlen(time) - 4) : 1);
	n = snprintf(line, sizeof(line), "\r\x1b[K%s %s %s", frames[turn % SB_ARRAY_LEN(frames)],
		     title, time);
	put(line, (size_t)n);
}

SB_NORETURN static void look(struct view *v, int stop)
{
	struct timespec start;
	struct timespec now;
	bool spin = v->tty && !v->verbose;

	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned int turn = 0;; turn++) {
		struct pollfd p = { .fd = stop, .events = POLLIN };
		int r = poll(&p, 1, EVERY_MS);

		if (v->verbose)
			copy_new(v);
		if (r != 0)
			break;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (spin)
			draw(v, turn, now.tv_sec - start.tv_sec);
	}
	if (spin)
		put("\r\x1b[K", 4);
	if (v->verbose && v->tty) {
		uint8_t out[SB_TERMFILTER_SLACK];

		put(out, sb_termfilter_end(&v->filter, out));
	}
	_exit(0);
}

void env_watch_start(struct env_watch *w, const char *title, int log, bool verbose, bool quiet)
{
	struct view v = { .title = title, .log = log, .verbose = verbose };
	sb_autofd int rd = -1;
	struct stat st;
	uint16_t rows;
	char line[81];
	int fds[2];

	*w = (struct env_watch){ .stop = -1 };
	if (quiet)
		return;
	v.tty = isatty(STDERR_FILENO) == 1;
	env_one_line(title, line, sizeof(line));
	if (!v.tty || verbose)
		(void)fprintf(stderr, "%s\n", line);
	if (!v.tty && !verbose)
		return;
	if (fstat(log, &st) < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return;
	cli_term_size(STDERR_FILENO, &rows, &v.cols);
	v.at = st.st_size;
	rd = fds[0];
	w->stop = fds[1];
	(void)fflush(stderr);
	w->pid = fork();
	if (w->pid == 0) {
		sb_fd_close(&w->stop);
		(void)signal(SIGINT, SIG_IGN);
		(void)signal(SIGTERM, SIG_IGN);
		(void)signal(SIGHUP, SIG_IGN);
		look(&v, rd);
	}
	if (w->pid < 0) {
		w->pid = 0;
		sb_fd_close(&w->stop);
	}
}

void env_watch_end(struct env_watch *w)
{
	sb_fd_close(&w->stop);
	if (w->pid > 0)
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	w->pid = 0;
}

/* Start of the last lines of @p. */
static size_t last_lines(const char *p, size_t len)
{
	size_t at = len > 0 && p[len - 1] == '\n' ? len - 1 : len;
	int lines = 0;

	while (at > 0) {
		if (p[at - 1] == '\n' && ++lines == TAIL_LINES)
			break;
		at--;
	}
	return at;
}

void env_show_tail(int log, off_t from)
{
	char buf[TAIL_BYTES];
	struct stat st;
	ssize_t n;

	if (fstat(log, &st) < 0 || st.st_size <= from)
		return;
	n = sb_fd_read_at(log, buf, sizeof(buf), SB_MAX(from, st.st_size - (off_t)sizeof(buf)));
	if (n <= 0)
		return;
	for (size_t at = last_lines(buf, (size_t)n); at < (size_t)n;) {
		const char *nl = memchr(buf + at, '\n', (size_t)n - at);
		size_t len = nl ? (size_t)(nl - buf) - at : (size_t)n - at;
		char text[400];
		char line[400];

		(void)snprintf(text, sizeof(text), "%.*s", (int)SB_MIN(len, sizeof(text) - 1),
			       buf + at);
		env_one_line(text, line, sizeof(line));
		(void)fprintf(stderr, "    %s\n", line);
		at += len + 1;
	}
}
