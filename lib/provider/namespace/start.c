/*
 * Theory of operation.
 *
 * clone3 makes the child with all its namespaces at once; the child waits while the parent, which
 * has the rights, writes the id maps, prepares the id-mapped trees, and puts the child into its
 * cgroup. Released, the child takes its ids, arranges its descriptor table and executes
 * sendbox-guest by descriptor. Errors come back over a close-on-exec socket: end of file there
 * means that exec happened. Caller root: guest ids are a block of unused host ids, so that no
 * process of the session is ever root or another user on the host. Otherwise: the caller's own
 * ids alone, and ambient capabilities carry the rights over the new namespaces across exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "conn/inherit.h"
#include "crypto/crypto.h"
#include "base/num.h"
#include "os/cgroup.h"
#include "os/spawn.h"
#include "provider/namespace/namespace.h"

#define ID_BASE 0x70000000U /* above what systems give to users and subordinate ids */
#define ID_BLOCKS 4096U
#define HIGH_FD 200
#define MAX_TABLE (SB_INHERIT_TREES + SB_NS_MAX_TREES)
#define GO 'g'
#define OOM_ADJ "500" /* of 1000 */

struct launch {
	const struct sb_start *in;
	bool root;     /* the caller is root: ids are mapped to a block */
	uint32_t base; /* of that block */
	int exe;       /* sendbox-guest */
	int key;       /* memory file with the public key */
	int sync;      /* our end of the socket to the child */
	int trees[SB_NS_MAX_TREES];
};

static void launch_done(struct launch *l)
{
	sb_fd_close(&l->exe);
	sb_fd_close(&l->key);
	sb_fd_close(&l->sync);
	for (size_t i = 0; i < SB_NS_MAX_TREES; i++)
		sb_fd_close(&l->trees[i]);
}
#define autolaunch SB_CLEANUP(launch_done)

struct report {
	int code;
	char stage[32];
};

