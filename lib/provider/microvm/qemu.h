#ifndef SB_PROVIDER_MICROVM_QEMU_H
#define SB_PROVIDER_MICROVM_QEMU_H
/* Where QEMU is. */
#include "base/mem.h"

/*
 * sb_qemu_find - the emulator for this machine, in fixed places, never by PATH
 * Return: static string; NULL when there is none.
 */
const char *sb_qemu_find(void);

/* sb_qemu_version - the first version number that `qemu --version` prints. @out: @room bytes.
 * Blocks: 5 s at most. Return: 0; -errno. */
SB_MUST_CHECK int sb_qemu_version(const char *qemu, char *out, size_t room);

#define SB_QEMU_VERSION_MIN_MAJOR 7U
#if defined(__aarch64__)
#define SB_QEMU_REMEDY "apt-get install qemu-system-arm"
#else
#define SB_QEMU_REMEDY "apt-get install qemu-system-x86"
#endif

#endif
