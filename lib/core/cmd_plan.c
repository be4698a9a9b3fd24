/* The plan's commands part: its rules as data, and verdicts as text. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cmd_i.h"

#define FROM_MAX 4400 /* a path and a line */
#define REASON_MAX 500

static const char *const action_names[] = {
	[SB_CMD_DENY] = "deny",
	[SB_CMD_ALLOW] = "allow",
	[SB_CMD_LOG] = "log",
	[SB_CMD_ASK] = "ask",
};

const char *sb_cmd_action_name(enum sb_cmd_action a)
{
	return (size_t)a < SB_ARRAY_LEN(action_names) ? action_names[a] : "deny";
}

void sb_plan_commands_done(struct sb_plan_commands *c)
{
	for (size_t i = 0; i < c->n_rules; i++) {
		free(c->rules[i].pattern);
		free(c->rules[i].reason);
		free(c->rules[i].from);
	}
	free(c->rules);
	*c = (struct sb_plan_commands){ 0 };
}

static int check_rule(const struct sb_cmd_rule *r, struct sb_err *err)
{
	int ret;

	if (!r->pattern || !r->from || strnlen(r->from, FROM_MAX + 1) > FROM_MAX ||
	    (r->reason && strnlen(r->reason, REASON_MAX + 1) > REASON_MAX))
		return sb_err_set(err, -EINVAL,
				  "command rule: no pattern, or its reason is longer than 500 "
				  "bytes, or where it is from than 4400");
	ret = sb_cmd_rule_check(r->pattern, r->any_order, err);
	if (ret < 0)
		return ret;
	if ((size_t)r->action >= SB_ARRAY_LEN(action_names))
		return sb_err_set(err, -EINVAL, "command rule \"%.120s\": unknown action",
				  r->pattern);
	if (r->scope != SB_CMD_SCOPE_TOP_LEVEL && r->scope != SB_CMD_SCOPE_TREE)
		return sb_err_set(err, -EINVAL,
				  "command rule \"%.120s\": its scope is neither top_level nor "
				  "tree", r->pattern);
	if (r->action == SB_CMD_ASK && r->scope != SB_CMD_SCOPE_TOP_LEVEL)
		return sb_err_set(err, -EINVAL,
				  "command rule \"%.120s\": asking is for the first command "
				  "alone; add scope: top_level (asking for others is not "
				  "available yet)", r->pattern);
	return 0;
}

