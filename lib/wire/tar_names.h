#ifndef SB_WIRE_TAR_NAMES_H
#define SB_WIRE_TAR_NAMES_H
/* Files with several names, for writers of archives: which name of a file is there already. */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#define SB_TAR_NAMES_MAX (1U << 21) /* files */

struct sb_tar_name {
	uint64_t id; /* inode or node */
	char *path;  /* NULL = free */
};
struct sb_tar_names { /* starts as {0} */
	struct sb_tar_name *v; /* open addressing, a power of two */
	size_t room;
	size_t n;
};

/*
 * sb_tar_names_first - the name under which the file @id came first
 * @ret: borrowed; NULL: none yet, and @path, which is copied, is it from now on
 * Return: 0; -E2BIG: more than SB_TAR_NAMES_MAX files; -ENOMEM.
 */
SB_MUST_CHECK int sb_tar_names_first(struct sb_tar_names *t, uint64_t id, const char *path,
				     const char **ret);
void sb_tar_names_done(struct sb_tar_names *t);

#endif
