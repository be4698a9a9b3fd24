#include "os/loop.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int calls;
static struct sb_io *victim;

static void count(struct sb_io *io, uint32_t events)
{
	char c;

	(void)events;
	calls++;
	if (read(io->fd, &c, 1) < 0)
		calls += 100;
}

static void delete_other(struct sb_io *io, uint32_t events)
{
	(void)events;
	calls++;
	sb_io_del(io);
	sb_io_del(victim);
}

TEST(event_is_delivered)
{
	struct sb_loop *l = NULL;
	struct sb_io io = { 0 };
	int p[2];

	calls = 0;
	REQUIRE(sb_loop_new(&l) == 0 && pipe(p) == 0);
	CHECK_EQ(sb_io_set(l, &io, p[0], EPOLLIN, count, NULL), 0);
	CHECK_EQ(sb_loop_turn(l, 0), 0);
	CHECK_EQ(calls, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(sb_loop_turn(l, 1000), 0);
	CHECK_EQ(calls, 1);
	CHECK_EQ(sb_io_want(&io, 0), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(sb_loop_turn(l, 0), 0);
	CHECK_EQ(calls, 1);
	sb_io_del(&io);
	sb_io_del(&io); /* twice is harmless */
	(void)sb_loop_free(l);
	(void)close(p[0]);
	(void)close(p[1]);
}

/* Two sources ready in one turn; whoever runs first deletes the other: it must not run. */
TEST(deletion_drops_fetched_events)
{
	struct sb_loop *l = NULL;
	struct sb_io a = { 0 };
	struct sb_io b = { 0 };
	int p[2];
	int q[2];

	calls = 0;
	REQUIRE(sb_loop_new(&l) == 0 && pipe(p) == 0 && pipe(q) == 0);
	CHECK_EQ(sb_io_set(l, &a, p[0], EPOLLIN, delete_other, NULL), 0);
	CHECK_EQ(sb_io_set(l, &b, q[0], EPOLLIN, delete_other, NULL), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(write(q[1], "x", 1), 1);
	victim = &b;
	CHECK_EQ(sb_loop_turn(l, 1000), 0);
	CHECK_EQ(calls, 1);
	(void)sb_loop_free(l);
	for (int i = 0; i < 2; i++) {
		(void)close(p[i]);
		(void)close(q[i]);
	}
}

TEST(regular_files_are_always_ready)
{
	char name[] = "/tmp/sb-loop-XXXXXX";
	struct sb_loop *l = NULL;
	struct sb_io io = { 0 };
	int fd = mkstemp(name);

	calls = 0;
	REQUIRE(fd >= 0 && sb_loop_new(&l) == 0);
	(void)unlink(name);
	CHECK_EQ(sb_io_set(l, &io, fd, EPOLLIN, count, NULL), 0);
	CHECK(io.always);
	CHECK_EQ(sb_loop_turn(l, -1), 0); /* must not wait */
	CHECK_EQ(calls, 1);
	CHECK_EQ(sb_io_want(&io, 0), 0);
	CHECK_EQ(sb_loop_turn(l, 0), 0);
	CHECK_EQ(calls, 1);
	sb_io_del(&io);
	(void)sb_loop_free(l);
	(void)close(fd);
}

static int order[4];
static int n_order;
static struct sb_timer timers[4];

static void fired(struct sb_timer *t)
{
	order[n_order++] = (int)(t - timers);
	if (t == &timers[0])
		sb_timer_del(&timers[1]);
}

TEST(timers_run_in_order_and_can_be_deleted)
{
	struct sb_loop *l = NULL;

	n_order = 0;
	REQUIRE(sb_loop_new(&l) == 0);
	sb_timer_set(l, &timers[2], 3000000, fired, NULL);
	sb_timer_set(l, &timers[0], 1000000, fired, NULL);
	sb_timer_set(l, &timers[1], 2000000, fired, NULL);
	for (int i = 0; i < 10 && n_order < 2; i++)
		CHECK_EQ(sb_loop_turn(l, 100), 0);
	CHECK_EQ(n_order, 2);
	CHECK_EQ(order[0], 0);
	CHECK_EQ(order[1], 2);
	(void)sb_loop_free(l);
}

TEST(every_failure)
{
	T_EVERY_FAULT(n)
	{
		struct sb_loop *l = NULL;
		struct sb_io io = { 0 };
		int before = t_open_fds();
		int p[2];
		int r;

		REQUIRE(pipe(p) == 0);
		t_fault_arm(n);
		r = sb_loop_new(&l);
		if (r == 0) {
			r = sb_io_set(l, &io, p[0], EPOLLIN, count, NULL);
			CHECK_EQ(io.active, r == 0);
		} else {
			CHECK(!l);
		}
		t_fault_disarm();
		sb_io_del(&io);
		(void)sb_loop_free(l);
		(void)close(p[0]);
		(void)close(p[1]);
		CHECK_EQ(t_open_fds(), before);
		if (r == 0)
			return;
		CHECK(r == -ENOMEM || r == -EMFILE);
	}
}
