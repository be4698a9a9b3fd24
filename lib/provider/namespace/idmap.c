/* User namespaces, id maps and id-mapped mount trees. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/inherit.h"
#include "provider/layer.h"
#include "provider/namespace/namespace.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	sb_autofd int fd = -1;
	size_t len = strlen(text);
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len); /* a map must come in one write */
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

static int write_map(pid_t pid, const char *name, struct sb_ns_map m)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%u %u %u\n", m.inside, m.outside, m.count);
	return write_proc(pid, name, text);
}

int sb_ns_map_write(pid_t pid, struct sb_ns_map uid, struct sb_ns_map gid, bool deny_setgroups)
{
	int e = deny_setgroups ? write_proc(pid, "setgroups", "deny") : 0;

	if (e == 0)
		e = write_map(pid, "uid_map", uid);
	return e < 0 ? e : write_map(pid, "gid_map", gid);
}

int sb_ns_userns(struct sb_ns_map uid, struct sb_ns_map gid, int *ret)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER,
		.exit_signal = SIGCHLD,
	};
	char path[64];
	pid_t pid;
	int fd = -1;
	int e;

	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)syscall(SYS_prctl, 1 /* PR_SET_PDEATHSIG */, SIGKILL, 0, 0, 0);
		for (;;)
			(void)pause();
	}
	e = sb_ns_map_write(pid, uid, gid, false);
	if (e == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			e = -errno;
	}
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (e < 0)
		return e;
	*ret = fd;
	return 0;
}

/* A copy of the tree at @fd; @userns < 0: not id-mapped. */
static int clone_tree(int fd, int userns, uint64_t attrs, int *ret)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };
	sb_autofd int tree = -1;

	if (userns >= 0) {
		attr.attr_set |= (unsigned int)MOUNT_ATTR_IDMAP;
		attr.userns_fd = (unsigned int)userns;
	}
	tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
			 AT_RECURSIVE);
	if (tree < 0)
		return -errno;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	*ret = sb_fd_take(&tree);
	return 0;
}

static int open_exact(const char *path, uint64_t dev, uint64_t ino, int *ret, struct sb_err *err)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	sb_autofd int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return sb_err_set(err, -ELOOP, "%s is now reached through a symbolic link", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (ino != 0 && (st.st_dev != dev || st.st_ino != ino))
		return sb_err_set(err, -ESTALE, "%s was replaced after the plan was made", path);
	*ret = sb_fd_take(&fd);
	return 0;
}

/* Part of the image: id-mapped where its file system can, plain otherwise (ids show as nobody). */
static int image_tree(const char *path, uint64_t dev, uint64_t ino, int ns, int *ret,
		      struct sb_err *err)
{
	sb_autofd int fd = -1;
	int e = open_exact(path, dev, ino, &fd, err);

	if (e < 0)
		return e;
	e = clone_tree(fd, ns, SAFE | MOUNT_ATTR_RDONLY, ret);
	if (e == -EINVAL || e == -EPERM || e == -EOPNOTSUPP)
		e = clone_tree(fd, -1, SAFE | MOUNT_ATTR_RDONLY, ret);
	return e < 0 ? sb_err_set(err, e, "cannot copy the mount of %s: %s", path, strerror(-e)) : 0;
}

static int mount_tree(const struct sb_plan_mount *m, int owner_ns, int *ret, struct sb_err *err)
{
	uint64_t attrs = SAFE | (m->mode == SB_MOUNT_RW ? 0 : MOUNT_ATTR_RDONLY);
	sb_autofd int fd = -1;
	int e = open_exact(m->host, m->dev, m->ino, &fd, err);

	if (e < 0)
		return e;
	e = clone_tree(fd, owner_ns, attrs, ret);
	if (e == -EINVAL || e == -EPERM || e == -EOPNOTSUPP)
		return sb_err_set(err, e, "the file system of %s (or one mounted below it) cannot "
				  "map owners for a session of root; run sendbox as the owner of "
				  "the files, or use --runtime microvm", m->host);
	return e < 0 ? sb_err_set(err, e, "cannot copy the mount of %s: %s", m->host,
				  strerror(-e)) : 0;
}

/*
 * /usr and /etc of the host: root stays root, every other owner is nobody. The ids of the session
 * must not stand for the host's accounts of the same number, whose private files lie there too.
 */
