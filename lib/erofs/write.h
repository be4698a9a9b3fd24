#ifndef SB_EROFS_WRITE_H
#define SB_EROFS_WRITE_H
/*
 * Writer of erofs files. Data of regular files goes to the output as it comes; the bytes after the
 * last whole block of a file that may stand with its inode wait in a spool file; inodes and
 * directories are written at the end from the tree. The same calls give the same bytes: fixed
 * UUID, no time but the inodes'.
 *
 * Format: lib/erofs/erofs_fs.h.
 */
#include "base/err.h"
#include "erofs/tree.h"

struct sb_erofs_writer;
/*
 * sb_erofs_new - start an output
 * @out:   empty regular file, read-write; borrowed
 * @spool: empty regular file for tails, read-write; borrowed; its content is of no use afterwards
 * @max_bytes: largest output
 */
SB_MUST_CHECK int sb_erofs_new(int out, int spool, uint64_t max_bytes, struct sb_erofs_writer **ret);
struct sb_erofs_writer *sb_erofs_free(struct sb_erofs_writer *w);
static inline void sb_erofs_freep(struct sb_erofs_writer **w)
{
	(void)sb_erofs_free(*w);
}
#define sb_autoerofs SB_CLEANUP(sb_erofs_freep)

/*
 * Data of one regular file, @i->size bytes in any number of pieces; @i's xattrs are set before.
 * Return: 0; -EFBIG: more than max_bytes; -errno of writing (-ENOSPC).
 */
SB_MUST_CHECK int sb_erofs_data_begin(struct sb_erofs_writer *w, struct sb_erofs_inode *i);
SB_MUST_CHECK int sb_erofs_data_add(struct sb_erofs_writer *w, const uint8_t *p, size_t len);
SB_MUST_CHECK int sb_erofs_data_end(struct sb_erofs_writer *w); /* -EINVAL: not @i->size bytes */

/* Between begin and end. */
SB_MUST_CHECK bool sb_erofs_in_data(const struct sb_erofs_writer *w);

/* Data of an inode that is gone: its whole blocks become a hole. For sb_erofs_tree.dropped. */
void sb_erofs_data_drop(struct sb_erofs_writer *w, const struct sb_erofs_inode *i);

/*
 * Extended attributes of an inode, in order of their calls. sb_erofs_xattr_set gives @i, besides
 * what it has, those that were added since the last one; before its data.
 * Return: 0; -EOPNOTSUPP: no prefix of this file system; -E2BIG; -ENOMEM.
 */
#define SB_EROFS_MAX_XATTRS (64U << 10) /* bytes of one inode */
SB_MUST_CHECK int sb_erofs_xattr_add(struct sb_erofs_writer *w, const char *name, size_t name_len,
				     const void *value, size_t len);
SB_MUST_CHECK int sb_erofs_xattr_set(struct sb_erofs_writer *w, struct sb_erofs_tree *t,
				     struct sb_erofs_inode *i);

/* Directories, inodes, superblock. @t: changed (sorted, numbered). Return: as above, -ENOMEM. */
SB_MUST_CHECK int sb_erofs_finish(struct sb_erofs_writer *w, struct sb_erofs_tree *t);
/* Size of the output so far. */
uint64_t sb_erofs_size(const struct sb_erofs_writer *w);

#endif
