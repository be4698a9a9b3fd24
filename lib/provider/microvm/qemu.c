#include "provider/microvm/qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/spawn.h"

#define VERSION_LIMIT_MS 5000

/*
 * Debian's smaller qemu-system-x86_64-microvm is not among them: it is built without -sandbox.
 */
const char *sb_qemu_find(void)
{
#if defined(__aarch64__)
	static const char *const all[] = { "/usr/bin/qemu-system-aarch64",
					   "/usr/local/bin/qemu-system-aarch64" };
#else
	static const char *const all[] = { "/usr/bin/qemu-system-x86_64",
					   "/usr/local/bin/qemu-system-x86_64" };
#endif

	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
		if (access(all[i], X_OK) == 0)
			return all[i];
	return NULL;
}

int sb_qemu_version(const char *qemu, char *out, size_t room)
{
	const char *argv[] = { qemu, "--version", NULL };
	struct sb_spawn s = { .path = qemu, .argv = argv };
	struct sb_spawn_fd table = { .to = 1 };
	struct pollfd pfd = { .events = POLLIN };
	char text[256] = "";
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	const char *at;
	size_t n;
	int p[2];
	pid_t pid;
	int r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	rd = p[0];
	wr = p[1];
	table.from = wr;
	s.fds = &table;
	s.n_fds = 1;
	r = sb_spawn_start(&s, &pid, NULL, NULL);
	if (r < 0)
		return r;
	sb_fd_close(&wr);
	pfd.fd = rd;
	if (poll(&pfd, 1, VERSION_LIMIT_MS) > 0 && read(rd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	at = strstr(text, "version ");
	if (!at)
		return -ENODATA;
	at += 8;
	n = strspn(at, "0123456789.");
	if (n == 0 || n >= room)
		return -ENODATA;
	memcpy(out, at, n);
	out[n] = '\0';
	return 0;
}
