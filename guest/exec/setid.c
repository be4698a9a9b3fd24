#include "exec/setid.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "exec/arch.h"

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

#define SET_ID 06000U             /* S_ISUID | S_ISGID */
#define MAKES 0020000100U         /* O_CREAT | the bit of O_TMPFILE: the mode argument counts */
#define ARG(n) ((uint32_t)(offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t)))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RET(v) BPF_STMT(BPF_RET | BPF_K, (v))
#define REFUSE RET(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW RET(SECCOMP_RET_ALLOW)
#define IF_CALL(nr, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(nr), 0, (skip))
#define IF_SET(bits, to) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (to), 0)
#define IF_BITS(bits, skip) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (skip))

/* @nr has the mode as argument @mode */
#define CHANGES(nr, mode) IF_CALL(nr, 4), LOAD(ARG(mode)), IF_BITS(SET_ID, 1), REFUSE, ALLOW
/* the same if argument @flags says that a file is made */
#define OPENS(nr, flags, mode)                                                                     \
	IF_CALL(nr, 6), LOAD(ARG(flags)), IF_BITS(MAKES, 3), LOAD(ARG(mode)), IF_BITS(SET_ID, 1), \
		REFUSE, ALLOW

#define ANY 0xffffffffU
#define PRETEND RET(SECCOMP_RET_ERRNO | 0) /* success, and nothing is done */
/* @nr has the resource as argument @what; the second form sets only if argument 2 is no NULL */
#define SETS_CORE(nr, what) IF_CALL(nr, 4), LOAD(ARG(what)), IF_CALL(RLIMIT_CORE, 1), PRETEND, ALLOW
#define MAY_SET_CORE(nr, what)                                                                     \
	IF_CALL(nr, 8), LOAD(ARG(what)), IF_CALL(RLIMIT_CORE, 4), LOAD(ARG(2)), IF_SET(ANY, 3),    \
		LOAD(ARG(2) + 4), IF_SET(ANY, 1), ALLOW, PRETEND

static struct sock_filter filter[] = {
	LOAD((uint32_t)offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SB_THIS_ARCH, 1, 0),
	ALLOW, /* the main filter judges other architectures */
	LOAD((uint32_t)offsetof(struct seccomp_data, nr)),
#ifdef __NR_open
	OPENS(__NR_open, 1, 2),
	CHANGES(__NR_creat, 1),
	CHANGES(__NR_chmod, 1),
	CHANGES(__NR_mknod, 1),
#endif
	OPENS(__NR_openat, 2, 3),
	CHANGES(__NR_fchmod, 1),
	CHANGES(__NR_fchmodat, 2),
	CHANGES(__NR_fchmodat2, 2),
	CHANGES(__NR_mknodat, 2),
	SETS_CORE(__NR_setrlimit, 0),
	MAY_SET_CORE(__NR_prlimit64, 1),
	IF_CALL(__NR_openat2, 1),
	RET(SECCOMP_RET_ERRNO | ENOSYS),
	ALLOW,
};

struct sock_fprog sb_setid_filter(void)
{
	return (struct sock_fprog){ .len = SB_ARRAY_LEN(filter), .filter = filter };
}
