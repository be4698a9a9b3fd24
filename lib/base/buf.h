#ifndef SB_BASE_BUF_H
#define SB_BASE_BUF_H
/*
 * Growable byte buffer with a hard cap. Embedded in its owner.
 * After the first failure every further append is a no-op and sb_buf_error() tells the cause, so
 * that a writer checks once at the end.
 */
#include "base/mem.h"

struct sb_buf {
	uint8_t *data; /* owned */
	size_t len;    /* bytes in use */
	size_t room;   /* bytes allocated */
	size_t cap;    /* most bytes it may ever hold */
	int error;     /* 0, -ENOMEM or -EFBIG */
};

void sb_buf_init(struct sb_buf *b, size_t cap);
void sb_buf_done(struct sb_buf *b);
#define sb_autobuf SB_CLEANUP(sb_buf_done)
static inline int sb_buf_error(const struct sb_buf *b)
{
	return b->error;
}
void sb_buf_add(struct sb_buf *b, const void *p, size_t len);
void sb_buf_add_str(struct sb_buf *b, const char *s); /* without the NUL */
void sb_buf_addf(struct sb_buf *b, const char *fmt, ...) SB_PRINTF(2, 3);
void sb_buf_add_u8(struct sb_buf *b, uint8_t v);
void sb_buf_add_le16(struct sb_buf *b, uint16_t v);
void sb_buf_add_le32(struct sb_buf *b, uint32_t v);
void sb_buf_add_le64(struct sb_buf *b, uint64_t v);
/* Drop @n bytes from the front. */
void sb_buf_drop(struct sb_buf *b, size_t n);

/*
 * Bounded reader over borrowed bytes. After the first short read every get returns 0/NULL and
 * `bad` is set; a parser checks once, with sb_rd_end(), which also demands that all was consumed.
 */
struct sb_rd {
	const uint8_t *p;
	size_t len;
	bool bad;
};
uint8_t sb_rd_u8(struct sb_rd *r);
uint16_t sb_rd_le16(struct sb_rd *r);
uint32_t sb_rd_le32(struct sb_rd *r);
uint64_t sb_rd_le64(struct sb_rd *r);
const uint8_t *sb_rd_bytes(struct sb_rd *r, size_t len);
/* Return: 0, or -EBADMSG when something was short or bytes are left over. */
SB_MUST_CHECK int sb_rd_end(const struct sb_rd *r);

#endif
