#ifndef SB_CORE_NET_POLICY_H
#define SB_CORE_NET_POLICY_H
/*
 * What a session may reach: the plan's network part, and the one place that decides. Pure: no
 * descriptor, no clock, no randomness.
 *
 * Order: refused address classes, then deny rules, then rules that ask, then allow rules, then the mode's default
 * (filter: deny; open: allow). Names never unlock addresses: an address that an allowed name
 * resolves to must be public or inside an allowed network rule.
 */
#include "base/err.h"
#include "core/net_addr.h"
#include "core/net_name.h"

#define SB_NET_MAX_RULES 20000
#define SB_NET_MAX_RESOLVERS 4
#define SB_NET_MAX_PINS 1024
#define SB_NET_MAX_TYPES 16
#define SB_NET_PROXY_PORT 3128 /* on 127.0.0.1 of the guest: explicit proxy */

enum sb_net_mode {
	SB_NET_NONE = 0,   /* no gate at all: the guest has lo without routes */
	SB_NET_FILTER = 1, /* what no rule allows is denied; the default */
	SB_NET_OPEN = 2,   /* what no rule denies is allowed, restricted addresses excepted */
};
enum sb_net_proto {
	SB_PROTO_AUTO = 0,  /* TLS and HTTP are recognised and checked, the rest is opaque */
	SB_PROTO_HTTPS = 1, /* TLS whose server name is the name that was dialled, nothing else */
	SB_PROTO_HTTP = 2,  /* HTTP/1 whose every request names the name that was dialled */
	SB_PROTO_ANY = 3,   /* opaque bytes, unchecked */
};

struct sb_net_rule {
	bool deny;
	char *host;       /* name, "*.suffix", "*" (every name), address or network; canonical */
	uint16_t port_lo; /* 1..65535 */
	uint16_t port_hi; /* >= port_lo */
	enum sb_net_proto proto;
	char *from; /* where the rule comes from, for people: "--allow-hosts", "group npm" */
};
struct sb_net_pin { /* what the host's own hosts file says of an allowed name */
	char *name;
	char *addr;
};
struct sb_plan_net {
	enum sb_net_mode mode;
	struct sb_net_rule *rules; /* order has no meaning but for messages */
	size_t n_rules;
	struct sb_net_rule *ask; /* allow rules whose destinations are asked for first */
	size_t n_ask;
	struct sb_net_pin *pins;
	size_t n_pins;
	char **resolvers; /* NULL-terminated "address:port" or "[v6]:port"; may be empty: no names */
	char **dns_types; /* NULL-terminated further types than A, AAAA: "TXT", "MX", "SRV", ... */
	uint32_t max_connections;   /* 1..4096 at a time */
	uint64_t idle_ms;           /* without a byte in either direction; 0 = none */
	uint64_t session_bytes;     /* both directions, whole session; 0 = none */
	uint64_t host_bytes;        /* both directions, each name or address; 0 = none */
	uint32_t dns_queries;       /* a minute; 0 = none */
	uint32_t dns_new_names;     /* not yet seen names beneath wildcards, a minute; 0 = none */
	bool proxy_env;             /* set the proxy variables for the command */
	bool cname_strict;          /* every alias on the way must be allowed itself; otherwise only
				     * a deny rule for it counts */
	bool ech_outer;             /* allow encrypted client hello when the outer name agrees */
};
/* Frees what @n points to and zeroes it. */
void sb_plan_net_done(struct sb_plan_net *n);

/*
 * sb_net_rule_parse - a rule as people write it
 * @text: HOST[:PORTS][/PROTO]. HOST: name, *.suffix, *, address, network (IPv6 in brackets:
 *        [2606:4700::]:443, [fd00::/8] or [fd00::]/8); PORTS: PORT or PORT-PORT, several with
 *        "+"; PROTO: https, http, any, auto; not in a deny rule.
 *        "10.0.0.0/8" is a network: a /WORD that is a number belongs to the address.
 *        Without PORTS an allow rule stands for 443 and 80 (with /https or /http for that one), a
 *        deny rule and a network for all. SB_HOST_NAME needs single ports.
 *        Without PROTO: a name's 443 is https, its 80 is http, everything else auto; addresses
 *        have no name that could agree, so they are auto.
 * @add:  called for each resulting rule (host and from are borrowed for the call)
 * Return: 0; -EINVAL with the text in @err; what @add returned when it failed.
 */
