#ifndef SB_HOST_CLI_SNAPS_PRUNE_H
#define SB_HOST_CLI_SNAPS_PRUNE_H
/* `sendbox snapshot prune`: which old snapshots go, told first or recorded and done. */
#include "snaps.h"

struct snaps_prune {
	bool all;    /* of every folder, not the current one's alone */
	bool dry;    /* tell alone */
	bool manual; /* those made by hand, too */
	uint64_t keep;      /* the newest of each folder stay */
	uint64_t before_ns; /* only those that are older; 0 = any */
};
/* Return: 0; -errno with the text. */
SB_MUST_CHECK int snaps_prune(const struct cli_dirs *d, const struct snaps_prune *p, struct sb_err *err);

#endif
