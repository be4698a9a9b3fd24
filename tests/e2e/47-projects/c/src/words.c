#include <ctype.h>
#include <stdbool.h>

#include "tally.h"

size_t words_in(const char *s)
{
	bool in = false;
	size_t n = 0;

	for (; *s; s++) {
		if (isspace((unsigned char)*s)) {
			in = false;
		} else if (!in) {
			in = true;
			n++;
		}
	}
	return n;
}
