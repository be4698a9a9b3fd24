/* Mounts, image and quotas of a plan. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/kernfs.h"
#include "plan_make_i.h"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* Canonical path and identity of an existing directory or regular file. */
static int locate(const char *what, const char *path, char **ret, struct stat *st,
		  struct sb_err *err)
{
	char real[PATH_MAX];
	sb_autofd int fd = -1;
	char *copy;

	if (!realpath(path, real))
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, path, strerror(errno));
	for (const char *c = real; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return sb_err_set(err, -EINVAL,
					  "%s \"%.300s\": its path holds control characters", what,
					  path);
	fd = open(real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, real, strerror(errno));
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return sb_err_set(err, -EINVAL,
				  "%s \"%.300s\": neither a directory nor a regular file", what,
				  real);
	if (sb_kernfs_check(fd) < 0)
		return sb_err_set(err, -EACCES,
				  "%s \"%.300s\": a file system of the kernel (like /proc and /sys) "
				  "cannot be shared", what, real);
	if (faccessat(AT_FDCWD, real, S_ISDIR(st->st_mode) ? R_OK | X_OK : R_OK, AT_EACCESS) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": you may not read it: %s", what,
				  real, strerror(errno));
	copy = strdup(real);
	if (!copy)
		return oom(err);
	*ret = copy;
	return 0;
}

/* Our own directories may not be inside a mount, nor a mount inside them. */
static int check_state_dirs(const char *path, const struct sb_dirs *d, struct sb_err *err)
{
	const char *const own[] = { d->config, d->state, d->cache, d->run };

	if (strcmp(path, "/") == 0)
		return sb_err_set(err, -EINVAL,
				  "the whole file system cannot be shared: choose a folder");
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++) {
		if (sb_path_within(own[i], path) || sb_path_within(path, own[i]))
			return sb_err_set(err, -EINVAL,
					  "\"%.200s\" cannot be shared: it holds or lies in sendbox's "
					  "own state (%.200s); share a subfolder, or set SENDBOX_HOME "
					  "elsewhere",
					  path, own[i]);
	}
	return 0;
}

/* The namespace runtime shares a folder with all that is mounted in it; the file server of a
 * micro-VM refuses such a place by itself. */
static int check_beneath(const struct sb_plan *p, const char *real, struct sb_err *err)
{
	char at[512];
	int r;

	if (p->provider != SB_PROVIDER_NAMESPACE)
		return 0;
	r = sb_kernfs_below(real, at, sizeof(at));
	if (r < 0)
		return sb_err_set(err, r, "cannot read /proc/self/mountinfo: %s", strerror(-r));
	if (r > 0)
		return sb_err_set(err, -EACCES,
				  "\"%.200s\" cannot be shared: a file system of the kernel is "
				  "mounted at %.300s; unmount it, share a subfolder, or use "
				  "--runtime microvm", real, at);
	return 0;
}

static int add_mount(struct sb_plan *p, const char *what, const char *host, const char *guest,
		     enum sb_mount_mode mode, const struct sb_dirs *d, struct stat *ret_st,
		     struct sb_err *err)
{
	struct sb_plan_mount *m;
	char norm[SB_PLAN_MAX_PATH + 1];
	struct stat st;
	char *real = NULL;
	int r = locate(what, host, &real, &st, err);

	if (r == 0)
		r = check_state_dirs(real, d, err);
	if (r == 0 && sb_path_normalise(guest ? guest : real, norm) < 0)
		r = sb_err_set(err, -EINVAL,
			       "mount target \"%.300s\": must be an absolute path without \"..\"",
			       guest);
	if (r == 0)
		r = check_beneath(p, real, err);
	if (r == 0 && p->n_mounts == SB_PLAN_MAX_MOUNTS)
		r = sb_err_set(err, -EINVAL, "too many mounts: at most %d", SB_PLAN_MAX_MOUNTS);
	if (r < 0) {
		free(real);
		return r;
	}
	m = &p->mounts[p->n_mounts];
	*m = (struct sb_plan_mount){ .host = real,
				     .guest = strdup(norm),
				     .mode = mode,
				     .file = S_ISREG(st.st_mode),
				     .dev = st.st_dev,
				     .ino = st.st_ino };
	if (!m->guest) {
		free(real);
		return oom(err);
	}
	p->n_mounts++;
	if (ret_st)
		*ret_st = st;
	return 0;
}

