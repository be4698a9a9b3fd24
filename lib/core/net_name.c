#include "core/net_name.h"

#include <errno.h>
#include <string.h>

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What some resolver reads as a part of an IPv4 address: decimal, octal or hexadecimal. */
static bool number(const char *s, size_t len)
{
	size_t i = 0;
	bool hex = len >= 2 && s[0] == '0' && s[1] == 'x';

	for (i = hex ? 2 : 0; i < len; i++)
		if (!digit(s[i]) && !(hex && s[i] >= 'a' && s[i] <= 'f'))
			return false;
	return true;
}

int sb_name_normalise(const char *s, size_t len, char *out)
{
	char name[SB_NAME_MAX + 1];
	size_t label = 0; /* where the current one starts */

	if (len > 0 && s[len - 1] == '.')
		len--;
	if (len == 0 || len > SB_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i <= len; i++) {
		char c = i < len ? s[i] : '.';

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		name[i] = c;
		if ((c >= 'a' && c <= 'z') || digit(c) || c == '_')
			continue;
		if (c == '-' && i > label)
			continue;
		if (c != '.' || i == label || i - label > 63 || name[i - 1] == '-')
			return -EINVAL;
		if (i < len)
			label = i + 1;
	}
	if (number(name + label, len - label))
		return -EINVAL;
	name[len] = '\0';
	memcpy(out, name, len + 1);
	return 0;
}