/* Inheritable and ambient, so that exec of a program as a user other than root keeps them. */
static int keep_caps(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	d[0].inheritable = d[0].permitted;
	d[1].inheritable = d[1].permitted;
	if (syscall(SYS_capset, &h, d) < 0)
		return -errno;
	for (unsigned int c = 0; c < 64; c++) {
		if (!(d[c / 32].permitted & (1U << (c % 32))))
			continue;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

static int take_ids(const struct launch *l)
{
	if (!l->root)
		return keep_caps();
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* Tell the child to go on, with the trees that it hands to sendbox-guest. */
static int send_go(int sync, const int *trees, size_t n)
{
	char buf[CMSG_SPACE(SB_NS_MAX_TREES * sizeof(int))] = { 0 };
	char go = GO;
	struct iovec iov = { .iov_base = &go, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n > 0) {
		struct cmsghdr *c;

		m.msg_control = buf;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), trees, n * sizeof(int));
	}
	return sendmsg(sync, &m, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/* Return: number of trees; -errno. */
static int wait_go(int sync, int *trees)
{
	char buf[CMSG_SPACE(SB_NS_MAX_TREES * sizeof(int))];
	char go = 0;
	struct iovec iov = { .iov_base = &go, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = buf, .msg_controllen = sizeof(buf),
	};
	struct cmsghdr *c;
	ssize_t n;
	size_t len;

	do
		n = recvmsg(sync, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n != 1 || go != GO || (m.msg_flags & MSG_CTRUNC))
		return -ECANCELED;
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		return 0;
	len = c->cmsg_len - CMSG_LEN(0);
	memcpy(trees, CMSG_DATA(c), len);
	return (int)(len / sizeof(int));
}

/* @sync and the executable end up above the table. */
static int place_fds(const struct launch *l, const int *trees, int n_trees, int *sync, int *exe)
{
	int from[MAX_TABLE];
	int keep[MAX_TABLE + 2];
	int n = SB_INHERIT_TREES;

	from[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	from[1] = l->in->console;
	from[2] = l->in->console;
	from[SB_INHERIT_CARRIER] = l->in->carrier;
	from[SB_INHERIT_KEY] = l->key;
	from[SB_INHERIT_NET] = l->in->net_front >= 0 ? l->in->net_front : from[0];
	from[SB_INHERIT_SSH] = l->in->ssh_front >= 0 ? l->in->ssh_front : from[0];
	for (int i = 0; i < n_trees; i++)
		from[n++] = trees[i];
	for (int i = 0; i < n; i++) {
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, HIGH_FD);
		if (from[i] < 0)
			return -errno;
	}
	*sync = fcntl(*sync, F_DUPFD_CLOEXEC, HIGH_FD);
	*exe = fcntl(l->exe, F_DUPFD_CLOEXEC, HIGH_FD);
	if (*sync < 0 || *exe < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (dup2(from[i], i) < 0)
			return -errno;
		keep[i] = i;
	}
	keep[n] = *sync;
	keep[n + 1] = *exe;
	return sb_close_others(keep, (size_t)n + 2);
}

/*
 * Without --memory the session's memory is the host's: let the kernel, when it runs out, look here
 * first. Best effort; whoever started sendbox may have said so already.
 */
static void first_in_line(pid_t pid)
{
	sb_autofd int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || sb_fd_write_all(fd, OOM_ADJ, strlen(OOM_ADJ)) < 0)
		sb_debug("the session stays in the common line of the OOM killer");
}

SB_NORETURN static void child(const struct launch *l, int sync)
{
	const char *const argv[] = {
		"sendbox-guest", SB_INHERIT_MODE, l->root ? SB_INHERIT_TREES_ARG : SB_INHERIT_OWN,
		NULL,
	};
	static const char *const env[] = { NULL };
	struct report rep = { 0 };
	const char *stage = "descriptors";
	int trees[SB_NS_MAX_TREES];
	int exe = -1;
	int e;

	sb_spawn_reset_signals();
	e = wait_go(sync, trees);
	if (e >= 0)
		e = place_fds(l, trees, e, &sync, &exe);
	if (e == 0) {
		stage = "session and cgroup namespace";
		/* only now, so that its root is the cgroup that the parent chose */
		e = setsid() < 0 || unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
	}
	if (e == 0) {
		stage = "ids";
		e = take_ids(l);
	}
	if (e == 0) {
		stage = "parent-death signal";
		e = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
	}
	if (e == 0) {
		stage = "exec";
		(void)execveat(exe, "", (char *const *)(uintptr_t)argv,
			       (char *const *)(uintptr_t)env, AT_EMPTY_PATH);
		e = -errno;
	}
	rep.code = e;
	(void)snprintf(rep.stage, sizeof(rep.stage), "%s", stage);
	if (sb_fd_write_all(sync, &rep, sizeof(rep)) < 0)
		_exit(126);
	_exit(127);
}

/* The descriptor that came from the verified bundle: what is hashed here is what is executed. */
static int check_guest(struct launch *l, struct sb_err *err)
{
	uint8_t sum[SB_SHA256_LEN];
	uint64_t len;
	int e;

	if (l->in->guest_exe < 0)
		return sb_err_set(err, -EINVAL, "no guest program was handed over");
	l->exe = fcntl(l->in->guest_exe, F_DUPFD_CLOEXEC, 3);
	if (l->exe < 0)
		return sb_err_set(err, -errno, "the guest program: %s", strerror(errno));
	e = sb_sha256_fd(l->exe, sum, &len);
	if (e < 0)
		return sb_err_set(err, e, "cannot read the guest program: %s", strerror(-e));
	if (memcmp(sum, l->in->plan->guest_sha256, sizeof(sum)) != 0)
		return sb_err_set(err, -ESTALE, "the guest program was changed after the plan was "
				  "made; nothing was started");
	return 0;
}

static int make_key(struct launch *l, struct sb_err *err)
{
	int e;

	l->key = memfd_create("sendbox-key", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->key < 0)
		return sb_err_set(err, -errno, "memory file: %s", strerror(errno));
	e = sb_fd_write_all(l->key, l->in->public_key, SB_SIGN_PUBLIC_LEN);
	if (e == 0 && fcntl(l->key, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
						 F_SEAL_WRITE) < 0)
		e = -errno;
	return e < 0 ? sb_err_set(err, e, "memory file: %s", strerror(-e)) : 0;
}

static int check_plan(struct launch *l, struct sb_err *err)
{
	const struct sb_plan *p = l->in->plan;
	uint32_t n;

	if (p->provider != SB_PROVIDER_NAMESPACE || p->test_root ||
	    (!p->builder && (p->uid == 0 || p->gid == 0)))
		return sb_err_set(err, -EINVAL, "this plan is not for the namespace provider");
	l->root = geteuid() == 0;
	if (!l->root) {
		if (!p->builder && (p->uid != geteuid() || p->gid != getegid()))
			return sb_err_set(err, -EINVAL, "the plan is for user %u and group %u, but "
					  "without root only the caller's own ids are possible",
					  p->uid, p->gid);
		return 0;
	}
	if (p->uid >= SB_NS_IDS || p->gid >= SB_NS_IDS)
		return sb_err_set(err, -EINVAL, "user %u and group %u of the plan are above %u",
				  p->uid, p->gid, SB_NS_IDS - 1);
	sb_random(&n, sizeof(n));
	l->base = ID_BASE + (n % ID_BLOCKS) * SB_NS_IDS;
	return 0;
}

/*
 * Control groups for what was asked; the waiting child has not executed anything yet. Their names
 * go to the session directory, for gc.
 */
static int limit(const struct launch *l, pid_t pid, struct sb_cgroup **ret, struct sb_err *err)
{
	const struct sb_plan *p = l->in->plan;
	const struct sb_cgroup_limits limits = {
		.memory_bytes = p->memory_asked ? p->memory_bytes : 0,
		.pids_max = p->pids_asked ? p->pids_max : 0,
		.cpus = p->cpus_asked ? p->cpus : 0,
	};
	char name[2 * sizeof(p->session) + 1];
	sb_autofree char *record = NULL;
	int e;

	if (!limits.memory_bytes && !limits.pids_max && !limits.cpus)
		return 0;
	sb_hex_write(p->session, sizeof(p->session), name);
	e = sb_cgroup_new(name, &limits, ret, err);
	if (e < 0)
		return e;
	e = sb_cgroup_describe(*ret, &record);
	if (e == 0)
		e = sb_fd_write_file(l->in->session_dir, SB_NS_GROUPS, record, strlen(record),
				     0600);
	if (e == 0)
		e = sb_cgroup_add(*ret, pid);
	return e < 0 ? sb_err_set(err, e, "cannot limit the session: %s", strerror(-e)) : 0;
}

/* Id maps and trees for the waiting child. Return: number of trees; -errno. */
static int equip(struct launch *l, pid_t pid, struct sb_err *err)
{
	struct sb_ns_map uid = { 0, l->base, SB_NS_IDS };
	struct sb_ns_map gid = uid;
	sb_autofd int ns = -1;
	char path[64];
	int e;

	if (!l->root) { /* a builder is root inside, and there is nobody else */
		uid = (struct sb_ns_map){ l->in->plan->uid, geteuid(), 1 };
		gid = (struct sb_ns_map){ l->in->plan->gid, getegid(), 1 };
	}
	e = sb_ns_map_write(pid, uid, gid, !l->root);
	if (e < 0) {
		char remedy[300];

		sb_ns_userns_remedy(remedy, sizeof(remedy));
		return sb_err_set(err, e, "cannot map ids into the user namespace: %s%s%s",
				  strerror(-e), remedy[0] ? "; " : "", remedy);
	}
	if (!l->root)
		return sb_ns_socks(l->in->plan, l->in->fs_socks, l->trees, err);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return sb_err_set(err, -errno, "cannot open the user namespace: %s",
				  strerror(errno));
	return sb_ns_trees(l->in->plan, l->in->fs_socks, ns, l->base, l->trees, err);
}

/* The end of the socket tells that exec happened. */
static int wait_exec(int sync, struct sb_err *err)
{
	struct report rep;
	int e = sb_fd_read_all(sync, &rep, sizeof(rep));

	if (e == -ENODATA)
		return 0;
	if (e < 0)
		return sb_err_set(err, e, "cannot start sendbox-guest: %s", strerror(-e));
	return sb_err_set(err, rep.code < 0 ? rep.code : -EIO,
			  "cannot start sendbox-guest: %.31s: %s", rep.stage, strerror(-rep.code));
}

static int clone_error(int e, struct sb_err *err)
{
	char remedy[300];

	sb_ns_userns_remedy(remedy, sizeof(remedy));
	return sb_err_set(err, e, "this system does not let %s make namespaces: %s%s%s",
			  geteuid() == 0 ? "root" : "this user", strerror(-e),
			  remedy[0] ? "; " : "", remedy);
}

static int launch(struct launch *l, struct sb_guest *ret, struct sb_err *err)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	struct sb_cgroup *groups = NULL;
	int pair[2];
	sb_autofd int theirs = -1;
	pid_t pid;
	int e;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return sb_err_set(err, -errno, "socket pair: %s", strerror(errno));
	l->sync = pair[0];
	theirs = pair[1];
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return clone_error(-errno, err);
	if (pid == 0) {
		(void)close(l->sync); /* or the parent's end would never be seen */
		child(l, theirs);
	}
	sb_fd_close(&theirs);
	first_in_line(pid);
	e = limit(l, pid, &groups, err);
	if (e == 0)
		e = equip(l, pid, err);
	if (e >= 0) {
		e = send_go(l->sync, l->trees, (size_t)e);
		if (e < 0)
			(void)sb_err_set(err, e, "cannot start sendbox-guest: %s", strerror(-e));
	}
	if (e == 0)
		e = wait_exec(l->sync, err);
	if (e < 0) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		sb_fd_close(&pidfd);
		if (groups && sb_cgroup_remove(groups) < 0)
			(void)sb_err_add(err, -EBUSY, "control groups are left behind");
		(void)sb_cgroup_free(groups);
		return e;
	}
	ret->pid = pid;
	ret->pidfd = pidfd;
	ret->priv = groups;
	return 0;
}

int sb_ns_start(const struct sb_start *in, struct sb_guest *ret, struct sb_err *err)
{
	autolaunch struct launch l = { .in = in, .exe = -1, .key = -1, .sync = -1 };
	int e;

	for (size_t i = 0; i < SB_NS_MAX_TREES; i++)
		l.trees[i] = -1;
	e = check_plan(&l, err);
	if (e == 0)
		e = check_guest(&l, err);
	if (e == 0)
		e = make_key(&l, err);
	return e < 0 ? e : launch(&l, ret, err);
}
