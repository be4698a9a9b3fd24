#ifndef SB_HOST_IMAGE_OCI_H
#define SB_HOST_IMAGE_OCI_H
/*
 * JSON documents of images: index (list), manifest, config; OCI's and Docker's second schema. Pure:
 * bytes in, structs out; strict about what counts, blind to the rest. Duplicate keys are refused.
 */
#include "base/err.h"

#define OCI_MAX_DOCUMENT (4U << 20)
#define OCI_MAX_LAYERS 127U
#define OCI_MAX_ENTRIES 256U
#define OCI_MAX_ENV 256U

struct oci_blob {
	char digest[72]; /* "sha256:..." */
	uint64_t size;
};
struct oci_manifest {
	struct oci_blob config;
	struct oci_blob layers[OCI_MAX_LAYERS];
	size_t n_layers;
	uint64_t total; /* bytes of the layers */
};
struct oci_config { /* owned */
	char **env;   /* NULL-terminated */
	char *user;   /* or NULL */
	char *workdir;
};
void oci_config_done(struct oci_config *c);

enum oci_kind { OCI_NONE = 0, OCI_INDEX, OCI_MANIFEST };
/* Return: 0; -EBADMSG: neither of the two, or malformed. */
SB_MUST_CHECK int oci_kind(const char *p, size_t len, enum oci_kind *ret, struct sb_err *err);
/*
 * oci_index_pick - the manifest for linux and @arch ("amd64"); with @tag the one of that name
 * Return: 0; -ENOENT: none, text says what there is; -EBADMSG.
 */
SB_MUST_CHECK int oci_index_pick(const char *p, size_t len, const char *tag, const char *arch,
				 struct oci_blob *ret, struct sb_err *err);
SB_MUST_CHECK int oci_manifest_parse(const char *p, size_t len, struct oci_manifest *ret,
				     struct sb_err *err);
/* Return: 0; -EBADMSG; -ENOENT: for another machine. */
SB_MUST_CHECK int oci_config_parse(const char *p, size_t len, const char *arch, size_t n_layers,
				   struct oci_config *ret, struct sb_err *err);

#endif
