#include "core/plan_i.h"

#include <errno.h>
#include <string.h>

#include "core/cmd_json.h"

static const char *const profile_names[] = { NULL, "strict", "default", "build" };
static const char *const guard_names[] = { NULL, "readonly", "hidden", "git" };
static const char *const decision_names[] = { "not_asked", "enforced", "rejected" };

static const struct sb_json_field own_fields[] = {
	SB_JSON_F(struct sb_plan, "provider_asked", K_STR, provider_asked),
	SB_JSON_F(struct sb_plan, "host_version", K_STR, host_version),
	SB_JSON_HEX(struct sb_plan, "config_sha256", config_sha256),
	SB_JSON_HEX(struct sb_plan, "reviewed_sha256", reviewed_sha256),
	SB_JSON_ENUM(struct sb_plan, "profile", profile, profile_names),
	SB_JSON_F(struct sb_plan, "log_blocked", K_BOOL, log_blocked),
};
static const struct sb_json_field part_fields[] = {
	SB_JSON_F(struct sb_plan_part, "role", K_STR, role),
	SB_JSON_F(struct sb_plan_part, "path", K_STR, path),
	SB_JSON_HEX(struct sb_plan_part, "sha256", sha256),
};
static const struct sb_json_field guard_fields[] = {
	SB_JSON_F(struct sb_plan_guard, "path", K_STR, path),
	SB_JSON_ENUM(struct sb_plan_guard, "mode", mode, guard_names),
};
static const struct sb_json_field feature_fields[] = {
	SB_JSON_F(struct sb_plan_feature, "name", K_STR, name),
	SB_JSON_ENUM(struct sb_plan_feature, "decision", decision, decision_names),
	SB_JSON_F(struct sb_plan_feature, "mechanism", K_STR, mechanism),
};
static const struct sb_json_field bundle_fields[] = {
	SB_JSON_F(struct sb_plan_bundle, "origin", K_STR, origin),
	SB_JSON_F(struct sb_plan_bundle, "sequence", K_U64, sequence),
	SB_JSON_HEX(struct sb_plan_bundle, "manifest_sha256", manifest_sha256),
	SB_JSON_HEX(struct sb_plan_bundle, "key", key),
};
#define RF(member) SB_JSON_F(struct sb_plan_rlimits, #member, K_U64, member)
static const struct sb_json_field rlimit_fields[] = {
	RF(fsize), RF(as), RF(data), RF(stack), RF(cpu), RF(memlock),
};

const char *sb_plan_profile_name(enum sb_profile p)
{
	return (size_t)p < SB_ARRAY_LEN(profile_names) ? profile_names[p] : NULL;
}

const char *sb_plan_decision_name(enum sb_decision d)
{
	return (size_t)d < SB_ARRAY_LEN(decision_names) ? decision_names[d] : NULL;
}

const char *sb_plan_guard_name(enum sb_guard_mode m)
{
	return (size_t)m < SB_ARRAY_LEN(guard_names) ? guard_names[m] : NULL;
}

/* ---- additions ---- */

/* Room for one more at @at in a list of @n elements of @size bytes. */
static void *open_slot(void *list, size_t n, size_t size, size_t at)
{
	char *v = realloc(list, (n + 1) * size);

	if (v)
		memmove(v + (at + 1) * size, v + at * size, (n - at) * size);
	return v;
}

int sb_plan_add_part(struct sb_plan *p, const char *role, const char *path,
		     const uint8_t sha256[32])
{
	struct sb_plan_part new = { .role = strdup(role), .path = strdup(path) };
	struct sb_plan_part *v;
	size_t at = 0;
	int r = -ENOMEM;

	while (at < p->n_parts && strcmp(p->parts[at].role, role) < 0)
		at++;
	if (at < p->n_parts && strcmp(p->parts[at].role, role) == 0)
		r = -EEXIST;
	else if (p->n_parts == SB_PLAN_MAX_PARTS)
		r = -E2BIG;
	else if (new.role && new.path) {
		v = open_slot(p->parts, p->n_parts, sizeof(*v), at);
		if (v) {
			memcpy(new.sha256, sha256, sizeof(new.sha256));
			v[at] = new;
			p->parts = v;
			p->n_parts++;
			return 0;
		}
	}
	free(new.role);
	free(new.path);
	return r;
}

const struct sb_plan_part *sb_plan_find_part(const struct sb_plan *p, const char *role)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (strcmp(p->parts[i].role, role) == 0)
			return &p->parts[i];
	return NULL;
}

int sb_plan_add_feature(struct sb_plan *p, const char *name, enum sb_decision decision,
			const char *mechanism)
{
	struct sb_plan_feature new = { strdup(name), decision, strdup(mechanism) };
	struct sb_plan_feature *v;
	size_t at = 0;
	int r = -ENOMEM;

	while (at < p->n_features && strcmp(p->features[at].name, name) < 0)
		at++;
	if (at < p->n_features && strcmp(p->features[at].name, name) == 0)
		r = -EEXIST;
	else if (p->n_features == SB_PLAN_MAX_FEATURES)
		r = -E2BIG;
	else if (new.name && new.mechanism) {
		v = open_slot(p->features, p->n_features, sizeof(*v), at);
		if (v) {
			v[at] = new;
			p->features = v;
			p->n_features++;
			return 0;
		}
	}
	free(new.name);
	free(new.mechanism);
	return r;
}

