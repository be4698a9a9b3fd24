/* What people write in place of a rule: URLs, bare IPv6 addresses, names of ports. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/net_i.h"

struct part {
	const char *p;
	size_t len;
};

struct out {
	char *p;
	size_t cap;
	bool deny;
};

static unsigned int service_port(struct part word)
{
	static const struct {
		const char *word;
		unsigned int port;
	} known[] = {
		{ "https", 443 },    { "http", 80 },	     { "wss", 443 },	{ "ws", 80 },
		{ "ssh", 22 },	     { "git+ssh", 22 },	     { "git", 9418 },	{ "postgres", 5432 },
		{ "mysql", 3306 },   { "postgresql", 5432 }, { "redis", 6379 }, { "mongodb", 27017 },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(known); i++)
		if (strlen(known[i].word) == word.len &&
		    strncasecmp(known[i].word, word.p, word.len) == 0)
			return known[i].port;
	return 0;
}

static size_t span(struct part s, const char *set)
{
	size_t n = 0;

	while (n < s.len && s.p[n] && strchr(set, s.p[n]))
		n++;
	return n;
}

static size_t until(struct part s, const char *set)
{
	size_t n = 0;

	while (n < s.len && (!s.p[n] || !strchr(set, s.p[n])))
		n++;
	return n;
}

static struct part behind(struct part s, size_t n)
{
	return (struct part){ s.p + n, s.len - n };
}

static int ignore(void *arg, const struct sb_net_rule *r)
{
	(void)arg;
	(void)r;
	return 0;
}

/* Only a rule that is one is proposed. */
static bool propose(const struct out *o, const char *rule)
{
	/* without an error: it is not asked for a hint again */
	if (sb_net_rule_parse(rule, strlen(rule), o->deny, "", ignore, NULL, NULL) < 0)
		return false;
	(void)snprintf(o->p, o->cap, "write %s", rule);
	return true;
}

static bool is_loopback(const char *host, const struct sb_addr *a)
{
	return strcasecmp(host, "localhost") == 0 ||
	       (a && sb_addr_classify(a) == SB_ADDR_LOOPBACK);
}

/* @port: 0 = none. An IPv6 address gets brackets, this machine its name inside. */
static bool propose_host(const struct out *o, struct part host, unsigned int port)
{
	char text[SB_NAME_MAX + 1];
	char rule[SB_NAME_MAX + 32];
	char at[16] = "";
	struct sb_addr a;
	bool literal;

	if (host.len >= sizeof(text) || host.len == 0)
		return false;
	memcpy(text, host.p, host.len);
	text[host.len] = '\0';
	literal = sb_addr_parse(text, host.len, &a) == 0;
	if (port)
		(void)snprintf(at, sizeof(at), ":%u", port);
	if (!o->deny && is_loopback(text, literal ? &a : NULL)) {
		(void)snprintf(o->p, o->cap, "for a server of this host write " SB_HOST_NAME
			       "%s, the name that it has inside", port ? at : ":PORT");
		return true;
	}
	(void)snprintf(rule, sizeof(rule), strchr(text, ':') ? "[%s]%s" : "%s%s", text, at);
	return propose(o, rule);
}

/* HOST, HOST:PORT, [HOST], [HOST]:PORT; a number behind the colon counts, anything else does not. */
static bool propose_authority(const struct out *o, struct part s, unsigned int port)
{
	struct part host = { s.p, until(s, ":") };
	struct part rest;
	unsigned int n = 0;

	if (s.len > 0 && s.p[0] == '[') {
		host = (struct part){ s.p + 1, until(s, "]") };
		if (host.len == s.len)
			return false;
		host.len--;
		rest = behind(s, host.len + 2);
	} else {
		rest = behind(s, host.len);
	}
	if (rest.len > 1 && rest.p[0] == ':') {
		rest = behind(rest, 1);
		rest.len = span(rest, "0123456789");
		for (size_t i = 0; i < rest.len && n <= UINT16_MAX; i++)
			n = n * 10 + (unsigned int)(rest.p[i] - '0');
		if (n > UINT16_MAX)
			return false;
		port = n ? n : port;
	}
	return propose_host(o, host, port);
}

