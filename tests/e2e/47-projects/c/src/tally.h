#ifndef TALLY_H
#define TALLY_H
#include <stddef.h>
#include <stdint.h>
unsigned int bits_set(uint64_t v);
size_t words_in(const char *s);
#endif