/* ---- JSON ---- */

static json_t *object(const void *base, const struct sb_json_field *fields, size_t n)
{
	json_t *o = json_object();

	if (o && sb_json_add(o, fields, n, base) == 0)
		return o;
	json_decref(o);
	return NULL;
}

static int get_object(const json_t *o, const char *key, void *base,
		      const struct sb_json_field *fields, size_t n, struct sb_err *err)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_object(v))
		return sb_json_bad(err, key, "is missing or no object");
	return sb_json_get(v, fields, n, base, err);
}

#define LIST(v, n, fields) sb_json_list(v, n, sizeof(*(v)), fields, SB_ARRAY_LEN(fields))

int sb_plan_parts_add(json_t *o, const struct sb_plan *p)
{
	int r = sb_json_add(o, own_fields, SB_ARRAY_LEN(own_fields), p);

	if (r == 0 &&
	    (json_object_set_new(o, "parts", LIST(p->parts, p->n_parts, part_fields)) < 0 ||
	     json_object_set_new(o, "bundle", object(&p->bundle, bundle_fields,
						     SB_ARRAY_LEN(bundle_fields))) < 0 ||
	     json_object_set_new(o, "rejected", sb_json_strings(p->rejected)) < 0 ||
	     json_object_set_new(o, "secrets", sb_json_strings(p->secrets)) < 0 ||
	     json_object_set_new(o, "commands", sb_cmd_json(&p->commands)) < 0 ||
	     json_object_set_new(o, "deny_syscalls", sb_json_strings(p->deny_syscalls)) < 0 ||
	     json_object_set_new(o, "rlimits", object(&p->rlimits, rlimit_fields,
						      SB_ARRAY_LEN(rlimit_fields))) < 0 ||
	     json_object_set_new(o, "guards", LIST(p->guards, p->n_guards, guard_fields)) < 0 ||
	     json_object_set_new(o, "features",
				 LIST(p->features, p->n_features, feature_fields)) < 0))
		r = -ENOMEM;
	return r;
}

static int get_lists(const json_t *o, struct sb_plan *p, struct sb_err *err)
{
	void *v = NULL;
	int r = sb_json_get_list(o, "parts", SB_PLAN_MAX_PARTS, sizeof(*p->parts), part_fields,
				 SB_ARRAY_LEN(part_fields), &v, &p->n_parts, err);

	p->parts = v;
	if (r < 0)
		return r;
	v = NULL;
	r = sb_json_get_list(o, "guards", SB_PLAN_MAX_GUARDS, sizeof(*p->guards), guard_fields,
			     SB_ARRAY_LEN(guard_fields), &v, &p->n_guards, err);
	p->guards = v;
	if (r < 0)
		return r;
	v = NULL;
	r = sb_json_get_list(o, "features", SB_PLAN_MAX_FEATURES, sizeof(*p->features),
			     feature_fields, SB_ARRAY_LEN(feature_fields), &v, &p->n_features, err);
	p->features = v;
	return r;
}

int sb_plan_parts_get(const json_t *o, struct sb_plan *p, struct sb_err *err)
{
	int r = sb_json_get(o, own_fields, SB_ARRAY_LEN(own_fields), p, err);

	if (r == 0)
		r = get_lists(o, p, err);
	if (r == 0)
		r = get_object(o, "bundle", &p->bundle, bundle_fields, SB_ARRAY_LEN(bundle_fields),
			       err);
	if (r == 0)
		r = get_object(o, "rlimits", &p->rlimits, rlimit_fields,
			       SB_ARRAY_LEN(rlimit_fields), err);
	if (r == 0)
		r = sb_cmd_json_get(o, "commands", &p->commands, err);
	if (r == 0)
		r = sb_json_get_strings(o, "rejected", SB_PLAN_MAX_REJECTED, &p->rejected, err);
	if (r == 0)
		r = sb_json_get_strings(o, "secrets", SB_PLAN_MAX_SECRETS, &p->secrets, err);
	if (r == 0)
		r = sb_json_get_strings(o, "deny_syscalls", SB_PLAN_MAX_SYSCALLS,
					&p->deny_syscalls, err);
	return r;
}

void sb_plan_parts_done(struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_parts; i++) {
		free(p->parts[i].role);
		free(p->parts[i].path);
	}
	free(p->parts);
	for (size_t i = 0; i < p->n_guards; i++)
		free(p->guards[i].path);
	free(p->guards);
	for (size_t i = 0; i < p->n_features; i++) {
		free(p->features[i].name);
		free(p->features[i].mechanism);
	}
	free(p->features);
	free(p->bundle.origin);
	sb_plan_commands_done(&p->commands);
	free(p->provider_asked);
	free(p->host_version);
	sb_json_strings_free(p->rejected);
	sb_json_strings_free(p->secrets);
	sb_json_strings_free(p->deny_syscalls);
}
