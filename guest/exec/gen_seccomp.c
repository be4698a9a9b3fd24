/*
 * Build-time program: print the workload's seccomp filters, one a profile, for one architecture as C
 * initialisers of struct sock_filter. They depend on nothing that a session knows, so they are made
 * once, on the build machine: the guest neither links libseccomp nor spends start-up time on it.
 *
 * A filter is a head and a search tree. The head holds the calls whose arguments count. They are
 * judged by the low 32 bits alone, as the kernel takes them (a filter that looks at the high ones
 * can be passed), and partly as sets of allowed values, which libseccomp's rules cannot say. The
 * tree knows the action of every number: allowed as profile_calls.h lists it; EPERM for a call that
 * exists and is not listed; ENOSYS for numbers that no call has and for every call younger than the
 * lists, so that what a new kernel adds is absent until somebody has looked at it. Neighbours of
 * one action are one leaf, so the whole is a few hundred instructions: the kernel's work at each
 * start of a command is proportional to it.
 * Foreign architectures and x32 kill the process.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
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
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define FIRST_NEWER 451U   /* what the library of Debian 12 may not know has a table */
#define FIRST_UNKNOWN 467U /* open_tree_attr and everything after it; same on all machines */
#define X32_BIT 0x40000000U
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define MAX_CODE 1000
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#include "newer_calls.h"
#include "profile_calls.h"

enum profile { STRICT, DEFAULT, BUILD };

static void die(const char *what, int r)
{
	fprintf(stderr, "gen_seccomp: %s: %s\n", what, strerror(-r));
	exit(1);
}

/* --- head ------------------------------------------------------------------------------- */

static struct sock_filter head[MAX_CODE];
static size_t n_head;
enum { ALLOW = 200 }; /* a jump target that is patched: the return behind the head */

