/*
 * Build-time program: print the workload's seccomp filter for one architecture as C initialisers
 * of struct sock_filter. The filter depends on nothing that a session knows, so it is made once,
 * by libseccomp, on the build machine: the guest neither links libseccomp nor spends start-up
 * time on it.
 *
 * The program is a hand-written head followed by libseccomp's deny list.
 *
 * Head: everything that looks at arguments. They are judged by the low 32 bits alone, as the kernel
 * takes them (a filter that looks at the high ones can be passed), and partly as sets of allowed
 * values, which libseccomp's rules cannot say. Written out it is also a third of the size, and the
 * kernel's work at each start of a command is proportional to the size. Besides: ENOSYS for every
 * call younger than this list, so that what a new kernel adds is absent until somebody has looked
 * at it.
 * Deny list: spec of the project, section "default containment", and what its last section names.
 * x32 and foreign architectures are killed by libseccomp's architecture check.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_UNKNOWN 467U /* open_tree_attr and everything after it; same on all machines */
#define X32_BIT 0x40000000U
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define MAX_HEAD 100

static const char *const denied[] = {
	/* other processes */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
	"pidfd_getfd",
	/* wide kernel interfaces */
	"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "userfaultfd",
	"perf_event_open", "vmsplice", "lookup_dcookie", "fanotify_init", "fanotify_mark",
	"nfsservctl", "modify_ldt", "uselib", "sysfs", "_sysctl", "ustat", "vserver",
	/* mounts and namespaces */
	"mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount",
	"fspick", "move_mount", "open_tree", "mount_setattr", "unshare", "setns",
	"open_by_handle_at", "name_to_handle_at",
	/* keys */
	"keyctl", "add_key", "request_key",
	/* the machine */
	"init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms",
	"query_module", "kexec_load", "kexec_file_load", "reboot", "acct", "swapon", "swapoff",
	"quotactl", "quotactl_fd", "syslog", "sethostname", "setdomainname", "settimeofday",
	"clock_settime", "clock_adjtime", "adjtimex", "stime", "iopl", "ioperm", "vhangup",
	/* placement of memory */
	"set_mempolicy", "set_mempolicy_home_node", "mbind", "move_pages", "migrate_pages",
};

static void die(const char *what, int r)
{
	fprintf(stderr, "gen_seccomp: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void add(scmp_filter_ctx ctx, uint32_t action, const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);
	int r;

	if (nr == __NR_SCMP_ERROR)
		return; /* a call that this libseccomp has never heard of is above FIRST_UNKNOWN
			 * or was removed before it was written */
	r = seccomp_rule_add(ctx, action, nr, 0);
	/* -EDOM: the architecture has no such call */
	if (r < 0 && r != -EDOM)
		die(name, r);
}

static void add_rules(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i]);
	/* ENOSYS, so that the C library falls back to clone, whose flags can be seen */
	add(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3");
}

/* --- head ------------------------------------------------------------------------------- */

static struct sock_filter head[MAX_HEAD];
static size_t n_head;
enum { TO_END = 200 }; /* a jump target that is patched: the first instruction behind the head */

static size_t emit(uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (n_head == MAX_HEAD)
		die("head", -ENOSPC);
	head[n_head] = (struct sock_filter){ code, jt, jf, k };
	return n_head++;
}
static void load(size_t off)
{
	emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)off);
}
static uint32_t low(unsigned int arg)
{
	/* both machines are little-endian */
	return (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t));
}
static void ret_errno(uint32_t e)
{
	emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | e);
}
static void jump_eq(uint32_t k, uint8_t jt, uint8_t jf)
{
	emit(BPF_JMP | BPF_JEQ | BPF_K, jt, jf, k);
}

static void jump_any(uint32_t bits, uint8_t jt, uint8_t jf)
{
	emit(BPF_JMP | BPF_JSET | BPF_K, jt, jf, bits);
}

/* Open a section for one call; without it the number is loaded again and the next one is tried.
 * Return: where to put the length of the section; SIZE_MAX when the machine has no such call. */
static size_t section(uint32_t arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	if (nr < 0)
		return SIZE_MAX;
	return emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)nr);
}
/* Every way through a section ends in TO_END or a return, so the number is still loaded. */
static void end_section(size_t at)
{
	head[at].jf = (uint8_t)(n_head - at - 1);
}

