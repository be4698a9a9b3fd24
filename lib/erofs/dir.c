#include "erofs/dir.h"

#include <string.h>
#include <sys/stat.h>

#include "erofs/erofs_fs.h"

struct item {
	const char *name;
	size_t len;
	const struct sb_erofs_inode *inode;
};

void erofs_dir_start(struct erofs_dir_at *at, const struct sb_erofs_entry *dir)
{
	*at = (struct erofs_dir_at){ .dir = dir, .next = dir->child };
}

/* The next name, without going on. Return: false at the end. */
static bool peek(const struct erofs_dir_at *at, struct item *ret)
{
	struct item dot = { .name = at->dots == 0 ? "." : "..", .len = at->dots + 1,
			    .inode = at->dots == 0 ? at->dir->inode : at->dir->parent->inode };

	if (at->dots < 2 && (!at->next || sb_erofs_name_cmp(dot.name, dot.len, at->next->name,
							    at->next->name_len) < 0)) {
		*ret = dot;
		return true;
	}
	if (!at->next)
		return false;
	*ret = (struct item){ .name = at->next->name, .len = at->next->name_len,
			      .inode = at->next->inode };
	return true;
}

static void step(struct erofs_dir_at *at, const struct item *i)
{
	if (at->next && i->name == at->next->name)
		at->next = at->next->next;
	else
		at->dots++;
}

static uint8_t type_of(uint16_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return SB_EROFS_FT_DIR;
	case S_IFCHR:
		return SB_EROFS_FT_CHR;
	case S_IFBLK:
		return SB_EROFS_FT_BLK;
	case S_IFIFO:
		return SB_EROFS_FT_FIFO;
	case S_IFSOCK:
		return SB_EROFS_FT_SOCK;
	case S_IFLNK:
		return SB_EROFS_FT_LNK;
	default:
		return SB_EROFS_FT_REG;
	}
}

size_t erofs_dir_block(struct erofs_dir_at *at, uint8_t *block)
{
	const size_t one = sizeof(struct sb_erofs_dirent);
	struct erofs_dir_at first = *at;
	struct item i;
	size_t used = 0;
	size_t n = 0;
	size_t name_at;

	for (; peek(at, &i) && used + one + i.len <= SB_EROFS_BLOCK; n++) {
		used += one + i.len;
		step(at, &i);
	}
	if (!block || n == 0)
		return used;
	memset(block, 0, SB_EROFS_BLOCK);
	name_at = n * one;
	for (size_t k = 0; k < n; k++) {
		struct sb_erofs_dirent d = { 0 };

		if (!peek(&first, &i))
			break;
		step(&first, &i);
		d.nid = htole64(i.inode->nid);
		d.nameoff = htole16((uint16_t)name_at);
		d.file_type = type_of(i.inode->mode);
		memcpy(block + k * one, &d, one);
		memcpy(block + name_at, i.name, i.len);
		name_at += i.len;
	}
	return used;
}

uint64_t erofs_dir_size(const struct sb_erofs_entry *dir)
{
	struct erofs_dir_at at;
	uint64_t whole = 0;
	size_t last = 0;
	size_t n;

	erofs_dir_start(&at, dir);
	while ((n = erofs_dir_block(&at, NULL)) > 0) {
		whole += last > 0 ? SB_EROFS_BLOCK : 0;
		last = n;
	}
	return whole + last;
}
