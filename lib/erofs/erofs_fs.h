#ifndef SB_EROFS_EROFS_FS_H
#define SB_EROFS_EROFS_FS_H
/*
 * EROFS on disk, the part that sendbox writes and reads: no compression, no chunks, no devices
 * beside the file, blocks of 4 KiB. Every number is little-endian: le16toh and its kin. A reader
 * must refuse what is not here (an incompat bit, a layout, a block size) and believe no number.
 *
 * How sendbox lays a file out: block 0 holds the superblock; then come the whole blocks of files
 * and directories; the inodes stand at the end, from meta_blkaddr on. Other tools put the inodes
 * first (meta_blkaddr 0): a reader takes both.
 *
 * Source: the kernel's Documentation/filesystems/erofs.rst and fs/erofs/erofs_fs.h.
 */
#include <endian.h>

#include "base/mem.h"

#define SB_EROFS_MAGIC 0xe0f5e1e2U
#define SB_EROFS_SUPER_OFFSET 1024U
#define SB_EROFS_BLOCK_BITS 12U
#define SB_EROFS_BLOCK 4096U
#define SB_EROFS_SLOT 32U /* inode number nid stands at meta_blkaddr * BLOCK + nid * SLOT */
#define SB_EROFS_NAME_MAX 255U

/* feature_compat. The checksum is CRC-32C with start value ~0 and no final inversion, over the
 * rest of block 0 from the superblock on, with the field itself zero. */
#define SB_EROFS_COMPAT_CHECKSUM 1U
#define SB_EROFS_COMPAT_MTIME 2U /* the time of an inode is its mtime */

struct sb_erofs_super { /* 128 bytes at SUPER_OFFSET */
	uint32_t magic;
	uint32_t checksum;
	uint32_t feature_compat;
	uint8_t block_bits;      /* 12 */
	uint8_t ext_slots;       /* 0: nothing after these 128 bytes */
	uint16_t root_nid;
	uint64_t inodes;
	uint64_t build_time;     /* seconds: the time of every compact inode */
	uint32_t build_time_nsec;
	uint32_t blocks;         /* of the whole file */
	uint32_t meta_blkaddr;
	uint32_t xattr_blkaddr;  /* shared extended attributes: 0, we have none */
	uint8_t uuid[16];
	uint8_t volume_name[16];
	uint32_t feature_incompat; /* 0 */
	uint16_t compr_algs;       /* 0 */
	uint16_t extra_devices;    /* 0 */
	uint16_t devt_slotoff;     /* 0 */
	uint8_t dirblk_bits;       /* 0: a directory block is a block */
	uint8_t xattr_prefix_count; /* 0 */
	uint32_t xattr_prefix_start;
	uint64_t packed_nid;
	uint8_t reserved[24];
};

/* Inode. i_format: bit 0 = extended, bits 1 to 3 = layout of the data, the rest 0. */
#define SB_EROFS_EXTENDED 1U
#define SB_EROFS_LAYOUT_SHIFT 1U
#define SB_EROFS_LAYOUT_MASK 7U
#define SB_EROFS_FLAT_PLAIN 0U  /* consecutive blocks from @u */
#define SB_EROFS_FLAT_INLINE 2U /* the same, but the last size % BLOCK bytes (or BLOCK, or the
				 * whole of a short file) stand right after the inode and its
				 * attributes, all within one block */

struct sb_erofs_compact { /* 32 bytes; time = build_time */
	uint16_t format;
	uint16_t xattr_icount; /* see sb_erofs_xattr_header */
	uint16_t mode;
	uint16_t nlink;
	uint32_t size;
	uint32_t reserved;
	uint32_t u;            /* regular, directory, link: first block; device: new_encode_dev */
	uint32_t ino;          /* for 32-bit stat; any */
	uint16_t uid;
	uint16_t gid;
	uint32_t reserved2;
};
struct sb_erofs_extended { /* 64 bytes */
	uint16_t format;
	uint16_t xattr_icount;
	uint16_t mode;
	uint16_t reserved;
	uint64_t size;
	uint32_t u;
	uint32_t ino;
	uint32_t uid;
	uint32_t gid;
	uint64_t mtime;
	uint32_t mtime_nsec;
	uint32_t nlink;
	uint8_t reserved2[16];
};

/*
 * Extended attributes follow the inode when xattr_icount is not 0: a header, shared_count numbers
 * of 4 bytes (ours: none), then entries, each padded to 4 bytes. Bytes in all:
 * 12 + 4 * (xattr_icount - 1).
 */
struct sb_erofs_xattr_header {
	uint32_t name_filter;
	uint8_t shared_count;
	uint8_t reserved[7];
};
struct sb_erofs_xattr_entry { /* then the name without its prefix, then the value */
	uint8_t name_len;
	uint8_t name_index;
	uint16_t value_size;
};
#define SB_EROFS_XATTR_ALIGN 4U
#define SB_EROFS_XATTR_USER 1U           /* "user." */
#define SB_EROFS_XATTR_ACL_ACCESS 2U     /* "system.posix_acl_access", no rest */
#define SB_EROFS_XATTR_ACL_DEFAULT 3U    /* "system.posix_acl_default", no rest */
#define SB_EROFS_XATTR_TRUSTED 4U        /* "trusted." */
#define SB_EROFS_XATTR_SECURITY 6U       /* "security." */

/*
 * A block of a directory: entries, then names. entry[0].nameoff / 12 = number of entries; a name
 * ends where the next one begins, the last one at the block's end or at a NUL. Names are sorted by
 * unsigned bytes over all blocks, "." and ".." among them; nothing stands twice.
 */
struct sb_erofs_dirent {
	uint64_t nid;
	uint16_t nameoff;
	uint8_t file_type;
	uint8_t reserved;
} SB_PACKED;
#define SB_EROFS_FT_REG 1U
#define SB_EROFS_FT_DIR 2U
#define SB_EROFS_FT_CHR 3U
#define SB_EROFS_FT_BLK 4U
#define SB_EROFS_FT_FIFO 5U
#define SB_EROFS_FT_SOCK 6U
#define SB_EROFS_FT_LNK 7U

_Static_assert(sizeof(struct sb_erofs_super) == 128, "superblock");
_Static_assert(sizeof(struct sb_erofs_compact) == 32, "compact inode");
_Static_assert(sizeof(struct sb_erofs_extended) == 64, "extended inode");
_Static_assert(sizeof(struct sb_erofs_xattr_header) == 12, "xattr header");
_Static_assert(sizeof(struct sb_erofs_xattr_entry) == 4, "xattr entry");
_Static_assert(sizeof(struct sb_erofs_dirent) == 12, "dirent");

#endif
