/*
 * fs_fsx DIR PLAIN SEED COUNT: random operations on a file in DIR and the same on one in PLAIN;
 * every result and, now and then, the whole contents must be equal. Prints the seed and the
 * operation on a difference.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SIZE (512U << 10)

static uint64_t state;
static int dir[2];
static int fd[2];
static unsigned int step;
static uint8_t a[MAX_SIZE];
static uint8_t b[MAX_SIZE];

static uint32_t rnd(uint32_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(state >> 33) % below;
}

static void differ(const char *op, long x, long y)
{
	(void)printf("step %u %s: mount %ld, plain %ld\n", step, op, x, y);
	exit(1);
}

static void same(const char *op, long x, long y)
{
	if (x != y)
		differ(op, x, y);
}

static void reopen(void)
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			(void)close(fd[i]);
		fd[i] = openat(dir[i], "fsx", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (fd[i] < 0) {
			perror("open");
			exit(2);
		}
	}
}

static void compare_all(void)
{
	struct stat st[2];
	ssize_t n;

	if (fstat(fd[0], &st[0]) < 0 || fstat(fd[1], &st[1]) < 0)
		differ("fstat", -1, -1);
	same("size", st[0].st_size, st[1].st_size);
	n = pread(fd[0], a, sizeof(a), 0);
	same("read all", n, pread(fd[1], b, sizeof(b), 0));
	for (ssize_t i = 0; i < n; i++)
		if (a[i] != b[i])
			differ("byte at", i, a[i]);
}

static void map_write(uint32_t off, uint32_t len, uint8_t c)
{
	for (int i = 0; i < 2; i++) {
		struct stat st;
		uint8_t *m;

		if (fstat(fd[i], &st) < 0 || st.st_size < (off_t)off + (off_t)len)
			return;
		m = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd[i], 0);
		if (m == MAP_FAILED)
			differ("mmap", i, errno);
		(void)memset(m + off, c, len);
		if (rnd(1) == 0 && msync(m, (size_t)st.st_size, MS_SYNC) < 0)
			differ("msync", i, errno);
		(void)munmap(m, (size_t)st.st_size);
	}
}

static void rename_over(void)
{
	for (int i = 0; i < 2; i++) {
		int t = openat(dir[i], "fsx.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		if (t < 0 || write(t, "replaced", 8) != 8 ||
		    renameat(dir[i], "fsx.new", dir[i], "fsx") < 0)
			differ("rename", i, errno);
		(void)close(t);
	}
	reopen();
}

static void one(void)
{
	uint32_t off = rnd(MAX_SIZE - 1);
	uint32_t len = 1 + rnd(rnd(4) == 0 ? 65536 : 4096);
	uint32_t to = rnd(MAX_SIZE - 1);
	uint8_t c = (uint8_t)rnd(256);
	off_t o[4] = { off, to, off, to };

	if (len > MAX_SIZE - off)
		len = MAX_SIZE - off;
	switch (rnd(11)) {
	case 0:
	case 1:
	case 2:
		for (uint32_t i = 0; i < len; i++)
			a[i] = (uint8_t)(c + i);
		same("write", pwrite(fd[0], a, len, off), pwrite(fd[1], a, len, off));
		break;
	case 3: {
		ssize_t n = pread(fd[0], a, len, off);

		same("read", n, pread(fd[1], b, len, off));
		if (n > 0 && memcmp(a, b, (size_t)n) != 0)
			differ("read data at", off, n);
		break;
	}
	case 4:
		same("truncate", ftruncate(fd[0], off), ftruncate(fd[1], off));
		break;
	case 5:
		map_write(off, len, c);
		break;
	case 6:
		same("punch",
		     fallocate(fd[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len),
		     fallocate(fd[1], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len));
		break;
	case 7:
		same("zero", fallocate(fd[0], FALLOC_FL_ZERO_RANGE, off, len),
		     fallocate(fd[1], FALLOC_FL_ZERO_RANGE, off, len));
		break;
	case 8:
		if (to + len > MAX_SIZE || (to < off + len && off < to + len))
			break;
		same("copy", copy_file_range(fd[0], &o[0], fd[0], &o[1], len, 0),
		     copy_file_range(fd[1], &o[2], fd[1], &o[3], len, 0));
		break;
	case 9:
		if (rnd(8) == 0)
			rename_over();
		else
			reopen();
		break;
	default:
		same("fsync", fsync(fd[0]), fsync(fd[1]));
		break;
	}
}

int main(int argc, char **argv)
{
	unsigned long count;

	if (argc != 5)
		return 2;
	state = strtoull(argv[3], NULL, 10) * 2654435761U + 1;
	count = strtoul(argv[4], NULL, 10);
	fd[0] = fd[1] = -1;
	for (int i = 0; i < 2; i++) {
		dir[i] = open(argv[1 + i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir[i] < 0)
			return 2;
	}
	reopen();
	for (step = 0; step < count; step++) {
		one();
		if (step % 16 == 0)
			compare_all();
	}
	compare_all();
	for (int i = 0; i < 2; i++)
		(void)unlinkat(dir[i], "fsx", 0);
	return 0;
}
