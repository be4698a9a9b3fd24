#include "provider/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int sb_layer_open(const struct sb_plan_layer *l, int *ret, struct sb_err *err)
{
	sb_autofd int fd = open(l->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "layer %s: %s", l->path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_dev != l->dev || st.st_ino != l->ino ||
	    (uint64_t)st.st_size != l->size || ns_of(st.st_ctim) != l->ctime_ns)
		return sb_err_set(err, -ESTALE, "layer %s was changed after it was made; nothing "
				  "was started (sendbox cache verify says more)", l->path);
	*ret = sb_fd_take(&fd);
	return 0;
}

int sb_upper_open(const struct sb_plan_upper *u, int *ret, struct sb_err *err)
{
	bool disk = u->kind == SB_UPPER_DISK;
	sb_autofd int fd = open(u->path, (disk ? O_RDWR : O_RDONLY | O_DIRECTORY) | O_NOFOLLOW |
						 O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "upper layer %s: %s", u->path, strerror(errno));
	if ((disk && !S_ISREG(st.st_mode)) || st.st_dev != u->dev || st.st_ino != u->ino)
		return sb_err_set(err, -ESTALE, "upper layer %s was replaced after the plan was "
				  "made; nothing was started", u->path);
	*ret = sb_fd_take(&fd);
	return 0;
}
