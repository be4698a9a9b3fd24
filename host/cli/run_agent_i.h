#ifndef SB_HOST_CLI_RUN_AGENT_I_H
#define SB_HOST_CLI_RUN_AGENT_I_H
/* Inside of an agent's run. */
#include <limits.h>

#include "agent/settings.h"
#include "banner.h"
#include "conf_load.h"
#include "environment/of_agent.h"
#include "instance_base.h"
#include "run_agent.h"

#define RUN_AGENT_MOUNTS 32

struct run_agent {
	struct run_options opt; /* as given, and what the definition makes of it */
	struct cli_dirs dirs;
	struct conf conf;       /* without the definition: which agent, which files count */
	struct problems problems;
	struct agent *agent;
	struct agent_layer layer;
	struct settings settings;
	struct own_mount own[RUN_AGENT_MOUNTS];
	struct environment_of of;       /* what its environment is made of */
	struct environment_ready ready; /* its layers */
	const struct instance *was;     /* resumed: as it was; borrowed; else NULL */
	struct instance_base base;      /* what it was made from */
	struct launch_target target;
	const char **argv;
	char guest_home[64];
	char instance[128];
	char settings_dir[PATH_MAX]; /* "" = none */
	char environment[160];       /* for the banner */
	struct banner_mount mounts[RUN_AGENT_MOUNTS];
	size_t n_mounts;
	struct arena arena; /* texts of the above */
};

/* Copies of the settings, and what is shared. Return: 0; -errno with text. */
SB_MUST_CHECK int run_agent_settings(struct run_agent *r, struct sb_err *err);
/* Whoever owns the project owns what is made for a session of it. */
void run_agent_owner(const struct run_agent *r, struct settings_where *w);
/* Folders of package managers, in <cache>/RUN_AGENT_CACHES/AGENT/WORKSPACE. Return: 0; -errno with text. */
#define RUN_AGENT_CACHES "packages"
SB_MUST_CHECK int run_agent_caches(struct run_agent *r, struct sb_err *err);
/* What the session changed is told, or removed with it. */
void run_agent_review(struct run_agent *r);
/* Whether a session works on the copies of @instance now. */
bool run_agent_settings_used(const struct sb_dirs *d, const char *instance);
/* The folder of an instance's copies. */
int run_agent_settings_dir(const struct sb_dirs *d, const char *instance, char out[PATH_MAX]);
/* Remove the copies of @instance, or let them be @to's. Return: 0, also without any; -errno. */
SB_MUST_CHECK int run_agent_settings_remove(const struct sb_dirs *d, const char *instance);
SB_MUST_CHECK int run_agent_settings_rename(const struct sb_dirs *d, const char *from, const char *to);
/* Remove copies that no instance has; @ret grows by their number. Return: 0; -errno with text. */
SB_MUST_CHECK int run_agent_settings_gc(const struct sb_dirs *d, struct state *s, size_t *ret,
					struct sb_err *err);
/* Layers and upper of the session. */
SB_MUST_CHECK int run_agent_environment(struct run_agent *r, struct sb_err *err);
void run_agent_environment_done(struct run_agent *r);
/* The banner, when somebody sees it. */
void run_agent_banner(void *arg, const struct sb_plan *plan);

#endif
