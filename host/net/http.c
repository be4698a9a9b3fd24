/*
 * HTTP/1 on a checked connection. Up: the head of each request is read whole, checked and let
 * through; its body is counted through, so that the next head is found where the server finds it
 * too. Down: responses are followed in the same way for three reasons: to know when an answer of
 * ours fits between them, to see whether an upgrade was accepted, and, for the explicit proxy, when
 * the upstream may change. Bodies of known length are spliced. A response that cannot be followed
 * makes the way down opaque ("lost"): it is the server's word and does no harm, but then a refused
 * request just ends the connection.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "net/conn.h"

#define FLIGHT_MAX 64 /* bits of insp->heads */

bool http_quiet(const struct conn *c)
{
	const struct insp *i = c->insp;

	if (c->down.pass != c->down.len || c->down.eof)
		return false;
	if (c->phase == CONN_PROXY)
		return true;
	if (c->phase == CONN_OPENING) /* no server yet; the request, if it has not come, is under way */
		return true;
	return i && !i->lost && i->flight == 0 && c->down.through == 0;
}

bool http_put_off(struct conn *c, enum sb_net_reason reason)
{
	struct insp *i = c->insp;

	if (!i || i->kind != INSP_HTTP || c->phase != CONN_LINKED || i->flight == 0 || i->lost ||
	    i->upgrading || c->down.eof)
		return false;
	i->put_off = reason;
	return true;
}

bool http_is_2(const uint8_t *p, size_t len)
{
	static const char preface[] = "PRI * HTTP/2";

	return len >= sizeof(preface) - 1 && memcmp(p, preface, sizeof(preface) - 1) == 0;
}

static const char *status_line(enum sb_net_reason reason)
{
	switch ((int)reason) {
	case SB_NET_HTTP_MALFORMED:
	case SB_NET_PROXY_MALFORMED:
	case SB_NET_NAME_MALFORMED:
	case SB_NET_NOT_HTTP:
		return "400 Bad Request";
	case SB_NET_RESOLVE_FAILED:
	case SB_NET_CONNECT_FAILED:
		return "502 Bad Gateway";
	case SB_NET_IDLE:
		return "408 Request Timeout";
	case SB_NET_INTERNAL:
		return "500 Internal Server Error";
	default:
		return "403 Forbidden";
	}
}

size_t http_answer(const struct conn *c, enum sb_net_reason reason, const struct sb_net_rule *rule,
		   char *out, size_t cap)
{
	char text[1024];
	size_t len = sb_net_explain(reason, rule, c->ev.name[0] ? c->ev.name : "-", c->ev.port,
				    c->g->session, text, sizeof(text));
	int n;

	n = snprintf(out, cap,
		     "HTTP/1.1 %s\r\n"
		     "Content-Type: text/plain\r\n"
		     "Content-Length: %zu\r\n"
		     "Connection: close\r\n"
		     "X-Sendbox-Reason: %s\r\n"
		     "\r\n"
		     "%s\n",
		     status_line(reason), SB_MIN(len, sizeof(text) - 1) + 1,
		     sb_net_reason_name(reason), text);
	return n < 0 ? 0 : SB_MIN((size_t)n, cap - 1);
}

static enum look no(struct conn *c, enum sb_net_reason reason)
{
	conn_refuse(c, reason, NULL);
	return LOOK_ON;
}

/* --- requests --- */

/* @host: "name[:port]" of the guest. Refuses what is not the target. */
static bool authority_agrees(struct conn *c, const struct sb_http_str *s)
{
	struct sb_http_str host;
	uint16_t port;
	bool v6;

	if (sb_http_authority(s, &host, &v6, &port) < 0) {
		conn_refuse(c, SB_NET_HTTP_MALFORMED, NULL);
		return false;
	}
	if (port != 0 && port != c->ev.port && inspect_strict(c)) {
		conn_refuse(c, SB_NET_HTTP_HOST, NULL);
		return false;
	}
	return inspect_agree(c, host.p, host.len, SB_NET_HTTP_HOST);
}

