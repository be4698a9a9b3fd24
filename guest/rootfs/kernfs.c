/* /dev, /proc and /sys of the guest. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "rootfs/rootfs.h"

#define QUIET (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

static const struct {
	const char *name;
	unsigned int major;
	unsigned int minor;
} nodes[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

/* In the guest's own kernel device nodes are made. */
static int make_nodes(int dev)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(nodes); i++) {
		if (mknodat(dev, nodes[i].name, S_IFCHR | 0666,
			    makedev(nodes[i].major, nodes[i].minor)) < 0 ||
		    fchmodat(dev, nodes[i].name, 0666, 0) < 0)
			return -errno;
	}
	return 0;
}

/* Attach a copy of the host's /dev/@name; only a node that is what it says. */
static int bind_node(size_t i, int at, uint64_t attrs)
{
	sb_autofd int dev = -1;
	sb_autofd int tree = -1;
	struct stat st;
	int e;

	e = sb_mnt_open(AT_FDCWD, "/dev", O_DIRECTORY, &dev);
	if (e == 0)
		e = sb_mnt_clone(dev, nodes[i].name, attrs, &tree);
	if (e < 0)
		return e;
	if (fstat(tree, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(nodes[i].major, nodes[i].minor))
		return -ENODEV;
	return sb_mnt_attach(tree, at);
}

static int bind_nodes(int dev)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(nodes); i++) {
		sb_autofd int at = -1;
		int e = sb_root_put(dev, nodes[i].name, "", 0, 0644);

		if (e == 0)
			e = sb_mnt_open(dev, nodes[i].name, 0, &at);
		if (e == 0)
			e = bind_node(i, at, QUIET);
		if (e < 0)
			return e;
	}
	return 0;
}

static int make_pts(const struct sb_rootfs *r, int dev)
{
	const struct sb_mnt_opt opts[] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "gid", "5" },
	};
	sb_autofd int pts = -1;
	int e;

	if (mkdirat(dev, "pts", 0755) < 0)
		return -errno;
	e = sb_mnt_new("devpts", opts, SB_ARRAY_LEN(opts) - (r->root_mapped ? 0 : 1), QUIET, &pts);
	return e < 0 ? e : sb_mnt_attach_path(pts, dev, "pts");
}

int sb_rootfs_dev(const struct sb_rootfs *r, struct sb_err *err)
{
	static const struct sb_mnt_opt opts[] = {
		{ "size", "65536" }, { "nr_inodes", "64" }, { "mode", "0755" },
	};
	static const struct {
		const char *name;
		const char *to;
	} links[] = {
		{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
		{ "ptmx", "pts/ptmx" },
	};
	sb_autofd int at = -1;
	sb_autofd int dev = -1;
	int e;

	e = sb_root_dir(r, "dev", &at);
	if (e == 0)
		e = sb_mnt_new("tmpfs", opts, SB_ARRAY_LEN(opts), QUIET, &dev);
	if (e == 0)
		e = sb_mnt_attach(dev, at);
	if (e == 0)
		e = r->vm ? make_nodes(dev) : bind_nodes(dev);
	if (e == 0)
		e = make_pts(r, dev);
	for (size_t i = 0; e == 0 && i < SB_ARRAY_LEN(links); i++)
		if (symlinkat(links[i].to, dev, links[i].name) < 0)
			e = -errno;
	if (e == 0 && mkdirat(dev, "shm", 01777) < 0)
		e = -errno;
	if (e == 0)
		e = sb_mnt_restrict(dev, MOUNT_ATTR_RDONLY, false);
	return e < 0 ? sb_err_set(err, e, "cannot make the guest's /dev: %s", strerror(-e)) : 0;
}

/* What tells of the host's kernel or steers it, when the kernel is the host's. */
static const char *const hidden_files[] = {
	"cmdline", "config.gz", "kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecgroup",
	"kpagecount", "kpageflags", "latency_stats", "mdstat", "modules", "sched_debug",
	"slabinfo", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo",
};
static const char *const hidden_dirs[] = { "acpi", "asound", "driver", "dynamic_debug", "scsi" };
static const char *const read_only[] = { "bus", "fs", "irq", "sys", "tty" };

static int hide_files(int proc)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(hidden_files); i++) {
		sb_autofd int at = -1;
		int e = sb_mnt_open(proc, hidden_files[i], 0, &at);

		if (e == 0)
			e = bind_node(0, at, QUIET | MOUNT_ATTR_RDONLY);
		if (e < 0 && e != -ENOENT)
			return e;
	}
	return 0;
}

