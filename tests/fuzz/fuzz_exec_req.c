/* Requests for a further command. What parses, written again, is what came. */
#include <stdlib.h>
#include <string.h>

#include "wire/exec_req.h"

static void must(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_exec_req r;
	struct sb_buf b;

	if (sb_exec_req_parse(data, size, &r) < 0)
		return 0;
	must(r.n_argv >= 1 && r.argv[r.argv_len - 1] == '\0');
	sb_buf_init(&b, SB_EXEC_REQ_MAX);
	sb_exec_req_write(&b, &r);
	must(sb_buf_error(&b) == 0 && b.len == size && memcmp(b.data, data, size) == 0);
	sb_buf_done(&b);
	return 0;
}
