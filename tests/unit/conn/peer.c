#include "peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 167 + (at >> 8) * 13 + (at >> 16) * 7 + 3);
}

static void fill_pattern(uint8_t *p, uint64_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(at + i);
}

void pipe_pump(struct pipe_end *pe)
{
	while (pe->s && pe->sent < pe->to_send) {
		void *to;
		size_t room = sb_stream_reserve(pe->s, &to);

		if (room == 0)
			return;
		room = (size_t)SB_MIN((uint64_t)room, pe->to_send - pe->sent);
		fill_pattern(to, pe->sent, room);
		sb_stream_commit(pe->s, room);
		pe->sent += room;
	}
	if (pe->s && !pe->hold_eof)
		sb_stream_send_eof(pe->s);
}

static size_t on_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct pipe_end *pe = sb_stream_owner(s);
	size_t n = (size_t)SB_MIN((uint64_t)len, pe->allow - pe->got);

	for (size_t i = 0; i < n; i++)
		pe->bad |= p[i] != pattern(pe->got + i);
	pe->got += n;
	return n;
}

static void on_eof(struct sb_stream *s)
{
	struct pipe_end *pe = sb_stream_owner(s);

	pe->eof = true;
}

static void on_reset(struct sb_stream *s)
{
	struct pipe_end *pe = sb_stream_owner(s);

	pe->reset = true;
	pe->s = NULL;
}

static void on_writable(struct sb_stream *s)
{
	pipe_pump(sb_stream_owner(s));
}

const struct sb_stream_ops pipe_ops = {
	.data = on_data, .eof = on_eof, .reset = on_reset, .writable = on_writable
};

void pipe_allow(struct pipe_end *pe, uint64_t more)
{
	pe->allow = UINT64_MAX - pe->allow < more ? UINT64_MAX : pe->allow + more;
	if (pe->s)
		sb_stream_resume(pe->s);
}

int pipe_open(struct end *e, struct pipe_end *pe, enum sb_stream_kind kind)
{
	pe->end = e;
	pe->kind = kind;
	return sb_stream_open(e->c, kind, 0, &pipe_ops, pe, &pe->s);
}

static void on_ready(struct sb_chan *c)
{
	struct end *e = sb_chan_owner(c);

	e->ready = true;
}

static int on_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	struct end *e = sb_chan_owner(c);

	e->n_control++;
	e->control_len = len;
	e->control_sum = 0;
	for (size_t i = 0; i < len; i++)
		e->control_sum = (uint8_t)(e->control_sum + msg[i]);
	return e->control_ret;
}

static int on_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind,
		     uint32_t cmd)
{
	struct end *e = sb_chan_owner(c);
	static struct pipe_end nowhere;
	struct pipe_end *pe = &nowhere;

	(void)cmd;
	if (e->opened_ret < 0)
		return e->opened_ret;
	if (e->n_opened < e->n_pipes)
		pe = &e->pipes[e->n_opened];
	else
		nowhere = (struct pipe_end){ 0 };
	e->n_opened++;
	pe->s = s;
	pe->end = e;
	pe->kind = kind;
	sb_stream_attach(s, &pipe_ops, pe);
	return 0;
}

static void on_closed(struct sb_chan *c, int err, const char *why)
{
	struct end *e = sb_chan_owner(c);

	e->closed = true;
	e->err = err;
	(void)snprintf(e->why, sizeof(e->why), "%s", why);
	for (size_t i = 0; i < e->n_pipes; i++)
		e->pipes[i].s = NULL;
}

const struct sb_chan_ops end_ops = {
	.ready = on_ready, .control = on_control, .opened = on_opened, .closed = on_closed
};

static int end_start(struct pair *p, struct end *e, enum sb_chan_role role, uint8_t key)
{
	struct sb_chan_config cfg = { .loop = p->loop,
				      .role = role,
				      .fd_in = e->fd,
				      .fd_out = e->fd,
				      .psk = { key },
				      .prologue = PEER_PROLOGUE,
				      .prologue_len = sizeof(PEER_PROLOGUE),
				      .max_net = p->max_net,
				      .ops = &end_ops,
				      .owner = e };

	return sb_chan_new(&cfg, &e->c);
}

int pair_start(struct pair *p, bool wrong_key)
{
	int sv[2];
	int r;

	p->host.fd = -1;
	p->guest.fd = -1;
	r = sb_loop_new(&p->loop);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		return -errno;
	p->host.fd = sv[0];
	p->guest.fd = sv[1];
	r = end_start(p, &p->host, SB_CHAN_HOST, 1);
	if (r == 0)
		r = end_start(p, &p->guest, SB_CHAN_GUEST, wrong_key ? 2 : 1);
	return r;
}

void pair_stop(struct pair *p)
{
	p->host.c = sb_chan_free(p->host.c);
	p->guest.c = sb_chan_free(p->guest.c);
	if (p->host.fd >= 0)
		(void)close(p->host.fd);
	if (p->guest.fd >= 0)
		(void)close(p->guest.fd);
	p->host.fd = -1;
	p->guest.fd = -1;
	p->loop = sb_loop_free(p->loop);
}

bool pair_until(struct pair *p, bool (*done)(void *), void *arg, int ms)
{
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	while (!done(arg)) {
		if (sb_now_ns() > end || sb_loop_turn(p->loop, 20) < 0)
			return false;
	}
	return true;
}

bool pair_ready(void *arg)
{
	const struct pair *p = arg;

	return p->host.ready && p->guest.ready;
}