int sb_plan_commands_check(const struct sb_plan_commands *c, struct sb_err *err)
{
	if ((unsigned int)c->scope > SB_CMD_SCOPE_TREE ||
	    (c->fallback != SB_CMD_ALLOW && c->fallback != SB_CMD_DENY))
		return sb_err_set(err, -EINVAL, "command policy: unknown scope or default action");
	if (c->scope == SB_CMD_SCOPE_NONE &&
	    (c->n_rules > 0 || c->fallback != SB_CMD_ALLOW || c->log_blocked))
		return sb_err_set(err, -EINVAL,
				  "command policy: rules, a default of deny or log_blocked need a "
				  "scope");
	if (c->n_rules > SB_CMD_MAX_RULES)
		return sb_err_set(err, -EINVAL, "command policy: more than %d rules",
				  SB_CMD_MAX_RULES);
	for (size_t i = 0; i < c->n_rules; i++) {
		int r = check_rule(&c->rules[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- text ---- */

struct line {
	char *out;
	size_t len;
	size_t cap; /* with NUL */
};

static void put(struct line *l, const char *s, size_t len)
{
	for (size_t i = 0; i < len && l->len + 1 < l->cap; i++)
		l->out[l->len++] = s[i];
}

static void put_str(struct line *l, const char *s)
{
	put(l, s, strlen(s));
}

/* As a word of a rule: blanks, stars and backslashes escaped; bytes that are no ASCII text as
 * \xNN. At most @max bytes. */
static void put_word(struct line *l, const char *s, size_t max, bool escape)
{
	size_t end = l->len + max;

	for (; *s && l->len < end; s++) {
		unsigned char c = (unsigned char)*s;
		char hex[8];

		if (c < 0x20 || c >= 0x7f) {
			(void)snprintf(hex, sizeof(hex), "\\x%02x", c);
			put_str(l, hex);
			continue;
		}
		if (escape && strchr(" *?\\", c))
			put_str(l, "\\");
		put(l, s, 1);
	}
	if (*s)
		put_str(l, "...");
}

static void put_command(struct line *l, const struct sb_cmd_request *q, size_t max)
{
	size_t start = l->len;

	if (q->argc == 0)
		put_word(l, q->path, max, true);
	for (size_t i = 0; i < q->argc; i++) {
		if (l->len - start > max || l->len + 1 >= l->cap) {
			put_str(l, " ...");
			break;
		}
		if (i > 0)
			put_str(l, " ");
		put_word(l, q->argv[i], max, true);
	}
}

static void put_rule(struct line *l, const struct sb_cmd_rule *r)
{
	put_str(l, sb_cmd_action_name(r->action));
	put_str(l, " rule \"");
	put_word(l, r->pattern, 200, false);
	put_str(l, "\" (");
	put_word(l, r->from, 200, false);
	put_str(l, ")");
	if (r->reason && r->reason[0]) {
		put_str(l, ": ");
		put_word(l, r->reason, 200, false);
	}
}

static void put_refusal(struct line *l, const struct sb_cmd_verdict *v,
			const struct sb_cmd_request *q)
{
	if (strcmp(v->why, "copy-of-denied") == 0) {
		put_str(l, "the file is a copy of a program that is refused");
		if (v->rule) {
			put_str(l, " by ");
			put_rule(l, v->rule);
		}
		put_str(l, ". Change that rule if it should run");
	} else if (v->rule) {
		put_rule(l, v->rule);
		put_str(l, v->rule->action == SB_CMD_ASK ?
				   ". It is asked for the first command alone" :
				   ". Change that rule if it should run");
	} else if (strcmp(v->why, "loader") == 0) {
		put_str(l, "a dynamic loader runs any program past the rules. To allow it, name "
			   "it by its path in a rule: \"");
		put_word(l, q->path[0] ? q->path : "/PATH/OF/LOADER", 200, true);
		put_str(l, " **\"");
	} else if (strcmp(v->why, "no-path") == 0) {
		put_str(l, "the file has no path (in memory, or removed), so no rule for a program "
			   "can allow it. Run it from a file");
	} else if (strcmp(v->why, "loose-name") == 0) {
		put_str(l, "a rule allows this script, but by the name it was called by its "
			   "interpreter could read another one. Call it by its own path");
	} else if (strcmp(v->why, "cannot-watch") == 0) {
		put_str(l, "what starts could not be looked at: another process traces the one that "
			   "starts it, or its file may not be read");
	} else if (strcmp(v->why, "too-long") == 0) {
		put_str(l, "more than 65536 words or 2 MiB, or a program nested in itself, is not "
			   "judged. Pass the arguments in a file");
	} else {
		put_str(l, "no rule allows it. To allow it, add to policy.commands.allowlist: \"");
		put_command(l, q, 200);
		put_str(l, "\"");
	}
}

void sb_cmd_explain(const struct sb_cmd_verdict *v, const struct sb_cmd_request *q, char *out,
		    size_t cap)
{
	struct line l = { out, 0, cap };

	if (cap == 0)
		return;
	put_str(&l, v->action == SB_CMD_DENY  ? "sendbox: refused to run \"" :
		    v->action == SB_CMD_ALLOW ? "sendbox: allowed to run \"" :
		    v->action == SB_CMD_LOG   ? "sendbox: allowed and recorded \"" :
						"sendbox: to be asked: \"");
	put_command(&l, q, 200);
	put_str(&l, "\"");
	if (q->path[0]) {
		put_str(&l, " (");
		put_word(&l, q->path, 200, false);
		put_str(&l, ")");
	}
	put_str(&l, ": ");
	if (v->action == SB_CMD_DENY)
		put_refusal(&l, v, q);
	else if (v->rule)
		put_rule(&l, v->rule);
	else
		put_str(&l, "no rule refuses it");
	out[l.len] = '\0';
}
