#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "provider/microvm/vm.h"

/*
 * Theory of operation: docs/design/microvm.md. Two switches make the boot fast (cryptomgr.notests
 * and an unpacked kernel), one makes it safe on a busy host (tsc_early_khz); the rest takes away
 * what the guest does not need. Everything that can be said with -nodefaults is said here: what
 * is not on this command line is not in the machine.
 */

#define SANDBOX "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

static void add(struct sb_vm_argv *v, const char *literal)
{
	sb_assert(v->n < SB_VM_ARGV_MAX);
	v->argv[v->n++] = literal;
	v->argv[v->n] = NULL;
}

static void add2(struct sb_vm_argv *v, const char *option, const char *value)
{
	add(v, option);
	add(v, value);
}

SB_PRINTF(3, 4) static void addf(struct sb_vm_argv *v, const char *option, const char *fmt, ...)
{
	size_t room = sizeof(v->text) - v->used;
	char *at = v->text + v->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	sb_assert(n >= 0 && (size_t)n < room);
	v->used += (size_t)n + 1;
	add2(v, option, at);
}

static const char *machine(const struct sb_vm_args *a)
{
	bool kvm = a->accel == SB_ACCEL_KVM;

	if (a->arch == SB_VM_ARCH_AARCH64)
		return kvm ? "virt,gic-version=host,its=off" : "virt,gic-version=3,its=off";
	/* Without a clock chip the guest spins for two seconds under TCG; KVM has kvm-clock. */
	return kvm ? "microvm,rtc=off,pit=off,pic=off" : "microvm,rtc=on";
}

/*
 * Under TCG the model is x86-64-v2 with the guard bits that kernels use, not "max": a stock kernel
 * boots 15 % faster on it (measured: emulated AVX state, ERMS string moves), and string functions
 * of the C library pick SSE2, which TCG does better than AVX. RDRAND, for the entropy at boot, is
 * answered by QEMU from the host.
 */
static const char *cpu(const struct sb_vm_args *a)
{
	if (a->accel == SB_ACCEL_KVM)
		return "host";
	if (a->arch == SB_VM_ARCH_AARCH64)
		return "max,pauth-impdef=on"; /* the architected algorithm is slow in software */
	return "qemu64,-svm,+cx16,+ssse3,+sse4.1,+sse4.2,+popcnt,+aes,+pclmulqdq,+rdrand,"
	       "+rdtscp,+smep,+smap,+umip";
}

static void add_kernel_options(struct sb_vm_argv *v, const struct sb_vm_args *a)
{
	static const char common[] = "quiet panic=-1 oops=panic cryptomgr.notests pci=off "
				     "lsm=landlock,yama audit=0 random.trust_cpu=on";
	bool x86 = a->arch == SB_VM_ARCH_X86_64;
	char tsc[40] = "";

	if (x86 && a->tsc_khz > 0)
		(void)snprintf(tsc, sizeof(tsc), " tsc_early_khz=%" PRIu64, a->tsc_khz);
	if (x86)
		addf(v, "-append",
		     "console=ttyS0 %s 8250.nr_uarts=1 no_timer_check i8042.noaux i8042.nokbd%s",
		     common, tsc);
	else
		addf(v, "-append", "console=ttyAMA0 %s", common);
}

static void add_ports(struct sb_vm_argv *v, const struct sb_vm_args *a)
{
	add2(v, "-device", "virtio-serial-device,max_ports=31");
	addf(v, "-chardev", "socket,id=chan,fd=%d", SB_VM_FD_CARRIER);
	add2(v, "-device", "virtserialport,chardev=chan,name=sb.chan,nr=1");
	for (unsigned int i = a->no_image ? 1 : 0; i < a->n_fs; i++) {
		addf(v, "-chardev", "socket,id=fs%u,fd=%u", i, SB_VM_FD_FS + i);
		addf(v, "-device", "virtserialport,chardev=fs%u,name=sb.fs%u,nr=%u", i, i, i + 2);
	}
}

/*
 * The format is stated, never looked for: what a guest writes into its disk is bytes. The files are
 * descriptors in sets of their own; the jail has no path to them.
 */
static void add_disk(struct sb_vm_argv *v, unsigned int i, const char *name, bool writable)
{
	addf(v, "-add-fd", "fd=%u,set=%u", SB_VM_FD_DISK + i, i);
	addf(v, "-blockdev",
	     "driver=raw,node-name=%s,read-only=%s,auto-read-only=off,discard=%s,"
	     "file.driver=file,file.filename=/dev/fdset/%u,file.aio=threads,file.locking=%s",
	     name, writable ? "off" : "on", writable ? "unmap" : "ignore", i,
	     writable ? "on" : "off");
	addf(v, "-device", "virtio-blk-device,drive=%s,serial=%s", name, name);
}

static void add_disks(struct sb_vm_argv *v, const struct sb_vm_args *a)
{
	char name[16];

	for (unsigned int i = 0; i < a->n_layers; i++) {
		(void)snprintf(name, sizeof(name), "layer%u", i);
		add_disk(v, i, name, false);
	}
	if (a->upper)
		add_disk(v, (unsigned int)a->n_layers, "upper", true);
}

int sb_vm_argv_make(const struct sb_vm_args *a, struct sb_vm_argv *ret)
{
	struct sb_vm_argv *v = ret;

	if ((a->arch != SB_VM_ARCH_X86_64 && a->arch != SB_VM_ARCH_AARCH64) ||
	    (a->accel != SB_ACCEL_KVM && a->accel != SB_ACCEL_TCG) || a->cpus < 1 ||
	    a->cpus > 255 || a->memory_mib < 64 || a->memory_mib > (UINT64_C(1) << 22) ||
	    a->n_fs > SB_VM_FS_MAX || a->n_layers > SB_PLAN_MAX_LAYERS)
		return -EINVAL;
	v->n = 0;
	v->used = 0;
	add(v, a->qemu);
	add2(v, "-M", machine(a));
	add2(v, "-accel", a->accel == SB_ACCEL_KVM ? "kvm" : "tcg");
	add2(v, "-cpu", cpu(a));
	addf(v, "-smp", "%u", a->cpus);
	addf(v, "-m", "%" PRIu64 "M", a->memory_mib);
	add2(v, "-name", "sendbox");
	add(v, "-nodefaults");
	add(v, "-no-user-config");
	add(v, "-nographic");
	add(v, "-no-reboot");
	add2(v, "-sandbox", SANDBOX);
	add2(v, "-global", "virtio-mmio.force-legacy=false");
	/* Standard output is the console file, bounded by RLIMIT_FSIZE; input is /dev/null. */
	add2(v, "-chardev", "stdio,id=con,mux=off,signal=off");
	add2(v, "-serial", "chardev:con");
	add_ports(v, a);
	add_disks(v, a);
	/* x86 guests have RDRAND (and random.trust_cpu); a device less to boot and to attack */
	if (a->arch == SB_VM_ARCH_AARCH64)
		add2(v, "-device", "virtio-rng-device");
	add2(v, "-device", "virtio-balloon-device,free-page-reporting=on");
	add2(v, "-kernel", SB_VM_KERNEL);
	add2(v, "-initrd", SB_VM_INITRD);
	add_kernel_options(v, a);
	return 0;
}
