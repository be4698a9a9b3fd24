/*
 * Theory of operation: the root file system over image folders and layers.
 *
 * Lower layers are attached in folders of the tmpfs that goes out of sight, so that the options of
 * the overlay are short relative names: the image (or, for the host's /usr, the skeleton) is the
 * lowest, the plan's layers lie over it. What the workload changes goes to `over` with `work` beside
 * it: of the disk or folder that outlives the session, else of the tmpfs.
 *
 * The host's /usr is a file system of its own, which an overlay does not look into; so it gets a
 * second overlay with the layers' own `usr` over it, and its changes go to `usr`.
 *
 * Renames of folders must be plain ones (no redirect_dir, no metacopy): the upper layer is exported
 * without the lower ones at hand. The upper layer's own top folders are made by the guest; that they
 * are folders and no links is checked, as an earlier session was root of that disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "rootfs/rootfs.h"

#define LOWERS (SB_PLAN_MAX_LAYERS + 1)
#define DISK "disk"

bool sb_rootfs_is_laid(const struct sb_plan *p)
{
	/* an export looks at the upper layer from outside */
	return p->n_layers > 0 ||
	       (p->upper.kind != SB_UPPER_TMPFS && p->task != SB_TASK_EXPORT);
}

static bool is_dir(int at, const char *path)
{
	struct stat st;

	return fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int make_dir(int at, const char *path, mode_t mode)
{
	if (mkdirat(at, path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return is_dir(at, path) ? 0 : -ENOTDIR;
}

/* Mount @tree at @name of the tmpfs, read-only. */
static int put_lower(const struct sb_rootfs *r, int *tree, const char *name)
{
	int e = make_dir(r->upper, name, 0755);

	if (e == 0)
		e = sb_mnt_restrict(*tree, SB_MNT_SAFE | MOUNT_ATTR_RDONLY, true);
	if (e == 0)
		e = sb_mnt_attach_path(*tree, r->upper, name);
	if (e == 0)
		sb_fd_close(tree);
	return e;
}

static void lower_name(size_t i, const char *below, char *out, size_t cap)
{
	(void)snprintf(out, cap, "l%zu%s%s", i, *below ? "/" : "", below);
}

/*
 * Join the folders @below of all layers over @bottom (NULL = none) into "TOP:...:BOTTOM".
 * Return: number of lower layers.
 */
static size_t join(const struct sb_rootfs *r, const char *bottom, const char *below, char *out,
		   size_t cap)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = r->plan->n_layers; i > 0; i--) {
		size_t at = strlen(out);
		char name[32];

		lower_name(i - 1, below, name, sizeof(name));
		if (!is_dir(r->upper, name))
			continue;
		(void)snprintf(out + at, cap - at, "%s%s", n ? ":" : "", name);
		n++;
	}
	if (bottom) {
		size_t at = strlen(out);

		(void)snprintf(out + at, cap - at, "%s%s", n ? ":" : "", bottom);
		n++;
	}
	return n;
}

/* @over, @work: names on the disk, or on the tmpfs without one. */
static int new_overlay(const struct sb_rootfs *r, const char *lower, const char *over,
		       const char *work, int *ret)
{
	const char *top = r->disk >= 0 ? DISK "/" : "";
	char upperdir[32];
	char workdir[32];
	struct sb_mnt_opt opts[6] = { { "lowerdir", lower }, { "upperdir", upperdir },
				      { "workdir", workdir } };
	size_t n = 3;
	int e;

	(void)snprintf(upperdir, sizeof(upperdir), "%s%s", top, over);
	(void)snprintf(workdir, sizeof(workdir), "%s%s", top, work);
	if (r->vm) {
		opts[n++] = (struct sb_mnt_opt){ "redirect_dir", "nofollow" };
		opts[n++] = (struct sb_mnt_opt){ "metacopy", "off" };
	} else { /* which switches both off */
		opts[n++] = (struct sb_mnt_opt){ "userxattr", NULL };
	}
	e = make_dir(r->upper, upperdir, 0755);
	if (e == 0)
		e = make_dir(r->upper, workdir, 0755);
	if (e == 0 && fchdir(r->upper) < 0)
		e = -errno;
	if (e == 0)
		e = sb_mnt_new("overlay", opts, n, SB_MNT_SAFE, ret);
	if (chdir("/") < 0 && e == 0)
		e = -errno;
	return e;
}

/*
 * Folders in which the guest must make entries. Their owner may have no identity in a rootless
 * namespace, so the upper layer brings them, before it is mounted, as our own.
 */
static int own_folders(const struct sb_rootfs *r)
{
	static const char *const dirs[] = { "etc", "var", "home", "run", "sys", "dev", "mnt",
					    "opt" };
	int e = r->vm ? 0 : make_dir(r->upper, r->disk >= 0 ? DISK "/over" : "over", 0755);

	for (size_t i = 0; e == 0 && !r->vm && i < SB_ARRAY_LEN(dirs); i++) {
		char lower[256];
		char path[32];

		if (join(r, NULL, dirs[i], lower, sizeof(lower)) == 0) {
			(void)snprintf(path, sizeof(path), "lower/%s", dirs[i]);
			if (!is_dir(r->upper, path))
				continue;
		}
		(void)snprintf(path, sizeof(path), "%sover/%s", r->disk >= 0 ? DISK "/" : "",
			       dirs[i]);
		e = make_dir(r->upper, path, 0755);
	}
	return e;
}

static int attach_all(struct sb_rootfs *r)
{
	bool host = r->plan->image == SB_IMAGE_HOST;
	int e = 0;

	if (r->disk >= 0) {
		e = make_dir(r->upper, DISK, 0755);
		if (e == 0)
			e = sb_mnt_attach_path(r->disk, r->upper, DISK);
	}
	if (e == 0 && r->image >= 0)
		e = put_lower(r, &r->image, host ? "usrlower" : "lower");
	for (size_t i = 0; e == 0 && i < r->plan->n_layers; i++) {
		char name[32];

		lower_name(i, "", name, sizeof(name));
		e = put_lower(r, &r->layers[i], name);
	}
	return e;
}

/* The same for a builder's folders in the host's /usr, for what is installed locally. */
static int own_local(const struct sb_rootfs *r)
{
	static const char *const dirs[] = { "local", "local/bin", "local/sbin", "local/lib",
					    "local/share", "local/include", "local/etc" };
	const char *top = r->disk >= 0 ? DISK "/" : "";
	char path[48];
	int e = 0;

	(void)snprintf(path, sizeof(path), "%susr", top);
	if (!r->vm && !r->root_mapped && r->plan->builder)
		e = make_dir(r->upper, path, 0755);
	for (size_t i = 0; e == 0 && !r->vm && !r->root_mapped && r->plan->builder &&
			   i < SB_ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "usrlower/%s", dirs[i]);
		if (!is_dir(r->upper, path))
			continue;
		(void)snprintf(path, sizeof(path), "%susr/%s", top, dirs[i]);
		e = make_dir(r->upper, path, 0755);
	}
	return e;
}

