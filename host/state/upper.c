#include "upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/spawn.h"

static const char *find_mke2fs(void)
{
	static const char *const places[] = { "/usr/sbin/mke2fs", "/sbin/mke2fs", "/usr/local/sbin/mke2fs",
					      "/usr/bin/mke2fs" };

	for (size_t i = 0; i < SB_ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static int run_mke2fs(const char *path, struct sb_err *err)
{
	const char *exe = find_mke2fs();
	/* without discard: the file has no blocks yet, and none are to be asked for */
	const char *const argv[] = { "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E",
				     "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0",
				     path, NULL };
	const char *const env[] = { "MKE2FS_SYNC=0", "E2FSPROGS_FAKE_TIME=", NULL };
	pid_t pid;
	int status = 0;
	int r;

	if (!exe)
		return sb_err_set(err, -ENOENT, "mke2fs is not installed: install the package e2fsprogs");
	r = sb_spawn_start(&(struct sb_spawn){ .path = exe, .argv = argv, .env = env }, &pid, NULL, err);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return sb_err_set(err, -EIO, "mke2fs could not make %.300s (status %d); is the disk full?",
				  path, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}

static int make_disk(const char *dir, const char *path, uint64_t bytes, struct sb_err *err)
{
	char tmp[SB_PLAN_MAX_PATH + 1];
	sb_autofd int fd = -1;
	int r = snprintf(tmp, sizeof(tmp), "%s/disk.new", dir);

	if (r < 0 || (size_t)r >= sizeof(tmp))
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", dir);
	fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return sb_err_set(err, -errno, "%.300s: %s", tmp, strerror(errno));
	r = run_mke2fs(tmp, err);
	if (r == 0 && rename(tmp, path) < 0)
		r = sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno));
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

int upper_make(const char *dir, enum sb_provider_id provider, uint64_t bytes, char *path,
	       enum sb_upper_kind *ret_kind, bool *made, struct sb_err *err)
{
	bool disk = provider == SB_PROVIDER_MICROVM;
	struct stat st;
	int r = snprintf(path, SB_PLAN_MAX_PATH + 1, "%s/%s", dir, disk ? "disk.ext4" : "upper");
	bool there;

	if (r < 0 || r > SB_PLAN_MAX_PATH)
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", dir);
	*ret_kind = disk ? SB_UPPER_DISK : SB_UPPER_DIR;
	there = lstat(path, &st) == 0;
	if (made)
		*made = !there;
	if (there) /* what it is, is looked at when the plan takes it */
		return 0;
	if (errno != ENOENT)
		return sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno));
	if (disk)
		return make_disk(dir, path, bytes ? bytes : UPPER_DISK_BYTES, err);
	return mkdir(path, 0700) < 0 ? sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno)) : 0;
}
