#include "base/near.h"

#include <string.h>

#include "base/mem.h"

#define WORD_MAX 64

unsigned int sb_near(const char *a, const char *b, unsigned int max)
{
	unsigned int row[WORD_MAX + 1];
	size_t n = strlen(a);
	size_t m = strlen(b);

	if (n > WORD_MAX || m > WORD_MAX || n > m + max || m > n + max)
		return max + 1;
	for (unsigned int j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int diag = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned int up = row[j];
			unsigned int change = diag + (a[i - 1] != b[j - 1]);

			row[j] = SB_MIN(SB_MIN(up, row[j - 1]) + 1, change);
			diag = up;
		}
	}
	return SB_MIN(row[m], max + 1);
}

unsigned int sb_near_max(const char *word)
{
	return strlen(word) > 4 ? 2 : 1;
}
