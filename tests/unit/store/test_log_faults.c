/*
 * Every call that can fail is made to fail once, while records are appended, and is cut short once; and
 * a writer is killed at every point. What was there before is there afterwards, and the next writer goes
 * on.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "log_place.h"

static uint64_t records(const struct place *p)
{
	struct sb_audit_report rep;

	if (place_verify(p, &rep) < 0 || !rep.good)
		return UINT64_MAX;
	return rep.n;
}

static void begin_with(struct place *p, unsigned int n)
{
	sb_autolog struct sb_audit_log *l = NULL;

	place_make(p);
	CHECK_EQ(sb_audit_log_open(p->dir, p->sec, &l, NULL), 0);
	CHECK_EQ(place_write(l, "before", n, NULL), 0);
	CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
}

/* Open, two batches, a head. Return: the first failure. */
static int work(const struct place *p, struct sb_err *err)
{
	sb_autolog struct sb_audit_log *l = NULL;
	int r = sb_audit_log_open(p->dir, p->sec, &l, err);

	if (r == 0)
		r = place_write(l, "now", 2, err);
	if (r == 0)
		r = sb_audit_log_sync(l, err);
	if (r == 0)
		r = place_write(l, "now", 1, err);
	if (r == 0)
		r = sb_audit_log_sign(l, NULL, err);
	return r;
}

static void check_after(const struct place *p, uint64_t before, unsigned int n)
{
	uint64_t now = records(p);

	if (now != before && now != before + 2 && now != before + 3)
		t_fail(__FILE__, __LINE__, "fault %u: %llu records", n, (unsigned long long)now);
	if (work(p, NULL) < 0)
		t_fail(__FILE__, __LINE__, "fault %u: the next writer cannot go on", n);
	if (records(p) != now + 3)
		t_fail(__FILE__, __LINE__, "fault %u: the next writer's records", n);
}

TEST(every_failure)
{
	unsigned int failed = 0;

	T_EVERY_FAULT(n)
	{
		struct place p;
		struct sb_err err = { 0 };
		int fds;
		bool fired;
		int r;

		begin_with(&p, 3);
		fds = t_open_fds();
		t_fault_arm(n);
		r = work(&p, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK_EQ(t_open_fds(), fds);
		if (r < 0) {
			CHECK(err.code == r && err.text[0]);
			failed++;
		}
		check_after(&p, 3, n);
		place_done(&p);
		if (!fired)
			break;
	}
	CHECK(failed > 8);
}

/* A disk that is full after so many bytes: a record, a head or a segment that has no room is none. */
TEST(no_room)
{
	for (unsigned int room = 0; room < 1400; room += 61) {
		struct place p;
		struct stat st;
		struct sb_err err = { 0 };
		struct rlimit was;
		struct rlimit less;
		int r;

		begin_with(&p, 3);
		REQUIRE(fstatat(p.dir, "log-00000000000000000000", &st, 0) == 0);
		REQUIRE(getrlimit(RLIMIT_FSIZE, &was) == 0);
		less = was;
		less.rlim_cur = (rlim_t)st.st_size + room;
		(void)signal(SIGXFSZ, SIG_IGN);
		REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
		r = work(&p, &err);
		REQUIRE(setrlimit(RLIMIT_FSIZE, &was) == 0);
		CHECK(r == 0 || (r == -EFBIG && strstr(err.text, "audit log")));
		check_after(&p, 3, room);
		place_done(&p);
	}
}

/* Killed whenever it happens to be killed. */
TEST(killed)
{
	struct place p;
	uint64_t at_least = 3;

	begin_with(&p, 3);
	for (unsigned int i = 0; i < 40; i++) {
		uint64_t now;
		pid_t pid = fork();

		if (pid == 0) {
			sb_autolog struct sb_audit_log *l = NULL;

			if (sb_audit_log_open(p.dir, p.sec, &l, NULL) < 0)
				_exit(1);
			for (;;)
				if (place_write(l, "killed", 7, NULL) < 0 ||
				    sb_audit_log_sign(l, NULL, NULL) < 0)
					_exit(1);
		}
		REQUIRE(pid > 0);
		(void)usleep(1500 + 331 * i);
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		now = records(&p);
		CHECK(now != UINT64_MAX && now >= at_least);
		at_least = now;
		CHECK_EQ(work(&p, NULL), 0);
		at_least += 3;
		CHECK_EQ(records(&p), at_least);
	}
	place_done(&p);
}