static bool is_field(const struct sb_http_request *q, size_t i, const char *name)
{
	return sb_http_str_is(&q->fields[i].name, name);
}

static bool is_websocket(const struct sb_http_request *q)
{
	return q->upgrade && sb_http_str_is(&q->upgrade_to, "websocket");
}

/*
 * What holds for every request, whoever it is for. An offer of HTTP/2 (Java's client makes it with
 * each plain request) is taken out of the head: then the server answers in HTTP/1.
 * Return: SB_NET_OK or why not
 */
static enum sb_net_reason request_form(const struct conn *c, const struct sb_http_request *q)
{
	size_t offers = 0;

	if (!q->has_host && q->form != SB_HTTP_ABSOLUTE && inspect_strict(c))
		return SB_NET_HTTP_HOST; /* HTTP/1.0: no way to know whom it is for */
	for (size_t i = 0; i < q->n_fields; i++) {
		if (!is_field(q, i, "upgrade"))
			continue;
		/* without "Connection: upgrade" a server must not change the protocol; some do */
		if (!is_websocket(q) && !sb_http_str_is(&q->fields[i].value, "h2c"))
			return SB_NET_HTTP_UPGRADE;
		offers++;
	}
	if (is_websocket(q) &&
	    (offers != 1 || q->body != SB_HTTP_NO_BODY || q->minor == 0 || c->insp->lost))
		return SB_NET_HTTP_UPGRADE;
	return SB_NET_OK;
}

