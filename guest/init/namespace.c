/*
 * Theory of operation.
 *
 * The provider made the namespaces and the id maps and executed this program as PID 1 of the pid
 * namespace, as root of the user namespace (caller root) or as the caller with all capabilities
 * over it (rootless). The first thing to do is to become invisible to equals (not dumpable), then
 * the signed plan is read and the root file system assembled from the host's mounts: by the
 * caller's own rights in the rootless case, from id-mapped trees handed over otherwise. Each
 * source is compared with the identity in the plan by descriptor, so a path that was swapped
 * after the plan was made is refused. With a network, the sockets that stand for every address are
 * made here and given to the net gate on the host, so that what a program dials arrives there with
 * no copying in between; from then on this process has no part in it. The end of this process
 * ends all that runs in the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "conn/boot.h"
#include "conn/inherit.h"
#include "exec/serve.h"
#include "init/init.h"
#include "init/net.h"
#include "init/ssh.h"
#include "init/served.h"
#include "rootfs/rootfs.h"

#define BOOT_TIMEOUT_MS 30000

/* Hide from processes of the same user, die with the monitor, keep no way to grow. */
static int shield(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	(void)umask(0);
	return 0;
}

static int read_boot(struct sb_boot *boot, struct sb_err *err)
{
	uint8_t pub[SB_SIGN_PUBLIC_LEN];
	time_t now = time(NULL);
	int e;

	if (pread(SB_INHERIT_KEY, pub, sizeof(pub), 0) != (ssize_t)sizeof(pub))
		return sb_err_set(err, -EBADF, "no host key was handed over");
	(void)close(SB_INHERIT_KEY);
	e = sb_boot_read(SB_INHERIT_CARRIER, pub, now > 0 ? (uint64_t)now : 1, BOOT_TIMEOUT_MS,
			 boot, err);
	if (e < 0)
		return sb_err_set(err, e, "cannot read the boot record: %s", strerror(-e));
	if (boot->plan->provider != SB_PROVIDER_NAMESPACE || boot->plan->test_root)
		return sb_err_set(err, -EINVAL, "this plan is not for a namespace");
	return 0;
}

static int same(int fd, uint64_t dev, uint64_t ino, const char *path, struct sb_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot look at %s: %s", path, strerror(errno));
	if (st.st_dev != dev || st.st_ino != ino)
		return sb_err_set(err, -ESTALE, "%s was replaced after the plan was made", path);
	return 0;
}

/* Copy the host mount at @path with the rights of the caller. */
static int take_own(const char *path, uint64_t dev, uint64_t ino, int *ret, struct sb_err *err)
{
	sb_autofd int fd = -1;
	int e = sb_mnt_open(AT_FDCWD, path, 0, &fd);

	if (e == -ELOOP)
		return sb_err_set(err, e, "%s is now reached through a symbolic link", path);
	if (e == 0 && ino != 0) {
		e = same(fd, dev, ino, path, err);
		if (e < 0)
			return e;
	}
	if (e == 0)
		e = sb_mnt_clone(fd, "", SB_MNT_SAFE, ret);
	return e < 0 ? sb_err_set(err, e, "cannot mount %s: %s", path, strerror(-e)) : 0;
}

static int open_etc(struct sb_rootfs *r, struct sb_err *err)
{
	r->etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (r->etc < 0)
		return sb_err_set(err, -errno, "cannot open /etc: %s", strerror(errno));
	return 0;
}

/* The server's socket, when there are layers, is what comes next. */
static int collect_layers(struct sb_rootfs *r, int *next, struct sb_err *err)
{
	int sock = r->plan->n_layers > 0 ? (*next)++ : -1;

	return sock >= 0 ? sb_served_layers(&sock, r->plan->n_layers, r->layers, err) : 0;
}

/*
 * Folder of an instance's changes, in the directory that the plan names. It was made by the provider
 * for the ids of this session when the caller is root, and is the caller's own otherwise.
 */
