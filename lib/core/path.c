#include <errno.h>
#include <string.h>

#include "core/plan.h"

int sb_path_normalise(const char *path, char *out)
{
	const char *p = path;
	size_t n = 0;

	if (*p != '/')
		return -EINVAL;
	while (*p) {
		size_t len;

		while (*p == '/')
			p++;
		len = strcspn(p, "/");
		if (len == 0)
			break;
		if (len == 2 && p[0] == '.' && p[1] == '.')
			return -EINVAL;
		if (!(len == 1 && p[0] == '.')) {
			if (len > 255 || n + 1 + len > SB_PLAN_MAX_PATH)
				return -ENAMETOOLONG;
			out[n++] = '/';
			memcpy(out + n, p, len);
			n += len;
		}
		p += len;
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
	return 0;
}

bool sb_path_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1) /* "/" */
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const struct sb_plan_mount *sb_plan_holder(const struct sb_plan *p, const char *path)
{
	const struct sb_plan_mount *found = NULL;

	for (size_t i = 0; i < p->n_mounts; i++)
		if (sb_path_within(path, p->mounts[i].guest) &&
		    (!found || strlen(p->mounts[i].guest) > strlen(found->guest)))
			found = &p->mounts[i];
	return found;
}

bool sb_plan_served(const struct sb_plan *p, size_t i)
{
	if (p->provider == SB_PROVIDER_MICROVM)
		return true;
	for (size_t k = 0; k < p->n_guards; k++)
		if (sb_plan_holder(p, p->guards[k].path) == &p->mounts[i])
			return true;
	return false;
}
