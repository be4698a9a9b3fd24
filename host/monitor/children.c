#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/host_image.h"
#include "monitor.h"
#include "os/proc.h"
#include "os/spawn.h"
#include "provider/executable.h"

#define CARRIER_BUFFER (1 << 20) /* bytes asked for on the carrier's socket pair */

void mon_record_pid(struct monitor *m, pid_t pid)
{
	char boot[SB_BOOT_ID_ROOM];

	sb_proc_boot_id(boot);
	if (dprintf(m->pids, "%d %llu %s\n", pid, (unsigned long long)sb_proc_start_time(pid),
		    boot) < 0)
		sb_debug("process %d was not recorded", pid);
}

int mon_watch(struct monitor *m, struct mon_child *c, const char *role, pid_t pid, int *pidfd,
	      sb_io_fn *fn)
{
	c->m = m;
	c->role = role;
	c->pid = pid;
	c->pidfd = sb_fd_take(pidfd);
	mon_record_pid(m, pid);
	return sb_io_set(m->loop, &c->io, c->pidfd, EPOLLIN, fn, c);
}

void mon_kill(struct mon_child *c)
{
	if (c->pid > 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

static void on_child(struct sb_io *io, uint32_t events);

int mon_spawn(struct monitor *m, struct mon_child *c, const char *role, const char *const *argv,
	      int sock, const int *extra, size_t n_extra, struct sb_err *err)
{
	struct sb_spawn_fd fds[60];
	const char *path = argv[0];
	static const char *const debug_env[] = { "SENDBOX_DEBUG=1", NULL };
	sb_autofd int exe = sb_exe_open(m->plan, m->dirs.cache, argv[0] + strlen("sendbox-"),
					&path, NULL, err);
	sb_autofd int pidfd = -1;
	pid_t pid;
	int r;

	if (exe < 0)
		return exe;
	sb_assert(n_extra + 2 <= SB_ARRAY_LEN(fds));
	fds[0] = (struct sb_spawn_fd){ sock, 3 };
	fds[1] = (struct sb_spawn_fd){ STDERR_FILENO, STDERR_FILENO };
	for (size_t i = 0; i < n_extra; i++)
		fds[i + 2] = (struct sb_spawn_fd){ extra[i], 4 + (int)i };
	r = sb_spawn_start(&(struct sb_spawn){ .path = path,
					       .exe = exe,
					       .argv = argv,
					       .env = sb_log_debug_on() ? debug_env : NULL,
					       .fds = fds,
					       .n_fds = n_extra + 2 },
			   &pid, &pidfd, err);
	if (r < 0)
		return r;
	r = mon_watch(m, c, role, pid, &pidfd, on_child);
	return r < 0 ? sb_err_set(err, r, "cannot watch %s: %s", role, strerror(-r)) : 0;
}

int mon_start_channel(struct monitor *m, int front, int ssh_front, int *ret_guest_end,
		      struct sb_err *err)
{
	static const char *const argv[] = { "sendbox-channel", NULL };
	sb_autofd int host_end = -1;
	sb_autofd int guest_end = -1;
	sb_autofd int theirs = -1;
	struct sb_ipc_chan_start msg = { 0 };
	const int size = CARRIER_BUFFER;
	int fds[5];
	size_t n_fds = 3;
	int sv[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	host_end = sv[0];
	guest_end = sv[1];
	for (int i = 0; i < 2; i++) { /* best effort: the kernel's limit may be lower */
		(void)setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		(void)setsockopt(sv[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	m->chan = sv[0];
	theirs = sv[1];
	r = mon_spawn(m, &m->chan_child, "channel process", argv, theirs, NULL, 0, err);
	if (r < 0)
		return r;
	memcpy(msg.psk, m->start.psk, sizeof(msg.psk));
	memcpy(msg.signature, m->start.signature, sizeof(msg.signature));
	memcpy(msg.public_key, m->start.public_key, sizeof(msg.public_key));
	memcpy(msg.session, m->plan->session, sizeof(msg.session));
	msg.ready_timeout_ms = m->plan->accel == SB_ACCEL_TCG ? 120000 : 30000;
	fds[0] = host_end;
	fds[1] = m->plan_memfd;
	fds[2] = m->env_memfd;
	if (front >= 0)
		fds[n_fds++] = front;
	if (ssh_front >= 0)
		fds[n_fds++] = ssh_front;
	r = sb_ipc_send(m->chan, SB_IPC_CHAN_START, &msg, sizeof(msg), fds, n_fds);
	sb_fd_close(&m->env_memfd);
	explicit_bzero(&msg, sizeof(msg));
	explicit_bzero(m->start.psk, sizeof(m->start.psk));
	if (r < 0)
		return sb_err_set(err, r, "cannot reach the channel process: %s", strerror(-r));
	*ret_guest_end = sb_fd_take(&guest_end);
	return 0;
}

/* Open the planned object and check that it still is the one of the plan. */
static int open_planned(const char *path, bool file, uint64_t dev, uint64_t ino, int *ret,
			struct sb_err *err)
{
	sb_autofd int fd = open(path, (file ? O_PATH : O_RDONLY | O_DIRECTORY) | O_NOFOLLOW |
					      O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (st.st_dev != dev || st.st_ino != ino)
		return sb_err_set(err, -ESTALE,
				  "%s was replaced after the plan was made; nothing was started",
				  path);
	*ret = sb_fd_take(&fd);
	return 0;
}

struct fs_args {
	const char *argv[160 + 2 * SB_PLAN_MAX_GUARDS];
	size_t n;
	char text[6144];
	size_t used;
	int fds[56];
	size_t n_fds;
};

static void arg(struct fs_args *a, const char *s)
{
	sb_assert(a->n + 1 < SB_ARRAY_LEN(a->argv));
	a->argv[a->n++] = s;
}

static void argf(struct fs_args *a, const char *fmt, ...) SB_PRINTF(2, 3);
static void argf(struct fs_args *a, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(a->text + a->used, sizeof(a->text) - a->used, fmt, ap);
	va_end(ap);
	sb_assert(n >= 0 && (size_t)n < sizeof(a->text) - a->used);
	arg(a, a->text + a->used);
	a->used += (size_t)n + 1;
}

static int give_fd(struct fs_args *a, int fd)
{
	sb_assert(a->n_fds < SB_ARRAY_LEN(a->fds));
	a->fds[a->n_fds] = fd;
	return 4 + (int)a->n_fds++;
}

static int host_tree(struct fs_args *a, struct sb_err *err)
{
	int fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return sb_err_set(err, -errno, "cannot open /usr: %s", strerror(errno));
	arg(a, "--tree");
	argf(a, "usr=%d", give_fd(a, fd));
	for (size_t i = 0; sb_host_etc[i]; i++) {
		char path[128];
		struct stat st;

		(void)snprintf(path, sizeof(path), "/etc/%s", sb_host_etc[i]);
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) ||
		    (st.st_mode & (S_ISDIR(st.st_mode) ? 005 : 004)) !=
			    (S_ISDIR(st.st_mode) ? 005U : 004U)) {
			sb_fd_close(&fd);
			continue;
		}
		if (S_ISDIR(st.st_mode)) { /* a real descriptor: its entries will be listed */
			sb_fd_close(&fd);
			fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd < 0)
				continue;
		}
		arg(a, "--tree");
		argf(a, "etc/%s=%d", sb_host_etc[i], give_fd(a, fd));
	}
	return 0;
}

static int image_args(struct monitor *m, struct fs_args *a, struct sb_err *err)
{
	const struct sb_plan *p = m->plan;
	int fd = -1;
	int r;

	arg(a, "--ro");
	arg(a, "--cache");
	arg(a, "long");
	if (p->image == SB_IMAGE_HOST) {
		arg(a, "--root-is-root");
		return host_tree(a, err);
	}
	r = open_planned(p->image_path, false, p->image_dev, p->image_ino, &fd, err);
	if (r < 0)
		return r;
	arg(a, "--root-is-root");
	arg(a, "--root");
	argf(a, "%d", give_fd(a, fd));
	return 0;
}

/* The plan's strings: it outlives the start. */
static void guard_args(const struct sb_plan *p, const struct sb_plan_mount *pm, struct fs_args *a)
{
	for (size_t i = 0; i < p->n_guards; i++) {
		const struct sb_plan_guard *g = &p->guards[i];

		if (sb_plan_holder(p, g->path) != pm)
			continue;
		arg(a, g->mode == SB_GUARD_HIDDEN ? "--hide"
		       : g->mode == SB_GUARD_GIT  ? "--git-config"
						  : "--protect");
		arg(a, g->path + strlen(pm->guest) + 1);
	}
}

static int mount_args(struct monitor *m, const struct sb_plan_mount *pm, struct fs_args *a,
		      struct sb_err *err)
{
	const struct sb_plan *p = m->plan;
	int fd = -1;
	int r = open_planned(pm->host, pm->file, pm->dev, pm->ino, &fd, err);

	if (r < 0)
		return r;
	if (pm->mode == SB_MOUNT_RO)
		arg(a, "--ro");
	arg(a, "--cache");
	arg(a, "short");
	arg(a, "--map");
	argf(a, "%u:%u:%u:%u", p->owner_uid, p->owner_gid, p->uid, p->gid);
	if (pm->quota_bytes > 0) {
		arg(a, "--quota-bytes");
		argf(a, "%llu", (unsigned long long)pm->quota_bytes);
	}
	if (pm->quota_inodes > 0) {
		arg(a, "--quota-inodes");
		argf(a, "%llu", (unsigned long long)pm->quota_inodes);
	}
	if (geteuid() == 0) {
		arg(a, "--as");
		argf(a, "%u:%u", p->owner_uid, p->owner_gid);
	}
	guard_args(p, pm, a);
	arg(a, pm->file ? "--file" : "--root");
	argf(a, "%d", give_fd(a, fd));
	return 0;
}

/* The image's server needs no right but to read what everybody may read. */
#define IMAGE_UID 65534

static bool is_served(const struct monitor *m, size_t i)
{
	return i == 0 ? m->provider->is_vm && m->plan->image != SB_IMAGE_LAYERS : sb_plan_served(m->plan, i - 1);
}

int mon_start_fs(struct monitor *m, int guest_ends[MON_MAX_FS], struct sb_err *err)
{
	size_t n = m->plan->n_mounts + 1;

	for (size_t i = 0; i < n; i++) {
		struct fs_args *a = is_served(m, i) ? calloc(1, sizeof(*a)) : NULL;
		sb_autofd int theirs = -1;
		int sv[2];
		int r;

		if (i == 0 && !m->provider->is_vm && m->plan->n_layers > 0) {
			r = mon_start_layers(m, &guest_ends[0], err);
			m->n_fs = 1;
			if (r < 0)
				return r;
		}
		if (!is_served(m, i))
			continue;
		if (!a)
			return sb_err_set(err, -ENOMEM, "out of memory");
		arg(a, "sendbox-fs");
		r = i == 0 ? image_args(m, a, err) : mount_args(m, &m->plan->mounts[i - 1], a, err);
		if (r == 0 && i == 0 && geteuid() == 0 && m->plan->image == SB_IMAGE_HOST) {
			arg(a, "--as");
			argf(a, "%d:%d", IMAGE_UID, IMAGE_UID);
		}
		if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
			r = sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
		if (r == 0) {
			theirs = sv[0];
			guest_ends[i] = sv[1];
			r = mon_spawn(m, &m->fs[i], "file server", a->argv, theirs, a->fds,
				      a->n_fds, err);
			m->n_fs = i + 1;
		}
		for (size_t k = 0; k < a->n_fds; k++)
			sb_fd_close(&a->fds[k]);
		free(a);
		if (r < 0)
			return r;
	}
	return 0;
}

static void on_child(struct sb_io *io, uint32_t events)
{
	(void)events;
	mon_child_ended(io->owner);
}
