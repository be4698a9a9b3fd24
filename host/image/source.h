#ifndef SB_HOST_IMAGE_SOURCE_H
#define SB_HOST_IMAGE_SOURCE_H
/* Blobs of one image: in a folder, of an OCI layout or of skopeo's "dir" form, or in an archive. */
#include "image/oci_archive.h"
#include "image/image.h"
#include "image/oci.h"

struct image_blobs {
	int dir;     /* borrowed */
	bool layout; /* blobs/sha256/HEX; else HEX */
	const struct image_archive *archive; /* then @dir counts for nothing; borrowed */
};
/* A small document, whole and verified. @ret: malloc'd, NUL-terminated.
 * Return: 0; -EBADMSG: size or digest differ; -errno. */
SB_MUST_CHECK int image_blob_read(const struct image_blobs *b, const struct oci_blob *want,
				  char **ret, struct sb_err *err);
/*
 * image_make - layers of @manifest become one erofs file in the cache
 * Size and digest of every layer are compared while it is fed; the result of a layer that differs
 * is never kept. @ret: layer, env, user and workdir are set.
 */
SB_MUST_CHECK int image_make(const struct sb_dirs *d, const struct image_want *w,
			     const struct image_blobs *b, const struct oci_manifest *m,
			     struct image *ret, struct sb_err *err);
/*
 * image_make_layer - the layers from @first on, @n of them, become one erofs file
 * @keep: whiteouts are kept for the layers that it will be put over; @n is 1
 */
SB_MUST_CHECK int image_make_layer(const struct sb_dirs *d, const struct image_want *w,
				   const struct image_blobs *b, const struct oci_manifest *m,
				   size_t first, size_t n, bool keep, struct sb_plan_layer *ret,
				   struct sb_err *err);
/* "sha256:..." of bytes. */
void image_digest(const void *p, size_t len, char ret[72]);
/* The name of this machine in images: "amd64". */
const char *image_arch(void);

#endif
