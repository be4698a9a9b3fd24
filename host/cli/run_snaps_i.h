#ifndef SB_HOST_CLI_RUN_SNAPS_I_H
#define SB_HOST_CLI_RUN_SNAPS_I_H
/* Between run_snaps.c (captures) and run_snaps_review.c (guarded paths). */
#include "launch_i.h"
#include "os/loop.h"
#include "snapshot/helper.h"

struct run_snap {
	const struct sb_plan_mount *mount;
	int fd;
	char before[65]; /* id, hex; "" = none */
	char after[65];
	char made[65];   /* in quarantine: has what the session left; "" = nothing is */
	uint64_t guarded;
	char **paths;    /* of them, the first ones; owned */
	size_t n_paths;
	bool unknown; /* it could not be compared */
};
struct run_snaps {
	struct run_snap v[SNAP_TREES_MAX];
	size_t n;
	size_t answered;
	size_t at;      /* that is asked about */
	int sock;
	pid_t pid;
	struct sb_io io;
	char **lines;   /* of guarded paths; owned */
	size_t n_lines;
	uint64_t added;
	uint64_t deleted;
	uint64_t modified;
	uint64_t guarded;
};

/* "keep", "ask" or "quarantine". */
const char *run_snaps_changed(const struct run *r);
/* Show what was changed among the guarded paths, and do as guarded_paths.changed says. */
void run_snaps_review(struct run *r);
/* What folder @i is like now counts as what the session left. */
void run_snaps_again(struct run *r, size_t i);

#endif
