#include "init/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define PORTS "/sys/class/virtio-ports"
#define POLL_MS 2

static bool is_named(int ports, const char *dev, const char *name)
{
	char path[300];
	char text[128];
	sb_autofd int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/name", dev);
	fd = openat(ports, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, name) == 0;
}

/* Return: 0; -ENOENT; -errno. */
static int look(const char *name, int *ret)
{
	DIR *d = opendir(PORTS);
	struct dirent *de;
	int e = -ENOENT;

	if (!d)
		return -errno;
	while (e == -ENOENT && (de = readdir(d))) {
		char path[300];
		int fd;

		if (de->d_name[0] == '.' || !is_named(dirfd(d), de->d_name, name))
			continue;
		(void)snprintf(path, sizeof(path), "/dev/%s", de->d_name);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		e = fd < 0 ? -errno : 0;
		if (fd >= 0)
			*ret = fd;
	}
	(void)closedir(d);
	return e;
}

int sb_port_open(const char *name, int timeout_ms, int *ret, struct sb_err *err)
{
	const struct timespec nap = { .tv_nsec = POLL_MS * 1000000L };
	int e;

	for (int waited = 0;; waited += POLL_MS) {
		e = look(name, ret);
		if (e != -ENOENT || waited >= timeout_ms)
			break;
		(void)nanosleep(&nap, NULL);
	}
	return e < 0 ? sb_err_set(err, e, "cannot open the port %s: %s", name, strerror(-e)) : 0;
}
