/* Rules that need more than one value, over the effective tree. */
#include <stdio.h>
#include <string.h>

#include "cfg_i.h"
#include "base/near.h"

static bool is(const struct cfg_value *v, const char *word)
{
	return v && v->kind == DOC_STR && strcmp(v->text, word) == 0;
}

/* filter and deny, open and allow are two words for one thing: the inner one counts. */
static void cross_mode(struct cfg *c, struct problems *p)
{
	struct cfg_value *mode = cfg_by_path(&c->root, "policy.network.mode");
	struct cfg_value *action = cfg_by_path(&c->root, "policy.network.default_action");
	struct cfg_value *outer;
	struct cfg_value *inner;
	char where[600];

	if (!mode || !action || is(mode, "none") || is(mode, "open") == is(action, "allow"))
		return;
	outer = mode->origin.layer <= action->origin.layer ? mode : action;
	inner = outer == mode ? action : mode;
	cfg_origin_text(outer->locked_by ? outer->locked_by : &outer->origin, where, sizeof(where));
	if (outer->locked_by) {
		cfg_problem(p, inner, inner == mode ? "policy.network.mode"
						    : "policy.network.default_action",
			    "locked", "\"%s\" contradicts \"%s\" of %s, which is locked there",
			    inner->text, outer->text, where);
	} else if (strcmp(outer->origin.file, inner->origin.file) == 0) {
		cfg_problem(p, inner, "policy.network.mode", "bad_value",
			    "mode \"%s\" and default_action \"%s\" contradict each other: filter goes with "
			    "deny, open with allow; one of them is enough", mode->text, action->text);
	} else {
		outer->origin = inner->origin;
		outer->text = outer == mode ? (is(action, "allow") ? "open" : "filter")
					    : (is(mode, "open") ? "allow" : "deny");
	}
}

/* The terminal is asked before a start; inside there is nobody to ask. */
static void cross_ask(const struct cfg *c, struct problems *p)
{
	static const char *const lists[] = { "policy.commands.allowlist", "policy.commands.rules" };
	const char *scope = cfg_str(c, "policy.commands.scope", "tree");

	for (size_t l = 0; l < SB_ARRAY_LEN(lists); l++) {
		const struct cfg_value *v;

		for (size_t i = 0; (v = cfg_item(c, lists[l], i)) != NULL; i++) {
			const struct cfg_value *own = cfg_member(v, "scope");
			const struct cfg_value *action = cfg_member(v, "action");

			if (is(action, "ask") && strcmp(own ? own->text : scope, "tree") == 0)
				cfg_problem(p, action, lists[l], "not_available",
					    "asking is not available yet for what the command starts: "
					    "write scope: top_level, or allow, deny or log");
		}
	}
}

/* Whoever works in the project would choose what runs on the host and who is asked. */
static void cross_approvals(const struct cfg *c, struct problems *p)
{
	const struct cfg_value *v;

	for (size_t i = 0; (v = cfg_item(c, "approvals.hook", i)) != NULL; i++)
		if (v->origin.layer == CFG_PROJECT || v->origin.layer == CFG_AGENT)
			cfg_problem(p, v, "approvals.hook", "bad_value",
				    "a hook is for your own configuration, not for a project's or an agent's");
}

static void cross_publish(const struct cfg *c, struct problems *p)
{
	const struct cfg_value *v;

	for (size_t i = 0; (v = cfg_item(c, "audit.publish", i)) != NULL; i++) {
		const struct cfg_value *command = cfg_member(v, "command");
		const struct cfg_value *print = cfg_member(v, "print");
		const struct cfg_value *file = cfg_member(v, "file");

		if (v->origin.layer == CFG_PROJECT || v->origin.layer == CFG_AGENT)
			cfg_problem(p, v, "audit.publish", "bad_value",
				    "where heads go is for your own configuration, not for a project's or an "
				    "agent's");
		else if ((file != NULL) + (command != NULL) + (print != NULL) != 1 || (print && !print->boolean))
			cfg_problem(p, v, "audit.publish", "bad_value",
				    "a place is one of {file: PATH}, {command: [PROGRAM, WORD...]}, {print: true}");
		else if (command && (command->n == 0 || command->items[0].text[0] != '/'))
			cfg_problem(p, v, "audit.publish", "bad_value", "command: the program's whole path, please");
	}
}

static void cross_mounts(const struct cfg *c, struct problems *p)
{
	const struct cfg_value *v;

	for (size_t i = 0; (v = cfg_item(c, "mounts", i)) != NULL; i++) {
		const struct cfg_value *guest = cfg_member(v, "guest");
		const struct cfg_value *o;
		char where[600];

		for (size_t k = 0; k < i && (o = cfg_item(c, "mounts", k)) != NULL; k++) {
			if (!is(cfg_member(o, "guest"), guest->text))
				continue;
			cfg_where(o, where, sizeof(where));
			cfg_problem(p, v, "mounts", "bad_value", "\"%.200s\" has a mount already, of %s",
				    guest->text, where);
			break;
		}
	}
}

static void cross_tests(const struct cfg *c, struct problems *p)
{
	const struct cfg_value *v;

	for (size_t i = 0; (v = cfg_item(c, "policy_tests", i)) != NULL; i++)
		if (!cfg_member(v, "run") == !cfg_member(v, "connect"))
			cfg_problem(p, v, "policy_tests", "bad_value",
				    "a test has either run or connect");
}

/* A word that is nearly a group would be taken as the name of a host. */
static void cross_group_words(const struct cfg *c, const char *list, struct problems *p)
{
	const struct cfg_value *own = cfg_get(c, "groups");
	const struct cfg_value *v;

	for (size_t i = 0; (v = cfg_item(c, list, i)) != NULL; i++) {
		const char *near = NULL;
		size_t before = p->n;
		char lower[65];
		size_t n = strlen(v->text);

		if (n >= sizeof(lower) || v->text[strcspn(v->text, ".:/*[")] || cfg_member(own, v->text))
			continue;
		for (size_t k = 0; k <= n; k++)
			lower[k] = v->text[k] >= 'A' && v->text[k] <= 'Z' ? (char)(v->text[k] + 0x20)
									  : v->text[k];
		for (size_t k = 0; cfg_groups[k]; k++) {
			if (strcmp(cfg_groups[k], v->text) == 0)
				goto next;
			if (sb_near(lower, cfg_groups[k], 1) <= 1)
				near = cfg_groups[k];
		}
		for (size_t k = 0; own && k < own->n; k++)
			if (sb_near(lower, own->keys[k], 1) <= 1)
				near = own->keys[k];
		if (near) {
			cfg_problem(p, v, list, "bad_value", "there is no group \"%.64s\"; if it is the "
				    "name of a host, write it with its port, as %.64s:443", v->text,
				    v->text);
			problems_near(p, before, near);
		}
next:;
	}
}

void cfg_cross(struct cfg *c, struct problems *p)
{
	cross_mode(c, p);
	cross_ask(c, p);
	cross_approvals(c, p);
	cross_publish(c, p);
	cross_mounts(c, p);
	cross_tests(c, p);
	cross_group_words(c, "policy.network.allowed_domains", p);
	cross_group_words(c, "policy.network.blocked_domains", p);
	cross_group_words(c, "policy.network.ask", p);
}
