#ifndef SB_HOST_IMAGE_INSTANCE_META_H
#define SB_HOST_IMAGE_INSTANCE_META_H
/*
 * An exported instance is an image: what is beneath it and its own changes are layers, what else is known
 * of it are annotations of the manifest, "io.sendbox.instance.*". Pure: texts in, texts out.
 *
 *   version    "1"
 *   name       of the instance
 *   base       "layers": the first layer is a whole root file system; "host": the layers go over the
 *              /usr of the machine, and `host` tells of which
 *   agent, image, host, runtime, workspace, options (a JSON list of words), cpus, memory: where known;
 *              for people: nothing of it grants anything where it is imported
 */
#include "image/oci.h"

#define INSTANCE_META_MAX 4096U /* bytes of one text */

struct instance_meta { /* owned; NULL where unknown */
	char *name;
	char *base;
	char *agent;
	char *image;
	char *host;
	char *runtime;
	char *workspace;
	char *options;
	char *cpus;
	char *memory;
};
void instance_meta_done(struct instance_meta *m);

/* From a manifest. Return: 0; -ENOENT: no export of an instance; -EBADMSG: one that is broken, longer
 * than what is taken, or with control characters; -EPROTO: of a newer version. */
SB_MUST_CHECK int instance_meta_parse(const char *p, size_t len, struct instance_meta *ret,
				      struct sb_err *err);

struct instance_image { /* borrowed */
	const struct instance_meta *meta;
	const char *arch;
	char *const *env; /* NULL-terminated, or NULL */
	const struct oci_blob *layers; /* plain tar, lowest first */
	size_t n_layers;
};
/* The documents, malloc'd. What is no UTF-8 or too long is left out. Return: 0; -ENOMEM. */
SB_MUST_CHECK int instance_image_config(const struct instance_image *i, char **ret);
SB_MUST_CHECK int instance_image_manifest(const struct instance_image *i, const struct oci_blob *config,
					  char **ret);
SB_MUST_CHECK int instance_image_index(const struct instance_image *i, const struct oci_blob *manifest,
				       char **ret);

#endif
