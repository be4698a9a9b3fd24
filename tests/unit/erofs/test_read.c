/* Files made by hand, byte for byte after erofs_fs.h; those of mkfs.erofs are in the fuzz corpus and
 * in tests/integration/55-imgfs. */
#include "erofs/read.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "t.h"

#define ROOT 40U /* nid of the root: byte 1280 */
#define FILE 44U
#define DEV 46U
#define LINK 48U
static uint8_t img[3 * 4096];

static void put16(size_t at, unsigned int v)
{
	img[at] = (uint8_t)v;
	img[at + 1] = (uint8_t)(v >> 8);
}

static void put32(size_t at, uint32_t v)
{
	put16(at, v & 0xffff);
	put16(at + 2, v >> 16);
}

static void dirent(size_t at, unsigned int nid, unsigned int nameoff, unsigned int type)
{
	put32(at, nid);
	put16(at + 8, nameoff);
	img[at + 10] = (uint8_t)type;
}

/* inode (compact): format, mode, size, u */
static void inode(unsigned int nid, unsigned int format, unsigned int mode, uint32_t size,
		  uint32_t u)
{
	size_t at = nid * 32U;

	put16(at, format);
	put16(at + 4, mode);
	put16(at + 6, 1);
	put32(at + 8, size);
	put32(at + 16, u);
	put16(at + 24, 11);
	put16(at + 26, 12);
}

/* Root (inline) with ".", "..", "dev", "file", "link"; file: one whole block and 3 bytes inline. */
static void make(void)
{
	static const char names[] = "...devfilelink";
	size_t at = ROOT * 32U + 32;

	memset(img, 0, sizeof(img));
	put32(1024, 0xe0f5e1e2);
	put32(1024 + 8, 2);
	img[1024 + 12] = 12;
	put16(1024 + 14, ROOT);
	put32(1024 + 24, 1700000000);
	put32(1024 + 36, 3);
	inode(ROOT, 2U << 1, 0040755, 60 + 14, 0);
	dirent(at, ROOT, 60, 2);
	dirent(at + 12, ROOT, 61, 2);
	dirent(at + 24, DEV, 63, 3);
	dirent(at + 36, FILE, 66, 1);
	dirent(at + 48, LINK, 70, 7);
	memcpy(img + at + 60, names, 14);
	inode(FILE, 2U << 1, 0100644, 4099, 1);
	memcpy(img + FILE * 32U + 32, "abc", 3);
	memset(img + 4096, 'x', 4096);
	inode(DEV, 0, 0020000, 0, 0);
	inode(LINK, 2U << 1, 0120777, 4, 0);
	memcpy(img + LINK * 32U + 32, "file", 4);
}

TEST(reads)
{
	struct sb_erofs fs;
	struct sb_erofs_node root;
	struct sb_erofs_node n;
	struct sb_erofs_entry e;
	const uint8_t *p = NULL;
	const char *why = NULL;

	make();
	CHECK_EQ(sb_erofs_open(img, sizeof(img), &fs, &why), 0);
	CHECK_EQ(fs.root, ROOT);
	CHECK_EQ(sb_erofs_node(&fs, fs.root, &root), 0);
	CHECK_EQ(root.mode, 0040755);
	CHECK_EQ(root.time, 1700000000);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "file", 4, &e), 0);
	CHECK_EQ(e.nid, FILE);
	CHECK_EQ(sb_erofs_node(&fs, e.nid, &n), 0);
	CHECK_EQ(n.size, 4099);
	CHECK_EQ(n.uid, 11);
	CHECK_EQ(n.gid, 12);
	CHECK_EQ(sb_erofs_span(&fs, &n, 1, &p), 4095);
	CHECK_EQ(p[0], 'x');
	CHECK_EQ(sb_erofs_span(&fs, &n, 4096, &p), 3);
	CHECK_MEM(p, "abc", 3);
	CHECK_EQ(sb_erofs_span(&fs, &n, 4098, &p), 1);
	CHECK_EQ(sb_erofs_span(&fs, &n, 4099, &p), 0);
	CHECK_EQ(sb_erofs_span(&fs, &n, UINT64_MAX, &p), 0);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "dev", 3, &e), 0);
	CHECK_EQ(sb_erofs_node(&fs, e.nid, &n), 0);
	CHECK_EQ(n.mode, 0020000);
	CHECK_EQ(n.dev, 0);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "link", 4, &e), 0);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "fil", 3, &e), -ENOENT);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "files", 5, &e), -ENOENT);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "zz", 2, &e), -ENOENT);
	CHECK_EQ(sb_erofs_lookup(&fs, &root, "", 0, &e), -ENOENT);
	CHECK_EQ(sb_erofs_lookup(&fs, &n, "a", 1, &e), -ENOTDIR);
}

