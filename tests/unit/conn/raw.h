#ifndef SB_TESTS_CONN_RAW_H
#define SB_TESTS_CONN_RAW_H
/* A peer that has the key and no manners: it seals whatever the test says. */
#include "crypto/noise.h"
#include "peer.h"
#include "wire/record.h"

struct raw {
	struct pair pair; /* only one end is a real channel */
	struct end *end;  /* that one */
	int fd;           /* the raw end */
	struct sb_aead tx;
	struct sb_aead rx;
	struct sb_noise noise;
};

/* @role: of the real end. Afterwards the handshake is complete. Return: 0; -1. */
int raw_start(struct raw *r, enum sb_chan_role role);
int raw_start_net(struct raw *r, enum sb_chan_role role, uint32_t max_net);
void raw_stop(struct raw *r);
/* Seal @len bytes of text as one record and send it; the real end turns. */
void raw_send(struct raw *r, const void *text, size_t len);
void raw_bytes(struct raw *r, const void *p, size_t len); /* unsealed */
/* One frame as one record. */
void raw_frame(struct raw *r, unsigned int type, uint32_t stream, const void *p, uint32_t len);
void raw_turn(struct raw *r);
/* Read what the real end sent, check that it is well-formed, drop it. Return: frames seen; -1. */
int raw_drain(struct raw *r, uint8_t *last_type);

#endif
