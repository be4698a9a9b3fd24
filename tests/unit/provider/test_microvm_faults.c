/* Every call that can fail is made to fail once: no descriptor and no file is left behind. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/rmtree.h"
#include "provider/microvm/cache.h"
#include "provider/microvm/initramfs.h"
#include "t.h"
#include "t_bundle.h"

static char dir[64];

static int fresh_dir(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/sb-fault-XXXXXX");
	if (sb_crypto_init() < 0 || !mkdtemp(dir))
		return -1;
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static unsigned int entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n >= 2 ? n - 2 : 0;
}

TEST(cache_write)
{
	int top = fresh_dir();
	int fds = t_open_fds();

	REQUIRE(top >= 0);
	T_EVERY_FAULT(n)
	{
		bool fired;
		int r;

		t_fault_arm(n);
		r = sb_cache_write(top, "name", "content", 7);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK_EQ(t_open_fds(), fds);
		CHECK_EQ(entries(dir), r == 0 ? 1 : 0);
		(void)unlinkat(top, "name", 0);
		if (!fired) {
			CHECK_EQ(r, 0);
			break;
		}
	}
	(void)close(top);
	CHECK_EQ(sb_rmtree(AT_FDCWD, dir), 0);
}

static int put(int top, const char *name, const char *text)
{
	return sb_fd_write_file(top, name, text, strlen(text), 0600);
}

TEST(initramfs)
{
	static const char builtin[] = "kernel/virtio_mmio.ko\nkernel/virtio_console.ko\n"
				      "kernel/overlay.ko\nkernel/nf_tables.ko\n";
	struct sb_dirs dirs = { .cache = dir, .libexec = dir };
	struct sb_kernel k = { .release = "6.1" };
	uint8_t pub[32] = { 1 };
	uint8_t sha[32];
	struct sb_bundle *b;
	char path[128];
	uint8_t first[32] = { 0 };
	char cpios[128];
	int top = fresh_dir();
	int fds;

	REQUIRE(top >= 0);
	(void)snprintf(k.modules, sizeof(k.modules), "%s", dir);
	(void)snprintf(cpios, sizeof(cpios), "%s/initramfs", dir);
	REQUIRE(put(top, "fuse.ko", "module") == 0 &&
		put(top, "nft_tproxy.ko", "other") == 0 &&
		put(top, "modules.dep", "fuse.ko:\nnft_tproxy.ko: fuse.ko\n") == 0 &&
		put(top, "modules.builtin", builtin) == 0);
	(void)snprintf(path, sizeof(path), "%s/bundle", dir);
	b = t_bundle(path, "program", 7, NULL);
	REQUIRE(b);
	fds = t_open_fds();
	T_EVERY_FAULT(n)
	{
		struct sb_err err = { 0 };
		bool fired;
		int r;

		t_fault_arm(n);
		r = sb_initramfs_prepare(&dirs, &k, b, pub, false, sha, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK_EQ(t_open_fds(), fds);
		CHECK((r < 0) == (err.code < 0));
		if (r == 0 && first[0] == 0)
			memcpy(first, sha, sizeof(first));
		if (r == 0)
			CHECK_MEM(sha, first, sizeof(first)); /* same parts, same bytes */
		CHECK_EQ(sb_rmtree(top, "initramfs"), 0);
		if (!fired) {
			CHECK_EQ(r, 0);
			break;
		}
	}
	CHECK_EQ(sb_initramfs_prepare(&dirs, &k, b, pub, false, sha, NULL), 0);
	CHECK_EQ(entries(cpios), 2); /* the cpio and its key */
	CHECK_EQ(sb_initramfs_prepare(&dirs, &k, b, pub, false, sha, NULL), 0);
	CHECK_EQ(entries(cpios), 2);
	pub[0] = 2;
	CHECK_EQ(sb_initramfs_prepare(&dirs, &k, b, pub, false, sha, NULL), 0);
	CHECK(memcmp(sha, first, sizeof(sha)) != 0);
	CHECK_EQ(entries(cpios), 4);
	(void)sb_bundle_free(b);
	(void)close(top);
	CHECK_EQ(sb_rmtree(AT_FDCWD, dir), 0);
}

/* Made, signed, opened, read with each call failing once: no leak, and never half a success. */
TEST(bundle)
{
	struct sb_bundle_trust t = { .n_keys = 1 };
	uint8_t pub[32];
	uint8_t sec[64];
	char path[128];
	int top = fresh_dir();
	int fds;

	REQUIRE(top >= 0);
	(void)snprintf(path, sizeof(path), "%s/b", dir);
	t_bundle_key(pub, sec);
	t.keys = pub;
	fds = t_open_fds();
	T_EVERY_FAULT(n)
	{
		struct sb_bundle *b = NULL;
		struct sb_err err = { 0 };
		char *text = NULL;
		size_t len;
		bool fired;
		int at = -1;
		int r;

		t_fault_arm(n);
		r = t_bundle_make(path, "program", 7, 1, sec, &err);
		if (r == 0)
			at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (r == 0)
			r = sb_bundle_open(at, &t, &b, &err);
		if (r == 0)
			r = sb_bundle_read(b, SB_BUNDLE_GUEST, &text, &len, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK((r == 0) == (text != NULL));
		CHECK(r == 0 || !fired || err.code < 0 || at < 0);
		free(text);
		(void)sb_bundle_free(b);
		sb_fd_close(&at);
		CHECK_EQ(t_open_fds(), fds);
		CHECK_EQ(sb_rmtree(top, "b"), 0);
		if (!fired) {
			CHECK_EQ(r, 0);
			break;
		}
	}
	(void)close(top);
	CHECK_EQ(sb_rmtree(AT_FDCWD, dir), 0);
}
