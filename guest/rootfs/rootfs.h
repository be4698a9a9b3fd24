#ifndef SB_GUEST_ROOTFS_ROOTFS_H
#define SB_GUEST_ROOTFS_ROOTFS_H
/*
 * The root file system of the workload, assembled from mount trees that the caller found: file
 * servers in a micro-VM, copies of host mounts in a namespace.
 *
 * Used once by PID 1 before anything else runs. After sb_rootfs_enter() the process lives in the
 * new root and nothing of the old one can be reached.
 */
#include "core/plan.h"
#include "rootfs/mnt.h"

struct sb_rootfs {
	const struct sb_plan *plan; /* borrowed */
	bool vm;                    /* own kernel: device nodes are made, /proc is not masked */
	bool root_mapped;           /* user id 0 exists in this user namespace */

	/* Trees, owned, -1 = none. All are attached nowhere. */
	int image;                         /* HOST: what becomes /usr; DIR: the lower layer */
	int layers[SB_PLAN_MAX_LAYERS];    /* one for each of plan->layers, lowest first */
	/* Root of the file system (DISK) or folder (DIR) that takes the changes and outlives the
	 * session; writable; -1 = memory. It gets the folders over, work, usr and usrwork. */
	int disk;
	int mounts[SB_PLAN_MAX_MOUNTS];    /* one for each of plan->mounts */
	/* HOST: directory whose entries go to /etc; a readable, attached directory; -1 = none */
	int etc;

	/* Internal from here. */
	int upper; /* tmpfs that holds all that the workload may write and does not outlive it */
	int root;
};

void sb_rootfs_init(struct sb_rootfs *r, const struct sb_plan *plan);
void sb_rootfs_done(struct sb_rootfs *r); /* closes what is left */
#define sb_autorootfs SB_CLEANUP(sb_rootfs_done)

/*
 * sb_rootfs_build - assemble the tree on top of the directory @base of the old root
 * @base: an existing directory that may be covered
 *
 * Takes all trees. Return: 0; -errno with one line for people in @err.
 */
SB_MUST_CHECK int sb_rootfs_build(struct sb_rootfs *r, const char *base, struct sb_err *err);

/* sb_rootfs_enter - make the tree the root of this process and drop the old one */
SB_MUST_CHECK int sb_rootfs_enter(struct sb_rootfs *r, struct sb_err *err);

/*
 * Parts, for rootfs.c and tests.
 */

/* sb_root_dir - open the directory @path (relative, normalised) below @root, making what is
 * missing as long as the parent is on one of our own file systems.
 * Return: 0; -EROFS when a component is missing on a foreign file system; -ELOOP on a symbolic
 * link; -ENOTDIR; -errno. */
SB_MUST_CHECK int sb_root_dir(const struct sb_rootfs *r, const char *path, int *ret);
/* sb_root_file - the same for a file (made empty) */
SB_MUST_CHECK int sb_root_file(const struct sb_rootfs *r, const char *path, int *ret);
/* sb_root_put - write a whole new file below @dir; an existing one is replaced */
SB_MUST_CHECK int sb_root_put(int dir, const char *name, const char *text, size_t len, mode_t mode);

/* Folders and links of a root for the host's /usr, at @prefix ("" or "NAME/") of @at.
 * @usr: what becomes /usr. Return: 0; -errno. */
SB_MUST_CHECK int sb_rootfs_skeleton(int usr, int at, const char *prefix);

/*
 * overlay.c: roots over layers, or with changes that outlive the session.
 * sb_rootfs_overlay - makes and attaches r->root. sb_rootfs_places - /tmp, /var/tmp and HOME in
 * it; @ret_at: the one that failed.
 */
bool sb_rootfs_is_laid(const struct sb_plan *p);
SB_MUST_CHECK int sb_rootfs_overlay(struct sb_rootfs *r);
SB_MUST_CHECK int sb_rootfs_places(const struct sb_rootfs *r, const char **ret_at);

SB_MUST_CHECK int sb_rootfs_etc(const struct sb_rootfs *r, struct sb_err *err);
SB_MUST_CHECK int sb_rootfs_dev(const struct sb_rootfs *r, struct sb_err *err);
SB_MUST_CHECK int sb_rootfs_proc(const struct sb_rootfs *r, struct sb_err *err);
SB_MUST_CHECK int sb_rootfs_sys(const struct sb_rootfs *r, struct sb_err *err);
/* Where the supervisor finds its cgroup hierarchy in a micro-VM. */
#define SB_CGROUP_DIR "/run/sendbox/cgroup"
SB_MUST_CHECK int sb_rootfs_cgroup(const struct sb_rootfs *r, struct sb_err *err);

#endif
