#include "provider/executable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/microvm/cache.h"

static int open_program(const char *path, const char *cache, uint8_t sha[SB_SHA256_LEN],
			struct stat *st, struct sb_err *err)
{
	sb_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r;

	if (fd < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	r = sb_cache_sha256(cache, fd, sha, st);
	if (r == -EINVAL)
		return sb_err_set(err, r, "%s: not a regular file", path);
	if (r < 0)
		return sb_err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	return sb_fd_take(&fd);
}

static int make_role(const char *name, char out[64])
{
	int n = snprintf(out, 64, SB_EXE_ROLE "%s", name);

	return n < 0 || n >= 64 ? -ENAMETOOLONG : 0;
}

int sb_exe_add(struct sb_plan *p, const char *cache, const char *name, const char *path,
	       struct sb_err *err)
{
	uint8_t sha[SB_SHA256_LEN];
	sb_autofd int fd = -1;
	char real[PATH_MAX];
	char role[64];
	int r = make_role(name, role);

	if (r == 0 && !realpath(path, real))
		r = -errno;
	if (r < 0)
		return sb_err_set(err, r, "cannot find %s: %s", path, strerror(-r));
	fd = open_program(real, cache, sha, NULL, err);
	if (fd < 0)
		return fd;
	r = sb_plan_add_part(p, role, real, sha);
	return r < 0 ? sb_err_set(err, r, "part %s: %s", role, strerror(-r)) : 0;
}

int sb_exe_open(const struct sb_plan *p, const char *cache, const char *name,
		const char **ret_path, struct stat *ret_st, struct sb_err *err)
{
	const struct sb_plan_part *part;
	uint8_t sha[SB_SHA256_LEN];
	sb_autofd int fd = -1;
	char role[64];

	part = make_role(name, role) == 0 ? sb_plan_find_part(p, role) : NULL;
	if (!part)
		return sb_err_set(err, -ENOENT, "the plan has no program %.60s", name);
	fd = open_program(part->path, cache, sha, ret_st, err);
	if (fd < 0)
		return fd;
	if (memcmp(sha, part->sha256, sizeof(sha)) != 0)
		return sb_err_set(err, -ESTALE,
				  "%s is not the program of the plan: it was replaced after the plan "
				  "was made; nothing was started", part->path);
	if (ret_path)
		*ret_path = part->path;
	return sb_fd_take(&fd);
}
