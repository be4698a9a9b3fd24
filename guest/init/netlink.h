#ifndef SB_GUEST_INIT_NETLINK_H
#define SB_GUEST_INIT_NETLINK_H
/*
 * Netlink requests, as much as the guest's network needs: messages are built into one buffer and
 * sent in one piece; each that asked for it is acknowledged by the kernel.
 *
 * Source: linux/netlink.h (format), RFC 3549.
 */
#include "base/buf.h"
#include "base/err.h"

#define SB_NL_MAX 8192 /* bytes of one request */
#define SB_NL_DEPTH 6  /* attributes in attributes */

struct sb_nl {
	struct sb_buf b;
	uint32_t seq;      /* of the last message; the first is 1 */
	size_t msg;        /* where it starts */
	size_t nest[SB_NL_DEPTH];
	unsigned int depth;
	unsigned int acks; /* how many messages asked for an acknowledgement */
};

void sb_nl_init(struct sb_nl *m);
void sb_nl_done(struct sb_nl *m);
#define sb_autonl SB_CLEANUP(sb_nl_done)

/* A message of @type: NLM_F_REQUEST and @flags, then the family's fixed part @head. */
void sb_nl_begin(struct sb_nl *m, uint16_t type, uint16_t flags, const void *head, size_t len);
void sb_nl_end(struct sb_nl *m);
/* Attributes of the message that was begun. */
void sb_nl_put(struct sb_nl *m, uint16_t type, const void *p, size_t len);
void sb_nl_put_str(struct sb_nl *m, uint16_t type, const char *s);   /* with its NUL */
void sb_nl_put_be32(struct sb_nl *m, uint16_t type, uint32_t v);
void sb_nl_open(struct sb_nl *m, uint16_t type); /* a nested one, until sb_nl_close() */
void sb_nl_close(struct sb_nl *m);

/* Return: 0; -errno (-EPROTONOSUPPORT: the kernel lacks this part). */
SB_MUST_CHECK int sb_nl_socket(int protocol, int *ret);
/*
 * sb_nl_send - send what was built and wait for every acknowledgement
 * @ret_seq: on an error of the kernel the number of the message that it is about (0: none)
 * Return: 0; the kernel's -errno; -EBADMSG.
 */
SB_MUST_CHECK int sb_nl_send(int fd, const struct sb_nl *m, uint32_t *ret_seq);
/* Part of it: one datagram of the kernel. Return: number of good acknowledgements; -errno. */
SB_MUST_CHECK int sb_nl_answers(const uint8_t *p, size_t len, uint32_t *ret_seq);

#endif
