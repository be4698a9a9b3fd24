/* The judge from its birth to its loop, and PID 1's side of its socket. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "exec/filter.h"
#include "exec/judge_i.h"
#include "os/spawn.h"

#define START_MS 20000
#define STOP_MS 500
#define CAP(c) (1U << (c))
#define FILE_CAPS (CAP(CAP_DAC_OVERRIDE) | CAP(CAP_DAC_READ_SEARCH))
#define KEPT_CAPS (FILE_CAPS | CAP(CAP_KILL) | CAP(CAP_SYS_PTRACE))

static int set_caps(uint32_t effective, uint32_t permitted)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = {
		{ .effective = effective, .permitted = permitted }, { 0 }
	};

	return syscall(SYS_capset, &hdr, d) < 0 ? -errno : 0;
}

static uint32_t had_caps(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 }, { 0 } };

	return syscall(SYS_capget, &hdr, d) < 0 ? 0 : d[0].permitted;
}

bool judge_rights(bool all)
{
	uint32_t have = had_caps() & KEPT_CAPS;

	return set_caps(all ? have : have & ~FILE_CAPS, have) == 0;
}

/* The workload's rights over files, the supervisor's over processes, and nothing else. */
static int become(const struct sb_plan *plan)
{
	uint32_t have = had_caps() & KEPT_CAPS;
	uid_t uid = plan->test_root ? 0 : plan->uid;
	gid_t gid = plan->test_root ? 0 : plan->gid;
	int r;

	(void)setfsgid(gid);
	(void)setfsuid(uid);
	if ((gid_t)setfsgid((gid_t)-1) != gid || (uid_t)setfsuid((uid_t)-1) != uid)
		return -EPERM;
	r = set_caps(plan->test_root ? have : have & ~FILE_CAPS, have);
	if (r < 0)
		return r;
	/* both are reset by a change of identity */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* Whoever gets hold of this process shall not start, mount or connect anything by it. */
static int wall(void)
{
	struct sock_fprog f = sb_filter_judge();

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f) < 0)
		return -errno;
	return 0;
}

/* A policy's content digest: our descriptors are O_PATH. */
static int digest(void *arg, const char *path, int fd, uint8_t ret[32])
{
	struct judge *j = arg;
	char link[32];
	sb_autofd int file = -1;

	if (fd >= 0) {
		(void)snprintf(link, sizeof(link), "self/fd/%d", fd);
		file = look_open(j, link, O_RDONLY | O_NONBLOCK);
		if (file < 0)
			return file;
	}
	return j->image.files.digest(j->image.files.arg, path, file, ret);
}
static int find(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		struct sb_cmd_file *ret)
{
	const struct judge *j = arg;

	return j->image.files.find(j->image.files.arg, name, nth, path, cap, ret);
}
static int list(void *arg, int (*each)(void *each_arg, const char *name), void *each_arg)
{
	const struct judge *j = arg;

	return j->image.files.list(j->image.files.arg, each, each_arg);
}

static int prepare_policy(struct judge *j, struct sb_err *err)
{
	static struct sb_cmd_files files = { .find = find, .list = list, .digest = digest };
	struct stat st;
	int r;

	files.arg = j;
	j->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	j->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (j->proc < 0 || j->root < 0 || fstat(j->proc, &st) < 0)
		return sb_err_set(err, -errno, "command policy: /proc: %s", strerror(errno));
	j->proc_dev = st.st_dev;
	if (j->plan->commands.scope != SB_CMD_SCOPE_TREE)
		return 0;
	r = sb_cmd_image_init(&j->image, j->root);
	if (r < 0)
		return sb_err_set(err, r, "command policy: program folders: %s", strerror(-r));
	return sb_cmdpol_new(&j->plan->commands, &files, &j->policy, err);
}

