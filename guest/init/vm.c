/*
 * Theory of operation.
 *
 * PID 1 of a micro-VM. The initial root file system holds this program, the host's public key and
 * the modules that the kernel needs; everything else comes from the host: the signed plan over
 * the channel's port, files over one port a mount. Nothing of the workload runs before the kernel
 * is hardened, module loading is closed and the root file system is complete. Whatever goes
 * wrong is told in one line on the console, and the machine is powered off: a guest that is not
 * as planned is worth nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "conn/boot.h"
#include "exec/serve.h"
#include "init/disk.h"
#include "init/init.h"
#include "init/net.h"
#include "init/port.h"
#include "init/served.h"
#include "init/ssh.h"
#include "rootfs/rootfs.h"

#define MODULES "/sendbox/modules"
#define OVERLAY "overlay.ko" /* for image folders only; it takes a while to load */
#define BOOT_TIMEOUT_MS 60000
#define PORT_TIMEOUT_MS 10000
#define CLOCK_SLACK_S 2
#define READY_MAX 4096

SB_NORETURN static void power_off(void)
{
	sync();
	for (;;) {
		(void)reboot(RB_POWER_OFF);
		(void)pause();
	}
}

/* An assertion or a fault in PID 1: the machine is not to be trusted any more. */
static void fatal_signal(int signo)
{
	static const char text[] = "sendbox-guest: PID 1 failed; powering off\n";

	(void)signo;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		(void)signo;
	(void)reboot(RB_POWER_OFF);
	_exit(1);
}

static void catch_faults(void)
{
	static const int fatal[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
	struct sigaction sa = { .sa_handler = fatal_signal, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < SB_ARRAY_LEN(fatal); i++)
		(void)sigaction(fatal[i], &sa, NULL);
}

static int mount_early(struct sb_err *err)
{
	static const struct {
		const char *type;
		const char *at;
	} fs[] = { { "proc", "/proc" }, { "sysfs", "/sys" }, { "devtmpfs", "/dev" } };

	for (size_t i = 0; i < SB_ARRAY_LEN(fs); i++) {
		(void)mkdir(fs[i].at, 0755);
		if (mount(fs[i].type, fs[i].at, fs[i].type, MS_NOSUID | MS_NOEXEC, NULL) < 0 &&
		    errno != EBUSY)
			return sb_err_set(err, -errno, "cannot mount %s: %s", fs[i].at,
					  strerror(errno));
	}
	return 0;
}

/* Descriptors 0, 1, 2 on the console, whatever the kernel gave. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0)
		return;
	for (int i = 0; i < 3; i++)
		if (fd != i)
			(void)dup2(fd, i);
	if (fd > 2)
		(void)close(fd);
}

static int read_boot(int chan, struct sb_boot *boot, struct sb_err *err)
{
	sb_autofd int fd = open("/sendbox/host.pub", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint8_t pub[SB_SIGN_PUBLIC_LEN];
	int e;

	if (fd < 0)
		return sb_err_set(err, -errno, "no host key in this image: %s", strerror(errno));
	e = sb_fd_read_all(fd, pub, sizeof(pub));
	if (e == 0) /* no clock yet: the expiry is checked when it is set */
		e = sb_boot_read(chan, pub, 0, BOOT_TIMEOUT_MS, boot, err);
	if (e < 0)
		return sb_err_set(err, e, "cannot read the boot record: %s", strerror(-e));
	if (boot->plan->provider != SB_PROVIDER_MICROVM)
		return sb_err_set(err, -EINVAL, "this plan is not for a micro-VM");
	return 0;
}

/* The plan was made by the host moments ago; a clock that is far from it is wrong. */
static int set_clock(const struct sb_plan *p, struct sb_err *err)
{
	struct timespec now;
	struct timespec want = { .tv_sec = (time_t)p->created_unix_s };

	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return sb_err_set(err, -errno, "no clock: %s", strerror(errno));
	/* the boot itself takes seconds: only a clock before the plan or past its end is wrong */
	if ((now.tv_sec + CLOCK_SLACK_S < want.tv_sec ||
	     (uint64_t)now.tv_sec > p->expires_unix_s) &&
	    clock_settime(CLOCK_REALTIME, &want) < 0)
		return sb_err_set(err, -errno, "cannot set the clock: %s", strerror(errno));
	return 0;
}

static int write_text(const char *path, const char *text)
{
	sb_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return sb_fd_write_all(fd, text, strlen(text));
}

/* Controllers for everybody below, and the folder in which commands get their leaves. */
static int set_up_cgroup(struct sb_err *err)
{
	static const char *const want[] = { "+cpu", "+memory", "+pids", "+io" };
	static const char *const levels[] = {
		SB_CGROUP_DIR "/cgroup.subtree_control",
		SB_CGROUP_DIR "/sendbox/cgroup.subtree_control",
	};

	if (mkdir(SB_CGROUP_DIR "/sendbox", 0755) < 0)
		return sb_err_set(err, -errno, "cannot make the cgroup: %s", strerror(errno));
	for (size_t l = 0; l < SB_ARRAY_LEN(levels); l++) {
		for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
			int e = write_text(levels[l], want[i]);

			if (e < 0 && strcmp(want[i], "+io") != 0)
				return sb_err_set(err, e, "cgroup controller %s: %s", want[i],
						  strerror(-e));
		}
	}
	return 0;
}

static int set_up_root(const struct sb_plan *p, struct sb_served *served, int *export,
		       struct sb_err *err)
{
	sb_autorootfs struct sb_rootfs r;
	int e;

