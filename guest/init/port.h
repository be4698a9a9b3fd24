#ifndef SB_GUEST_INIT_PORT_H
#define SB_GUEST_INIT_PORT_H
/* virtio-serial ports by name. */
#include "base/err.h"

/*
 * sb_port_open - open the port that the host calls @name, read and write, non-blocking
 * @timeout_ms: how long to wait for the kernel to find it
 * A port can be open once only. Return: 0; -ENOENT with the text in @err; -errno.
 */
SB_MUST_CHECK int sb_port_open(const char *name, int timeout_ms, int *ret, struct sb_err *err);

#endif
