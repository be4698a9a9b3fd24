#include "config.h"
#include "tally.h"

unsigned int bits_set(uint64_t v)
{
#ifdef HAVE_POPCOUNT
	return (unsigned int)__builtin_popcountll(v);
#else
	unsigned int n = 0;

	for (; v; v &= v - 1)
		n++;
	return n;
#endif
}
