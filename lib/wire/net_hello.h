#ifndef SB_WIRE_NET_HELLO_H
#define SB_WIRE_NET_HELLO_H
/*
 * What a relay in a micro-VM says first on a NET stream, before the bytes of the program:
 * 20 bytes {u8 version = 1, u8 kind, u16 port little-endian, 16 bytes address}. It is the guest's
 * word only: the gate decides about the address and port as if a program had dialled them.
 *
 * After SB_NET_HELLO_DNS (port and address zero) both sides send frames of one DNS message each:
 * {u16 length 1..4096, u16 tag, message}, little-endian; the answer carries the query's tag.
 */
#include "base/mem.h"

#define SB_NET_HELLO_LEN 20
#define SB_NET_DNS_HEAD 4
#define SB_NET_DNS_MAX 4096

enum sb_net_hello_kind {
	SB_NET_HELLO_NONE = 0,
	SB_NET_HELLO_TCP = 1,
	SB_NET_HELLO_DNS = 2,
};
struct sb_net_hello {
	uint8_t kind;     /* enum sb_net_hello_kind */
	uint16_t port;
	uint8_t addr[16]; /* as struct sb_addr */
};
void sb_net_hello_write(const struct sb_net_hello *h, uint8_t out[SB_NET_HELLO_LEN]);
/* Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_net_hello_parse(const uint8_t in[SB_NET_HELLO_LEN], struct sb_net_hello *ret);

#endif
