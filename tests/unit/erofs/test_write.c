/* The bytes of a small file system, read back by hand. The programs of erofs-utils and the kernel
 * judge larger ones in tests/e2e/51-images. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "erofs/erofs_fs.h"
#include "erofs/write.h"
#include "t.h"

static uint8_t img[1 << 20];
static size_t img_len;

struct made {
	struct sb_erofs_tree t;
	struct sb_erofs_writer *w;
	int out;
	int spool;
};

static void start(struct made *m)
{
	m->out = memfd_create("out", MFD_CLOEXEC);
	m->spool = memfd_create("spool", MFD_CLOEXEC);
	CHECK_EQ(sb_erofs_tree_init(&m->t, 10000, 16 << 20), 0);
	CHECK_EQ(sb_erofs_new(m->out, m->spool, 1 << 20, &m->w), 0);
}

static struct sb_erofs_inode *add(struct made *m, struct sb_erofs_entry *dir, const char *name,
				  uint16_t mode, struct sb_erofs_entry **ret)
{
	struct sb_erofs_inode *i = sb_erofs_inode_new(&m->t);

	if (!i)
		return NULL;
	i->mode = mode;
	CHECK_EQ(sb_erofs_link(&m->t, dir, name, strlen(name), i, ret), 0);
	return i;
}

static void end(struct made *m)
{
	CHECK_EQ(sb_erofs_finish(m->w, &m->t), 0);
	img_len = (size_t)sb_erofs_size(m->w);
	CHECK(img_len <= sizeof(img) && img_len % 4096 == 0);
	CHECK_EQ(pread(m->out, img, sizeof(img), 0), (ssize_t)img_len);
	m->w = sb_erofs_free(m->w);
	sb_erofs_tree_done(&m->t);
	sb_fd_close(&m->out);
	sb_fd_close(&m->spool);
}

static uint64_t le(size_t at, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i > 0; i--)
		v = v << 8 | img[at + i - 1];
	return v;
}

TEST(literal)
{
	struct made m;
	struct sb_erofs_inode *i;
	size_t root;
	size_t f;

	start(&m);
	m.t.root->inode->mtime = 77;
	i = add(&m, m.t.root, "f", S_IFREG | 0640, NULL);
	REQUIRE(i);
	i->size = 4096 + 3;
	i->uid = 70000;
	i->mtime = -5;
	i->mtime_nsec = 9;
	CHECK_EQ(sb_erofs_xattr_add(m.w, "user.k", 6, "vv", 2), 0);
	CHECK_EQ(sb_erofs_xattr_add(m.w, "weird.k", 7, "vv", 2), -EOPNOTSUPP);
	CHECK_EQ(sb_erofs_xattr_set(m.w, &m.t, i), 0);
	CHECK_EQ(sb_erofs_data_begin(m.w, i), 0);
	memset(img, 'A', 4096);
	CHECK_EQ(sb_erofs_data_add(m.w, img, 4090), 0);
	CHECK_EQ(sb_erofs_data_add(m.w, (const uint8_t *)"BBBBBBCCC", 9), 0);
	CHECK_EQ(sb_erofs_data_add(m.w, (const uint8_t *)"x", 1), -EINVAL);
	CHECK_EQ(sb_erofs_data_end(m.w), 0);
	end(&m);

	/* block 0: superblock; 1: the file's whole block; 2: inodes */
	CHECK_EQ(img_len, 3 * 4096);
	CHECK_EQ(le(1024, 4), 0xe0f5e1e2);
	CHECK_EQ(le(1024 + 12, 1), 12);
	CHECK_EQ(le(1024 + 14, 2), 1);
	CHECK_EQ(le(1024 + 16, 8), 2);
	CHECK_EQ(le(1024 + 36, 4), 3);
	CHECK_EQ(le(1024 + 40, 4), 2);
	CHECK(img[4096] == 'A' && img[4096 + 4089] == 'A' && img[4096 + 4090] == 'B');
	root = 2 * 4096 + 32;
	CHECK_EQ(le(root, 2), 1 | 2 << 1); /* extended, inline */
	CHECK_EQ(le(root + 4, 2), 040755);
	CHECK_EQ(le(root + 8, 8), 3 * 12 + 1 + 2 + 1);
	CHECK_EQ(le(root + 32, 8), 77);
	CHECK_EQ(le(root + 44, 4), 2);
	CHECK_EQ(le(root + 64, 8), 1); /* "." */
	CHECK_EQ(le(root + 64 + 8, 2), 36);
	CHECK_EQ(le(root + 64 + 10, 1), 2);
	CHECK_EQ(le(root + 64 + 12, 8), 1); /* ".." */
	CHECK_MEM(img + root + 64 + 36, "...f", 4);
	f = 2 * 4096 + 32 * (size_t)le(root + 64 + 24, 8);
	CHECK_EQ(le(root + 64 + 24 + 10, 1), 1);
	CHECK_EQ(le(f, 2), 1 | 2 << 1);
	CHECK_EQ(le(f + 2, 2), 3); /* 12 + 4 * (3 - 1) = 20 = header + 4 + 1 + 2 padded */
	CHECK_EQ(le(f + 4, 2), 0100640);
	CHECK_EQ(le(f + 8, 8), 4099);
	CHECK_EQ(le(f + 16, 4), 1);
	CHECK_EQ(le(f + 24, 4), 70000);
	CHECK_EQ((int64_t)le(f + 32, 8), -5);
	CHECK_EQ(le(f + 40, 4), 9);
	CHECK_MEM(img + f + 64 + 12, "\x01\x01\x02\x00kvv\0", 8);
	CHECK_MEM(img + f + 64 + 20, "CCC", 3);
}

