#include "self.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/spawn.h"

#define LINE_MAX_BYTES (1U << 20)

static int start(const char *const *argv, int out, bool alone, pid_t *ret, struct sb_err *err)
{
	sb_autofree const char **all = NULL;
	sb_autofd int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct sb_spawn_fd fds[] = { { out, 1 } };
	struct sb_spawn s = { .path = "/proc/self/exe",
			      .exe = exe,
			      .env = (const char *const *)(uintptr_t)environ,
			      .fds = fds,
			      .n_fds = out >= 0 ? 1 : 0,
			      .new_session = alone,
			      .outlive_parent = alone };
	size_t n = 0;

	if (exe < 0)
		return sb_err_set(err, -errno, "cannot start sendbox %s: /proc/self/exe: %s", argv[0],
				  strerror(errno));
	while (argv[n])
		n++;
	all = calloc(n + 2, sizeof(*all));
	if (!all)
		return sb_err_set(err, -ENOMEM, "cannot start sendbox %s: out of memory", argv[0]);
	all[0] = "sendbox";
	memcpy(all + 1, argv, n * sizeof(*all));
	s.argv = all;
	return sb_spawn_start(&s, ret, NULL, err);
}

/* Whole lines of @buf. Return: 0; what @fn said. */
static int hand_out(char *buf, size_t *have, int (*fn)(void *arg, char *line), void *arg)
{
	size_t at = 0;
	int r = 0;

	while (r == 0) {
		char *end = memchr(buf + at, '\n', *have - at);

		if (!end)
			break;
		*end = '\0';
		r = fn(arg, buf + at);
		at = (size_t)(end - buf) + 1;
	}
	memmove(buf, buf + at, *have - at);
	*have -= at;
	return r;
}

static int read_lines(int fd, int (*fn)(void *arg, char *line), void *arg)
{
	sb_autofree char *buf = malloc(LINE_MAX_BYTES);
	size_t have = 0;

	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, buf + have, LINE_MAX_BYTES - have);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += (size_t)n;
		r = hand_out(buf, &have, fn, arg);
		if (r < 0)
			return r;
		if (have == LINE_MAX_BYTES)
			return -EMSGSIZE;
	}
}

int self_lines(const char *const *argv, int (*fn)(void *arg, char *line), void *arg,
	       struct sb_err *err)
{
	sb_autofd int out = -1;
	int p[2];
	pid_t pid = 0;
	int status = 0;
	int r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	out = p[0];
	r = start(argv, p[1], false, &pid, err);
	(void)close(p[1]);
	if (r < 0)
		return r;
	r = read_lines(out, fn, arg);
	sb_fd_close(&out); /* it ends when it writes more */
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (r < 0)
		return sb_err_set(err, r, "sendbox %s: %s", argv[0], strerror(-r));
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : sb_err_set(err, -EIO, "sendbox %s was killed", argv[0]);
}

int self_background(const char *const *argv, struct sb_err *err)
{
	pid_t pid = 0;

	return start(argv, -1, true, &pid, err);
}
