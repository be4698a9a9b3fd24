#ifndef SB_HOST_CLI_FDS_H
#define SB_HOST_CLI_FDS_H
/*
 * Descriptors for the channel process. It must never block, but O_NONBLOCK must not be set on
 * the open file descriptions that the caller's shell shares with us. So terminals and pipes are
 * opened anew through /proc; regular files are passed as they are; everything else (sockets,
 * terminals of another user) goes through a small copying child.
 */
#include <sys/types.h>

#include "base/err.h"

struct cli_fd {
	int fd;     /* owned; for the channel process */
	pid_t pump; /* copying child, 0 = none */
};

/* @fd: borrowed. Return: 0; -errno. */
SB_MUST_CHECK int cli_fd_open(int fd, bool output, struct cli_fd *ret, struct sb_err *err);
/* Output: wait until the child wrote everything; input: end it. */
void cli_fd_done(struct cli_fd *s, bool output);

#endif
