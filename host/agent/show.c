/* A definition as JSON. */
#include <errno.h>
#include <jansson.h>

#include "agent_i.h"

static json_t *texts(const char *const *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(v[i]));
	return list;
}

static void add_list(json_t *o, const char *key, const struct agent_list *l)
{
	json_t *list;

	if (!l->at.file)
		return;
	list = json_array();
	for (size_t i = 0; i < l->n; i++)
		(void)json_array_append_new(list, json_string(l->v[i].text));
	(void)json_object_set_new(o, key, list);
}

static json_t *setting(const struct agent_settings *s)
{
	json_t *o = json_pack("{s:s,s:s}", "path", s->path, "mode", s->live ? "mount" : "copy");

	if (s->to != s->path)
		(void)json_object_set_new(o, "to", json_string(s->to));
	if (s->credentials)
		(void)json_object_set_new(o, "credentials", json_true());
	if (s->n_exclude > 0)
		(void)json_object_set_new(o, "exclude", texts(s->exclude, s->n_exclude));
	if (s->n_json_keys > 0)
		(void)json_object_set_new(o, "jsonKeys", texts(s->json_keys, s->n_json_keys));
	return o;
}

static void add_maps(json_t *o, const struct agent *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n_mounts; i++)
		(void)json_array_append_new(
			list, json_pack("{s:s,s:s,s:b}", "hostPath", a->mounts[i].host,
					"containerPath", a->mounts[i].guest, "readOnly",
					a->mounts[i].read_only));
	if (a->n_mounts > 0)
		(void)json_object_set(o, "mounts", list);
	json_decref(list);
	list = json_array();
	for (size_t i = 0; i < a->n_settings; i++)
		(void)json_array_append_new(list, setting(&a->settings[i]));
	if (a->n_settings > 0)
		(void)json_object_set(o, "settings", list);
	json_decref(list);
	list = json_array();
	for (size_t i = 0; i < a->n_secrets; i++)
		(void)json_array_append_new(list,
					    json_pack("{s:s,s:o}", "name", a->secrets[i].name, "hosts",
						      texts(a->secrets[i].hosts,
							    a->secrets[i].n_hosts)));
	if (a->n_secrets > 0)
		(void)json_object_set(o, "secrets", list);
	json_decref(list);
}

int agent_json(const struct agent *a, char **ret)
{
	json_t *o = json_object();

	if (a->display.text)
		(void)json_object_set_new(o, "displayName", json_string(a->display.text));
	if (a->image.text)
		(void)json_object_set_new(o, "baseImage", json_string(a->image.text));
	add_list(o, "systemPackages", &a->packages);
	add_list(o, "installCommands", &a->install);
	add_list(o, "launchCommand", &a->launch);
	add_list(o, "environmentVariables", &a->env);
	add_list(o, "allowedHosts", &a->hosts);
	add_list(o, "healthCheck", &a->health);
	add_list(o, "caches", &a->caches);
	add_list(o, "packageGroups", &a->groups);
	add_maps(o, a);
	*ret = o ? json_dumps(o, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
	json_decref(o);
	return *ret ? 0 : -ENOMEM;
}
