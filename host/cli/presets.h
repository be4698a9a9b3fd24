#ifndef SB_HOST_CLI_PRESETS_H
#define SB_HOST_CLI_PRESETS_H
/* The files that `sendbox init` writes: small, with comments, and with tests of their own rules. */
#include "base/mem.h"

extern const char presets_words[]; /* "default, permissive or strict" */
bool presets_known(const char *policy);

/* Whether a group of destinations means something on this machine; NULL = every group does. */
typedef bool preset_group_fn(void *arg, const char *group);

/*
 * preset_write - the text of a file
 * @policy: default, permissive or strict
 * @name: of the sandbox, for people
 * @provider: NULL or "auto" = nothing said
 * @ret: malloc'd. Return: 0; -ENOENT: no such preset; -ENOMEM.
 */
SB_MUST_CHECK int preset_write(const char *policy, const char *name, const char *provider,
			       preset_group_fn *here, void *arg, char **ret, size_t *ret_len);

#endif