SB_MUST_CHECK int sb_net_rule_parse(const char *text, size_t len, bool deny, const char *from,
				    int (*add)(void *arg, const struct sb_net_rule *r), void *arg,
				    struct sb_err *err);
/* Append a copy. Return: 0 (also when it is there already); -ENOMEM; -E2BIG. */
SB_MUST_CHECK int sb_net_rule_add(struct sb_plan_net *n, const struct sb_net_rule *r);
#define SB_NET_RULE_TEXT 300 /* room that suffices for a canonical rule */
/* The text that people write for @r, e.g. "example.com:443/https" or "deny *.example.com". What
 * follows "deny " parses to @r again. */
void sb_net_rule_text(const struct sb_net_rule *r, char *out, size_t cap);

/*
 * Every rule that needs nothing else of the plan: hosts and addresses canonical, ports and numbers
 * in range, deny rules without protocol; with SB_NET_NONE everything is empty or zero.
 * Return: 0; -EINVAL with text.
 */
SB_MUST_CHECK int sb_plan_net_check(const struct sb_plan_net *n, struct sb_err *err);

/* --- decisions --- */

/* Why something was refused; the names are stable and machine-readable. */
enum sb_net_reason {
	SB_NET_OK = 0,
	SB_NET_NAME_NOT_ALLOWED,    /* "name-not-allowed": no rule */
	SB_NET_NAME_DENIED,         /* "name-denied": a deny rule */
	SB_NET_PORT_NOT_ALLOWED,    /* "port-not-allowed": the name is allowed, this port is not */
	SB_NET_ADDR_NOT_ALLOWED,    /* "address-not-allowed": direct address without a rule */
	SB_NET_ADDR_DENIED,         /* "address-denied": a deny rule */
	SB_NET_ADDR_RESTRICTED,     /* "address-restricted": class that needs a network grant */
	SB_NET_ADDR_FORBIDDEN,      /* "address-forbidden": class that is never granted */
	SB_NET_ADDR_HOST,           /* "address-of-host": one of the host's own addresses */
	SB_NET_NAME_MALFORMED,      /* "name-malformed" */
	SB_NET_NAME_UNKNOWN,        /* "name-unknown": synthetic address that stands for nothing */
	SB_NET_CNAME_DENIED,        /* "cname-denied": an alias on the way is not allowed */
	SB_NET_RESOLVE_FAILED,      /* "resolve-failed": resolvers gave no usable answer */
	SB_NET_CONNECT_FAILED,      /* "connect-failed" */
	SB_NET_TLS_NAME,            /* "tls-name-mismatch" */
	SB_NET_TLS_NO_NAME,         /* "tls-no-name" */
	SB_NET_TLS_ECH,             /* "tls-encrypted-hello" */
	SB_NET_TLS_MALFORMED,       /* "tls-malformed": or too long */
	SB_NET_NOT_TLS,             /* "not-tls": another protocol on an https port */
	SB_NET_NOT_HTTP,            /* "not-http" */
	SB_NET_HTTP_HOST,           /* "http-host-mismatch" */
	SB_NET_HTTP_MALFORMED,      /* "http-malformed" */
	SB_NET_HTTP_UPGRADE,        /* "http-upgrade": a protocol change that is not allowed */
	SB_NET_PROXY_MALFORMED,     /* "proxy-malformed" */
	SB_NET_PROXY_COMMAND,       /* "proxy-command": BIND, UDP, ... */
	SB_NET_DNS_TYPE,            /* "dns-type" */
	SB_NET_DNS_MALFORMED,       /* "dns-malformed" */
	SB_NET_DNS_RATE,            /* "dns-rate" */
	SB_NET_DNS_NEW_NAMES,       /* "dns-new-names" */
	SB_NET_TOO_MANY,            /* "too-many-connections" */
	SB_NET_BUDGET,              /* "byte-budget" */
	SB_NET_IDLE,                /* "idle" */
	SB_NET_REVOKED,             /* "revoked": the rule was taken away while connected */
	SB_NET_NOT_APPROVED,        /* "not-approved": a rule asks first, and the answer was no */
	SB_NET_INTERNAL,            /* "internal" */
	SB_NET_NOT_RECORDED,        /* "not-recorded": nothing is done that is not on record first */
	SB_NET_N_REASONS,
};
const char *sb_net_reason_name(enum sb_net_reason r);

