#ifndef SB_WIRE_TLS_HELLO_H
#define SB_WIRE_TLS_HELLO_H
/*
 * The ClientHello at the start of a TLS connection (RFC 8446 4.1.2, 5.1; RFC 6066 3), reassembled
 * from any fragmentation into records. Pure; nothing is allocated, input is not copied.
 */
#include "base/mem.h"

#define SB_TLS_HELLO_MAX 32768 /* bytes from the client that may be needed, record heads included */

#define SB_TLS_HANDSHAKE 22 /* type of a record */

#define SB_TLS_MORE 1 /* so far it is one; more bytes are needed */
struct sb_tls_hello {
	bool has_name;
	char name[256];    /* server_name host_name as sent; NUL-terminated */
	size_t name_len;   /* a NUL inside makes the hello malformed */
	bool ech;          /* encrypted_client_hello (0xfe0d) or ESNI (0xffce) is offered; GREASE
			    * cannot be told apart and counts */
	bool h2;           /* ALPN offers h2 */
	size_t size;       /* bytes of the input that it takes, record heads included */
};
/*
 * sb_tls_hello_parse - @p: everything the client has sent so far
 * Return: 0; SB_TLS_MORE; -EPROTO: this is not TLS; -EBADMSG: TLS, but malformed, not a
 * ClientHello first, duplicate extension, or longer than SB_TLS_HELLO_MAX.
 */
SB_MUST_CHECK int sb_tls_hello_parse(const uint8_t *p, size_t len, struct sb_tls_hello *ret);
/* One fatal alert record in plain text. @desc: 49 access_denied, 112 unrecognized_name. */
#define SB_TLS_ALERT_LEN 7
void sb_tls_alert_write(uint8_t desc, uint8_t out[SB_TLS_ALERT_LEN]);

#endif
