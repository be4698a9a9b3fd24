#ifndef SB_CORE_NET_NAME_H
#define SB_CORE_NET_NAME_H
/* Host names, normalised once; every later comparison is of bytes. Pure. */
#include "base/mem.h"

#define SB_NAME_MAX 253
#define SB_HOST_NAME "host.sendbox.internal" /* the host's own ports, by grant only */

/*
 * Lower case, at most one trailing dot dropped; labels of 1..63 [a-z0-9_-], not starting or ending
 * with '-'; at most 253 bytes; the last label is not a number (decimal or 0x...), so that no
 * spelling of an IPv4 address is a name. Everything else is refused: NUL, spaces, control bytes,
 * '@', ':', '%', non-ASCII.
 * @out: SB_NAME_MAX + 1 bytes, untouched on failure. Return: 0; -EINVAL.
 */
SB_MUST_CHECK int sb_name_normalise(const char *s, size_t len, char *out);

#endif
