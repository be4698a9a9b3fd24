/*
 * Theory of operation: the jail of QEMU.
 *
 * A guest that breaks out of the virtual machine is code inside the QEMU process. What it finds:
 *   - an identity that owns nothing: as root a uid and gid of this session alone; as an ordinary
 *     user that user, but inside a user namespace of its own, where ptrace and friends of outside
 *     processes are refused by the kernel and every capability is dropped;
 *   - a root filesystem of its own (tmpfs, read-only when done) with the program, the shared
 *     libraries, QEMU's firmware, the kernel, the initramfs, and null, urandom and perhaps kvm in
 *     /dev; no /proc, no /sys, no socket, nothing of the host that can be written;
 *   - an empty network namespace, IPC and UTS namespaces of its own;
 *   - no_new_privs, our system call filter (no signals to others, no ptrace, no namespaces, no
 *     mounts, no sockets but AF_UNIX, no bpf, no keys), then QEMU's own, which denies new programs;
 *   - the descriptors of its guest's channels, and a console file that cannot grow past
 *     RLIMIT_FSIZE.
 *
 * Without namespaces there is no jail, and then nothing starts: the remedy is named instead.
 *
 * The kernel image is bound by path after the namespace is new (a bind of a descriptor of another
 * mount namespace is refused by Linux), and must be the very file whose digest was checked: same
 * device, inode, size and change time. The same goes for QEMU's program. The initramfs is copied
 * from memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/spawn.h"
#include "provider/microvm/cache.h"
#include "provider/microvm/vm.h"

#define CONSOLE_MAX_BYTES (16U << 20)
#define NOFILE_MAX 256U
#define ROOT_TMPFS "mode=0755,size=288m,nr_inodes=256" /* the largest initramfs and a little */

SB_PRINTF(3, 4) static int fail(const struct sb_vm_jail *j, int code, const char *fmt, ...)
{
	va_list ap;

	if (j->report->code == 0) {
		j->report->code = code;
		va_start(ap, fmt);
		(void)vsnprintf(j->report->text, sizeof(j->report->text), fmt, ap);
		va_end(ap);
	}
	return code;
}

static int write_text(const char *path, const char *text)
{
	sb_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : sb_fd_write_all(fd, text, strlen(text));
}

static int new_namespaces(const struct sb_vm_jail *j)
{
	int flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	unsigned int uid = getuid();
	unsigned int gid = getgid();
	char map[64];
	int r;

	if (j->as_root) {
		if (unshare(flags) < 0)
			return fail(j, -errno, "no new namespaces: %s; %s", strerror(errno),
				    SB_VM_JAIL_REMEDY_ROOT);
		return 0;
	}
	if (unshare(flags | CLONE_NEWUSER) < 0)
		return fail(j, -errno, "no user namespace: %s; %s", strerror(errno),
			    SB_VM_JAIL_REMEDY_USER);
	(void)snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	r = write_text("/proc/self/uid_map", map);
	if (r == 0)
		r = write_text("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	if (r == 0)
		r = write_text("/proc/self/gid_map", map);
	if (r < 0)
		return fail(j, r, "user namespace without a map: %s; %s", strerror(-r),
			    SB_VM_JAIL_REMEDY_USER);
	return 0;
}

/* A detached copy of the mount at @src, with attributes added. Return: fd; -errno. */
static int clone_tree(const char *src, uint64_t attr)
{
	struct mount_attr a = { .attr_set = attr };
	sb_autofd int fd = open_tree(AT_FDCWD, src, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0 && errno == EINVAL) /* mounts beneath that may not be uncovered here */
		fd = open_tree(AT_FDCWD, src,
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (fd < 0)
		return -errno;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &a, sizeof(a)) < 0)
		return -errno;
	return sb_fd_take(&fd);
}

