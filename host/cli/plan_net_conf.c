/*
 * The network part of a plan from policy.network. mode and default_action say the same in two ways:
 * the stricter one that somebody set counts, so that a file which may not change one of them cannot
 * get round it with the other.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "plan_make_i.h"
#include "plan_net.h"
#include "wire/dns.h"

#define NET "policy.network."

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

enum sb_net_mode plan_net_mode(const struct plan_input *in)
{
	const struct cfg_value *mode = conf_set(in, NET "mode");
	const struct cfg_value *action = conf_set(in, NET "default_action");

	if (mode && strcmp(mode->text, "none") == 0)
		return SB_NET_NONE;
	if ((mode && strcmp(mode->text, "open") != 0) ||
	    (action && strcmp(action->text, "allow") != 0) || (!mode && !action))
		return SB_NET_FILTER;
	return SB_NET_OPEN;
}

/* FILE:LINE, cut from the left to what a rule may carry. */
static void from_of(const struct plan_input *in, const struct cfg_value *v, char out[256])
{
	char where[PATH_MAX + 16];
	size_t n;

	conf_where(in, v, where, sizeof(where));
	n = strlen(where);
	if (n > 250)
		(void)snprintf(out, 256, "...%s", where + n - 247);
	else
		(void)snprintf(out, 256, "%s", where);
}

static int add_list(const struct plan_input *in, const char *path, bool deny,
		    struct plan_net_env *env, struct sb_plan_net *n, struct sb_err *err)
{
	const struct cfg_value *v;
	int r = 0;

	for (size_t i = 0; r == 0 && (v = cfg_item(in->conf->cfg, path, i)); i++) {
		const char *text = conf_text(in, v);
		struct sb_err why = { 0 };
		char from[256];

		from_of(in, v, from);
		env->lenient = v->origin.layer != CFG_COMMAND_LINE;
		r = plan_net_rule(text, strlen(text), deny, from, env, n, &why);
		if (r < 0 && v->origin.layer == CFG_COMMAND_LINE)
			return sb_err_set(err, r, "%s", why.code ? why.text : strerror(-r));
		if (r < 0) /* some texts begin with the place themselves */
			return strncmp(why.text, from, strlen(from)) == 0
				       ? sb_err_set(err, r, "%s", why.text)
				       : sb_err_set(err, r, "%s: %.400s", from,
						    why.code ? why.text : strerror(-r));
	}
	return r;
}

/* The rules that ask: made as allow rules are, kept apart. */
static int ask_list(const struct plan_input *in, struct plan_net_env *env, struct sb_plan_net *n,
		    struct sb_err *err)
{
	struct sb_plan_net apart = { .mode = n->mode };
	int r = add_list(in, NET "ask", false, env, &apart, err);

	if (r < 0) {
		sb_plan_net_done(&apart);
		return r;
	}
	n->ask = apart.rules;
	n->n_ask = apart.n_rules;
	return 0;
}

/* "443+8443" of allowed_ports. */
static int port_list(const struct plan_input *in, char **ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	const struct cfg_value *v;
	size_t len = 0;

	for (size_t i = 0; (v = cfg_item(in->conf->cfg, NET "allowed_ports", i)); i++) {
		const struct cfg_value *port = conf_member(v, "port");
		const struct cfg_value *proto = conf_member(v, "protocol");
		char where[PATH_MAX];
		char *more;

		conf_where(in, v, where, sizeof(where));
		if (proto && proto->kind == DOC_STR && strcmp(proto->text, "udp") == 0)
			return sb_err_set(err, -EINVAL, "%.300s: UDP does not leave a sandbox: not available "
					  "yet; names are answered without it", where);
		more = realloc(text, len + 16);
		if (!more)
			return oom(err);
		text = more;
		len += (size_t)snprintf(text + len, 16, "%s%u", len > 0 ? "+" : "",
					(unsigned int)(port ? port->integer : 0));
	}
	*ret = sb_take(&text);
	return 0;
}