static void sockets(uint32_t arch)
{
	size_t at = section(arch, "socketpair");

	load(low(0)); /* local ones only */
	jump_eq(AF_UNIX, TO_END, 0);
	ret_errno(EAFNOSUPPORT);
	end_section(at);
	at = section(arch, "socket");
	load(low(0));
	jump_eq(AF_UNIX, TO_END, 0);
	jump_eq(AF_INET, 6, 0);
	jump_eq(AF_INET6, 5, 0);
	/* netlink for the list of addresses, which C libraries ask for; nothing else of it */
	jump_eq(AF_NETLINK, 1, 0);
	ret_errno(EAFNOSUPPORT);
	load(low(2));
	jump_eq(NETLINK_ROUTE, TO_END, 0);
	ret_errno(EPERM);
	/* inet: stream and datagram sockets of TCP, MPTCP and UDP */
	load(low(1));
	emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
	jump_eq(SOCK_STREAM, 2, 0);
	jump_eq(SOCK_DGRAM, 1, 0);
	ret_errno(EPERM);
	load(low(2));
	jump_eq(0, TO_END, 0);
	jump_eq(IPPROTO_TCP, TO_END, 0);
	jump_eq(IPPROTO_UDP, TO_END, 0);
	jump_eq(IPPROTO_MPTCP, TO_END, 0);
	ret_errno(EPERM);
	end_section(at);
}

static void devices(uint32_t arch, const char *name, unsigned int mode)
{
	size_t at = section(arch, name);

	if (at == SIZE_MAX)
		return;
	load(low(mode));
	emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, S_IFMT);
	jump_eq(S_IFCHR, 1, 0);
	jump_eq(S_IFBLK, 0, TO_END);
	ret_errno(EPERM);
	end_section(at);
}

static void make_head(uint32_t scmp_arch, uint32_t audit_arch)
{
	size_t at;

	load(offsetof(struct seccomp_data, arch));
	jump_eq(audit_arch, 0, TO_END);
	load(offsetof(struct seccomp_data, nr));
	emit(BPF_JMP | BPF_JGE | BPF_K, TO_END, 0, X32_BIT);
	emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, FIRST_UNKNOWN);
	ret_errno(ENOSYS);
	sockets(scmp_arch);
	at = section(scmp_arch, "ioctl");
	load(low(1));
	jump_eq(TIOCSTI, 3, 0);
	jump_eq(TIOCLINUX, 2, 0);
	jump_eq(TIOCSETD, 1, 0);
	jump_eq(TIOCCONS, 0, TO_END);
	ret_errno(EPERM);
	end_section(at);
	at = section(scmp_arch, "clone");
	load(low(0));
	jump_any(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
			 CLONE_NEWPID | CLONE_NEWNET,
		 0, TO_END);
	ret_errno(EPERM);
	end_section(at);
	devices(scmp_arch, "mknod", 1);
	devices(scmp_arch, "mknodat", 2);
	/* the query (all ones) and plain Linux (zero) are harmless; no other persona */
	at = section(scmp_arch, "personality");
	load(low(0));
	jump_eq(0, TO_END, 0);
	jump_eq(0xffffffffU, TO_END, 0);
	ret_errno(EPERM);
	end_section(at);
	for (size_t i = 0; i < n_head; i++) {
		if (head[i].jt == TO_END)
			head[i].jt = (uint8_t)(n_head - i - 1);
		if (head[i].jf == TO_END)
			head[i].jf = (uint8_t)(n_head - i - 1);
	}
}

/* --- output ----------------------------------------------------------------------------- */

static void print(const struct sock_filter *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", (unsigned int)f[i].code,
		       (unsigned int)f[i].jt, (unsigned int)f[i].jf, f[i].k);
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";
	uint32_t scmp_arch;
	uint32_t audit_arch;
	scmp_filter_ctx ctx;
	struct sock_filter *f;
	off_t len;
	int fd;
	int r;

	if (strcmp(name, "x86_64") == 0) {
		scmp_arch = SCMP_ARCH_X86_64;
		audit_arch = AUDIT_ARCH_X86_64;
	} else if (strcmp(name, "aarch64") == 0) {
		scmp_arch = SCMP_ARCH_AARCH64;
		audit_arch = AUDIT_ARCH_AARCH64;
	} else {
		fprintf(stderr, "usage: gen_seccomp x86_64|aarch64\n");
		return 2;
	}
	ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (!ctx)
		die("init", -ENOMEM);
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0 && scmp_arch != seccomp_arch_native()) {
		r = seccomp_arch_add(ctx, scmp_arch);
		if (r == 0)
			r = seccomp_arch_remove(ctx, SCMP_ARCH_NATIVE);
	}
	if (r < 0)
		die("set-up", r);
	add_rules(ctx);
	fd = memfd_create("bpf", MFD_CLOEXEC);
	if (fd < 0)
		die("memfd_create", -errno);
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		die("export", r);
	len = lseek(fd, 0, SEEK_END);
	f = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f == MAP_FAILED)
		die("mmap", -errno);
	make_head(scmp_arch, audit_arch);
	printf("/* made by gen_seccomp %s; do not edit */\n", name);
	print(head, n_head);
	print(f, (size_t)len / sizeof(*f));
	seccomp_release(ctx);
	return 0;
}