static int host_trees(uint32_t base, int fds[2], struct sb_err *err)
{
	static const char *const paths[] = { "/usr", "/etc" };
	struct sb_ns_map root = { 0, base, 1 };
	sb_autofd int ns = -1;
	int e = sb_ns_userns(root, root, &ns);

	if (e < 0)
		return sb_err_set(err, e, "cannot make the image's map: %s", strerror(-e));
	for (size_t i = 0; e == 0 && i < SB_ARRAY_LEN(paths); i++)
		e = image_tree(paths[i], 0, 0, ns, &fds[i], err);
	return e;
}

static int copy_sock(int sock, int *ret, struct sb_err *err)
{
	int fd = fcntl(sock, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return sb_err_set(err, -errno, "file server's socket: %s", strerror(errno));
	*ret = fd;
	return 0;
}

/* The directory of the instance; its files belong to SB_NS_STORED + the id inside. */
static int upper_tree(const struct sb_plan *p, uint32_t base, int *ret, struct sb_err *err)
{
	struct sb_ns_map m = { SB_NS_STORED, base, SB_NS_IDS };
	sb_autofd int dir = -1;
	sb_autofd int at = -1;
	sb_autofd int ns = -1;
	int e = sb_upper_open(&p->upper, &dir, err);

	if (e < 0)
		return e;
	/* the directory itself stays root's and closed, so that no account of the host reaches what
	 * the session puts into this one */
	if (mkdirat(dir, SB_INHERIT_UPPER, 0755) < 0 && errno != EEXIST)
		e = -errno;
	at = e == 0 ? openat(dir, SB_INHERIT_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		    : -1;
	if (e == 0 && (at < 0 || fchown(at, SB_NS_STORED, SB_NS_STORED) < 0))
		e = -errno;
	if (e == 0)
		e = sb_ns_userns(m, m, &ns);
	if (e == 0)
		e = clone_tree(at, ns, SAFE, ret);
	return e < 0 ? sb_err_set(err, e, "the file system of %s cannot map owners for a session of "
				  "root: %s; put SENDBOX_HOME on ext4, xfs or btrfs, or use --runtime "
				  "microvm", p->upper.path, strerror(-e)) : 0;
}

static int image_trees(const struct sb_plan *p, int session_ns, uint32_t base, int *fds,
		       struct sb_err *err)
{
	int e;

	if (p->image == SB_IMAGE_LAYERS)
		return 0;
	if (p->image == SB_IMAGE_HOST) {
		e = host_trees(base, fds, err);
		return e < 0 ? e : 2;
	}
	e = image_tree(p->image_path, p->image_dev, p->image_ino, session_ns, fds, err);
	return e < 0 ? e : 1;
}

int sb_ns_socks(const struct sb_plan *p, const int *socks, int *fds, struct sb_err *err)
{
	int n = 0;
	int e = 0;

	if (p->n_layers > 0)
		e = copy_sock(socks[0], &fds[n++], err);
	for (size_t i = 0; e == 0 && i < p->n_mounts; i++)
		if (sb_plan_served(p, i))
			e = copy_sock(socks[i + 1], &fds[n++], err);
	return e < 0 ? e : n;
}

int sb_ns_trees(const struct sb_plan *p, const int *socks, int session_ns, uint32_t base, int *fds,
		struct sb_err *err)
{
	struct sb_ns_map uid = { p->owner_uid, base + p->uid, 1 };
	struct sb_ns_map gid = { p->owner_gid, base + p->gid, 1 };
	sb_autofd int owner_ns = -1;
	int n = image_trees(p, session_ns, base, fds, err);
	int e = 0;

	if (n < 0)
		return n;
	if (p->n_layers > 0)
		e = copy_sock(socks[0], &fds[n++], err);
	if (e == 0 && p->upper.kind == SB_UPPER_DIR)
		e = upper_tree(p, base, &fds[n++], err);
	if (e < 0)
		return e;
	if (p->n_mounts == 0)
		return n;
	e = sb_ns_userns(uid, gid, &owner_ns);
	if (e < 0)
		return sb_err_set(err, e, "cannot make the owner map: %s", strerror(-e));
	for (size_t i = 0; i < p->n_mounts; i++) {
		e = sb_plan_served(p, i) ? copy_sock(socks[i + 1], &fds[n], err)
					 : mount_tree(&p->mounts[i], owner_ns, &fds[n], err);
		if (e < 0)
			return e;
		n++;
	}
	return n;
}
