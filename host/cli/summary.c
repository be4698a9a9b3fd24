#include "summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/dns.h"

#define ALLOW_IT "to allow it: sendbox run --allow-hosts %s ..."
#define OWN_PORT "an address of this machine; to allow the port: sendbox run --allow-host-port %u ..., " \
		 "as " SB_HOST_NAME
#define SLOTS 2048 /* a power of two, at most half full */

struct entry {
	char *name; /* owned; NULL = free */
	uint16_t port;
	uint16_t reason; /* enum sb_net_reason */
	bool cut;        /* allowed connections that were ended */
	uint64_t count;
	uint16_t dns_type;
	bool has_addr;
	uint8_t addr[16];
};

struct summary {
	struct entry slots[SLOTS];
	uint16_t order[SUMMARY_MAX]; /* slots in the order of their coming */
	size_t n;
	uint64_t beyond; /* refusals that had no place */
	uint64_t lost;   /* refusals that the gate could only count */
	bool saw_host;
};

int summary_new(struct summary **ret)
{
	struct summary *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*ret = s;
	return 0;
}

struct summary *summary_free(struct summary *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		free(s->slots[s->order[i]].name);
	free(s);
	return NULL;
}

static struct entry *entry_of(struct summary *s, const char *name, size_t len, uint16_t port,
			      uint16_t reason, bool cut)
{
	uint32_t h = 2166136261U ^ port ^ (uint32_t)reason << 16; /* FNV-1a */
	size_t at;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619U;
	for (at = h % SLOTS; s->slots[at].name; at = (at + 1) % SLOTS) {
		struct entry *e = &s->slots[at];

		if (e->port == port && e->reason == reason && e->cut == cut &&
		    strncmp(e->name, name, len) == 0 && !e->name[len])
			return e;
	}
	if (s->n == SUMMARY_MAX)
		return NULL;
	s->slots[at] = (struct entry){ .name = strndup(name, len), .port = port, .reason = reason,
				       .cut = cut };
	if (!s->slots[at].name)
		return NULL;
	s->order[s->n++] = (uint16_t)at;
	return &s->slots[at];
}

void summary_add(struct summary *s, const struct sb_ipc_net_event *ev)
{
	uint64_t count = SB_MAX(ev->count, 1U);
	bool denied = !ev->allow && (ev->kind == SB_NET_EV_CONNECT || ev->kind == SB_NET_EV_DNS ||
				     ev->kind == SB_NET_EV_REQUEST);
	bool cut = ev->kind == SB_NET_EV_CLOSED && ev->reason != SB_NET_OK;
	struct entry *e;

	if (strncmp(ev->name, SB_HOST_NAME, sizeof(ev->name)) == 0)
		s->saw_host = true;
	if (ev->kind == SB_NET_EV_LOST && !ev->allow)
		s->lost += count;
	if (!denied && !cut)
		return;
	e = entry_of(s, ev->name, strnlen(ev->name, sizeof(ev->name)),
		     ev->kind == SB_NET_EV_DNS ? 0 : ev->port, ev->reason, cut);
	if (!e) {
		s->beyond += count;
		return;
	}
	e->count += count;
	if (e->dns_type != SB_DNS_A && e->dns_type != SB_DNS_AAAA)
		e->dns_type = ev->dns_type;
	e->has_addr = ev->has_addr != 0;
	memcpy(e->addr, ev->addr, sizeof(e->addr));
}

bool summary_saw_host(const struct summary *s)
{
	return s->saw_host;
}

/* ---- telling ---- */

struct telling {
	bool (*own)(const struct sb_addr *a);
	bool builder;
	void (*line)(void *arg, const char *text);
	void *arg;
	size_t lines;
};

static void say(struct telling *t, const char *text)
{
	t->line(t->arg, text);
	t->lines++;
}

static const char *reason_of(uint16_t reason)
{
	return sb_net_reason_name(reason < SB_NET_N_REASONS ? (enum sb_net_reason)reason
							    : SB_NET_INTERNAL);
}

/* NAME, NAME:PORT or [ADDRESS]:PORT */
static void target(const char *name, uint16_t port, char *out, size_t cap)
{
	bool brackets = strchr(name, ':') != NULL;

	if (name[0] == '\0')
		name = "(no name)";
	if (port == 0)
		(void)snprintf(out, cap, brackets ? "[%s]" : "%s", name);
	else
		(void)snprintf(out, cap, brackets ? "[%s]:%u" : "%s:%u", name, port);
}

