/* Archives of OCI layouts. Invariants: names are of the closed list and once; every place lies within. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/oci_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct image_archive a;

	if (image_archive_scan(data, size, &a, NULL) != 0)
		return 0;
	for (size_t i = 0; i < a.n; i++) {
		const struct image_archive_entry *e = &a.v[i];

		if (e->at > size || e->size > size - e->at || strstr(e->name, "..") || e->name[0] == '/')
			abort();
		for (size_t k = 0; k < i; k++)
			if (strcmp(a.v[k].name, e->name) == 0)
				abort();
	}
	return 0;
}
