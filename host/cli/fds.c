#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/spawn.h"

SB_NORETURN static void pump(int from, int to)
{
	static char buf[1 << 16];

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || sb_fd_write_all(to, buf, (size_t)n) < 0)
			_exit(0);
	}
}

static int start_pump(int fd, bool output, struct cli_fd *ret, struct sb_err *err)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTOU };
	pid_t parent = getpid();
	pid_t pid;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "cannot relay descriptor %d: %s", fd,
				  strerror(errno));
	pid = fork();
	if (pid < 0) {
		int r = sb_err_set(err, -errno, "cannot relay descriptor %d: fork: %s", fd,
				   strerror(errno));

		sb_fd_close(&sv[0]);
		sb_fd_close(&sv[1]);
		return r;
	}
	if (pid == 0) {
		int keep[2] = { sv[1], fd };

		/* It stays in the caller's process group, or a terminal would not let it read.
		 * The keys are for sendbox: what came before them must still drain. */
		for (size_t i = 0; i < SB_ARRAY_LEN(ignored); i++)
			(void)signal(ignored[i], SIG_IGN);
		(void)prctl(PR_SET_NAME, "sendbox-pump", 0, 0, 0);
		(void)signal(SIGPIPE, SIG_IGN);
		if (sb_spawn_die_with(parent) < 0 || sb_close_others(keep, 2) < 0)
			_exit(1);
		if (output)
			pump(sv[1], fd);
		pump(fd, sv[1]);
	}
	sb_fd_close(&sv[1]);
	if (sb_fd_set_nonblock(sv[0], true) < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		sb_fd_close(&sv[0]);
		return sb_err_set(err, -EIO, "cannot relay descriptor %d", fd);
	}
	*ret = (struct cli_fd){ .fd = sv[0], .pump = pid };
	return 0;
}

int cli_fd_open(int fd, bool output, struct cli_fd *ret, struct sb_err *err)
{
	struct stat st;
	char path[32];
	int copy;

	if (fstat(fd, &st) < 0) { /* closed by the caller: nothing to read, nowhere to write */
		copy = open("/dev/null", (output ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		if (copy < 0)
			return sb_err_set(err, -errno, "cannot open /dev/null: %s",
					  strerror(errno));
		*ret = (struct cli_fd){ .fd = copy };
		return 0;
	}
	if (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && !isatty(fd))) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return sb_err_set(err, -errno, "cannot duplicate descriptor %d: %s", fd,
					  strerror(errno));
		*ret = (struct cli_fd){ .fd = copy };
		return 0;
	}
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		copy = open(path, (output ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC |
					  O_NOCTTY);
		if (copy >= 0) {
			*ret = (struct cli_fd){ .fd = copy };
			return 0;
		}
	}
	return start_pump(fd, output, ret, err);
}

void cli_fd_done(struct cli_fd *s, bool output)
{
	sb_fd_close(&s->fd);
	if (s->pump <= 0)
		return;
	if (!output)
		(void)kill(s->pump, SIGKILL);
	while (waitpid(s->pump, NULL, 0) < 0 && errno == EINTR)
		continue;
	s->pump = 0;
}
