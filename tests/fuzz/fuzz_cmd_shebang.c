/*
 * First lines of scripts. What is accepted names an interpreter, has nothing of the line's end or
 * of blanks around it, and bytes behind the 256th change nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/cmd_shebang.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_cmd_shebang s = { 0 };
	struct sb_cmd_shebang cut = { 0 };
	int r = sb_cmd_shebang(data, size, &s);
	size_t n;

	if (r != sb_cmd_shebang(data, SB_MIN(size, (size_t)SB_CMD_HEAD), &cut))
		abort();
	if (r != 1)
		return 0;
	if (strcmp(s.interp, cut.interp) != 0 || strcmp(s.arg, cut.arg) != 0)
		abort();
	if (!s.interp[0] || strpbrk(s.interp, " \t\n") || strpbrk(s.arg, "\n") ||
	    (!s.has_arg && s.arg[0]))
		abort();
	n = strlen(s.arg);
	/* Blanks at the end are cut in front of a newline, not of a NUL. */
	if (n > 0 && (strchr(" \t", s.arg[0]) ||
		      (strchr(" \t", s.arg[n - 1]) && size < SB_CMD_HEAD &&
		       memchr(data, '\n', size) && !memchr(data, '\0', size))))
		abort();
	return 0;
}
