/* Rules as text and as parts of a plan. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "core/net_i.h"

#define TEXT_MAX 1024 /* of one rule as people write it */
#define FROM_MAX 255
#define IDLE_MAX_MS (366ULL * 24 * 3600 * 1000)

static const char *const proto_names[] = {
	[SB_PROTO_AUTO] = "auto",
	[SB_PROTO_HTTPS] = "https",
	[SB_PROTO_HTTP] = "http",
	[SB_PROTO_ANY] = "any",
};

/* ---- hosts ---- */

int sb_net_host_parse(const char *s, size_t len, struct sb_net_host *ret)
{
	struct sb_net_host h = { .kind = SB_NET_HOST_NAME_EXACT };

	if (len == 1 && s[0] == '*') {
		h.kind = SB_NET_HOST_ANY;
		memcpy(h.text, "*", 2);
	} else if (len > 2 && s[0] == '*' && s[1] == '.') {
		h.kind = SB_NET_HOST_SUFFIX;
		memcpy(h.text, "*.", 2);
		/* A name beneath needs a label and a dot more. */
		if (sb_name_normalise(s + 2, len - 2, h.text + 2) < 0 ||
		    strlen(h.text + 2) > SB_NAME_MAX - 2)
			return -EINVAL;
	} else if (sb_cidr_parse(s, len, &h.cidr) == 0) {
		h.kind = SB_NET_HOST_CIDR;
		sb_cidr_format(&h.cidr, h.text);
	} else if (sb_name_normalise(s, len, h.text) < 0) {
		return -EINVAL;
	}
	*ret = h;
	return 0;
}

/* ---- parsing ---- */

struct parsed {
	struct sb_net_host host;
	const char *ports; /* NULL = none given */
	size_t ports_len;
	const char *proto; /* NULL = none given */
	size_t proto_len;
	bool slash; /* the host was written as a network */
};

