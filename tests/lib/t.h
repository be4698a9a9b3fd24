#ifndef SB_TESTS_T_H
#define SB_TESTS_T_H
/*
 * TAP harness: TEST(name) { CHECK_EQ(got, want); } registers itself; main() is in t.c.
 * A failed CHECK marks the test failed and goes on; REQUIRE returns from the test.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void t_fn(void);
void t_register(const char *name, t_fn *fn);
void t_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((__format__(__printf__, 3, 4)));
void t_skip(const char *why); /* marks the running test skipped; return after it */
int t_open_fds(void);         /* number of open descriptors of this process */

#define TEST(name)                                                                                 \
	static void name(void);                                                                    \
	__attribute__((__constructor__)) static void name##_reg_(void)                             \
	{                                                                                          \
		t_register(#name, name);                                                           \
	}                                                                                          \
	static void name(void)

#define CHECK(e)                                                                                   \
	do {                                                                                       \
		if (!(e))                                                                          \
			t_fail(__FILE__, __LINE__, "%s", #e);                                      \
	} while (0)
#define REQUIRE(e)                                                                                 \
	do {                                                                                       \
		if (!(e)) {                                                                        \
			t_fail(__FILE__, __LINE__, "%s", #e);                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)
#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		long long t_g = (long long)(got);                                                  \
		long long t_w = (long long)(want);                                                 \
		if (t_g != t_w)                                                                    \
			t_fail(__FILE__, __LINE__, "%s: got %lld, want %lld", #got, t_g, t_w);     \
	} while (0)
#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *t_g = (got);                                                           \
		const char *t_w = (want);                                                          \
		if (!t_g || strcmp(t_g, t_w) != 0)                                                 \
			t_fail(__FILE__, __LINE__, "%s: got \"%s\", want \"%s\"", #got,            \
			       t_g ? t_g : "(null)", t_w);                                         \
	} while (0)
#define CHECK_MEM(got, want, len) CHECK(memcmp((got), (want), (len)) == 0)

/*
 * Failure injection (t_fault.c, linked with -Wl,--wrap=...): after t_fault_arm(n) the n-th
 * wrapped call (1-based) fails with its customary errno. t_fault_fired() tells whether it did.
 * T_EVERY_FAULT(n) { t_fault_arm(n); ...; if (!t_fault_fired()) break; }
 */
void t_fault_arm(unsigned int nth);
bool t_fault_fired(void);
void t_fault_disarm(void);
bool t_fault_hit(int err); /* for further wrapped calls (t_fault_disk.c) */
extern size_t t_disk_chunk; /* of t_fault_disk.c: pwrite() writes so many bytes at most; 0 = all */
#define T_EVERY_FAULT(n) for (unsigned int n = 1; n < 10000; n++)

#endif
