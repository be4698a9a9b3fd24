#include "sizes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 1000000U
#define DEPTH_MAX 48

/* Allocated bytes below @fd, which is taken. */
static uint64_t used(int fd, unsigned int depth, unsigned int *left)
{
	DIR *d = fdopendir(fd);
	uint64_t sum = 0;
	struct dirent *e;

	if (!d) {
		(void)close(fd);
		return 0;
	}
	while ((e = readdir(d)) && *left > 0) {
		struct stat st;
		int sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(*left)--;
		sum += (uint64_t)st.st_blocks * 512;
		if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
			continue;
		sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (sub >= 0)
			sum += used(sub, depth + 1, left);
	}
	(void)closedir(d);
	return sum;
}

uint64_t sizes_used(int fd)
{
	unsigned int left = FILES_MAX;

	return fd < 0 ? 0 : used(fd, 0, &left);
}

void sizes_text(uint64_t n, char *out, size_t cap)
{
	static const char units[] = "BKMGT";
	size_t u = 0;
	double v = (double)n;

	while (v >= 1024 && u < 4) {
		v /= 1024;
		u++;
	}
	if (u == 0)
		(void)snprintf(out, cap, "%lluB", (unsigned long long)n);
	else
		(void)snprintf(out, cap, v < 10 ? "%.1f%c" : "%.0f%c", v, units[u]);
}

void sizes_duration(uint64_t ns, char *out, size_t cap)
{
	unsigned long long s = ns / 1000000000U;

	if (s < 10)
		(void)snprintf(out, cap, "%llu.%llus", s, (unsigned long long)(ns / 100000000U % 10));
	else if (s < 60)
		(void)snprintf(out, cap, "%llus", s);
	else if (s < 3600)
		(void)snprintf(out, cap, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(out, cap, "%lluh%02llum", s / 3600, s / 60 % 60);
	else
		(void)snprintf(out, cap, "%llud%lluh", s / 86400, s / 3600 % 24);
}
