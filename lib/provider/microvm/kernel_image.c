#include "provider/microvm/kernel_image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* Offsets in the x86 setup header, from the start of the file. */
enum {
	X86_SETUP_SECTS = 0x1f1,   /* u8, 512-byte sectors after the first; 0 means 4 */
	X86_BOOT_FLAG = 0x1fe,     /* u16 0xaa55 */
	X86_MAGIC = 0x202,         /* "HdrS" */
	X86_VERSION = 0x206,       /* u16, 0x020f today */
	X86_KERNEL_VERSION = 0x20e, /* u16, of the version text, less 0x200; 0 = none */
	X86_XLOADFLAGS = 0x236,    /* u16, bit 0: has a 64-bit kernel */
	X86_PAYLOAD_OFFSET = 0x248, /* u32, from the end of the set-up sectors */
	X86_PAYLOAD_LENGTH = 0x24c, /* u32, the length word of the packer included */
	X86_HEADER_END = 0x250,
};
#define X86_VERSION_MIN 0x020c /* has xloadflags; Linux 3.8 */
#define XEN_ELFNOTE_PHYS32_ENTRY 18U
#define ARM64_MAGIC_OFF 56
#define ARM64_HEADER_LEN 64

struct packer {
	const char *name;
	const char *magic;
	size_t magic_len;
	bool known; /* we can unpack it */
	bool word;  /* 4 bytes with the unpacked length follow the packed data */
};

static const struct packer packers[] = {
	{ "gzip", "\x1f\x8b", 2, true, false },
	{ "xz", "\xfd" "7zXZ\0", 6, true, true },
	{ "zstd", "\x28\xb5\x2f\xfd", 4, true, true },
	{ "lz4", "\x02\x21\x4c\x18", 4, true, true },
	{ "bzip2", "BZh", 3, false, true },
	{ "lzma", "\x5d\0\0", 3, false, true },
	{ "lzo", "\x89LZO", 4, false, true },
};

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16;
}

static uint64_t le64(const uint8_t *p)
{
	return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}

bool sb_kimage_release_ok(const char *s)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~-";
	size_t n = strlen(s);

	return n > 0 && n <= SB_KERNEL_RELEASE_MAX && *s >= '0' && *s <= '9' &&
	       strspn(s, set) == n;
}

/* The first word at @p, when it is a release. */
static int take_release(const uint8_t *p, size_t len, char *out)
{
	char word[SB_KERNEL_RELEASE_MAX + 1];
	size_t n = 0;

	while (n < len && n < SB_KERNEL_RELEASE_MAX && p[n] != ' ' && p[n] != '\0')
		n++;
	if (n == len || (p[n] != ' ' && p[n] != '\0'))
		return -ENODATA;
	memcpy(word, p, n);
	word[n] = '\0';
	if (!sb_kimage_release_ok(word))
		return -ENODATA;
	memcpy(out, word, n + 1);
	return 0;
}

int sb_kimage_release(const uint8_t *p, size_t len, char *out)
{
	static const char banner[] = "Linux version ";
	const uint8_t *end = p + len;

	for (;;) {
		const uint8_t *hit = memmem(p, (size_t)(end - p), banner, sizeof(banner) - 1);

		if (!hit)
			return -ENODATA;
		p = hit + sizeof(banner) - 1;
		if (take_release(p, (size_t)(end - p), out) == 0)
			return 0;
	}
}

/* Whether a note segment holds Xen's PVH entry point. */
static bool notes_have_pvh(const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (len - at >= 12) {
		uint64_t name_len = le32(p + at);
		uint64_t desc_len = le32(p + at + 4);
		uint32_t type = le32(p + at + 8);
		uint64_t name_room = (name_len + 3) & ~UINT64_C(3);
		uint64_t desc_room = (desc_len + 3) & ~UINT64_C(3);

		at += 12;
		if (name_room > len - at || desc_room > len - at - name_room)
			return false;
		if (type == XEN_ELFNOTE_PHYS32_ENTRY && name_len == 4 &&
		    memcmp(p + at, "Xen", 4) == 0 && (desc_len == 4 || desc_len == 8))
			return true;
		at += (size_t)(name_room + desc_room);
	}
	return false;
}

static int check_elf(const uint8_t *p, size_t len, enum sb_vm_arch arch, struct sb_err *err)
{
	bool loads = false;
	bool pvh = false;
	uint64_t phoff;
	unsigned int phnum;

	if (len < sizeof(Elf64_Ehdr) || p[EI_CLASS] != ELFCLASS64 || p[EI_DATA] != ELFDATA2LSB)
		return sb_err_set(err, -EBADMSG, "not a 64-bit little-endian ELF kernel");
	if (arch != SB_VM_ARCH_X86_64 || le16(p + 18) != EM_X86_64)
		return sb_err_set(err, -EBADMSG, "an ELF kernel of another machine type");
	if (le16(p + 16) != ET_EXEC && le16(p + 16) != ET_DYN)
		return sb_err_set(err, -EBADMSG, "an ELF file that is no program");
	phoff = le64(p + 32);
	phnum = le16(p + 56);
	if (le16(p + 54) != sizeof(Elf64_Phdr) || phnum == 0 || phoff > len ||
	    (uint64_t)phnum * sizeof(Elf64_Phdr) > len - phoff)
		return sb_err_set(err, -EBADMSG, "a damaged ELF kernel: program headers");
	for (unsigned int i = 0; i < phnum; i++) {
		const uint8_t *ph = p + phoff + i * sizeof(Elf64_Phdr);
		uint64_t off = le64(ph + 8);
		uint64_t size = le64(ph + 32);

		if (off > len || size > len - off)
			return sb_err_set(err, -EBADMSG, "a damaged ELF kernel: segment %u", i);
		loads = loads || le32(ph) == PT_LOAD;
		if (le32(ph) == PT_NOTE && notes_have_pvh(p + off, (size_t)size))
			pvh = true;
	}
	if (!loads)
		return sb_err_set(err, -EBADMSG, "an ELF file that loads nothing");
	if (!pvh)
		return sb_err_set(err, -EBADMSG,
				  "this kernel has no PVH entry point (needs CONFIG_PVH=y)");
	return 0;
}