struct sb_net_verdict {
	bool allow;
	bool ask;                       /* allowed, once somebody has said yes */
	enum sb_net_reason reason;      /* SB_NET_OK when allowed */
	enum sb_net_proto proto;        /* when allowed */
	const struct sb_net_rule *rule; /* that decided; NULL = the default; borrowed from policy */
};

struct sb_netpol;
/* Compile. @n is copied as far as needed. Return: 0; -EINVAL; -ENOMEM. */
SB_MUST_CHECK int sb_netpol_new(const struct sb_plan_net *n, struct sb_netpol **ret,
				struct sb_err *err);
struct sb_netpol *sb_netpol_free(struct sb_netpol *p);

/*
 * @name: normalised. @port 0: whether any port is allowed (a DNS question).
 * Of several allow rules the one that is nearest decides @ret->proto: exact name, longest suffix,
 * "*"; then fewest ports; then the most lenient protocol.
 * SB_HOST_NAME is allowed by an exact rule only, never by "*", a wildcard or the default.
 */
void sb_netpol_name(const struct sb_netpol *p, const char *name, uint16_t port,
		    struct sb_net_verdict *ret);
/* A direct destination without a name. An allow rule "*" is about names only, a deny rule "*"
 * about everything, so that "deny *:25" holds for addresses too. */
void sb_netpol_addr(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
		    struct sb_net_verdict *ret);
/*
 * Whether an address that an allowed name resolved to may be dialled at @port. SB_HOST_NAME is
 * not asked here: its address is loopback by definition.
 */
void sb_netpol_resolved(const struct sb_netpol *p, const struct sb_addr *a, uint16_t port,
			struct sb_net_verdict *ret);
/* Whether @name is beneath a wildcard rule and no exact rule names it (budget of new names). */
bool sb_netpol_by_wildcard(const struct sb_netpol *p, const char *name);

/*
 * sb_net_explain - the one text for a refusal, the same in answers and records
 * @target: normalised name or address text; @addr: resolved address or NULL
 * Example: "sendbox: name-not-allowed: example.com:443 is not in this session's plan. To allow it:
 *           sendbox run --allow-hosts example.com:443 ..., or now: sendbox net <session> --allow example.com:443"
 * @session: 32 hex digits or NULL. Return: length without NUL, truncated to @cap.
 */
size_t sb_net_explain(enum sb_net_reason reason, const struct sb_net_rule *rule,
		      const char *target, uint16_t port, const char *session, char *out, size_t cap);

/* --- amendments of a running session --- */

#define SB_NET_AMEND_MAX 4000 /* bytes of one */
struct sb_net_amend {
	uint8_t session[16];
	uint64_t seq;     /* 1, 2, ...: each one once, in order */
	struct sb_net_rule *allow; /* rules to add */
	size_t n_allow;
	struct sb_net_rule *remove; /* allow rules to take away: same host and ports */
	size_t n_remove;
};
void sb_net_amend_done(struct sb_net_amend *a);
/* Canonical JSON, as the plan; signed with the host's key by who makes it. Of a rule to remove
 * only host and ports are kept. Return: 0; -EINVAL (a rule, no seq, nothing to do); -E2BIG
 * (SB_NET_AMEND_MAX); -ENOMEM. */
SB_MUST_CHECK int sb_net_amend_write(const struct sb_net_amend *a, char **ret, size_t *ret_len);
/* Return: 0; -EBADMSG when malformed, not canonical or against a rule; -ENOMEM. */
SB_MUST_CHECK int sb_net_amend_parse(const char *bytes, size_t len, struct sb_net_amend *ret,
				     struct sb_err *err);
/*
 * Change @n: first take away, whatever the protocol, then add; so that a rule in both lists is
 * replaced. Who calls has compared session and seq. Strings of rules that stay do not move.
 * Return: 0; -ENOENT when a rule to remove is not there; -EINVAL; -ENOMEM. On failure nothing is
 * changed.
 */
SB_MUST_CHECK int sb_net_amend_apply(const struct sb_net_amend *a, struct sb_plan_net *n,
				     struct sb_err *err);

#endif
