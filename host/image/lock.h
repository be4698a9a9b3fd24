#ifndef SB_HOST_IMAGE_LOCK_H
#define SB_HOST_IMAGE_LOCK_H
/*
 * The lock file: which digest a mutable name stood for when it was first used.
 *
 *   {"version": 1, "images": {"NAME:TAG": "sha256:..."}}
 */
#include "base/err.h"

/* @ret: 72 bytes. Return: 0; -ENOENT: no such name (or no file); -EBADMSG: damaged; -errno. */
SB_MUST_CHECK int image_lock_get(const char *path, const char *name, char ret[72],
				 struct sb_err *err);
/* Safe against others that do the same. */
SB_MUST_CHECK int image_lock_set(const char *path, const char *name, const char *digest,
				 struct sb_err *err);

#endif