	sb_rootfs_init(&r, p);
	r.vm = true;
	r.root_mapped = true;
	(void)umask(0);
	e = sb_disks_mount(p, &r, export, err);
	if (e == 0)
		e = sb_served_mount(p, served, &r, err);
	if (e == 0)
		e = sb_rootfs_build(&r, "/run", err);
	if (e == 0)
		sb_served_tune(p, "/run/root");
	if (e == 0)
		e = sb_rootfs_enter(&r, err);
	(void)umask(022);
	return e;
}

static int harden(int proc, enum sb_profile profile, char *ready, size_t cap, struct sb_err *err)
{
	const char *told = "";
	struct utsname uts;
	int e = sb_init_sysctl(proc, profile, &told, err);

	if (e == 0)
		e = sb_init_no_more_modules(proc, err);
	if (e < 0)
		return e;
	(void)uname(&uts);
	(void)snprintf(ready, cap, "kernel=%s\nruntime=micro-VM\nmodules=closed\n"
		       "user_namespaces=closed\n%s", uts.release, told);
	return 0;
}

/* Modules, addresses, rules and sockets; without a network nothing but lo. */
static int set_up_net(const struct sb_plan_net *n, struct sb_net_listen *ret, struct sb_err *err)
{
	int e = sb_init_lo_up();

	if (e < 0)
		return sb_err_set(err, e, "cannot bring up lo: %s", strerror(-e));
	if (n->mode == SB_NET_NONE)
		return 0;
	e = sb_init_modules(MODULES, MODULES ".net", NULL, err);
	return e < 0 ? e : sb_init_net(ret, err);
}

struct vm {
	struct sb_boot boot;
	struct sb_served served;
	struct sb_net_listen net;
	int ssh;
	int chan;
	int export; /* task EXPORT: the upper layer */
	char ready[READY_MAX];
};

static int boot_up(struct vm *vm, struct sb_err *err)
{
	struct sb_boot *boot = &vm->boot;
	sb_autofd int proc = -1;
	int e = mount_early(err);

	open_console();
	if (e == 0)
		e = sb_init_modules(MODULES, MODULES ".order", OVERLAY, err);
	if (e == 0)
		e = sb_port_open("sb.chan", PORT_TIMEOUT_MS, &vm->chan, err);
	if (e == 0)
		e = read_boot(vm->chan, boot, err);
	if (e == 0)
		e = set_clock(boot->plan, err);
	if (e < 0)
		return e;
	if (sethostname(boot->plan->hostname, strlen(boot->plan->hostname)) < 0)
		return sb_err_set(err, -errno, "cannot set the host name: %s", strerror(errno));
	e = set_up_net(&boot->plan->net, &vm->net, err);
	if (e == 0 && (boot->plan->image != SB_IMAGE_HOST || sb_rootfs_is_laid(boot->plan)))
		e = sb_init_module(MODULES, OVERLAY, err);
	if (e == 0 && (boot->plan->n_layers > 0 || boot->plan->upper.kind == SB_UPPER_DISK))
		e = sb_init_modules(MODULES, MODULES ".disk", NULL, err);
	if (e == 0 && boot->plan->upper.kind == SB_UPPER_DISK)
		e = sb_init_modules(MODULES, MODULES ".upper", NULL, err);
	if (e < 0)
		return e;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return sb_err_set(err, -errno, "cannot open /proc: %s", strerror(errno));
	e = set_up_root(boot->plan, &vm->served, &vm->export, err);
	if (e == 0)
		e = set_up_cgroup(err);
	if (e == 0 && boot->plan->ssh.n_keys > 0)
		e = sb_init_ssh(boot->plan, &vm->ssh, err);
	return e < 0 ? e : harden(proc, boot->plan->profile, vm->ready, READY_MAX, err);
}

/* Flush and let go of what the host serves while its pumps still run, then end everything. */
static void wind_down(const struct sb_plan *p, const struct sb_served *served)
{
	sync();
	if (p)
		for (size_t i = p->n_mounts; i > 0; i--)
			(void)umount2(p->mounts[i - 1].guest, MNT_DETACH);
	(void)served;
	(void)kill(-1, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

void sb_init_vm(void)
{
	static struct vm vm = { .net = SB_NET_LISTEN_INIT, .ssh = -1, .chan = -1,
			        .export = -1 };
	struct sb_err err = { 0 };
	struct sb_guest_env env = {
		.boot = &vm.boot, .carrier = -1, .export = -1, .vm = true, .cgroup = SB_CGROUP_DIR "/sendbox",
	};
	int e;

	catch_faults();
	e = sb_crypto_init();
	if (e < 0)
		(void)sb_err_set(&err, e, "cannot start the crypto library");
	else
		e = boot_up(&vm, &err);
	if (e == 0) {
		env.carrier = vm.chan;
		env.export = vm.export;
		env.ready_text = vm.ready;
		env.pumps = vm.served.pumps;
		env.n_pumps = vm.served.n_pumps;
		env.ssh = vm.ssh >= 0 ? &vm.ssh : NULL;
		env.net = vm.net.fd[SB_NET_TCP4] >= 0 ? vm.net.fd : NULL;
		e = sb_guest_serve(&env);
		if (e < 0)
			(void)sb_err_set(&err, e, "session ended: %s", strerror(-e));
	}
	if (e < 0)
		sb_log("%s", err.text);
	wind_down(vm.boot.plan, &vm.served);
	sb_boot_done(&vm.boot);
	power_off();
}
