/*
 * Theory of operation. Each registered source has a slot in a table; the epoll data is
 * {slot, generation}. Deleting a source empties its slot and bumps the generation, so an event
 * that was fetched before the deletion finds no source. Descriptors that epoll refuses (regular
 * files: EPERM) are kept in the table with `always` set and called once per turn while they want
 * something. Timers are a sorted list: a process has a handful.
 */
#include "os/loop.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define TURN_EVENTS 64

struct slot {
	struct sb_io *io;
	uint32_t gen;
};

struct sb_loop {
	int epfd;
	struct slot *slots;
	uint32_t n_slots;
	uint32_t first; /* no slot before this one is free */
	uint32_t n_always; /* sources with `always` set */
	struct sb_timer *timers;
	bool stopped;
	int status;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	sb_assert(clock_gettime(clock, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

uint64_t sb_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t sb_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int sb_loop_new(struct sb_loop **ret)
{
	sb_autofree struct sb_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return -errno;
	*ret = sb_take(&l);
	return 0;
}

struct sb_loop *sb_loop_free(struct sb_loop *l)
{
	if (l) {
		sb_fd_close(&l->epfd);
		free(l->slots);
		free(l);
	}
	return NULL;
}

static int slot_get(struct sb_loop *l, uint32_t *ret)
{
	struct slot *bigger;
	uint32_t n;

	for (uint32_t i = l->first; i < l->n_slots; i++) {
		if (!l->slots[i].io) {
			*ret = i;
			l->first = i;
			return 0;
		}
	}
	n = l->n_slots ? l->n_slots * 2 : 16;
	bigger = realloc(l->slots, n * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	memset(bigger + l->n_slots, 0, (n - l->n_slots) * sizeof(*bigger));
	*ret = l->n_slots;
	l->first = l->n_slots;
	l->slots = bigger;
	l->n_slots = n;
	return 0;
}

static int ctl(struct sb_loop *l, int op, const struct sb_io *io, uint32_t slot)
{
	struct epoll_event ev = {
		.events = io->events,
		.data.u64 = (uint64_t)l->slots[slot].gen << 32 | slot,
	};

	return epoll_ctl(l->epfd, op, io->fd, &ev) < 0 ? -errno : 0;
}

int sb_io_set(struct sb_loop *l, struct sb_io *io, int fd, uint32_t events, sb_io_fn *fn,
	      void *owner)
{
	uint32_t slot;
	int r;

	if (io->active) {
		sb_assert(io->loop == l && io->fd == fd);
		io->fn = fn;
		io->owner = owner;
		return sb_io_want(io, events);
	}
	r = slot_get(l, &slot);
	if (r < 0)
		return r;
	*io = (struct sb_io){ .fn = fn, .owner = owner, .fd = fd, .events = events, .loop = l };
	r = ctl(l, EPOLL_CTL_ADD, io, slot);
	if (r == -EPERM) {
		io->always = true;
		l->n_always++;
	} else if (r < 0) {
		return r;
	}
	l->slots[slot].io = io;
	io->slot = slot + 1;
	io->active = true;
	return 0;
}

int sb_io_want(struct sb_io *io, uint32_t events)
{
	uint32_t was = io->events;
	int r;

	sb_assert(io->active);
	if (events == was)
		return 0;
	io->events = events;
	if (io->always)
		return 0;
	r = ctl(io->loop, EPOLL_CTL_MOD, io, io->slot - 1);
	if (r < 0)
		io->events = was;
	return r;
}

void sb_io_del(struct sb_io *io)
{
	struct sb_loop *l = io->loop;

	if (!io->active)
		return;
	if (io->always) {
		l->n_always--;
	} else {
		/* a descriptor that was closed first would leave a stale registration behind */
		sb_assert(epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL) == 0);
	}
	l->slots[io->slot - 1].io = NULL;
	l->slots[io->slot - 1].gen++;
	l->first = SB_MIN(l->first, io->slot - 1);
	io->active = false;
	io->slot = 0;
}

void sb_timer_set(struct sb_loop *l, struct sb_timer *t, uint64_t delay_ns, sb_timer_fn *fn,
		  void *owner)
{
	struct sb_timer **at = &l->timers;

	sb_timer_del(t);
	*t = (struct sb_timer){
		.fn = fn, .owner = owner, .due_ns = sb_now_ns() + delay_ns, .active = true, .loop = l
	};
	while (*at && (*at)->due_ns <= t->due_ns)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
}

void sb_timer_del(struct sb_timer *t)
{
	if (!t->active)
		return;
	for (struct sb_timer **at = &t->loop->timers; *at; at = &(*at)->next) {
		if (*at == t) {
			*at = t->next;
			break;
		}
	}
	t->active = false;
	t->next = NULL;
}

static int wait_ms(const struct sb_loop *l, int timeout_ms)
{
	uint64_t now;
	uint64_t ms;

	if (l->n_always > 0) {
		for (uint32_t i = 0; i < l->n_slots; i++)
			if (l->slots[i].io && l->slots[i].io->always && l->slots[i].io->events)
				return 0;
	}
	if (!l->timers)
		return timeout_ms;
	now = sb_now_ns();
	if (l->timers->due_ns <= now)
		return 0;
	ms = (l->timers->due_ns - now + 999999) / 1000000;
	if (ms > 3600000)
		ms = 3600000;
	return timeout_ms >= 0 && (uint64_t)timeout_ms < ms ? timeout_ms : (int)ms;
}

static void run_always(struct sb_loop *l)
{
	for (uint32_t i = 0; l->n_always > 0 && i < l->n_slots; i++) {
		struct sb_io *io = l->slots[i].io;

		if (io && io->always && io->events)
			io->fn(io, io->events & (EPOLLIN | EPOLLOUT));
	}
}

static void run_timers(struct sb_loop *l)
{
	uint64_t now = sb_now_ns();

	for (int budget = TURN_EVENTS; budget > 0; budget--) {
		struct sb_timer *t = l->timers;

		if (!t || t->due_ns > now)
			return;
		l->timers = t->next;
		t->active = false;
		t->next = NULL;
		t->fn(t);
	}
}

int sb_loop_turn(struct sb_loop *l, int timeout_ms)
{
	struct epoll_event ev[TURN_EVENTS];
	int n = epoll_wait(l->epfd, ev, TURN_EVENTS, wait_ms(l, timeout_ms));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		uint32_t slot = (uint32_t)ev[i].data.u64;
		uint32_t gen = (uint32_t)(ev[i].data.u64 >> 32);
		struct sb_io *io = l->slots[slot].io;

		if (io && l->slots[slot].gen == gen)
			io->fn(io, ev[i].events);
	}
	run_always(l);
	run_timers(l);
	return 0;
}

int sb_loop_run(struct sb_loop *l)
{
	l->stopped = false;
	while (!l->stopped) {
		int r = sb_loop_turn(l, -1);

		if (r < 0)
			return r;
	}
	return l->status;
}

void sb_loop_stop(struct sb_loop *l, int status)
{
	l->stopped = true;
	l->status = status;
}
