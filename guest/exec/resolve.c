#include "exec/resolve.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static char **one(const char *name)
{
	size_t len = strlen(name) + 1;
	char **v = malloc(2 * sizeof(*v) + len);

	if (v) {
		v[0] = (char *)(v + 2);
		v[1] = NULL;
		memcpy(v[0], name, len);
	}
	return v;
}

int sb_resolve_program(const char *name, const char *path, char ***ret)
{
	size_t name_len = strlen(name);
	size_t n = 1;
	size_t bytes;
	char **v;
	char *at;

	if (name_len == 0)
		return -ENOENT;
	if (strchr(name, '/')) {
		v = one(name);
		if (!v)
			return -ENOMEM;
		*ret = v;
		return 0;
	}
	if (!path)
		path = DEFAULT_PATH;
	for (const char *p = path; *p; p++)
		n += *p == ':';
	/* each element becomes "<element>/<name>", or "./<name>" when it is empty */
	if (!sb_mul_size(n, sizeof(*v) + name_len + 3, &bytes) ||
	    !sb_add_size(bytes, strlen(path) + sizeof(*v), &bytes))
		return -ENOMEM;
	v = malloc(bytes);
	if (!v)
		return -ENOMEM;
	at = (char *)(v + n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(path, ":");

		v[i] = at;
		if (len == 0) {
			*at++ = '.';
		} else {
			memcpy(at, path, len);
			at += len;
		}
		*at++ = '/';
		memcpy(at, name, name_len + 1);
		at += name_len + 1;
		path += len + 1;
	}
	v[n] = NULL;
	*ret = v;
	return 0;
}

const char *sb_resolve_getenv(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

int sb_resolve_env(const struct sb_plan *plan, char *const *env, const char *cwd, bool tty,
		   char ***ret)
{
	const struct {
		const char *name;
		const char *value; /* NULL = leave out */
	} want[] = {
		{ "HOME", plan->home },    { "USER", plan->user },   { "LOGNAME", plan->user },
		{ "TMPDIR", "/tmp" },      { "PATH", DEFAULT_PATH }, { "LANG", "C.UTF-8" },
		{ "PWD", cwd },            { "TERM", tty ? plan->term : NULL },
	};
	bool add[SB_ARRAY_LEN(want)];
	size_t n = 0;
	size_t bytes;
	char **v;
	char *at;

	while (env[n])
		n++;
	bytes = (n + SB_ARRAY_LEN(want) + 1) * sizeof(*v);
	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		add[i] = want[i].value && !sb_resolve_getenv(env, want[i].name);
		if (add[i])
			bytes += strlen(want[i].name) + strlen(want[i].value) + 2;
	}
	v = malloc(bytes);
	if (!v)
		return -ENOMEM;
	if (n > 0)
		memcpy(v, env, n * sizeof(*v));
	at = (char *)(v + n + SB_ARRAY_LEN(want) + 1);
	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		size_t name_len;
		size_t value_len;

		if (!add[i])
			continue;
		name_len = strlen(want[i].name);
		value_len = strlen(want[i].value);
		v[n++] = at;
		memcpy(at, want[i].name, name_len);
		at[name_len] = '=';
		memcpy(at + name_len + 1, want[i].value, value_len + 1);
		at += name_len + value_len + 2;
	}
	v[n] = NULL;
	*ret = v;
	return 0;
}
