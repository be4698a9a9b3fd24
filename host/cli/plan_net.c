#include "plan_net.h"

#include <ctype.h>
#include <errno.h>
#include <idn2.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "dirs.h"
#include "groups.h"

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
	const struct plan_net_env *env;
	const char *from; /* FILE:LINE that names a group; NULL = none to tell */
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
	const struct adding *a = arg;
	char both[256];

	(void)err; /* the same as in @arg */
	if (!a->from)
		return parse_rule(arg, rule, strlen(rule), from);
	(void)snprintf(both, sizeof(both), "%.150s: %.100s", a->from, from);
	return parse_rule(arg, rule, strlen(rule), both);
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

static int count_rule(void *arg, const char *rule, const char *from, struct sb_err *err)
{
	(void)rule;
	(void)from;
	(void)err;
	++*(size_t *)arg;
	return 0;
}

static void no_warning(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

bool plan_net_group_here(const char *word, const char *project)
{
	const char *const writable[] = { project, NULL };
	const struct groups_env env = { .root = "",
					.home = cli_home("/"),
					.project = project,
					.writable = writable,
					.getenv = variable,
					.warn = no_warning };
	size_t n = 0;

	return groups_resolve(&env, word, strlen(word), false, count_rule, &n, NULL) == 0 && n > 0;
}

int plan_net_mirror(const char *word, char **ret)
{
	static const char *const none[] = { NULL };
	const struct groups_env env = { .root = "",
					.home = cli_home("/"),
					.writable = none,
					.getenv = variable,
					.warn = no_warning };
	char *url = NULL;
	int r = groups_mirror(&env, word, &url, NULL);

	if (r == -ENOMEM)
		return r;
	*ret = r < 0 ? NULL : url;
	return 0;
}

static int add_group(struct adding *a, const char *word, size_t len)
{
	struct groups_env env = { .root = "",
				  .home = cli_home("/"),
				  .project = a->env->project,
				  .writable = a->env->writable,
				  .getenv = variable,
				  .warn = warning };

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

/*
 * Behind a rule that names neither port nor protocol: those of allowed_ports.
 * Return: malloc'd, or NULL when the rule stays as it is.
 */
static char *with_ports(const char *ports, const char *item, size_t len)
{
	const char *host_end = item[0] == '[' ? memchr(item, ']', len) : item;
	size_t rest = host_end ? len - (size_t)(host_end - item) : len;
	const char *slash = host_end ? memchr(host_end, '/', rest) : NULL;
	char *ret;

	if (!ports || !host_end || memchr(host_end, ':', rest))
		return NULL;
	if (slash && !isdigit((unsigned char)slash[1]))
		return NULL;
	return asprintf(&ret, "%.*s:%s", (int)len, item, ports) < 0 ? NULL : ret;
}

/* A group of the configuration; its rules are no groups themselves. */
static int add_own_group(struct adding *a, const struct cfg_value *rules, const char *word,
			 size_t len)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rules->n; i++) {
		const struct cfg_value *v = &rules->items[i];
		char where[200];
		char from[256];

		conf_where(a->env->in, v, where, sizeof(where));
		(void)snprintf(from, sizeof(from), "group %.*s (%s)", (int)SB_MIN(len, (size_t)40), word,
			       where);
		r = parse_rule(a, v->text, strlen(v->text), from);
	}
	return r;
}

static const struct cfg_value *own_group(const struct plan_net_env *env, const char *word,
					 size_t len)
{
	for (size_t i = 0; env->groups && i < env->groups->n; i++)
		if (strlen(env->groups->keys[i]) == len &&
		    memcmp(env->groups->keys[i], word, len) == 0)
			return &env->groups->items[i];
	return NULL;
}

int plan_net_rule(const char *item, size_t len, bool deny, const char *from,
		  const struct plan_net_env *env, struct sb_plan_net *n, struct sb_err *err)
{
	struct adding a = { .n = n, .err = err, .deny = deny, .env = env,
			    .from = env->in && strncmp(from, "--", 2) != 0 ? from : NULL };
	const struct cfg_value *own = own_group(env, item, len);
	bool known = groups_known(item, len);
	sb_autofree char *full = NULL;
	const char *near;
	int r;

	if (own)
		return add_own_group(&a, own, item, len);
	if (known && env->lenient && !deny) {
		struct sb_err why = { 0 };

		a.err = &why;
		r = add_group(&a, item, len);
		if (r < 0 && r != -ENOMEM) {
			cli_error("network: %s allows nothing by \"%.*s\": %.400s", from, (int)len, item,
				  why.text);
			return 0;
		}
		return r;
	}
	if (known)
		return add_group(&a, item, len);
	near = groups_near(item, len);
	if (near)
		cli_error("network: \"%.*s\" is taken as the name of a host; the group is \"%s\"",
			  (int)len, item, near);
	full = deny ? NULL : with_ports(env->ports, item, len);
	return full ? parse_rule(&a, full, strlen(full), from) : parse_rule(&a, item, len, from);
}

int plan_net_rules(const char *list, bool deny, const char *from, const char *project,
		   const char *const *writable, struct sb_plan_net *n, struct sb_err *err)
{
	const struct plan_net_env env = { .project = project, .writable = writable };
	const char *rest = list;
	const char *item;
	size_t len;
	int r;

	while ((r = next_item(&rest, &item, &len)) > 0) {
		r = plan_net_rule(item, len, deny, from, &env, n, err);
		if (r < 0)
			return sb_err_set(err, r, "%s \"%.100s\": %s", from, list, strerror(-r));
	}
	return r < 0 ? sb_err_set(err, r, "%s \"%.100s\": an empty item in the list", from, list) : 0;
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

/* ---- for plan_net_conf.c ---- */

int plan_net_resolve(struct sb_plan_net *n, bool names, struct sb_err *err)
{
	int r;

	if (!names) {
		n->resolvers = calloc(1, sizeof(*n->resolvers));
		return n->resolvers ? 0 : oom(err);
	}
	r = resolvers(n, err);
	return r < 0 ? r : pins(n, err);
}
