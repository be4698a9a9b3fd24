#include "core/cmd_shebang.h"

#include <errno.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* First byte of [at, last] that is no blank; SIZE_MAX = none. */
static size_t skip_blanks(const char *b, size_t at, size_t last)
{
	for (; at <= last; at++)
		if (!is_blank(b[at]))
			return at;
	return SIZE_MAX;
}

/* First blank or NUL of [at, last]; SIZE_MAX = none. */
static size_t word_end(const char *b, size_t at, size_t last)
{
	for (; at <= last; at++)
		if (is_blank(b[at]) || b[at] == '\0')
			return at;
	return SIZE_MAX;
}

/* Where the line ends. Without a newline the kernel takes the whole buffer if the interpreter's
 * name is not cut. A newline behind a NUL does not count. */
static size_t line_end(const char *b)
{
	size_t last = SB_CMD_HEAD - 1;
	size_t n = strnlen(b, SB_CMD_HEAD);
	const char *nl = memchr(b, '\n', n);
	size_t at;

	if (nl)
		return (size_t)(nl - b);
	at = skip_blanks(b, 2, last);
	if (at == SIZE_MAX || word_end(b, at, last) == SIZE_MAX)
		return SIZE_MAX;
	return last;
}

static void copy(char out[SB_CMD_HEAD], const char *from, size_t len)
{
	len = strnlen(from, len);
	memcpy(out, from, len);
	out[len] = '\0';
}

int sb_cmd_shebang(const void *head, size_t len, struct sb_cmd_shebang *ret)
{
	char b[SB_CMD_HEAD] = { 0 };
	size_t end;
	size_t name;
	size_t sep;
	size_t arg = SIZE_MAX;

	if (len > 0)
		memcpy(b, head, SB_MIN(len, sizeof(b)));
	if (b[0] != '#' || b[1] != '!')
		return 0;
	end = line_end(b);
	if (end == SIZE_MAX)
		return -ENOEXEC;
	while (is_blank(b[end - 1]))
		end--;
	name = skip_blanks(b, 2, end);
	if (name == SIZE_MAX || name >= end || b[name] == '\0')
		return -ENOEXEC;
	sep = word_end(b, name, end);
	if (sep != SIZE_MAX && b[sep] != '\0' && sep < end)
		arg = skip_blanks(b, sep, end);
	*ret = (struct sb_cmd_shebang){ 0 };
	copy(ret->interp, b + name, (sep == SIZE_MAX || sep > end ? end : sep) - name);
	if (arg != SIZE_MAX && arg < end) {
		copy(ret->arg, b + arg, end - arg);
		ret->has_arg = true;
	}
	return 1;
}
