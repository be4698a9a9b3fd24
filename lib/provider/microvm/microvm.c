/*
 * Theory of operation: the micro-VM provider.
 *
 * prepare (command line program): find the kernel, unpack it, build the initramfs, put the digests
 * into the plan. start (monitor): everything is opened once, by the digest in the plan, checked,
 * and exactly that is what QEMU gets; the paths mean nothing afterwards. QEMU is the process that
 * is watched; it ends when the guest powers off, panics or faults (-no-reboot), and the kernel
 * kills it when the monitor dies.
 *
 * Nothing is made on the host but the QEMU process: stop kills it, destroy and gc have nothing
 * else to remove.
 */
#include "provider/microvm/microvm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "os/spawn.h"
#include "provider/executable.h"
#include "provider/microvm/initramfs.h"
#include "provider/microvm/kvm_probe.h"
#include "provider/microvm/qemu.h"
#include "provider/microvm/vm.h"

#define SESSION_ID_BASE 0x70000000U /* uids and gids of QEMU, far from any account's */
#define SESSION_ID_MASK 0x0fffffffU

static int choose_accel(struct sb_plan *plan, struct sb_err *err)
{
	struct sb_kvm_result kvm;

	if (plan->accel == SB_ACCEL_TCG)
		return 0;
	sb_kvm_probe(&kvm);
	if (!kvm.usable)
		return sb_err_set(err, -ENODEV, "KVM is not usable: %s; %s", kvm.text, kvm.remedy);
	plan->accel = SB_ACCEL_KVM;
	return 0;
}

static bool has_disks(const struct sb_plan *p)
{
	return p->n_layers > 0 || p->upper.kind == SB_UPPER_DISK;
}

static int prepare(const struct sb_dirs *dirs, const char *kernel, const struct sb_bundle *bundle,
		   const uint8_t pub[32], struct sb_plan *plan, struct sb_err *err)
{
	struct sb_kernel k;
	uint8_t initramfs[SB_SHA256_LEN];
	char *release;
	int r;

	r = sb_kernel_find(dirs, kernel, &k, err);
	if (r == -ENOENT) { /* on a fresh machine all that is missing, not one thing after the other */
		struct sb_err also = { 0 };

		if (choose_accel(plan, &also) < 0)
			(void)sb_err_add(err, r, "%s", also.text);
	}
	if (r == 0)
		r = sb_kernel_prepare(dirs, &k, err);
	if (r == 0)
		r = sb_initramfs_prepare(dirs, &k, bundle, pub, has_disks(plan), initramfs, err);
	if (r == 0)
		r = choose_accel(plan, err);
	if (r < 0)
		return r;
	if (!sb_qemu_find())
		return sb_err_set(err, -ENOENT, "QEMU is not installed; %s", SB_QEMU_REMEDY);
	r = sb_exe_add(plan, dirs->cache, "qemu", sb_qemu_find(), err);
	if (r < 0)
		return r;
	release = strdup(k.release);
	if (!release)
		return sb_err_set(err, -ENOMEM, "out of memory");
	free(plan->kernel_release);
	plan->kernel_release = release;
	memcpy(plan->kernel_sha256, k.elf_sha256, SB_SHA256_LEN);
	memcpy(plan->initramfs_sha256, initramfs, SB_SHA256_LEN);
	memcpy(plan->guest_sha256, sb_bundle_find(&bundle->m, SB_BUNDLE_GUEST)->sha256,
	       SB_SHA256_LEN);
	return 0;
}

/* Open <cache>/<dir>/<digest><suffix>. @path: room for SB_KERNEL_PATH_MAX bytes. */
static int open_part(const struct sb_dirs *dirs, const char *dir, const char *suffix,
		     const uint8_t sha[SB_SHA256_LEN], const char *what, char *path,
		     struct sb_err *err)
{
	char hex[SB_HEX_SHA256];
	int n;
	int fd;

