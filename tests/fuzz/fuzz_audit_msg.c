/* What is taken from a message can be packed again, and makes a record unless its names are none. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t none[SB_AUDIT_HASH];
	struct sb_audit_event e;
	struct sb_audit_record r;
	uint8_t again[SB_AUDIT_PACK_MAX];
	char out[SB_AUDIT_LINE_MAX];
	int n;

	if (size > SB_AUDIT_PACK_MAX || sb_audit_unpack(data, size, &e) < 0)
		return 0;
	n = sb_audit_encode(&e, 1, none, out);
	if (n == -EINVAL)
		return 0;
	if (n < 0 || sb_audit_parse(out, (size_t)n - 1, &r, NULL) < 0)
		abort();
	if (sb_audit_pack(&e, again) < 0)
		abort();
	return 0;
}
