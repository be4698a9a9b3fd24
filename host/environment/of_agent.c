#include "environment/of_agent.h"

#include <errno.h>
#include <string.h>

static int words(const struct agent_list *l, const char **out, const char *what,
		 struct sb_err *err)
{
	if (l->n > ENVIRONMENT_MAX_WORDS)
		return sb_err_set(err, -E2BIG, "%s: more than %d", what, ENVIRONMENT_MAX_WORDS);
	for (size_t i = 0; i < l->n; i++)
		out[i] = l->v[i].text;
	out[l->n] = NULL;
	return 0;
}

int environment_of_agent(const struct sb_dirs *d, const struct agent *a, const char *image,
			 bool offline, struct environment_of *ret, struct sb_err *err)
{
	/* nobody answers questions; the rest of what the agent is given is not for installing */
	static const char *const env[] = { "DEBIAN_FRONTEND=noninteractive", NULL };
	const struct image_want want = { .reference = image ? image : a->image.text,
					 .offline = offline };
	int r;

	memset(ret, 0, sizeof(*ret));
	r = words(&a->install, ret->commands, "installCommands", err);
	if (r == 0)
		r = words(&a->health, ret->health, "healthCheck", err);
	if (r == 0)
		r = words(&a->groups, ret->groups, "packageGroups", err);
	if (r == 0)
		r = image_get(d, &want, &ret->image, err);
	ret->what = (struct environment_what){
		.agent = a->name,
		.base = &ret->image,
		.commands = ret->commands,
		.health = a->health.n > 0 ? ret->health : NULL,
		.env = env,
		.groups = a->groups.n > 0 ? ret->groups : NULL,
	};
	return r;
}

void environment_of_done(struct environment_of *e)
{
	image_done(&e->image);
}
