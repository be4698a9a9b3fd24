#include "init/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define SERIAL_MAX 32

/* Whether /sys/block/@name has the serial @want. */
static bool has_serial(int blocks, const char *name, const char *want)
{
	sb_autofree char *text = NULL;
	char path[300];
	size_t len = 0;

	if (strncmp(name, "vd", 2) != 0 || strlen(name) > 16)
		return false;
	(void)snprintf(path, sizeof(path), "%s/serial", name);
	if (sb_fd_read_file(blocks, path, SERIAL_MAX, &text, &len) < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, want) == 0;
}

static int find(const char *serial, char *out, size_t cap, struct sb_err *err)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *d;
	bool found = false;

	if (!dir)
		return sb_err_set(err, -errno, "no disks: %s", strerror(errno));
	while (!found && (d = readdir(dir))) {
		found = has_serial(dirfd(dir), d->d_name, serial);
		if (found)
			(void)snprintf(out, cap, "/dev/%.16s", d->d_name);
	}
	(void)closedir(dir);
	return found ? 0 : sb_err_set(err, -ENODEV, "the machine has no disk \"%s\"", serial);
}

static int mount_layer(size_t i, int *ret, struct sb_err *err)
{
	char dev[32] = "";
	const struct sb_mnt_opt opts[] = { { "source", dev }, { "ro", NULL } };
	char serial[32];
	int e;

	(void)snprintf(serial, sizeof(serial), "layer%zu", i);
	e = find(serial, dev, sizeof(dev), err);
	if (e < 0)
		return e;
	e = sb_mnt_new("erofs", opts, SB_ARRAY_LEN(opts), SB_MNT_SAFE | MOUNT_ATTR_RDONLY, ret);
	return e < 0 ? sb_err_set(err, e, "cannot mount image layer %zu: %s", i, strerror(-e)) : 0;
}

/* A journal that was cut off is played back by the mount; an error later makes it read-only. */
static int mount_upper(bool read_only, int *ret, struct sb_err *err)
{
	char dev[32] = "";
	/* a new disk is zeroes: no thread need write them into its tables */
	const struct sb_mnt_opt opts[] = { { "source", dev }, { "errors", "remount-ro" },
					   { "discard", NULL }, { "noinit_itable", NULL } };
	uint64_t attrs = SB_MNT_SAFE | MOUNT_ATTR_NOATIME | (read_only ? MOUNT_ATTR_RDONLY : 0);
	int e = find("upper", dev, sizeof(dev), err);

	if (e < 0)
		return e;
	e = sb_mnt_new("ext4", opts, SB_ARRAY_LEN(opts), attrs, ret);
	return e < 0 ? sb_err_set(err, e, "cannot mount the disk for changes: %s", strerror(-e)) : 0;
}

int sb_disks_mount(const struct sb_plan *p, struct sb_rootfs *r, int *ret_export,
		   struct sb_err *err)
{
	bool export = p->task == SB_TASK_EXPORT;
	int e = 0;

	for (size_t i = 0; e == 0 && i < p->n_layers; i++)
		e = mount_layer(i, &r->layers[i], err);
	if (e == 0 && p->upper.kind == SB_UPPER_DISK)
		e = mount_upper(export, export ? ret_export : &r->disk, err);
	return e;
}
