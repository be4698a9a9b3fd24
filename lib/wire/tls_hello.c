/*
 * First the records are walked until the whole message is there; then it is read through a cursor
 * that steps over their heads. A server must not find another name in the same bytes: what is said
 * twice, left over, or of no defined form is refused.
 */
#include "wire/tls_hello.h"

#include <errno.h>
#include <string.h>

#define RECORD_HEAD 5
#define RECORD_MAX 16384
#define MESSAGE_HEAD 4
#define TYPE_HANDSHAKE 22
#define CLIENT_HELLO 1

enum {
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_ECH_FIRST = 0xfe08, /* drafts */
	EXT_ECH = 0xfe0d,
	EXT_ECH_OLD = 0xff02,
	EXT_ECH_OLDER = 0xff03,
	EXT_ESNI = 0xffce,
};

struct cursor {
	const uint8_t *p; /* next byte of the input */
	const uint8_t *end;
	size_t record; /* bytes left in the record */
	size_t left;   /* bytes left in the block that is being read */
	bool bad;
};

static size_t be16(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* Bytes of the block that lie side by side, at most @max; none when it is at its end. */
static const uint8_t *chunk(struct cursor *c, size_t max, size_t *ret_len)
{
	const uint8_t *p;

	if (c->record == 0 && c->end - c->p > RECORD_HEAD) {
		c->record = be16(c->p + 3);
		c->p += RECORD_HEAD;
	}
	*ret_len = SB_MIN(SB_MIN(max, c->left), SB_MIN(c->record, (size_t)(c->end - c->p)));
	p = c->p;
	c->p += *ret_len;
	c->record -= *ret_len;
	c->left -= *ret_len;
	return p;
}

/* @out: @len bytes, or NULL to pass over them */
static void get(struct cursor *c, size_t len, void *out)
{
	uint8_t *to = out;

	while (len > 0 && !c->bad) {
		size_t n;
		const uint8_t *p = chunk(c, len, &n);

		if (n == 0) {
			c->bad = true;
			return;
		}
		if (to) {
			memcpy(to, p, n);
			to += n;
		}
		len -= n;
	}
}

static size_t get8(struct cursor *c)
{
	uint8_t b = 0;

	get(c, 1, &b);
	return b;
}

static size_t get16(struct cursor *c)
{
	uint8_t b[2] = { 0 };

	get(c, 2, b);
	return be16(b);
}

/* Read on inside a block of @len bytes. Return: what leave() needs. */
static size_t enter(struct cursor *c, size_t len)
{
	size_t outer;

	if (len > c->left)
		c->bad = true;
	if (c->bad)
		return 0;
	outer = c->left - len;
	c->left = len;
	return outer;
}

static void leave(struct cursor *c, size_t outer)
{
	if (c->left != 0)
		c->bad = true;
	c->left = outer;
}

/* One list of one host name; the other kinds that RFC 6066 leaves room for have never come. */
static void server_name(struct cursor *c, struct sb_tls_hello *h)
{
	size_t outer = enter(c, get16(c));
	size_t type = get8(c);
	size_t len = get16(c);

	if (type != 0 || len == 0 || len >= sizeof(h->name))
		c->bad = true;
	get(c, len, h->name);
	leave(c, outer);
	if (c->bad || memchr(h->name, 0, len)) {
		c->bad = true;
		return;
	}
	h->name[len] = '\0';
	h->name_len = len;
	h->has_name = true;
}

static void alpn(struct cursor *c, struct sb_tls_hello *h)
{
	size_t outer = enter(c, get16(c));

	if (c->left == 0)
		c->bad = true;
	while (c->left > 0 && !c->bad) {
		size_t len = get8(c);
		uint8_t id[2] = { 0 };

		if (len == 0)
			c->bad = true;
		get(c, SB_MIN(len, sizeof(id)), id);
		if (len == 2 && memcmp(id, "h2", 2) == 0)
			h->h2 = true;
		get(c, len - SB_MIN(len, sizeof(id)), NULL);
	}
	leave(c, outer);
}

static void extensions(struct cursor *c, struct sb_tls_hello *h)
{
	uint8_t seen[65536 / 8] = { 0 };
	size_t outer = enter(c, get16(c));

	while (c->left > 0 && !c->bad) {
		size_t type = get16(c);
		size_t rest = enter(c, get16(c));

		if (c->bad || (seen[type / 8] & 1U << type % 8) != 0) {
			c->bad = true;
			return;
		}
		seen[type / 8] = (uint8_t)(seen[type / 8] | 1U << type % 8);
		if (type == EXT_SERVER_NAME)
			server_name(c, h);
		else if (type == EXT_ALPN)
			alpn(c, h);
		else
			get(c, c->left, NULL);
		if ((type >= EXT_ECH_FIRST && type <= EXT_ECH) || type == EXT_ECH_OLD ||
		    type == EXT_ECH_OLDER || type == EXT_ESNI)
			h->ech = true;
		leave(c, rest);
	}
	leave(c, outer);
}

static int hello(struct cursor *c, struct sb_tls_hello *ret)
{
	struct sb_tls_hello h = { 0 };
	size_t len;

	if (get8(c) != 3) /* legacy_version */
		return -EBADMSG;
	get(c, 1 + 32, NULL); /* the rest of it, random */
	len = get8(c);	      /* legacy_session_id */
	if (len > 32)
		return -EBADMSG;
	get(c, len, NULL);
	len = get16(c); /* cipher_suites */
	if (len < 2 || len % 2 != 0)
		return -EBADMSG;
	get(c, len, NULL);
	len = get8(c); /* legacy_compression_methods */
	if (len == 0)
		return -EBADMSG;
	get(c, len, NULL);
	if (c->left > 0) /* before TLS 1.3 there need not be any */
		extensions(c, &h);
	if (c->bad || c->left > 0 || c->record > 0)
		return -EBADMSG; /* a ClientHello ends with its record (RFC 8446 5.1) */
	*ret = h;
	return 0;
}

/*
 * Walk the records. @ret_len: length of the message's body once it is known and all there.
 * Return: 0; SB_TLS_MORE; -EPROTO; -EBADMSG
 */
static int records(const uint8_t *p, size_t len, size_t *ret_len)
{
	uint8_t head[MESSAGE_HEAD];
	size_t have = 0; /* bytes of the message */
	size_t want = 0; /* its length with head; 0 = unknown */
	size_t at = 0;

	/* change_cipher_spec 20 .. heartbeat 24 */
	if (len > 0 && (p[0] < 20 || p[0] > 24 || (len > 1 && p[1] != 3)))
		return -EPROTO;
	while (at < len) {
		size_t body;

		if (p[at] != TYPE_HANDSHAKE)
			return len > 1 ? -EBADMSG : SB_TLS_MORE;
		if ((len - at > 1 && p[at + 1] != 3) || (len - at > 2 && p[at + 2] > 4))
			return -EBADMSG;
		if (len - at < RECORD_HEAD)
			return SB_TLS_MORE;
		body = be16(p + at + 3);
		if (body == 0 || body > RECORD_MAX)
			return -EBADMSG;
		at += RECORD_HEAD;
		for (size_t i = 0; have + i < MESSAGE_HEAD && i < body && at + i < len; i++)
			head[have + i] = p[at + i];
		if (have == 0 && at < len && head[0] != CLIENT_HELLO)
			return -EBADMSG;
		have += SB_MIN(body, len - at);
		at += SB_MIN(body, len - at);
		if (want == 0 && have >= MESSAGE_HEAD)
			want = MESSAGE_HEAD + ((size_t)head[1] << 16 | be16(head + 2));
		if (want > SB_TLS_HELLO_MAX - RECORD_HEAD)
			return -EBADMSG;
		if (want > 0 && have >= want) {
			*ret_len = want - MESSAGE_HEAD;
			return at > SB_TLS_HELLO_MAX ? -EBADMSG : 0;
		}
	}
	return SB_TLS_MORE;
}

int sb_tls_hello_parse(const uint8_t *p, size_t len, struct sb_tls_hello *ret)
{
	struct cursor c = { .p = p, .end = p + len };
	size_t body;
	int r = records(p, len, &body);

	if (r == SB_TLS_MORE)
		return len < SB_TLS_HELLO_MAX ? SB_TLS_MORE : -EBADMSG;
	if (r < 0)
		return r;
	c.left = MESSAGE_HEAD + body;
	get(&c, MESSAGE_HEAD, NULL);
	r = hello(&c, ret);
	if (r == 0)
		ret->size = (size_t)(c.p - p);
	return r;
}

void sb_tls_alert_write(uint8_t desc, uint8_t out[SB_TLS_ALERT_LEN])
{
	const uint8_t alert[SB_TLS_ALERT_LEN] = { 21, 3, 3, 0, 2, 2 /* fatal */, desc };

	memcpy(out, alert, sizeof(alert));
}
