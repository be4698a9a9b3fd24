#include "base/mem.h"

#include <stdio.h>

void sb_assert_fail(const char *expr, const char *file, int line)
{
	(void)fprintf(stderr, "sendbox: assertion failed: %s at %s:%d\n", expr, file, line);
	abort();
}