/* HOST:GUEST[:ro|rw], where HOST itself may not hold a colon. */
static int parse_mount(struct sb_plan *p, const char *spec, const struct sb_dirs *d,
		       struct sb_err *err)
{
	sb_autofree char *copy = strdup(spec);
	enum sb_mount_mode mode = SB_MOUNT_RO;
	char *guest;
	char *word;

	if (!copy)
		return oom(err);
	guest = strchr(copy, ':');
	if (guest) {
		*guest++ = '\0';
		word = strchr(guest, ':');
		if (word) {
			*word++ = '\0';
			if (strcmp(word, "rw") == 0)
				mode = SB_MOUNT_RW;
			else if (strcmp(word, "ro") != 0)
				guest = NULL;
		}
	}
	if (!guest || !copy[0] || !guest[0])
		return sb_err_set(err, -EINVAL,
				  "--mount \"%.300s\": must be HOST:GUEST, HOST:GUEST:ro or "
				  "HOST:GUEST:rw",
				  spec);
	return add_mount(p, "mount source", copy, guest, mode, d, NULL, err);
}

static int by_guest(const void *a, const void *b)
{
	return strcmp(((const struct sb_plan_mount *)a)->guest,
		      ((const struct sb_plan_mount *)b)->guest);
}

int plan_set_mounts(struct sb_plan *p, const struct run_options *o, const struct sb_dirs *d,
		    struct stat *project, struct sb_err *err)
{
	int r;

	p->mounts = calloc(SB_PLAN_MAX_MOUNTS, sizeof(*p->mounts));
	if (!p->mounts)
		return oom(err);
	r = add_mount(p, o->project ? "--project" : "the current folder",
		      o->project ? o->project : ".", NULL, SB_MOUNT_RW, d, project, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(project->st_mode))
		return sb_err_set(err, -ENOTDIR, "--project \"%.300s\": not a directory",
				  o->project);
	p->cwd = strdup(p->mounts[0].guest);
	if (!p->cwd)
		return oom(err);
	for (size_t i = 0; i < o->n_mounts; i++) {
		r = parse_mount(p, o->mounts[i], d, err);
		if (r < 0)
			return r;
	}
	qsort(p->mounts, p->n_mounts, sizeof(*p->mounts), by_guest);
	return 0;
}

int plan_set_image(struct sb_plan *p, const struct run_options *o, const struct sb_dirs *d,
		   struct sb_err *err)
{
	struct stat st;
	int r;

	if (!o->image || strcmp(o->image, "host") == 0) {
		p->image = SB_IMAGE_HOST;
		return 0;
	}
	p->image = SB_IMAGE_DIR;
	r = locate("image", o->image + 4, &p->image_path, &st, err);
	if (r == 0)
		r = check_state_dirs(p->image_path, d, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return sb_err_set(err, -ENOTDIR, "image \"%.300s\": not a directory",
				  p->image_path);
	p->image_dev = st.st_dev;
	p->image_ino = st.st_ino;
	return 0;
}

/*
 * A guest must not be able to fill the host's disk: unless told otherwise, what a session may add
 * to a shared folder is half of what is free when the plan is made.
 */
void plan_set_quotas(struct sb_plan *p, const struct run_options *o)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		struct sb_plan_mount *m = &p->mounts[i];
		struct statvfs v;

		if (m->mode != SB_MOUNT_RW)
			continue;
		m->quota_bytes = o->quota_bytes;
		m->quota_inodes = o->quota_files;
		if (statvfs(m->host, &v) < 0)
			continue;
		if (m->quota_bytes == 0)
			m->quota_bytes = SB_MAX((uint64_t)v.f_bavail * v.f_frsize / 2, 1U);
		if (m->quota_inodes == 0 && v.f_files > 0) /* some file systems have no limit */
			m->quota_inodes = SB_MAX((uint64_t)v.f_favail / 2, 1U);
	}
}