static int own_upper(struct sb_rootfs *r, struct sb_err *err)
{
	const struct sb_plan_upper *u = &r->plan->upper;
	sb_autofd int dir = -1;
	sb_autofd int at = -1;
	int e;

	if (u->kind != SB_UPPER_DIR)
		return 0;
	e = sb_mnt_open(AT_FDCWD, u->path, O_DIRECTORY, &dir);
	if (e == 0) {
		e = same(dir, u->dev, u->ino, u->path, err);
		if (e < 0)
			return e;
	}
	if (e == 0 && mkdirat(dir, SB_INHERIT_UPPER, 0755) < 0 && errno != EEXIST)
		e = -errno;
	if (e == 0)
		e = sb_mnt_open(dir, SB_INHERIT_UPPER, O_DIRECTORY, &at);
	if (e == 0)
		e = sb_mnt_clone(at, "", SB_MNT_SAFE, &r->disk);
	return e < 0 ? sb_err_set(err, e, "cannot use the upper layer %s: %s", u->path,
				  strerror(-e)) : 0;
}

static int collect_own(struct sb_rootfs *r, struct sb_served *served, struct sb_err *err)
{
	const struct sb_plan *p = r->plan;
	int next = SB_INHERIT_TREES;
	int e = 0;

	if (p->image == SB_IMAGE_HOST) {
		e = take_own("/usr", 0, 0, &r->image, err);
		if (e == 0)
			e = open_etc(r, err);
	} else if (p->image == SB_IMAGE_DIR) {
		e = take_own(p->image_path, p->image_dev, p->image_ino, &r->image, err);
	}
	if (e == 0)
		e = collect_layers(r, &next, err);
	if (e == 0)
		e = own_upper(r, err);
	for (size_t i = 0; e == 0 && i < p->n_mounts; i++) {
		const struct sb_plan_mount *m = &p->mounts[i];
		int sock = sb_plan_served(p, i) ? next++ : -1;

		e = sock >= 0 ? sb_served_take(m, &sock, served, &r->mounts[i], err)
			      : take_own(m->host, m->dev, m->ino, &r->mounts[i], err);
	}
	return e;
}

static int collect_image(struct sb_rootfs *r, int *next, struct sb_err *err)
{
	const struct sb_plan *p = r->plan;
	int etc;
	int e;

	if (p->image == SB_IMAGE_LAYERS)
		return 0;
	r->image = (*next)++;
	if (p->image != SB_IMAGE_HOST)
		return same(r->image, p->image_dev, p->image_ino, p->image_path, err);
	etc = (*next)++;
	/* cover the host's own, so that copies of parts of it are id-mapped too */
	e = sb_mnt_attach_path(etc, AT_FDCWD, "/etc");
	(void)close(etc);
	return e < 0 ? sb_err_set(err, e, "cannot mount /etc: %s", strerror(-e))
		     : open_etc(r, err);
}

static int collect_trees(struct sb_rootfs *r, struct sb_served *served, struct sb_err *err)
{
	const struct sb_plan *p = r->plan;
	int next = SB_INHERIT_TREES;
	int e = collect_image(r, &next, err);

	if (e == 0)
		e = collect_layers(r, &next, err);
	if (e < 0)
		return e;
	if (p->upper.kind == SB_UPPER_DIR)
		r->disk = next++;
	for (size_t i = 0; i < p->n_mounts; i++)
		r->mounts[i] = next++;
	for (size_t i = 0; e == 0 && i < p->n_mounts; i++) {
		const struct sb_plan_mount *m = &p->mounts[i];
		int sock = sb_plan_served(p, i) ? sb_fd_take(&r->mounts[i]) : -1;

		e = sock >= 0 ? sb_served_take(m, &sock, served, &r->mounts[i], err)
			      : same(r->mounts[i], m->dev, m->ino, m->host, err);
	}
	return e;
}

static int close_user_namespaces(struct sb_err *err)
{
	sb_autofd int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

	if (fd < 0 && errno == EROFS) /* frozen already: done before the freeze */
		return 0;
	if (fd < 0 || pwrite(fd, "0", 1, 0) != 1)
		return sb_err_set(err, -errno, "cannot close user namespaces: %s", strerror(errno));
	return 0;
}

