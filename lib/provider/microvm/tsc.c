#include <time.h>

#include "provider/microvm/vm.h"

#if defined(__x86_64__)
#include <x86intrin.h>

#define TRIES 50
#define APART_NS 5000000U

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* Of many tries the one with the least time between the readings: no pre-emption inside. */
void sb_tsc_begin(struct sb_tsc *t)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = __rdtsc();
		uint64_t ns = now_ns();
		uint64_t gap = __rdtsc() - before;

		if (gap < best) {
			best = gap;
			t->count = before + gap / 2;
			t->ns = ns;
		}
	}
}

uint64_t sb_tsc_khz(const struct sb_tsc *begin)
{
	struct sb_tsc end = { 0 };
	uint64_t passed = now_ns() - begin->ns;

	while (passed < APART_NS) {
		struct timespec rest = { .tv_nsec = (long)(APART_NS - passed) };

		(void)nanosleep(&rest, NULL);
		passed = now_ns() - begin->ns;
	}
	sb_tsc_begin(&end);
	return (uint64_t)((double)(end.count - begin->count) * 1e6 / (double)(end.ns - begin->ns) +
			  0.5);
}
#else
void sb_tsc_begin(struct sb_tsc *t)
{
	*t = (struct sb_tsc){ 0 };
}

uint64_t sb_tsc_khz(const struct sb_tsc *begin)
{
	(void)begin;
	return 0;
}
#endif
