#ifndef SB_GUEST_EXEC_PTY_H
#define SB_GUEST_EXEC_PTY_H
/* Terminals for commands: the supervisor holds the master, the command the other end. */
#include <sys/types.h>

#include "base/mem.h"

struct sb_pty_config {
	uid_t uid; /* owner of the command's end, so that it can be opened by name */
	gid_t gid;
	uint16_t rows; /* 0 = unknown */
	uint16_t cols;
};

/*
 * sb_pty_open - make one from /dev/ptmx of the current root
 * @ret_master: non-blocking, CLOEXEC; @ret_slave: blocking, CLOEXEC, not the controlling terminal
 *              of the caller; caller closes both
 * Return: 0; -errno.
 */
SB_MUST_CHECK int sb_pty_open(const struct sb_pty_config *cfg, int *ret_master, int *ret_slave);

void sb_pty_resize(int master, uint16_t rows, uint16_t cols);

/* The foreground process group; 0 = none. */
pid_t sb_pty_foreground(int master);

/*
 * sb_pty_send_eof - type the terminal's end-of-file character
 * @last: the byte typed before it; in line mode the character ends an unfinished line first, so
 *        two are needed then. Updated, so that a retry goes on where it stopped.
 * Return: 0; -EAGAIN when the terminal takes no input now; -errno.
 */
SB_MUST_CHECK int sb_pty_send_eof(int master, uint8_t *last);

#endif
