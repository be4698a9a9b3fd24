#ifndef SB_OS_RMTREE_H
#define SB_OS_RMTREE_H
/*
 * sb_rmtree - remove @name beneath @dirfd and everything in it
 *
 * Never follows a link and never leaves the file system of the directory. Depth is bounded (64).
 * Return: 0 (also when it was not there); -errno of the first failure, after trying the rest.
 */
#include "base/mem.h"

SB_MUST_CHECK int sb_rmtree(int dirfd, const char *name);

#endif
