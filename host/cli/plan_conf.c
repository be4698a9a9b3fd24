#include "plan_conf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const struct cfg_value *conf_set(const struct plan_input *in, const char *path)
{
	const struct cfg_value *v = cfg_get(in->conf->cfg, path);

	return v && v->kind != DOC_NULL && v->origin.layer != CFG_DEFAULT ? v : NULL;
}

const struct cfg_value *conf_member(const struct cfg_value *map, const char *key)
{
	for (size_t i = 0; map && map->kind == DOC_MAP && i < map->n; i++)
		if (strcmp(map->keys[i], key) == 0)
			return &map->items[i];
	return NULL;
}

int64_t conf_int(const struct plan_input *in, const char *path, int64_t or)
{
	return cfg_int(in->conf->cfg, path, or);
}

bool conf_bool(const struct plan_input *in, const char *path, bool or)
{
	return cfg_bool(in->conf->cfg, path, or);
}

const char *conf_str(const struct plan_input *in, const char *path, const char *or)
{
	return cfg_str(in->conf->cfg, path, or);
}

void conf_where(const struct plan_input *in, const struct cfg_value *v, char *out, size_t cap)
{
	cfg_options_where(in->line, v, out, cap);
}

void conf_name(const struct plan_input *in, const struct cfg_value *v, const char *option,
	       const char *key, char *out, size_t cap)
{
	char where[PATH_MAX];

	if (!v || v->origin.layer == CFG_COMMAND_LINE) {
		(void)snprintf(out, cap, "%s", option);
		return;
	}
	conf_where(in, v, where, sizeof(where));
	(void)snprintf(out, cap, "%s: %s", where, key);
}

const char *conf_text(const struct plan_input *in, const struct cfg_value *v)
{
	return cfg_options_raw(in->line, v);
}

int conf_path(const struct cfg_value *v, const char *text, char **ret)
{
	const char *home = getenv("HOME");
	const char *slash = strrchr(v->origin.file, '/');
	char *path;
	int n;

	if (v->origin.layer == CFG_COMMAND_LINE || text[0] == '/')
		n = asprintf(&path, "%s", text);
	else if (strncmp(text, "~/", 2) == 0 && home && home[0] == '/')
		n = asprintf(&path, "%s/%s", home, text + 2);
	else if (slash)
		n = asprintf(&path, "%.*s/%s", (int)(slash - v->origin.file), v->origin.file, text);
	else
		n = asprintf(&path, "%s", text);
	if (n < 0)
		return -ENOMEM;
	if (n >= PATH_MAX) {
		free(path);
		return -ENAMETOOLONG;
	}
	*ret = path;
	return 0;
}
