/* One question to the rules, answered by the code of the gates. */
#include <errno.h>
#include <idn2.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cli.h"
#include "cmd_judge.h"
#include "conf_cmd.h"
#include "plan_net.h"

static struct plan_input input(const struct conf_cmd *c)
{
	return (struct plan_input){ .opt = &c->opt, .conf = &c->conf.loaded, .line = &c->conf.line };
}

/* Where the default of a policy is written. */
static void default_from(const struct conf_cmd *c, const char *const *paths, char *out, size_t cap)
{
	const struct plan_input in = input(c);

	(void)snprintf(out, cap, "default");
	for (; *paths; paths++) {
		const struct cfg_value *v = conf_set(&in, *paths);

		if (v) {
			conf_where(&in, v, out, cap);
			return;
		}
	}
}

int policy_ask_command(const struct conf_cmd *c, const char *const *argv, struct policy_answer *ret,
		       struct sb_err *err)
{
	static const char *const defaults[] = { "policy.commands.default_action", NULL };
	sb_autofree struct cmd_answer *a = calloc(1, sizeof(*a));
	struct cmd_judge j;
	int r;

	*ret = (struct policy_answer){ 0 };
	if (!a)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = cmd_judge_open(&j, c->plan, true, err);
	if (r == 0)
		r = cmd_judge_decide(&j, argv, a, err);
	if (r == 0) {
		ret->verdict = sb_cmd_action_name(a->verdict.action);
		ret->why = a->verdict.why;
		(void)snprintf(ret->text, sizeof(ret->text), "%s", a->text);
		if (!a->found)
			(void)snprintf(ret->note, sizeof(ret->note), "the sandbox has no such program");
		if (a->verdict.rule) {
			(void)snprintf(ret->rule, sizeof(ret->rule), "%s", a->verdict.rule->pattern);
			(void)snprintf(ret->from, sizeof(ret->from), "%s", a->verdict.rule->from);
		} else {
			default_from(c, defaults, ret->from, sizeof(ret->from));
		}
	}
	cmd_judge_close(&j);
	return r;
}

/* NAME:PORT, ADDRESS:PORT, [V6]:PORT */
static int split(const char *target, char *host, size_t cap, uint16_t *port, struct sb_err *err)
{
	const char *colon = strrchr(target, ':');
	const char *from = target;
	uint64_t n = 0;
	size_t len;

	if (!colon || sb_num_u64(colon + 1, 1, 65535, &n) < 0)
		return sb_err_set(err, -EINVAL, "\"%.200s\": must be NAME:PORT, such as example.com:443",
				  target);
	len = (size_t)(colon - target);
	if (target[0] == '[' && len >= 2 && target[len - 1] == ']') {
		from++;
		len -= 2;
	}
	if (len == 0 || len >= cap)
		return sb_err_set(err, -EINVAL, "\"%.200s\": must be NAME:PORT, such as example.com:443",
				  target);
	memcpy(host, from, len);
	host[len] = '\0';
	*port = (uint16_t)n;
	return 0;
}

static int decide(const struct sb_netpol *pol, const char *host, uint16_t port, bool names,
		  struct sb_net_verdict *v, struct policy_answer *ret, struct sb_err *err)
{
	char name[SB_NAME_MAX + 1];
	char *ascii = NULL;
	struct sb_addr a;
	int r;

	if (sb_addr_parse(host, strlen(host), &a) == 0) {
		sb_netpol_addr(pol, &a, port, v);
		if (v->allow && plan_net_is_own(&a))
			*v = (struct sb_net_verdict){ .reason = SB_NET_ADDR_HOST };
		return 0;
	}
	if (idn2_to_ascii_8z(host, &ascii, IDN2_NONTRANSITIONAL) != IDN2_OK)
		ascii = NULL;
	r = sb_name_normalise(ascii ? ascii : host, strlen(ascii ? ascii : host), name);
	idn2_free(ascii);
	if (r < 0)
		return sb_err_set(err, -EINVAL, "\"%.200s\" is neither a name nor an address", host);
	sb_netpol_name(pol, name, port, v);
	if (v->allow && !names && strcmp(name, SB_HOST_NAME) != 0) {
		*v = (struct sb_net_verdict){ .reason = SB_NET_RESOLVE_FAILED };
		(void)snprintf(ret->note, sizeof(ret->note), "policy.network.allow_dns is false: no name is "
			       "answered");
	} else if (v->allow && strcmp(name, SB_HOST_NAME) != 0) {
		(void)snprintf(ret->note, sizeof(ret->note), "its addresses are judged when it is dialled: "
			       "private ones need a rule of their own");
	}
	return 0;
}

int policy_ask_connect(const struct conf_cmd *c, const char *target, struct policy_answer *ret,
		       struct sb_err *err)
{
	static const char *const defaults[] = { "policy.network.mode",
						"policy.network.default_action", NULL };
	const struct plan_input in = input(c);
	struct sb_net_verdict v = { .reason = SB_NET_NAME_NOT_ALLOWED };
	struct sb_netpol *pol = NULL;
	char host[512];
	uint16_t port;
	int r = split(target, host, sizeof(host), &port, err);

