/* Whatever parses is canonical: writing it again gives the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/key_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_key_list l = { .n = 0 };
	char *again = NULL;
	size_t len = 0;

	if (sb_key_list_parse((const char *)data, size, &l, NULL) == 0) {
		if (sb_key_list_write(&l, &again, &len) < 0 || len != size ||
		    memcmp(again, data, size) != 0)
			abort();
		free(again);
		for (size_t i = 0; i < l.n; i++)
			if (sb_key_list_find(&l, l.keys[i].key) != &l.keys[i])
				abort();
	} else if (l.keys) {
		abort();
	}
	sb_key_list_done(&l);
	return 0;
}
