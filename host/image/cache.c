#include "image/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"

#define RECORD_MAX 128

bool image_digest_ok(const char *s)
{
	uint8_t bin[32];

	return s && strncmp(s, "sha256:", 7) == 0 && strlen(s) == 71 &&
	       sb_hex_parse(s + 7, bin, sizeof(bin)) == 0;
}

int image_dir_open(const struct sb_dirs *d, const char *name, int *ret, struct sb_err *err)
{
	sb_autofd int cache = open(d->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (cache < 0 || (mkdirat(cache, name, 0700) < 0 && errno != EEXIST))
		return sb_err_set(err, -errno, "cannot use %s/%s: %s", d->cache, name,
				  strerror(errno));
	*ret = openat(cache, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret < 0)
		return sb_err_set(err, -errno, "cannot use %s/%s: %s", d->cache, name,
				  strerror(errno));
	return 0;
}

void image_tmp_name(char out[32])
{
	uint8_t random[8];
	char hex[2 * sizeof(random) + 1];

	sb_random(random, sizeof(random));
	sb_hex_write(random, sizeof(random), hex);
	(void)snprintf(out, 32, "tmp-%s", hex);
}

void image_layer_done(struct sb_plan_layer *l)
{
	free(l->path);
	*l = (struct sb_plan_layer){ 0 };
}

static void names(const uint8_t sha[32], char file[80], char record[80])
{
	char hex[65];

	sb_hex_write(sha, 32, hex);
	(void)snprintf(file, 80, "%s.erofs", hex);
	(void)snprintf(record, 80, "%s.is", hex);
}

static void identity(const struct stat *st, struct sb_plan_layer *l)
{
	l->dev = st->st_dev;
	l->ino = st->st_ino;
	l->size = (uint64_t)st->st_size;
	l->ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec;
}

static int write_record(int dir, const char *record, const struct sb_plan_layer *l)
{
	char text[RECORD_MAX];
	int n = snprintf(text, sizeof(text), "%llu %llu %llu %llu\n", (unsigned long long)l->dev,
			 (unsigned long long)l->ino, (unsigned long long)l->size,
			 (unsigned long long)l->ctime_ns);

	return sb_fd_write_file(dir, record, text, (size_t)n, 0600);
}

/* Return: 0: the record says this; -ENOENT: there is none that can be read. */
static int read_record(int dir, const char *record, struct sb_plan_layer *ret)
{
	sb_autofree char *text = NULL;
	uint64_t v[4];
	size_t len = 0;
	char *at;

	if (sb_fd_read_file(dir, record, RECORD_MAX, &text, &len) < 0 || len == 0 ||
	    text[len - 1] != '\n' || strlen(text) != len)
		return -ENOENT;
	text[len - 1] = '\0';
	at = text;
	for (size_t i = 0; i < 4; i++) {
		char *word = at;

		at += strcspn(at, " ");
		if ((i < 3) != (*at == ' '))
			return -ENOENT;
		if (i < 3)
			*at++ = '\0';
		if (sb_num_u64(word, 0, UINT64_MAX, &v[i]) < 0)
			return -ENOENT;
	}
	*ret = (struct sb_plan_layer){ .dev = v[0], .ino = v[1], .size = v[2], .ctime_ns = v[3] };
	return 0;
}

static int full_path(const struct sb_dirs *d, const char *file, char **ret, struct sb_err *err)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/layers/%s", d->cache, file);

	*ret = n > 0 && (size_t)n < sizeof(path) ? strdup(path) : NULL;
	return *ret ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
}

/* A file that has no record (its maker died between two steps): the content decides. */
static int adopt(int dir, int fd, const char *file, const char *record, const uint8_t sha[32],
		 const struct sb_plan_layer *now)
{
	uint8_t got[32];
	uint64_t len = 0;
	int r = sb_sha256_fd(fd, got, &len);

	if (r < 0)
		return r;
	if (memcmp(got, sha, 32) != 0)
		return unlinkat(dir, file, 0) < 0 ? -errno : -ENOENT;
	return write_record(dir, record, now);
}

int image_layer_find(const struct sb_dirs *d, const uint8_t sha256[32], struct sb_plan_layer *ret,
		     struct sb_err *err)
{
	struct sb_plan_layer now = { 0 };
	struct sb_plan_layer then;
	sb_autofd int dir = -1;
	sb_autofd int fd = -1;
	char file[80];
	char record[80];
	struct stat st;
	int r = image_dir_open(d, "layers", &dir, err);

	if (r < 0)
		return r;
	names(sha256, file, record);
	fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT; /* no text: the caller makes it */
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "%s/layers/%s: %s", d->cache, file, strerror(errno));
	identity(&st, &now);
	memcpy(now.sha256, sha256, 32);
	if (read_record(dir, record, &then) < 0) {
		r = S_ISREG(st.st_mode) ? adopt(dir, fd, file, record, sha256, &now) : -ESTALE;
		if (r < 0 && r != -ESTALE)
			return r;
		then = now;
	}
	if (r == -ESTALE || then.dev != now.dev || then.ino != now.ino || then.size != now.size ||
	    then.ctime_ns != now.ctime_ns)
		return sb_err_set(err, -ESTALE,
				  "layer %s/layers/%s was changed after it was made; remove it, it is "
				  "made again", d->cache, file);
	r = full_path(d, file, &now.path, err);
	if (r == 0)
		*ret = now;
	return r;
}

int image_layer_keep(const struct sb_dirs *d, int dir, const char *tmp, int fd,
		     struct sb_plan_layer *ret, struct sb_err *err)
{
	struct sb_plan_layer l = { 0 };
	char file[80];
	char record[80];
	struct stat st;
	int r = sb_sha256_fd(fd, l.sha256, &l.size);

	if (r < 0)
		return sb_err_set(err, r, "cannot read what was made: %s", strerror(-r));
	r = image_layer_find(d, l.sha256, ret, NULL);
	if (r == 0)
		return unlinkat(dir, tmp, 0) < 0 ? -errno : 0;
	names(l.sha256, file, record);
	if (fchmod(fd, 0400) < 0 || fsync(fd) < 0 || renameat(dir, tmp, dir, file) < 0 ||
	    fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot keep %s/layers/%s: %s", d->cache, file,
				  strerror(errno));
	identity(&st, &l);
	r = write_record(dir, record, &l); /* syncs the directory, too */
	if (r < 0)
		return sb_err_set(err, r, "cannot write %s/layers/%s: %s", d->cache, record,
				  strerror(-r));
	r = full_path(d, file, &l.path, err);
	if (r == 0)
		*ret = l;
	return r;
}
