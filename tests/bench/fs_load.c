/*
 * fs_load DIR BIG SCRATCH: walk with lstat twice, read every small file, read BIG twice, uncached
 * look-ups of missing names, create and unlink 1,000 files of 2 KiB in SCRATCH. One JSON line each.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static unsigned long files;
static bool reading;
static char buf[1 << 20];

static double now_ms(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) < 0)
		return 0;
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int visit(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	int fd;

	(void)st;
	(void)at;
	if (flag != FTW_F)
		return 0;
	files++;
	if (!reading)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	if (fd >= 0)
		(void)close(fd);
	return 0;
}

static void report(const char *what, double since)
{
	(void)printf("{\"bench\":\"fs\",\"what\":\"%s\",\"ms\":%.2f}\n", what, now_ms() - since);
}

static void walk(const char *dir, const char *what, bool read_all)
{
	double t = now_ms();

	files = 0;
	reading = read_all;
	if (nftw(dir, visit, 16, FTW_PHYS) != 0)
		perror(dir);
	report(what, t);
}

static void sequential(const char *path, const char *what)
{
	double t = now_ms();
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	(void)close(fd);
	report(what, t);
}

static void create(const char *dir)
{
	char path[4200];
	double t = now_ms();

	for (int i = 0; i < 1000; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/w%d", dir, i);
		fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || write(fd, buf, 2048) != 2048)
			perror(path);
		(void)close(fd);
	}
	report("create_1000", t);
	t = now_ms();
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(path, sizeof(path), "%s/w%d", dir, i);
		if (unlink(path) < 0)
			perror(path);
	}
	report("unlink_1000", t);
}

int main(int argc, char **argv)
{
	char path[4200];
	struct stat st;
	double t;

	if (argc != 4)
		return 2;
	walk(argv[1], "walk_first", false);
	walk(argv[1], "walk_second", false);
	walk(argv[1], "read_small", true);
	sequential(argv[2], "read_big_first");
	sequential(argv[2], "read_big_second");
	t = now_ms();
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(path, sizeof(path), "%s/missing-%d", argv[3], i);
		if (lstat(path, &st) == 0)
			return 1;
	}
	report("lookup_missing_1000", t);
	create(argv[3]);
	return 0;
}
