/*
 * The explicit proxy on 127.0.0.1:SB_NET_PROXY_PORT of the guest, for programs that insist: SOCKS4,
 * 4a and 5 (CONNECT only), HTTP CONNECT, and requests in absolute form. The first byte tells. Every
 * destination is decided as if it had been dialled; names are resolved on the host.
 *
 * CONNECT and SOCKS: the answer waits for the upstream, so that a failure can be told; then the
 * connection is one to that target, with the inspection that its port asks for.
 *
 * Absolute form: each request is decided for its own authority. One upstream at a time: when the
 * authority changes, the request waits until the response before it has gone by, then the old
 * upstream is left and the new one is dialled. The head is rewritten to origin form with the
 * authority as its Host; fields named Proxy-... are for us and end here. A Host that names somebody
 * else than the authority is refused rather than replaced: nobody honest sends it.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "net/conn.h"
#include "wire/socks.h"

void proxy_begin(struct conn *c)
{
	c->asked = true;
	c->phase = CONN_PROXY;
	c->up.mode = WAY_LOOK;
	c->down.mode = WAY_HOLD;
	conn_look_within(c, &c->look_by, conn_look_ns);
	c->kick = true;
}

/* Refused before there is a target. */
static enum look bad(struct conn *c, enum sb_net_reason reason)
{
	static const char name[] = "127.0.0.1";

	if (c->ev.name[0] == '\0') {
		memcpy(c->ev.name, name, sizeof(name));
		c->ev.port = SB_NET_PROXY_PORT;
	}
	conn_refuse(c, reason, NULL);
	return LOOK_ON;
}

/* --- SOCKS --- */

size_t proxy_socks_answer(const struct conn *c, enum sb_net_reason reason, int error, uint8_t *out)
{
	uint8_t code = 2;

	switch ((int)reason) {
	case SB_NET_OK:
		code = 0;
		break;
	case SB_NET_PROXY_MALFORMED:
	case SB_NET_INTERNAL:
		code = 1;
		break;
	case SB_NET_PROXY_COMMAND:
		code = 7;
		break;
	case SB_NET_RESOLVE_FAILED:
		code = 4;
		break;
	case SB_NET_CONNECT_FAILED:
		code = error == ECONNREFUSED ? 5 : error == ENETUNREACH ? 3 : 4;
		break;
	default:
		break;
	}
	return sb_socks_reply(c->socks, code, NULL, 0, out);
}

static enum look socks5_offer(struct conn *c)
{
	static const uint8_t yes[2] = { 5, 0 };
	bool no_auth = false;
	size_t n = 0;
	int r = sb_socks5_offer(c->up.buf + c->up.at, c->up.len, &n, &no_auth);

	if (r == SB_SOCKS_MORE && !c->up.eof)
		return LOOK_MORE;
	if (r != 0 || !no_auth) {
		/* nothing that could carry a reason; 0xff: no method is acceptable */
		c->say = r == 0 ? SAY_SOCKS5_METHOD : SAY_RESET;
		return bad(c, SB_NET_PROXY_MALFORMED);
	}
	way_drop(&c->up, n);
	c->socks_offered = true;
	if (way_say(&c->down, yes, sizeof(yes)) < 0)
		return bad(c, SB_NET_INTERNAL);
	c->kick = true;
	return LOOK_ON;
}

static enum look socks_look(struct conn *c)
{
	struct sb_socks_request q;
	struct sb_addr a;
	int r;

