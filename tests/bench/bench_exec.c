/*
 * A further command in a running session against fork+exec of the same program in the guest.
 *
 *   bench_exec [N]           prints one JSON line a figure
 *   bench_exec --inside N    what runs inside: N times fork, exec, wait
 *
 * Same confinement, same user, same program (/bin/true) on both sides; the session's figure is
 * from the host's request to the host knowing the exit status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/guest/host_end.h"

#define MAX_N 2000U

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), order);
	return (double)v[n / 2] / 1000.0;
}

static int inside(size_t n)
{
	static uint64_t v[MAX_N];

	for (size_t i = 0; i < n; i++) {
		uint64_t t = sb_now_ns();
		pid_t pid = fork();

		if (pid == 0) {
			(void)execl("/bin/true", "/bin/true", (char *)NULL);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
		v[i] = sb_now_ns() - t;
	}
	printf("%.1f\n", median_us(v, n));
	return 0;
}

int main(int argc, char **argv)
{
	static char number[16] = "300";
	static uint64_t v[MAX_N];
	char self[512];
	char *args[] = { self, (char *)(uintptr_t) "--inside", number, NULL };
	char *command[] = { (char *)(uintptr_t) "/bin/true", NULL };
	struct he h;
	double plain;
	double further;
	ssize_t len;
	size_t n;

	if (argc == 3 && strcmp(argv[1], "--inside") == 0)
		return inside(SB_MIN(strtoul(argv[2], NULL, 10), MAX_N));
	if (argc > 1)
		(void)snprintf(number, sizeof(number), "%s", argv[1]);
	n = SB_MIN(strtoul(number, NULL, 10), MAX_N);
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len <= 0 || n == 0)
		return 2;
	self[len] = '\0';
	if (!he_start(&h, args, false, false, NULL) || !he_open(&h, 0, "o") || !he_run(&h, 0, 0) ||
	    !he_until_exited(&h, 0) || h.cmd[0].result.exit.value != 0)
		return 1;
	plain = strtod(he_text(&h, 0), NULL);
	for (size_t i = 0; i < n; i++) {
		uint64_t t = sb_now_ns();

		h.cmd[1].exited = false;
		if (!he_exec(&h, 1, command, "/", 0) || !he_until_exited(&h, 1))
			return 1;
		v[i] = sb_now_ns() - t;
	}
	further = median_us(v, n);
	printf("{\"bench\":\"exec\",\"n\":%zu,\"fork_exec_us\":%.1f,\"further_command_us\":%.1f,"
	       "\"ratio\":%.2f,\"bar\":2.0}\n",
	       n, plain, further, further / plain);
	return he_stop(&h) == 0 ? 0 : 1;
}
