#ifndef SB_PROVIDER_MICROVM_CPIO_H
#define SB_PROVIDER_MICROVM_CPIO_H
/*
 * Writer of the "newc" cpio format, reproducible: owner 0, time 0, inode numbers in order.
 * Source: Documentation/driver-api/early-userspace/buffer-format.rst.
 */
#include "base/buf.h"

struct sb_cpio {
	struct sb_buf *out; /* borrowed; its error is the writer's error */
	uint32_t ino;       /* of the last entry */
};

void sb_cpio_dir(struct sb_cpio *c, const char *name, uint32_t perm);
void sb_cpio_file(struct sb_cpio *c, const char *name, uint32_t perm, const void *p, size_t len);
void sb_cpio_chardev(struct sb_cpio *c, const char *name, uint32_t perm, uint32_t major,
		     uint32_t minor);
void sb_cpio_end(struct sb_cpio *c); /* the trailer */

#endif
