#include "provider/microvm/modules.h"
#include "t.h"

static const char dep[] =
	"kernel/fs/fuse/cuse.ko: kernel/fs/fuse/fuse.ko\n"
	"kernel/fs/fuse/fuse.ko:\n"
	"kernel/fs/overlayfs/overlay.ko.xz:\n"
	"kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko\n"
	"kernel/drivers/virtio/virtio_ring.ko:\n"
	"kernel/drivers/virtio/virtio_mmio.ko: kernel/drivers/virtio/virtio.ko "
	"kernel/drivers/virtio/virtio_ring.ko\n"
	"kernel/drivers/char/virtio_console.ko: kernel/drivers/virtio/virtio.ko "
	"kernel/drivers/virtio/virtio_ring.ko\n"
	"kernel/drivers/virtio/virtio_balloon.ko: kernel/drivers/virtio/virtio.ko "
	"kernel/drivers/virtio/virtio_ring.ko";

TEST(load_order)
{
	static const char *const want[] = {
		"kernel/drivers/virtio/virtio_ring.ko", "kernel/drivers/virtio/virtio.ko",
		"kernel/drivers/virtio/virtio_mmio.ko", "kernel/drivers/char/virtio_console.ko",
		"kernel/fs/fuse/fuse.ko",               "kernel/fs/overlayfs/overlay.ko.xz",
		"kernel/drivers/virtio/virtio_balloon.ko",
	};
	static struct sb_module_list l;
	struct sb_err err = { 0 };

	CHECK_EQ(sb_modules_pick(dep, "", sb_modules_wanted, &l, &err), 0);
	CHECK_EQ(l.n, 7);
	for (size_t i = 0; i < l.n && i < 7; i++)
		CHECK_STR(l.path[i], want[i]);
}

TEST(builtin_ones_are_left_out)
{
	static struct sb_module_list l;
	struct sb_err err = { 0 };

	CHECK_EQ(sb_modules_pick("kernel/fs/fuse/fuse.ko:\n",
				 "kernel/drivers/virtio/virtio_mmio.ko\n"
				 "kernel/fs/overlayfs/overlay.ko\n"
				 "kernel/drivers/char/virtio_console.ko\n",
				 sb_modules_wanted, &l, &err), 0);
	CHECK_EQ(l.n, 1);
	CHECK_STR(l.path[0], "kernel/fs/fuse/fuse.ko");
}

TEST(missing_ones_are_named)
{
	static struct sb_module_list l;
	struct sb_err err = { 0 };

	l.n = 42;
	CHECK_EQ(sb_modules_pick("kernel/fs/overlayfs/overlay.ko:\n", "kernel/x/virtio_mmio.ko",
				 sb_modules_wanted, &l, &err), -ENOPKG);
	CHECK_STR(err.text,
		  "the kernel lacks virtio_console, fuse (neither a module nor built in)");
	CHECK_EQ(l.n, 42);
}