	sb_hex_write(sha, SB_SHA256_LEN, hex);
	n = snprintf(path, SB_KERNEL_PATH_MAX, "%s/%s/%s%s", dirs->cache, dir, hex, suffix);
	if (n < 0 || n >= SB_KERNEL_PATH_MAX)
		return sb_err_set(err, -ENAMETOOLONG, "the cache directory's path is too long");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return sb_err_set(err, -errno, "the %s of the plan is gone: %s: %s", what, path,
				  strerror(errno));
	return fd;
}

static int tampered(const char *what, const char *path, struct sb_err *err)
{
	return sb_err_set(err, -EBADMSG,
			  "the %s was changed after the plan was made: %s; nothing was started",
			  what, path);
}

/* Read the initramfs once and check what was read. */
static int load_initramfs(const struct sb_start *in, uint8_t **ret, size_t *ret_len,
			  struct sb_err *err)
{
	sb_autofree uint8_t *p = NULL;
	char path[SB_KERNEL_PATH_MAX];
	uint8_t sha[SB_SHA256_LEN];
	struct stat st;
	sb_autofd int fd = open_part(in->dirs, "initramfs", ".cpio", in->plan->initramfs_sha256,
				     "initramfs", path, err);
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > SB_INITRAMFS_MAX)
		return tampered("initramfs", path, err);
	p = malloc((size_t)st.st_size);
	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = sb_fd_read_all(fd, p, (size_t)st.st_size);
	if (r < 0)
		return sb_err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	sb_sha256(p, (size_t)st.st_size, sha);
	if (memcmp(sha, in->plan->initramfs_sha256, sizeof(sha)) != 0)
		return tampered("initramfs", path, err);
	*ret = sb_take(&p);
	*ret_len = (size_t)st.st_size;
	return 0;
}

static int check_kernel(const struct sb_start *in, char *path, struct stat *st, struct sb_err *err)
{
	uint8_t sha[SB_SHA256_LEN];
	sb_autofd int fd = open_part(in->dirs, "kernels-elf", ".elf", in->plan->kernel_sha256,
				     "kernel", path, err);
	int r;

	if (fd < 0)
		return fd;
	r = sb_cache_sha256(in->dirs->cache, fd, sha, st);
	if (r == -EAGAIN || r == -EINVAL)
		return tampered("kernel", path, err);
	if (r < 0)
		return sb_err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	if (memcmp(sha, in->plan->kernel_sha256, sizeof(sha)) != 0)
		return tampered("kernel", path, err);
	return 0;
}

