/* The texts of refusals. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/net_i.h"

/* What can be done about it. */
enum remedy { NOTHING, ALLOW, ALLOW_NETWORK, ALLOW_ANY, LIFT_DENIAL, DNS_TYPES, RAISE };

struct reason {
	const char *name;
	const char *text;
	enum remedy remedy;
	const char *option; /* RAISE */
};

static const struct reason reasons[SB_NET_N_REASONS] = {
	[SB_NET_OK] = { "ok", "is allowed", NOTHING, NULL },
	[SB_NET_NAME_NOT_ALLOWED] = { "name-not-allowed", "is not in this session's plan", ALLOW,
				      NULL },
	[SB_NET_NAME_DENIED] = { "name-denied", "is denied by a rule", LIFT_DENIAL, NULL },
	[SB_NET_PORT_NOT_ALLOWED] = { "port-not-allowed",
				      "is not in this session's plan; other ports of it are",
				      ALLOW, NULL },
	[SB_NET_ADDR_NOT_ALLOWED] = { "address-not-allowed",
				      "was dialled without a name and no rule allows the address",
				      ALLOW, NULL },
	[SB_NET_ADDR_DENIED] = { "address-denied", "is denied by a rule", LIFT_DENIAL, NULL },
	[SB_NET_ADDR_RESTRICTED] = { "address-restricted",
				     "is or leads to a private or special address, which names do "
				     "not unlock",
				     ALLOW_NETWORK, NULL },
	[SB_NET_ADDR_FORBIDDEN] = { "address-forbidden",
				    "is or leads to a loopback, multicast, unspecified or cloud "
				    "metadata address, which is never reachable",
				    NOTHING, NULL },
	[SB_NET_ADDR_HOST] = { "address-of-host",
			       "is or leads to an address of the host itself; its ports have the "
			       "name " SB_HOST_NAME " and the option --allow-host-port PORT",
			       NOTHING, NULL },
	[SB_NET_NAME_MALFORMED] = { "name-malformed", "is no well-formed host name", NOTHING, NULL },
	[SB_NET_NAME_UNKNOWN] = { "name-unknown",
				  "stands for no name in this session; look the name up again",
				  NOTHING, NULL },
	[SB_NET_CNAME_DENIED] = { "cname-denied", "leads to an alias that is not allowed", NOTHING,
				  NULL },
	[SB_NET_RESOLVE_FAILED] = { "resolve-failed",
				    "is allowed, but the host's resolvers gave no usable answer",
				    NOTHING, NULL },
	[SB_NET_CONNECT_FAILED] = { "connect-failed", "is allowed, but cannot be reached", NOTHING,
				    NULL },
	[SB_NET_TLS_NAME] = { "tls-name-mismatch",
			      "was dialled, but the TLS server name is another one", ALLOW_ANY,
			      NULL },
	[SB_NET_TLS_NO_NAME] = { "tls-no-name", "was dialled by TLS without a server name",
				 ALLOW_ANY, NULL },
	[SB_NET_TLS_ECH] = { "tls-encrypted-hello",
			     "was dialled with an encrypted TLS hello, whose name cannot be checked",
			     RAISE, "--allow-ech" },
	[SB_NET_TLS_MALFORMED] = { "tls-malformed", "got a malformed or oversized TLS hello",
				   NOTHING, NULL },
	[SB_NET_NOT_TLS] = { "not-tls", "is allowed for https only, and this is no TLS", ALLOW_ANY,
			     NULL },
	[SB_NET_NOT_HTTP] = { "not-http", "is allowed for http only, and this is no HTTP/1",
			      ALLOW_ANY, NULL },
	[SB_NET_HTTP_HOST] = { "http-host-mismatch",
			       "was dialled, but an HTTP request names another host", ALLOW_ANY,
			       NULL },
	[SB_NET_HTTP_MALFORMED] = { "http-malformed", "got a malformed or ambiguous HTTP request",
				    NOTHING, NULL },
	[SB_NET_HTTP_UPGRADE] = { "http-upgrade",
				  "was asked for a change of protocol that is not allowed",
				  ALLOW_ANY, NULL },
	[SB_NET_PROXY_MALFORMED] = { "proxy-malformed", "got a malformed proxy request", NOTHING,
				     NULL },
	[SB_NET_PROXY_COMMAND] = { "proxy-command", "was asked for with a proxy command that does "
				   "not exist here; only connections exist", NOTHING, NULL },
	[SB_NET_DNS_TYPE] = { "dns-type", "was asked for a record type that is not in the plan",
			      DNS_TYPES, NULL },
	[SB_NET_DNS_MALFORMED] = { "dns-malformed", "is not a well-formed DNS question", NOTHING,
				   NULL },
	[SB_NET_DNS_RATE] = { "dns-rate", "came with too many DNS questions in a minute", RAISE,
			      "--dns-queries N" },
	[SB_NET_DNS_NEW_NAMES] = { "dns-new-names",
				   "came with too many new names beneath wildcards in a minute",
				   RAISE, "--dns-new-names N" },
	[SB_NET_TOO_MANY] = { "too-many-connections", "has to wait: too many connections are open",
			      RAISE, "--net-connections N" },
	[SB_NET_BUDGET] = { "byte-budget", "was cut: the byte budget is used up", RAISE,
			    "--net-bytes SIZE or --net-host-bytes SIZE" },
	[SB_NET_IDLE] = { "idle", "was cut: no byte for too long", RAISE, "--net-idle DURATION" },
	[SB_NET_REVOKED] = { "revoked", "was cut: its rule was taken away", NOTHING, NULL },
	[SB_NET_NOT_APPROVED] = { "not-approved", "was asked for, and not approved: sendbox approvals shows "
						  "what is asked, approvals.mode and approvals.hook say who "
						  "answers", NOTHING, NULL },
	[SB_NET_INTERNAL] = { "internal", "failed because of an error in sendbox", NOTHING, NULL },
	[SB_NET_NOT_RECORDED] = { "not-recorded", "was not dialled: it could not be recorded first",
				  NOTHING, NULL },
};

