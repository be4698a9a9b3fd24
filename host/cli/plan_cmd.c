#include "plan_cmd.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

static enum sb_cmd_action action_of(const char *word)
{
	static const struct {
		const char *word;
		enum sb_cmd_action action;
	} table[] = { { "allow", SB_CMD_ALLOW }, { "log", SB_CMD_LOG }, { "ask", SB_CMD_ASK } };

	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++)
		if (strcmp(word, table[i].word) == 0)
			return table[i].action;
	return SB_CMD_DENY;
}

static const char *text_of(const struct cfg_value *map, const char *key)
{
	const struct cfg_value *v = conf_member(map, key);

	return v && v->kind == DOC_STR ? v->text : NULL;
}

struct making {
	const struct plan_input *in;
	const char *project;
	struct sb_plan_commands *c;
	struct sb_err *err;
};

/* "./" in front is the project's folder; what has a meaning in patterns has none in its name. */
static char *expand(const struct making *m, const char *pattern)
{
	char *ret;
	char *o;

	if (strncmp(pattern, "./", 2) != 0)
		return strdup(pattern);
	ret = o = malloc(2 * strlen(m->project) + strlen(pattern) + 2);
	for (const char *p = m->project; ret && *p; p++) {
		if (strchr(" \t\n\v\f\r*?\\", *p))
			*o++ = '\\';
		*o++ = *p;
	}
	if (ret)
		memcpy(o, pattern + 1, strlen(pattern));
	return ret;
}

/* An entry of a list: a pattern, or a map with more about it. */
static int add(const struct making *m, const struct cfg_value *v, enum sb_cmd_action usual)
{
	const struct plan_input *in = m->in;
	struct sb_plan_commands *c = m->c;
	struct sb_err *err = m->err;
	const struct cfg_value *order = conf_member(v, "any_order");
	const char *pattern = v->kind == DOC_STR ? v->text : text_of(v, "run");
	const char *action = text_of(v, "action");
	const char *scope = text_of(v, "scope");
	const char *reason = text_of(v, "reason");
	struct sb_err why = { 0 };
	struct sb_cmd_rule *r = &c->rules[c->n_rules];
	char from[PATH_MAX];

	conf_where(in, v, from, sizeof(from));
	if (!pattern)
		return sb_err_set(err, -EINVAL, "%s: a rule for commands needs \"run\"", from);
	*r = (struct sb_cmd_rule){
		.pattern = expand(m, pattern),
		.action = action ? action_of(action) : usual,
		.scope = scope && strcmp(scope, "top_level") == 0 ? SB_CMD_SCOPE_TOP_LEVEL
			 : c->scope,
		.any_order = order && order->boolean,
		.reason = reason ? strdup(reason) : NULL,
		.from = strdup(from),
	};
	c->n_rules++;
	if (!r->pattern || !r->from || (reason && !r->reason))
		return oom(err);
	if (scope && strcmp(scope, "tree") == 0 && c->scope == SB_CMD_SCOPE_TOP_LEVEL)
		return sb_err_set(err, -EINVAL, "%s: a rule of scope tree, but policy.commands.scope "
				  "is top_level: set it to tree", from);
	if (r->action == SB_CMD_ASK && r->scope == SB_CMD_SCOPE_TREE)
		return sb_err_set(err, -EINVAL, "%s: \"ask\" for every process of the tree: not "
				  "available yet; give the rule scope: top_level, or use allow, log or "
				  "deny", from);
	if (sb_cmd_rule_check(r->pattern, r->any_order, &why) < 0)
		return sb_err_set(err, -EINVAL, "%s: %.400s", from, why.text);
	return 0;
}

static int add_list(const struct making *m, const char *path, enum sb_cmd_action usual)
{
	const struct cfg_value *v;
	int r = 0;

	for (size_t i = 0; r == 0 && (v = cfg_item(m->in->conf->cfg, path, i)); i++) {
		if (m->c->n_rules == SB_CMD_MAX_RULES)
			return sb_err_set(m->err, -E2BIG, "more than %d rules for commands",
					  SB_CMD_MAX_RULES);
		r = add(m, v, usual);
	}
	return r;
}

/* Whether some layer says anything of the policy. */
static bool wanted(const struct plan_input *in)
{
	static const char *const paths[] = {
		"policy.commands.default_action", "policy.commands.allowlist",
		"policy.commands.denylist",	  "policy.commands.rules",
		"policy.commands.scope",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(paths); i++) {
		const struct cfg_value *v = conf_set(in, paths[i]);

		if (v && (v->kind != DOC_SEQ || v->n > 0))
			return true;
	}
	return false;
}

int plan_commands_make(const struct plan_input *in, const char *project,
		       struct sb_plan_commands *ret, struct sb_err *err)
{
	struct sb_plan_commands c = { .fallback = SB_CMD_ALLOW };
	const struct making m = { in, project, &c, err };
	int r;

	if (!wanted(in)) {
		*ret = c;
		return 0;
	}
	c.scope = strcmp(conf_str(in, "policy.commands.scope", "tree"), "tree") == 0
			  ? SB_CMD_SCOPE_TREE
			  : SB_CMD_SCOPE_TOP_LEVEL;
	c.fallback = action_of(conf_str(in, "policy.commands.default_action", "allow"));
	c.log_blocked = conf_bool(in, "policy.commands.log_blocked", true);
	c.rules = calloc(SB_CMD_MAX_RULES, sizeof(*c.rules));
	if (!c.rules)
		return oom(err);
	r = add_list(&m, "policy.commands.denylist", SB_CMD_DENY);
	if (r == 0)
		r = add_list(&m, "policy.commands.rules", SB_CMD_DENY);
	if (r == 0)
		r = add_list(&m, "policy.commands.allowlist", SB_CMD_ALLOW);
	if (r == 0)
		r = sb_plan_commands_check(&c, err);
	if (r < 0) {
		sb_plan_commands_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
