#include "provider/microvm/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

#define STAMP_AGE_S 2
#define STAMP_ROOM 256
#define PRUNE_MAX 256

int sb_cache_dir(const char *cache, const char *name, struct sb_err *err)
{
	sb_autofd int top = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofd int fd = -1;

	if (top < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", cache, strerror(errno));
	if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "cannot make %s/%s: %s", cache, name,
				  strerror(errno));
	fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return sb_err_set(err, -errno, "cannot open %s/%s: %s", cache, name,
				  strerror(errno));
	return sb_fd_take(&fd);
}

bool sb_cache_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int stamp_text(const struct stat *st, char *out)
{
	return snprintf(out, STAMP_ROOM,
			"1 %" PRIxMAX " %" PRIxMAX " %" PRIdMAX " %" PRIdMAX ".%09ld %" PRIdMAX
			".%09ld ",
			(uintmax_t)st->st_dev, (uintmax_t)st->st_ino, (intmax_t)st->st_size,
			(intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
			(intmax_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static void stamp_name(const struct stat *st, char *out, size_t room)
{
	(void)snprintf(out, room, "%" PRIxMAX "-%" PRIxMAX, (uintmax_t)st->st_dev,
		       (uintmax_t)st->st_ino);
}

static int stamp_read(int dir, const struct stat *st, uint8_t out[SB_SHA256_LEN])
{
	sb_autofree char *text = NULL;
	char name[64];
	char want[STAMP_ROOM];
	size_t n = (size_t)stamp_text(st, want);
	size_t len;
	int r;

	stamp_name(st, name, sizeof(name));
	r = sb_fd_read_file(dir, name, STAMP_ROOM, &text, &len);
	if (r < 0)
		return r;
	if (len != n + SB_HEX_SHA256 - 1 || memcmp(text, want, n) != 0)
		return -ENOENT;
	return sb_hex_parse(text + n, out, SB_SHA256_LEN);
}

static void stamp_write(int dir, const struct stat *st, const uint8_t sha[SB_SHA256_LEN])
{
	char name[64];
	char text[STAMP_ROOM];
	size_t n = (size_t)stamp_text(st, text);

	stamp_name(st, name, sizeof(name));
	sb_hex_write(sha, SB_SHA256_LEN, text + n);
	if (sb_fd_write_file(dir, name, text, strlen(text), 0600) < 0)
		return; /* without a stamp the file is hashed again: slower, not weaker */
}

int sb_cache_sha256(const char *cache, int fd, uint8_t out[SB_SHA256_LEN], struct stat *st)
{
	sb_autofd int dir = sb_cache_dir(cache, "stamps", NULL);
	uint8_t sha[SB_SHA256_LEN];
	struct stat before;
	struct stat after;
	struct timespec now;
	uint64_t len;
	int r;

	if (fstat(fd, &before) < 0)
		return -errno;
	if (!S_ISREG(before.st_mode))
		return -EINVAL;
	if (dir < 0 || stamp_read(dir, &before, sha) < 0) {
		if (clock_gettime(CLOCK_REALTIME, &now) < 0)
			return -errno;
		r = sb_sha256_fd(fd, sha, &len);
		if (r < 0)
			return r;
		if (fstat(fd, &after) < 0)
			return -errno;
		if (!sb_cache_same(&before, &after) || len != (uint64_t)before.st_size)
			return -EAGAIN;
		if (dir >= 0 && now.tv_sec - before.st_ctim.tv_sec >= STAMP_AGE_S)
			stamp_write(dir, &before, sha);
	}
	memcpy(out, sha, SB_SHA256_LEN);
	if (st)
		*st = before;
	return 0;
}

int sb_cache_write(int dirfd, const char *name, const void *p, size_t len)
{
	uint8_t rnd[8];
	char hex[2 * sizeof(rnd) + 1];
	char tmp[64];
	sb_autofd int fd = -1;
	int r;

	sb_random(rnd, sizeof(rnd));
	sb_hex_write(rnd, sizeof(rnd), hex);
	(void)snprintf(tmp, sizeof(tmp), ".%s.tmp", hex);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = sb_fd_write_all(fd, p, len);
	if (r == 0 && (fchmod(fd, 0444) < 0 || fsync(fd) < 0))
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0);
	else
		(void)fsync(dirfd);
	return r;
}

struct aged {
	char name[128];
	struct timespec at;
};

static int newest_first(const void *a, const void *b)
{
	const struct aged *x = a;
	const struct aged *y = b;

	if (x->at.tv_sec != y->at.tv_sec)
		return x->at.tv_sec < y->at.tv_sec ? 1 : -1;
	return (x->at.tv_nsec < y->at.tv_nsec) - (x->at.tv_nsec > y->at.tv_nsec);
}

static bool ends_in(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t m = strlen(suffix);

	return n > m && memcmp(s + n - m, suffix, m) == 0;
}

void sb_cache_prune(int dirfd, const char *suffix, size_t keep)
{
	sb_autofree struct aged *list = calloc(PRUNE_MAX, sizeof(*list));
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	size_t n = 0;

	if (!d)
		sb_fd_close(&fd);
	while (d && list && n < PRUNE_MAX && (e = readdir(d))) {
		struct stat st;

		if (!ends_in(e->d_name, suffix) || strlen(e->d_name) >= sizeof(list[n].name) ||
		    fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		memcpy(list[n].name, e->d_name, strlen(e->d_name) + 1);
		list[n++].at = st.st_mtim;
	}
	if (d)
		(void)closedir(d);
	if (n > keep)
		qsort(list, n, sizeof(*list), newest_first);
	for (size_t i = keep; i < n; i++)
		(void)unlinkat(dirfd, list[i].name, 0);
}
