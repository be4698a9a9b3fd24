/* What an agent's session is laid on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run_agent_i.h"

int run_agent_environment(struct run_agent *r, struct sb_err *err)
{
	const char *image = r->opt.image ? r->opt.image : r->agent->image.text;

	if (strcmp(image, "host") == 0 || strncmp(image, "dir:", 4) == 0) {
		r->opt.image = image;
		(void)snprintf(r->environment, sizeof(r->environment), "%s",
			       image[0] == 'h' ? "the host's programs" : image);
		return 0;
	}
	return sb_err_set(err, -EINVAL,
			  "the environment of %.64s (%.200s and its install commands): not available yet; "
			  "with the host's own programs: sendbox run --image host %.64s", r->agent->name,
			  image, r->agent->name);
}
