#include "core/cmd_json.h"

static const char *const scope_names[] = { "none", "top_level", "tree" };
static const char *const action_names[] = { "deny", "allow", "log", "ask" };

#define F(key, kind, member) SB_JSON_F(struct sb_plan_commands, key, kind, member)
static const struct sb_json_field fields[] = {
	SB_JSON_ENUM(struct sb_plan_commands, "scope", scope, scope_names),
	SB_JSON_ENUM(struct sb_plan_commands, "default", fallback, action_names),
	F("log_blocked", K_BOOL, log_blocked),
};

#define RF(key, kind, member) SB_JSON_F(struct sb_cmd_rule, key, kind, member)
static const struct sb_json_field rule_fields[] = {
	RF("pattern", K_STR, pattern),
	SB_JSON_ENUM(struct sb_cmd_rule, "action", action, action_names),
	SB_JSON_ENUM(struct sb_cmd_rule, "scope", scope, scope_names),
	RF("any_order", K_BOOL, any_order),
	RF("reason", K_STR_OR_NULL, reason),
	RF("from", K_STR, from),
};

json_t *sb_cmd_json(const struct sb_plan_commands *c)
{
	json_t *o = json_object();

	if (o && sb_json_add(o, fields, SB_ARRAY_LEN(fields), c) == 0 &&
	    json_object_set_new(o, "rules",
				sb_json_list(c->rules, c->n_rules, sizeof(*c->rules), rule_fields,
					     SB_ARRAY_LEN(rule_fields))) == 0)
		return o;
	json_decref(o);
	return NULL;
}

int sb_cmd_json_get(const json_t *o, const char *key, struct sb_plan_commands *ret,
		    struct sb_err *err)
{
	const json_t *c = json_object_get(o, key);
	void *rules = NULL;
	int r;

	if (!json_is_object(c))
		return sb_json_bad(err, key, "is missing or no object");
	r = sb_json_get(c, fields, SB_ARRAY_LEN(fields), ret, err);
	if (r == 0)
		r = sb_json_get_list(c, "rules", SB_CMD_MAX_RULES, sizeof(*ret->rules), rule_fields,
				     SB_ARRAY_LEN(rule_fields), &rules, &ret->n_rules, err);
	ret->rules = rules;
	return r;
}