	c->ev.via = SB_NET_VIA_SOCKS;
	if (c->socks == 5 && !c->socks_offered)
		return socks5_offer(c);
	c->say = c->socks == 5 ? SAY_SOCKS5 : SAY_SOCKS4;
	r = sb_socks_request(c->up.buf + c->up.at, c->up.len, &q);
	if (r == SB_SOCKS_MORE && !c->up.eof && c->up.len < SB_SOCKS_MAX)
		return LOOK_MORE;
	if (r != 0)
		return bad(c, SB_NET_PROXY_MALFORMED);
	if (q.cmd != SB_SOCKS_CONNECT)
		return bad(c, SB_NET_PROXY_COMMAND);
	way_drop(&c->up, q.len);
	c->look_by = 0;
	c->up.wait = true;
	if (q.is_name) {
		conn_to_text(c, q.host, q.host_len, q.port);
	} else {
		memcpy(a.b, q.addr, sizeof(a.b));
		conn_to_addr(c, &a, q.port);
	}
	return LOOK_ON;
}

/* --- HTTP --- */

static enum look connect_look(struct conn *c, const struct sb_http_request *q)
{
	struct sb_http_str host;
	char text[256];
	uint16_t port;
	size_t len;
	bool v6;

	c->ev.via = SB_NET_VIA_CONNECT;
	if (q->body != SB_HTTP_NO_BODY ||
	    sb_http_authority(&q->authority, &host, &v6, &port) < 0 || port == 0 ||
	    host.len > sizeof(text))
		return bad(c, SB_NET_PROXY_MALFORMED);
	len = host.len;
	memcpy(text, host.p, len);
	way_drop(&c->up, q->head_len); /* @q is gone with it */
	c->look_by = 0;
	c->up.wait = true;
	conn_to_text(c, text, len, port);
	return LOOK_ON;
}

static enum look http_look(struct conn *c)
{
	struct sb_http_request q;
	const char *why = NULL;
	int r;

	c->say = SAY_HTTP;
	r = sb_http_request_parse((const char *)c->up.buf + c->up.at, c->up.len, &q, &why);
	if (r == SB_HTTP_MORE && !c->up.eof)
		return LOOK_MORE;
	if (r != 0)
		return bad(c, SB_NET_PROXY_MALFORMED);
	if (q.form == SB_HTTP_AUTHORITY)
		return connect_look(c, &q);
	if (q.form != SB_HTTP_ABSOLUTE)
		return bad(c, SB_NET_PROXY_MALFORMED);
	c->ev.via = SB_NET_VIA_HTTP;
	c->insp = calloc(1, sizeof(*c->insp));
	if (!c->insp)
		return bad(c, SB_NET_INTERNAL);
	c->insp->kind = INSP_HTTP;
	return http_up(c);
}

static bool is_proxy_field(const struct sb_http_str *name)
{
	return name->len > 6 && strncasecmp(name->p, "proxy-", 6) == 0;
}

static void add_str(struct sb_buf *b, const struct sb_http_str *s)
{
	sb_buf_add(b, s->p, s->len);
}

static void origin_form(const struct sb_http_request *q, struct sb_buf *b)
{
	add_str(b, &q->method);
	sb_buf_add_u8(b, ' ');
	if (q->path.len == 0)
		sb_buf_add_str(b, sb_http_str_is(&q->method, "OPTIONS") ? "*" : "/");
	else if (q->path.p[0] != '/')
		sb_buf_add_u8(b, '/');
	add_str(b, &q->path);
	sb_buf_addf(b, " HTTP/1.%u\r\nHost: ", (unsigned int)q->minor);
	add_str(b, &q->authority);
	sb_buf_add_str(b, "\r\n");
	for (size_t i = 0; i < q->n_fields; i++)
		if (!sb_http_str_is(&q->fields[i].name, "host") &&
		    !is_proxy_field(&q->fields[i].name))
			http_add_field(b, q, i);
	sb_buf_add_str(b, "\r\n");
}

static bool same_host(const struct sb_http_str *a, const struct sb_http_str *b)
{
	return a->len == b->len && strncasecmp(a->p, b->p, a->len) == 0;
}

