#ifndef SB_WIRE_TAR_H
#define SB_WIRE_TAR_H
/*
 * Strict reader of tar archives: ustar, pax, and GNU's long names. Bytes are pushed in, entries
 * come out as calls; nothing is kept but the header at hand. The reader decides about form alone:
 * what a name may be is the caller's business, but no string it hands out holds a NUL.
 *
 * Refused: sparse files, multi-volume archives, unknown types, a wrong checksum, numbers out of
 * range, an archive without its end marker.
 */
#include "base/err.h"

#define SB_TAR_BLOCK 512U
#define SB_TAR_MAX_EXTENDED (1U << 20) /* bytes of one pax header or long name */
#define SB_TAR_MAX_XATTRS 64U
#define SB_TAR_MAX_PATH 4095U

enum sb_tar_type {
	SB_TAR_NONE = 0,
	SB_TAR_REG,
	SB_TAR_HARD_LINK,
	SB_TAR_SYMLINK,
	SB_TAR_CHR,
	SB_TAR_BLK,
	SB_TAR_DIR,
	SB_TAR_FIFO,
};
struct sb_tar_xattr { /* borrowed */
	const char *name; /* not terminated */
	size_t name_len;
	const uint8_t *value;
	size_t value_len;
};
struct sb_tar_entry { /* everything borrowed until the callback returns */
	enum sb_tar_type type;
	const char *path; /* 1 to 4095 bytes, as written */
	const char *link; /* links only, else "" */
	uint16_t mode;    /* 07777 */
	uint32_t uid;
	uint32_t gid;
	uint64_t size;    /* REG only, else 0 */
	int64_t mtime;
	uint32_t mtime_nsec;
	uint32_t major;
	uint32_t minor;
	const struct sb_tar_xattr *xattrs;
	size_t n_xattrs;
};
/* Each returns 0 or a negative errno, which sb_tar_push passes on. */
struct sb_tar_ops {
	int (*entry)(void *arg, const struct sb_tar_entry *e);
	int (*data)(void *arg, const uint8_t *p, size_t len); /* of the last entry, a REG */
	int (*end)(void *arg); /* all data of the last entry, a REG, was given */
};

struct sb_tar; /* one archive being read */
/* @ops, @arg: borrowed. Return: 0; -ENOMEM. */
SB_MUST_CHECK int sb_tar_new(const struct sb_tar_ops *ops, void *arg, struct sb_tar **ret);
struct sb_tar *sb_tar_free(struct sb_tar *t);
static inline void sb_tar_freep(struct sb_tar **t)
{
	(void)sb_tar_free(*t);
}
#define sb_autotar SB_CLEANUP(sb_tar_freep)

/* Return: 0; -EBADMSG with the text in @err; -ENOMEM; what a callback returned. */
SB_MUST_CHECK int sb_tar_push(struct sb_tar *t, const uint8_t *p, size_t len, struct sb_err *err);
/* No more bytes come. Return: 0; -EBADMSG: in the middle of something, or no end marker. */
SB_MUST_CHECK int sb_tar_end(const struct sb_tar *t, struct sb_err *err);
/* Whether the last entry is whole and nothing of another one came: all there is without an end marker. */
bool sb_tar_between(const struct sb_tar *t);

#endif
