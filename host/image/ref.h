#ifndef SB_HOST_IMAGE_REF_H
#define SB_HOST_IMAGE_REF_H
/* A reference to an image, taken apart. Pure. */
#include "base/err.h"

enum image_source {
	IMAGE_SOURCE_NONE = 0,
	IMAGE_SOURCE_HOST,
	IMAGE_SOURCE_DIR,            /* name: path */
	IMAGE_SOURCE_OCI,            /* name: path of a layout, tag or NULL */
	IMAGE_SOURCE_OCI_ARCHIVE,    /* name: path of a file, tag or NULL */
	IMAGE_SOURCE_DOCKER_ARCHIVE,
	IMAGE_SOURCE_REGISTRY,       /* name without tag and digest */
};
struct image_ref {
	enum image_source source;
	char name[4096];
	char tag[129];    /* "" = none */
	char digest[72];  /* "" = none; "sha256:..." */
	bool loopback;    /* registry: the host is this machine, plain http is taken */
};

/*
 * image_ref_parse - see image.h for the forms
 * Return: 0; -EINVAL with the text.
 */
SB_MUST_CHECK int image_ref_parse(const char *text, struct image_ref *ret, struct sb_err *err);

#endif
