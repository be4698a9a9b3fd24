#ifndef SB_HOST_AGENT_SETTINGS_I_H
#define SB_HOST_AGENT_SETTINGS_I_H
#include <jansson.h>

#include "settings.h"

/*
 * settings_walk - every entry beneath @root but folders, in no order
 * @fn: @dir and @name to open it, @rel from the root, @st from fstatat without following
 * @skip: entries that are not entered or passed on
 * Return: 0; -E2BIG: more than SETTINGS_MAX_FILES or too deep; what @fn returned; -errno.
 */
struct settings_walking {
	int (*fn)(void *arg, int dir, const char *name, const char *rel, const struct stat *st);
	bool (*skip)(void *arg, const char *rel);
	void *arg;
	size_t seen;
	char rel[4096];
	size_t len;
};
SB_MUST_CHECK int settings_walk(int root, struct settings_walking *w);
bool settings_excluded(const char *rel, const char *const *exclude, size_t n);
/* A regular file, opened without following; at most SETTINGS_MAX_FILE. Return: 0; -EFBIG; -ELOOP. */
SB_MUST_CHECK int settings_read(int dir, const char *name, char **ret, size_t *ret_len,
				mode_t *ret_mode);
void settings_hex(const void *p, size_t len, char out[65]);
/* DIR/manifest.json. Return: 0; -ENOENT; -errno with text. */
SB_MUST_CHECK int settings_manifest(const char *dir, json_t **ret, struct sb_err *err);
SB_MUST_CHECK int settings_manifest_put(const char *dir, const json_t *m, struct sb_err *err);

#endif
