/*
 * Disks of a micro-VM: the files are opened here, by the monitor, and are what the plan says, or
 * nothing starts. QEMU is told that they are raw: it never looks for a format in bytes that a guest
 * wrote.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/layer.h"
#include "provider/microvm/vm.h"

#define SECTOR 512

static int open_upper(const struct sb_plan_upper *u, int *ret, struct stat *st, struct sb_err *err)
{
	sb_autofd int fd = -1;
	int r = sb_upper_open(u, &fd, err);

	if (r < 0)
		return r;
	if (fstat(fd, st) < 0 || st->st_nlink != 1 || st->st_size <= 0 ||
	    st->st_size % SECTOR != 0)
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
		r = sb_layer_open(&p->layers[n], &fds[n], err);
	if (r == 0 && p->upper.kind == SB_UPPER_DISK)
		r = open_upper(&p->upper, &fds[n], ret_upper, err);
	for (size_t i = 0; r < 0 && i < SB_VM_DISKS_MAX; i++)
		sb_fd_close(&fds[i]);
	if (r == 0)
		memcpy(ret, fds, sizeof(fds));
	return r;
}
