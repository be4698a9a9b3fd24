#ifndef SB_WIRE_RECORD_H
#define SB_WIRE_RECORD_H
/*
 * Framing of the channel, two layers, pure. Byte tables: docs/protocol/channel.md.
 *
 *	record   u32 LE length of the sealed body (frames + 16-byte tag), then the body. The four
 *	         bytes are the additional data of the AEAD.
 *	frame    u24 LE payload length, u8 type, u32 LE stream, payload. A record holds whole
 *	         frames, at least one.
 */
#include "base/buf.h"

#define SB_REC_HEAD_LEN 4U
#define SB_REC_TAG_LEN 16U
#define SB_FRAME_HEAD_LEN 8U
#define SB_FRAME_DATA_MAX (64U << 10) /* bytes of payload in one frame */
#define SB_REC_TEXT_MAX (SB_FRAME_HEAD_LEN + SB_FRAME_DATA_MAX)
#define SB_REC_BODY_MIN (SB_FRAME_HEAD_LEN + SB_REC_TAG_LEN)
#define SB_REC_BODY_MAX (SB_REC_TEXT_MAX + SB_REC_TAG_LEN)
#define SB_REC_MAX (SB_REC_HEAD_LEN + SB_REC_BODY_MAX)

enum sb_frame_type {
	SB_FRAME_NONE = 0,
	SB_FRAME_OPEN = 1,         /* u32 kind, u32 cmd; host only */
	SB_FRAME_DATA = 2,         /* 1..SB_FRAME_DATA_MAX bytes */
	SB_FRAME_EOF = 3,          /* empty */
	SB_FRAME_RESET = 4,        /* empty; the last frame of this side for the stream */
	SB_FRAME_CREDIT = 5,       /* u32 bytes, > 0 */
	SB_FRAME_CONTROL = 6,      /* stream 0; last or only part of a message, >= 1 byte */
	SB_FRAME_CONTROL_MORE = 7, /* stream 0; a part with more to come, >= 1 byte */
};

struct sb_frame {
	uint8_t type;      /* enum sb_frame_type */
	uint32_t stream;   /* 0 for CONTROL, CONTROL_MORE; else > 0 */
	uint32_t len;      /* payload bytes */
	const uint8_t *p;  /* payload, borrowed */
	uint32_t value[2]; /* OPEN: kind, cmd; CREDIT: bytes */
};

void sb_rec_head_write(uint32_t body_len, uint8_t out[SB_REC_HEAD_LEN]);

#define SB_REC_MORE 1
/*
 * sb_rec_head_parse - length of the record at @p
 * @body_len: bytes after the header, SB_REC_BODY_MIN..SB_REC_BODY_MAX (or exactly @exact if > 0)
 * Return: 0; SB_REC_MORE when @len < 4; -EBADMSG for a length outside the range.
 */
SB_MUST_CHECK int sb_rec_head_parse(const uint8_t *p, size_t len, uint32_t exact,
				    uint32_t *body_len);

void sb_frame_head_write(enum sb_frame_type type, uint32_t stream, uint32_t len,
			 uint8_t out[SB_FRAME_HEAD_LEN]);
static inline uint8_t sb_frame_head_type(const uint8_t *p)
{
	return p[3];
}
static inline uint32_t sb_frame_head_len(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}
static inline uint32_t sb_frame_head_stream(const uint8_t *p)
{
	return (uint32_t)p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 |
	       (uint32_t)p[7] << 24;
}

#define SB_FRAME_END 1
/*
 * sb_frame_next - take the next frame off @rd (the text of one record)
 * Return: 0; SB_FRAME_END when nothing is left; -EBADMSG: short, unknown type, a length or stream
 * that this type cannot have.
 */
SB_MUST_CHECK int sb_frame_next(struct sb_rd *rd, struct sb_frame *ret);

#endif