static int spawn_qemu(const struct sb_start *in, const struct sb_vm_argv *v,
		      const int disks[SB_VM_DISKS_MAX], struct sb_vm_jail *jail, struct sb_guest *g, struct sb_err *err)
{
	struct sb_spawn_fd fds[SB_VM_FS_MAX + SB_VM_DISKS_MAX + 3];
	struct sb_spawn s = { .path = jail->qemu, .argv = v->argv, .fds = fds,
			      .pre_exec = sb_vm_jail_enter, .arg = jail };
	struct sb_vm_jail_report *rep = mmap(NULL, sizeof(*rep), PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sb_err why = { 0 };
	int pidfd = -1;
	pid_t pid;
	int r;

	if (rep == MAP_FAILED)
		return sb_err_set(err, -errno, "mmap: %s", strerror(errno));
	jail->report = rep;
	fds[0] = (struct sb_spawn_fd){ in->console, 1 };
	fds[1] = (struct sb_spawn_fd){ in->console, 2 };
	fds[2] = (struct sb_spawn_fd){ in->carrier, SB_VM_FD_CARRIER };
	s.n_fds = 3;
	for (size_t i = 0; i < in->n_fs_socks; i++)
		if (in->fs_socks[i] >= 0)
			fds[s.n_fds++] =
				(struct sb_spawn_fd){ in->fs_socks[i], SB_VM_FD_FS + (int)i };
	for (size_t i = 0; i < SB_VM_DISKS_MAX; i++)
		if (disks[i] >= 0)
			fds[s.n_fds++] = (struct sb_spawn_fd){ disks[i], SB_VM_FD_DISK + (int)i };
	r = sb_spawn_start(&s, &pid, &pidfd, &why);
	if (r < 0)
		(void)sb_err_set(err, r, "%s%s", rep->code ? "the jail of QEMU: " : "",
				 rep->code ? rep->text : why.text);
	(void)munmap(rep, sizeof(*rep));
	jail->report = NULL;
	if (r < 0)
		return r;
	g->pid = pid;
	g->pidfd = pidfd;
	g->priv = NULL;
	return 0;
}

static int start_with(const struct sb_start *in, const int disks[SB_VM_DISKS_MAX],
		      uint64_t upper_bytes, struct sb_guest *ret, struct sb_err *err)
{
	sb_autofree struct sb_vm_argv *v = calloc(1, sizeof(*v));
	sb_autofree uint8_t *initramfs = NULL;
	char kernel[SB_KERNEL_PATH_MAX];
	const struct sb_plan *plan = in->plan;
	struct sb_vm_jail jail = { .as_root = geteuid() == 0, .root = in->session_path,
				   .kernel = kernel, .kvm = plan->accel == SB_ACCEL_KVM,
				   .file_bytes = upper_bytes };
	struct sb_vm_args a = { .arch = sb_vm_arch_host(), .accel = plan->accel,
				.cpus = plan->cpus, .memory_mib = plan->memory_bytes >> 20,
				.n_fs = in->n_fs_socks,
				.no_image = plan->image == SB_IMAGE_LAYERS,
				.n_layers = plan->n_layers,
				.upper = plan->upper.kind == SB_UPPER_DISK };
	sb_autofd int qemu = -1;
	struct sb_tsc tsc;
	int r;

	if (!v)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (in->n_fs_socks > SB_VM_FS_MAX)
		return sb_err_set(err, -EINVAL, "more mounts than the bus has ports");
	/* in its root the jail shows what is at the path, if it still is what was checked here */
	qemu = sb_exe_open(plan, in->dirs->cache, "qemu", &jail.qemu, &jail.qemu_stat, err);
	if (qemu < 0)
		return qemu;
	a.qemu = jail.qemu;
	sb_tsc_begin(&tsc);
	r = load_initramfs(in, &initramfs, &jail.initrd_len, err);
	if (r == 0)
		r = check_kernel(in, kernel, &jail.kernel_stat, err);
	if (r < 0)
		return r;
	jail.initrd = initramfs;
	if (plan->accel == SB_ACCEL_TCG)
		a.tsc_khz = sb_tsc_khz(&tsc);
	if (sb_vm_argv_make(&a, v) < 0)
		return sb_err_set(err, -EINVAL, "a micro-VM cannot have %u CPUs and %llu MiB",
				  plan->cpus, (unsigned long long)a.memory_mib);
	if (jail.as_root) {
		sb_random(&jail.id, sizeof(jail.id));
		jail.id = SESSION_ID_BASE + (jail.id & SESSION_ID_MASK);
	}
	return spawn_qemu(in, v, disks, &jail, ret, err);
}

static int start(const struct sb_start *in, struct sb_guest *ret, struct sb_err *err)
{
	int disks[SB_VM_DISKS_MAX];
	struct stat upper = { 0 };
	int r = sb_vm_disks_open(in->plan, disks, &upper, err);

	if (r < 0)
		return r;
	r = start_with(in, disks, (uint64_t)upper.st_size, ret, err);
	for (size_t i = 0; i < SB_VM_DISKS_MAX; i++)
		sb_fd_close(&disks[i]);
	return r;
}

static void stop(struct sb_guest *g)
{
	if (g->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
}

static int destroy(struct sb_guest *g, struct sb_err *err)
{
	(void)err;
	sb_fd_close(&g->pidfd);
	return 0;
}

/* The parent-death signal has killed QEMU, and its jail went with it. */
static int gc(const struct sb_dirs *dirs, int session_dir, struct sb_err *err)
{
	(void)dirs;
	(void)session_dir;
	(void)err;
	return 0;
}

const struct sb_provider sb_provider_microvm = {
	.name = "microvm",
	.id = SB_PROVIDER_MICROVM,
	.is_vm = true,
	.probe = sb_microvm_probe,
	.prepare = prepare,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.gc = gc,
};
