#ifndef SB_HOST_IMAGE_SKOPEO_H
#define SB_HOST_IMAGE_SKOPEO_H
/*
 * The skopeo program as a child: it knows registries, their names and the user's credentials. What
 * it brings is checked by us. It gets the caller's environment, no terminal, and a bound on the
 * size of any file.
 */
#include "image/ref.h"

/* The source as skopeo names it ("docker://...", "oci-archive:..."). @ret: 4400 bytes. With
 * @digest the manifest of that digest. */
SB_MUST_CHECK int skopeo_name(const struct image_ref *ref, const char *digest, char ret[4400],
			      struct sb_err *err);
/* Bytes of the manifest (or list) as the source has them. @ret: malloc'd. */
SB_MUST_CHECK int skopeo_raw(const struct image_ref *ref, const char *digest, char **ret,
			     size_t *ret_len, struct sb_err *err);
/* Manifest and blobs into @dir (empty; transport "dir"). @max_file: bytes. */
SB_MUST_CHECK int skopeo_copy(const struct image_ref *ref, const char *digest, const char *dir,
			      uint64_t max_file, void (*tick)(void *arg), void *arg,
			      struct sb_err *err);

#endif
