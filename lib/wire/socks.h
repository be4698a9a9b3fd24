#ifndef SB_WIRE_SOCKS_H
#define SB_WIRE_SOCKS_H
/* SOCKS4, 4a and 5 as a client sends them (RFC 1928 and the SOCKS4 protocol notes). Pure. */
#include "base/mem.h"

#define SB_SOCKS_MORE 1
#define SB_SOCKS_MAX 1024 /* bytes of one request */

enum sb_socks_cmd { SB_SOCKS_NO_CMD = 0, SB_SOCKS_CONNECT = 1, SB_SOCKS_BIND = 2, SB_SOCKS_UDP = 3 };

/* SOCKS5 method offer. @ret_len: its length. @no_auth: method 0 was offered.
 * Return: 0; SB_SOCKS_MORE; -EBADMSG */
SB_MUST_CHECK int sb_socks5_offer(const uint8_t *p, size_t len, size_t *ret_len, bool *no_auth);

struct sb_socks_request {
	uint8_t version;       /* 4 or 5 */
	uint8_t cmd;           /* enum sb_socks_cmd, or the unknown number */
	bool is_name;          /* host is a name (4a, 5 type 3), else an address */
	char host[256];        /* name as sent, NUL-terminated; a NUL inside is malformed */
	size_t host_len;
	uint8_t addr[16];      /* as struct sb_addr */
	uint16_t port;         /* 0 is malformed for CONNECT */
	size_t len;            /* bytes of the request */
};
/* Starts with the version byte; for SOCKS5 the request after the method exchange.
 * Return: 0; SB_SOCKS_MORE; -EBADMSG */
SB_MUST_CHECK int sb_socks_request(const uint8_t *p, size_t len, struct sb_socks_request *ret);

#define SB_SOCKS_REPLY_MAX 22
/* SOCKS5 codes: 0 ok, 1 general, 2 not allowed, 3 network, 4 host unreachable, 5 refused,
 * 7 command, 8 address type; SOCKS4 gets 90 or 91. @addr: 16 bytes or NULL. Return: length. */
size_t sb_socks_reply(uint8_t version, uint8_t code, const uint8_t *addr, uint16_t port,
		      uint8_t out[SB_SOCKS_REPLY_MAX]);

#endif