/* The tokens of a Connection field without those that offer HTTP/2. */
static void add_connection(struct sb_buf *b, const struct sb_http_str *value)
{
	bool first = true;
	size_t at = 0;

	while (at < value->len) {
		const char *comma = memchr(value->p + at, ',', value->len - at);
		size_t end = comma ? (size_t)(comma - value->p) : value->len;
		struct sb_http_str t = { .p = value->p + at, .len = end - at };

		at = end + 1;
		while (t.len > 0 && (t.p[0] == ' ' || t.p[0] == '\t')) {
			t.p++;
			t.len--;
		}
		while (t.len > 0 && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t'))
			t.len--;
		if (t.len == 0 || sb_http_str_is(&t, "upgrade") ||
		    sb_http_str_is(&t, "http2-settings"))
			continue;
		sb_buf_add_str(b, first ? "Connection: " : ", ");
		sb_buf_add(b, t.p, t.len);
		first = false;
	}
	if (!first)
		sb_buf_add_str(b, "\r\n");
}

bool http_offers_2(const struct sb_http_request *q)
{
	if (is_websocket(q))
		return false;
	for (size_t i = 0; i < q->n_fields; i++)
		if (is_field(q, i, "upgrade") || is_field(q, i, "http2-settings"))
			return true;
	return false;
}

void http_add_field(struct sb_buf *b, const struct sb_http_request *q, size_t i)
{
	bool strip = http_offers_2(q);

	if (strip && (is_field(q, i, "upgrade") || is_field(q, i, "http2-settings")))
		return;
	if (strip && is_field(q, i, "connection"))
		add_connection(b, &q->fields[i].value);
	else
		sb_buf_add(b, q->fields[i].line.p, q->fields[i].line.len);
}

/* The head without the offer. */
static int pass_without_2(struct conn *c, const struct sb_http_request *q)
{
	const char *head = (const char *)c->up.buf + c->up.at;
	sb_autobuf struct sb_buf b;

	sb_buf_init(&b, 2 * SB_HTTP_HEAD_MAX);
	sb_buf_add(&b, head, (size_t)(q->fields[0].line.p - head));
	for (size_t i = 0; i < q->n_fields; i++)
		http_add_field(&b, q, i);
	sb_buf_add_str(&b, "\r\n");
	if (sb_buf_error(&b) < 0)
		return sb_buf_error(&b);
	return http_pass(c, q, (const char *)b.data, b.len);
}

int http_pass(struct conn *c, const struct sb_http_request *q, const char *head, size_t len)
{
	struct insp *i = c->insp;
	struct way *w = &c->up;
	bool is_head = sb_http_str_is(&q->method, "HEAD");
	bool upgrade = is_websocket(q);
	enum sb_http_body body = q->body;
	uint64_t length = q->length;
	size_t n = q->head_len;

	/* @q points into the buffer: it is not used below here */
	if (head) {
		int r = way_replace(w, n, head, len);

		if (r < 0)
			return r;
		n = len;
	}
	w->pass = (uint32_t)n;
	if (body == SB_HTTP_LENGTH) {
		w->through = length;
	} else if (body == SB_HTTP_CHUNKED) {
		i->req_body = true;
		sb_http_flow_init(&i->req, body, length);
	}
	if (!i->lost) {
		i->heads &= ~(1ULL << i->flight);
		i->heads |= (uint64_t)is_head << i->flight;
		i->flight++;
		i->upgrading = upgrade;
		w->wait = upgrade;
		if (c->down.mode == WAY_HOLD)
			c->down.mode = WAY_LOOK;
	}
	c->kick = c->kick || c->server.gone;
	conn_clear(c);
	return 0;
}

static enum look request_judge(struct conn *c, const struct sb_http_request *q)
{
	enum sb_net_reason why = request_form(c, q);

	if (q->form == SB_HTTP_AUTHORITY) /* CONNECT: what follows would be unseen */
		return no(c, SB_NET_PROXY_COMMAND);
	if (why != SB_NET_OK)
		return no(c, why);
	if (c->ev.via == SB_NET_VIA_HTTP)
		return proxy_request(c, q);
	if (q->form == SB_HTTP_ABSOLUTE) {
		if (!sb_http_str_is(&q->scheme, "http"))
			return no(c, SB_NET_HTTP_HOST);
		if (!authority_agrees(c, &q->authority))
			return LOOK_ON;
	}
	if (q->has_host && !authority_agrees(c, &q->host))
		return LOOK_ON;
	if ((http_offers_2(q) ? pass_without_2(c, q) : http_pass(c, q, NULL, 0)) < 0)
		return no(c, SB_NET_INTERNAL);
	return LOOK_ON;
}

/* A head that comes byte by byte is not parsed again before a line of it is complete. */
static bool trickles(const struct conn *c)
{
	const struct way *w = &c->up;
	uint32_t seen = c->insp->seen;

	return seen > 0 && seen < w->len && !w->eof && w->len < SB_HTTP_HEAD_MAX &&
	       !memchr(w->buf + w->at + seen, '\n', w->len - seen);
}

static enum look request_look(struct conn *c)
{
	struct sb_http_request q;
	const char *why = NULL;
	int r;

	if (c->insp->flight == FLIGHT_MAX && !c->insp->lost) {
		c->up.wait = true;
		return LOOK_MORE;
	}
	if (trickles(c))
		return LOOK_MORE;
	r = sb_http_request_parse((const char *)c->up.buf + c->up.at, c->up.len, &q, &why);
	c->insp->seen = r == SB_HTTP_MORE ? c->up.len : 0;
	if (r == 0)
		return request_judge(c, &q);
	if (r == SB_HTTP_MORE && !c->up.eof) {
		if (c->look_by == 0) /* a head must not trickle in for ever */
			conn_look_within(c, &c->look_by, conn_look_ns);
		return LOOK_MORE;
	}
	if (http_is_2(c->up.buf + c->up.at, c->up.len))
		return no(c, SB_NET_HTTP_UPGRADE);
	if (r == -EPROTO && !c->cleared)
		return no(c, c->asked && c->ev.via == SB_NET_VIA_HTTP ? SB_NET_PROXY_MALFORMED
								     : SB_NET_NOT_HTTP);
	return no(c, SB_NET_HTTP_MALFORMED);
}

/* A chunked body goes by. Return: -EBADMSG */
static int flow_look(struct way *w, struct sb_http_flow *f, bool *body)
{
	const char *why = NULL;
	ssize_t n = sb_http_flow_take(f, (const char *)w->buf + w->at, w->len, &why);

	if (n < 0)
		return -EBADMSG;
	w->pass = (uint32_t)n;
	if (f->done)
		*body = false;
	return n > 0 || f->done ? LOOK_ON : LOOK_MORE;
}

enum look http_up(struct conn *c)
{
	int r;

	if (!c->insp->req_body)
		return request_look(c);
	r = flow_look(&c->up, &c->insp->req, &c->insp->req_body);
	return r < 0 ? no(c, SB_NET_HTTP_MALFORMED) : (enum look)r;
}

/* --- responses --- */

static enum look lose_track(struct conn *c)
{
	if (c->insp->put_off != SB_NET_OK && c->insp->flight == 0) {
		conn_cut(c, c->insp->put_off);
		return LOOK_ON;
	}
	if (c->insp->upgrading) {
		/* it cannot be known what protocol goes on */
		conn_refuse(c, SB_NET_HTTP_UPGRADE, NULL);
		return LOOK_ON;
	}
	c->insp->lost = true;
	c->down.mode = WAY_PASS;
	if (c->up.wait) {
		c->up.wait = false;
		c->kick = true;
	}
	return LOOK_ON;
}

static enum look switched(struct conn *c, size_t head_len)
{
	struct insp *i = c->insp;

	if (!i->upgrading || i->flight != 1) {
		i->lost = true; /* no words of ours fit any more */
		conn_refuse(c, SB_NET_HTTP_UPGRADE, NULL);
		return LOOK_ON;
	}
	c->down.pass = (uint32_t)head_len;
	inspect_done(c);
	c->up.mode = WAY_PASS;
	c->up.wait = false;
	c->down.mode = WAY_PASS;
	c->say = SAY_RESET;
	c->kick = true;
	return LOOK_ON;
}

/* The response to the oldest request is complete. */
static void answered(struct conn *c)
{
	struct insp *i = c->insp;

	i->flight--;
	i->heads >>= 1;
	if (i->flight == 0 && i->put_off != SB_NET_OK) {
		conn_part(c, i->put_off);
		return;
	}
	if (i->flight == 0)
		i->upgrading = false; /* refused by the server: go on checking */
	if (!i->upgrading && c->up.wait) {
		c->up.wait = false;
		c->kick = true;
	}
}

static enum look response_judge(struct conn *c, const struct sb_http_response *s)
{
	struct insp *i = c->insp;
	bool no_body = (i->heads & 1) || s->status == 204 || s->status == 304;

	if (s->status == 101)
		return switched(c, s->head_len);
	c->down.pass = (uint32_t)s->head_len;
	if (s->status < 200)
		return LOOK_ON;
	if (no_body || s->body == SB_HTTP_NO_BODY) {
		answered(c);
	} else if (s->body == SB_HTTP_LENGTH && s->length > 0) {
		c->down.through = s->length; /* http_through() when it has gone by */
	} else if (s->body == SB_HTTP_LENGTH) {
		answered(c);
	} else if (s->body == SB_HTTP_CHUNKED) {
		i->rsp_body = true;
		sb_http_flow_init(&i->rsp, s->body, s->length);
	} else {
		return lose_track(c);
	}
	return LOOK_ON;
}

void http_through(struct conn *c, const struct way *w)
{
	if (w == &c->down && w->through == 0 && c->insp && c->insp->kind == INSP_HTTP)
		answered(c);
}

enum look http_down(struct conn *c)
{
	struct sb_http_response s;
	struct insp *i = c->insp;
	const char *why = NULL;
	int r;

	if (!i)
		return LOOK_MORE;
	if (i->rsp_body) {
		r = flow_look(&c->down, &i->rsp, &i->rsp_body);
		if (r < 0)
			return lose_track(c);
		if (!i->rsp_body)
			answered(c);
		return (enum look)r;
	}
	if (i->flight == 0)
		return lose_track(c);
	r = sb_http_response_parse((const char *)c->down.buf + c->down.at, c->down.len, &s, &why);
	if (r == 0)
		return response_judge(c, &s);
	if (r == SB_HTTP_MORE && !c->down.eof)
		return LOOK_MORE;
	return lose_track(c);
}
