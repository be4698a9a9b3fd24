#ifndef BENCH_H
#define BENCH_H
/* What the small benchmark programs share: a clock, cheap randomness, one JSON line a figure. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The same numbers in every run. */
static inline uint32_t bench_rnd(uint32_t below)
{
	static uint64_t seed = 88172645463325252;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % below);
}

static inline int bench_by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the @n rounds in @v. */
static inline void bench_report(const char *name, const char *unit, int decimals, double *v,
				size_t n)
{
	qsort(v, n, sizeof(*v), bench_by_value);
	(void)printf("{\"bench\":\"%s\",\"unit\":\"%s\",\"median\":%.*f,\"min\":%.*f,\"max\":%.*f,"
		     "\"rounds\":%zu}\n",
		     name, unit, decimals, v[n / 2], decimals, v[0], decimals, v[n - 1], n);
}

#endif
