/*
 * exec_load N: start a program that ends at once N times, one after the other, and print the
 * median nanoseconds of one start, from vfork to the end of the program. Static.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t one(const char *self)
{
	char *argv[] = { (char *)(uintptr_t)self, NULL };
	char *env[] = { NULL };
	uint64_t start = now();
	pid_t pid = vfork();
	int status = 1;

	if (pid == 0) {
		(void)execve(self, argv, env);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		exit(3);
	return now() - start;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 0;
	uint64_t *t;

	if (n == 0)
		return 0;
	t = calloc(n, sizeof(*t));
	if (!t)
		return 2;
	for (size_t i = 0; i < n; i++)
		t[i] = one(argv[0]);
	qsort(t, n, sizeof(*t), by_size);
	printf("%llu\n", (unsigned long long)t[n / 2]);
	free(t);
	return 0;
}
