#include "plan_net.h"

#include <ctype.h>
#include <errno.h>
#include <idn2.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "groups.h"
#include "wire/dns.h"

#define HOSTS_LINE_MAX 4096

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* ---- rules that could never match ---- */

bool plan_net_is_own(const struct sb_addr *want)
{
	struct ifaddrs *list = NULL;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		struct sb_addr a = { { 0 } };

		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
			uint8_t v4[4];

			memcpy(v4, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr,
			       4);
			sb_addr_from_v4(v4, &a);
		} else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6) {
			memcpy(a.b, &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr,
			       16);
		} else {
			continue;
		}
		found = memcmp(a.b, want->b, 16) == 0;
	}
	freeifaddrs(list);
	return found;
}

static void last_address(const struct sb_cidr *c, struct sb_addr *ret)
{
	*ret = c->addr;
	for (unsigned int bit = c->bits; bit < 128; bit++)
		ret->b[bit / 8] = (uint8_t)(ret->b[bit / 8] | 0x80U >> bit % 8);
}

static int never(const struct sb_net_rule *r, const char *what, const char *instead,
		 struct sb_err *err)
{
	return sb_err_set(err, -EINVAL, "%s: \"%.100s\" can never be allowed: %s; %s", r->from,
			  r->host, what, instead);
}

#define USE_HOST_PORT "for a server of this host allow " SB_HOST_NAME ":PORT (with sendbox run also: " \
		      "--allow-host-port PORT) and use that name inside"

static int check_class(const struct sb_net_rule *r, const struct sb_cidr *c, struct sb_err *err)
{
	struct sb_addr last;
	enum sb_addr_class class = sb_addr_classify(&c->addr);

	last_address(c, &last);
	if (sb_addr_classify(&last) != class)
		return 0; /* a network with allowed addresses in it */
	switch (class) {
	case SB_ADDR_LOOPBACK:
		return never(r, "it is the sandbox's own loopback", USE_HOST_PORT, err);
	case SB_ADDR_METADATA:
		return never(r, "it is a cloud metadata service",
			     "give the program what it needs with --env or --mount", err);
	case SB_ADDR_MULTICAST:
		return never(r, "multicast and broadcast do not leave a sandbox",
			     "name the server's own address", err);
	case SB_ADDR_UNSPECIFIED:
		return never(r, "it is no address of a server", "name the server's own address", err);
	case SB_ADDR_NONE:
	case SB_ADDR_PUBLIC:
	case SB_ADDR_PRIVATE:
	case SB_ADDR_SHARED:
	case SB_ADDR_LINK_LOCAL:
	case SB_ADDR_SPECIAL:
	default:
		break;
	}
	if (c->bits == 128 && plan_net_is_own(&c->addr))
		return never(r, "it is an address of this host", USE_HOST_PORT, err);
	return 0;
}

static int check_rule(const struct sb_net_rule *r, struct sb_err *err)
{
	size_t n = strlen(r->host);
	struct sb_cidr c;

	if (r->deny)
		return 0;
	if (strcmp(r->host, "localhost") == 0 ||
	    (n > 10 && strcmp(r->host + n - 10, ".localhost") == 0))
		return never(r, "it is the sandbox itself", USE_HOST_PORT, err);
	return sb_cidr_parse(r->host, n, &c) == 0 ? check_class(r, &c, err) : 0;
}

/* ---- rules ---- */

struct adding {
	struct sb_plan_net *n;
	struct sb_err *err;
	bool deny;
};

static int add_rule(void *arg, const struct sb_net_rule *r)
{
	struct adding *a = arg;
	int k = check_rule(r, a->err);

	if (k == 0)
		k = sb_net_rule_add(a->n, r);
	if (k == -E2BIG)
		return sb_err_set(a->err, k, "more than %d network rules", SB_NET_MAX_RULES);
	return k < 0 ? sb_err_set(a->err, k, "network rule: %s", strerror(-k)) : 0;
}

