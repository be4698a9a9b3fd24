/*
 * Theory of operation.
 *
 * Two tmpfs make the writable world. `upper` is as large as the plan's disk and holds one folder
 * for each place that the workload may write (/tmp, /var/tmp, HOME, /run/user/UID, /dev/shm), so
 * that together they cannot take more than the plan says; it is attached to a folder of the old
 * root and goes out of sight with it. `root` is a small tmpfs with the skeleton (or an overlay over
 * an image directory or layers, see overlay.c); the tmpfs becomes read-only as soon as it is
 * complete. Over layers, and with changes that outlive the session, /tmp, /var/tmp and HOME are
 * folders of the overlay; then only /run and /dev/shm lie in `upper`. Everything else is mounted onto it by descriptor: no path is resolved twice,
 * no symbolic link is followed, and a mount point is made only on file systems made here, never
 * on one that belongs to the host.
 */
#include "rootfs/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define ROOT_SIZE "16777216" /* bytes; the skeleton is a few pages */
#define ROOT_INODES "8192"
#define MIN_INODES 16384U
#define MAX_INODES (4U << 20)
#define BYTES_PER_INODE 4096U
#define OTHER_SIZE (1ULL << 30)

void sb_rootfs_init(struct sb_rootfs *r, const struct sb_plan *plan)
{
	memset(r, 0, sizeof(*r));
	r->plan = plan;
	r->image = -1;
	r->disk = -1;
	for (size_t i = 0; i < SB_PLAN_MAX_LAYERS; i++)
		r->layers[i] = -1;
	r->etc = -1;
	r->upper = -1;
	r->root = -1;
	for (size_t i = 0; i < SB_PLAN_MAX_MOUNTS; i++)
		r->mounts[i] = -1;
}

void sb_rootfs_done(struct sb_rootfs *r)
{
	sb_fd_close(&r->image);
	sb_fd_close(&r->disk);
	for (size_t i = 0; i < SB_PLAN_MAX_LAYERS; i++)
		sb_fd_close(&r->layers[i]);
	sb_fd_close(&r->etc);
	sb_fd_close(&r->upper);
	sb_fd_close(&r->root);
	for (size_t i = 0; i < SB_PLAN_MAX_MOUNTS; i++)
		sb_fd_close(&r->mounts[i]);
}

static bool is_ours(const struct sb_rootfs *r, const struct stat *st)
{
	struct stat own;

	if (r->root >= 0 && fstat(r->root, &own) == 0 && own.st_dev == st->st_dev)
		return true;
	return r->upper >= 0 && fstat(r->upper, &own) == 0 && own.st_dev == st->st_dev;
}

