#ifndef SB_BASE_NUM_H
#define SB_BASE_NUM_H
/* Strict text-to-number conversions: no sign, no blanks, no leading zeros beyond "0", no rest. */
#include "base/mem.h"

/* Return: 0; -EINVAL malformed; -ERANGE outside [min, max]. */
SB_MUST_CHECK int sb_num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/*
 * sb_num_size - memory or disk size: digits with optional decimals, then b k kb m mb g gb t tb in
 * any case; a bare number is MiB; factors are powers of 1024.
 * @ret: bytes, > 0
 * Return: 0; -EINVAL; -ERANGE.
 */
SB_MUST_CHECK int sb_num_size(const char *s, uint64_t *ret);

/*
 * sb_num_duration_ms - digits with optional decimals and an optional unit ms s m h d; bare = s
 * Return: 0; -EINVAL; -ERANGE (0 or beyond a year).
 */
SB_MUST_CHECK int sb_num_duration_ms(const char *s, uint64_t *ret);

/* Lower-case hex. @out holds 2 * len + 1 bytes. */
void sb_hex_write(const uint8_t *in, size_t len, char *out);
/* Return: 0; -EINVAL unless @s is exactly 2 * len lower-case hex digits. */
SB_MUST_CHECK int sb_hex_parse(const char *s, uint8_t *out, size_t len);

#endif