/* A name with other letters in the form that programs ask for (IDNA 2008); the rest stays. */
static int to_ascii(const char *text, size_t len, char **ret, struct sb_err *err)
{
	sb_autofree char *copy = strndup(text, len);
	sb_autofree char *host = NULL;
	char *name = copy;
	char *rest;
	int k;

	if (!copy)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (strncmp(name, "*.", 2) == 0)
		name += 2;
	rest = name + strcspn(name, ":/");
	{
		sb_autofree char *only = strndup(name, (size_t)(rest - name));

		k = only ? idn2_to_ascii_8z(only, &host, IDN2_NONTRANSITIONAL) : IDN2_MALLOC;
	}
	if (k != IDN2_OK)
		return sb_err_set(err, -EINVAL, "network rule \"%s\": the name cannot be written "
				  "in ASCII: %s", copy, idn2_strerror(k));
	if (asprintf(ret, "%.*s%s%s", (int)(name - copy), copy, host, rest) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static bool is_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

static int parse_rule(struct adding *a, const char *text, size_t len, const char *from)
{
	sb_autofree char *ascii = NULL;
	int k;

	if (is_ascii(text, len))
		return sb_net_rule_parse(text, len, a->deny, from, add_rule, a, a->err);
	k = to_ascii(text, len, &ascii, a->err);
	if (k < 0)
		return k;
	return sb_net_rule_parse(ascii, strlen(ascii), a->deny, from, add_rule, a, a->err);
}

static int on_group_rule(void *arg, const char *rule, const char *from, struct sb_err *err)
{
	(void)err; /* the same as in @arg */
	return parse_rule(arg, rule, strlen(rule), from);
}

static const char *variable(const char *name)
{
	return getenv(name);
}

static void warning(void *arg, const char *text)
{
	(void)arg;
	cli_error("network: %s", text);
}

static int add_group(struct adding *a, const char *word, size_t len, const char *project,
		     const char *const *writable)
{
	struct groups_env env = { .root = "",
				  .home = getenv("HOME"),
				  .project = project,
				  .writable = writable,
				  .getenv = variable,
				  .warn = warning };
	const struct passwd *pw;

	if (!env.home || env.home[0] != '/') {
		pw = getpwuid(geteuid());
		env.home = pw ? pw->pw_dir : "/";
	}
	return groups_resolve(&env, word, len, a->deny, on_group_rule, a, a->err);
}

/* Step through a comma list; blanks around an item do not count. Return: 1; 0 = end; -EINVAL. */
static int next_item(const char **list, const char **ret, size_t *ret_len)
{
	const char *p = *list;
	size_t n;

	if (!p)
		return 0;
	n = strcspn(p, ",");
	*list = p[n] == ',' ? p + n + 1 : NULL;
	while (n > 0 && isspace((unsigned char)*p)) {
		p++;
		n--;
	}
	while (n > 0 && isspace((unsigned char)p[n - 1]))
		n--;
	*ret = p;
	*ret_len = n;
	return n > 0 ? 1 : -EINVAL;
}

int plan_net_rules(const char *list, bool deny, const char *from, const char *project,
		   const char *const *writable, struct sb_plan_net *n, struct sb_err *err)
{
	struct adding a = { .n = n, .err = err, .deny = deny };
	const char *rest = list;
	const char *item;
	size_t len;
	int r;

	while ((r = next_item(&rest, &item, &len)) > 0) {
		const char *near = groups_known(item, len) ? NULL : groups_near(item, len);

		if (near)
			cli_error("network: \"%.*s\" is taken as the name of a host; the group is \"%s\"",
				  (int)len, item, near);
		r = groups_known(item, len) ? add_group(&a, item, len, project, writable)
					    : parse_rule(&a, item, len, from);
		if (r < 0)
			return sb_err_set(err, r, "%s \"%.100s\": %s", from, list, strerror(-r));
	}
	return r < 0 ? sb_err_set(err, r, "%s \"%.100s\": an empty item in the list", from, list) : 0;
}

static int host_ports(const struct run_options *o, struct sb_plan_net *n, struct sb_err *err)
{
	struct adding a = { .n = n, .err = err };
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->n_host_ports; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), SB_HOST_NAME ":%u/any", o->host_ports[i]);
		r = parse_rule(&a, text, strlen(text), "--allow-host-port");
	}
	return r;
}