static int hide_dirs(int proc)
{
	static const struct sb_mnt_opt opts[] = {
		{ "size", "4096" }, { "nr_inodes", "2" }, { "mode", "0555" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(hidden_dirs); i++) {
		sb_autofd int at = -1;
		sb_autofd int empty = -1;
		int e = sb_mnt_open(proc, hidden_dirs[i], O_DIRECTORY, &at);

		if (e == 0)
			e = sb_mnt_new("tmpfs", opts, SB_ARRAY_LEN(opts),
				       QUIET | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, &empty);
		if (e == 0)
			e = sb_mnt_attach(empty, at);
		if (e < 0 && e != -ENOENT)
			return e;
	}
	return 0;
}

static int freeze_dirs(int proc)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(read_only); i++) {
		sb_autofd int at = -1;
		sb_autofd int tree = -1;
		int e = sb_mnt_open(proc, read_only[i], O_DIRECTORY, &at);

		if (e == 0)
			e = sb_mnt_clone(at, "", QUIET | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
					 &tree);
		if (e == 0)
			e = sb_mnt_attach(tree, at);
		if (e < 0 && e != -ENOENT)
			return e;
	}
	return 0;
}

int sb_rootfs_proc(const struct sb_rootfs *r, struct sb_err *err)
{
	static const struct sb_mnt_opt opts[] = { { "hidepid", "invisible" } };
	sb_autofd int at = -1;
	sb_autofd int proc = -1;
	int e;

	e = sb_root_dir(r, "proc", &at);
	if (e == 0)
		e = sb_mnt_new("proc", opts, SB_ARRAY_LEN(opts), QUIET | MOUNT_ATTR_NODEV, &proc);
	if (e == -EPERM && !r->vm)
		return sb_err_set(err, e, "cannot mount /proc in the namespace: parts of this "
				  "system's own /proc are covered (is this a container?); "
				  "start it with an unmasked /proc or use --runtime microvm");
	if (e == 0)
		e = sb_mnt_attach(proc, at);
	/* a builder is root by its files' owner: what of the kernel it could write stays closed */
	if (e == 0 && (!r->vm || r->plan->builder))
		e = hide_files(proc);
	if (e == 0 && (!r->vm || r->plan->builder))
		e = hide_dirs(proc);
	if (e == 0 && (!r->vm || r->plan->builder))
		e = freeze_dirs(proc);
	return e < 0 ? sb_err_set(err, e, "cannot make the guest's /proc: %s", strerror(-e)) : 0;
}

int sb_rootfs_sys(const struct sb_rootfs *r, struct sb_err *err)
{
	sb_autofd int at = -1;
	sb_autofd int tree = -1;
	uint64_t attrs = QUIET | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY;
	int e;

	if (r->vm) {
		e = sb_root_dir(r, "sys", &at);
		if (e == 0)
			e = sb_mnt_new("sysfs", NULL, 0, attrs, &tree);
	} else { /* only what programs count processors with */
		e = sb_mnt_clone(AT_FDCWD, "/sys/devices/system/cpu", attrs, &tree);
		if (e == -ENOENT)
			return 0;
		if (e == 0)
			e = sb_root_dir(r, "sys/devices/system/cpu", &at);
	}
	if (e == 0)
		e = sb_mnt_attach(tree, at);
	return e < 0 ? sb_err_set(err, e, "cannot make the guest's /sys: %s", strerror(-e)) : 0;
}

/* cgroup v2: writable for the supervisor in a closed folder, read-only where programs look. */
int sb_rootfs_cgroup(const struct sb_rootfs *r, struct sb_err *err)
{
	uint64_t attrs = QUIET | MOUNT_ATTR_NODEV;
	sb_autofd int own = -1;
	sb_autofd int at = -1;
	sb_autofd int shown = -1;
	sb_autofd int cg = -1;
	sb_autofd int copy = -1;
	int e;

	e = sb_root_dir(r, "run/sendbox", &own);
	if (e == 0 && fchmodat(own, ".", 0700, 0) < 0)
		e = -errno;
	if (e == 0)
		e = sb_root_dir(r, &SB_CGROUP_DIR[1], &at);
	if (e == 0)
		e = sb_mnt_new("cgroup2", NULL, 0, attrs, &cg);
	if (e == 0)
		e = sb_mnt_attach(cg, at);
	if (e == 0)
		e = sb_mnt_clone(cg, "", attrs | MOUNT_ATTR_RDONLY, &copy);
	if (e == 0)
		e = sb_root_dir(r, "sys/fs/cgroup", &shown);
	if (e == 0)
		e = sb_mnt_attach(copy, shown);
	return e < 0 ? sb_err_set(err, e, "cannot mount cgroup v2: %s", strerror(-e)) : 0;
}
