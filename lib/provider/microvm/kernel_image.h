#ifndef SB_PROVIDER_MICROVM_KERNEL_IMAGE_H
#define SB_PROVIDER_MICROVM_KERNEL_IMAGE_H
/*
 * What kind of kernel file is this? Pure: bytes in, facts out; every offset in the file is
 * checked before it is used.
 *
 * Sources: Documentation/arch/x86/boot.rst (setup header), include/xen/interface/elfnote.h (PVH
 * note), Documentation/arch/arm64/booting.rst (Image header), ELF-64 specification.
 */
#include "base/err.h"

#define SB_KERNEL_MAX_BYTES (512U << 20) /* of a file, compressed or not; Debian's ELF has 53 MiB */
#define SB_KERNEL_RELEASE_MAX 64         /* as in struct utsname, without the NUL */

enum sb_vm_arch { SB_VM_ARCH_NONE = 0, SB_VM_ARCH_X86_64 = 1, SB_VM_ARCH_AARCH64 = 2 };

/* The architecture this program is built for, which is the guest's too. */
static inline enum sb_vm_arch sb_vm_arch_host(void)
{
#if defined(__x86_64__)
	return SB_VM_ARCH_X86_64;
#elif defined(__aarch64__)
	return SB_VM_ARCH_AARCH64;
#else
	return SB_VM_ARCH_NONE;
#endif
}

enum sb_kimage_kind {
	SB_KIMAGE_NONE = 0,
	SB_KIMAGE_BZIMAGE = 1, /* setup header and a packed ELF */
	SB_KIMAGE_ELF = 2,     /* x86_64 with a PVH entry */
	SB_KIMAGE_ARM64 = 3,   /* raw Image */
	SB_KIMAGE_GZIP = 4,    /* something packed by gzip as a whole (Image.gz, vmlinux.gz) */
};

struct sb_kimage {
	enum sb_kimage_kind kind;
	size_t payload_off; /* of the packed or plain kernel within the file, bytes */
	size_t payload_len;
	bool packed;        /* the payload must be unpacked first */
	char release[SB_KERNEL_RELEASE_MAX + 1]; /* "" when this layer does not tell it */
};

/*
 * sb_kimage_parse - classify a kernel file and find its payload
 * @p: the whole file, borrowed
 * @ret: set on success only
 *
 * An ELF kernel must have a PVH entry and all its segments.
 *
 * Return: 0; -EBADMSG: no kernel, or one that cannot boot here, with the reason in @err.
 */
SB_MUST_CHECK int sb_kimage_parse(const uint8_t *p, size_t len, enum sb_vm_arch arch,
				  struct sb_kimage *ret, struct sb_err *err);

/*
 * sb_kimage_release - the release in the banner "Linux version RELEASE ..." of a plain kernel
 * @out: SB_KERNEL_RELEASE_MAX + 1 bytes. Return: 0; -ENODATA.
 */
SB_MUST_CHECK int sb_kimage_release(const uint8_t *p, size_t len, char *out);

/* Whether @s is a release name that may be part of a path: digit first, [A-Za-z0-9._+~-]. */
bool sb_kimage_release_ok(const char *s);

#endif
