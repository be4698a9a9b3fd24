#include "wire/record.h"

#include <errno.h>

static void put_le32(uint32_t v, uint8_t *out)
{
	for (size_t i = 0; i < 4; i++)
		out[i] = (uint8_t)(v >> (8 * i));
}

void sb_rec_head_write(uint32_t body_len, uint8_t out[SB_REC_HEAD_LEN])
{
	put_le32(body_len, out);
}

int sb_rec_head_parse(const uint8_t *p, size_t len, uint32_t exact, uint32_t *body_len)
{
	struct sb_rd rd = { .p = p, .len = len };
	uint32_t v;

	if (len < SB_REC_HEAD_LEN)
		return SB_REC_MORE;
	v = sb_rd_le32(&rd);
	if (exact > 0 ? v != exact : v < SB_REC_BODY_MIN || v > SB_REC_BODY_MAX)
		return -EBADMSG;
	*body_len = v;
	return 0;
}

void sb_frame_head_write(enum sb_frame_type type, uint32_t stream, uint32_t len,
			 uint8_t out[SB_FRAME_HEAD_LEN])
{
	put_le32(len | (uint32_t)type << 24, out);
	put_le32(stream, out + 4);
}

struct shape {
	uint32_t min; /* payload bytes */
	uint32_t max;
	bool stream; /* belongs to a stream, else to the channel */
};

static const struct shape shapes[] = {
	[SB_FRAME_OPEN] = { 8, 8, true },
	[SB_FRAME_DATA] = { 1, SB_FRAME_DATA_MAX, true },
	[SB_FRAME_EOF] = { 0, 0, true },
	[SB_FRAME_RESET] = { 0, 0, true },
	[SB_FRAME_CREDIT] = { 4, 4, true },
	[SB_FRAME_CONTROL] = { 1, SB_FRAME_DATA_MAX, false },
	[SB_FRAME_CONTROL_MORE] = { 1, SB_FRAME_DATA_MAX, false },
};

int sb_frame_next(struct sb_rd *rd, struct sb_frame *ret)
{
	struct sb_frame f = { 0 };
	struct sb_rd value;
	uint32_t head;

	if (rd->len == 0 && !rd->bad)
		return SB_FRAME_END;
	head = sb_rd_le32(rd);
	f.stream = sb_rd_le32(rd);
	f.type = (uint8_t)(head >> 24);
	f.len = head & 0xffffffU;
	f.p = sb_rd_bytes(rd, f.len);
	if (rd->bad || f.type == SB_FRAME_NONE || f.type >= SB_ARRAY_LEN(shapes))
		return -EBADMSG;
	if (f.len < shapes[f.type].min || f.len > shapes[f.type].max ||
	    shapes[f.type].stream != (f.stream != 0))
		return -EBADMSG;
	if (f.type == SB_FRAME_OPEN || f.type == SB_FRAME_CREDIT) {
		value = (struct sb_rd){ .p = f.p, .len = f.len };
		f.value[0] = sb_rd_le32(&value);
		if (f.type == SB_FRAME_OPEN)
			f.value[1] = sb_rd_le32(&value);
		else if (f.value[0] == 0)
			return -EBADMSG;
	}
	*ret = f;
	return 0;
}
