#include "provider/microvm/vm.h"
#include "t.h"

#include <string.h>

static void check_all(const struct sb_vm_argv *v, const char *const *want)
{
	size_t i;

	for (i = 0; want[i] && i < v->n; i++)
		CHECK_STR(v->argv[i], want[i]);
	CHECK(!want[i]);
	CHECK_EQ(v->n, i);
	CHECK(!v->argv[v->n]);
}

TEST(x86_tcg_two_ports)
{
	static const char *const want[] = {
		"/usr/bin/qemu-system-x86_64",
		"-M", "microvm,rtc=on",
		"-accel", "tcg",
		"-cpu",
		"qemu64,-svm,+cx16,+ssse3,+sse4.1,+sse4.2,+popcnt,+aes,+pclmulqdq,+rdrand,"
		"+rdtscp,+smep,+smap,+umip",
		"-smp", "2",
		"-m", "512M",
		"-name", "sendbox",
		"-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-global", "virtio-mmio.force-legacy=false",
		"-chardev", "stdio,id=con,mux=off,signal=off",
		"-serial", "chardev:con",
		"-device", "virtio-serial-device,max_ports=31",
		"-chardev", "socket,id=chan,fd=3",
		"-device", "virtserialport,chardev=chan,name=sb.chan,nr=1",
		"-chardev", "socket,id=fs0,fd=4",
		"-device", "virtserialport,chardev=fs0,name=sb.fs0,nr=2",
		"-chardev", "socket,id=fs1,fd=5",
		"-device", "virtserialport,chardev=fs1,name=sb.fs1,nr=3",
		"-device", "virtio-balloon-device,free-page-reporting=on",
		"-kernel", "/kernel",
		"-initrd", "/initrd",
		"-append",
		"console=ttyS0 quiet panic=-1 oops=panic cryptomgr.notests pci=off "
		"lsm=landlock,yama audit=0 random.trust_cpu=on 8250.nr_uarts=1 no_timer_check "
		"i8042.noaux i8042.nokbd tsc_early_khz=2596144",
		NULL,
	};
	struct sb_vm_args a = { .arch = SB_VM_ARCH_X86_64, .accel = SB_ACCEL_TCG,
				.qemu = "/usr/bin/qemu-system-x86_64", .cpus = 2,
				.memory_mib = 512, .tsc_khz = 2596144, .n_fs = 2 };
	static struct sb_vm_argv v;

	CHECK_EQ(sb_vm_argv_make(&a, &v), 0);
	check_all(&v, want);
}

TEST(aarch64_kvm_no_files)
{
	static const char *const want[] = {
		"/usr/bin/qemu-system-aarch64",
		"-M", "virt,gic-version=host,its=off",
		"-accel", "kvm",
		"-cpu", "host",
		"-smp", "1",
		"-m", "1024M",
		"-name", "sendbox",
		"-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-global", "virtio-mmio.force-legacy=false",
		"-chardev", "stdio,id=con,mux=off,signal=off",
		"-serial", "chardev:con",
		"-device", "virtio-serial-device,max_ports=31",
		"-chardev", "socket,id=chan,fd=3",
		"-device", "virtserialport,chardev=chan,name=sb.chan,nr=1",
		"-device", "virtio-rng-device",
		"-device", "virtio-balloon-device,free-page-reporting=on",
		"-kernel", "/kernel",
		"-initrd", "/initrd",
		"-append",
		"console=ttyAMA0 quiet panic=-1 oops=panic cryptomgr.notests pci=off "
		"lsm=landlock,yama audit=0 random.trust_cpu=on",
		NULL,
	};
	struct sb_vm_args a = { .arch = SB_VM_ARCH_AARCH64, .accel = SB_ACCEL_KVM,
				.qemu = "/usr/bin/qemu-system-aarch64", .cpus = 1,
				.memory_mib = 1024 };
	static struct sb_vm_argv v;

	CHECK_EQ(sb_vm_argv_make(&a, &v), 0);
	check_all(&v, want);
}

