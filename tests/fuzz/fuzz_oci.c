/*
 * Documents of images. The first byte chooses which. Invariants: what is handed out is within its
 * bounds, and a document is one kind or none.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/oci.h"
#include "image/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void digest(const struct oci_blob *b)
{
	if (strncmp(b->digest, "sha256:", 7) != 0 || strlen(b->digest) != 71 || strchr(b->digest, '/'))
		abort();
}

static void manifest(const char *p, size_t len)
{
	struct oci_manifest m;

	if (oci_manifest_parse(p, len, &m, NULL) != 0)
		return;
	if (m.n_layers == 0 || m.n_layers > OCI_MAX_LAYERS || m.config.size > OCI_MAX_DOCUMENT)
		abort();
	digest(&m.config);
	for (size_t i = 0; i < m.n_layers; i++)
		digest(&m.layers[i]);
}

static void reference(const char *p, size_t len)
{
	static struct image_ref r;
	char text[5000];

	if (len >= sizeof(text))
		return;
	memcpy(text, p, len);
	text[len] = '\0';
	if (image_ref_parse(text, &r, NULL) != 0)
		return;
	/* never an option or another transport for skopeo */
	if (r.source == IMAGE_SOURCE_REGISTRY && (r.name[0] == '-' || strstr(r.name, "//")))
		abort();
	if (r.source != IMAGE_SOURCE_HOST && r.name[0] == '\0')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data + 1;
	struct oci_config c = { 0 };
	struct oci_blob b;
	enum oci_kind kind;

	if (size < 2)
		return 0;
	switch (data[0] % 5) {
	case 0:
		if (oci_kind(p, size - 1, &kind, NULL) == 0 && kind == OCI_NONE)
			abort();
		break;
	case 1:
		if (oci_index_pick(p, size - 1, data[0] & 8 ? "t" : NULL, "amd64", &b, NULL) == 0)
			digest(&b);
		break;
	case 2:
		manifest(p, size - 1);
		break;
	case 3:
		if (oci_config_parse(p, size - 1, "amd64", 1, &c, NULL) == 0)
			oci_config_done(&c);
		break;
	default:
		reference(p, size - 1);
	}
	return 0;
}
