#include "exec/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

int sb_pty_open(const struct sb_pty_config *cfg, int *ret_master, int *ret_slave)
{
	sb_autofd int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	sb_autofd int slave = -1;
	struct termios t;
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	/* by the descriptor, not by name: what is mounted at /dev/pts does not matter */
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || tcgetattr(slave, &t) < 0)
		return -errno;
	t.c_iflag |= IUTF8;
	if (tcsetattr(slave, TCSANOW, &t) < 0)
		return -errno;
	if (fchown(slave, cfg->uid, cfg->gid) < 0 || fchmod(slave, 0620) < 0)
		return -errno;
	if (cfg->rows && cfg->cols)
		sb_pty_resize(master, cfg->rows, cfg->cols);
	*ret_master = sb_fd_take(&master);
	*ret_slave = sb_fd_take(&slave);
	return 0;
}

void sb_pty_resize(int master, uint16_t rows, uint16_t cols)
{
	struct winsize ws = { .ws_row = rows, .ws_col = cols };

	/* only a terminal that is gone refuses, and then nobody needs to know its size */
	(void)ioctl(master, TIOCSWINSZ, &ws);
}

pid_t sb_pty_foreground(int master)
{
	pid_t group = 0;

	return ioctl(master, TIOCGPGRP, &group) < 0 || group < 0 ? 0 : group;
}

int sb_pty_send_eof(int master, uint8_t *last)
{
	struct termios t;
	bool twice;
	ssize_t n;

	if (tcgetattr(master, &t) < 0)
		return -errno;
	twice = (t.c_lflag & ICANON) && *last != 0 && *last != '\n' && *last != t.c_cc[VEOF];
	for (int i = twice ? 2 : 1; i > 0; i--) {
		do {
			n = write(master, &t.c_cc[VEOF], 1);
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			return n < 0 ? -errno : -EAGAIN;
		*last = '\n'; /* the line is ended */
	}
	return 0;
}