static int dns_types(const struct run_options *o, struct sb_plan_net *n, struct sb_err *err)
{
	size_t count = 0;

	n->dns_types = calloc(SB_NET_MAX_TYPES + 1, sizeof(*n->dns_types));
	if (!n->dns_types)
		return oom(err);
	for (size_t i = 0; i < o->n_dns_types; i++) {
		const char *rest = o->dns_types[i];
		const char *item;
		size_t len;
		int r;

		while ((r = next_item(&rest, &item, &len)) > 0) {
			if (count == SB_NET_MAX_TYPES)
				return sb_err_set(err, -EINVAL, "--dns-types: at most %d types",
						  SB_NET_MAX_TYPES);
			n->dns_types[count] = strndup(item, len);
			if (!n->dns_types[count])
				return oom(err);
			for (char *c = n->dns_types[count++]; *c; c++)
				*c = (char)toupper((unsigned char)*c);
			if (sb_dns_type_of(n->dns_types[count - 1]) == 0)
				return sb_err_set(err, -EINVAL, "--dns-types: no record type \"%.20s\"; "
						  "there are TXT, MX, SRV, NS, CNAME, SOA, PTR, NAPTR, "
						  "SVCB, HTTPS, CAA", n->dns_types[count - 1]);
		}
		if (r < 0)
			return sb_err_set(err, r, "--dns-types \"%.60s\": an empty item in the list",
					  o->dns_types[i]);
	}
	return 0;
}

/* ---- the host's own resolvers and hosts file ---- */