/* Where the option @name with value @value is; v->n: nowhere. */
static size_t find(const struct sb_vm_argv *v, const char *name, const char *value)
{
	for (size_t i = 0; i + 1 < v->n; i++)
		if (strcmp(v->argv[i], name) == 0 && strcmp(v->argv[i + 1], value) == 0)
			return i;
	return v->n;
}

TEST(disks_are_raw_descriptors)
{
	const struct sb_vm_args a = { .arch = SB_VM_ARCH_X86_64, .accel = SB_ACCEL_KVM,
				      .qemu = "/q", .cpus = 1, .memory_mib = 512, .n_fs = 2,
				      .no_image = true, .n_layers = SB_PLAN_MAX_LAYERS,
				      .upper = true };
	static struct sb_vm_argv v;
	size_t raw = 0;

	REQUIRE(sb_vm_argv_make(&a, &v) == 0);
	CHECK(find(&v, "-add-fd", "fd=29,set=0") < v.n);
	CHECK(find(&v, "-blockdev",
		   "driver=raw,node-name=layer0,read-only=on,auto-read-only=off,discard=ignore,"
		   "file.driver=file,file.filename=/dev/fdset/0,file.aio=threads,file.locking=off") <
	      v.n);
	CHECK(find(&v, "-device", "virtio-blk-device,drive=layer7,serial=layer7") < v.n);
	CHECK(find(&v, "-blockdev",
		   "driver=raw,node-name=upper,read-only=off,auto-read-only=off,discard=unmap,"
		   "file.driver=file,file.filename=/dev/fdset/8,file.aio=threads,file.locking=on") <
	      v.n);
	CHECK(find(&v, "-device", "virtio-blk-device,drive=upper,serial=upper") < v.n);
	CHECK(find(&v, "-device", "virtserialport,chardev=fs0,name=sb.fs0,nr=2") == v.n);
	CHECK(find(&v, "-device", "virtserialport,chardev=fs1,name=sb.fs1,nr=3") < v.n);
	for (size_t i = 0; i < v.n; i++) {
		raw += strncmp(v.argv[i], "driver=raw,", 11) == 0;
		CHECK(strcmp(v.argv[i], "-drive") != 0);
	}
	CHECK_EQ(raw, SB_PLAN_MAX_LAYERS + 1);
}

TEST(ranges)
{
	struct sb_vm_args good = { .arch = SB_VM_ARCH_X86_64, .accel = SB_ACCEL_KVM, .qemu = "/q",
				   .cpus = 255, .memory_mib = 64, .n_fs = SB_VM_FS_MAX };
	struct sb_vm_args a = good;
	static struct sb_vm_argv v;

	CHECK_EQ(sb_vm_argv_make(&a, &v), 0);
	CHECK_STR(v.argv[2], "microvm,rtc=off,pit=off,pic=off");
	a.n_fs++;
	CHECK_EQ(sb_vm_argv_make(&a, &v), -EINVAL);
	a = good;
	a.cpus = 0;
	CHECK_EQ(sb_vm_argv_make(&a, &v), -EINVAL);
	a = good;
	a.memory_mib = 63;
	CHECK_EQ(sb_vm_argv_make(&a, &v), -EINVAL);
	a = good;
	a.accel = SB_ACCEL_NONE;
	CHECK_EQ(sb_vm_argv_make(&a, &v), -EINVAL);
	a = good;
	a.arch = SB_VM_ARCH_NONE;
	CHECK_EQ(sb_vm_argv_make(&a, &v), -EINVAL);
}

TEST(tsc_is_steady)
{
	struct sb_tsc t;
	uint64_t a;
	uint64_t b;

	sb_tsc_begin(&t);
	a = sb_tsc_khz(&t);
	sb_tsc_begin(&t);
	b = sb_tsc_khz(&t);
	if (sb_vm_arch_host() != SB_VM_ARCH_X86_64) {
		CHECK_EQ(a, 0);
		return;
	}
	CHECK(a > 100000 && a < 10000000);
	CHECK((a > b ? a - b : b - a) < a / 1000);
}
