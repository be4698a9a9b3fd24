/*
 * The ClientHello of a connection names the dialled host. A server may ask for a second one
 * (HelloRetryRequest, RFC 8446 4.1.4), and some servers believe the name in that; so the first
 * bytes of the answer are awaited before anything behind the hello goes on, and a second hello is
 * judged like the first. Any other answer ends the looking: the server is the allowed one and does
 * not hide its wish in odd records.
 */
#include <errno.h>
#include <string.h>

#include "net/conn.h"
#include "wire/tls_hello.h"

#define RECORD_HEAD 5
#define ALERT 21
#define CLIENT_HELLO 1
#define SERVER_HELLO 2
#define RANDOM_AT (RECORD_HEAD + 4 + 2) /* behind the head of the message and the version */
#define RANDOM_LEN 32

static size_t be16(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* The version of a record is to be ignored (RFC 8446 5.1): a hello or a warning under another. */
static int odd_version(const uint8_t *p, size_t len)
{
	if (p[0] != SB_TLS_HANDSHAKE && p[0] != ALERT)
		return -1;
	if (len <= RECORD_HEAD)
		return 0;
	if (p[0] == ALERT)
		return be16(p + 3) == 2 && p[RECORD_HEAD] <= 2 ? 1 : -1;
	return be16(p + 3) > 0 && be16(p + 3) <= 16384 && p[RECORD_HEAD] == CLIENT_HELLO ? 1 : -1;
}

int tls_stray_record(const uint8_t *p, size_t len)
{
	if (p[0] < 20 || p[0] > 24)
		return -1;
	if (len > 2 && (p[1] != 3 || p[2] > 4))
		return odd_version(p, len);
	if (len < RECORD_HEAD)
		return 0;
	return p[0] != SB_TLS_HANDSHAKE && be16(p + 3) <= 2 ? 1 : -1;
}

int tls_old_hello(const uint8_t *p, size_t len)
{
	/* length with its upper bit; CLIENT-HELLO; version; lengths of ciphers, session, challenge */
	if (!(p[0] & 0x80) || (len > 2 && p[2] != 1) || (len > 3 && p[3] != 3))
		return -1;
	if (len < 11)
		return 0;
	return (be16(p) & 0x7fff) == 9 + be16(p + 5) + be16(p + 7) + be16(p + 9) ? 1 : -1;
}

enum look tls_refuse(struct conn *c, enum sb_net_reason reason)
{
	c->say = c->down.bytes == 0 ? SAY_TLS : SAY_RESET;
	conn_refuse(c, reason, NULL);
	return LOOK_ON;
}

/* Return: whether the hello may go on; otherwise it was refused. */
static bool agrees(struct conn *c, const struct sb_tls_hello *h)
{
	c->say = c->down.bytes == 0 ? SAY_TLS : SAY_RESET;
	if (h->ech && inspect_strict(c) && !c->g->plan->net.ech_outer) {
		(void)tls_refuse(c, SB_NET_TLS_ECH);
		return false;
	}
	if (h->has_name)
		return inspect_agree(c, h->name, h->name_len, SB_NET_TLS_NAME);
	if (inspect_strict(c))
		(void)tls_refuse(c, SB_NET_TLS_NO_NAME);
	return !inspect_strict(c);
}

static enum look judge(struct conn *c, const struct sb_tls_hello *h)
{
	if (!agrees(c, h))
		return LOOK_ON;
	if (c->insp->kind == INSP_TLS_AGAIN || c->down.bytes > 0)
		return inspect_over(c); /* there is no third one; no server of TLS speaks first */
	c->insp->kind = INSP_TLS_REPLY;
	c->say = SAY_RESET;
	c->up.pass = (uint32_t)h->size;
	c->up.wait = true;
	c->down.mode = WAY_LOOK;
	c->kick = true;
	conn_clear(c);
	return LOOK_ON;
}

static enum look hello(struct conn *c)
{
	struct sb_tls_hello h = { 0 };
	int r = sb_tls_hello_parse(c->up.buf + c->up.at, c->up.len, &h);

	if (r == 0)
		return judge(c, &h);
	if (r == SB_TLS_MORE && !c->up.eof && c->up.len < SB_TLS_HELLO_MAX) {
		if (c->look_by == 0)
			conn_look_within(c, &c->look_by, conn_look_ns);
		return LOOK_MORE;
	}
	return tls_refuse(c, r == -EPROTO ? SB_NET_NOT_TLS : SB_NET_TLS_MALFORMED);
}

/* Before a second hello there may be early data and a change_cipher_spec: past them. */
static enum look record(struct conn *c)
{
	const uint8_t *p = c->up.buf + c->up.at;

	if (p[0] == SB_TLS_HANDSHAKE)
		return hello(c);
	if (c->up.len < RECORD_HEAD) {
		if (c->look_by == 0)
			conn_look_within(c, &c->look_by, conn_look_ns);
		return LOOK_MORE;
	}
	c->look_by = 0;
	c->up.through = RECORD_HEAD + be16(p + 3);
	return LOOK_ON;
}

enum look tls_up(struct conn *c)
{
	return c->insp->kind == INSP_TLS_AGAIN ? record(c) : hello(c);
}

enum look tls_down(struct conn *c)
{
	static const uint8_t retry[RANDOM_LEN] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
		0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
		0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	const uint8_t *p = c->down.buf + c->down.at;
	size_t len = c->down.len;

	if (p[0] != SB_TLS_HANDSHAKE || (len > RECORD_HEAD && p[RECORD_HEAD] != SERVER_HELLO) ||
	    c->down.eof)
		return inspect_over(c);
	if (len < RANDOM_AT + RANDOM_LEN) {
		if (len >= RECORD_HEAD && len >= RECORD_HEAD + be16(p + 3))
			return inspect_over(c); /* a record that short */
		return LOOK_MORE;
	}
	if (memcmp(p + RANDOM_AT, retry, RANDOM_LEN) != 0)
		return inspect_over(c);
	c->insp->kind = INSP_TLS_AGAIN;
	c->down.mode = WAY_PASS;
	c->up.wait = false;
	c->kick = true;
	return LOOK_ON;
}
