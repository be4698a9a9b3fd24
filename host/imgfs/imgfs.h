#ifndef SB_IMGFS_IMGFS_H
#define SB_IMGFS_IMGFS_H
/*
 * sendbox-imgfs: the read-only layers of a session as one FUSE file system whose root has the
 * directories "0", "1", ...: one for each layer, lowest first.
 *
 * The layers are mapped and read by lib/erofs, nothing else of the host is in reach. The messages
 * come from this machine's own kernel (the descriptor is checked to be /dev/fuse); what is hostile
 * are the layers' bytes. Without state: the number of a node says where it stands.
 */
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/err.h"
#include "erofs/read.h"

#define IMGFS_MAX_LAYERS 8
#define IMGFS_MAX_READ (1U << 20)
#define IMGFS_TIMEOUT 86400.0 /* s: a layer never changes */

struct imgfs {
	struct sb_erofs layers[IMGFS_MAX_LAYERS];
	size_t map_len[IMGFS_MAX_LAYERS];
	size_t n;
	bool one_owner; /* everything belongs to uid:gid: no other id exists in the session */
	uint32_t uid;
	uint32_t gid;
};

/* Map the layer that @fd refers to as the next one. Return: 0; -errno with text. */
SB_MUST_CHECK int imgfs_add(struct imgfs *fs, int fd, struct sb_err *err);
void imgfs_done(struct imgfs *fs);

/* A node by its number. Return: 0; -ENOENT; -EBADMSG. */
SB_MUST_CHECK int imgfs_node(const struct imgfs *fs, fuse_ino_t ino, size_t *ret_layer,
			     struct sb_erofs_node *ret);
fuse_ino_t imgfs_ino(size_t layer, uint64_t nid);
/* Whether it is shown: no device but the whiteout, none of overlayfs' own marks but opaque. */
bool imgfs_shown(const struct sb_erofs_node *n);
bool imgfs_xattr_shown(const char *name);

extern const struct fuse_lowlevel_ops imgfs_ops;

#endif
