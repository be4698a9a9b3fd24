#ifndef SB_EROFS_DIR_H
#define SB_EROFS_DIR_H
/* Blocks of a directory from its sorted entries; "." and ".." stand where their names belong. */
#include "erofs/tree.h"

struct erofs_dir_at { /* where a walk over the names stands */
	const struct sb_erofs_entry *dir;
	const struct sb_erofs_entry *next; /* of the children */
	unsigned int dots;                 /* how many of "." and ".." are out */
};
void erofs_dir_start(struct erofs_dir_at *at, const struct sb_erofs_entry *dir);
/* Fill one block; @block NULL: only count. Return: bytes used; 0 at the end. */
size_t erofs_dir_block(struct erofs_dir_at *at, uint8_t *block);
/* Bytes of the whole directory. */
uint64_t erofs_dir_size(const struct sb_erofs_entry *dir);

#endif
