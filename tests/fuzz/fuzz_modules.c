/* Two texts with a NUL between them: every path that comes out stays beneath its directory. */
#include <string.h>

#include "provider/microvm/modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	sb_autofree char *text = malloc(len + 2);
	sb_autofree struct sb_module_list *l = malloc(sizeof(*l));
	const char *builtin;

	if (!text || !l)
		return 0;
	if (len > 0)
		memcpy(text, p, len);
	text[len] = text[len + 1] = '\0';
	builtin = text + strlen(text) + (strlen(text) < len);
	if (sb_modules_pick(text, builtin, sb_modules_wanted, l, NULL) < 0)
		return 0;
	sb_assert(l->n <= SB_MODULES_MAX);
	for (size_t i = 0; i < l->n; i++) {
		const char *path = l->path[i];
		char name[256];

		sb_assert(*path && *path != '/' && !strstr(path, "..") && !strchr(path, '\n'));
		sb_modules_guest_name(path, name);
		sb_assert(!strchr(name, '/') && strlen(name) > 3);
		for (size_t j = 0; j < i; j++)
			sb_assert(strcmp(l->path[j], path) != 0);
	}
	return 0;
}
