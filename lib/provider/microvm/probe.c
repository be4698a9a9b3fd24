#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/microvm/initramfs.h"
#include "provider/microvm/kvm_probe.h"
#include "provider/microvm/microvm.h"
#include "provider/microvm/qemu.h"
#include "provider/microvm/vm.h"

#define MEMORY_WANTED_MIB 768U /* the default guest and QEMU itself */
#define DISK_WANTED_MIB 256U   /* unpacked kernel, initramfs, sessions */

static void probe_qemu(struct sb_probe *p)
{
	const char *qemu = sb_qemu_find();
	char version[32];

	if (!qemu)
		sb_probe_add(p, "qemu", SB_CHECK_FAIL, SB_QEMU_REMEDY, "QEMU is not installed");
	else if (sb_qemu_version(qemu, version, sizeof(version)) < 0)
		sb_probe_add(p, "qemu", SB_CHECK_FAIL, SB_QEMU_REMEDY, "%s does not run", qemu);
	else if (strtoul(version, NULL, 10) < SB_QEMU_VERSION_MIN_MAJOR)
		sb_probe_add(p, "qemu", SB_CHECK_FAIL, SB_QEMU_REMEDY,
			     "%s is version %s; 7.0 or newer is needed", qemu, version);
	else
		sb_probe_add(p, "qemu", SB_CHECK_OK, "", "%s, version %s", qemu, version);
}

/* Length of the cause in "CAUSE; REMEDY": the remedy has a line of its own. */
static int cause_len(const char *text, const char *remedy)
{
	const char *at = text;

	while ((at = strstr(at, "; ")) && strncmp(at + 2, remedy, 12) != 0)
		at += 2;
	return (int)(at ? (size_t)(at - text) : strlen(text));
}

static void probe_kvm(enum sb_accel accel, struct sb_probe *p)
{
	struct sb_kvm_result kvm;

	sb_kvm_probe(&kvm);
	/* asked for TCG: nothing is missing, it is only said what could be had */
	sb_probe_add(p, "kvm",
		     kvm.usable ? SB_CHECK_OK
				: accel == SB_ACCEL_TCG ? SB_CHECK_WARN : SB_CHECK_FAIL,
		     kvm.remedy, "%s%s", kvm.text,
		     accel == SB_ACCEL_TCG && !kvm.usable ? " (software emulation was chosen)" : "");
}

static void probe_kernel(const struct sb_dirs *dirs, const char *kernel, struct sb_probe *p)
{
	struct sb_kernel k;
	struct sb_err err = { 0 };
	char remedy[300];

	(void)snprintf(remedy, sizeof(remedy), "%.200s/fetch-kernel%s", dirs->libexec,
		       kernel ? " (then leave out --kernel)" : "");
	if (sb_kernel_find(dirs, kernel, &k, &err) < 0 || sb_kernel_prepare(dirs, &k, &err) < 0 ||
	    sb_initramfs_check(&k, &err) < 0)
		sb_probe_add(p, "kernel", SB_CHECK_FAIL, remedy, "%s", err.text);
	else
		sb_probe_add(p, "kernel", SB_CHECK_OK, "", "%s (%.120s)", k.release, k.image);
}

static void probe_guest(const struct sb_dirs *dirs, struct sb_probe *p)
{
	char path[SB_KERNEL_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/sendbox-guest", dirs->libexec);
	if (access(path, R_OK) < 0)
		sb_probe_add(p, "guest", SB_CHECK_FAIL, "build or install sendbox again",
			     "%.150s: %s", path, strerror(errno));
	else
		sb_probe_add(p, "guest", SB_CHECK_OK, "", "%.180s", path);
}

static void probe_jail(const struct sb_dirs *dirs, struct sb_probe *p)
{
	bool root = geteuid() == 0;
	const char *qemu = sb_qemu_find();
	struct sb_err err = { 0 };

	if (!qemu)
		return; /* said above */
	if (sb_vm_jail_try(dirs->cache, qemu, &err) < 0)
		sb_probe_add(p, "jail", SB_CHECK_FAIL,
			     root ? SB_VM_JAIL_REMEDY_ROOT : SB_VM_JAIL_REMEDY_USER, "%.*s",
			     cause_len(err.text, root ? SB_VM_JAIL_REMEDY_ROOT
						      : SB_VM_JAIL_REMEDY_USER), err.text);
	else
		sb_probe_add(p, "jail", SB_CHECK_OK, "",
			     root ? "QEMU runs under an identity of its own, in new namespaces"
				  : "QEMU runs in a user namespace of its own");
}

/* MemAvailable of /proc/meminfo in MiB; 0 when it cannot be told. */
static uint64_t memory_available_mib(void)
{
	sb_autofree char *text = NULL;
	const char *line;
	size_t len;

	if (sb_fd_read_file(-1, "/proc/meminfo", 65536, &text, &len) < 0)
		return 0;
	line = strstr(text, "MemAvailable:");
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) / 1024 : 0;
}

static void probe_room(const struct sb_dirs *dirs, struct sb_probe *p)
{
	uint64_t memory = memory_available_mib();
	struct statvfs v;

	sb_probe_add(p, "memory", memory >= MEMORY_WANTED_MIB ? SB_CHECK_OK : SB_CHECK_WARN,
		     "end other programs or give the guest less: --memory 256m",
		     "%llu MiB available", (unsigned long long)memory);
	if (statvfs(dirs->cache, &v) < 0) {
		sb_probe_add(p, "disk", SB_CHECK_FAIL, "make the directory and own it", "%.150s: %s",
			     dirs->cache, strerror(errno));
	} else {
		unsigned long long mib = (unsigned long long)v.f_bavail * v.f_frsize >> 20;

		sb_probe_add(p, "disk", mib >= DISK_WANTED_MIB ? SB_CHECK_OK : SB_CHECK_WARN,
			     "free some space, or set SENDBOX_HOME to another disk",
			     "%llu MiB free for %.120s", mib, dirs->cache);
	}
}

void sb_microvm_probe(const struct sb_dirs *dirs, enum sb_accel accel, const char *kernel,
		      struct sb_probe *ret)
{
	ret->n_checks = 0;
	ret->ready = true;
	probe_qemu(ret);
	probe_kvm(accel, ret);
	probe_kernel(dirs, kernel, ret);
	probe_guest(dirs, ret);
	sb_probe_landlock(ret);
	probe_jail(dirs, ret);
	probe_room(dirs, ret);
}