/* A name for what @p begins with; NULL when it is no packed data that we know of. */
static const struct packer *find_packer(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(packers); i++)
		if (len > packers[i].magic_len &&
		    memcmp(p, packers[i].magic, packers[i].magic_len) == 0)
			return &packers[i];
	return NULL;
}

static int parse_bzimage(const uint8_t *p, size_t len, struct sb_kimage *ret, struct sb_err *err)
{
	struct sb_kimage k = { .kind = SB_KIMAGE_BZIMAGE };
	size_t sects = p[X86_SETUP_SECTS] ? p[X86_SETUP_SECTS] : 4;
	size_t base = (sects + 1) * 512;
	size_t text = le16(p + X86_KERNEL_VERSION);
	uint32_t off = le32(p + X86_PAYLOAD_OFFSET);
	uint32_t size = le32(p + X86_PAYLOAD_LENGTH);
	const struct packer *packer;

	if (le16(p + X86_VERSION) < X86_VERSION_MIN || !(le16(p + X86_XLOADFLAGS) & 1))
		return sb_err_set(err, -EBADMSG, "a bzImage without a 64-bit kernel");
	if (base > len || off > len - base || size > len - base - off || size < 16)
		return sb_err_set(err, -EBADMSG, "a damaged bzImage: the payload is not inside");
	k.payload_off = base + off;
	k.payload_len = size;
	if (text > 0 && text + 0x200 < base)
		(void)take_release(p + 0x200 + text, base - 0x200 - text, k.release);
	if (memcmp(p + k.payload_off, ELFMAG, SELFMAG) == 0) {
		*ret = k;
		return 0;
	}
	packer = find_packer(p + k.payload_off, size);
	if (!packer)
		return sb_err_set(err, -EBADMSG, "a bzImage packed in an unknown way");
	if (!packer->known)
		return sb_err_set(err, -EBADMSG,
				  "a bzImage packed with %s; gzip, xz, zstd and lz4 are known",
				  packer->name);
	k.packed = true;
	if (packer->word)
		k.payload_len -= 4;
	*ret = k;
	return 0;
}

static int parse_plain(const uint8_t *p, size_t len, enum sb_kimage_kind kind,
		       struct sb_kimage *ret, struct sb_err *err)
{
	struct sb_kimage k = { .kind = kind, .payload_len = len };

	if (sb_kimage_release(p, len, k.release) < 0)
		return sb_err_set(err, -EBADMSG, "no \"Linux version\" in it: not a Linux kernel");
	*ret = k;
	return 0;
}

int sb_kimage_parse(const uint8_t *p, size_t len, enum sb_vm_arch arch, struct sb_kimage *ret,
		    struct sb_err *err)
{
	int r;

	if (len > SB_KERNEL_MAX_BYTES)
		return sb_err_set(err, -EBADMSG, "larger than %u MiB", SB_KERNEL_MAX_BYTES >> 20);
	if (len >= SELFMAG && memcmp(p, ELFMAG, SELFMAG) == 0) {
		r = check_elf(p, len, arch, err);
		return r < 0 ? r : parse_plain(p, len, SB_KIMAGE_ELF, ret, err);
	}
	if (len >= X86_HEADER_END && le16(p + X86_BOOT_FLAG) == 0xaa55 &&
	    memcmp(p + X86_MAGIC, "HdrS", 4) == 0) {
		if (arch != SB_VM_ARCH_X86_64)
			return sb_err_set(err, -EBADMSG, "a kernel of another machine type (x86)");
		return parse_bzimage(p, len, ret, err);
	}
	if (len >= ARM64_HEADER_LEN && memcmp(p + ARM64_MAGIC_OFF, "ARM\x64", 4) == 0) {
		if (arch != SB_VM_ARCH_AARCH64)
			return sb_err_set(err, -EBADMSG, "a kernel of another machine type (arm64)");
		return parse_plain(p, len, SB_KIMAGE_ARM64, ret, err);
	}
	if (len >= 18 && p[0] == 0x1f && p[1] == 0x8b) {
		*ret = (struct sb_kimage){ .kind = SB_KIMAGE_GZIP, .payload_len = len,
					   .packed = true };
		return 0;
	}
	return sb_err_set(err, -EBADMSG, "not a kernel: neither bzImage nor ELF nor arm64 Image");
}
