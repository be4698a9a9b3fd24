/* Changes of a running session's rules: text, and what they do to the plan's network part. */
#include <errno.h>
#include <string.h>

#include "core/json_i.h"
#include "core/net_i.h"

#define FORMAT "sendbox-net-amend"
#define VERSION 1
#define MAX_RULES 128 /* of a list; SB_NET_AMEND_MAX holds fewer */

#define F(key, kind, member) SB_JSON_F(struct sb_net_amend, key, kind, member)
static const struct sb_json_field amend_fields[] = {
	SB_JSON_HEX(struct sb_net_amend, "session", session),
	F("seq", K_U64, seq),
};

/* Of a rule to take away only what finds it. */
#define RF(key, kind, member) SB_JSON_F(struct sb_net_rule, key, kind, member)
static const struct sb_json_field remove_fields[] = {
	RF("host", K_STR, host),
	RF("port_lo", K_U16, port_lo),
	RF("port_hi", K_U16, port_hi),
};

static void rules_free(struct sb_net_rule *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_net_rule_done(&r[i]);
	free(r);
}

void sb_net_amend_done(struct sb_net_amend *a)
{
	rules_free(a->allow, a->n_allow);
	rules_free(a->remove, a->n_remove);
	*a = (struct sb_net_amend){ 0 };
}

static int refuse(struct sb_err *err, const char *why)
{
	return sb_err_set(err, -EINVAL, "network amendment refused: %s", why);
}

static int check(const struct sb_net_amend *a, struct sb_err *err)
{
	char no_origin[] = "";

	if (a->seq == 0)
		return refuse(err, "no sequence number");
	if (a->n_allow == 0 && a->n_remove == 0)
		return refuse(err, "changes nothing");
	if (a->n_allow > MAX_RULES || a->n_remove > MAX_RULES)
		return refuse(err, "too many rules");
	for (size_t i = 0; i < a->n_allow; i++) {
		if (a->allow[i].deny)
			return refuse(err, "it can add allow rules only");
		if (sb_net_rule_check(&a->allow[i], err) < 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < a->n_remove; i++) {
		struct sb_net_rule r = a->remove[i];

		r.from = no_origin;
		if (r.deny)
			return refuse(err, "it can take away allow rules only");
		if (sb_net_rule_check(&r, err) < 0)
			return -EINVAL;
	}
	return 0;
}

static int write_unchecked(const struct sb_net_amend *a, char **ret, size_t *ret_len)
{
	json_t *o = json_object();
	char *text = NULL;

	if (o && json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
	    json_object_set_new(o, "version", json_integer(VERSION)) == 0 &&
	    sb_json_add(o, amend_fields, SB_ARRAY_LEN(amend_fields), a) == 0 &&
	    json_object_set_new(o, "allow", sb_net_json_rules(a->allow, a->n_allow)) == 0 &&
	    json_object_set_new(o, "remove",
				sb_json_list(a->remove, a->n_remove, sizeof(*a->remove),
					     remove_fields, SB_ARRAY_LEN(remove_fields))) == 0)
		text = sb_json_text(sb_take(&o));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	*ret = text;
	*ret_len = strlen(text);
	return 0;
}

int sb_net_amend_write(const struct sb_net_amend *a, char **ret, size_t *ret_len)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = check(a, NULL);

	if (r == 0)
		r = write_unchecked(a, &text, &len);
	if (r < 0)
		return r;
	if (len > SB_NET_AMEND_MAX)
		return -E2BIG;
	*ret = sb_take(&text);
	*ret_len = len;
	return 0;
}

static int parse_object(const json_t *o, struct sb_net_amend *a, struct sb_err *err)
{
	const json_t *format = json_object_get(o, "format");
	void *removed = NULL;
	int r;

	if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
		return sb_json_bad(err, "format", "is not " FORMAT);
	if (json_integer_value(json_object_get(o, "version")) != VERSION)
		return sb_json_bad(err, "version", "is not one that this program knows");
	r = sb_json_get(o, amend_fields, SB_ARRAY_LEN(amend_fields), a, err);
	if (r == 0)
		r = sb_net_json_get_rules(o, "allow", &a->allow, &a->n_allow, err);
	if (r == 0)
		r = sb_json_get_list(o, "remove", MAX_RULES, sizeof(*a->remove), remove_fields,
				     SB_ARRAY_LEN(remove_fields), &removed, &a->n_remove, err);
	a->remove = removed;
	return r;
}

int sb_net_amend_parse(const char *bytes, size_t len, struct sb_net_amend *ret, struct sb_err *err)
{
	SB_CLEANUP(sb_net_amend_done) struct sb_net_amend a = { 0 };
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	json_t *o;
	int r;

	r = sb_json_load("network amendment", bytes, len, SB_NET_AMEND_MAX, 0, &o, err);
	if (r < 0)
		return r;
	r = parse_object(o, &a, err);
	json_decref(o);
	if (r == 0)
		r = write_unchecked(&a, &again, &again_len);
	if (r < 0)
		return sb_err_set(err, r, "network amendment: cannot be read");
	r = sb_json_same("network amendment", bytes, len, again, again_len, err);
	if (r < 0)
		return r;
	if (check(&a, err) < 0)
		return -EBADMSG;
	*ret = a;
	a = (struct sb_net_amend){ 0 };
	return 0;
}

/* ---- what it does ---- */

static bool listed(const struct sb_net_rule *r, const struct sb_net_rule *v, size_t n, bool proto)
{
	for (size_t i = 0; i < n; i++)
		if (sb_net_rule_same(r, &v[i], proto))
			return true;
	return false;
}

/* Each rule to remove must be there. */
static int check_removals(const struct sb_net_amend *a, const struct sb_plan_net *n,
			  struct sb_err *err)
{
	char text[SB_NET_RULE_TEXT];

	for (size_t i = 0; i < a->n_remove; i++) {
		if (listed(&a->remove[i], n->rules, n->n_rules, false))
			continue;
		sb_net_rule_text(&a->remove[i], text, sizeof(text));
		return sb_err_set(err, -ENOENT, "network amendment: no rule allows \"%s\"", text);
	}
	return 0;
}

int sb_net_amend_apply(const struct sb_net_amend *a, struct sb_plan_net *n, struct sb_err *err)
{
	sb_autofree struct sb_net_rule *rules = NULL;
	size_t n_rules = 0;
	size_t kept;
	int r = check(a, err);

	if (r < 0)
		return r;
	if (n->mode == SB_NET_NONE)
		return refuse(err, "the session has no network");
	r = check_removals(a, n, err);
	if (r < 0)
		return r;
	rules = calloc(n->n_rules + a->n_allow + 1, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < n->n_rules; i++) /* strings stay where they are for now */
		if (!listed(&n->rules[i], a->remove, a->n_remove, false))
			rules[n_rules++] = n->rules[i];
	kept = n_rules;
	for (size_t i = 0; i < a->n_allow && r == 0; i++) {
		if (listed(&a->allow[i], rules, n_rules, true))
			continue;
		r = n_rules < SB_NET_MAX_RULES ? sb_net_rule_copy(&a->allow[i], &rules[n_rules]) :
						 refuse(err, "too many rules in all");
		n_rules += r == 0;
	}
	if (r < 0) {
		while (n_rules > kept)
			sb_net_rule_done(&rules[--n_rules]);
		return r;
	}
	for (size_t i = 0; i < n->n_rules; i++)
		if (listed(&n->rules[i], a->remove, a->n_remove, false))
			sb_net_rule_done(&n->rules[i]);
	free(n->rules);
	n->rules = sb_take(&rules);
	n->n_rules = n_rules;
	return 0;
}
