#ifndef SB_PROVIDER_MICROVM_INITRAMFS_H
#define SB_PROVIDER_MICROVM_INITRAMFS_H
/* The first root filesystem of the guest: our init, the host's key, the modules; nothing else. */
#include "provider/microvm/kernel.h"

#define SB_INITRAMFS_MAX (256U << 20) /* bytes */

/*
 * sb_initramfs_prepare - build <cache>/initramfs/<digest>.cpio unless it is there
 * @pub: Ed25519 public key of the host, /sendbox/host.pub
 * @ret_sha256: of the file; @ret_guest_sha256: of <libexec>/sendbox-guest
 *
 * Reproducible: same parts, same bytes. Safe against builders beside it.
 * Return: 0; -ENOPKG: the kernel lacks something; -errno.
 */
SB_MUST_CHECK int sb_initramfs_prepare(const struct sb_dirs *dirs, const struct sb_kernel *k,
				       const uint8_t pub[32], uint8_t ret_sha256[SB_SHA256_LEN],
				       uint8_t ret_guest_sha256[SB_SHA256_LEN],
				       struct sb_err *err);

/* sb_initramfs_check - whether the kernel has, or has modules for, all that the guest needs
 * Return: 0; -ENOPKG; -errno. */
SB_MUST_CHECK int sb_initramfs_check(const struct sb_kernel *k, struct sb_err *err);

#endif
