#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sb_err_set(struct sb_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err || err->code != 0)
		return code;
	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int sb_err_add(struct sb_err *err, int code, const char *fmt, ...)
{
	va_list ap;
	size_t used;

	if (!err)
		return code;
	used = strnlen(err->text, sizeof(err->text) - 1);
	if (err->code == 0)
		err->code = code;
	if (used > 0 && used + 3 < sizeof(err->text)) {
		memcpy(err->text + used, "; ", 3);
		used += 2;
	}
	va_start(ap, fmt);
	(void)vsnprintf(err->text + used, sizeof(err->text) - used, fmt, ap);
	va_end(ap);
	return code;
}