const char *sb_net_reason_name(enum sb_net_reason r)
{
	return (size_t)r < SB_ARRAY_LEN(reasons) ? reasons[r].name : "internal";
}

/* The text goes into answers and terminals: only letters, digits and @more. */
#define IN_NAME "-_.:*/[]+"          /* what a name, an address or a rule is made of */
#define IN_PLACE IN_NAME " ()@~,="   /* "/p/.sendbox.yaml:3: group npm (built in)" */
static void safe(const char *s, const char *more, char *out, size_t cap)
{
	size_t n = 0;

	for (; *s && n + 1 < cap; s++) {
		char c = *s;
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || strchr(more, c);

		out[n++] = ok ? c : '?';
	}
	out[n] = '\0';
}

/* "[v6]" or the text itself */
static void bracketed(const char *target, char *out, size_t cap)
{
	bool v6 = strchr(target, ':') && target[0] != '[';

	(void)snprintf(out, cap, "%s%s%s", v6 ? "[" : "", target, v6 ? "]" : "");
}

static void suggest(struct sb_text *o, const char *rule, const char *session)
{
	sb_text_add(o, ". To allow it: sendbox run --allow-hosts %s ...", rule);
	if (session)
		sb_text_add(o, ", or now: sendbox net %s --allow %s", session, rule);
}

/* @host: target in brackets if need be. */
static void remedy(struct sb_text *o, const struct reason *why, const char *host, uint16_t port,
		   const char *session)
{
	char rule[SB_NET_RULE_TEXT];
	char at[8] = "";

	if (port)
		(void)snprintf(at, sizeof(at), ":%u", (unsigned int)port);
	switch (why->remedy) {
	case ALLOW:
		if (strcmp(host, SB_HOST_NAME) == 0) {
			sb_text_add(o, ". To allow it: sendbox run --allow-host-port %s ...",
			    port ? at + 1 : "PORT");
			if (session && port)
				sb_text_add(o, ", or now: sendbox net %s --allow %s%s", session, host, at);
			break;
		}
		(void)snprintf(rule, sizeof(rule), "%s%s", host, at);
		suggest(o, rule, session);
		break;
	case ALLOW_NETWORK:
		sb_text_add(o, ". To allow it: sendbox run --allow-hosts ADDRESS%s ... with that address or its "
		       "network", at);
		if (session)
			sb_text_add(o, ", or now: sendbox net %s --allow ADDRESS%s", session, at);
		break;
	case ALLOW_ANY:
		(void)snprintf(rule, sizeof(rule), "%s%s/any", host, port ? at : ":PORT");
		suggest(o, rule, session);
		sb_text_add(o, " (any protocol, unchecked)");
		break;
	case DNS_TYPES:
		sb_text_add(o, ". To allow it: sendbox run --dns-types LIST ...");
		break;
	case RAISE:
		sb_text_add(o, ". To change it: sendbox run %s ...", why->option);
		break;
	case LIFT_DENIAL:
		sb_text_add(o, ". To allow it, start the session without that rule");
		break;
	case NOTHING:
	default:
		break;
	}
}

size_t sb_net_explain(enum sb_net_reason reason, const struct sb_net_rule *rule,
		      const char *target, uint16_t port, const char *session, char *out, size_t cap)
{
	const struct reason *why =
		&reasons[(size_t)reason < SB_ARRAY_LEN(reasons) ? reason : SB_NET_INTERNAL];
	char name[SB_NAME_MAX + 1];
	char host[SB_NAME_MAX + 3];
	char id[33] = "";
	struct sb_text o = { .p = out, .cap = cap };

	if (cap == 0)
		return 0;
	out[0] = '\0';
	safe(target ? target : "?", IN_NAME, name, sizeof(name));
	bracketed(name, host, sizeof(host));
	if (session)
		safe(session, IN_NAME, id, sizeof(id));
	sb_text_add(&o, "sendbox: %s: %s", why->name, port ? host : name);
	if (port)
		sb_text_add(&o, ":%u", (unsigned int)port);
	sb_text_add(&o, " %s", why->text);
	if (rule && rule->host) {
		char text[SB_NET_RULE_TEXT];
		char from[160];

		sb_net_rule_text(rule, text, sizeof(text));
		sb_text_add(&o, " (rule \"%s\"", text);
		safe(rule->from ? rule->from : "", IN_PLACE, from, sizeof(from));
		if (*from)
			sb_text_add(&o, " of %s", from);
		sb_text_add(&o, ")");
	}
	remedy(&o, why, host, port, session ? id : NULL);
	return o.len;
}
