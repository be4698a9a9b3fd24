#ifndef SB_PROVIDER_MICROVM_CACHE_H
#define SB_PROVIDER_MICROVM_CACHE_H
/*
 * Files of the cache directory: named by what is in them, written beside and renamed, so that
 * builders may race and a reader never sees half a file.
 *
 * Stamps: reading 53 MiB for a digest at each start would cost more than the start itself. A
 * stamp remembers {dev, ino, size, mtime, ctime, digest} of a file that was hashed. The change
 * time cannot be set by the owner of a file: forging a stamped file takes the right to set the
 * clock, write the raw disk or write the stamp directory, and each of these could replace this
 * program as well. A stamp is only made when the change time is more than a second in the past,
 * so that two writes within one tick of the clock cannot hide behind one time.
 */
#include <sys/stat.h>

#include "base/err.h"
#include "crypto/crypto.h"

#define SB_HEX_SHA256 (2 * SB_SHA256_LEN + 1)

/* sb_cache_dir - open <cache>/<name>, made with mode 0700. Return: fd; -errno with @err. */
SB_MUST_CHECK int sb_cache_dir(const char *cache, const char *name, struct sb_err *err);

/*
 * sb_cache_sha256 - digest of the open regular file @fd, from its stamp or by reading it
 * @st: its status, which the digest belongs to; may be NULL
 * Return: 0; -EAGAIN: the file changes while it is read; -errno.
 */
SB_MUST_CHECK int sb_cache_sha256(const char *cache, int fd, uint8_t out[SB_SHA256_LEN],
				  struct stat *st);

/* Whether two states are of one file with one content. */
bool sb_cache_same(const struct stat *a, const struct stat *b);

/*
 * sb_cache_write - write @p to <dirfd>/<name>, mode 0444 (the content is no secret, the directory
 * is closed): temporary file of its own, fsync, rename
 * Return: 0; -errno, nothing left behind.
 */
SB_MUST_CHECK int sb_cache_write(int dirfd, const char *name, const void *p, size_t len);

/* Keep the @keep newest files whose names end in @suffix; best effort. */
void sb_cache_prune(int dirfd, const char *suffix, size_t keep);

/*
 * sb_unpack - undo gzip, xz, zstd or lz4
 * @ret: malloc'd, caller frees
 * Return: 0; -EFBIG: more than @cap bytes; -EBADMSG: damaged; -ENOMEM.
 */
SB_MUST_CHECK int sb_unpack(const void *p, size_t len, size_t cap, uint8_t **ret, size_t *ret_len);

#endif
