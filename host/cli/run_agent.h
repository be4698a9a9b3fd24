#ifndef SB_HOST_CLI_RUN_AGENT_H
#define SB_HOST_CLI_RUN_AGENT_H
/* `sendbox run AGENT`: from a definition to one launch. */
#include "agent/agent.h"
#include "launch.h"

struct instance;

/*
 * run_agent - @o->agent names the agent, or "" = the one that the configuration names
 * @kept: the options as JSON, for a new instance; or NULL
 * @was: the instance of @o->name, resumed; NULL = a new one
 * Return: as launch; without a session @ret->fail and @ret->text say why.
 */
SB_MUST_CHECK int run_agent(const struct run_options *o, const char *kept,
			    const struct instance *was, struct launch_result *ret,
			    struct sb_err *err);
/* What the definition says to the configuration, as a run of this caller would have it. Return: 0;
 * -errno. */
SB_MUST_CHECK int run_agent_layer(const struct agent *a, struct agent_layer *ret);
/* Whether the word is an agent's name; without a folder of the configuration the built-in ones. */
bool run_agent_known(const char *word);

struct sb_dirs;
/* A line about what the session of @instance has changed in its copies of settings, if it has any. */
void run_agent_settings_tell(const struct sb_dirs *d, const char *instance);

#endif
