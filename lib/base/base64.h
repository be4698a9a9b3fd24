#ifndef SB_BASE_BASE64_H
#define SB_BASE_BASE64_H
/* Base64 with padding (RFC 4648 section 4), strict. */
#include "base/mem.h"

#define SB_BASE64_LEN(n) (((n) + 2) / 3 * 4)

/* @out holds SB_BASE64_LEN(len) + 1 bytes, NUL-terminated. */
void sb_base64_write(const void *in, size_t len, char *out);
/*
 * sb_base64_parse - strict inverse: no blanks, canonical padding, zero spare bits
 * @out: holds at least len / 4 * 3 bytes
 * Return: 0; -EINVAL.
 */
SB_MUST_CHECK int sb_base64_parse(const char *in, size_t len, uint8_t *out, size_t *ret_len);

#endif
