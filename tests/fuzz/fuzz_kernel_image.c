/* Any bytes: the payload lies within the file and a release may be part of a path. */
#include "provider/microvm/kernel_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static const enum sb_vm_arch archs[] = { SB_VM_ARCH_X86_64, SB_VM_ARCH_AARCH64 };

	for (size_t i = 0; i < SB_ARRAY_LEN(archs); i++) {
		struct sb_kimage k;
		struct sb_err err = { 0 };

		if (sb_kimage_parse(p, len, archs[i], &k, &err) < 0) {
			sb_assert(err.code < 0 && err.text[0]);
			continue;
		}
		sb_assert(k.kind != SB_KIMAGE_NONE);
		sb_assert(k.payload_off <= len && k.payload_len <= len - k.payload_off);
		sb_assert(k.payload_len > 0);
		sb_assert(!k.release[0] || sb_kimage_release_ok(k.release));
	}
	return 0;
}
