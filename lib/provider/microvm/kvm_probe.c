#include "provider/microvm/kvm_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define CHILD_LIMIT_MS 2000

enum verdict { NONE = 0, USABLE, NO_DEVICE, NO_ACCESS, BAD_VERSION, LACKS, EMULATING, BROKEN };
struct answer {
	enum verdict verdict;
	int error; /* errno that goes with it, or the exit reason */
};

static const int needed[] = { KVM_CAP_USER_MEMORY, KVM_CAP_IRQCHIP, KVM_CAP_IOEVENTFD,
			      KVM_CAP_IRQFD, KVM_CAP_IMMEDIATE_EXIT };

#if defined(__x86_64__)
#define LOOPS 200000U
#define RUN_LIMIT_MS 30
#define GOOD_MS 20 /* KVM inside an emulated machine: 8 ms */
#define MEM_BYTES 0x200000U
#define CODE_AT 0x1000U
#define PML4_AT 0x10000U
#define PDPT_AT 0x11000U
#define PD_AT 0x12000U
#define PTE_RW_PRESENT 0x3U
#define PDE_LARGE 0x80U
#define CR0_PE_PG 0x80000033U /* protection, paging, and the bits that are always on */
#define CR4_PAE 0x20U
#define EFER_LME_LMA 0x500U
#define CPUID_MAX 256

static struct kvm_run *volatile running;
static volatile sig_atomic_t cut_off;

static void on_alarm(int sig)
{
	struct kvm_run *r = running;

	(void)sig;
	cut_off = 1;
	if (r)
		r->immediate_exit = 1;
}

static void put64(uint8_t *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
}

/* 64-bit ring 0, one 2 MiB page mapped onto itself; flat segments. */
static void set_long_mode(struct kvm_sregs *s)
{
	struct kvm_segment seg = { .limit = 0xffffffff, .present = 1, .s = 1, .g = 1 };

	seg.type = 3; /* data, writable, accessed */
	seg.db = 1;
	seg.selector = 16;
	s->ds = s->es = s->fs = s->gs = s->ss = seg;
	seg.type = 11; /* code, readable, accessed */
	seg.db = 0;
	seg.l = 1;
	seg.selector = 8;
	s->cs = seg;
	s->cr3 = PML4_AT;
	s->cr4 = CR4_PAE;
	s->cr0 = CR0_PE_PG;
	s->efer = EFER_LME_LMA;
}

/* The CPU's features as KVM offers them; without them EFER.LME may be refused. */
static void set_cpuid(int kvm, int vcpu)
{
	size_t size = sizeof(struct kvm_cpuid2) + CPUID_MAX * sizeof(struct kvm_cpuid_entry2);
	struct kvm_cpuid2 *c = calloc(1, size);

	if (!c)
		return;
	c->nent = CPUID_MAX;
	if (ioctl(kvm, KVM_GET_SUPPORTED_CPUID, c) == 0)
		(void)ioctl(vcpu, KVM_SET_CPUID2, c); /* a failure shows in the run */
	free(c);
}

static int make_vm(int kvm, int *ret_vcpu, struct kvm_run **ret_run)
{
	static const uint8_t code[] = { 0xff, 0xc9, 0x75, 0xfc, 0xf4 }; /* dec ecx; jnz; hlt */
	struct kvm_userspace_memory_region mem = { .memory_size = MEM_BYTES };
	struct kvm_regs regs = { .rflags = 2, .rip = CODE_AT, .rsp = 0x8000, .rcx = LOOPS };
	struct kvm_sregs sregs;
	uint8_t *ram;
	int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	if (vm < 0 || size < (int)sizeof(struct kvm_run))
		return -errno;
	(void)ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000UL);
	ram = mmap(NULL, MEM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ram == MAP_FAILED)
		return -errno;
	memcpy(ram + CODE_AT, code, sizeof(code));
	put64(ram + PML4_AT, PDPT_AT | PTE_RW_PRESENT);
	put64(ram + PDPT_AT, PD_AT | PTE_RW_PRESENT);
	put64(ram + PD_AT, PDE_LARGE | PTE_RW_PRESENT);
	mem.userspace_addr = (uintptr_t)ram;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &mem) < 0)
		return -errno;
	*ret_vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (*ret_vcpu < 0)
		return -errno;
	*ret_run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_vcpu, 0);
	if (*ret_run == MAP_FAILED || ioctl(*ret_vcpu, KVM_GET_SREGS, &sregs) < 0)
		return -errno;
	set_cpuid(kvm, *ret_vcpu);
	set_long_mode(&sregs);
	if (ioctl(*ret_vcpu, KVM_SET_SREGS, &sregs) < 0 ||
	    ioctl(*ret_vcpu, KVM_SET_REGS, &regs) < 0)
		return -errno;
	return 0;
}

