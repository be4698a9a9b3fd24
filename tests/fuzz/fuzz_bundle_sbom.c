/* The list of components: whatever is taken gives three documents, the same ones each time. */
#include <string.h>

#include "cli/bundle_sbom.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	const struct bundle_sbom_in in = { .components = (const char *)p,
					   .components_len = len,
					   .release = "1.0",
					   .architecture = "x86_64",
					   .created = "1970-01-01T00:00:00Z" };
	autosbom struct bundle_sbom a = { 0 };
	autosbom struct bundle_sbom b = { 0 };

	if (len > BUNDLE_COMPONENTS_MAX || bundle_sbom_make(&in, &a, NULL) < 0) {
		sb_assert(!a.inventory && !a.spdx && !a.cyclonedx);
		return 0;
	}
	sb_assert(bundle_sbom_make(&in, &b, NULL) == 0);
	sb_assert(strcmp(a.inventory, b.inventory) == 0 && strcmp(a.spdx, b.spdx) == 0 &&
		  strcmp(a.cyclonedx, b.cyclonedx) == 0);
	return 0;
}
