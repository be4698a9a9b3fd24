#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/microvm/cache.h"
#include "provider/microvm/kernel_image.h"
#include "t.h"

#define X86 SB_VM_ARCH_X86_64
#define ARM SB_VM_ARCH_AARCH64

static void put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v & 0xffff);
	put16(p + 2, v >> 16);
}

/* One set-up sector after the first; 64 bytes of payload at 1024 + 16. */
static void make_bzimage(uint8_t img[1200], const char *magic, size_t magic_len)
{
	memset(img, 0, 1200);
	img[0x1f1] = 1;
	put16(img + 0x1fe, 0xaa55);
	memcpy(img + 0x202, "HdrS", 4);
	put16(img + 0x206, 0x020f);
	put16(img + 0x20e, 0x100);
	put16(img + 0x236, 1);
	put32(img + 0x248, 16);
	put32(img + 0x24c, 64);
	memcpy(img + 0x300, "6.1.0-57-cloud-amd64 (who@where) #1 SMP", 39);
	memcpy(img + 1040, magic, magic_len);
}

TEST(bzimage)
{
	uint8_t img[1200];
	struct sb_kimage k;
	struct sb_err err = { 0 };

	make_bzimage(img, "\xfd" "7zXZ\0", 6);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, &err), 0);
	CHECK_EQ(k.kind, SB_KIMAGE_BZIMAGE);
	CHECK_EQ(k.payload_off, 1040);
	CHECK_EQ(k.payload_len, 60); /* less the word with the length */
	CHECK(k.packed);
	CHECK_STR(k.release, "6.1.0-57-cloud-amd64");
	make_bzimage(img, "\x1f\x8b\x08", 3);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, &err), 0);
	CHECK_EQ(k.payload_len, 64); /* gzip has its own */
	make_bzimage(img, "\x7f" "ELF", 4);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, &err), 0);
	CHECK(!k.packed);
}

TEST(bzimage_refused)
{
	uint8_t img[1200];
	struct sb_kimage k = { .payload_off = 77 };
	struct sb_err err = { 0 };

	make_bzimage(img, "BZh9", 4);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, &err), -EBADMSG);
	CHECK_STR(err.text, "a bzImage packed with bzip2; gzip, xz, zstd and lz4 are known");
	make_bzimage(img, "????", 4);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_bzimage(img, "\x1f\x8b", 2);
	put32(img + 0x24c, 161); /* one byte beyond the file */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	put32(img + 0x248, 0xffffffff);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_bzimage(img, "\x1f\x8b", 2);
	img[0x1f1] = 200; /* set-up beyond the file */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_bzimage(img, "\x1f\x8b", 2);
	put16(img + 0x236, 0); /* 32 bits only */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_bzimage(img, "\x1f\x8b", 2);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), ARM, &k, NULL), -EBADMSG);
	CHECK_EQ(k.payload_off, 77); /* untouched by all that */
	memcpy(img + 0x300, "../../etc #", 11);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), 0);
	CHECK_STR(k.release, ""); /* no release that may be part of a path */
}

TEST(no_kernel_at_all)
{
	static const char *const texts[] = { "", "#!/bin/sh\n", "\177ELF", "MZ" };
	uint8_t zero[4096] = { 0 };
	struct sb_kimage k;
	struct sb_err err = { 0 };

	for (size_t i = 0; i < 4; i++)
		CHECK_EQ(sb_kimage_parse((const uint8_t *)texts[i], strlen(texts[i]), X86, &k, NULL),
			 -EBADMSG);
	CHECK_EQ(sb_kimage_parse(zero, sizeof(zero), X86, &k, &err), -EBADMSG);
	CHECK_STR(err.text, "not a kernel: neither bzImage nor ELF nor arm64 Image");
}

static const char banner[] = "Linux version %s\0Linux version 6.9.1-x (a@b)";

/* One PT_LOAD over all, one PT_NOTE at 256, the banner at 384. */
static void make_elf(uint8_t img[512])
{
	Elf64_Ehdr e = { .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_phoff = 64,
			 .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 };
	Elf64_Phdr ph[2] = { { .p_type = PT_LOAD, .p_filesz = 512 },
			     { .p_type = PT_NOTE, .p_offset = 256, .p_filesz = 60 } };

	memcpy(e.e_ident, "\x7f" "ELF\x02\x01\x01", 7);
	memset(img, 0, 512);
	memcpy(img, &e, sizeof(e));
	memcpy(img + 64, ph, sizeof(ph));
	put32(img + 256, 5); /* another note before it, of odd length */
	put32(img + 260, 3);
	put32(img + 264, 18);
	memcpy(img + 268, "Linux", 5);
	put32(img + 280, 4);
	put32(img + 284, 8);
	put32(img + 288, 18);
	memcpy(img + 292, "Xen", 4);
	memcpy(img + 384, banner, sizeof(banner));
}