/* Make @name in @dir; what lies in a folder of the user belongs to the user. */
static int make_missing(const struct sb_rootfs *r, int dir, const char *name, bool file)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return -errno;
	if (!is_ours(r, &st))
		return -EROFS;
	if (file) {
		sb_autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		if (fd < 0)
			return -errno;
	} else if (mkdirat(dir, name, 0755) < 0) {
		return -errno;
	}
	if (st.st_uid == r->plan->uid && r->plan->uid != 0 &&
	    fchownat(dir, name, r->plan->uid, r->plan->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int walk(const struct sb_rootfs *r, const char *path, bool file, int *ret)
{
	sb_autofd int at = -1;
	const char *p = path;
	int e;

	e = sb_mnt_open(r->root, path, file ? 0 : O_DIRECTORY, ret);
	if (e != -ENOENT)
		return e;
	at = fcntl(r->root, F_DUPFD_CLOEXEC, 3);
	if (at < 0)
		return -errno;
	while (*p) {
		char name[256];
		size_t len = strcspn(p, "/");
		bool last = p[len] == '\0';
		bool as_file = last && file;
		int next = -1;

		if (len >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, p, len);
		name[len] = '\0';
		e = sb_mnt_open(at, name, as_file ? 0 : O_DIRECTORY, &next);
		if (e == -ENOENT) {
			e = make_missing(r, at, name, as_file);
			if (e == 0)
				e = sb_mnt_open(at, name, as_file ? 0 : O_DIRECTORY, &next);
		}
		if (e < 0)
			return e;
		sb_fd_close(&at);
		at = next;
		p += len + (last ? 0 : 1);
	}
	*ret = sb_fd_take(&at);
	return 0;
}

int sb_root_dir(const struct sb_rootfs *r, const char *path, int *ret)
{
	return walk(r, path, false, ret);
}

int sb_root_file(const struct sb_rootfs *r, const char *path, int *ret)
{
	return walk(r, path, true, ret);
}

int sb_root_put(int dir, const char *name, const char *text, size_t len, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	sb_autofd int fd = openat(dir, name, flags, mode);

	if (fd < 0 && errno == EEXIST) {
		if (unlinkat(dir, name, 0) < 0)
			return -errno;
		fd = openat(dir, name, flags, mode);
	}
	if (fd < 0)
		return -errno;
	return sb_fd_write_all(fd, text, len);
}

/* Why @path cannot be mounted on, for people. */
static int mount_point_error(struct sb_err *err, const char *path, int e)
{
	switch (e) {
	case -EROFS:
	case -EACCES:
		return sb_err_set(err, e,
				  "cannot mount at %s: this mount point does not exist and cannot be "
				  "made inside another mount or the image; create it first", path);
	case -ELOOP:
		return sb_err_set(err, e, "cannot mount at %s: the path passes through a symbolic "
				  "link; name the real place", path);
	case -ENOTDIR:
		return sb_err_set(err, e, "cannot mount at %s: a part of the path is not a directory",
				  path);
	default:
		return sb_err_set(err, e, "cannot mount at %s: %s", path, strerror(-e));
	}
}

static int step(struct sb_err *err, int e, const char *what)
{
	if (e >= 0)
		return 0;
	return sb_err_set(err, e, "cannot set up the root file system: %s: %s", what, strerror(-e));
}

static int new_tmpfs(const char *size, const char *inodes, int *ret)
{
	const struct sb_mnt_opt opts[] = {
		{ "size", size },
		{ "nr_inodes", inodes },
		{ "mode", "0755" },
	};

	return sb_mnt_new("tmpfs", opts, SB_ARRAY_LEN(opts), SB_MNT_SAFE, ret);
}

/* With changes that go elsewhere only /run and /dev/shm are left. */
static uint64_t memory_for(const struct sb_plan *p)
{
	if (p->upper.kind == SB_UPPER_TMPFS)
		return p->disk_bytes;
	return p->memory_bytes ? p->memory_bytes / 4 : SB_MIN(p->disk_bytes, OTHER_SIZE);
}

static int make_upper(struct sb_rootfs *r, const char *base)
{
	static const struct {
		const char *name;
		mode_t mode;
		bool own; /* by the workload's user */
	} dirs[] = {
		{ "root", 0755, false },  { "lower", 0755, false }, { "tmp", 01777, false },
		{ "vartmp", 01777, false },
		{ "shm", 01777, false },  { "home", 0700, true },   { "run", 0700, true },
		{ "allrun", 0755, false },
	};
	const struct sb_plan *p = r->plan;
	uint64_t bytes = memory_for(p);
	uint64_t n = bytes / BYTES_PER_INODE;
	char size[32];
	char inodes[32];
	int e;

	n = SB_MAX(n, MIN_INODES);
	n = SB_MIN(n, MAX_INODES);
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	(void)snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)n);
	e = new_tmpfs(size, inodes, &r->upper);
	if (e == 0)
		e = sb_mnt_attach_path(r->upper, AT_FDCWD, base);
	for (size_t i = 0; e == 0 && i < SB_ARRAY_LEN(dirs); i++) {
		if (mkdirat(r->upper, dirs[i].name, dirs[i].mode) < 0)
			e = -errno;
		else if (dirs[i].own && fchownat(r->upper, dirs[i].name, p->uid, p->gid, 0) < 0)
			e = -errno;
	}
	return e;
}