/* With an open network the list of ports is what is left of all: the others are denied. */
static int deny_other_ports(const struct plan_input *in, struct sb_plan_net *n,
			    struct sb_err *err)
{
	const struct cfg_value *list = conf_set(in, NET "allowed_ports");
	const struct cfg_value *own = conf_set(in, NET "host_ports");
	const struct plan_net_env env = { 0 };
	unsigned int next = 1;
	char from[256];
	int r = 0;

	if (!list || list->n == 0 || n->mode != SB_NET_OPEN)
		return 0;
	from_of(in, list, from);
	if (own && own->n > 0)
		return sb_err_set(err, -EINVAL, "%s: allowed_ports with an open network, and host_ports: "
				  "not available yet together", from);
	while (r == 0 && next <= 65535) {
		unsigned int stop = 65536; /* the next allowed port */
		const struct cfg_value *v;
		char rule[32];

		for (size_t i = 0; (v = cfg_item(in->conf->cfg, NET "allowed_ports", i)); i++) {
			const struct cfg_value *port = conf_member(v, "port");

			if (port && port->integer >= next && port->integer < stop)
				stop = (unsigned int)port->integer;
		}
		if (stop > next) {
			(void)snprintf(rule, sizeof(rule), "*:%u-%u", next, stop - 1);
			r = plan_net_rule(rule, strlen(rule), true, from, &env, n, err);
		}
		next = stop + 1;
	}
	return r;
}

static int host_ports(const struct plan_input *in, struct sb_plan_net *n, struct sb_err *err)
{
	const struct plan_net_env env = { 0 };
	const struct cfg_value *v;
	int r = 0;

	for (size_t i = 0; r == 0 && (v = cfg_item(in->conf->cfg, NET "host_ports", i)); i++) {
		char text[64];
		char from[256];

		from_of(in, v, from);
		(void)snprintf(text, sizeof(text), SB_HOST_NAME ":%u/any", (unsigned int)v->integer);
		r = plan_net_rule(text, strlen(text), false, from, &env, n, err);
	}
	return r;
}

static int dns_types(const struct plan_input *in, struct sb_plan_net *n, struct sb_err *err)
{
	const struct cfg_value *v;
	size_t count = 0;

	n->dns_types = calloc(SB_NET_MAX_TYPES + 1, sizeof(*n->dns_types));
	if (!n->dns_types)
		return oom(err);
	for (size_t i = 0; (v = cfg_item(in->conf->cfg, NET "dns.allowed_record_types", i)); i++) {
		char name[PATH_MAX];
		bool seen = strcmp(v->text, "A") == 0 || strcmp(v->text, "AAAA") == 0;

		for (size_t k = 0; k < count; k++)
			seen |= strcmp(n->dns_types[k], v->text) == 0;
		if (seen)
			continue;
		conf_name(in, v, "--dns-types", "allowed_record_types", name, sizeof(name));
		if (count == SB_NET_MAX_TYPES)
			return sb_err_set(err, -EINVAL, "%s: at most %d types", name,
					  SB_NET_MAX_TYPES);
		if (sb_dns_type_of(v->text) == 0)
			return sb_err_set(err, -EINVAL, "%.300s: no record type \"%.20s\"; there are TXT, "
					  "MX, SRV, NS, CNAME, SOA, PTR, NAPTR, SVCB, HTTPS, CAA", name,
					  v->text);
		n->dns_types[count] = strdup(v->text);
		if (!n->dns_types[count++])
			return oom(err);
	}
	return 0;
}

static void limits(const struct plan_input *in, struct sb_plan_net *n)
{
	n->max_connections = (uint32_t)conf_int(in, NET "max_connections", 512);
	n->idle_ms = (uint64_t)conf_int(in, NET "idle_timeout", 1800000);
	n->session_bytes = (uint64_t)conf_int(in, NET "session_mb", 0);
	n->host_bytes = (uint64_t)conf_int(in, NET "host_mb", 0);
	n->dns_queries = (uint32_t)conf_int(in, NET "dns.queries_per_minute", 3000);
	n->dns_new_names = (uint32_t)conf_int(in, NET "dns.new_names_per_minute", 100);
	n->proxy_env = conf_bool(in, NET "proxy_env", false);
	n->cname_strict = conf_bool(in, NET "strict_cname", false);
	n->ech_outer = conf_bool(in, NET "allow_ech", false);
}