TEST(lists)
{
	static const char *const want[] = { ".", "..", "dev", "file", "link" };
	struct sb_erofs fs;
	struct sb_erofs_node root;
	struct sb_erofs_entry e;
	uint64_t pos = 0;

	make();
	CHECK_EQ(sb_erofs_open(img, sizeof(img), &fs, NULL), 0);
	CHECK_EQ(sb_erofs_node(&fs, fs.root, &root), 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		CHECK_EQ(sb_erofs_next(&fs, &root, &pos, &e), 1);
		CHECK_EQ(e.name_len, strlen(want[i]));
		CHECK_MEM(e.name, want[i], e.name_len);
	}
	CHECK_EQ(sb_erofs_next(&fs, &root, &pos, &e), 0);
	pos = 5;
	CHECK_EQ(sb_erofs_next(&fs, &root, &pos, &e), -EINVAL);
	pos = UINT64_MAX;
	CHECK_EQ(sb_erofs_next(&fs, &root, &pos, &e), 0);
}

static int opens(void)
{
	struct sb_erofs fs;

	return sb_erofs_open(img, sizeof(img), &fs, NULL);
}

TEST(refuses)
{
	static const struct {
		size_t at;
		uint32_t v;
	} broken[] = {
		{ 1024, 0xe0f5e1e3 },	     /* magic */
		{ 1024 + 8, 8 },	     /* an unknown feature */
		{ 1024 + 8, 1 },	     /* a checksum that is wrong */
		{ 1024 + 12, ROOT << 16 | 13 }, /* blocks of 8 KiB */
		{ 1024 + 12, ROOT << 16 | 1 << 8 | 12 }, /* slots */
		{ 1024 + 12, DEV << 16 | 12 },  /* root is no directory */
		{ 1024 + 12, 0xffff000cU },  /* root lies outside */
		{ 1024 + 36, 4 },	     /* more blocks than there are */
		{ 1024 + 36, 0 },
		{ 1024 + 40, 2 },	     /* inodes elsewhere */
		{ 1024 + 80, 1 },	     /* compression */
		{ 1024 + 80, 4 },	     /* chunks */
		{ 1024 + 84, 1 << 16 },	     /* a device */
		{ 1024 + 32, 1000000000 },   /* a time that is none */
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(broken); i++) {
		make();
		CHECK_EQ(opens(), 0);
		put32(broken[i].at, broken[i].v);
		CHECK_EQ(opens(), -EBADMSG);
	}
	make();
	CHECK_EQ(sb_erofs_open(img, 4095, &(struct sb_erofs){ 0 }, NULL), -EBADMSG);
	CHECK_EQ(sb_erofs_open(img, 0, &(struct sb_erofs){ 0 }, NULL), -EBADMSG);
}

static int node(uint64_t nid)
{
	struct sb_erofs fs;
	struct sb_erofs_node n;

	CHECK_EQ(sb_erofs_open(img, sizeof(img), &fs, NULL), 0);
	return sb_erofs_node(&fs, nid, &n);
}

TEST(bad_inodes)
{
	make();
	CHECK_EQ(node(FILE), 0);
	CHECK_EQ(node(sizeof(img) / 32), -ENOENT);
	CHECK_EQ(node(UINT64_MAX), -ENOENT);
	CHECK_EQ(node(UINT64_MAX / 32), -ENOENT);
	CHECK_EQ(node(0), -EBADMSG); /* no type */
	put32(FILE * 32U + 16, 3); /* data after the end */
	CHECK_EQ(node(FILE), -EBADMSG);
	make();
	put32(FILE * 32U + 16, 0xffffffff);
	CHECK_EQ(node(FILE), -EBADMSG);
	make();
	inode(FILE, 1U << 1, 0100644, 10, 1); /* compressed */
	CHECK_EQ(node(FILE), -EBADMSG);
	inode(FILE, 4U << 1, 0100644, 10, 1); /* chunks */
	CHECK_EQ(node(FILE), -EBADMSG);
	inode(FILE, 1U << 4, 0100644, 10, 1); /* an unknown bit */
	CHECK_EQ(node(FILE), -EBADMSG);
	inode(FILE, 2U << 1, 0100644, 3000, 1); /* a tail that crosses a block */
	CHECK_EQ(node(FILE), -EBADMSG);
	inode(FILE, 0, 0100644, 8193, 1); /* one byte too many */
	CHECK_EQ(node(FILE), -EBADMSG);
	inode(FILE, 0, 0100644, 8192, 1);
	CHECK_EQ(node(FILE), 0);
	inode(FILE, 2U << 1, 0120777, 0, 0); /* a link to nowhere */
	CHECK_EQ(node(FILE), -EBADMSG);
	make();
	put16(FILE * 32U + 2, 0xffff); /* attributes beyond the end */
	CHECK_EQ(node(FILE), -EBADMSG);
}

