#ifndef SB_HOST_CLI_SIZES_H
#define SB_HOST_CLI_SIZES_H
/* What files take, and numbers for people. */
#include "base/mem.h"

/* Allocated bytes below @fd, a directory, which is taken; -1: 0. At most a million entries are looked at. */
uint64_t sizes_used(int fd);
/* "17B", "1.5K", "230M" */
void sizes_text(uint64_t n, char *out, size_t cap);
/* "0.3s", "12s", "3m04s", "2h10m", "3d4h" */
void sizes_duration(uint64_t ns, char *out, size_t cap);

#endif
