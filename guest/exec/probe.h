#ifndef SB_GUEST_EXEC_PROBE_H
#define SB_GUEST_EXEC_PROBE_H
/*
 * Reading back what confines a command: a child goes the way of every command up to the program,
 * stays there, and tells what is in force. It runs beside the start of the channel, so its time
 * counts only where there is one processor.
 */
#include <sys/types.h>

#include "core/controls.h"
#include "exec/confine.h"

struct sb_probe {
	pid_t pid;
	int done;          /* readable (end of file) when the child is gone; owned */
	struct sb_probe_report *report; /* memory shared with the child; owned */
};
#define SB_PROBE_INIT { .pid = 0, .done = -1, .report = NULL }

/*
 * sb_probe_start - fork the child
 * @judge: socket to the judge, or -1
 * @c: ready for commands; the caller is single-threaded
 * @ret: release with sb_probe_end; the caller reaps the child
 * Return: 0; -errno with text.
 */
SB_MUST_CHECK int sb_probe_start(const struct sb_plan *plan, const struct sb_confine *c, int judge,
				 struct sb_probe *ret, struct sb_err *err);
/*
 * sb_probe_text - what the child found, as "name=value" lines for READY
 * @ret: NUL-terminated, borrowed, valid until sb_probe_end
 * Call it when @p->done says that the child is gone.
 * Return: 0; -errno with text when a wall could not be put up, or -EPROTO when the child died.
 */
SB_MUST_CHECK int sb_probe_text(const struct sb_probe *p, const char **ret, struct sb_err *err);
void sb_probe_end(struct sb_probe *p);

#endif
