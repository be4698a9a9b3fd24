#include "t.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>

#define MAX_TESTS 512

static struct {
	const char *name;
	t_fn *fn;
} tests[MAX_TESTS];
static int n_tests;
static int failures;
static const char *skipped;

void t_register(const char *name, t_fn *fn)
{
	if (n_tests == MAX_TESTS)
		abort();
	tests[n_tests].name = name;
	tests[n_tests].fn = fn;
	n_tests++;
}

void t_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	failures++;
	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void t_skip(const char *why)
{
	skipped = why;
}

int t_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 3; /* ".", "..", the directory itself */
}

int main(int argc, char **argv)
{
	int bad = 0;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%d\n", n_tests);
	for (int i = 0; i < n_tests; i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name) != 0) {
			printf("ok %d - %s # SKIP not selected\n", i + 1, tests[i].name);
			continue;
		}
		failures = 0;
		skipped = NULL;
		tests[i].fn();
		if (failures > 0) {
			bad++;
			printf("not ok %d - %s\n", i + 1, tests[i].name);
		} else if (skipped) {
			printf("ok %d - %s # SKIP %s\n", i + 1, tests[i].name, skipped);
		} else {
			printf("ok %d - %s\n", i + 1, tests[i].name);
		}
	}
	return bad ? 1 : 0;
}
