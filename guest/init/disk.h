#ifndef SB_GUEST_INIT_DISK_H
#define SB_GUEST_INIT_DISK_H
/* The disks of a micro-VM: layers and the upper one, found by the serial that the host gave them. */
#include "rootfs/rootfs.h"

/*
 * sb_disks_mount - mount them and fill r->layers and r->disk
 *
 * Layers are read-only, and neither they nor the upper layer bring device nodes or identities. With
 * task EXPORT the upper layer is read-only, too, and goes to *@ret_export instead.
 * Return: 0; -errno with the text in @err.
 */
SB_MUST_CHECK int sb_disks_mount(const struct sb_plan *p, struct sb_rootfs *r, int *ret_export,
				 struct sb_err *err);

#endif