static int64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The process ends after this: it owns what is made here. */
static struct answer try_run(int kvm)
{
	struct itimerspec at = { .it_value.tv_nsec = RUN_LIMIT_MS * 1000000L,
				 .it_interval.tv_nsec = 5000000L };
	struct sigaction sa = { .sa_handler = on_alarm };
	struct kvm_run *run = NULL;
	struct kvm_regs regs;
	int64_t start;
	timer_t timer;
	int vcpu = -1;
	int r = make_vm(kvm, &vcpu, &run);
	int64_t took;

	if (r < 0)
		return (struct answer){ BROKEN, -r };
	running = run;
	if (sigaction(SIGALRM, &sa, NULL) < 0 || timer_create(CLOCK_MONOTONIC, NULL, &timer) < 0 ||
	    timer_settime(timer, 0, &at, NULL) < 0)
		return (struct answer){ BROKEN, errno };
	start = now_us();
	do {
		r = ioctl(vcpu, KVM_RUN, 0);
	} while (r < 0 && errno == EINTR && !cut_off);
	took = now_us() - start;
	if (cut_off)
		return (struct answer){ EMULATING, 0 };
	if (r < 0)
		return (struct answer){ BROKEN, errno };
	if (run->exit_reason != KVM_EXIT_HLT || ioctl(vcpu, KVM_GET_REGS, &regs) < 0 ||
	    (uint32_t)regs.rcx != 0)
		return (struct answer){ BROKEN, EPROTO };
	return (struct answer){ took < GOOD_MS * 1000 ? USABLE : EMULATING, 0 };
}
#else
static struct answer try_run(int kvm)
{
	(void)kvm;
	return (struct answer){ USABLE, 0 };
}
#endif

static struct answer look(void)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm < 0)
		return (struct answer){ errno == ENOENT ? NO_DEVICE : NO_ACCESS, errno };
	if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return (struct answer){ BAD_VERSION, 0 };
	for (size_t i = 0; i < SB_ARRAY_LEN(needed); i++)
		if (ioctl(kvm, KVM_CHECK_EXTENSION, needed[i]) <= 0)
			return (struct answer){ LACKS, 0 };
	return try_run(kvm);
}

/* Run look() in a child. A child that says nothing in time is a KVM that hangs. */
static struct answer look_in_child(void)
{
	struct answer a = { BROKEN, ETIMEDOUT };
	struct pollfd pfd = { .events = POLLIN };
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return (struct answer){ BROKEN, errno };
	rd = p[0];
	wr = p[1];
	pid = fork();
	if (pid < 0)
		return (struct answer){ BROKEN, errno };
	if (pid == 0) {
		sigset_t alarm;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)sigemptyset(&alarm);
		(void)sigaddset(&alarm, SIGALRM);
		(void)sigprocmask(SIG_UNBLOCK, &alarm, NULL);
		a = look();
		_exit(sb_fd_write_all(wr, &a, sizeof(a)) < 0);
	}
	sb_fd_close(&wr);
	pfd.fd = rd;
	if (poll(&pfd, 1, CHILD_LIMIT_MS) <= 0 || sb_fd_read_all(rd, &a, sizeof(a)) < 0)
		a = (struct answer){ BROKEN, ETIMEDOUT };
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return a;
}

static void describe(struct sb_kvm_result *r, const char *remedy, const char *text)
{
	(void)snprintf(r->text, sizeof(r->text), "%s", text);
	(void)snprintf(r->remedy, sizeof(r->remedy), "%s", remedy);
}

void sb_kvm_probe(struct sb_kvm_result *ret)
{
	static const char tcg[] = "use software emulation: --accel tcg (or SENDBOX_ACCEL=tcg)";
	struct answer a = look_in_child();

	*ret = (struct sb_kvm_result){ .usable = a.verdict == USABLE };
	switch (a.verdict) {
	case USABLE:
		describe(ret, "", "/dev/kvm runs guest code");
		break;
	case NO_DEVICE:
		describe(ret, "enable virtualisation in the firmware and modprobe kvm_intel or "
			 "kvm_amd; or use software emulation: --accel tcg", "there is no /dev/kvm");
		break;
	case NO_ACCESS:
		describe(ret, "usermod -aG kvm $USER and log in again; or use software emulation: "
			 "--accel tcg", "/dev/kvm cannot be opened");
		(void)snprintf(ret->text, sizeof(ret->text), "/dev/kvm cannot be opened: %s",
			       strerror(a.error));
		break;
	case BAD_VERSION:
		describe(ret, tcg, "/dev/kvm speaks another API version");
		break;
	case LACKS:
		describe(ret, tcg, "/dev/kvm lacks capabilities that a micro-VM needs");
		break;
	case EMULATING:
		describe(ret, tcg, "/dev/kvm opens but cannot run a stock kernel: emulating KVM");
		break;
	case BROKEN:
	case NONE:
		describe(ret, tcg, "");
		(void)snprintf(ret->text, sizeof(ret->text),
			       "/dev/kvm opens but does not run guest code: %s", strerror(a.error));
		break;
	}
}
