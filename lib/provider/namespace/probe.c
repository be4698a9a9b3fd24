/* What the namespace provider needs of this host. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/cgroup.h"
#include "os/landlock.h"
#include "provider/namespace/namespace.h"


/* First character of a small file; 0 when it cannot be read. */
static char first_char(const char *path)
{
	sb_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c = 0;

	if (fd < 0 || read(fd, &c, 1) != 1)
		return 0;
	return c;
}

void sb_ns_userns_remedy(char *ret, size_t cap)
{
	const char *text = "";

	if (first_char("/proc/sys/user/max_user_namespaces") == '0')
		text = "run: sysctl -w user.max_user_namespaces=15000";
	else if (geteuid() != 0 && first_char("/proc/sys/kernel/unprivileged_userns_clone") == '0')
		text = "run: sysctl -w kernel.unprivileged_userns_clone=1";
	else if (geteuid() != 0 &&
		 first_char("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == '1')
		text = "run: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
	else if (access("/proc/self/ns/user", F_OK) < 0)
		text = "use a kernel with CONFIG_USER_NS, or --runtime microvm";
	(void)snprintf(ret, cap, "%s", text);
}

/* Make a child in all the namespaces and let it try to use them. Return: 0; -errno. */
static int try_namespaces(void)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_NEWCGROUP,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0) { /* a mount proves that the rights are real (AppArmor may take them) */
		int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

		_exit(fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? 1 : 0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static void probe_userns(struct sb_probe *p)
{
	char remedy[300];
	int e = try_namespaces();

	if (e == 0) {
		sb_probe_add(p, "namespaces", SB_CHECK_OK, "", "user, mount, pid, net, ipc, uts, "
			     "cgroup: allowed for %s", geteuid() == 0 ? "root" : "this user");
		return;
	}
	sb_ns_userns_remedy(remedy, sizeof(remedy));
	sb_probe_add(p, "namespaces", SB_CHECK_FAIL,
		     remedy[0] ? remedy : "allow user namespaces here, or use --runtime microvm",
		     "refused: %s", strerror(-e));
}

static void probe_seccomp(struct sb_probe *p)
{
	unsigned int action = SECCOMP_RET_ERRNO;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		sb_probe_add(p, "seccomp", SB_CHECK_OK, "", "filters available");
	else
		sb_probe_add(p, "seccomp", SB_CHECK_FAIL, "use a kernel with CONFIG_SECCOMP_FILTER",
			     "not there: %s", strerror(errno));
}

static void probe_calls(struct sb_probe *p)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	struct mount_attr attr = { 0 };
	sb_autofd int root = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));
	sb_autofd int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	bool no_setattr = mount_setattr(-1, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 &&
			  errno == ENOSYS;
	struct utsname uts;

	(void)uname(&uts);
	if (root >= 0 && pidfd >= 0 && !no_setattr)
		sb_probe_add(p, "system calls", SB_CHECK_OK, "",
			     "openat2, pidfd, mount_setattr (kernel %.60s)", uts.release);
	else
		sb_probe_add(p, "system calls", SB_CHECK_FAIL, "use a kernel 5.13 or later",
			     "missing:%s%s%s (kernel %.60s)", root < 0 ? " openat2" : "",
			     pidfd < 0 ? " pidfd_open" : "", no_setattr ? " mount_setattr" : "",
			     uts.release);
}

/* Root needs id-mapped mounts; try one on the current folder. */
static void probe_idmap(struct sb_probe *p)
{
	struct sb_ns_map m = { 0, 0x70000000U, 1 };
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	sb_autofd int ns = -1;
	sb_autofd int tree = -1;
	int e;

	if (geteuid() != 0)
		return;
	e = sb_ns_userns(m, m, &ns);
	if (e == 0) {
		tree = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		attr.userns_fd = (unsigned int)ns;
		if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
			e = -errno;
	}
	if (e == 0)
		sb_probe_add(p, "id-mapped mounts", SB_CHECK_OK, "", "work for this folder");
	else
		sb_probe_add(p, "id-mapped mounts", SB_CHECK_WARN,
			     "keep the project on ext4, xfs or btrfs, run sendbox as the owner of "
			     "the files, or use --runtime microvm",
			     "not for this folder: %s", strerror(-e));
}

/* Only a limit that is asked for needs it. */
static void probe_limits(struct sb_probe *p)
{
	struct sb_cgroup_probe g;
	const char *remedy = "";
	char missing[100] = "";
	size_t n = 0;

	sb_cgroup_probe(&g);
	for (size_t i = 0; i < SB_CGROUP_N; i++) {
		int w;

		if (g.controller[i].usable)
			continue;
		remedy = g.controller[i].remedy;
		w = snprintf(missing + n, sizeof(missing) - n, " %s", g.controller[i].name);
		n += w > 0 ? (size_t)w : 0;
	}
	if (!missing[0])
		sb_probe_add(p, "control groups", SB_CHECK_OK, "", "cpu, memory, pids");
	else
		sb_probe_add(p, "control groups", SB_CHECK_WARN, remedy,
			     "no limits for:%s (needed only when asked for)", missing);
}

/* Without root the workload and what watches it have one user id. */
static void probe_signals(struct sb_probe *p)
{
	int abi = sb_landlock_abi();

	if (geteuid() == 0)
		sb_probe_add(p, "signals", SB_CHECK_OK, "", "the workload has a user id of its own");
	else if (abi >= SB_LANDLOCK_ABI_SCOPE)
		sb_probe_add(p, "signals", SB_CHECK_OK, "", "the workload's stay among its processes");
	else
		sb_probe_add(p, "signals", SB_CHECK_WARN,
			     "use Linux 6.12 or later, or start sendbox as root, or --runtime microvm",
			     "the workload can stop or end the processes that watch it, and so hold or "
			     "end its own session");
}

void sb_ns_probe(struct sb_probe *ret)
{
	probe_userns(ret);
	sb_ns_probe_net(ret);
	sb_probe_landlock(ret);
	probe_signals(ret);
	sb_probe_exec_policy(ret);
	probe_seccomp(ret);
	probe_calls(ret);
	probe_idmap(ret);
	probe_limits(ret);
}
