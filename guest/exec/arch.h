#ifndef SB_GUEST_EXEC_ARCH_H
#define SB_GUEST_EXEC_ARCH_H
/* The machine as seccomp names it. */
#include <linux/audit.h>

#if defined(__x86_64__)
#define SB_THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SB_THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp architecture for this machine"
#endif

#endif
