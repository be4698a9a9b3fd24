#ifndef SB_GUEST_INIT_NFT_H
#define SB_GUEST_INIT_NFT_H
/*
 * The guest's one nf_tables table: every TCP connection goes to the relay port, whatever its
 * destination, except what stays inside the guest.
 */
#include "init/net.h"

/* Outside the range of ports that the kernel gives to connections. */
#define SB_NET_RELAY_PORT 61080

/* The batch that makes the table. The caller's m is initialised and empty. */
void sb_nft_build(struct sb_nl *m);
/* What the message @seq of it makes, for an error text. */
const char *sb_nft_step(uint32_t seq);

#endif
