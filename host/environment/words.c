#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/plan_net.h"
#include "environment/build.h"

/* Registries of packages. One that this machine has no configuration for is not there. */
static const char *const all_groups[] = { "npm", "pypi", "debian", "crates", "go", "github" };

int env_hosts(const struct environment_what *w, char **ret)
{
	char text[4096] = "";
	struct sb_text t = { text, sizeof(text), 0 };

	for (size_t i = 0; w->groups && w->groups[i]; i++)
		sb_text_add(&t, "%s%s", i ? "," : "", w->groups[i]);
	for (size_t i = 0; !w->groups && i < SB_ARRAY_LEN(all_groups); i++)
		if (plan_net_group_here(all_groups[i], NULL))
			sb_text_add(&t, "%s%s", t.len ? "," : "", all_groups[i]);
	if (t.len + 1 >= sizeof(text))
		return -E2BIG;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static bool has_group(const struct environment_what *w, const char *word)
{
	if (!w->groups)
		return true;
	for (size_t i = 0; w->groups[i]; i++)
		if (strcmp(w->groups[i], word) == 0)
			return true;
	return false;
}

int env_variables(const struct environment_what *w, char ***ret)
{
	static const struct {
		const char *group;
		const char *variable;
	} mirrors[] = { { "npm", "NPM_CONFIG_REGISTRY" }, { "pypi", "PIP_INDEX_URL" } };
	char **list;
	size_t n = 0;
	int r = 0;

	while (w->env && w->env[n])
		n++;
	list = calloc(n + SB_ARRAY_LEN(mirrors) + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++) {
		list[i] = strdup(w->env[i]);
		r = list[i] ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(mirrors); i++) {
		sb_autofree char *url = NULL;

		if (!has_group(w, mirrors[i].group))
			continue;
		r = plan_net_mirror(mirrors[i].group, &url);
		if (r == 0 && url && asprintf(&list[n++], "%s=%s", mirrors[i].variable, url) < 0) {
			list[--n] = NULL;
			r = -ENOMEM;
		}
	}
	if (r < 0)
		sb_free_list(&list);
	else
		*ret = list;
	return r;
}

void env_one_line(const char *text, char *out, size_t cap)
{
	static const char more[] = "...";
	size_t n = 0;

	for (; *text && n + 1 < cap; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n' || c == '\t')
			c = ' ';
		out[n++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	out[n] = '\0';
	if (*text && cap > sizeof(more))
		memcpy(out + cap - sizeof(more), more, sizeof(more));
}
