#ifndef SB_GUEST_RELAY_FUSE_PUMP_H
#define SB_GUEST_RELAY_FUSE_PUMP_H
/*
 * Guest end of a file mount: the FUSE mount itself, and the process that carries its messages
 * between /dev/fuse and a port whose other end is sendbox-fs. There is no libfuse in the guest.
 *
 * Order: sb_fuse_tree (or sb_fuse_mount), sb_fuse_pump_start, and then, when the mount is in its
 * place, sb_fuse_readahead. The mount may be moved, bound and used by path before the pump runs;
 * what needs an answer of the server waits for it. When the pump or the server ends, every use of
 * the mount fails with ENOTCONN or ECONNABORTED.
 */
#include <sys/types.h>

#include "base/err.h"

#define SB_FUSE_RO 1U     /* read-only here too; the server enforces it in any case */
#define SB_FUSE_FILE 2U   /* the root is a regular file: to be mounted on a file */
#define SB_FUSE_NOEXEC 4U

/*
 * sb_fuse_tree - a FUSE mount that is attached nowhere yet
 * @flags:       SB_FUSE_* bits
 * @ret_fuse_fd: /dev/fuse of the mount; caller closes or gives it to the pump
 * @ret_tree:    the detached mount for move_mount(2); nosuid, nodev; caller closes
 *
 * Blocks: no. Return: 0; -ENODEV (no fuse in this kernel); -errno with the text in @err.
 */
SB_MUST_CHECK int sb_fuse_tree(uint32_t flags, int *ret_fuse_fd, int *ret_tree,
			       struct sb_err *err);

/* The same, put onto @target; a last symbolic link there is not followed. */
SB_MUST_CHECK int sb_fuse_mount(const char *target, uint32_t flags, int *ret_fuse_fd,
				struct sb_err *err);

/*
 * sb_fuse_pump_start - start the process that carries the messages
 * @fuse_fd, @port_fd: taken on success (closed here; the child has them). The port is a
 *                     virtio-serial port or a stream socket; it is put into blocking mode.
 * @ret:               the process. It dies with its parent, holds no other descriptor than 0, 1, 2
 *                     and these, and ends when either side is gone: 0 unmounted, 1 anything else.
 *
 * Return: 0; -errno.
 */
SB_MUST_CHECK int sb_fuse_pump_start(int *fuse_fd, int *port_fd, pid_t *ret);

/*
 * sb_fuse_readahead - raise the read-ahead of the mount at @target
 * @sysfs: where sysfs is mounted ("/sys"); the server must answer by now (blocks until it does)
 * Return: 0; -errno (harmless: slower big reads).
 */
SB_MUST_CHECK int sb_fuse_readahead(const char *sysfs, const char *target, unsigned int kib);

#endif
