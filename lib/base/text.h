#ifndef SB_BASE_TEXT_H
#define SB_BASE_TEXT_H
/* A line that grows in a buffer of fixed size: always NUL-terminated, cut when it is full. */
#include "base/mem.h"

struct sb_text {
	char *p;    /* borrowed; @cap bytes, the first one NUL */
	size_t cap; /* at least 1 */
	size_t len;
};
void sb_text_add(struct sb_text *t, const char *fmt, ...) SB_PRINTF(2, 3);

#endif
