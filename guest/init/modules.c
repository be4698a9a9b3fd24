#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "init/init.h"

#define MAX_ORDER (64U << 10)

static int load(int dir, const char *name)
{
	sb_autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	if (syscall(SYS_finit_module, fd, "", 0) < 0)
		return -errno;
	return 0;
}

int sb_init_module(const char *dir, const char *name, struct sb_err *err)
{
	sb_autofd int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int e = at < 0 ? -errno : load(at, name);

	if (e == -ENOENT || e == -EEXIST) /* built in, or the mount will tell */
		return 0;
	return e < 0 ? sb_err_set(err, e, "cannot load the module %s: %s", name, strerror(-e)) : 0;
}

int sb_init_modules(const char *dir, const char *order, const char *skip, struct sb_err *err)
{
	sb_autofd int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofree char *list = NULL;
	char *save = NULL;
	size_t len = 0;
	int e;

	e = sb_fd_read_file(AT_FDCWD, order, MAX_ORDER, &list, &len);
	if (e == -ENOENT) /* everything is built in */
		return 0;
	if (e < 0 || at < 0)
		return sb_err_set(err, e < 0 ? e : -ENOENT, "cannot read the module list: %s",
				  strerror(e < 0 ? -e : ENOENT));
	for (char *name = strtok_r(list, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
		if (strchr(name, '/'))
			return sb_err_set(err, -EINVAL, "the module list names %s", name);
		if (skip && strcmp(name, skip) == 0)
			continue;
		e = load(at, name);
		if (e == -ENODEV)
			sb_log("module %s: no such hardware", name);
		else if (e < 0 && e != -EEXIST)
			return sb_err_set(err, e, "cannot load the module %s: %s", name,
					  strerror(-e));
	}
	return 0;
}
