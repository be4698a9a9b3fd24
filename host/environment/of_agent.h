#ifndef SB_HOST_ENVIRONMENT_OF_AGENT_H
#define SB_HOST_ENVIRONMENT_OF_AGENT_H
/* The environment that an agent's definition asks for. */
#include "agent/agent.h"
#include "environment/environment.h"

#define ENVIRONMENT_MAX_WORDS 256

struct environment_of { /* texts are the agent's; the image is owned */
	struct image image;
	struct environment_what what; /* points into this */
	char *apt; /* owned: the command for systemPackages, or NULL */
	const char *commands[ENVIRONMENT_MAX_WORDS + 2];
	const char *health[ENVIRONMENT_MAX_WORDS + 1];
	const char *groups[ENVIRONMENT_MAX_WORDS + 1];
	const char **env; /* owned, its items are not */
};

/*
 * environment_of_agent - get the base image and say what is to be installed on it
 * @image: instead of the definition's, or NULL
 * @ret: zeroed by this; runtime, accel and the like are the caller's to fill in
 * Return: 0; as image_get.
 */
SB_MUST_CHECK int environment_of_agent(const struct sb_dirs *d, const struct agent *a,
				       const char *image, bool offline,
				       struct environment_of *ret, struct sb_err *err);
void environment_of_done(struct environment_of *e);

#endif