/* Directories down to and including @path (or the one that holds it), beneath the new root. */
static int make_dirs(const char *path, bool last)
{
	char part[512];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path + 1, i - 1);
		part[i - 1] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return last && mkdir(path + 1, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Show host path @src at @dst of the new root, which is the current directory. */
static int bind_at(const char *src, const char *dst, bool dir, uint64_t attr,
		   const struct stat *same)
{
	sb_autofd int tree = clone_tree(src, attr);
	sb_autofd int point = -1;
	struct stat st;
	int r;

	if (tree < 0)
		return tree;
	if (fstat(tree, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) != dir)
		return -ENOTDIR;
	if (same && !sb_cache_same(&st, same))
		return -ESTALE;
	r = make_dirs(dst, dir);
	if (r < 0)
		return r;
	if (!dir) {
		point = open(dst + 1, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444);
		if (point < 0)
			return -errno;
	}
	if (move_mount(tree, "", AT_FDCWD, dst + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* A directory of the host as it is, or the same link if it is one (merged /usr). */
static int show_dir(const struct sb_vm_jail *j, const char *path)
{
	char target[256];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	int r;

	if (n > 0) {
		target[n] = '\0';
		r = make_dirs(path, false);
		if (r == 0 && symlink(target, path + 1) < 0 && errno != EEXIST)
			r = -errno;
	} else {
		r = bind_at(path, path, true,
			    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, NULL);
		if (r == -ENOENT)
			r = 0; /* what is not on the host is not needed */
	}
	return r < 0 ? fail(j, r, "%s: %s", path, strerror(-r)) : 0;
}

static int make_devices(const struct sb_vm_jail *j)
{
	static const char *const devices[] = { "/dev/null", "/dev/urandom", "/dev/kvm" };
	uint64_t attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < SB_ARRAY_LEN(devices) && r == 0; i++) {
		bool kvm = i == 2;

		if (kvm && !j->kvm)
			break;
		if (!(kvm && j->as_root)) {
			r = bind_at(devices[i], devices[i], false, attr, NULL);
		} else if (stat(devices[i], &st) < 0 || !S_ISCHR(st.st_mode) ||
			   mknod("dev/kvm", S_IFCHR | 0600, st.st_rdev) < 0 ||
			   chown("dev/kvm", j->id, j->id) < 0) {
			/* a node of its own: the host's is for a group that QEMU is not in */
			r = -errno;
		}
		if (r < 0)
			return fail(j, r, "%s: %s", devices[i], strerror(-r));
	}
	return 0;
}

static int copy_initrd(const struct sb_vm_jail *j)
{
	sb_autofd int fd = open(&SB_VM_INITRD[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	return fd < 0 ? -errno : sb_fd_write_all(fd, j->initrd, j->initrd_len);
}

static int fill_root(const struct sb_vm_jail *j)
{
	static const char *const dirs[] = {
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/lib",
#elif defined(__aarch64__)
		"/usr/lib/aarch64-linux-gnu", "/lib",
#endif
		"/usr/share/qemu", "/usr/share/seabios",
	};
	uint64_t ro = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	int r = 0;

	for (size_t i = 0; i < SB_ARRAY_LEN(dirs) && r == 0; i++)
		r = show_dir(j, dirs[i]);
	if (r < 0)
		return r;
	r = bind_at(j->qemu, j->qemu, false, ro, j->qemu_stat.st_ino ? &j->qemu_stat : NULL);
	if (r < 0)
		return fail(j, r, "%s: %s", j->qemu,
			    r == -ESTALE ? "replaced while it was being started" : strerror(-r));
	r = make_devices(j);
	if (r < 0 || !j->kernel)
		return r;
	r = bind_at(j->kernel, SB_VM_KERNEL, false, ro | MOUNT_ATTR_NOEXEC, &j->kernel_stat);
	if (r < 0)
		return fail(j, r, "%s: %s", j->kernel,
			    r == -ESTALE ? "changed while it was being started" : strerror(-r));
	r = copy_initrd(j);
	return r < 0 ? fail(j, r, "initramfs: %s", strerror(-r)) : 0;
}

static int new_root(const struct sb_vm_jail *j)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	int r;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail(j, -errno, "private mounts: %s; %s", strerror(errno),
			    j->as_root ? SB_VM_JAIL_REMEDY_ROOT : SB_VM_JAIL_REMEDY_USER);
	if (mount("sendbox", j->root, "tmpfs", MS_NOSUID | MS_NOEXEC, ROOT_TMPFS) < 0 ||
	    chdir(j->root) < 0)
		return fail(j, -errno, "new root on %s: %s", j->root, strerror(errno));
	r = fill_root(j);
	if (r < 0)
		return r;
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return fail(j, -errno, "pivot_root: %s", strerror(errno));
	if (mount_setattr(AT_FDCWD, "/", 0, &ro, sizeof(ro)) < 0)
		return fail(j, -errno, "read-only root: %s", strerror(errno));
	if (sethostname("sendbox", 7) < 0)
		return fail(j, -errno, "host name: %s", strerror(errno));
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &h, none) < 0 ? -errno : 0;
}

static int drop_identity(const struct sb_vm_jail *j, pid_t parent)
{
	int r;

	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return fail(j, -errno, "capabilities: %s", strerror(errno));
	if (j->as_root && (setgroups(0, NULL) < 0 || setresgid(j->id, j->id, j->id) < 0 ||
			   setresuid(j->id, j->id, j->id) < 0))
		return fail(j, -errno, "cannot become uid %u: %s; %s", j->id, strerror(errno),
			    SB_VM_JAIL_REMEDY_ROOT);
	r = drop_capabilities();
	if (r < 0)
		return fail(j, r, "capabilities: %s", strerror(-r));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(j, -errno, "no_new_privs: %s", strerror(errno));
	/* a change of identity clears the parent-death signal */
	r = sb_spawn_die_with(parent);
	return r < 0 ? fail(j, r, "parent-death signal: %s", strerror(-r)) : 0;
}

static int set_limits(const struct sb_vm_jail *j)
{
	struct rlimit core = { 0, 0 };
	rlim_t most = SB_MAX((uint64_t)CONSOLE_MAX_BYTES, j->file_bytes);
	struct rlimit file = { most, most };
	struct rlimit fds = { NOFILE_MAX, NOFILE_MAX };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	if (setrlimit(RLIMIT_CORE, &core) < 0 || setrlimit(RLIMIT_FSIZE, &file) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &fds) < 0 || sigaction(SIGXFSZ, &ignore, NULL) < 0)
		return fail(j, -errno, "limits: %s", strerror(errno));
	return 0;
}

static int deny_calls(void *ctx)
{
	static const int calls[] = {
		SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
		SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(pidfd_open),
		SCMP_SYS(pidfd_send_signal), SCMP_SYS(pidfd_getfd), SCMP_SYS(kcmp),
		SCMP_SYS(process_madvise), SCMP_SYS(process_mrelease), SCMP_SYS(unshare),
		SCMP_SYS(setns), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root),
		SCMP_SYS(chroot), SCMP_SYS(fsopen), SCMP_SYS(fsmount), SCMP_SYS(fsconfig),
		SCMP_SYS(fspick), SCMP_SYS(open_tree), SCMP_SYS(move_mount),
		SCMP_SYS(mount_setattr), SCMP_SYS(bpf), SCMP_SYS(perf_event_open),
		SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup), SCMP_SYS(add_key),
		SCMP_SYS(request_key), SCMP_SYS(keyctl), SCMP_SYS(open_by_handle_at),
		SCMP_SYS(name_to_handle_at), SCMP_SYS(fanotify_init), SCMP_SYS(quotactl),
		SCMP_SYS(acct), SCMP_SYS(vhangup), SCMP_SYS(kexec_load),
		SCMP_SYS(kexec_file_load), SCMP_SYS(init_module), SCMP_SYS(finit_module),
		SCMP_SYS(delete_module),
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(calls); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), calls[i], 0);

		if (r < 0)
			return r;
	}
	return 0;
}

