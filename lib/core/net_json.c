#include <errno.h>
#include <string.h>

#include "core/json_i.h"
#include "core/net_i.h"

static const char *const mode_names[] = { "none", "filter", "open" };
static const char *const proto_names[] = { "auto", "https", "http", "any" };

#define F(key, kind, member) SB_JSON_F(struct sb_plan_net, key, kind, member)
static const struct sb_json_field net_fields[] = {
	SB_JSON_ENUM(struct sb_plan_net, "mode", mode, mode_names),
	F("max_connections", K_U32, max_connections),
	F("idle_ms", K_U64, idle_ms),
	F("session_bytes", K_U64, session_bytes),
	F("host_bytes", K_U64, host_bytes),
	F("dns_queries", K_U32, dns_queries),
	F("dns_new_names", K_U32, dns_new_names),
	F("proxy_env", K_BOOL, proxy_env),
	F("cname_strict", K_BOOL, cname_strict),
	F("ech_outer", K_BOOL, ech_outer),
};

#define RF(key, kind, member) SB_JSON_F(struct sb_net_rule, key, kind, member)
static const struct sb_json_field rule_fields[] = {
	RF("deny", K_BOOL, deny),
	RF("host", K_STR, host),
	RF("port_lo", K_U16, port_lo),
	RF("port_hi", K_U16, port_hi),
	SB_JSON_ENUM(struct sb_net_rule, "proto", proto, proto_names),
	RF("from", K_STR, from),
};

#define PF(key, member) SB_JSON_F(struct sb_net_pin, key, K_STR, member)
static const struct sb_json_field pin_fields[] = {
	PF("name", name),
	PF("addr", addr),
};

json_t *sb_net_json_rules(const struct sb_net_rule *r, size_t n)
{
	return sb_json_list(r, n, sizeof(*r), rule_fields, SB_ARRAY_LEN(rule_fields));
}

int sb_net_json_get_rules(const json_t *o, const char *key, struct sb_net_rule **ret, size_t *ret_n,
			  struct sb_err *err)
{
	void *v = NULL;
	int r = sb_json_get_list(o, key, SB_NET_MAX_RULES, sizeof(**ret), rule_fields,
				 SB_ARRAY_LEN(rule_fields), &v, ret_n, err);

	*ret = v;
	return r;
}

json_t *sb_net_json(const struct sb_plan_net *n)
{
	json_t *o = json_object();

	if (o && sb_json_add(o, net_fields, SB_ARRAY_LEN(net_fields), n) == 0 &&
	    json_object_set_new(o, "rules", sb_net_json_rules(n->rules, n->n_rules)) == 0 &&
	    json_object_set_new(o, "pins",
				sb_json_list(n->pins, n->n_pins, sizeof(*n->pins), pin_fields,
					     SB_ARRAY_LEN(pin_fields))) == 0 &&
	    (n->n_ask == 0 ||
	     json_object_set_new(o, "ask", sb_net_json_rules(n->ask, n->n_ask)) == 0) &&
	    json_object_set_new(o, "resolvers", sb_json_strings(n->resolvers)) == 0 &&
	    json_object_set_new(o, "dns_types", sb_json_strings(n->dns_types)) == 0)
		return o;
	json_decref(o);
	return NULL;
}

int sb_net_json_get(const json_t *o, const char *key, struct sb_plan_net *ret, struct sb_err *err)
{
	const json_t *net = json_object_get(o, key);
	void *pins = NULL;
	int r;

	if (!json_is_object(net))
		return sb_json_bad(err, key, "is missing or no object");
	r = sb_json_get(net, net_fields, SB_ARRAY_LEN(net_fields), ret, err);
	if (r == 0)
		r = sb_net_json_get_rules(net, "rules", &ret->rules, &ret->n_rules, err);
	if (r == 0)
		r = sb_json_get_list(net, "pins", SB_NET_MAX_PINS, sizeof(*ret->pins), pin_fields,
				     SB_ARRAY_LEN(pin_fields), &pins, &ret->n_pins, err);
	ret->pins = pins;
	/* left out when there is none */
	if (r == 0 && json_object_get(net, "ask"))
		r = sb_net_json_get_rules(net, "ask", &ret->ask, &ret->n_ask, err);
	if (r == 0)
		r = sb_json_get_strings(net, "resolvers", SB_NET_MAX_RESOLVERS, &ret->resolvers, err);
	if (r == 0)
		r = sb_json_get_strings(net, "dns_types", SB_NET_MAX_TYPES, &ret->dns_types, err);
	return r;
}
