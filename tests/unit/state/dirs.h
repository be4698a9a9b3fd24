#ifndef SB_TEST_STATE_DIRS_H
#define SB_TEST_STATE_DIRS_H
/* A place for a database, gone at the end. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/rmtree.h"
#include "state/state.h"
#include "t.h"

struct place {
	char top[64];
	char state[80];
	char run[80];
	struct sb_dirs d;
};
static inline void place_make(struct place *p)
{
	(void)snprintf(p->top, sizeof(p->top), "/tmp/sb-state-XXXXXX");
	if (!mkdtemp(p->top))
		abort();
	(void)snprintf(p->state, sizeof(p->state), "%s/state", p->top);
	(void)snprintf(p->run, sizeof(p->run), "%s/run", p->top);
	if (mkdir(p->state, 0700) < 0 || mkdir(p->run, 0700) < 0)
		abort();
	p->d = (struct sb_dirs){ .state = p->state, .run = p->run };
}
static inline void place_done(struct place *p)
{
	if (sb_rmtree(AT_FDCWD, p->top) < 0)
		abort();
}

#endif