static size_t emit(uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (n_head == MAX_CODE)
		die("filter", -ENOSPC);
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
/* Every way through a section ends in a return, so behind it the number is still loaded. */
static void end_section(size_t at)
{
	head[at].jf = (uint8_t)(n_head - at - 1);
}

static void sockets(uint32_t arch, enum profile profile)
{
	size_t at = section(arch, "socketpair");

	load(low(0)); /* local ones only */
	jump_eq(AF_UNIX, ALLOW, 0);
	ret_errno(EAFNOSUPPORT);
	end_section(at);
	at = section(arch, "socket");
	load(low(0));
	jump_eq(AF_UNIX, ALLOW, 0);
	jump_eq(AF_INET, 6, 0);
	jump_eq(AF_INET6, 5, 0);
	/* netlink for the list of addresses, which C libraries ask for and can do without; nothing
	 * else of it */
	jump_eq(profile == STRICT ? AF_UNSPEC : AF_NETLINK, 1, 0);
	ret_errno(EAFNOSUPPORT);
	load(low(2));
	jump_eq(NETLINK_ROUTE, ALLOW, 0);
	ret_errno(EPERM);
	/* inet: stream and datagram sockets of TCP, MPTCP and UDP */
	load(low(1));
	emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
	jump_eq(SOCK_STREAM, 2, 0);
	jump_eq(SOCK_DGRAM, 1, 0);
	ret_errno(EPERM);
	load(low(2));
	jump_eq(0, ALLOW, 0);
	jump_eq(IPPROTO_TCP, ALLOW, 0);
	jump_eq(IPPROTO_UDP, ALLOW, 0);
	jump_eq(IPPROTO_MPTCP, ALLOW, 0);
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
	jump_eq(S_IFBLK, 0, ALLOW);
	ret_errno(EPERM);
	end_section(at);
}

static void make_head(uint32_t scmp_arch, uint32_t audit_arch, enum profile profile)
{
	size_t at;

	n_head = 0;
	load(offsetof(struct seccomp_data, arch));
	jump_eq(audit_arch, 1, 0);
	emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	load(offsetof(struct seccomp_data, nr));
	sockets(scmp_arch, profile);
	at = section(scmp_arch, "ioctl");
	load(low(1));
	jump_eq(TIOCSTI, 7, 0);
	jump_eq(TIOCLINUX, 6, 0);
	jump_eq(TIOCSETD, 5, 0);
	jump_eq(TIOCCONS, 4, 0);
	/* a subvolume is a file system of its own: snapshots of the folder around it end there */
	jump_eq(BTRFS_IOC_SUBVOL_CREATE, 3, 0);
	jump_eq(BTRFS_IOC_SUBVOL_CREATE_V2, 2, 0);
	jump_eq(BTRFS_IOC_SNAP_CREATE, 1, 0);
	jump_eq(BTRFS_IOC_SNAP_CREATE_V2, 0, ALLOW);
	ret_errno(EPERM);
	end_section(at);
	at = section(scmp_arch, "clone");
	load(low(0));
	jump_any(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
			 CLONE_NEWPID | CLONE_NEWNET,
		 0, ALLOW);
	ret_errno(EPERM);
	end_section(at);
	devices(scmp_arch, "mknod", 1);
	devices(scmp_arch, "mknodat", 2);
	/* the query (all ones) and plain Linux (zero) are harmless; debuggers also want fixed
	 * addresses; no other persona */
	at = section(scmp_arch, "personality");
	load(low(0));
	jump_eq(0, ALLOW, 0);
	jump_eq(0xffffffffU, ALLOW, 0);
	jump_eq(profile == BUILD ? ADDR_NO_RANDOMIZE : 0, ALLOW, 0);
	ret_errno(EPERM);
	end_section(at);
	emit(BPF_JMP | BPF_JA, 0, 0, 1);
	for (size_t i = 0; i < n_head; i++) {
		if (head[i].jt == ALLOW)
			head[i].jt = (uint8_t)(n_head - i - 1);
		if (head[i].jf == ALLOW)
			head[i].jf = (uint8_t)(n_head - i - 1);
	}
	emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

/* --- tree ------------------------------------------------------------------------------- */

struct leaf { /* the action from @first on, up to the next leaf */
	uint32_t first;
	uint32_t action;
};
static struct leaf leaves[FIRST_UNKNOWN + 8];
static size_t n_leaves;

static void allow(uint32_t *action, uint32_t arch, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name_arch(arch, names[i]);

		for (size_t k = 0; nr < 0 && k < COUNT(newer); k++)
			if (strcmp(newer[k].name, names[i]) == 0)
				nr = newer[k].nr;
		if (nr == __NR_SCMP_ERROR)
			die(names[i], -ENOENT);
		if (nr >= 0 && (uint32_t)nr < FIRST_UNKNOWN)
			action[nr] = SECCOMP_RET_ALLOW;
	}
}

/* What the judge of executions calls once it serves; judge*.c and what they use of lib. */
static const char *const judge_calls[] = {
	"ppoll", "ioctl", "recvmsg", "sendto", "clock_gettime",		    /* its loop */
	"process_vm_readv", "openat", "openat2", "close", "newfstatat", "fstat", "readlinkat",
	"readlink", "faccessat2", "fcntl", "read", "pread64", "lseek", "fstatfs", "setfsuid", /* looking */
	"write", "sendmsg",						    /* telling */
	"ptrace", "wait4", "kill", "tgkill", "getpid", "gettid",	    /* the window */
	"capget", "capset",
	"brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "getrandom", /* memory */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "restart_syscall", "exit", "exit_group",
};

static void leaf(uint32_t first, uint32_t action)
{
	if (n_leaves > 0 && leaves[n_leaves - 1].action == action)
		return;
	leaves[n_leaves++] = (struct leaf){ first, action };
}

static void make_leaves(uint32_t arch, enum profile profile)
{
	static uint32_t action[FIRST_UNKNOWN];
	int nr = seccomp_syscall_resolve_name_arch(arch, "clone3");

	n_leaves = 0;
	for (uint32_t i = 0; i < FIRST_UNKNOWN; i++) {
		char *name = seccomp_syscall_resolve_num_arch(arch, (int)i);

		action[i] = SECCOMP_RET_ERRNO | (name || i >= FIRST_NEWER ? EPERM : ENOSYS);
		free(name);
	}
	allow(action, arch, strict_calls, COUNT(strict_calls));
	if (profile != STRICT)
		allow(action, arch, default_more, COUNT(default_more));
	if (profile == BUILD)
		allow(action, arch, build_more, COUNT(build_more));
	/* absent, so that the C library falls back to clone, whose flags can be seen */
	action[nr] = SECCOMP_RET_ERRNO | ENOSYS;
	for (uint32_t i = 0; i < FIRST_UNKNOWN; i++)
		leaf(i, action[i]);
	leaf(FIRST_UNKNOWN, SECCOMP_RET_ERRNO | ENOSYS);
	if (arch == SCMP_ARCH_X86_64) {
		leaf(X32_BIT, SECCOMP_RET_KILL_PROCESS);
		leaf(UINT32_MAX, SECCOMP_RET_ERRNO | ENOSYS); /* a tracer's "skip this call" */
	}
}

static void make_judge(uint32_t scmp_arch, uint32_t audit_arch)
{
	static uint32_t action[FIRST_UNKNOWN];

	n_head = 0;
	n_leaves = 0;
	load(offsetof(struct seccomp_data, arch));
	jump_eq(audit_arch, 1, 0);
	emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	load(offsetof(struct seccomp_data, nr));
	for (uint32_t i = 0; i < FIRST_UNKNOWN; i++)
		action[i] = SECCOMP_RET_KILL_PROCESS;
	allow(action, scmp_arch, judge_calls, COUNT(judge_calls));
	for (uint32_t i = 0; i < FIRST_UNKNOWN; i++)
		leaf(i, action[i]);
	leaf(FIRST_UNKNOWN, SECCOMP_RET_KILL_PROCESS);
}

/* Leaves @a to @b, the latter not included; the number is loaded. */
static void make_tree(size_t a, size_t b)
{
	size_t mid = a + (b - a) / 2;
	size_t at;

	if (b - a == 1) {
		emit(BPF_RET | BPF_K, 0, 0, leaves[a].action);
		return;
	}
	at = emit(BPF_JMP | BPF_JGE | BPF_K, 0, 0, leaves[mid].first);
	make_tree(a, mid);
	if (n_head - at - 1 > 255)
		die("tree too large for a jump", -ENOSPC);
	head[at].jt = (uint8_t)(n_head - at - 1);
	make_tree(mid, b);
}

/* --- output ----------------------------------------------------------------------------- */

static void print(const char *name)
{
	printf("static struct sock_filter %s[] = {\n", name);
	for (size_t i = 0; i < n_head; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", (unsigned int)head[i].code,
		       (unsigned int)head[i].jt, (unsigned int)head[i].jf, head[i].k);
	printf("};\n");
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "strict_filter", "default_filter", "build_filter" };
	const char *name = argc == 2 ? argv[1] : "";
	uint32_t scmp_arch;
	uint32_t audit_arch;

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
	printf("/* made by gen_seccomp %s; do not edit */\n", name);
	for (int p = STRICT; p <= BUILD; p++) {
		make_head(scmp_arch, audit_arch, (enum profile)p);
		make_leaves(scmp_arch, (enum profile)p);
		make_tree(0, n_leaves);
		print(names[p]);
	}
	make_judge(scmp_arch, audit_arch);
	make_tree(0, n_leaves);
	print("judge_filter");
	return 0;
}
