/*
 * Build-time program: print the workload's seccomp filter for one architecture as C initialisers
 * of struct sock_filter. The filter depends on nothing that a session knows, so it is made once,
 * by libseccomp, on the build machine: the guest neither links libseccomp nor spends start-up
 * time on it.
 *
 * The program is a hand-written head followed by libseccomp's deny list.
 *
 * Head: sockets, because families and protocols are sets of allowed values in the low 32 bits of
 * an argument (the kernel ignores the high ones, so a filter that looks at them can be passed),
 * which libseccomp's rules cannot say; and ENOSYS for every call younger than this list, so that
 * what a new kernel adds is absent until somebody has looked at it.
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
#define MAX_HEAD 64

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

static void add(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned int n,
		const struct scmp_arg_cmp *cmp)
{
	int nr = seccomp_syscall_resolve_name(name);
	int r;

	if (nr == __NR_SCMP_ERROR)
		return; /* a call that this libseccomp has never heard of is above FIRST_UNKNOWN
			 * or was removed before it was written */
	r = seccomp_rule_add_array(ctx, action, nr, n, cmp);
	/* -EDOM: the architecture has no such call */
	if (r < 0 && r != -EDOM)
		die(name, r);
}

/* Deny when (argument & mask) == value. */
static void add_masked(scmp_filter_ctx ctx, const char *name, unsigned int arg, uint64_t mask,
		       uint64_t value)
{
	struct scmp_arg_cmp cmp = {
		.arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value
	};

	add(ctx, SCMP_ACT_ERRNO(EPERM), name, 1, &cmp);
}

static void add_rules(scmp_filter_ctx ctx)
{
	static const uint32_t namespaces[] = {
		CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID,   CLONE_NEWNET,
	};
	static const uint32_t ioctls[] = { TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS };

	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0, NULL);
	/* ENOSYS, so that the C library falls back to clone, whose flags can be seen */
	add(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		add_masked(ctx, "clone", 0, namespaces[i], namespaces[i]);
	/* the kernel takes the low half of the command only */
	for (size_t i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]); i++)
		add_masked(ctx, "ioctl", 1, 0xffffffffU, ioctls[i]);
	add_masked(ctx, "mknod", 1, S_IFMT, S_IFCHR);
	add_masked(ctx, "mknod", 1, S_IFMT, S_IFBLK);
	add_masked(ctx, "mknodat", 2, S_IFMT, S_IFCHR);
	add_masked(ctx, "mknodat", 2, S_IFMT, S_IFBLK);
	/* the query (all ones) and plain Linux (zero) are harmless; no other persona */
	for (uint32_t bit = 0; bit < 32; bit++) {
		struct scmp_arg_cmp cmp[2] = {
			{ .arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = 1U << bit,
			  .datum_b = 1U << bit },
		};

		/* any bit set together with any bit clear; the next bit is enough of a witness
		 * because a number that is neither 0 nor all ones has a 1 beside a 0 */
		cmp[0].datum_a |= 1U << (bit + 1) % 32;
		add(ctx, SCMP_ACT_ERRNO(EPERM), "personality", 1, cmp);
	}
}

/* --- head ------------------------------------------------------------------------------- */

static struct sock_filter head[MAX_HEAD];
static size_t n_head;
enum { TO_END = 200, TO_NEXT = 0 }; /* jump targets to be patched */

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

static uint32_t number(uint32_t arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	if (nr < 0)
		die(name, -ENOENT);
	return (uint32_t)nr;
}

static void make_head(uint32_t scmp_arch, uint32_t audit_arch)
{
	load(offsetof(struct seccomp_data, arch));
	jump_eq(audit_arch, 0, TO_END);
	load(offsetof(struct seccomp_data, nr));
	emit(BPF_JMP | BPF_JGE | BPF_K, TO_END, 0, X32_BIT);
	emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, FIRST_UNKNOWN);
	ret_errno(ENOSYS);
	/* socketpair: local ones only */
	jump_eq(number(scmp_arch, "socketpair"), 0, 3);
	load(low(0));
	jump_eq(AF_UNIX, TO_END, 0);
	ret_errno(EAFNOSUPPORT);
	jump_eq(number(scmp_arch, "socket"), 0, TO_END);
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