TEST(elf)
{
	uint8_t img[512];
	struct sb_kimage k;
	struct sb_err err = { 0 };

	make_elf(img);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, &err), 0);
	CHECK_EQ(k.kind, SB_KIMAGE_ELF);
	CHECK_STR(k.release, "6.9.1-x"); /* the format string before it is no release */
	img[292] = 'Y';
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, &err), -EBADMSG);
	CHECK_STR(err.text, "this kernel has no PVH entry point (needs CONFIG_PVH=y)");
	make_elf(img);
	put32(img + 284, 0xfffffff0); /* note description beyond the segment */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_elf(img);
	put32(img + 280, 0xffffffff); /* note name, rounding wraps */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_elf(img);
	put32(img + 64 + 32, 513); /* load segment beyond the file */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_elf(img);
	img[39] = 0xff; /* program headers near 2^64 */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_elf(img);
	put16(img + 56, 0xffff);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_elf(img);
	put16(img + 18, 183);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
	make_elf(img);
	memset(img + 384, 0, 128); /* no banner: some other program */
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
}

TEST(arm64_image)
{
	uint8_t img[512] = { 0 };
	struct sb_kimage k;

	memcpy(img + 56, "ARM\x64", 4);
	memcpy(img + 384, banner, sizeof(banner));
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), ARM, &k, NULL), 0);
	CHECK_EQ(k.kind, SB_KIMAGE_ARM64);
	CHECK_EQ(sb_kimage_parse(img, sizeof(img), X86, &k, NULL), -EBADMSG);
}

TEST(releases)
{
	CHECK(sb_kimage_release_ok("6.1.0-57-cloud-amd64"));
	CHECK(sb_kimage_release_ok("6.12.0+deb13~rc1_x"));
	CHECK(!sb_kimage_release_ok(""));
	CHECK(!sb_kimage_release_ok("../6"));
	CHECK(!sb_kimage_release_ok("6/../.."));
	CHECK(!sb_kimage_release_ok("6 1"));
}

TEST(every_cut_of_an_elf)
{
	uint8_t img[512];
	struct sb_kimage k;

	make_elf(img);
	for (size_t len = 0; len < sizeof(img); len++) {
		uint8_t *copy = malloc(len + 1); /* for the address sanitizer */

		REQUIRE(copy);
		memcpy(copy, img, len);
		CHECK_EQ(sb_kimage_parse(copy, len, X86, &k, NULL), -EBADMSG);
		free(copy);
	}
}

/* Debian's own, when it is there: as bzImage and as the ELF that comes out of it. */
TEST(debian_kernel)
{
	glob_t g = { 0 };
	struct sb_kimage k;
	struct sb_err err = { 0 };
	char pattern[256];
	char release[SB_KERNEL_RELEASE_MAX + 1];
	char *img = NULL;
	uint8_t *elf = NULL;
	size_t len;
	size_t elf_len;
	const char *home = getenv("HOME");

	(void)snprintf(pattern, sizeof(pattern), "%.200s/.cache/sendbox/kernels/*/vmlinuz",
		       home ? home : "");
	if (sb_vm_arch_host() != X86 || glob(pattern, 0, NULL, &g) != 0) {
		t_skip("no kernel was fetched");
		return;
	}
	CHECK_EQ(sb_fd_read_file(AT_FDCWD, g.gl_pathv[0], SB_KERNEL_MAX_BYTES, &img, &len), 0);
	globfree(&g);
	REQUIRE(img);
	CHECK_EQ(sb_kimage_parse((uint8_t *)img, len, X86, &k, &err), 0);
	CHECK_EQ(k.kind, SB_KIMAGE_BZIMAGE);
	memcpy(release, k.release, sizeof(release));
	CHECK_EQ(sb_unpack(img + k.payload_off, k.payload_len, SB_KERNEL_MAX_BYTES, &elf, &elf_len),
		 0);
	free(img);
	REQUIRE(elf);
	CHECK_EQ(sb_kimage_parse(elf, elf_len, X86, &k, &err), 0);
	CHECK_EQ(k.kind, SB_KIMAGE_ELF);
	CHECK_STR(k.release, release);
	free(elf);
}