/* A private address: the name is allowed, or it was dialled itself. */
static void way_to_address(const struct entry *e, bool (*own)(const struct sb_addr *a), char *out,
			   size_t cap)
{
	char text[SB_ADDR_TEXT];
	char rule[SB_ADDR_TEXT + 16];
	struct sb_addr a;

	memcpy(a.b, e->addr, sizeof(a.b));
	if (own(&a)) {
		(void)snprintf(out, cap, OWN_PORT, e->port);
		return;
	}
	sb_addr_format(&a, text);
	target(text, e->port, rule, sizeof(rule));
	if (strcmp(text, e->name) == 0)
		(void)snprintf(out, cap, ALLOW_IT, rule);
	else
		(void)snprintf(out, cap, "to allow its address too: add --allow-hosts %s", rule);
}

/* A question for neither A nor AAAA; most come from programs that go on without an answer. */
static void way_to_records(const struct entry *e, const char *what, char *out, size_t cap)
{
	const char *type = sb_dns_type_name(e->dns_type);

	if (type)
		(void)snprintf(out, cap, "asked for %s only; to allow it: sendbox run --allow-hosts %s "
			       "--dns-types %s ...", type, what, type);
}

static bool for_address(const struct entry *e)
{
	return e->port != 0 || e->dns_type == 0 || e->dns_type == SB_DNS_A ||
	       e->dns_type == SB_DNS_AAAA;
}

/* What would allow it; "" when there is no such thing or no short word for it. */
static void way_out(const struct entry *e, const char *what, bool (*own)(const struct sb_addr *a),
		    char *out, size_t cap)
{
	const char *type;

	out[0] = '\0';
	if (strcmp(e->name, SB_HOST_NAME) == 0 &&
	    (e->reason == SB_NET_NAME_NOT_ALLOWED || e->reason == SB_NET_PORT_NOT_ALLOWED)) {
		if (e->port)
			(void)snprintf(out, cap, "to allow it: sendbox run --allow-host-port %u ...",
				       e->port);
		else
			(void)snprintf(out, cap, "to allow it: sendbox run --allow-host-port PORT ...");
		return;
	}
	switch ((enum sb_net_reason)e->reason) {
	case SB_NET_NAME_NOT_ALLOWED:
	case SB_NET_PORT_NOT_ALLOWED:
	case SB_NET_ADDR_NOT_ALLOWED:
		if (for_address(e))
			(void)snprintf(out, cap, ALLOW_IT, what);
		else
			way_to_records(e, what, out, cap);
		break;
	case SB_NET_ADDR_RESTRICTED:
		if (e->has_addr)
			way_to_address(e, own, out, cap);
		break;
	case SB_NET_ADDR_HOST:
		(void)snprintf(out, cap, OWN_PORT, e->port);
		break;
	case SB_NET_NOT_TLS:
	case SB_NET_NOT_HTTP:
	case SB_NET_TLS_NAME:
	case SB_NET_TLS_NO_NAME:
	case SB_NET_HTTP_HOST:
	case SB_NET_HTTP_UPGRADE:
		(void)snprintf(out, cap, "to allow it unchecked: sendbox run --allow-hosts %s/any ...",
			       what);
		break;
	case SB_NET_TLS_ECH:
		(void)snprintf(out, cap, "to allow it: sendbox run --allow-ech ...");
		break;
	case SB_NET_NAME_DENIED:
	case SB_NET_ADDR_DENIED:
		(void)snprintf(out, cap, "a rule of --deny-hosts denies it");
		break;
	case SB_NET_DNS_RATE:
		(void)snprintf(out, cap, "to allow more questions: --dns-queries N");
		break;
	case SB_NET_DNS_NEW_NAMES:
		(void)snprintf(out, cap, "to allow more new names: --dns-new-names N");
		break;
	case SB_NET_TOO_MANY:
		(void)snprintf(out, cap, "to allow more at a time: --net-connections N");
		break;
	case SB_NET_DNS_TYPE:
		type = sb_dns_type_name(e->dns_type);
		if (type)
			(void)snprintf(out, cap, "to allow it: sendbox run --dns-types %s ...", type);
		break;
	case SB_NET_RESOLVE_FAILED:
		(void)snprintf(out, cap, "allowed, but this machine's resolvers have no answer");
		break;
	case SB_NET_CONNECT_FAILED:
		(void)snprintf(out, cap, strcmp(e->name, SB_HOST_NAME) == 0
			       ? "allowed, but nothing listens there on this machine"
			       : "allowed, but nobody answers there");
		break;
	case SB_NET_NOT_APPROVED:
		(void)snprintf(out, cap, "policy.network.ask asks for it: see sendbox approvals, "
			       "approvals.mode, approvals.hook");
		break;
	case SB_NET_OK:
	case SB_NET_ADDR_FORBIDDEN:
	case SB_NET_NAME_MALFORMED:
	case SB_NET_NAME_UNKNOWN:
	case SB_NET_CNAME_DENIED:
	case SB_NET_TLS_MALFORMED:
	case SB_NET_HTTP_MALFORMED:
	case SB_NET_PROXY_MALFORMED:
	case SB_NET_PROXY_COMMAND:
	case SB_NET_DNS_MALFORMED:
	case SB_NET_BUDGET:
	case SB_NET_IDLE:
	case SB_NET_REVOKED:
	case SB_NET_INTERNAL:
	case SB_NET_NOT_RECORDED:
	case SB_NET_N_REASONS:
	default:
		break;
	}
}

