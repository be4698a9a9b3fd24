/* The child's side: a filter of a dozen instructions, whose listener goes to the judge. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/judge_i.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#define FLAGS (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define X32_BIT 0xffffffffU /* no such thing: no number is as large */
#else
#error "which system calls start a program here?"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RET(v) BPF_STMT(BPF_RET | BPF_K, (v))

/* Another architecture's numbers are not looked at: its calls kill, as in the main filter. */
static const struct sock_filter exec_filter[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
	RET(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 4, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 1, 0),
	RET(SECCOMP_RET_ALLOW),
	RET(SECCOMP_RET_KILL_PROCESS),
	RET(SECCOMP_RET_USER_NOTIF),
};

int sb_judge_probe(struct sb_err *err)
{
	/* the flags are looked at before the filter, which is none */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, FLAGS, NULL) < 0 && errno == EFAULT)
		return 0;
	return sb_err_set(err, -ENOSYS,
			  "the kernel cannot hold a command policy for the whole process tree: it "
			  "lacks seccomp notifications that wait (Linux 5.19 or later)");
}

/* As struct msghdr wants it, without the C library's macros that may call functions. */
static int send_listener(int sock, const struct enter *e, int fd)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)e, .iov_len = sizeof(*e) };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} ctl = { .space = { 0 } };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = ctl.space,
			     .msg_controllen = sizeof(ctl.space) };

	ctl.head.cmsg_level = SOL_SOCKET;
	ctl.head.cmsg_type = SCM_RIGHTS;
	ctl.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&ctl.head), &fd, sizeof(fd));
	for (;;) {
		if (syscall(SYS_sendmsg, sock, &mh, MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

int sb_judge_enter(int sock, uint32_t cmd, const struct sock_fprog *asking)
{
	struct sock_fprog prog = {
		.len = SB_ARRAY_LEN(exec_filter),
		.filter = (struct sock_filter *)(uintptr_t)exec_filter,
	};
	struct enter e = { .magic = ENTER_MAGIC, .cmd = cmd };
	struct stat st;
	long fd;
	int r;

	if (fstat(STDERR_FILENO, &st) == 0) {
		e.err_dev = st.st_dev;
		e.err_ino = st.st_ino;
	}
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, FLAGS, asking ? asking : &prog);
	if (fd < 0)
		return -errno;
	r = send_listener(sock, &e, (int)fd);
	(void)syscall(SYS_close, fd);
	return r;
}
