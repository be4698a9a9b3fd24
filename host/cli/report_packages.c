#include "report_packages.h"

#include <string.h>

struct manager {
	const char *program;
	const char *verbs;  /* "|install|i|": the word that means installing */
	const char *values; /* options that take the next word, as "|-r|" */
};

static const struct manager managers[] = {
	{ "npm", "|install|i|add|ci|", "|--prefix|--registry|--tag|" },
	{ "pnpm", "|install|i|add|", "|--dir|-C|--registry|" },
	{ "yarn", "|install|add|", "|--cwd|--registry|" },
	{ "bun", "|install|add|", "|--cwd|" },
	{ "pip", "|install|", "|-r|--requirement|-c|--constraint|-t|--target|-i|--index-url|" },
	{ "pip3", "|install|", "|-r|--requirement|-c|--constraint|-t|--target|-i|--index-url|" },
	{ "uv", "|add|sync|", "|--index|" },
	{ "poetry", "|add|install|", "|--group|-G|" },
	{ "cargo", "|add|install|", "|--features|-F|--version|--git|--path|" },
	{ "go", "|get|install|", "|-C|" },
	{ "gem", "|install|", "|-v|--version|-i|" },
	{ "bundle", "|add|install|", "|--group|" },
	{ "composer", "|require|install|", "|-d|" },
	{ "apt-get", "|install|", "|-o|-t|" },
	{ "apt", "|install|", "|-o|-t|" },
	{ "apk", "|add|", "|-t|" },
	{ "dnf", "|install|", "|--repo|" },
	{ "brew", "|install|", "" },
};

static bool in(const char *list, const char *word)
{
	const char *at = strstr(list, word);
	size_t n = strlen(word);

	while (at && !(at > list && at[-1] == '|' && at[n] == '|'))
		at = strstr(at + 1, word);
	return at && n > 0;
}

static const struct manager *manager_of(const char *program)
{
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;

	for (size_t i = 0; i < SB_ARRAY_LEN(managers); i++)
		if (strcmp(managers[i].program, name) == 0)
			return &managers[i];
	return NULL;
}

/* env X=Y npm, python3 -m pip, nice cargo: what may stand before a manager. */
static bool before(const char *word)
{
	const char *slash = strrchr(word, '/');
	const char *name = slash ? slash + 1 : word;

	return word[0] == '-' || strchr(word, '=') || in("|env|sudo|nice|time|nohup|python|python3|", name);
}

static void add(json_t *to, const char *manager, json_t *package, size_t max, uint64_t *more)
{
	json_t *one = json_pack("{s:s,s:o}", "manager", manager, "package", package);
	json_t *have;
	size_t i;

	json_array_foreach(to, i, have) {
		if (json_equal(have, one)) {
			json_decref(one);
			return;
		}
	}
	if (i < max)
		(void)json_array_append_new(to, one);
	else
		json_decref(one);
	*more += i >= max;
}

void report_packages(const json_t *argv, json_t *to, size_t max, uint64_t *more)
{
	const struct manager *m = NULL;
	bool installs = false;
	size_t named = 0;
	size_t n = json_array_size(argv);

	for (size_t i = 0; i < n; i++) {
		const char *word = json_string_value(json_array_get(argv, i));

		if (!word)
			return;
		if (!m) {
			m = manager_of(word);
			if (!m && !before(word))
				return;
		} else if (word[0] == '-') {
			i += in(m->values, word);
		} else if (!installs) {
			installs = in(m->verbs, word);
			if (!installs)
				return;
		} else {
			add(to, m->program, json_string(word), max, more);
			named++;
		}
	}
	if (installs && named == 0)
		add(to, m->program, json_null(), max, more);
}
