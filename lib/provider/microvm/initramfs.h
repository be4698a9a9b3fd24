#ifndef SB_PROVIDER_MICROVM_INITRAMFS_H
#define SB_PROVIDER_MICROVM_INITRAMFS_H
/* The first root filesystem of the guest: our init, the host's key, the modules; nothing else. */
#include "base/buf.h"
#include "provider/bundle_open.h"
#include "provider/microvm/kernel.h"

#define SB_INITRAMFS_MAX (256U << 20) /* bytes */

/* Append the part that depends on no kernel, no guest program and no key: the folders and the
 * console, as a cpio archive. The kernel unpacks several archives that follow one another. */
void sb_initramfs_base(struct sb_buf *out);

/*
 * sb_initramfs_prepare - build <cache>/initramfs/<digest>.cpio unless it is there
 * @b: the verified bundle: guest program, base archive, modules wanted
 * @pub: Ed25519 public key of the host, /sendbox/host.pub
 * @disks: with the modules for layers and a disk
 * @ret_sha256: of the file
 *
 * Reproducible: same parts, same bytes. Safe against builders beside it.
 * Return: 0; -ENOPKG: the kernel lacks something; -errno.
 */
SB_MUST_CHECK int sb_initramfs_prepare(const struct sb_dirs *dirs, const struct sb_kernel *k,
				       const struct sb_bundle *b, const uint8_t pub[32],
				       bool disks, uint8_t ret_sha256[SB_SHA256_LEN], struct sb_err *err);

/* sb_initramfs_check - whether the kernel has, or has modules for, all that the guest needs
 * Return: 0; -ENOPKG; -errno. */
SB_MUST_CHECK int sb_initramfs_check(const struct sb_kernel *k, struct sb_err *err);

#endif
