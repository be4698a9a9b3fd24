#ifndef SB_HOST_CLI_BANNER_H
#define SB_HOST_CLI_BANNER_H
/* What a person sees before an agent starts: who, where, with what, and what it may reach. Pure. */
#include "agent/agent.h"
#include "base/buf.h"
#include "core/plan.h"

struct banner_mount {
	const char *shown; /* host path or "~/..." */
	const char *guest;
	const char *note;  /* "copy", "live", "not there: left out", ...; "" = none */
	bool read_only;
	bool loud;
};
struct banner {
	const struct agent *agent;
	const char *instance;
	const char *environment; /* "the host's programs", "built 3 days ago", "not yet installed" */
	const struct sb_plan *plan;
	const struct banner_mount *mounts;
	size_t n_mounts;
	unsigned int width; /* columns; less than 20 counts as 20 */
	bool colour;
};
/* Lines ending with "\n", each at most @width columns as far as words can be broken. */
void banner_write(const struct banner *b, struct sb_buf *out);

#endif
