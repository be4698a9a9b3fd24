#ifndef SB_HOST_IMAGE_OCI_ARCHIVE_H
#define SB_HOST_IMAGE_OCI_ARCHIVE_H
/*
 * An OCI layout in one tar archive, read in place. Its names are a closed list: oci-layout,
 * index.json, blobs/sha256/HEX and the folders of these; anything else, a name twice and whatever is
 * neither a file nor a folder is refused. What a blob holds is compared with its digest by who reads it.
 */
#include "image/oci.h"

#define IMAGE_ARCHIVE_MAX 512U /* entries */

struct image_archive_entry {
	char name[80];
	uint64_t at; /* of the content, from the archive's beginning */
	uint64_t size;
};
struct image_archive {
	int fd; /* borrowed; a regular file */
	size_t n;
	struct image_archive_entry v[IMAGE_ARCHIVE_MAX];
};
/* Read the whole of @fd from its beginning. Return: 0; -EBADMSG, text names the entry; -errno. */
SB_MUST_CHECK int image_archive_open(int fd, struct image_archive *ret, struct sb_err *err);
/* A document by name. @ret: malloc'd, NUL-terminated. Return: 0; -ENOENT; -EBADMSG; -errno. */
SB_MUST_CHECK int image_archive_file(const struct image_archive *a, const char *name, char **ret,
				     size_t *ret_len, struct sb_err *err);
/* A descriptor of its own that stands at the blob's first byte. Return: 0; -EBADMSG: it is not there or
 * its size is another; -errno. */
SB_MUST_CHECK int image_archive_blob(const struct image_archive *a, const struct oci_blob *want,
				     int *ret, struct sb_err *err);

/* For tests: the names and places in @len bytes at @p. Pure. */
SB_MUST_CHECK int image_archive_scan(const uint8_t *p, size_t len, struct image_archive *ret,
				     struct sb_err *err);

#endif