void summary_way(const struct sb_ipc_net_event *ev, bool (*own)(const struct sb_addr *a), char *out,
		 size_t cap)
{
	char name[sizeof(ev->name) + 1];
	char what[sizeof(ev->name) + 16];
	struct entry e = { .name = name, .port = ev->port, .reason = ev->reason,
			   .dns_type = ev->dns_type, .has_addr = ev->has_addr != 0 };

	(void)snprintf(name, sizeof(name), "%.*s", (int)sizeof(ev->name), ev->name);
	memcpy(e.addr, ev->addr, sizeof(e.addr));
	target(name, ev->port, what, sizeof(what));
	way_out(&e, what, own, out, cap);
}

/* The same for a builder: "" when its definition cannot change it. */
static void way_of_builder(const struct entry *e, const char *what, char *out, size_t cap)
{
	char rule[SB_ADDR_TEXT + 16];
	char text[SB_ADDR_TEXT];
	struct sb_addr a;

	out[0] = '\0';
	switch (e->reason) {
	case SB_NET_NAME_NOT_ALLOWED:
	case SB_NET_PORT_NOT_ALLOWED:
	case SB_NET_ADDR_NOT_ALLOWED:
		if (for_address(e))
			(void)snprintf(out, cap, "for installations to reach it: \"%s\" in "
				       "packageGroups of the agent's definition", what);
		break;
	case SB_NET_ADDR_RESTRICTED:
		if (!e->has_addr)
			break;
		memcpy(a.b, e->addr, sizeof(a.b));
		sb_addr_format(&a, text);
		target(text, e->port, rule, sizeof(rule));
		(void)snprintf(out, cap, "the name is allowed, its private address is not; for "
			       "installations to reach it: \"%s\" in packageGroups of the agent's "
			       "definition, too", rule);
		break;
	default:
		break;
	}
}

static const char *times(uint64_t n, char *out, size_t cap)
{
	(void)snprintf(out, cap, n == 1 ? "once" : "%llu times", (unsigned long long)n);
	return out;
}

/* The dial itself failed: the policy allowed it, so it was not denied. */
static bool only_failed(uint16_t reason)
{
	return reason == SB_NET_RESOLVE_FAILED || reason == SB_NET_CONNECT_FAILED ||
	       reason == SB_NET_INTERNAL;
}

static void tell_entry(const struct entry *e, uint64_t count, struct telling *t)
{
	const char *verb = e->cut ? "cut" : only_failed(e->reason) ? "failed" : "denied";
	char what[300];
	char text[640];
	char way[400];
	char n[32];

	target(e->name, e->port, what, sizeof(what));
	(void)snprintf(text, sizeof(text), "network: %s %s: %s (%s)", verb,
		       times(count, n, sizeof(n)), what, reason_of(e->reason));
	say(t, text);
	if (t->builder)
		way_of_builder(e, what, way, sizeof(way));
	else
		way_out(e, what, t->own, way, sizeof(way));
	if (way[0] && !e->cut) {
		(void)snprintf(text, sizeof(text), "  %s", way);
		say(t, text);
	}
}

/* A question that was denied for the reason of a connection by the same name is told with it. */
static const struct entry *partner(const struct summary *s, const struct entry *e)
{
	if (e->cut)
		return NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct entry *o = &s->slots[s->order[i]];

		if (!o->cut && o->reason == e->reason && (o->port == 0) != (e->port == 0) &&
		    strcmp(o->name, e->name) == 0)
			return o;
	}
	return NULL;
}

/* Lines that an entry takes at most. */
#define ENTRY_LINES 2

void summary_tell(const struct summary *s, bool (*own)(const struct sb_addr *a), bool builder,
		  void (*line)(void *arg, const char *text), void *arg)
{
	struct telling t = { .own = own, .builder = builder, .line = line, .arg = arg };
	uint64_t rest = s->beyond + s->lost;
	size_t left = 0;
	char text[200];

	for (size_t i = 0; i < s->n; i++) {
		const struct entry *e = &s->slots[s->order[i]];
		const struct entry *o = partner(s, e);
		uint64_t count = e->count;

		if (o && e->port == 0)
			continue;
		/* with the first port alone */
		if (o && partner(s, o) == e)
			count += o->count;
		if (t.lines + ENTRY_LINES + 1 <= SUMMARY_LINES) {
			tell_entry(e, count, &t);
			continue;
		}
		left++;
		rest += count;
	}
	if (rest == 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "network: and %llu more refusals%s; --json or sendbox net --follow show all",
		       (unsigned long long)rest, left + s->beyond > 0 ? " of other names" : "");
	say(&t, text);
}
