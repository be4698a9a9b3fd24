#ifndef SB_OS_LOOP_H
#define SB_OS_LOOP_H
/*
 * One thread, one loop per process, over level-triggered epoll.
 *
 * Sources are embedded in their owner; the loop owns nothing and allocates nothing per source.
 * sb_io_del is synchronous (it also drops events already fetched in this turn) and must precede
 * the close of the descriptor. A callback may delete any source, including its own. At most 64
 * events per turn, then due timers.
 */
#include <sys/epoll.h>

#include "base/mem.h"

struct sb_loop;
struct sb_io;
struct sb_timer;

/* @events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR bits that are ready */
typedef void sb_io_fn(struct sb_io *io, uint32_t events);
typedef void sb_timer_fn(struct sb_timer *t);

struct sb_io { /* zero it, or SB_IO_INIT, before the first use */
	sb_io_fn *fn;
	void *owner;      /* borrowed, for the callback */
	int fd;           /* borrowed */
	uint32_t events;
	bool active;      /* registered */
	bool always;      /* a regular file or the like that epoll refuses: always ready */
	uint32_t slot;    /* index in the loop's table, 1-based; 0 = none */
	struct sb_loop *loop;
};

struct sb_timer {
	sb_timer_fn *fn;
	void *owner;
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	bool active;
	struct sb_timer *next;
	struct sb_loop *loop;
};

SB_MUST_CHECK int sb_loop_new(struct sb_loop **ret);
struct sb_loop *sb_loop_free(struct sb_loop *l);

/* Run until sb_loop_stop(). Return: the value given to sb_loop_stop; -errno when epoll fails. */
SB_MUST_CHECK int sb_loop_run(struct sb_loop *l);
void sb_loop_stop(struct sb_loop *l, int status);
/* One turn, waiting at most @timeout_ms (-1 = as timers say). For tests and fuzzers. */
SB_MUST_CHECK int sb_loop_turn(struct sb_loop *l, int timeout_ms);

/* Add or change what @io waits for; events 0 keeps it registered for errors only. */
SB_MUST_CHECK int sb_io_set(struct sb_loop *l, struct sb_io *io, int fd, uint32_t events,
			    sb_io_fn *fn, void *owner);
/* Change the events of an active source; no system call when they are unchanged. */
SB_MUST_CHECK int sb_io_want(struct sb_io *io, uint32_t events);
void sb_io_del(struct sb_io *io);

void sb_timer_set(struct sb_loop *l, struct sb_timer *t, uint64_t delay_ns, sb_timer_fn *fn,
		  void *owner);
void sb_timer_del(struct sb_timer *t);

uint64_t sb_now_ns(void);  /* CLOCK_MONOTONIC */
uint64_t sb_real_ns(void); /* CLOCK_REALTIME, for records */

#endif