	*ret = (struct policy_answer){ 0 };
	if (r < 0)
		return r;
	default_from(c, defaults, ret->from, sizeof(ret->from));
	if (c->plan->net.mode == SB_NET_NONE) {
		ret->verdict = "deny";
		ret->why = "no-network";
		(void)snprintf(ret->text, sizeof(ret->text), "%.200s:%u: there is no network (%.300s)", host,
			       port, ret->from);
		return 0;
	}
	r = sb_netpol_new(&c->plan->net, &pol, err);
	if (r == 0)
		r = decide(pol, host, port, conf_bool(&in, "policy.network.allow_dns", true), &v, ret, err);
	if (r == 0) {
		ret->verdict = v.ask ? "ask" : v.allow ? "allow" : "deny";
		ret->why = sb_net_reason_name(v.reason);
		(void)sb_net_explain(v.reason, v.rule, host, port, NULL, ret->text, sizeof(ret->text));
		if (!v.allow && v.reason != SB_NET_NAME_NOT_ALLOWED &&
		    v.reason != SB_NET_ADDR_NOT_ALLOWED && v.reason != SB_NET_PORT_NOT_ALLOWED)
			(void)snprintf(ret->from, sizeof(ret->from), "built in");
		if (v.rule) {
			sb_net_rule_text(v.rule, ret->rule, sizeof(ret->rule));
			(void)snprintf(ret->from, sizeof(ret->from), "%s", v.rule->from);
		}
		if (v.ask) {
			ret->why = "to-be-asked";
			(void)snprintf(ret->text, sizeof(ret->text), "%.200s:%u: to be asked (%.200s)", host, port,
				       ret->rule);
		}
	}
	(void)sb_netpol_free(pol);
	return r;
}

/* ---- policy_tests ---- */

#define WORDS_MAX 1024

/* Words as in a pattern: blanks separate, a backslash takes the next byte as it is. */
static int words_of(const struct cfg_value *run, char **buf, const char **words, struct sb_err *err)
{
	size_t n = 0;
	const char *s;
	char *o;

	if (run->kind == DOC_SEQ) {
		if (run->n == 0 || run->n >= WORDS_MAX)
			return sb_err_set(err, -EINVAL, "a test needs 1 to %d words", WORDS_MAX - 1);
		for (; n < run->n; n++)
			words[n] = run->items[n].text;
		words[n] = NULL;
		return 0;
	}
	*buf = o = malloc(strlen(run->text) + 2);
	if (!o)
		return sb_err_set(err, -ENOMEM, "out of memory");
	for (s = run->text + strspn(run->text, " \t\n"); *s; s += strspn(s, " \t\n")) {
		if (n + 1 == WORDS_MAX)
			return sb_err_set(err, -EINVAL, "a test needs 1 to %d words", WORDS_MAX - 1);
		words[n++] = o;
		for (; *s && !strchr(" \t\n", *s); s++) {
			if (*s == '\\' && s[1])
				s++;
			*o++ = *s;
		}
		*o++ = '\0';
	}
	words[n] = NULL;
	return n > 0 ? 0 : sb_err_set(err, -EINVAL, "an empty command");
}

static int ask_one(const struct conf_cmd *c, const struct cfg_value *run,
		   const struct cfg_value *connect, struct policy_answer *ret, struct sb_err *err)
{
	sb_autofree const char **words = calloc(WORDS_MAX, sizeof(*words));
	sb_autofree char *buf = NULL;
	int r;

	if (!words)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (connect)
		return policy_ask_connect(c, connect->text, ret, err);
	r = words_of(run, &buf, words, err);
	return r < 0 ? r : policy_ask_command(c, words, ret, err);
}

static int test_one(const struct conf_cmd *c, const struct cfg_value *v, json_t *list, bool *ok,
		    struct sb_err *err)
{
	const struct plan_input in = input(c);
	const struct cfg_value *run = conf_member(v, "run");
	const struct cfg_value *connect = conf_member(v, "connect");
	const struct cfg_value *expect = conf_member(v, "expect");
	const struct cfg_value *rule = conf_member(v, "rule");
	sb_autofree struct policy_answer *a = calloc(1, sizeof(*a));
	sb_autofree char *what = NULL;
	struct sb_err why = { 0 };
	char where[PATH_MAX];
	int r;

	conf_where(&in, v, where, sizeof(where));
	if (!a)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (!expect || (run != NULL) == (connect != NULL))
		return sb_err_set(err, -EINVAL, "%.300s: a test needs expect, and either run or connect",
				  where);
	r = cfg_value_json(connect ? connect : run, &what);
	if (r == 0)
		r = ask_one(c, run, connect, a, &why);
	if (r < 0)
		return sb_err_set(err, r, "%.200s: %.250s", where,
				  why.code ? why.text : strerror(-r));
	*ok = strcmp(a->verdict, expect->text) == 0 && (!rule || strcmp(rule->text, a->rule) == 0);
	if (list)
		return json_array_append_new(
			       list, json_pack("{s:b,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "ok", *ok, "test",
					       where, "kind", connect ? "connect" : "run", "what", what,
					       "expect", expect->text, "verdict", a->verdict, "rule",
					       a->rule, "from", a->from)) < 0
			       ? sb_err_set(err, -ENOMEM, "out of memory")
			       : 0;
	if (!*ok)
		cli_error("%s: %s: expected %s%s%s, got %s by %s (%s)", where, what, expect->text,
			  rule ? " by " : "", rule ? rule->text : "", a->verdict,
			  a->rule[0] ? a->rule : "the default", a->from);
	return 0;
}

int policy_tests_run(const struct conf_cmd *c, json_t *list, size_t *ret_failed, struct sb_err *err)
{
	const struct cfg_value *v;
	size_t failed = 0;
	int n = 0;
	int r = 0;

	for (; r == 0 && (v = cfg_item(c->conf.loaded.cfg, "policy_tests", (size_t)n)); n++) {
		bool ok = false;

		r = test_one(c, v, list, &ok, err);
		failed += !ok;
	}
	*ret_failed = failed;
	return r < 0 ? r : n;
}
