/* Frames: whatever parses is bounded, inside the input, and written again gives the same header. */
#include <stdlib.h>
#include <string.h>

#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_rd rd = { .p = data, .len = size };
	struct sb_frame f;
	uint32_t body = 0;
	int r = sb_rec_head_parse(data, size, 0, &body);

	if (r == 0 && (body < SB_REC_BODY_MIN || body > SB_REC_BODY_MAX))
		abort();
	if ((r == SB_REC_MORE) != (size < SB_REC_HEAD_LEN))
		abort();
	while ((r = sb_frame_next(&rd, &f)) == 0) {
		uint8_t head[SB_FRAME_HEAD_LEN];

		if (f.p < data || f.len > SB_FRAME_DATA_MAX || f.p + f.len != rd.p)
			abort();
		sb_frame_head_write((enum sb_frame_type)f.type, f.stream, f.len, head);
		if (memcmp(head, f.p - SB_FRAME_HEAD_LEN, sizeof(head)) != 0)
			abort();
	}
	if (r == SB_FRAME_END && rd.len != 0)
		abort();
	return 0;
}
