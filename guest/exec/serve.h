#ifndef SB_GUEST_EXEC_SERVE_H
#define SB_GUEST_EXEC_SERVE_H
/*
 * The guest's session: one channel on the carrier, READY, and the commands that the host asks for.
 *
 * Called once by PID 1 when the root file system is assembled and the kernel is hardened.
 */
#include <sys/types.h>

#include "conn/boot.h"

struct sb_guest_env {
	const struct sb_boot *boot; /* borrowed; everything about the workload is in boot->plan */
	int carrier;                /* borrowed, non-blocking, ordered bytes both ways */
	int export;                 /* task EXPORT: the upper layer; borrowed; else -1 */
	bool vm;                    /* the kernel is the guest's own */
	/* Directory of a delegated cgroup v2 that has no processes: one leaf per command is made
	 * in it. NULL: there is none, commands are told apart by their processes alone. */
	const char *cgroup;
	const char *ready_text; /* for READY: kernel release and the verified controls */
	const pid_t *pumps;     /* file pumps; the end of any of them ends the session */
	size_t n_pumps;
	const int *net;         /* borrowed: the four sockets of init/net.h; NULL: no relay here */
	const int *ssh;         /* borrowed: the socket of init/ssh.h; NULL: no relay here */
};

/*
 * sb_guest_serve - run the session until its end
 *
 * Return: 0 after SHUTDOWN and BYE; -errno when the channel or a pump died. Every process of every
 * command is dead on return.
 */
SB_MUST_CHECK int sb_guest_serve(const struct sb_guest_env *env);

#endif
