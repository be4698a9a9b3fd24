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
