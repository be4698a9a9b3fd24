/*
 * Between what a builder says and a file of the host: a process of its own, as the session takes the
 * whole of this one. A builder may say more than the host's disk holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "environment/build.h"

#define CHUNK 65536

/* Exit status: 0; 1: there was more; 2: the file could not be written. */
SB_NORETURN static void copy(int from, int to, uint64_t max, bool drain)
{
	static uint8_t buf[CHUNK];
	uint64_t left = max;
	int status = 0;

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(status);
		if (status == 0 && (uint64_t)n > left)
			status = 1;
		if (status == 0 && sb_fd_write_all(to, buf, (size_t)n) < 0)
			status = 2;
		if (status != 0 && !drain)
			_exit(status);
		left -= status == 0 ? (uint64_t)n : 0;
	}
}

int env_pour_start(struct env_pour *p, int to, uint64_t max, bool drain, struct sb_err *err)
{
	int fds[2];

	*p = (struct env_pour){ .in = -1 };
	if (pipe2(fds, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	/* a writer that waits for room itself is slow, see host/channel/relay.c */
	p->pid = sb_fd_set_nonblock(fds[1], true) < 0 ? -1 : fork();
	if (p->pid == 0) {
		(void)close(fds[1]);
		(void)signal(SIGINT, SIG_IGN);
		(void)signal(SIGTERM, SIG_IGN);
		(void)signal(SIGHUP, SIG_IGN);
		copy(fds[0], to, max, drain);
	}
	(void)close(fds[0]);
	p->in = fds[1];
	if (p->pid > 0)
		return 0;
	p->pid = 0;
	sb_fd_close(&p->in);
	return sb_err_set(err, -EAGAIN, "cannot start a process");
}

bool env_pour_end(struct env_pour *p)
{
	int status = 0;

	sb_fd_close(&p->in);
	if (p->pid > 0)
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
			continue;
	p->pid = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
