#ifndef SB_OS_RMTREE_H
#define SB_OS_RMTREE_H
/*
 * sb_rmtree - remove @name beneath @dirfd and everything in it
 *
 * Never follows a link and never leaves the file system of the directory. It may be as deep as
 * anybody likes, and folders of ours that are read-only or closed are opened.
 * Return: 0 (also when it was not there); -errno of the first failure, after trying the rest.
 */
#include "base/mem.h"

SB_MUST_CHECK int sb_rmtree(int dirfd, const char *name);

#endif
