/*
 * Disks of a micro-VM: the files are opened here, by the monitor, and are what the plan says, or
 * nothing starts. QEMU is told that they are raw: it never looks for a format in bytes that a guest
 * wrote.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/microvm/vm.h"

#define SECTOR 512

static uint64_t ctime_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec;
}

static int open_file(const char *what, const char *path, int mode, int *ret, struct stat *st,
		     struct sb_err *err)
{
	sb_autofd int fd = open(path, mode | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, st) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, path,
				  errno == ELOOP ? "is a symbolic link" : strerror(errno));
	if (!S_ISREG(st->st_mode))
		return sb_err_set(err, -ESTALE, "%s \"%.300s\": not a regular file", what, path);
	*ret = sb_fd_take(&fd);
	return 0;
}

static int open_layer(const struct sb_plan_layer *l, int *ret, struct sb_err *err)
{
	sb_autofd int fd = -1;
	struct stat st;
	int r = open_file("layer", l->path, O_RDONLY, &fd, &st, err);

	if (r < 0)
		return r;
	if (st.st_dev != l->dev || st.st_ino != l->ino || (uint64_t)st.st_size != l->size ||
	    ctime_ns(&st) != l->ctime_ns)
		return sb_err_set(err, -ESTALE,
				  "layer \"%.300s\" was changed after its digest was taken; nothing "
				  "was started. Remove it, so that it is made again", l->path);
	*ret = sb_fd_take(&fd);
	return 0;
}

static int open_upper(const struct sb_plan_upper *u, int *ret, struct stat *st, struct sb_err *err)
{
	sb_autofd int fd = -1;
	int r = open_file("disk", u->path, O_RDWR, &fd, st, err);

	if (r < 0)
		return r;
	if (st->st_dev != u->dev || st->st_ino != u->ino)
		return sb_err_set(err, -ESTALE,
				  "disk \"%.300s\" is not the file of the plan; nothing was started",
				  u->path);
	if (st->st_nlink != 1 || st->st_size <= 0 || st->st_size % SECTOR != 0)
		return sb_err_set(err, -ESTALE,
				  "disk \"%.300s\" has several names or no whole sectors", u->path);
	*ret = sb_fd_take(&fd);
	return 0;
}

int sb_vm_disks_open(const struct sb_plan *p, int ret[SB_VM_DISKS_MAX], struct stat *ret_upper,
		     struct sb_err *err)
{
	int fds[SB_VM_DISKS_MAX];
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < SB_VM_DISKS_MAX; i++)
		fds[i] = -1;
	for (; r == 0 && n < p->n_layers; n++)
		r = open_layer(&p->layers[n], &fds[n], err);
	if (r == 0 && p->upper.kind == SB_UPPER_DISK)
		r = open_upper(&p->upper, &fds[n], ret_upper, err);
	for (size_t i = 0; r < 0 && i < SB_VM_DISKS_MAX; i++)
		sb_fd_close(&fds[i]);
	if (r == 0)
		memcpy(ret, fds, sizeof(fds));
	return r;
}
