#ifndef SB_CONN_CHAN_I_H
#define SB_CONN_CHAN_I_H
/* Shared by chan.c, queue.c, stream.c and table.c; see the theory of operation in chan.c. */
#include "conn/chan.h"
#include "crypto/noise.h"
#include "wire/ctl.h"
#include "wire/record.h"

#define HOST_IDS_END 0x80000000U /* the host's identifiers are smaller, the guest's larger */

/* Priorities of the output queue, most urgent first. */
enum chan_class {
	CLASS_CONTROL = 0, /* CONTROL, OPEN, CREDIT */
	CLASS_INTERACTIVE, /* TERMINAL, STDIN */
	CLASS_BULK,        /* STDOUT, STDERR, NET */
	N_CLASSES,
};

/* Names as in tests/model/channel.pml. */
enum chan_state {
	CHAN_DEAD = 0,
	CHAN_WAIT_HELLO, /* guest: waits for the first handshake message */
	CHAN_WAIT_REPLY, /* host: sent it, waits for the second */
	CHAN_OPEN,
};
enum tx_state {
	TX_NONE = 0, /* free entry */
	TX_OPEN,
	TX_EOF,          /* EOF queued, or this side never sends on this kind */
	TX_RESET_QUEUED, /* RESET waits in the queue: nothing follows it */
	TX_RESET,        /* RESET sealed */
};
enum rx_state {
	RX_NONE = 0,
	RX_OPEN,
	RX_EOF,   /* EOF arrived, or the peer never sends on this kind */
	RX_RESET, /* the peer's last frame arrived */
};

/* One record in the making: header, text (whole frames), room for the tag. */
struct slot {
	struct slot *next;
	uint32_t len;    /* bytes of text; once sealed: of the whole record */
	uint32_t sent;   /* sealed: bytes that the carrier took */
	uint32_t last;   /* offset of the last frame's header in the text */
	uint32_t resets; /* RESET frames inside */
	bool reserved;   /* a reservation points into it: not sealed, not extended */
	uint8_t buf[SB_REC_MAX];
};
struct slot_list {
	struct slot *head;
	struct slot *tail;
	uint32_t n;
};

/* Circular, the head is a link of its own; an entry that is in no list is zero. */
struct link {
	struct link *next;
	struct link *prev;
};

struct sb_stream {
	struct sb_chan *chan;
	struct sb_stream *next; /* in its bucket of the table, or in the graveyard */
	struct link wait;       /* blocked, with credit: waits for room in the queue */
	struct link due;        /* has credit to give back */
	uint32_t id;            /* 0 = dead: the memory stays until the stack is clear */
	uint32_t cmd;
	uint8_t kind;  /* enum sb_stream_kind */
	uint8_t class; /* enum chan_class of its DATA, EOF, RESET */
	uint8_t tx;    /* enum tx_state */
	uint8_t rx;    /* enum rx_state */
	bool app;      /* the application still holds it */
	bool sends;    /* this side has a data direction */
	bool clean;    /* the peer's EOF came (or it never sends) before its RESET */
	bool blocked;  /* space was 0 when asked: owes a writable() */
	bool full;     /* the sink took less than offered: wait for resume */
	bool eof_told;
	bool delivering; /* inside ops->data() */
	bool resume_again;
	uint32_t window;    /* bytes, of either direction */
	uint32_t tx_credit; /* bytes we may still send */
	uint32_t rx_credit; /* bytes the peer may still send */
	uint32_t rx_taken;  /* bytes the sink took that were not given back yet */
	uint8_t *buf;       /* owned; what the sink has not taken; NULL when empty */
	uint32_t head;
	uint32_t len;
	uint32_t room;
	const struct sb_stream_ops *ops;
	void *owner;
};

struct sb_chan {
	struct sb_loop *loop;
	const struct sb_chan_ops *ops;
	void *owner;
	enum sb_chan_role role;
	enum chan_state state;
	struct sb_noise noise;
	struct sb_aead tx;
	struct sb_aead rx;

	int fd_in;
	int fd_out;
	bool in_is_chr;
	bool out_is_sock;
	bool out_full; /* the carrier took less than offered: wait for EPOLLOUT */
	struct sb_io io_in;
	struct sb_io io_out; /* unused when fd_out == fd_in */
	struct sb_timer retry;    /* character device without a peer */
	struct sb_timer flush;    /* due at the end of the turn */
	struct sb_timer farewell; /* calls ops->closed */
	int error;
	const char *why;

	uint8_t *in; /* owned, IN_ROOM bytes */
	size_t in_head;
	size_t in_len;
	struct sb_buf ctl; /* reassembly of a control message */

	struct slot_list queue[N_CLASSES];
	struct slot_list sealed;
	struct slot *spare; /* free list */
	uint32_t n_spare;
	uint32_t run;       /* interactive records sealed in a row while bulk waited */
	struct slot *reserved;
	struct sb_stream *reserved_for;
	uint32_t reserved_at; /* offset of the reserved payload in the text */
	uint32_t reserved_len;
	struct link due;            /* streams with credit to give back */
	struct link wait[N_CLASSES]; /* streams that wait for room in the queue, longest first */

	struct sb_stream **table; /* owned; buckets by id */
	uint32_t mask;            /* buckets - 1 */
	uint32_t salt;            /* the guest chooses which of its streams live long */
	struct sb_stream *grave;  /* freed while a callback might still look at them */
	uint32_t next_id;         /* of the host's next stream */
	uint32_t next_net;        /* of the guest's */
	uint32_t n_host;          /* alive */
	uint32_t n_net;
	uint32_t max_net;

	int busy; /* depth of callbacks that may free the channel */
	bool free_pending;
};

/* chan.c */
void chan_die(struct sb_chan *c, int err, const char *why);
void chan_want_flush(struct sb_chan *c);
void chan_enter(struct sb_chan *c);
bool chan_leave(struct sb_chan *c); /* true: the channel was freed */

/* queue.c */
bool queue_frame(struct sb_chan *c, enum chan_class class, enum sb_frame_type type,
		 uint32_t stream, const void *p, uint32_t len);
size_t queue_space(const struct sb_chan *c, const struct sb_stream *s);
int queue_send(struct sb_chan *c); /* hand records to the carrier. Return: 0; -errno */
bool queue_empty(const struct sb_chan *c);
void queue_done(struct sb_chan *c);
struct slot *queue_raw(struct sb_chan *c); /* a slot for a handshake message, sealed list */

/* table.c */
int table_init(struct sb_chan *c, uint32_t max_net);
void table_done(struct sb_chan *c);
struct sb_stream *stream_find(const struct sb_chan *c, uint32_t id);
struct sb_stream *stream_new(struct sb_chan *c, uint32_t id); /* counted; NULL = no memory */
void stream_free(struct sb_stream *s);
void stream_free_all(struct sb_chan *c);
void stream_bury(struct sb_chan *c); /* the stack is clear */
bool stream_room(const struct sb_chan *c, bool net); /* whether one more may live */
void link_init(struct link *head);
void link_add(struct link *head, struct link *l); /* at the end, unless it is in a list */
void link_del(struct link *l);
bool link_none(const struct link *head);

/* stream.c */
int stream_frame(struct sb_chan *c, const struct sb_frame *f, const char **why);
void stream_block(struct sb_stream *s); /* it found no space */
void stream_reset_sealed(struct sb_chan *c, uint32_t id);
void stream_queue_credits(struct sb_chan *c);
void stream_wake(struct sb_chan *c);

#endif