static int resolvers(struct sb_plan_net *n, struct sb_err *err)
{
	FILE *f = fopen("/etc/resolv.conf", "re");
	char line[1024];
	size_t count = 0;

	n->resolvers = calloc(SB_NET_MAX_RESOLVERS + 1, sizeof(*n->resolvers));
	if (!n->resolvers) {
		if (f)
			(void)fclose(f);
		return oom(err);
	}
	while (f && count < SB_NET_MAX_RESOLVERS && fgets(line, sizeof(line), f)) {
		char text[SB_ADDR_TEXT];
		char word[128];
		char full[SB_ADDR_TEXT + 8];
		struct sb_addr a;

		if (sscanf(line, " nameserver %127s", word) != 1)
			continue;
		if (sb_addr_parse(word, strlen(word), &a) < 0) { /* one with a zone, too */
			cli_error("network: resolver %s of /etc/resolv.conf is left out: no plain "
				  "address", word);
			continue;
		}
		sb_addr_format(&a, text);
		(void)snprintf(full, sizeof(full), sb_addr_is_v4(&a) ? "%s:53" : "[%s]:53", text);
		n->resolvers[count] = strdup(full);
		if (!n->resolvers[count++]) {
			(void)fclose(f);
			return oom(err);
		}
	}
	if (f)
		(void)fclose(f);
	if (count == 0) /* as resolv.conf(5) has it */
		n->resolvers[0] = strdup("127.0.0.1:53");
	return n->resolvers[0] ? 0 : oom(err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of allow rules that are no address, network or pattern; sorted. */
static int exact_names(const struct sb_plan_net *n, char ***ret, size_t *ret_n, struct sb_err *err)
{
	char **names = calloc(n->n_rules + 1, sizeof(*names));
	size_t count = 0;

	if (!names)
		return oom(err);
	for (size_t i = 0; i < n->n_rules; i++) {
		const struct sb_net_rule *r = &n->rules[i];
		struct sb_cidr c;

		if (!r->deny && r->host[0] != '*' && sb_cidr_parse(r->host, strlen(r->host), &c) < 0)
			names[count++] = r->host;
	}
	qsort(names, count, sizeof(*names), by_name);
	*ret = names;
	*ret_n = count;
	return 0;
}

static int add_pin(struct sb_plan_net *n, const char *name, const struct sb_addr *a,
		   struct sb_err *err)
{
	struct sb_net_pin *pin;
	char text[SB_ADDR_TEXT];

	sb_addr_format(a, text);
	for (size_t i = 0; i < n->n_pins; i++)
		if (strcmp(n->pins[i].name, name) == 0 && strcmp(n->pins[i].addr, text) == 0)
			return 0;
	if (n->n_pins == SB_NET_MAX_PINS)
		return sb_err_set(err, -E2BIG, "/etc/hosts: more than %d entries of allowed names",
				  SB_NET_MAX_PINS);
	if (!n->pins)
		n->pins = calloc(SB_NET_MAX_PINS, sizeof(*n->pins));
	if (!n->pins)
		return oom(err);
	pin = &n->pins[n->n_pins++];
	pin->name = strdup(name);
	pin->addr = strdup(text);
	return pin->name && pin->addr ? 0 : oom(err);
}

static int pins_of_line(struct sb_plan_net *n, char *line, char **names, size_t n_names,
			struct sb_err *err)
{
	static const char blanks[] = " \t\r\n";
	char norm[SB_NAME_MAX + 1];
	const char *key = norm;
	char *save = NULL;
	struct sb_addr a;
	char *word;
	int r = 0;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, blanks, &save);
	if (!word || sb_addr_parse(word, strlen(word), &a) < 0)
		return 0;
	while (r == 0 && (word = strtok_r(NULL, blanks, &save)))
		if (sb_name_normalise(word, strlen(word), norm) == 0 &&
		    bsearch(&key, names, n_names, sizeof(*names), by_name))
			r = add_pin(n, norm, &a, err);
	return r;
}

static int pins(struct sb_plan_net *n, struct sb_err *err)
{
	sb_autofree char **names = NULL;
	sb_autofree char *line = NULL;
	FILE *f = fopen("/etc/hosts", "re");
	size_t room = 0;
	size_t n_names = 0;
	ssize_t len;
	int r = exact_names(n, &names, &n_names, err);

	while (f && r == 0 && n_names > 0 && (len = getline(&line, &room, f)) > 0)
		if (len <= HOSTS_LINE_MAX)
			r = pins_of_line(n, line, names, n_names, err);
	if (f)
		(void)fclose(f);
	return r;
}

/* ---- all of it ---- */

int plan_net_make(const struct run_options *o, struct sb_plan *p, struct sb_err *err)
{
	const char *writable[SB_PLAN_MAX_MOUNTS + 1] = { NULL };
	struct sb_plan_net *n = &p->net;
	size_t n_writable = 0;
	int r = 0;

	if (o->no_network)
		return 0;
	n->mode = o->no_filter ? SB_NET_OPEN : SB_NET_FILTER;
	n->max_connections = o->net_connections;
	n->idle_ms = o->net_idle_ms;
	n->session_bytes = o->net_bytes;
	n->host_bytes = o->net_host_bytes;
	n->dns_queries = o->dns_queries;
	n->dns_new_names = o->dns_new_names;
	n->proxy_env = o->proxy_env;
	n->cname_strict = o->strict_cname;
	n->ech_outer = o->allow_ech;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].mode == SB_MOUNT_RW)
			writable[n_writable++] = p->mounts[i].host;
	for (size_t i = 0; r == 0 && i < o->n_allow; i++)
		r = plan_net_rules(o->allow[i], false, "--allow-hosts", p->cwd, writable, n, err);
	for (size_t i = 0; r == 0 && i < o->n_deny; i++)
		r = plan_net_rules(o->deny[i], true, "--deny-hosts", p->cwd, writable, n, err);
	if (r == 0)
		r = host_ports(o, n, err);
	if (r == 0)
		r = dns_types(o, n, err);
	if (r == 0)
		r = resolvers(n, err);
	return r < 0 ? r : pins(n, err);
}