/* SCHEME://[USER@]HOST[:PORT][/...] */
static bool from_url(const struct out *o, struct part s)
{
	struct part scheme = { s.p, until(s, ":") };
	struct part rest = behind(s, scheme.len);
	size_t user;

	if (rest.len < 4 || memcmp(rest.p, "://", 3) != 0)
		return false;
	rest = behind(rest, 3);
	rest.len = until(rest, "/?#");
	while ((user = until(rest, "@")) < rest.len)
		rest = behind(rest, user + 1);
	return propose_authority(o, rest, o->deny ? 0 : service_port(scheme));
}

/* USER@HOST:PATH, as git and scp have it */
static bool from_remote(const struct out *o, struct part s)
{
	size_t user = until(s, "@/");

	if (user == s.len || s.p[user] != '@')
		return false;
	s = behind(s, user + 1);
	s.len = until(s, "/");
	/* git's form has a colon and a path */
	return propose_authority(o, s, o->deny || until(s, ":") == s.len ? 0 : 22);
}

static bool from_address(const struct out *o, struct part s)
{
	size_t n = until(s, "/");
	char rule[SB_CIDR_TEXT + 8];
	char net[SB_CIDR_TEXT];
	struct sb_cidr c = { 0 };
	unsigned int bits = 0;
	struct sb_addr a;
	unsigned int max;

	if (s.len >= SB_CIDR_TEXT || sb_addr_parse(s.p, n, &a) < 0)
		return false;
	if (n == s.len)
		return propose_host(o, s, 0);
	for (size_t i = n + 1; i < s.len; i++) {
		if (!isdigit((unsigned char)s.p[i]) || bits > 128)
			return false;
		bits = bits * 10 + (unsigned int)(s.p[i] - '0');
	}
	max = sb_addr_is_v4(&a) ? 32 : 128;
	if (n + 1 == s.len || bits > max)
		return false;
	c.addr = a;
	c.bits = (uint8_t)(bits + (128 - max));
	for (unsigned int bit = c.bits; bit < 128; bit++)
		c.addr.b[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
	sb_cidr_format(&c, net);
	(void)snprintf(rule, sizeof(rule), strchr(net, ':') ? "[%s]" : "%s", net);
	return propose(o, rule);
}

/* HOST:https, HOST:, HOST/path */
static bool from_ending(const struct out *o, struct part s)
{
	struct part host = { s.p, until(s, ":/") };
	struct part word;
	struct sb_addr a;

	if (host.len == s.len || memmem(s.p, s.len, "://", 3) ||
	    (s.p[host.len] == '/' && sb_addr_parse(s.p, host.len, &a) == 0))
		return false;
	word = behind(s, host.len + 1);
	word.len = until(word, "/");
	if (s.p[host.len] == '/' && propose_host(o, host, 0)) {
		size_t n = strlen(o->p);

		(void)snprintf(o->p + n, o->cap - n, "%s", o->deny
			       ? "; a deny rule has no protocol"
			       : "; behind \"/\" stands one of https, http, auto, any");
		return true;
	}
	if (word.len == 0 || service_port(word))
		return propose_host(o, host, service_port(word));
	return span(word, "0123456789") == word.len && propose_authority(o, s, 0);
}

bool sb_net_rule_hint(const char *text, size_t len, bool deny, char *out, size_t cap)
{
	const struct out o = { .p = out, .cap = cap, .deny = deny };
	struct part s = { text, len };
	bool ascii = true;

	s = behind(s, span(s, " \t\"'"));
	while (s.len > 0 && strchr(" \t\"'", s.p[s.len - 1]))
		s.len--;
	for (size_t i = 0; i < s.len; i++)
		ascii &= (unsigned char)s.p[i] < 0x80;
	if (s.len == 0 || memchr(s.p, '\0', s.len))
		return false;
	if (!ascii) {
		(void)snprintf(out, cap, "write the name alone, or in its ASCII form, xn--...");
		return true;
	}
	if (span(s, "0123456789-+") == s.len) {
		(void)snprintf(out, cap, "several ports of a host stand as HOST:80+443");
		return true;
	}
	return from_url(&o, s) || from_remote(&o, s) || from_address(&o, s) || from_ending(&o, s) ||
	       (s.len < len && propose_authority(&o, s, 0));
}
