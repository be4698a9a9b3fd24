/* Whatever parses is canonical: writing it again gives the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_plan *p = NULL;
	struct sb_err err = { 0 };
	char *again = NULL;
	size_t len = 0;

	if (sb_plan_parse((const char *)data, size, &p, &err) == 0) {
		if (sb_plan_write(p, &again, &len, &err) < 0 || len != size ||
		    memcmp(again, data, size) != 0)
			abort();
		free(again);
	} else if (p) {
		abort();
	}
	(void)sb_plan_free(p);
	return 0;
}