/* The layers' /usr over the host's. */
static int put_usr(struct sb_rootfs *r)
{
	sb_autofd int tree = -1;
	char lower[256];
	size_t n = join(r, "usrlower", "usr", lower, sizeof(lower));
	int e;

	e = own_local(r);
	if (e < 0)
		return e;
	if (n > 1 || r->disk >= 0)
		e = new_overlay(r, lower, "usr", "usrwork", &tree);
	else
		e = sb_mnt_clone(r->upper, "usrlower", SB_MNT_SAFE | MOUNT_ATTR_RDONLY, &tree);
	return e < 0 ? e : sb_mnt_attach_path(tree, r->root, "usr");
}

int sb_rootfs_overlay(struct sb_rootfs *r)
{
	bool host = r->plan->image == SB_IMAGE_HOST;
	char lower[256];
	int e = 0;

	if (host) {
		e = make_dir(r->upper, "lower", 0755);
		if (e == 0)
			e = sb_rootfs_skeleton(r->image, r->upper, "lower/");
	}
	if (e == 0)
		e = attach_all(r);
	if (e == 0)
		e = own_folders(r);
	if (e < 0)
		return e;
	(void)join(r, r->plan->image == SB_IMAGE_LAYERS ? NULL : "lower", "", lower, sizeof(lower));
	e = new_overlay(r, lower, "over", "work", &r->root);
	if (e == 0)
		e = sb_mnt_attach_path(r->root, r->upper, "root");
	return e == 0 && host ? put_usr(r) : e;
}

/* ---- places of the workload in it ---- */

static int set_mode(const struct sb_rootfs *r, const char *path, mode_t mode, bool own)
{
	const struct sb_plan *p = r->plan;
	sb_autofd int at = -1;
	struct stat st;
	int e = sb_root_dir(r, path, &at);

	if (e < 0)
		return e;
	if (fstat(at, &st) < 0)
		return -errno;
	if (own && (st.st_uid != p->uid || st.st_gid != p->gid) &&
	    fchownat(at, ".", p->uid, p->gid, 0) < 0)
		return -errno;
	return (st.st_mode & 07777) != mode && fchmodat(at, ".", mode, 0) < 0 ? -errno : 0;
}

int sb_rootfs_places(const struct sb_rootfs *r, const char **ret_at)
{
	const struct sb_plan *p = r->plan;
	int e;

	*ret_at = "/tmp";
	e = set_mode(r, "tmp", 01777, false);
	if (e == 0) {
		*ret_at = "/var/tmp";
		e = set_mode(r, "var/tmp", 01777, false);
	}
	for (size_t i = 0; i < p->n_mounts; i++)
		if (sb_path_within(p->home, p->mounts[i].guest))
			return e; /* a mount brings HOME */
	if (e == 0) {
		*ret_at = p->home;
		e = set_mode(r, p->home + 1, 0700, true);
	}
	return e;
}