/* The net gate gets the sockets; nothing of the network stays here. */
static int set_up_net(const struct sb_plan_net *n, struct sb_err *err)
{
	sb_autolisten struct sb_net_listen l = SB_NET_LISTEN_INIT;
	sb_autofd int front = SB_INHERIT_NET;
	int e;

	if (n->mode == SB_NET_NONE)
		return 0;
	e = sb_init_net(&l, err);
	return e < 0 ? e : sb_init_net_give(&l, front, err);
}

/* The same for the SSH relay; the socket lies in the new root. */
static int set_up_ssh(const struct sb_plan *p, struct sb_err *err)
{
	sb_autofd int front = SB_INHERIT_SSH;
	sb_autofd int sock = -1;
	int e;

	if (p->ssh.n_keys == 0)
		return 0;
	e = sb_init_ssh(p, &sock, err);
	return e < 0 ? e : sb_init_ssh_give(sock, front, err);
}

static int set_up(struct sb_boot *boot, bool trees, struct sb_served *served, int *export,
		  struct sb_err *err)
{
	sb_autorootfs struct sb_rootfs r;
	int e = shield();

	sb_rootfs_init(&r, NULL);
	if (e < 0)
		return sb_err_set(err, e, "cannot shield PID 1: %s", strerror(-e));
	if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		return sb_err_set(err, -errno, "cannot make mounts private: %s", strerror(errno));
	e = sb_init_lo_up();
	if (e < 0)
		return sb_err_set(err, e, "cannot bring up lo: %s", strerror(-e));
	e = read_boot(boot, err);
	if (e < 0)
		return e;
	if (sethostname(boot->plan->hostname, strlen(boot->plan->hostname)) < 0)
		return sb_err_set(err, -errno, "cannot set the host name: %s", strerror(errno));
	e = set_up_net(&boot->plan->net, err);
	if (e < 0)
		return e;
	r.plan = boot->plan;
	r.root_mapped = trees;
	e = trees ? collect_trees(&r, served, err) : collect_own(&r, served, err);
	if (boot->plan->task == SB_TASK_EXPORT) /* it is looked at from outside */
		*export = sb_fd_take(&r.disk);
	if (e == 0)
		e = sb_rootfs_build(&r, "/tmp", err);
	if (e == 0)
		e = close_user_namespaces(err);
	if (e == 0)
		e = sb_rootfs_enter(&r, err);
	if (e == 0)
		e = set_up_ssh(boot->plan, err);
	(void)umask(022);
	return e;
}

int sb_init_namespace(bool trees)
{
	struct sb_boot boot = { 0 };
	static struct sb_served served;
	struct sb_err err = { 0 };
	struct sb_guest_env env = { .boot = &boot, .carrier = SB_INHERIT_CARRIER,
				    .export = -1 };
	struct utsname uts;
	char ready[256];
	int e;

	if (sb_crypto_init() < 0) {
		sb_log("cannot start the crypto library");
		return 1;
	}
	e = set_up(&boot, trees, &served, &env.export, &err);
	if (e == 0) {
		e = sb_fd_set_nonblock(SB_INHERIT_CARRIER, true);
		if (e < 0)
			(void)sb_err_set(&err, e, "carrier: %s", strerror(-e));
	}
	if (e < 0) {
		sb_log("%s", err.text);
		sb_boot_done(&boot);
		return 1;
	}
	(void)uname(&uts);
	(void)snprintf(ready, sizeof(ready),
		       "kernel=%s\nruntime=namespace\nids=%s\nuser_namespaces=closed\n", uts.release,
		       trees ? "mapped" : "of the caller");
	env.ready_text = ready;
	env.pumps = served.pumps;
	env.n_pumps = served.n_pumps;
	e = sb_guest_serve(&env);
	if (e < 0)
		sb_log("session ended: %s", strerror(-e));
	sb_boot_done(&boot);
	return e < 0 ? 1 : 0;
}
