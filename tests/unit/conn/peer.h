#ifndef SB_TESTS_CONN_PEER_H
#define SB_TESTS_CONN_PEER_H
/* Two ends of a channel on one loop over a socket pair, with counting sinks and sources. */
#include "conn/chan.h"
#include "t.h"

#define PEER_PROLOGUE "test-prologue"

struct end;

/* What one end does with one stream. Bytes follow a fixed pattern, so every loss shows. */
struct pipe_end {
	struct end *end;
	struct sb_stream *s;
	enum sb_stream_kind kind;
	uint64_t to_send; /* pattern bytes still to offer, then EOF */
	uint64_t sent;
	uint64_t got;
	uint64_t allow; /* the sink takes no more than this in all */
	bool bad;       /* a byte was not the one expected */
	bool eof;
	bool reset;
	bool hold_eof; /* do not send EOF at the end */
};

struct end {
	struct sb_chan *c;
	int fd;
	bool ready;
	bool closed;
	int err;
	char why[80];
	unsigned int n_control;
	size_t control_len;
	uint8_t control_sum;
	int control_ret;
	int opened_ret;
	struct pipe_end *pipes; /* taken in order by opened() */
	size_t n_pipes;
	size_t n_opened;
};

struct pair {
	struct sb_loop *loop;
	struct end host;
	struct end guest;
	uint32_t max_net; /* of both ends */
};

extern const struct sb_stream_ops pipe_ops;
extern const struct sb_chan_ops end_ops;

int pair_start(struct pair *p, bool wrong_key);
void pair_stop(struct pair *p);
/* Turns until @done or @ms passed. Return: whether it was reached. */
bool pair_until(struct pair *p, bool (*done)(void *), void *arg, int ms);
bool pair_ready(void *pair);
int pipe_open(struct end *e, struct pipe_end *pe, enum sb_stream_kind kind);
void pipe_pump(struct pipe_end *pe);
void pipe_allow(struct pipe_end *pe, uint64_t more);
uint8_t pattern(uint64_t at);

#endif
