/*
 * main() for a fuzz target without a fuzzer: run every file named, and every file of every
 * directory named, through the target. The target aborts when an invariant does not hold.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_MAX (16U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

/* The copy has no byte to spare, so that the address sanitizer sees a read past the end. */
static int one(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *p;
	size_t have = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > INPUT_MAX)
		return -1;
	p = malloc((size_t)st.st_size + (st.st_size == 0));
	while (p && have < (size_t)st.st_size) {
		ssize_t n = read(fd, p + have, (size_t)st.st_size - have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	(void)close(fd);
	if (p && have == (size_t)st.st_size)
		(void)LLVMFuzzerTestOneInput(p, have);
	free(p);
	return have == (size_t)st.st_size ? 0 : -1;
}

static int all(const char *path, unsigned int *n)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	int r = 0;

	if (!d) {
		++*n;
		return one(AT_FDCWD, path);
	}
	while (r == 0 && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		++*n;
		r = one(dirfd(d), e->d_name);
	}
	(void)closedir(d);
	return r;
}

int main(int argc, char **argv)
{
	unsigned int n = 0;

	for (int i = 1; i < argc; i++) {
		if (all(argv[i], &n) < 0) {
			(void)fprintf(stderr, "cannot read %s\n", argv[i]);
			return 1;
		}
	}
	printf("1..1\nok 1 - %u inputs\n", n);
	return n == 0; /* a corpus that is not found is no pass */
}