static void ctx_release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int filter_calls(const struct sb_vm_jail *j)
{
	SB_CLEANUP(ctx_release) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	scmp_datum_t self = (scmp_datum_t)getpid(); /* stays over exec */
	/* allowed with this first argument only: threads of its own, local sockets */
	const struct {
		int call;
		int error;
		struct scmp_arg_cmp unless;
	} except[] = {
		{ SCMP_SYS(tgkill), EPERM, { 0, SCMP_CMP_NE, self, 0 } },
		{ SCMP_SYS(rt_tgsigqueueinfo), EPERM, { 0, SCMP_CMP_NE, self, 0 } },
		{ SCMP_SYS(socket), EAFNOSUPPORT, { 0, SCMP_CMP_NE, AF_UNIX, 0 } },
	};
	int r;

	if (!ctx)
		return fail(j, -ENOMEM, "seccomp: out of memory");
	r = deny_calls(ctx);
	for (size_t i = 0; i < SB_ARRAY_LEN(except) && r == 0; i++)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((uint32_t)except[i].error),
					   except[i].call, 1, &except[i].unless);
	if (r == 0)
		r = seccomp_load(ctx);
	return r < 0 ? fail(j, r, "seccomp: %s", strerror(-r)) : 0;
}

int sb_vm_jail_enter(void *arg)
{
	const struct sb_vm_jail *j = arg;
	pid_t parent = getppid();
	int r = new_namespaces(j);

	if (r == 0)
		r = new_root(j);
	if (r == 0)
		r = set_limits(j);
	if (r == 0)
		r = drop_identity(j, parent);
	if (r == 0)
		r = filter_calls(j);
	return r;
}

int sb_vm_jail_try(const char *root, const char *qemu, struct sb_err *why)
{
	struct sb_vm_jail_report *rep = mmap(NULL, sizeof(*rep), PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sb_vm_jail j = { .as_root = geteuid() == 0, .id = 0x70000000, .root = root,
				.qemu = qemu, .report = rep };
	int status;
	pid_t pid;
	int r = 0;

	if (rep == MAP_FAILED)
		return sb_err_set(why, -errno, "mmap: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		_exit(sb_vm_jail_enter(&j) < 0 ? 1 : 0);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		r = sb_err_set(why, -errno, "fork: %s", strerror(errno));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		r = sb_err_set(why, rep->code ? rep->code : -ECHILD, "%s",
			       rep->code ? rep->text : "the jail's test process died");
	(void)munmap(rep, sizeof(*rep));
	return r;
}
