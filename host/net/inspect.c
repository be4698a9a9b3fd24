/*
 * Agreement of names. Who allowed "a.example" meant that server and no other that shares its
 * address, so the name inside of the bytes has to be the name that was dialled.
 *
 *   https  a TLS ClientHello with that server name, nothing else; the rest is opaque (tls.c)
 *   http   HTTP/1, each request names it (http.c)
 *   auto   the first bytes tell: a ClientHello as https, an HTTP/1 request as http, everything
 *          else is opaque. The server may speak first.
 *   any    opaque
 *
 * A direct address (granted as such) has no name to agree with: the name inside may be anything
 * but one that a deny rule names, and may be absent or encrypted; only the form is checked. The
 * same holds in open mode for every target: open means open.
 *
 * auto is strict where a lenient server could read what we do not: anything that begins like a
 * ClientHello or like a request line and then is none in full form is refused.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "net/conn.h"
#include "wire/tls_hello.h"

#define METHOD_MAX 32
#define LINE_MAX_LOOK 8192 /* a first line that may still become a request */

void inspect_done(struct conn *c)
{
	free(c->insp);
	c->insp = NULL;
}

int inspect_begin(struct conn *c)
{
	enum sb_net_proto proto = (enum sb_net_proto)c->ev.proto;

	inspect_done(c);
	c->say = SAY_RESET;
	if (proto == SB_PROTO_ANY) {
		c->up.mode = WAY_PASS;
		c->down.mode = WAY_PASS;
		conn_clear(c);
		return 0;
	}
	c->insp = calloc(1, sizeof(*c->insp));
	if (!c->insp)
		return -ENOMEM;
	c->up.mode = WAY_LOOK;
	c->up.wait = false;
	c->down.mode = WAY_HOLD;
	switch (proto) {
	case SB_PROTO_HTTPS:
		c->insp->kind = INSP_TLS;
		c->say = SAY_TLS;
		conn_look_within(c, &c->look_by, conn_look_ns);
		break;
	case SB_PROTO_HTTP:
		c->insp->kind = INSP_HTTP;
		c->say = SAY_HTTP;
		conn_look_within(c, &c->look_by, conn_look_ns);
		break;
	case SB_PROTO_AUTO:
	case SB_PROTO_ANY:
		c->insp->kind = INSP_FIRST;
		c->down.mode = WAY_PASS;
		break;
	}
	return 0;
}

bool inspect_strict(const struct conn *c)
{
	return !c->by_addr && c->g->plan->net.mode != SB_NET_OPEN;
}

bool inspect_agree(struct conn *c, const char *text, size_t len, enum sb_net_reason reason)
{
	char name[SB_NAME_MAX + 1];
	struct sb_net_verdict v;
	struct sb_addr a;

	if (sb_name_normalise(text, len, name) == 0) {
		if (!c->by_addr && strcmp(name, c->ev.name) == 0)
			return true;
		if (!inspect_strict(c)) {
			sb_netpol_name(c->g->pol, name, c->ev.port, &v);
			if (v.allow || v.reason != SB_NET_NAME_DENIED)
				return true;
			conn_refuse(c, v.reason, v.rule);
			return false;
		}
	} else if (!inspect_strict(c) && sb_addr_parse(text, len, &a) == 0) {
		sb_netpol_addr(c->g->pol, &a, c->ev.port, &v);
		if (v.allow || v.reason != SB_NET_ADDR_DENIED)
			return true;
		conn_refuse(c, v.reason, v.rule);
		return false;
	}
	conn_refuse(c, reason, NULL);
	return false;
}

enum look inspect_over(struct conn *c)
{
	inspect_done(c);
	c->up.mode = WAY_PASS;
	c->down.mode = WAY_PASS;
	c->say = SAY_RESET;
	c->kick = true;
	conn_clear(c);
	return LOOK_ON;
}

/* --- first bytes of an "auto" connection --- */

static bool is_token(uint8_t b)
{
	return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
	       (b != 0 && strchr("!#$%&'*+-.^_`|~", b));
}

/* In use, or registered; PROXY is what a load balancer says before its client's request. */
static bool is_known_method(const char *p, size_t len)
{
	static const char *const known[] = {
		"GET",		"HEAD",		"POST",		"PUT",		"DELETE",
		"OPTIONS",	"PATCH",	"TRACE",	"CONNECT",	"ACL",
		"BASELINE-CONTROL", "BIND",	"CHECKIN",	"CHECKOUT",	"COPY",
		"LABEL",	"LINK",		"LOCK",		"MERGE",	"MKACTIVITY",
		"MKCALENDAR",	"MKCOL",	"MKREDIRECTREF", "MKWORKSPACE",	"MOVE",
		"ORDERPATCH",	"PROPFIND",	"PROPPATCH",	"PROXY",	"PURGE",
		"QUERY",	"REBIND",	"REPORT",	"SEARCH",	"UNBIND",
		"UNCHECKOUT",	"UNLINK",	"UNLOCK",	"UPDATE",	"UPDATEREDIRECTREF",
		"VERSION-CONTROL",
	};
	const struct sb_http_str s = { .p = p, .len = len };

	for (size_t i = 0; i < SB_ARRAY_LEN(known); i++)
		if (sb_http_str_is(&s, known[i]))
			return true;
	return false;
}