TEST(bad_directories)
{
	const size_t at = ROOT * 32U + 32;
	struct sb_erofs fs;
	struct sb_erofs_node root;
	struct sb_erofs_entry e;
	static const unsigned int offs[] = { 0, 5, 48 + 1, 74, 4096, 0xffff };

	for (size_t i = 0; i < SB_ARRAY_LEN(offs); i++) {
		uint64_t pos = 0;

		make();
		put16(at + 8, offs[i]);
		CHECK_EQ(sb_erofs_open(img, sizeof(img), &fs, NULL), 0);
		CHECK_EQ(sb_erofs_node(&fs, fs.root, &root), 0);
		CHECK_EQ(sb_erofs_next(&fs, &root, &pos, &e), -EBADMSG);
		CHECK_EQ(sb_erofs_lookup(&fs, &root, "file", 4, &e), -EBADMSG);
	}
	make();
	img[at + 60 + 6] = '/'; /* "file" is now "/ile" */
	CHECK_EQ(sb_erofs_open(img, sizeof(img), &fs, NULL), 0);
	CHECK_EQ(sb_erofs_node(&fs, fs.root, &root), 0);
	uint64_t pos = 3;
	CHECK_EQ(sb_erofs_next(&fs, &root, &pos, &e), -EBADMSG);
	CHECK_EQ(pos, 3);
}

TEST(attributes)
{
	/* header 12, one entry 4 + 4 + 2 -> 12: icount = 1 + (24 - 12) / 4 */
	static const uint8_t x[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
				     3, 1, 2, 0, 'k', 'e', 'y', 'v', 'w' };
	struct sb_erofs fs;
	struct sb_erofs_node n;
	struct sb_erofs_xattr a;
	uint64_t pos = 0;

	make();
	inode(DEV, 0, 0100644, 0, 0);
	put16(DEV * 32U + 2, 4);
	memcpy(img + DEV * 32U + 32, x, sizeof(x)); /* over the link's inode */
	CHECK_EQ(sb_erofs_open(img, sizeof(img), &fs, NULL), 0);
	CHECK_EQ(sb_erofs_node(&fs, DEV, &n), 0);
	CHECK_EQ(sb_erofs_xattr(&fs, &n, &pos, &a), 1);
	CHECK_STR(a.name, "user.key");
	CHECK_EQ(a.len, 2);
	CHECK_MEM(a.value, "vw", 2);
	CHECK_EQ(sb_erofs_xattr(&fs, &n, &pos, &a), 0);
	CHECK_EQ(sb_erofs_xattr_get(&fs, &n, "user.key", &a), 0);
	CHECK_EQ(sb_erofs_xattr_get(&fs, &n, "user.ke", &a), -ENODATA);
	img[DEV * 32U + 32 + 14] = 200; /* a value longer than the room */
	CHECK_EQ(sb_erofs_xattr_get(&fs, &n, "user.key", &a), -EBADMSG);
	img[DEV * 32U + 32 + 4] = 4; /* more shared ones than the room */
	CHECK_EQ(sb_erofs_xattr_get(&fs, &n, "user.key", &a), -EBADMSG);
	img[DEV * 32U + 32 + 14] = 2;
	img[DEV * 32U + 32 + 4] = 0;
	img[DEV * 32U + 32 + 13] = 9; /* an unknown prefix */
	pos = 0;
	CHECK_EQ(sb_erofs_xattr(&fs, &n, &pos, &a), 2);
	CHECK_EQ(sb_erofs_xattr(&fs, &n, &pos, &a), 0);
}
