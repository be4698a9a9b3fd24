#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

static struct termios saved;
static int saved_fd = -1;

static void at_exit(void)
{
	cli_term_restore(true);
}

int cli_term_raw(int fd)
{
	static bool registered;
	struct termios t;

	if (tcgetattr(fd, &saved) < 0)
		return -errno;
	t = saved;
	cfmakeraw(&t);
	if (!registered) {
		if (atexit(at_exit) != 0)
			return -ENOMEM;
		registered = true;
	}
	if (tcsetattr(fd, TCSANOW, &t) < 0)
		return -errno;
	saved_fd = fd;
	return 0;
}

void cli_term_restore(bool abnormal)
{
	/* cursor on, bracketed paste, mouse and application modes off, main screen, plain text */
	static const char reset[] = "\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?2004l"
				    "\033[?1l\033>\033[?1049l\033[?25h\033[0m\r\n";

	if (saved_fd < 0)
		return;
	(void)tcsetattr(saved_fd, TCSANOW, &saved);
	if (abnormal && sb_fd_write_all(saved_fd, reset, sizeof(reset) - 1) < 0)
		errno = 0; /* the terminal is gone: nothing to restore */
	saved_fd = -1;
}

void cli_term_size(int fd, uint16_t *rows, uint16_t *cols)
{
	struct winsize ws;

	*rows = 24;
	*cols = 80;
	if (ioctl(fd, TIOCGWINSZ, &ws) < 0)
		return;
	if (ws.ws_row > 0)
		*rows = ws.ws_row;
	if (ws.ws_col > 0)
		*cols = ws.ws_col;
}

static int open_terminal(void)
{
	sb_autofd int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 || !isatty(fd) || tcgetpgrp(fd) != getpgrp())
		return -ENOTTY;
	return sb_fd_take(&fd);
}

bool cli_term_can_ask(void)
{
	sb_autofd int fd = isatty(STDERR_FILENO) ? open_terminal() : -ENOTTY;

	return fd >= 0;
}

int cli_term_ask(const char *question)
{
	sb_autofd int fd = open_terminal();
	char line[16];
	size_t n = 0;

	if (fd < 0)
		return -ENOTTY;
	(void)tcflush(fd, TCIFLUSH);
	if (sb_fd_write_all(fd, question, strlen(question)) < 0)
		return -ENOTTY;
	for (;;) {
		char c;
		ssize_t r = read(fd, &c, 1);

		if (r < 0 && errno == EINTR)
			continue;
		if (r != 1)
			return 0;
		if (c == '\n' || c == '\r')
			break;
		if (n < sizeof(line) - 1)
			line[n++] = c;
	}
	line[n] = '\0';
	return strcmp(line, "y") == 0 || strcmp(line, "Y") == 0 || strcmp(line, "yes") == 0;
}
