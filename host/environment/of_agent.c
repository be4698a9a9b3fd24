#include "environment/of_agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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

/* On a base that is the host, the host's own programs are there and its packages are not ours. */
static int apt_command(const struct agent_list *l, struct environment_of *ret)
{
	enum { room = 32768 }; /* 128 names of at most 128 bytes and what is around them */
	struct sb_text t = { .cap = room };

	if (l->n == 0 || ret->image.form == IMAGE_FORM_HOST)
		return 0;
	ret->apt = calloc(1, room);
	if (!ret->apt)
		return -ENOMEM;
	t.p = ret->apt;
	sb_text_add(&t, "apt-get update && apt-get install -y --no-install-recommends");
	for (size_t i = 0; i < l->n; i++)
		sb_text_add(&t, " %s", l->v[i].text);
	sb_text_add(&t, " && rm -rf /var/lib/apt/lists/*");
	return 0;
}

/* The words of the steps: the packages first. */
static int steps(const struct agent *a, struct environment_of *ret, struct sb_err *err)
{
	int r = apt_command(&a->packages, ret);

	if (r < 0)
		return sb_err_set(err, r, "out of memory");
	ret->commands[0] = ret->apt;
	return words(&a->install, ret->commands + (ret->apt ? 1 : 0), "installCommands", err);
}

/* Where an image keeps its programs is in its variables; the rest of what the agent is given is not
 * for installing. */
static int variables(struct environment_of *ret)
{
	char *const *of_image = ret->image.env;
	size_t n = 0;

	while (of_image && of_image[n])
		n++;
	ret->env = calloc(n + 2, sizeof(*ret->env));
	if (!ret->env)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ret->env[i] = of_image[i];
	ret->env[n] = "DEBIAN_FRONTEND=noninteractive"; /* nobody answers questions */
	return 0;
}

int environment_of_agent(const struct sb_dirs *d, const struct agent *a, const char *image,
			 bool offline, struct environment_of *ret, struct sb_err *err)
{
	const struct image_want want = { .reference = image ? image : a->image.text,
					 .offline = offline };
	int r;

	memset(ret, 0, sizeof(*ret));
	r = words(&a->health, ret->health, "healthCheck", err);
	if (r == 0)
		r = words(&a->groups, ret->groups, "packageGroups", err);
	if (r == 0)
		r = image_get(d, &want, &ret->image, err);
	if (r == 0)
		r = steps(a, ret, err);
	if (r == 0 && variables(ret) < 0)
		r = sb_err_set(err, -ENOMEM, "out of memory");
	ret->what = (struct environment_what){
		.agent = a->name,
		.base = &ret->image,
		.commands = ret->commands,
		.health = a->health.n > 0 ? ret->health : NULL,
		.env = ret->env,
		.groups = a->groups.n > 0 ? ret->groups : NULL,
	};
	return r;
}

void environment_of_done(struct environment_of *e)
{
	image_done(&e->image);
	free(e->apt);
	free(e->env);
	e->env = NULL;
	e->apt = NULL;
}
