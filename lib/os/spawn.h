#ifndef SB_OS_SPAWN_H
#define SB_OS_SPAWN_H
/*
 * Start a helper program with an exact descriptor table and a parent-death signal.
 */
#include <sys/types.h>

#include "base/err.h"

struct sb_spawn_fd {
	int from; /* descriptor in this process (borrowed) */
	int to;   /* its number in the child */
};

struct sb_spawn {
	const char *path;               /* absolute path of the executable; never searched for */
	int exe;                        /* > 0: execute this descriptor (borrowed); the path is
					 * for messages alone. No scripts. */
	const char *const *argv;        /* NULL-terminated */
	const char *const *env;         /* NULL-terminated; NULL = an empty environment */
	const struct sb_spawn_fd *fds;  /* everything else is closed in the child */
	size_t n_fds;                   /* at most 64; 0, 1, 2 not named become /dev/null */
	bool new_session;               /* setsid() */
	bool outlive_parent;            /* no parent-death signal: it ends by itself */
	bool deaf;                      /* INT, QUIT, HUP, TSTP, TERM, USR1, USR2 and ALRM are ignored,
					 * from its first instruction on */
	/* Runs in the child after the descriptors are in place and before exec, with the
	 * parent-death signal set; non-zero (-errno) = report and give up. May be NULL. */
	int (*pre_exec)(void *arg);
	void *arg;
};

/*
 * sb_spawn_start - fork and exec
 * @ret_pidfd: may be NULL; CLOEXEC
 *
 * The child gets SIGKILL when the calling thread's process dies (PR_SET_PDEATHSIG; set again
 * by pre_exec if it changes credentials), default signal dispositions (but of a deaf one) and an empty signal mask.
 * Blocks until exec happened or failed. Return: 0; -errno with the stage in @err.
 */
SB_MUST_CHECK int sb_spawn_start(const struct sb_spawn *s, pid_t *ret_pid, int *ret_pidfd,
				 struct sb_err *err);

/* Set the parent-death signal and check that the parent is still @parent. Return: 0; -ESRCH. */
SB_MUST_CHECK int sb_spawn_die_with(pid_t parent);

/* For a child: default dispositions for every signal and an empty mask. */
void sb_spawn_reset_signals(void);

/* Close every descriptor >= 3 that is not in @keep. */
SB_MUST_CHECK int sb_close_others(const int *keep, size_t n_keep);

#endif