int sb_rootfs_skeleton(int usr, int at, const char *prefix)
{
	static const char *const dirs[] = {
		"usr", "etc", "proc", "sys", "dev", "tmp", "run", "home", "mnt", "opt", "srv", "var",
		"var/tmp", "var/lib", "var/cache", "var/log", "run/lock", "run/user",
	};
	static const char *const links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
	char path[64];
	struct stat st;

	for (size_t i = 0; i < SB_ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", prefix, dirs[i]);
		if (mkdirat(at, path, 0755) < 0)
			return -errno;
	}
	(void)snprintf(path, sizeof(path), "%sroot", prefix);
	if (mkdirat(at, path, 0700) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "%svar/run", prefix);
	if (symlinkat("/run", at, path) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "%svar/lock", prefix);
	if (symlinkat("/run/lock", at, path) < 0)
		return -errno;
	for (size_t i = 0; i < SB_ARRAY_LEN(links); i++) {
		char to[16];

		if (fstatat(usr, links[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)snprintf(to, sizeof(to), "usr/%s", links[i]);
		(void)snprintf(path, sizeof(path), "%s%s", prefix, links[i]);
		if (symlinkat(to, at, path) < 0)
			return -errno;
	}
	return 0;
}

/* The skeleton with the host's /usr, and nothing else. */
static int make_skeleton(struct sb_rootfs *r)
{
	int e = new_tmpfs(ROOT_SIZE, ROOT_INODES, &r->root);

	if (e == 0)
		e = sb_mnt_attach_path(r->root, r->upper, "root");
	if (e == 0)
		e = sb_rootfs_skeleton(r->image, r->root, "");
	if (e == 0)
		e = sb_mnt_restrict(r->image, SB_MNT_SAFE | MOUNT_ATTR_RDONLY, true);
	return e < 0 ? e : sb_mnt_attach_path(r->image, r->root, "usr");
}

static int put_upper(const struct sb_rootfs *r, const char *from, const char *to, uint64_t attrs)
{
	sb_autofd int tree = -1;
	sb_autofd int at = -1;
	int e;

	e = sb_root_dir(r, to, &at);
	if (e == 0)
		e = sb_mnt_clone(r->upper, from, SB_MNT_SAFE | attrs, &tree);
	return e < 0 ? e : sb_mnt_attach(tree, at);
}

/* What of the overlay the workload works in, and what must not outlive the session. */
static int put_places(const struct sb_rootfs *r, const char *run, struct sb_err *err)
{
	const char *at = "";
	int e = step(err, put_upper(r, "run", run, 0), "/run/user");

	if (e == 0)
		e = step(err, put_upper(r, "shm", "dev/shm", 0), "/dev/shm");
	if (e < 0)
		return e;
	e = sb_rootfs_places(r, &at);
	return e < 0 ? mount_point_error(err, at, e) : 0;
}

/* /run comes before anything is put there. */
static int put_run(const struct sb_rootfs *r)
{
	static const char *const dirs[] = { "allrun/lock", "allrun/user" };
	int e = 0;

	for (size_t i = 0; e == 0 && i < SB_ARRAY_LEN(dirs); i++)
		if (mkdirat(r->upper, dirs[i], 0755) < 0)
			e = -errno;
	if (e == 0 && fchmodat(r->upper, dirs[0], 01777, 0) < 0)
		e = -errno;
	return e < 0 ? e : put_upper(r, "allrun", "run", 0);
}

static int put_writable(const struct sb_rootfs *r, struct sb_err *err)
{
	const struct sb_plan *p = r->plan;
	char run[64];
	int e;

	(void)snprintf(run, sizeof(run), "run/user/%u", p->uid);
	if (sb_rootfs_is_laid(p))
		return put_places(r, run, err);
	e = step(err, put_upper(r, "tmp", "tmp", 0), "/tmp");
	if (e == 0)
		e = step(err, put_upper(r, "vartmp", "var/tmp", 0), "/var/tmp");
	if (e == 0)
		e = step(err, put_upper(r, "run", run, 0), "/run/user");
	if (e == 0)
		e = step(err, put_upper(r, "shm", "dev/shm", 0), "/dev/shm");
	if (e < 0)
		return e;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (sb_path_within(p->home, p->mounts[i].guest))
			return 0; /* a mount brings HOME */
	e = put_upper(r, "home", p->home + 1, 0);
	return e < 0 ? mount_point_error(err, p->home, e) : 0;
}

/* Kernel interfaces are ours; a mount there would undo what was set up. */
static bool is_reserved(const char *path)
{
	static const char *const taken[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < SB_ARRAY_LEN(taken); i++)
		if (sb_path_within(path, taken[i]))
			return true;
	return strcmp(path, "/") == 0;
}

static int put_mount(struct sb_rootfs *r, size_t i, struct sb_err *err)
{
	const struct sb_plan_mount *m = &r->plan->mounts[i];
	uint64_t attrs = SB_MNT_SAFE | (m->mode == SB_MOUNT_RW ? 0 : MOUNT_ATTR_RDONLY);
	sb_autofd int at = -1;
	struct stat st;
	int e;

	if (is_reserved(m->guest))
		return sb_err_set(err, -EINVAL, "cannot mount at %s: this place is reserved",
				  m->guest);
	e = m->file ? sb_root_file(r, m->guest + 1, &at) : sb_root_dir(r, m->guest + 1, &at);
	if (e < 0)
		return mount_point_error(err, m->guest, e);
	if (m->file && (fstat(at, &st) < 0 || !S_ISREG(st.st_mode)))
		return sb_err_set(err, -EISDIR,
				  "cannot mount the file %s at %s: something else is there",
				  m->host, m->guest);
	e = sb_mnt_restrict(r->mounts[i], attrs, true);
	if (e == 0)
		e = sb_mnt_attach(r->mounts[i], at);
	if (e < 0)
		return mount_point_error(err, m->guest, e);
	sb_fd_close(&r->mounts[i]);
	return 0;
}

int sb_rootfs_build(struct sb_rootfs *r, const char *base, struct sb_err *err)
{
	bool laid = sb_rootfs_is_laid(r->plan);
	bool bare = r->plan->image == SB_IMAGE_HOST && !laid;
	int e;

	e = step(err, make_upper(r, base), "writable layer");
	if (e == 0 && bare)
		e = step(err, make_skeleton(r), "skeleton with /usr");
	else if (e == 0)
		e = step(err, sb_rootfs_overlay(r), "overlay over the image");
	if (e == 0 && laid)
		e = step(err, put_run(r), "/run");
	if (e == 0)
		e = sb_rootfs_etc(r, err);
	if (e == 0)
		e = sb_rootfs_proc(r, err);
	if (e == 0)
		e = sb_rootfs_sys(r, err);
	if (e == 0 && r->vm)
		e = sb_rootfs_cgroup(r, err);
	if (e == 0)
		e = sb_rootfs_dev(r, err);
	if (e == 0)
		e = put_writable(r, err);
	for (size_t i = 0; e == 0 && i < r->plan->n_mounts; i++)
		e = put_mount(r, i, err);
	if (e == 0 && bare)
		e = step(err, sb_mnt_restrict(r->root, MOUNT_ATTR_RDONLY, false), "read-only root");
	sb_fd_close(&r->image);
	sb_fd_close(&r->etc);
	return e;
}

int sb_rootfs_enter(struct sb_rootfs *r, struct sb_err *err)
{
	int e = 0;

	if (fchdir(r->root) < 0) {
		e = -errno;
	} else if (r->vm) { /* the initial root of a kernel cannot be pivoted away: cover it */
		e = sb_mnt_attach_path(r->root, AT_FDCWD, "/");
		if (e == 0 && (fchdir(r->root) < 0 || chroot(".") < 0))
			e = -errno;
	} else if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0) {
		e = -errno;
	}
	if (e == 0 && chdir("/") < 0)
		e = -errno;
	sb_fd_close(&r->disk);
	sb_fd_close(&r->upper);
	sb_fd_close(&r->root);
	return step(err, e, "entering it");
}