/* What some server takes for a blank: Python's splits at all of these. */
static bool is_blank(uint8_t b)
{
	return b == ' ' || b == '\t' || b == '\v' || b == '\f' || (b >= 0x1c && b <= 0x1f) ||
	       b == 0x85 || b == 0xa0;
}

static bool has_version(const char *p, size_t len)
{
	for (size_t i = 0; i + 5 <= len; i++)
		if (strncasecmp(p + i, "HTTP/", 5) == 0)
			return true;
	return false;
}

/*
 * Whether the first line is one that some HTTP server might take for a request: a word and a blank,
 * and the word is a method that is in use, or the line speaks of HTTP.
 * Return: 1; 0 = more bytes are needed; -1 = it is none
 */
static int request_ahead(const char *p, size_t len)
{
	const char *nl = memchr(p, '\n', len);
	size_t n = 0;

	while (n < len && n <= METHOD_MAX && is_token((uint8_t)p[n]))
		n++;
	if (n > METHOD_MAX)
		return -1;
	if (n == len)
		return 0;
	if (n == 0 || !is_blank((uint8_t)p[n]))
		return -1;
	if (is_known_method(p, n) || has_version(p, nl ? (size_t)(nl - p) : len))
		return 1;
	for (size_t i = n; i < len && !nl; i++)
		if ((uint8_t)p[i] < 0x20 && !is_blank((uint8_t)p[i]) && p[i] != '\r')
			return -1; /* in no request that a server would take */
	return nl || len > LINE_MAX_LOOK ? -1 : 0;
}

static enum look become_http(struct conn *c)
{
	c->insp->kind = INSP_HTTP;
	/* a server that spoke first: its responses cannot be told apart */
	c->insp->lost = c->down.bytes > 0 || c->down.eof;
	c->down.mode = c->insp->lost ? WAY_PASS : WAY_HOLD;
	c->say = SAY_HTTP;
	return LOOK_ON;
}

/* Many servers skip empty lines before a request, some blanks; then it must not pass unseen. */
static enum look first_line(struct conn *c, const uint8_t *p, size_t len)
{
	struct sb_http_request q;
	const char *why = NULL;
	size_t skip = 0;
	int r;

	while (skip < len && (p[skip] == '\r' || p[skip] == '\n' || is_blank(p[skip])))
		skip++;
	r = request_ahead((const char *)p + skip, len - skip);
	if (r < 0)
		return inspect_over(c);
	if (r > 0)
		r = sb_http_request_parse((const char *)p + skip, len - skip, &q, &why);
	else
		r = SB_HTTP_MORE;
	if (r < 0 && http_is_2(p + skip, len - skip)) {
		conn_refuse(c, SB_NET_HTTP_UPGRADE, NULL);
		return LOOK_ON;
	}
	if (r == SB_HTTP_MORE && !c->up.eof) {
		if (c->look_by == 0)
			conn_look_within(c, &c->look_by, conn_look_ns);
		return LOOK_MORE;
	}
	(void)become_http(c);
	if (r == 0 && skip == 0)
		return LOOK_ON;
	conn_refuse(c, SB_NET_HTTP_MALFORMED, NULL);
	return LOOK_ON;
}

/* More bytes are needed to say what it is. */
static enum look first_more(struct conn *c)
{
	if (c->up.eof)
		return inspect_over(c); /* nothing whole, whatever it was */
	if (c->look_by == 0)
		conn_look_within(c, &c->look_by, conn_look_ns);
	return LOOK_MORE;
}

static enum look first_look(struct conn *c)
{
	const uint8_t *p = c->up.buf + c->up.at;
	size_t len = c->up.len;
	int old = tls_old_hello(p, len);
	int stray = tls_stray_record(p, len);

	if (p[0] == SB_TLS_HANDSHAKE && len > 1 && p[1] == 3) {
		c->insp->kind = INSP_TLS;
		return tls_up(c);
	}
	if (stray > 0)
		return tls_refuse(c, SB_NET_TLS_MALFORMED);
	if (old > 0 && inspect_strict(c))
		return tls_refuse(c, SB_NET_TLS_NO_NAME);
	if (stray == 0 || old == 0)
		return first_more(c);
	return old > 0 ? inspect_over(c) : first_line(c, p, len);
}

enum look inspect_look(struct conn *c, struct way *w)
{
	sb_assert(w == &c->up);
	switch (c->insp->kind) {
	case INSP_FIRST:
		return first_look(c);
	case INSP_TLS:
	case INSP_TLS_REPLY:
	case INSP_TLS_AGAIN:
		return tls_up(c);
	case INSP_HTTP:
		return http_up(c);
	case INSP_NONE:
		break;
	}
	return LOOK_MORE;
}

bool inspect_eof(struct conn *c)
{
	if (c->insp->kind != INSP_TLS && (c->cleared || c->insp->kind == INSP_FIRST))
		return false;
	conn_left(c);
	return true;
}
