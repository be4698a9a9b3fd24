#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void sb_text_add(struct sb_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len + 1 >= t->cap)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->p + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len = SB_MIN(t->len + (size_t)n, t->cap - 1);
}
