#include "exec/kin.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WALKS 100

static bool identity(int proc, pid_t pid, struct sb_kin *ret)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%d/ns/uts", pid);
	if (fstatat(proc, path, &st, 0) < 0) /* gone, or a zombie */
		return false;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	return true;
}

void sb_kin_init(struct sb_kin *k, pid_t pid)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sb_kin own;

	*k = (struct sb_kin){ 0 };
	if (proc < 0)
		return;
	/* never the supervisor's own namespace, whatever went wrong */
	if (!identity(proc, pid, k) || !identity(proc, getpid(), &own) ||
	    (k->dev == own.dev && k->ino == own.ino))
		*k = (struct sb_kin){ 0 };
	(void)close(proc);
}

bool sb_kin_orphans(const pid_t *known, size_t n)
{
	char path[64];
	char buf[1024];
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	len = read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	if (len < 0 || len == (ssize_t)sizeof(buf) - 1)
		return true;
	buf[len] = '\0';
	for (char *p = buf;;) {
		char *end;
		pid_t pid = (pid_t)strtol(p, &end, 10);
		size_t i = 0;

		if (end == p)
			return false;
		while (i < n && known[i] != pid)
			i++;
		if (i == n)
			return true;
		p = end;
	}
}

/* Return: how many were alive. */
static size_t walk(DIR *d, const struct sb_kin *k)
{
	const struct dirent *e;
	size_t n = 0;

	rewinddir(d);
	while ((e = readdir(d)) != NULL) {
		struct sb_kin other;
		long pid;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		pid = strtol(e->d_name, NULL, 10);
		if (!identity(dirfd(d), (pid_t)pid, &other) || other.dev != k->dev ||
		    other.ino != k->ino)
			continue;
		if (kill((pid_t)pid, SIGKILL) == 0)
			n++;
	}
	return n;
}

void sb_kin_kill(const struct sb_kin *k)
{
	DIR *d;

	if (k->ino == 0)
		return;
	d = opendir("/proc");
	if (!d)
		return;
	for (int i = 0; i < MAX_WALKS && walk(d, k) > 0; i++)
		(void)usleep(500); /* the dying still show for a moment */
	(void)closedir(d);
}
