/*
 * Annotations of an exported instance. Invariants: what is handed out has no control character and is within
 * its bounds; a manifest made of it says the same again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/instance_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void shown(const char *s)
{
	if (!s)
		return;
	if (*s == '\0' || strlen(s) > INSTANCE_META_MAX)
		abort();
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct oci_blob b = { .size = 1, .digest = "sha256:x" };
	struct instance_meta m = { 0 };
	struct instance_meta again = { 0 };
	const struct instance_image i = { .meta = &m, .arch = "amd64" };
	char *text = NULL;

	if (instance_meta_parse((const char *)data, size, &m, NULL) != 0)
		return 0;
	shown(m.name);
	shown(m.base);
	shown(m.agent);
	shown(m.image);
	shown(m.options);
	shown(m.workspace);
	if (instance_image_manifest(&i, &b, &text) != 0)
		abort();
	if (instance_meta_parse(text, strlen(text), &again, NULL) != 0 || strcmp(again.name, m.name) != 0)
		abort();
	free(text);
	instance_meta_done(&again);
	instance_meta_done(&m);
	return 0;
}