static int prepare_kernel(struct judge *j, struct sb_err *err)
{
	struct seccomp_notif_sizes sizes;
	sigset_t all;
	int r = sb_judge_probe(err);

	if (r < 0)
		return r;
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return sb_err_set(err, -errno, "seccomp: %s", strerror(errno));
	j->req_size = SB_MAX(sizes.seccomp_notif, (uint16_t)sizeof(*j->req));
	j->resp_size = SB_MAX(sizes.seccomp_notif_resp, (uint16_t)sizeof(*j->resp));
	j->req = calloc(1, j->req_size);
	j->resp = calloc(1, j->resp_size);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	r = j->req && j->resp ? look_new(&j->look) : -ENOMEM;
	return r < 0 ? sb_err_set(err, r, "command policy: %s", strerror(-r)) : 0;
}

SB_NORETURN static void serve(const struct sb_judge_config *cfg, pid_t parent, int sock)
{
	static struct judge j = { .proc = -1, .root = -1 };
	struct sb_err err = { 0 };
	int r = sb_close_others(&sock, 1);

	if (cfg->secret)
		explicit_bzero(cfg->secret, cfg->secret_len);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "judge", 0, 0, 0);
	j.plan = cfg->plan;
	j.plain = cfg->plain;
	j.sock = sock;
	if (r < 0)
		(void)sb_err_set(&err, r, "descriptors: %s", strerror(-r));
	if (r == 0)
		r = prepare_kernel(&j, &err);
	if (r == 0)
		r = prepare_policy(&j, &err);
	if (r == 0) {
		r = become(cfg->plan);
		if (r == 0)
			r = sb_spawn_die_with(parent);
		if (r == 0)
			r = wall();
		if (r < 0)
			(void)sb_err_set(&err, r, "command policy: identity: %s", strerror(-r));
	}
	if (send(sock, &err, sizeof(err), MSG_NOSIGNAL) < 0 || r < 0)
		_exit(1);
	r = judge_loop(&j);
	_exit(r == 0 ? 0 : 1);
}

int sb_judge_start(const struct sb_judge_config *cfg, struct sb_judge *ret, struct sb_err *err)
{
	pid_t self = getpid();
	struct sb_err told = { 0 };
	struct pollfd p = { .events = POLLIN };
	sb_autofd int ours = -1;
	sb_autofd int theirs = -1;
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "command policy: socket: %s", strerror(errno));
	ours = sv[0];
	theirs = sv[1];
	pid = fork();
	if (pid < 0)
		return sb_err_set(err, -errno, "command policy: fork: %s", strerror(errno));
	if (pid == 0)
		serve(cfg, self, theirs);
	sb_fd_close(&theirs);
	p.fd = ours;
	if (poll(&p, 1, START_MS) != 1 ||
	    recv(ours, &told, sizeof(told), MSG_DONTWAIT) != (ssize_t)sizeof(told)) {
		(void)kill(pid, SIGKILL);
		told.code = 0;
		(void)sb_err_set(&told, -ECHILD, "command policy: the judge did not start");
	}
	if (told.code < 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		told.text[sizeof(told.text) - 1] = '\0';
		return sb_err_set(err, told.code, "%s", told.text);
	}
	ret->pid = pid;
	ret->sock = sb_fd_take(&ours);
	return 0;
}

int sb_judge_next(const struct sb_judge *j, struct sb_judge_event *ret)
{
	ssize_t n = recv(j->sock, ret, sizeof(*ret), MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n != (ssize_t)sizeof(*ret))
		return -EPIPE;
	return ret->count == 0 ? SB_JUDGE_FLUSHED : 0;
}

int sb_judge_flush(const struct sb_judge *j)
{
	struct enter e = { .magic = FLUSH_MAGIC };

	return send(j->sock, &e, sizeof(e), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void sb_judge_stop(struct sb_judge *j)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int flags = 0;

	sb_fd_close(&j->sock); /* by which it ends */
	if (j->pid > 0 && kill(j->pid, SIGKILL) < 0)
		flags = WNOHANG; /* out of reach of PID 1, too: the end of PID 1 is its end */
	for (int i = 0; j->pid > 0 && i < STOP_MS; i++) {
		pid_t r = waitpid(j->pid, NULL, flags);

		if (r == j->pid || (r < 0 && errno != EINTR))
			break;
		if (flags)
			(void)nanosleep(&ms, NULL);
	}
	j->pid = 0;
}