TEST(bad_paths)
{
	static const struct sb_module_want fuse[] = { { "fuse", true }, { NULL, false } };
	static const char *const bad[] = {
		"/kernel/fuse.ko:\n",           "../fuse.ko:\n",
		"kernel/../fuse.ko:\n",         "kernel//fuse.ko:\n",
		"kernel/fuse.ko: ../../x.ko\n", "kernel/fuse.ko: kernel/x\n",
		"kernel/fuse.ko: /x.ko\n",      "ker\tnel/fuse.ko:\n",
	};
	static struct sb_module_list l;

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		if (sb_modules_pick(bad[i], "", fuse, &l, NULL) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
}

TEST(guest_names)
{
	char out[256];

	sb_modules_guest_name("kernel/a/virtio-rng.ko.zst", out);
	CHECK_STR(out, "virtio-rng.ko");
	sb_modules_guest_name("fuse.ko", out);
	CHECK_STR(out, "fuse.ko");
}

TEST(signatures_are_cut_off)
{
	char m[100] = "module";

	memset(m + 6, 's', 10);
	memcpy(m + 16, "\0\0\2\0\0\0\0\0\0\0\0\x0a", 12);
	memcpy(m + 28, "~Module signature appended~\n", 28);
	CHECK_EQ(sb_modules_plain_len(m, 56), 6);
	CHECK_EQ(sb_modules_plain_len(m, 55), 55);
	CHECK_EQ(sb_modules_plain_len(m + 16, 40), 40); /* says more than is there */
	m[24] = (char)0xff;
	CHECK_EQ(sb_modules_plain_len(m, 56), 56);
	CHECK_EQ(sb_modules_plain_len("", 0), 0);
	CHECK(sb_modules_sig_optional("#\n# CONFIG_MODULE_SIG_FORCE is not set\nX=y\n"));
	CHECK(!sb_modules_sig_optional("#\nCONFIG_MODULE_SIG_FORCE=y\n"));
	CHECK(!sb_modules_sig_optional(""));
}

TEST(modules_of_the_network)
{
	static const char text[] =
		"kernel/lib/libcrc32c.ko:\n"
		"kernel/net/netfilter/nfnetlink.ko:\n"
		"kernel/net/netfilter/nf_tables.ko: kernel/net/netfilter/nfnetlink.ko "
		"kernel/lib/libcrc32c.ko\n"
		"kernel/net/netfilter/nft_tproxy.ko: kernel/net/ipv6/netfilter/nf_tproxy_ipv6.ko "
		"kernel/net/netfilter/nf_tables.ko kernel/net/netfilter/nfnetlink.ko "
		"kernel/lib/libcrc32c.ko\n"
		"kernel/net/ipv6/netfilter/nf_tproxy_ipv6.ko:\n";
	static const char *const want[] = {
		"kernel/lib/libcrc32c.ko", "kernel/net/netfilter/nfnetlink.ko",
		"kernel/net/netfilter/nf_tables.ko", "kernel/net/ipv6/netfilter/nf_tproxy_ipv6.ko",
		"kernel/net/netfilter/nft_tproxy.ko",
	};
	static struct sb_module_list l;
	struct sb_err err = { 0 };

	CHECK_EQ(sb_modules_pick(text, "kernel/crypto/crc32c_generic.ko\n", sb_modules_net, &l, &err),
		 0);
	CHECK_EQ(l.n, 5);
	for (size_t i = 0; i < l.n && i < 5; i++)
		CHECK_STR(l.path[i], want[i]);
	CHECK(sb_modules_has(&l, "kernel/lib/libcrc32c.ko"));
	CHECK(!sb_modules_has(&l, "kernel/lib/libcrc32"));
	CHECK_EQ(sb_modules_pick("", "", sb_modules_net, &l, &err), -ENOPKG);
	CHECK_STR(err.text, "the kernel lacks nf_tables, nft_tproxy (neither a module nor built in)");
}

/* erofs as ext4 wants a sum that its own dependency asks for by a name: each list brings it, as a guest may
 * load only one of them, and no network's. */
TEST(modules_of_disks)
{
	static const char text[] = "kernel/crypto/crc32c_generic.ko:\nkernel/lib/libcrc32c.ko:\n"
				   "kernel/drivers/block/virtio_blk.ko:\n"
				   "kernel/fs/erofs/erofs.ko: kernel/lib/libcrc32c.ko\n"
				   "kernel/fs/mbcache.ko:\nkernel/fs/ext4/ext4.ko: kernel/fs/mbcache.ko\n";
	static struct sb_module_list l;
	struct sb_err err = { 0 };

	CHECK_EQ(sb_modules_pick(text, "", sb_modules_disk, &l, &err), 0);
	REQUIRE(l.n == 4);
	CHECK_STR(l.path[0], "kernel/crypto/crc32c_generic.ko");
	CHECK_STR(l.path[1], "kernel/drivers/block/virtio_blk.ko");
	CHECK_STR(l.path[2], "kernel/lib/libcrc32c.ko");
	CHECK_STR(l.path[3], "kernel/fs/erofs/erofs.ko");
	CHECK_EQ(sb_modules_pick(text, "", sb_modules_upper, &l, &err), 0);
	REQUIRE(l.n == 3);
	CHECK_STR(l.path[0], "kernel/crypto/crc32c_generic.ko");
	CHECK_STR(l.path[2], "kernel/fs/ext4/ext4.ko");
}
