#include "wire/socks.h"

#include <errno.h>
#include <string.h>

enum { ATYP_V4 = 1, ATYP_NAME = 3, ATYP_V6 = 4 };

static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

int sb_socks5_offer(const uint8_t *p, size_t len, size_t *ret_len, bool *no_auth)
{
	if (len > 0 && p[0] != 5)
		return -EBADMSG;
	if (len > 1 && p[1] == 0)
		return -EBADMSG;
	if (len < 2 || len < 2 + (size_t)p[1])
		return SB_SOCKS_MORE;
	*ret_len = 2 + (size_t)p[1];
	*no_auth = memchr(p + 2, 0, p[1]) != NULL;
	return 0;
}

static int host_set(struct sb_socks_request *r, const uint8_t *p, size_t len)
{
	if (len == 0 || len >= sizeof(r->host) || memchr(p, 0, len))
		return -EBADMSG;
	memcpy(r->host, p, len);
	r->host[len] = '\0';
	r->host_len = len;
	r->is_name = true;
	return 0;
}

static void v4_set(struct sb_socks_request *r, const uint8_t *p)
{
	memcpy(r->addr, v4_mapped, sizeof(v4_mapped));
	memcpy(r->addr + sizeof(v4_mapped), p, 4);
}

/* 05, command, 00, address type, address, port */
static int v5_parse(const uint8_t *p, size_t len, struct sb_socks_request *r)
{
	size_t addr; /* bytes of it */
	size_t at = 4;

	if (len > 2 && p[2] != 0)
		return -EBADMSG;
	if (len < 4)
		return SB_SOCKS_MORE;
	switch (p[3]) {
	case ATYP_V4:
		addr = 4;
		break;
	case ATYP_V6:
		addr = 16;
		break;
	case ATYP_NAME:
		if (len < 5)
			return SB_SOCKS_MORE;
		addr = p[4];
		if (addr == 0)
			return -EBADMSG;
		at = 5;
		break;
	default:
		return -EBADMSG;
	}
	if (len < at + addr + 2)
		return SB_SOCKS_MORE;
	if (p[3] == ATYP_NAME && host_set(r, p + at, addr) < 0)
		return -EBADMSG;
	if (p[3] == ATYP_V4)
		v4_set(r, p + at);
	else if (p[3] == ATYP_V6)
		memcpy(r->addr, p + at, 16);
	r->port = be16(p + at + addr);
	r->len = at + addr + 2;
	return 0;
}

/* 04, command, port, address, user id with its NUL; 4a: 0.0.0.x and a name with its NUL */
static int v4_parse(const uint8_t *p, size_t len, struct sb_socks_request *r)
{
	const uint8_t *end;
	const uint8_t *name;

	if (len < 9)
		return SB_SOCKS_MORE;
	r->port = be16(p + 2);
	end = memchr(p + 8, 0, SB_MIN(len, (size_t)SB_SOCKS_MAX) - 8);
	if (!end)
		return SB_SOCKS_MORE;
	name = end + 1;
	if (p[4] != 0 || p[5] != 0 || p[6] != 0 || p[7] == 0) {
		v4_set(r, p + 4);
		r->len = (size_t)(name - p);
		return 0;
	}
	end = memchr(name, 0, SB_MIN(len, (size_t)SB_SOCKS_MAX) - (size_t)(name - p));
	if (!end)
		return SB_SOCKS_MORE;
	r->len = (size_t)(end - p) + 1;
	return host_set(r, name, (size_t)(end - name));
}

int sb_socks_request(const uint8_t *p, size_t len, struct sb_socks_request *ret)
{
	struct sb_socks_request r = { 0 };
	int k;

	if (len == 0)
		return SB_SOCKS_MORE;
	if (p[0] != 4 && p[0] != 5)
		return -EBADMSG;
	r.version = p[0];
	k = r.version == 5 ? v5_parse(p, len, &r) : v4_parse(p, len, &r);
	if (k == SB_SOCKS_MORE)
		return len < SB_SOCKS_MAX ? SB_SOCKS_MORE : -EBADMSG;
	if (k < 0)
		return k;
	r.cmd = p[1];
	if (r.cmd == SB_SOCKS_CONNECT && r.port == 0)
		return -EBADMSG;
	*ret = r;
	return 0;
}

size_t sb_socks_reply(uint8_t version, uint8_t code, const uint8_t *addr, uint16_t port,
		      uint8_t out[SB_SOCKS_REPLY_MAX])
{
	bool v4 = !addr || memcmp(addr, v4_mapped, sizeof(v4_mapped)) == 0;
	size_t len = v4 ? 4 : 16;
	uint8_t *p = out;

	memset(out, 0, SB_SOCKS_REPLY_MAX);
	if (version == 4) {
		p[1] = code == 0 ? 90 : 91;
		p[2] = (uint8_t)(port >> 8);
		p[3] = (uint8_t)port;
		if (addr && v4)
			memcpy(p + 4, addr + 12, 4);
		return 8;
	}
	p[0] = 5;
	p[1] = code;
	p[3] = v4 ? ATYP_V4 : ATYP_V6;
	if (addr)
		memcpy(p + 4, addr + 16 - len, len);
	p[4 + len] = (uint8_t)(port >> 8);
	p[5 + len] = (uint8_t)port;
	return 6 + len;
}
