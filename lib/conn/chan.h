#ifndef SB_CONN_CHAN_H
#define SB_CONN_CHAN_H
/*
 * One end of the channel between host and guest: Noise NNpsk0 handshake, AEAD records with strict
 * sequence numbers, multiplexed streams with credit flow control and three priorities, over one
 * ordered byte stream (a socket or a virtio-serial port, non-blocking). Single-threaded, on one
 * loop. Formats and state machines: docs/protocol/channel.md.
 *
 * Any error (tag, length, sequence, state, credit) kills the channel: ops.closed is called once
 * and nothing else after it. There is no resynchronisation.
 */
#include "base/mem.h"
#include "os/loop.h"

struct sb_chan;
struct sb_stream;

enum sb_chan_role {
	SB_CHAN_NONE = 0,
	SB_CHAN_HOST = 1,  /* initiator; opens streams */
	SB_CHAN_GUEST = 2, /* responder */
};
enum sb_stream_kind {
	SB_STREAM_NONE = 0,
	SB_STREAM_STDIN = 2,    /* host -> guest */
	SB_STREAM_STDOUT = 3,   /* guest -> host */
	SB_STREAM_STDERR = 4,   /* guest -> host */
	SB_STREAM_TERMINAL = 5, /* both ways */
	SB_STREAM_NET = 6,      /* both ways; opened by the guest, cmd 0; towards the net gate */
	SB_STREAM_SSH = 7,      /* the same towards the SSH agent's relay */
};

#define SB_CHAN_MAX_STREAMS 64          /* opened by the host */
#define SB_CHAN_NET_SPARE 8             /* for DNS, and for connections that will be refused */
#define SB_CHAN_MAX_SSH 32              /* of the SSH relay, and those that will be refused */
#define SB_CHAN_MAX_NET (4096 + SB_CHAN_NET_SPARE + SB_CHAN_MAX_SSH) /* opened by the guest; bound of max_net */
#define SB_CHAN_WINDOW (1U << 20)       /* bytes in flight per stream and direction */
#define SB_CHAN_NET_WINDOW (256U << 10) /* the same for SB_STREAM_NET, SB_STREAM_SSH */

/* sb_chan_config.max_net for @plan (struct sb_plan *): the same number at both ends. */
#define SB_CHAN_NET_ROOM(plan)                                                                     \
	(((plan)->net.mode == SB_NET_NONE ? 0U                                                     \
					  : (plan)->net.max_connections + SB_CHAN_NET_SPARE) +     \
	 ((plan)->ssh.n_keys == 0 ? 0U : SB_CHAN_MAX_SSH))

struct sb_chan_ops {
	/* Handshake complete; streams may be opened, control messages sent. */
	void (*ready)(struct sb_chan *c);
	/* A whole control message (sb_ctl_parse it). Return <0 to kill the channel. */
	int (*control)(struct sb_chan *c, const uint8_t *msg, size_t len);
	/* The peer opened a stream (guest: for command @cmd; host: SB_STREAM_NET or SSH). Call
	 * sb_stream_attach() before returning 0; return <0 to kill the channel. */
	int (*opened)(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind,
		      uint32_t cmd);
	/* The channel is dead; @err is -errno (0 = carrier ended between records), @why borrowed
	 * text for a log. Streams are gone after this returns. Free the channel from here or later. */
	void (*closed)(struct sb_chan *c, int err, const char *why);
};

struct sb_stream_ops {
	/* Bytes arrived. Return how many were taken; fewer than @len means the sink is full: the
	 * rest waits inside (never more than the window) until sb_stream_resume(). */
	size_t (*data)(struct sb_stream *s, const uint8_t *p, size_t len);
	/* The peer will send no more and everything was taken by data(). When it takes no more
	 * either, reset() follows, unless this side has sent its EOF. */
	void (*eof)(struct sb_stream *s);
	/* The peer abandoned the stream: forget it (do not close it). */
	void (*reset)(struct sb_stream *s);
	/* sb_stream_space() is above 0 again after it was 0. */
	void (*writable)(struct sb_stream *s);
};

struct sb_chan_config {
	struct sb_loop *loop;
	enum sb_chan_role role;
	int fd_in;             /* borrowed, non-blocking; may equal fd_out */
	int fd_out;
	uint8_t psk[32];       /* copied, wiped after the handshake */
	const void *prologue;  /* what both ends must agree on: plan digest, session id */
	size_t prologue_len;
	uint32_t max_net;      /* NET streams alive at a time, SB_CHAN_NET_ROOM at both ends;
				* 0 = none: an OPEN kills the channel */
	const struct sb_chan_ops *ops;
	void *owner;
};

/* Start the handshake. Return: 0; -ENOMEM; -EINVAL; -errno. */
SB_MUST_CHECK int sb_chan_new(const struct sb_chan_config *cfg, struct sb_chan **ret);
struct sb_chan *sb_chan_free(struct sb_chan *c);
void *sb_chan_owner(const struct sb_chan *c);

/* Send one control message. Return: 0; -EMSGSIZE; -ENOBUFS when the peer does not read
 * control messages (a few hundred KiB are queued); -ENOTCONN when dead or not ready. */
SB_MUST_CHECK int sb_chan_control(struct sb_chan *c, const uint8_t *msg, size_t len);
/* How many bytes of control messages sb_chan_control would queue now; 0 when dead or not ready. */
size_t sb_chan_control_room(const struct sb_chan *c);
/* Whether everything queued was handed to the carrier. */
bool sb_chan_flushed(const struct sb_chan *c);

/*
 * NET (@cmd 0): guest only, the other kinds: host only. A stream counts as alive until both ends
 * closed it and it was forgotten here.
 * Return: 0; -ENOBUFS (too many streams alive); -ENOMEM; -ENOTCONN.
 */
SB_MUST_CHECK int sb_stream_open(struct sb_chan *c, enum sb_stream_kind kind, uint32_t cmd,
				 const struct sb_stream_ops *ops, void *owner,
				 struct sb_stream **ret);
void sb_stream_attach(struct sb_stream *s, const struct sb_stream_ops *ops, void *owner);
void *sb_stream_owner(const struct sb_stream *s);

/* How many bytes sb_stream_write/commit would take now (credit and queue room). */
size_t sb_stream_space(const struct sb_stream *s);
/* Copy in and send. Return: bytes taken, 0..len. */
size_t sb_stream_write(struct sb_stream *s, const void *p, size_t len);
/*
 * Zero-copy send: reserve room inside the output queue, read(2) straight into it, commit.
 * At most one reservation at a time; commit 0 gives it back. Return: room (0 = none now).
 */
size_t sb_stream_reserve(struct sb_stream *s, void **ret);
void sb_stream_commit(struct sb_stream *s, size_t len);
/* No more bytes from this side. */
void sb_stream_send_eof(struct sb_stream *s);
/* The sink has room again: data() is called with what waits (possibly at once). */
void sb_stream_resume(struct sb_stream *s);
/* Done with the stream: both directions are abandoned if still open, the struct is gone. */
void sb_stream_close(struct sb_stream *s);

#endif