static int refuse(struct sb_err *err, const char *text, size_t len, bool deny, const char *why)
{
	size_t n = SB_MIN(len, (size_t)120);
	char hint[200];
	char shown[121];

	if (!err)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		shown[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	shown[n] = '\0';
	if (sb_net_rule_hint(text, len, deny, hint, sizeof(hint)))
		return sb_err_set(err, -EINVAL, "network rule \"%s\": %s", shown, hint);
	return sb_err_set(err, -EINVAL, "network rule \"%s\": %s", shown, why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Where the host ends: in front of ":" or "/"; the digits behind an address's "/" belong to it. */
static size_t host_end(const char *s, size_t len)
{
	struct sb_addr a;
	size_t at = 0;

	while (at < len && s[at] != ':' && s[at] != '/')
		at++;
	if (at == len || s[at] == ':' || sb_addr_parse(s, at, &a) < 0 || at + 1 == len ||
	    !is_digit(s[at + 1]))
		return at;
	at++;
	while (at < len && is_digit(s[at]))
		at++;
	return at;
}

/* @s = what stands behind the host. */
static const char *split_rest(const char *s, size_t len, struct parsed *p)
{
	if (len > 0 && s[0] == ':') {
		const char *slash = memchr(s, '/', len);

		p->ports = s + 1;
		p->ports_len = slash ? (size_t)(slash - p->ports) : len - 1;
		s = p->ports + p->ports_len;
		len -= p->ports_len + 1;
		if (p->ports_len == 0)
			return "no port behind \":\"";
	}
	if (len > 0 && s[0] == '/') {
		p->proto = s + 1;
		p->proto_len = len - 1;
		return NULL;
	}
	return len > 0 ? "only :PORTS and /PROTOCOL may follow the host" : NULL;
}

/* "[" at @s: the host within, and "/BITS" when it follows the bracket. @used: bytes of both. */
static const char *split_brackets(const char *s, size_t len, struct parsed *p, size_t *used)
{
	const char *close = memchr(s, ']', len);
	size_t inner = close ? (size_t)(close - s) - 1 : 0;
	char text[SB_CIDR_TEXT] = "";
	size_t bits = 0;

	if (!close)
		return "\"[\" without \"]\"";
	if (!memchr(s + 1, ':', inner))
		return "only an IPv6 address or network stands in brackets";
	*used = inner + 2;
	if (*used + 1 < len && s[*used] == '/' && is_digit(s[*used + 1]))
		for (bits = 1; *used + bits < len && is_digit(s[*used + bits]);)
			bits++;
	if (inner + bits >= sizeof(text))
		return "too long for an address";
	memcpy(text, s + 1, inner);
	memcpy(text + inner, s + *used, bits);
	*used += bits;
	p->slash = memchr(text, '/', inner + bits) != NULL;
	if (sb_net_host_parse(text, inner + bits, &p->host) < 0)
		return "no IPv6 address or network (without host bits) in the brackets";
	return NULL;
}

static const char *split_plain(const char *s, size_t len, struct parsed *p, size_t *used)
{
	size_t n = host_end(s, len);

	if (n < len && s[n] == ':' && memchr(s + n + 1, ':', len - n - 1))
		return "write an IPv6 address in brackets: [ADDRESS]:PORT";
	if (sb_net_host_parse(s, n, &p->host) < 0)
		return "the host is no name (letters, digits, \"-\", \"_\", \".\"), *.suffix, *, "
		       "address or network (without host bits)";
	p->slash = memchr(s, '/', n) != NULL;
	*used = n;
	return NULL;
}

/* NULL or what is wrong. */
static const char *split(const char *s, size_t len, struct parsed *p)
{
	const char *why;
	size_t used = 0;

	if (len == 0)
		return "empty";
	if (len > TEXT_MAX)
		return "too long";
	why = s[0] == '[' ? split_brackets(s, len, p, &used) : split_plain(s, len, p, &used);
	return why ? why : split_rest(s + used, len - used, p);
}

static int parse_port(const char *s, size_t len, uint16_t *ret)
{
	char text[6] = "";
	uint64_t v;

	if (len == 0 || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, s, len);
	if (strlen(text) != len || sb_num_u64(text, 1, UINT16_MAX, &v) < 0)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

/* PORT or PORT-PORT */
static int parse_range(const char *s, size_t len, struct sb_net_rule *r)
{
	const char *dash = memchr(s, '-', len);
	size_t first = dash ? (size_t)(dash - s) : len;
	uint16_t lo;
	uint16_t hi;

	if (parse_port(s, first, &lo) < 0)
		return -EINVAL;
	hi = lo;
	if (dash && parse_port(dash + 1, len - first - 1, &hi) < 0)
		return -EINVAL;
	if (hi < lo)
		return -EINVAL;
	r->port_lo = lo;
	r->port_hi = hi;
	return 0;
}

static int parse_proto(const char *s, size_t len, enum sb_net_proto *ret)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(proto_names); i++) {
		if (strlen(proto_names[i]) == len && memcmp(proto_names[i], s, len) == 0) {
			*ret = (enum sb_net_proto)i;
			return 0;
		}
	}
	return -EINVAL;
}

static enum sb_net_proto default_proto(bool cidr, uint16_t lo, uint16_t hi)
{
	if (cidr || lo != hi)
		return SB_PROTO_AUTO;
	return lo == 443 ? SB_PROTO_HTTPS : lo == 80 ? SB_PROTO_HTTP : SB_PROTO_AUTO;
}

struct emit {
	struct sb_net_rule rule;
	bool cidr;
	bool proto_given;
	int (*add)(void *arg, const struct sb_net_rule *r);
	void *arg;
};

static int emit(struct emit *e, uint16_t lo, uint16_t hi)
{
	e->rule.port_lo = lo;
	e->rule.port_hi = hi;
	if (!e->rule.deny && !e->proto_given)
		e->rule.proto = default_proto(e->cidr, lo, hi);
	return e->add(e->arg, &e->rule);
}

/* Without ports in the text. */
static int emit_default(struct emit *e, const struct parsed *p)
{
	int r = 0;

	if (e->rule.deny || (e->cidr && p->slash))
		return emit(e, 1, UINT16_MAX);
	if (!e->proto_given || e->rule.proto != SB_PROTO_HTTP)
		r = emit(e, 443, 443);
	if (r == 0 && (!e->proto_given || e->rule.proto != SB_PROTO_HTTPS))
		r = emit(e, 80, 80);
	return r;
}

static bool is_host_grant(const struct sb_net_rule *r)
{
	return !r->deny && strcmp(r->host, SB_HOST_NAME) == 0;
}

/* Call @fn for each range of the list, or only look whether all are well-formed. */
static int each_range(const struct parsed *p, struct emit *e, bool call, bool *single)
{
	const char *s = p->ports;
	size_t left = p->ports_len;

	for (;;) {
		const char *plus = memchr(s, '+', left);
		size_t len = plus ? (size_t)(plus - s) : left;
		struct sb_net_rule range;
		int r;

		if (parse_range(s, len, &range) < 0)
			return -EINVAL;
		*single &= range.port_lo == range.port_hi;
		r = call ? emit(e, range.port_lo, range.port_hi) : 0;
		if (r < 0 || !plus)
			return r;
		s = plus + 1;
		left -= len + 1;
	}
}

int sb_net_rule_parse(const char *text, size_t len, bool deny, const char *from,
		      int (*add)(void *arg, const struct sb_net_rule *r), void *arg,
		      struct sb_err *err)
{
	struct parsed p = { 0 };
	struct emit e = { .rule = { .deny = deny }, .add = add, .arg = arg };
	const char *why = split(text, len, &p);
	sb_autofree char *from_copy = NULL;
	bool single = p.ports != NULL;

	if (why)
		return refuse(err, text, len, deny, why);
	from_copy = strdup(from ? from : "");
	if (!from_copy)
		return -ENOMEM;
	e.rule.host = p.host.text;
	e.rule.from = from_copy;
	e.cidr = p.host.kind == SB_NET_HOST_CIDR;
	e.proto_given = p.proto != NULL;
	if (p.proto && deny)
		return refuse(err, text, len, deny, "a deny rule has no protocol");
	if (p.proto && parse_proto(p.proto, p.proto_len, &e.rule.proto) < 0)
		return refuse(err, text, len, deny, "the protocol is none of https, http, any, auto");
	if (p.ports && each_range(&p, &e, false, &single) < 0)
		return refuse(err, text, len, deny,
			      "ports are numbers of 1 to 65535, ranges LOW-HIGH, several with \"+\"");
	if (is_host_grant(&e.rule) && !single)
		return refuse(err, text, len, deny, "name each port of the host itself, as in "
					      SB_HOST_NAME ":5432");
	return p.ports ? each_range(&p, &e, true, &single) : emit_default(&e, &p);
}

/* ---- text ---- */

void sb_net_rule_text(const struct sb_net_rule *r, char *out, size_t cap)
{
	bool cidr = r->host[0] != '*' && strpbrk(r->host, ":/") != NULL;
	bool v6 = strchr(r->host, ':') != NULL;
	char ports[16] = "";
	const char *proto = "";
	struct sb_addr a;

	if (!cidr)
		cidr = sb_addr_parse(r->host, strlen(r->host), &a) == 0;
	if (r->port_lo == r->port_hi)
		(void)snprintf(ports, sizeof(ports), ":%u", (unsigned int)r->port_lo);
	else if (r->port_lo != 1 || r->port_hi != UINT16_MAX ||
		 !(r->deny || strchr(r->host, '/')))
		(void)snprintf(ports, sizeof(ports), ":%u-%u", (unsigned int)r->port_lo,
			       (unsigned int)r->port_hi);
	if (!r->deny && (size_t)r->proto < SB_ARRAY_LEN(proto_names) &&
	    (r->proto != SB_PROTO_AUTO ||
	     default_proto(cidr, r->port_lo, r->port_hi) != SB_PROTO_AUTO))
		proto = proto_names[r->proto];
	(void)snprintf(out, cap, "%s%s%s%s%s%s%s", r->deny ? "deny " : "", v6 ? "[" : "", r->host,
		       v6 ? "]" : "", ports, *proto ? "/" : "", proto);
}

/* ---- parts of a plan ---- */

void sb_net_rule_done(struct sb_net_rule *r)
{
	free(r->host);
	free(r->from);
	*r = (struct sb_net_rule){ 0 };
}

int sb_net_rule_copy(const struct sb_net_rule *from, struct sb_net_rule *to)
{
	struct sb_net_rule r = *from;

	r.host = strdup(from->host);
	r.from = strdup(from->from ? from->from : "");
	if (!r.host || !r.from) {
		sb_net_rule_done(&r);
		return -ENOMEM;
	}
	*to = r;
	return 0;
}

bool sb_net_rule_same(const struct sb_net_rule *a, const struct sb_net_rule *b, bool proto)
{
	return a->port_lo == b->port_lo && a->port_hi == b->port_hi && a->deny == b->deny &&
	       (!proto || a->proto == b->proto) && strcmp(a->host, b->host) == 0;
}

int sb_net_rule_add(struct sb_plan_net *n, const struct sb_net_rule *r)
{
	struct sb_net_rule copy;
	struct sb_net_rule *rules;
	int e;

	for (size_t i = 0; i < n->n_rules; i++)
		if (sb_net_rule_same(&n->rules[i], r, true))
			return 0;
	if (n->n_rules >= SB_NET_MAX_RULES)
		return -E2BIG;
	e = sb_net_rule_copy(r, &copy);
	if (e < 0)
		return e;
	rules = reallocarray(n->rules, n->n_rules + 1, sizeof(*rules));
	if (!rules) {
		sb_net_rule_done(&copy);
		return -ENOMEM;
	}
	rules[n->n_rules++] = copy;
	n->rules = rules;
	return 0;
}

static void strings_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

void sb_plan_net_done(struct sb_plan_net *n)
{
	for (size_t i = 0; i < n->n_rules; i++)
		sb_net_rule_done(&n->rules[i]);
	for (size_t i = 0; i < n->n_ask; i++)
		sb_net_rule_done(&n->ask[i]);
	free(n->ask);
	for (size_t i = 0; i < n->n_pins; i++) {
		free(n->pins[i].name);
		free(n->pins[i].addr);
	}
	free(n->rules);
	free(n->pins);
	strings_free(n->resolvers);
	strings_free(n->dns_types);
	*n = (struct sb_plan_net){ 0 };
}

/* ---- check ---- */

static int bad(struct sb_err *err, const char *what, const char *value, const char *why)
{
	return sb_err_set(err, -EINVAL, "plan refused: %s \"%.200s\": %s", what, value ? value : "",
			  why);
}

static bool printable(const char *s, size_t max)
{
	if (!s || strlen(s) > max)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

int sb_net_rule_check(const struct sb_net_rule *r, struct sb_err *err)
{
	struct sb_net_host h;

	if (!r->host || sb_net_host_parse(r->host, strlen(r->host), &h) < 0)
		return bad(err, "network rule", r->host, "is no name, wildcard, address or network");
	if (strcmp(h.text, r->host) != 0)
		return bad(err, "network rule", r->host, "is not in its canonical spelling");
	if (r->port_lo == 0 || r->port_hi < r->port_lo)
		return bad(err, "network rule", r->host, "has no valid ports");
	if ((size_t)r->proto >= SB_ARRAY_LEN(proto_names) ||
	    (r->deny && r->proto != SB_PROTO_AUTO))
		return bad(err, "network rule", r->host, "has a protocol that it cannot have");
	if (is_host_grant(r) && r->port_lo != r->port_hi)
		return bad(err, "network rule", r->host, "must name single ports of the host");
	if (!printable(r->from, FROM_MAX))
		return bad(err, "origin of network rule", r->host, "is missing, too long or not text");
	return 0;
}

static int check_pin(const struct sb_net_pin *p, struct sb_err *err)
{
	char name[SB_NAME_MAX + 1];
	char text[SB_ADDR_TEXT];
	struct sb_addr a;

	if (!p->name || sb_name_normalise(p->name, strlen(p->name), name) < 0 ||
	    strcmp(name, p->name) != 0 || strcmp(name, SB_HOST_NAME) == 0)
		return bad(err, "pinned name", p->name, "is not a normalised host name");
	if (!p->addr || sb_addr_parse(p->addr, strlen(p->addr), &a) < 0)
		return bad(err, "pinned address", p->addr, "is no address");
	sb_addr_format(&a, text);
	if (strcmp(text, p->addr) != 0)
		return bad(err, "pinned address", p->addr, "is not in its canonical spelling");
	return 0;
}

/* "address:port", "[v6]:port" */
static int check_resolver(const char *s, struct sb_err *err)
{
	const char *colon = strrchr(s, ':');
	char text[SB_ADDR_TEXT + 2];
	const char *host = s;
	struct sb_addr a;
	uint16_t port;
	size_t len;

	if (!colon || parse_port(colon + 1, strlen(colon + 1), &port) < 0)
		return bad(err, "resolver", s, "has no port");
	len = (size_t)(colon - s);
	if (len > 1 && s[0] == '[' && s[len - 1] == ']') {
		host++;
		len -= 2;
	}
	if (sb_addr_parse(host, len, &a) < 0)
		return bad(err, "resolver", s, "has no address");
	sb_addr_format(&a, text);
	if (strlen(text) != len || memcmp(text, host, len) != 0 ||
	    (host != s) != (strchr(text, ':') != NULL))
		return bad(err, "resolver", s, "is not in its canonical spelling");
	return 0;
}

/* Further types than A and AAAA; ANY and transfers are no types of records. */
static int check_type(const char *s, struct sb_err *err)
{
	static const char *const no[] = { "A", "AAAA", "ANY", "AXFR", "IXFR", "OPT" };
	static const char ok[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	if (!*s || strlen(s) > 10 || s[strspn(s, ok)] != '\0' || is_digit(*s))
		return bad(err, "record type", s, "is no name of a type");
	for (size_t i = 0; i < SB_ARRAY_LEN(no); i++)
		if (strcmp(no[i], s) == 0)
			return bad(err, "record type", s, "cannot be listed");
	return 0;
}

static int check_list(char *const *v, size_t max, const char *what,
		      int (*one)(const char *s, struct sb_err *err), struct sb_err *err)
{
	for (size_t n = 0; v && v[n]; n++) {
		int r = one(v[n], err);

		if (r < 0)
			return r;
		if (n == max)
			return bad(err, what, v[n], "is one too many");
		for (size_t k = 0; k < n; k++)
			if (strcmp(v[k], v[n]) == 0)
				return bad(err, what, v[n], "is listed twice");
	}
	return 0;
}

static int check_none(const struct sb_plan_net *n, struct sb_err *err)
{
	if (n->n_rules || n->n_ask || n->n_pins || (n->resolvers && n->resolvers[0]) ||
	    (n->dns_types && n->dns_types[0]) || n->max_connections || n->idle_ms ||
	    n->session_bytes || n->host_bytes || n->dns_queries || n->dns_new_names ||
	    n->proxy_env || n->cname_strict || n->ech_outer)
		return sb_err_set(err, -EINVAL,
				  "plan refused: network rules or limits without a network");
	return 0;
}

int sb_plan_net_check(const struct sb_plan_net *n, struct sb_err *err)
{
	int r = 0;

	if (n->mode == SB_NET_NONE)
		return check_none(n, err);
	if (n->mode != SB_NET_FILTER && n->mode != SB_NET_OPEN)
		return sb_err_set(err, -EINVAL, "plan refused: unknown network mode");
	if (n->n_rules > SB_NET_MAX_RULES || n->n_ask > SB_NET_MAX_RULES || n->n_pins > SB_NET_MAX_PINS)
		return sb_err_set(err, -EINVAL,
				  "plan refused: more than %d network rules or %d pinned names",
				  SB_NET_MAX_RULES, SB_NET_MAX_PINS);
	if (n->max_connections < 1 || n->max_connections > 4096)
		return sb_err_set(err, -EINVAL,
				  "plan refused: network connections must be 1 to 4096");
	if (n->idle_ms > IDLE_MAX_MS)
		return sb_err_set(err, -EINVAL, "plan refused: idle time beyond a year");
	for (size_t i = 0; i < n->n_rules && r == 0; i++)
		r = sb_net_rule_check(&n->rules[i], err);
	for (size_t i = 0; i < n->n_ask && r == 0; i++)
		r = n->ask[i].deny ? bad(err, "network rule", n->ask[i].host, "denies, and is to ask")
				   : sb_net_rule_check(&n->ask[i], err);
	for (size_t i = 0; i < n->n_pins && r == 0; i++)
		r = check_pin(&n->pins[i], err);
	if (r == 0)
		r = check_list(n->resolvers, SB_NET_MAX_RESOLVERS, "resolver", check_resolver, err);
	if (r == 0)
		r = check_list(n->dns_types, SB_NET_MAX_TYPES, "record type", check_type, err);
	return r;
}