/* The Host field, where there is one, names the authority. */
static bool host_agrees(const struct sb_http_request *q, const struct sb_http_str *host,
			uint16_t port)
{
	struct sb_http_str own;
	uint16_t own_port;
	bool v6;

	if (!q->has_host)
		return true;
	if (sb_http_authority(&q->host, &own, &v6, &own_port) < 0)
		return false;
	return same_host(&own, host) && (own_port == 0 ? port == 80 : own_port == port);
}

/* Whether the present upstream is the one for @host. */
static bool is_target(const struct conn *c, const struct sb_http_str *host, uint16_t port)
{
	char name[SB_NAME_MAX + 1];
	struct sb_addr a;

	if (c->ev.name[0] == '\0' || c->ev.port != port || c->down.eof || c->server.gone)
		return false;
	if (sb_addr_parse(host->p, host->len, &a) == 0) {
		char text[SB_ADDR_TEXT];

		sb_addr_format(&a, text);
		return c->by_addr && strcmp(text, c->ev.name) == 0;
	}
	return sb_name_normalise(host->p, host->len, name) == 0 && !c->by_addr &&
	       strcmp(name, c->ev.name) == 0;
}

/* Turn to another authority. Return: whether it is allowed and on its way */
static bool turn_to(struct conn *c, const struct sb_http_str *host, uint16_t port)
{
	if (c->ev.name[0] != '\0')
		conn_leave(c);
	*c->insp = (struct insp){ .kind = INSP_HTTP };
	c->down.mode = WAY_HOLD;
	c->say = SAY_HTTP;
	conn_to_text(c, host->p, host->len, port);
	if (c->phase == CONN_ASKING)
		c->up.wait = true; /* conn_answer has it looked at again */
	if (c->phase != CONN_OPENING)
		return false;
	if (c->ev.proto == SB_PROTO_HTTPS) {
		conn_refuse(c, SB_NET_NOT_TLS, NULL);
		return false;
	}
	return true;
}

enum look proxy_request(struct conn *c, const struct sb_http_request *q)
{
	sb_autobuf struct sb_buf head;
	struct sb_http_str host;
	uint16_t port;
	bool v6;

	if (q->form != SB_HTTP_ABSOLUTE || !sb_http_str_is(&q->scheme, "http") ||
	    sb_http_authority(&q->authority, &host, &v6, &port) < 0)
		return bad(c, SB_NET_PROXY_MALFORMED);
	if (port == 0)
		port = 80;
	if (!host_agrees(q, &host, port))
		return bad(c, SB_NET_HTTP_HOST);
	if (!is_target(c, &host, port)) {
		if (c->insp->lost) { /* no end of the response to wait for */
			conn_cut(c, SB_NET_OK);
			return LOOK_ON;
		}
		if (c->insp->flight > 0) {
			c->up.wait = true;
			return LOOK_MORE;
		}
		if (!turn_to(c, &host, port))
			return LOOK_ON;
	}
	sb_buf_init(&head, 2 * SB_HTTP_HEAD_MAX);
	origin_form(q, &head);
	if (sb_buf_error(&head) < 0 || http_pass(c, q, (const char *)head.data, head.len) < 0)
		return bad(c, SB_NET_INTERNAL);
	return LOOK_ON;
}

/* --- both --- */

enum look proxy_look(struct conn *c)
{
	const uint8_t *p = c->up.buf + c->up.at;

	if (c->socks == 0 && (p[0] == 4 || p[0] == 5))
		c->socks = p[0];
	return c->socks ? socks_look(c) : http_look(c);
}

void proxy_linked(struct conn *c)
{
	static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	uint8_t reply[SB_SOCKS_REPLY_MAX];
	int r;

	if (c->socks) {
		size_t n = proxy_socks_answer(c, SB_NET_OK, 0, reply);

		r = way_say(&c->down, reply, n);
	} else {
		r = way_say(&c->down, yes, sizeof(yes) - 1);
	}
	c->up.wait = false;
	c->kick = true;
	if (r == 0)
		r = inspect_begin(c);
	if (r < 0)
		conn_refuse(c, SB_NET_INTERNAL, NULL);
}
