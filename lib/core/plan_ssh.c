/* The plan's "ssh": keys of the user's agent that the guest may sign with, and for which hosts. */
#include <errno.h>

#include "core/plan_i.h"

static const struct sb_json_field key_fields[] = {
	SB_JSON_F(struct sb_plan_ssh_key, "comment", K_STR, comment),
	SB_JSON_HEX(struct sb_plan_ssh_key, "sha256", sha256),
};
static const struct sb_json_field host_fields[] = {
	SB_JSON_F(struct sb_plan_ssh_host, "name", K_STR, name),
	SB_JSON_HEX(struct sb_plan_ssh_host, "sha256", sha256),
};
static const struct sb_json_field own_fields[] = {
	SB_JSON_F(struct sb_plan_ssh, "sign_data", K_BOOL, sign_data),
};

json_t *sb_plan_ssh_json(const struct sb_plan_ssh *s)
{
	json_t *o = json_object();

	/* "ask" is left out when it is false */
	if (o && sb_json_add(o, own_fields, SB_ARRAY_LEN(own_fields), s) == 0 &&
	    (!s->ask || json_object_set_new(o, "ask", json_true()) == 0) &&
	    json_object_set_new(o, "keys",
				sb_json_list(s->keys, s->n_keys, sizeof(*s->keys), key_fields,
					     SB_ARRAY_LEN(key_fields))) == 0 &&
	    json_object_set_new(o, "hosts",
				sb_json_list(s->hosts, s->n_hosts, sizeof(*s->hosts), host_fields,
					     SB_ARRAY_LEN(host_fields))) == 0)
		return o;
	json_decref(o);
	return NULL;
}

int sb_plan_ssh_json_get(const json_t *o, struct sb_plan_ssh *ret, struct sb_err *err)
{
	const json_t *v = json_object_get(o, "ssh");
	void *list = NULL;
	int r;

	if (!json_is_object(v))
		return sb_json_bad(err, "ssh", "is missing or no object");
	r = sb_json_get(v, own_fields, SB_ARRAY_LEN(own_fields), ret, err);
	ret->ask = json_is_true(json_object_get(v, "ask"));
	if (r == 0)
		r = sb_json_get_list(v, "keys", SB_SSH_MAX_KEYS, sizeof(*ret->keys), key_fields,
				     SB_ARRAY_LEN(key_fields), &list, &ret->n_keys, err);
	ret->keys = list;
	if (r < 0)
		return r;
	list = NULL;
	r = sb_json_get_list(v, "hosts", SB_SSH_MAX_HOST_KEYS, sizeof(*ret->hosts), host_fields,
			     SB_ARRAY_LEN(host_fields), &list, &ret->n_hosts, err);
	ret->hosts = list;
	return r;
}
