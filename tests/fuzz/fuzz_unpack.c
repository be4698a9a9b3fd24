/* Any bytes: what comes out is never more than the cap, whatever the input says. */
#include "provider/microvm/cache.h"

#define CAP 65536U

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	sb_autofree uint8_t *out = NULL;
	size_t out_len = 0;
	int r = sb_unpack(p, len, CAP, &out, &out_len);

	sb_assert((r == 0) == (out != NULL));
	sb_assert(r < 0 || (out_len > 0 && out_len <= CAP));
	return 0;
}
