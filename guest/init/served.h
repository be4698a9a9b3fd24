#ifndef SB_GUEST_INIT_SERVED_H
#define SB_GUEST_INIT_SERVED_H
/* Mounts that the host's file servers bring into a guest: over one port each into a micro-VM, over
 * a socket into a namespace. */
#include <sys/types.h>

#include "rootfs/rootfs.h"

#define SB_SERVED_MAX (SB_PLAN_MAX_MOUNTS + 1)

struct sb_served {
	pid_t pumps[SB_SERVED_MAX]; /* one process each between the port and /dev/fuse */
	size_t n_pumps;
};

/*
 * sb_served_mount - open ports sb.fs0 (image; not of layers alone) and sb.fs1.. (plan->mounts[0]..), start their pumps
 * and fill the trees of @r
 * Return: 0; -errno with the text in @err.
 */
SB_MUST_CHECK int sb_served_mount(const struct sb_plan *p, struct sb_served *ret,
				  struct sb_rootfs *r, struct sb_err *err);

/* sb_served_take - the tree of one mount whose server is at the other end of @sock (taken)
 * Return: 0; -errno with the text in @err. */
SB_MUST_CHECK int sb_served_take(const struct sb_plan_mount *m, int *sock, struct sb_served *ret,
				 int *ret_tree, struct sb_err *err);

/*
 * sb_served_layers - the trees of the plan's layers whose server (sendbox-imgfs) is at the other end
 * of @sock (taken); it gets /dev/fuse of the mount and answers the kernel itself, without a pump
 * @trees: @n slots, lowest layer first. Return: 0; -errno with the text in @err.
 */
SB_MUST_CHECK int sb_served_layers(int *sock, size_t n, int *trees, struct sb_err *err);

/* sb_served_tune - bigger reads for the mounts, found below @root; needs a writable /sys */
void sb_served_tune(const struct sb_plan *p, const char *root);

#endif
