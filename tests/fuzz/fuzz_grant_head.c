/* The head of the grants: what is read is what would be written. */
#include <string.h>

#include "core/grant_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_grant_head h;
	char out[SB_GRANT_HEAD_MAX];

	if (sb_grant_head_parse((const char *)data, size, &h) < 0)
		return 0;
	sb_assert(sb_grant_head_write(&h, out) == size && memcmp(out, data, size) == 0);
	sb_assert(h.signed_len < size && sb_grant_head_covers(&h, &h.now));
	return 0;
}
