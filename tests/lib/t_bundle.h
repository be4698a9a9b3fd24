#ifndef SB_TESTS_T_BUNDLE_H
#define SB_TESTS_T_BUNDLE_H
/* A small bundle for tests of what uses one: any bytes as the guest, a key of the test's own. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crypto/crypto.h"
#include "os/rmtree.h"
#include "provider/bundle_make.h"
#include "provider/bundle_open.h"
#include "provider/microvm/initramfs.h"
#include "provider/microvm/modules.h"

/* Make and sign it in the folder @path, which must not exist. Return: 0; -errno. */
static inline int t_bundle_make(const char *path, const void *guest, size_t len, uint64_t sequence,
				const uint8_t sec[64], struct sb_err *err)
{
	struct sb_bundle_make m = { .release = "1.0", .architecture = "x86_64",
				    .sequence = sequence, .minimum_sequence = 1, .plan_version = 1 };
	sb_autobuf struct sb_buf modules = { 0 };
	sb_autobuf struct sb_buf base = { 0 };
	sb_autofd int dir = -1;
	int r;

	sb_buf_init(&modules, 65536);
	sb_buf_init(&base, 65536);
	sb_modules_want_write(&modules);
	sb_initramfs_base(&base);
	for (size_t i = SB_BUNDLE_GUEST; i < SB_BUNDLE_KINDS; i++) {
		m.parts[i].data = "{}";
		m.parts[i].len = 2;
	}
	m.parts[SB_BUNDLE_GUEST].data = guest;
	m.parts[SB_BUNDLE_GUEST].len = len;
	m.parts[SB_BUNDLE_MODULES].data = modules.data;
	m.parts[SB_BUNDLE_MODULES].len = modules.len;
	m.parts[SB_BUNDLE_INITRAMFS].data = base.data;
	m.parts[SB_BUNDLE_INITRAMFS].len = base.len;
	if (mkdir(path, 0755) < 0)
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = dir < 0 ? -errno : sb_bundle_make(dir, &m, err);
	return r == 0 ? sb_bundle_sign(dir, sec, err) : r;
}

/* The key of all these tests: from the seed 00 01 02 ... 1f of RFC 8032's style. */
static inline void t_bundle_key(uint8_t pub[32], uint8_t sec[64])
{
	static const uint8_t seed_and_public[64] = {
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
		0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b,
		0x1c, 0x1d, 0x1e, 0x1f, 0x03, 0xa1, 0x07, 0xbf, 0xf3, 0xce, 0x10, 0xbe, 0x1d, 0x70,
		0xdd, 0x18, 0xe7, 0x4b, 0xc0, 0x99, 0x67, 0xe4, 0xd6, 0x30, 0x9b, 0xa5, 0x0d, 0x5f,
		0x1d, 0xdc, 0x86, 0x64, 0x12, 0x55, 0x31, 0xb8,
	};

	memcpy(sec, seed_and_public, 64);
	memcpy(pub, sec + 32, 32);
}

/* Make, open and take away the folder: what is left are the descriptors. NULL on failure. */
static inline struct sb_bundle *t_bundle(const char *path, const void *guest, size_t len,
					 struct sb_err *err)
{
	struct sb_bundle *b = NULL;
	uint8_t pub[32];
	uint8_t sec[64];
	struct sb_bundle_trust t = { .keys = pub, .n_keys = 1 };
	sb_autofd int dir = -1;

	t_bundle_key(pub, sec);
	if (t_bundle_make(path, guest, len, 1, sec, err) < 0)
		return NULL;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || sb_bundle_open(dir, &t, &b, err) < 0 || sb_rmtree(AT_FDCWD, path) < 0)
		return sb_bundle_free(b);
	return b;
}

#endif
