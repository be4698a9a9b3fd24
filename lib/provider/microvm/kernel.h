#ifndef SB_PROVIDER_MICROVM_KERNEL_H
#define SB_PROVIDER_MICROVM_KERNEL_H
/* Find the guest kernel and its modules, and keep it unpacked in the cache. */
#include "provider/microvm/cache.h"
#include "provider/microvm/kernel_image.h"
#include "provider/provider.h"

#define SB_KERNEL_PATH_MAX 4096

struct sb_kernel {
	char image[SB_KERNEL_PATH_MAX];   /* file as found */
	char modules[SB_KERNEL_PATH_MAX]; /* directory with modules.dep */
	char release[SB_KERNEL_RELEASE_MAX + 1];
	uint8_t source_sha256[SB_SHA256_LEN]; /* of the file as found */
	uint8_t elf_sha256[SB_SHA256_LEN];    /* of what is booted: <cache>/kernels-elf/<hex>.elf */
};

/*
 * sb_kernel_find - choose image and modules directory; reads no kernel but one given by @path
 * @path: given by the user: an image, or a directory with vmlinuz (or vmlinux, Image) and modules/
 *
 * Order without @path: the newest <cache>/kernels/RELEASE, then <libdir>/kernels/RELEASE, then
 * /boot/vmlinuz-RELEASE of a cloud kernel. For an image given by path `modules` is empty until
 * sb_kernel_prepare knows the release.
 * Return: 0; -ENOENT with the remedy in @err.
 */
SB_MUST_CHECK int sb_kernel_find(const struct sb_dirs *dirs, const char *path,
				 struct sb_kernel *ret, struct sb_err *err);

/*
 * sb_kernel_prepare - check what sb_kernel_find found, unpack it into the cache unless it is
 * there, fill in the rest of @k
 * Return: 0; -EBADMSG: no usable kernel; -ENOENT: no modules for it; -errno.
 */
SB_MUST_CHECK int sb_kernel_prepare(const struct sb_dirs *dirs, struct sb_kernel *k,
				    struct sb_err *err);

/* Debian's version order, enough for kernel releases: numbers compare as numbers. */
int sb_kernel_version_cmp(const char *a, const char *b);

#endif