/* Names before "." and after "..", more than a block of them, and in any order of making. */
TEST(long_directory)
{
	struct made m;
	char name[120];
	size_t at;
	size_t n = 0;
	char last[256] = "";

	start(&m);
	for (unsigned int i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "%c%0100u", i % 3 == 0 ? '!' : i % 3 == 1 ? '-' : 'z',
			       (i * 7919) % 300);
		REQUIRE(add(&m, m.t.root, name, S_IFREG | 0600, NULL));
	}
	end(&m);
	at = (size_t)le(1024 + 40, 4) * 4096 + 32;
	CHECK_EQ(le(at, 2) & 1, 1);
	for (size_t b = 0; b < (size_t)le(at + 8, 8); b += 4096) {
		bool tail = (le(at, 2) >> 1) == 2 && (size_t)le(at + 8, 8) - b < 4096;
		size_t block = tail ? at + 64 : (size_t)le(at + 16, 4) * 4096 + b;
		size_t count = (size_t)le(block + 8, 2) / 12;

		for (size_t k = 0; k < count; k++) {
			size_t from = (size_t)le(block + k * 12 + 8, 2);
			size_t to = k + 1 < count ? (size_t)le(block + k * 12 + 20, 2) :
						    SB_MIN((size_t)4096, (size_t)le(at + 8, 8) - b);
			char got[256];
			size_t len = strnlen((const char *)img + block + from, to - from);

			memcpy(got, img + block + from, len);
			got[len] = '\0';
			CHECK(n == 0 || strcmp(last, got) < 0);
			memcpy(last, got, len + 1);
			n++;
		}
	}
	CHECK_EQ(n, 302);
}

TEST(reproducible)
{
	static uint8_t first[1 << 20];
	size_t len = 0;

	for (int round = 0; round < 2; round++) {
		struct made m;
		struct sb_erofs_entry *d = NULL;

		start(&m);
		REQUIRE(add(&m, m.t.root, "d", S_IFDIR | 0700, &d));
		REQUIRE(add(&m, d, "x", S_IFCHR, NULL));
		end(&m);
		if (round == 0) {
			memcpy(first, img, img_len);
			len = img_len;
		}
	}
	CHECK_EQ(img_len, len);
	CHECK_MEM(img, first, len);
}

TEST(full_disk_and_limits)
{
	struct made m;
	struct sb_erofs_inode *i;
	sb_autofd int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct sb_erofs_writer *w = NULL;

	start(&m);
	i = add(&m, m.t.root, "f", S_IFREG, NULL);
	REQUIRE(i);
	i->size = 2 << 20;
	CHECK_EQ(sb_erofs_data_begin(m.w, i), -EFBIG);
	i->size = 0;
	end(&m);
	CHECK_EQ(sb_erofs_tree_init(&m.t, 10, 4096), 0);
	CHECK_EQ(sb_erofs_new(full, full, 1 << 20, &w), 0);
	CHECK_EQ(sb_erofs_finish(w, &m.t), -ENOSPC);
	w = sb_erofs_free(w);
	sb_erofs_tree_done(&m.t);
}
