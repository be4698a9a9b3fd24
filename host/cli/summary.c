#include "summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/net_policy.h"

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
	e->dns_type = ev->dns_type;
	e->has_addr = ev->has_addr != 0;
	memcpy(e->addr, ev->addr, sizeof(e->addr));
}

/* ---- telling ---- */

struct telling {
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

/* What would allow it; "" when there is no such thing or no short word for it. */
static void way_out(const struct entry *e, const char *what, char *out, size_t cap)
{
	char addr[SB_ADDR_TEXT];

	out[0] = '\0';
	if (strcmp(e->name, SB_HOST_NAME) == 0 && e->port != 0 &&
	    (e->reason == SB_NET_NAME_NOT_ALLOWED || e->reason == SB_NET_PORT_NOT_ALLOWED)) {
		(void)snprintf(out, cap, "to allow it: sendbox run --allow-host-port %u ...", e->port);
		return;
	}
	switch ((enum sb_net_reason)e->reason) {
	case SB_NET_NAME_NOT_ALLOWED:
	case SB_NET_PORT_NOT_ALLOWED:
	case SB_NET_ADDR_NOT_ALLOWED:
		(void)snprintf(out, cap, "to allow it: sendbox run --allow-hosts %s ...", what);
		break;
	case SB_NET_ADDR_RESTRICTED: /* the name is allowed, its address is of a private network */
		if (!e->has_addr)
			break;
		sb_addr_format((const struct sb_addr *)(const void *)e->addr, addr);
		(void)snprintf(out, cap, strchr(addr, ':')
			       ? "to allow its address: sendbox run --allow-hosts [%s]:%u ..."
			       : "to allow its address: sendbox run --allow-hosts %s:%u ...",
			       addr, e->port);
		break;
	case SB_NET_ADDR_HOST:
		(void)snprintf(out, cap, "this host's own ports: sendbox run --allow-host-port %u ..., "
			       "as " SB_HOST_NAME, e->port);
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
		(void)snprintf(out, cap, "to allow it: --dns-types with the type of number %u",
			       e->dns_type);
		break;
	case SB_NET_OK:
	case SB_NET_ADDR_FORBIDDEN:
	case SB_NET_NAME_MALFORMED:
	case SB_NET_NAME_UNKNOWN:
	case SB_NET_CNAME_DENIED:
	case SB_NET_RESOLVE_FAILED:
	case SB_NET_CONNECT_FAILED:
	case SB_NET_TLS_MALFORMED:
	case SB_NET_HTTP_MALFORMED:
	case SB_NET_PROXY_MALFORMED:
	case SB_NET_PROXY_COMMAND:
	case SB_NET_DNS_MALFORMED:
	case SB_NET_BUDGET:
	case SB_NET_IDLE:
	case SB_NET_REVOKED:
	case SB_NET_INTERNAL:
	case SB_NET_N_REASONS:
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
	way_out(e, what, way, sizeof(way));
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

void summary_tell(const struct summary *s, void (*line)(void *arg, const char *text), void *arg)
{
	struct telling t = { .line = line, .arg = arg };
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
