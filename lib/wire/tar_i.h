#ifndef SB_WIRE_TAR_I_H
#define SB_WIRE_TAR_I_H
/* Between tar.c (states) and tar_head.c (fields and pax records). */
#include "wire/tar.h"

/* Offsets in a header block. Source: POSIX pax, "ustar Interchange Format". */
enum {
	TAR_NAME = 0, /* 100 */
	TAR_MODE = 100,
	TAR_UID = 108,
	TAR_GID = 116,
	TAR_SIZE = 124, /* 12 */
	TAR_MTIME = 136, /* 12 */
	TAR_SUM = 148,
	TAR_TYPE = 156,
	TAR_LINK = 157, /* 100 */
	TAR_MAGIC = 257,
	TAR_MAJOR = 329,
	TAR_MINOR = 337,
	TAR_PREFIX = 345, /* 155 */
};

enum tar_state { TAR_HEADER = 0, TAR_EXTEND, TAR_SKIP, TAR_DATA, TAR_PAD, TAR_ZERO, TAR_DONE };
enum tar_text_kind { TAR_TEXT_PAX = 0, TAR_TEXT_NAME, TAR_TEXT_LINK, TAR_N_TEXTS };
struct tar_text {
	char *p; /* owned; NUL-terminated when complete */
	size_t len;
	size_t want;
};
struct sb_tar {
	struct sb_tar_ops ops;
	void *arg;
	enum tar_state state;
	enum tar_text_kind kind; /* EXTEND */
	uint64_t left;           /* bytes of the body */
	uint64_t pad;            /* bytes after it */
	bool is_file;
	size_t have;             /* bytes in @block */
	uint8_t block[SB_TAR_BLOCK];
	struct tar_text texts[TAR_N_TEXTS];
	char path[SB_TAR_MAX_PATH + 1];
	char link[SB_TAR_MAX_PATH + 1];
};

SB_MUST_CHECK int tar_checksum(const uint8_t *block, struct sb_err *err);
/* Octal, or base 256 when the first bit is set. Return: 0; -EINVAL (also when negative). */
SB_MUST_CHECK int tar_number(const uint8_t *p, size_t len, uint64_t *ret);
/* What block and texts say together; @xattrs: SB_TAR_MAX_XATTRS. */
SB_MUST_CHECK int tar_entry(struct sb_tar *t, struct sb_tar_entry *e, struct sb_tar_xattr *xattrs,
			    struct sb_err *err);

#endif
