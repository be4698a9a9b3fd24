/* What killed builds left: folders of <cache>/builds whose lock nobody holds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "environment/environment.h"
#include "os/rmtree.h"

#define KEY_HEX 64

/* The lock of a build, which its builder holds as long as it lives. */
static int lock_of(int dir, const char *key)
{
	char name[KEY_HEX + 8];
	int fd;

	(void)snprintf(name, sizeof(name), "%.64s.lock", key);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		sb_fd_close(&fd);
	return fd;
}

int environment_gc(const struct sb_dirs *d, size_t *n, struct sb_err *err)
{
	char path[4096];
	const struct dirent *e;
	DIR *list;
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/builds", d->cache) >= (int)sizeof(path))
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", d->cache);
	list = opendir(path);
	if (!list)
		return errno == ENOENT ? 0 : sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno));
	while (r == 0 && (e = readdir(list)) != NULL) {
		sb_autofd int lock = -1;

		if (strlen(e->d_name) != KEY_HEX || strspn(e->d_name, "0123456789abcdef") != KEY_HEX)
			continue;
		lock = lock_of(dirfd(list), e->d_name);
		if (lock < 0)
			continue;
		r = sb_rmtree(dirfd(list), e->d_name);
		if (r < 0)
			r = sb_err_set(err, r, "%.300s/%.64s cannot be removed: %s", path, e->d_name,
				       strerror(-r));
		else
			(*n)++;
	}
	(void)closedir(list);
	return r;
}
