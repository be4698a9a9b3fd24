#ifndef SB_CORE_HOST_IMAGE_H
#define SB_CORE_HOST_IMAGE_H
/*
 * What of the host's /etc belongs to the `host` image beside /usr: entries that programs of /usr
 * need, that hold nothing personal and are world-readable on every Debian. An entry that the host
 * lacks is left out.
 */
#include <stddef.h>

extern const char *const sb_host_etc[]; /* names beneath /etc, NULL-terminated */

#endif