/* Without a network a rule of the command line would be lost without a word. */
static int check_none(const struct plan_input *in, struct sb_err *err)
{
	static const char *const lists[] = { NET "allowed_domains", NET "host_ports" };
	const struct cfg_value *mode = conf_set(in, NET "mode");
	const struct cfg_value *v;
	char rule[PATH_MAX];
	char where[PATH_MAX];

	for (size_t l = 0; l < SB_ARRAY_LEN(lists); l++) {
		for (size_t i = 0; (v = cfg_item(in->conf->cfg, lists[l], i)); i++) {
			if (v->origin.layer != CFG_COMMAND_LINE ||
			    mode->origin.layer == CFG_COMMAND_LINE)
				continue;
			conf_where(in, v, rule, sizeof(rule));
			conf_where(in, mode, where, sizeof(where));
			return sb_err_set(err, -EINVAL, "%s: there is no network: policy.network.mode is "
					  "none (%.300s)", rule, where);
		}
	}
	return 0;
}

/* Names that no question is answered for can never be reached: say so. */
static void tell_no_names(const struct plan_input *in, const struct sb_plan_net *n)
{
	char where[PATH_MAX];
	struct sb_cidr c;
	size_t names = 0;

	for (size_t i = 0; i < n->n_rules; i++)
		names += !n->rules[i].deny && strcmp(n->rules[i].host, SB_HOST_NAME) != 0 &&
			 sb_cidr_parse(n->rules[i].host, strlen(n->rules[i].host), &c) < 0;
	conf_where(in, conf_set(in, NET "allow_dns"), where, sizeof(where));
	if (names > 0)
		cli_error("network: allow_dns is false (%s): no name is answered, so %zu rules for names "
			  "allow nothing", where, names);
}

int plan_net_make(const struct plan_input *in, struct sb_plan *p, struct sb_err *err)
{
	const char *writable[SB_PLAN_MAX_MOUNTS + 1] = { NULL };
	struct plan_net_env env = { .groups = cfg_get(in->conf->cfg, "groups"),
				    .in = in,
				    .project = plan_project_host(p),
				    .writable = writable };
	bool names = conf_bool(in, NET "allow_dns", true);
	sb_autofree char *ports = NULL;
	struct sb_plan_net *n = &p->net;
	size_t n_writable = 0;
	int r;

	n->mode = p->task == SB_TASK_EXPORT ? SB_NET_NONE : plan_net_mode(in);
	if (p->task == SB_TASK_EXPORT)
		return 0;
	if (n->mode == SB_NET_NONE)
		return check_none(in, err);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].mode == SB_MOUNT_RW)
			writable[n_writable++] = p->mounts[i].host;
	limits(in, n);
	r = port_list(in, &ports, err);
	env.ports = ports;
	if (r == 0)
		r = add_list(in, NET "allowed_domains", false, &env, n, err);
	if (r == 0)
		r = add_list(in, NET "allowed_networks", false, &env, n, err);
	if (r == 0)
		r = ask_list(in, &env, n, err);
	if (r == 0)
		r = add_list(in, NET "blocked_domains", true, &env, n, err);
	if (r == 0)
		r = add_list(in, NET "blocked_networks", true, &env, n, err);
	if (r == 0)
		r = deny_other_ports(in, n, err);
	if (r == 0)
		r = host_ports(in, n, err);
	if (r == 0)
		r = dns_types(in, n, err);
	if (r == 0 && !names)
		tell_no_names(in, n);
	return r < 0 ? r : plan_net_resolve(n, names, err);
}
