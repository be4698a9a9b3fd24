#include "raw.h"

#include <sys/socket.h>
#include <unistd.h>

static int start_real(struct raw *r, enum sb_chan_role role, uint32_t max_net)
{
	struct sb_chan_config cfg = { .role = role,
				      .psk = { 1 },
				      .prologue = PEER_PROLOGUE,
				      .prologue_len = sizeof(PEER_PROLOGUE),
				      .max_net = max_net,
				      .ops = &end_ops };
	const int big = 4 << 20;
	int sv[2];

	if (sb_loop_new(&r->pair.loop) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		(void)setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	r->end = role == SB_CHAN_HOST ? &r->pair.host : &r->pair.guest;
	r->end->fd = sv[0];
	r->fd = sv[1];
	cfg.loop = r->pair.loop;
	cfg.fd_in = cfg.fd_out = sv[0];
	cfg.owner = r->end;
	return sb_chan_new(&cfg, &r->end->c);
}

void raw_turn(struct raw *r)
{
	for (int i = 0; i < 3; i++)
		if (sb_loop_turn(r->pair.loop, 0) < 0)
			return;
}

int raw_start_net(struct raw *r, enum sb_chan_role role, uint32_t max_net)
{
	static const uint8_t psk[32] = { 1 };
	uint8_t msg[SB_REC_HEAD_LEN + SB_NOISE_OVERHEAD];
	bool first = role == SB_CHAN_GUEST; /* the raw end plays the other part */

	memset(r, 0, sizeof(*r));
	r->pair.host.fd = r->pair.guest.fd = r->fd = -1;
	if (sb_crypto_init() < 0 || start_real(r, role, max_net) < 0)
		return -1;
	sb_noise_init(&r->noise, first ? SB_NOISE_INITIATOR : SB_NOISE_RESPONDER, psk,
		      PEER_PROLOGUE, sizeof(PEER_PROLOGUE), NULL);
	for (int i = 0; i < 2; i++) {
		if ((i == 0) == first) {
			sb_rec_head_write(SB_NOISE_OVERHEAD, msg);
			if (sb_noise_write(&r->noise, NULL, 0, msg + SB_REC_HEAD_LEN) < 0)
				return -1;
			raw_bytes(r, msg, sizeof(msg));
		} else {
			raw_turn(r);
			if (read(r->fd, msg, sizeof(msg)) != sizeof(msg) ||
			    sb_noise_read(&r->noise, msg + SB_REC_HEAD_LEN, SB_NOISE_OVERHEAD,
					  NULL) < 0)
				return -1;
		}
	}
	return sb_noise_split(&r->noise, &r->tx, &r->rx, NULL) == 0 && r->end->ready ? 0 : -1;
}

int raw_start(struct raw *r, enum sb_chan_role role)
{
	return raw_start_net(r, role, 0);
}

void raw_stop(struct raw *r)
{
	r->end->c = sb_chan_free(r->end->c);
	(void)close(r->end->fd);
	if (r->fd >= 0)
		(void)close(r->fd);
	r->pair.loop = sb_loop_free(r->pair.loop);
}

void raw_bytes(struct raw *r, const void *p, size_t len)
{
	(void)!send(r->fd, p, len, MSG_NOSIGNAL);
	raw_turn(r);
}

void raw_send(struct raw *r, const void *text, size_t len)
{
	static uint8_t rec[SB_REC_MAX];

	sb_rec_head_write((uint32_t)len + SB_REC_TAG_LEN, rec);
	memcpy(rec + SB_REC_HEAD_LEN, text, len);
	if (sb_aead_seal(&r->tx, rec, SB_REC_HEAD_LEN, rec + SB_REC_HEAD_LEN, len) < 0)
		return;
	raw_bytes(r, rec, SB_REC_HEAD_LEN + len + SB_REC_TAG_LEN);
}

void raw_frame(struct raw *r, unsigned int type, uint32_t stream, const void *p, uint32_t len)
{
	static uint8_t text[SB_REC_TEXT_MAX];

	sb_frame_head_write((enum sb_frame_type)type, stream, len, text);
	if (len > 0)
		memcpy(text + SB_FRAME_HEAD_LEN, p, len);
	raw_send(r, text, SB_FRAME_HEAD_LEN + len);
}

int raw_drain(struct raw *r, uint8_t *last_type)
{
	static uint8_t in[8 << 20];
	size_t have = 0;
	size_t at = 0;
	int frames = 0;
	uint32_t body;

	for (;;) {
		ssize_t n = read(r->fd, in + have, sizeof(in) - have);

		if (n <= 0)
			break;
		have += (size_t)n;
		raw_turn(r);
	}
	while (sb_rec_head_parse(in + at, have - at, 0, &body) == 0 &&
	       have - at >= SB_REC_HEAD_LEN + body) {
		uint8_t *text = in + at + SB_REC_HEAD_LEN;
		struct sb_rd rd = { .p = text, .len = body - SB_REC_TAG_LEN };
		struct sb_frame f;

		if (sb_aead_open(&r->rx, in + at, SB_REC_HEAD_LEN, text, body) < 0)
			return -1;
		while (sb_frame_next(&rd, &f) == 0) {
			frames++;
			if (last_type)
				*last_type = f.type;
		}
		if (rd.len > 0)
			return -1;
		at += SB_REC_HEAD_LEN + body;
	}
	return frames;
}
