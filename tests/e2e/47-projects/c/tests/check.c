#include <assert.h>
#include <stdio.h>

#include "tally.h"

int main(void)
{
	assert(bits_set(0) == 0);
	assert(bits_set(~0ULL) == 64);
	assert(words_in("  a b\tc\n") == 3);
	assert(words_in("") == 0);
	puts("check: ok");
	return 0;
}
