/* Control messages: whatever parses, written again, gives the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "wire/ctl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_ctl m;
	struct sb_buf b;

	if (sb_ctl_parse(data, size, &m) != 0)
		return 0;
	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, &m);
	if (sb_buf_error(&b) || b.len != size || memcmp(b.data, data, size) != 0)
		abort();
	sb_buf_done(&b);
	return 0;
}
