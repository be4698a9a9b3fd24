#include "provider/microvm/cpio.h"

#include <string.h>
#include <sys/stat.h>

static void pad(struct sb_buf *b)
{
	static const char zero[4];

	sb_buf_add(b, zero, (4 - b->len % 4) % 4);
}

static void entry(struct sb_cpio *c, const char *name, uint32_t mode, uint32_t major,
		  uint32_t minor, const void *p, size_t len)
{
	size_t name_len = strlen(name) + 1;

	sb_assert(len <= UINT32_MAX);
	/* magic ino mode uid gid nlink mtime size major minor rmajor rminor namesize check */
	sb_buf_addf(c->out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", ++c->ino,
		    mode, 0U, 0U, S_ISDIR(mode) ? 2U : 1U, 0U, (uint32_t)len, 0U, 0U, major, minor,
		    (uint32_t)name_len, 0U);
	sb_buf_add(c->out, name, name_len);
	pad(c->out);
	if (len > 0)
		sb_buf_add(c->out, p, len);
	pad(c->out);
}

void sb_cpio_dir(struct sb_cpio *c, const char *name, uint32_t perm)
{
	entry(c, name, S_IFDIR | perm, 0, 0, NULL, 0);
}

void sb_cpio_file(struct sb_cpio *c, const char *name, uint32_t perm, const void *p, size_t len)
{
	entry(c, name, S_IFREG | perm, 0, 0, p, len);
}

void sb_cpio_chardev(struct sb_cpio *c, const char *name, uint32_t perm, uint32_t major,
		     uint32_t minor)
{
	entry(c, name, S_IFCHR | perm, major, minor, NULL, 0);
}

void sb_cpio_end(struct sb_cpio *c)
{
	c->ino = UINT32_MAX; /* the trailer has inode 0 */
	entry(c, "TRAILER!!!", 0, 0, 0, NULL, 0);
}
