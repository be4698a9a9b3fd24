#include "store/snap_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "store/snap_stage.h"

struct sb_snap_store {
	int dirs[SB_SNAP_PARTS];
	int lock;
	struct sb_digest *digest;
	pthread_mutex_t mutex; /* of loading */
	bool loaded;
	struct sb_pack **packs;
	size_t n_packs;
	struct sb_snap_stage *stage;
	sb_snap_damage_fn *on_damage;
	void *arg;
};

static const char format[] = "sendbox-snapshots 1\n";
static const char *const parts[SB_SNAP_PARTS] = { "packs", "manifests", "cache", "undo" };

int sb_snap_store_write(int dir, const char *name, const void *p, size_t len, bool sync)
{
	char tmp[32];
	sb_autofd int fd = sb_snap_tmp(dir, tmp);
	int r = fd < 0 ? fd : sb_fd_write_all(fd, p, len);

	if (fd < 0)
		return r;
	if (r == 0 && sync && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir, tmp, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, tmp, 0);
	return r;
}

static int check_format(int dir, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = sb_fd_read_file(dir, "format", 256, &text, &len);

	if (r == -ENOENT)
		r = sb_snap_store_write(dir, "format", format, sizeof(format) - 1, false);
	else if (r == 0 && (len != sizeof(format) - 1 || memcmp(text, format, len) != 0))
		return sb_err_set(err, -EPROTONOSUPPORT, "the store of snapshots has a format that this "
				  "version does not know; use a later sendbox, or move the folder away");
	return r < 0 ? sb_err_set(err, r, "store of snapshots: format: %s", strerror(-r)) : 0;
}

static int open_parts(struct sb_snap_store *s, int dir, struct sb_err *err)
{
	for (size_t i = 0; i < SB_SNAP_PARTS; i++) {
		s->dirs[i] = openat(dir, parts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (s->dirs[i] < 0 && errno == ENOENT &&
		    (mkdirat(dir, parts[i], 0700) == 0 || errno == EEXIST))
			s->dirs[i] = openat(dir, parts[i],
					    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (s->dirs[i] < 0)
			return sb_err_set(err, -errno, "store of snapshots: %s: %s", parts[i],
					  strerror(errno));
	}
	return 0;
}

static int take_lock(struct sb_snap_store *s, int dir, bool exclusive, struct sb_err *err)
{
	s->lock = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0)
		return sb_err_set(err, -errno, "store of snapshots: lock: %s", strerror(errno));
	while (flock(s->lock, exclusive ? LOCK_EX : LOCK_SH) < 0)
		if (errno != EINTR)
			return sb_err_set(err, -errno, "store of snapshots: lock: %s", strerror(errno));
	return 0;
}

int sb_snap_store_open(int dir, bool exclusive, struct sb_snap_store **ret, struct sb_err *err)
{
	sb_autosnapstore struct sb_snap_store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return sb_err_set(err, -ENOMEM, "out of memory");
	(void)pthread_mutex_init(&s->mutex, NULL);
	s->lock = -1;
	for (size_t i = 0; i < SB_SNAP_PARTS; i++)
		s->dirs[i] = -1;
	r = sb_digest_new(&s->digest);
	if (r < 0)
		return sb_err_set(err, r, "SHA-256: %s", strerror(-r));
	r = sb_snap_stage_new(SB_SNAP_STAGE_MAX, &s->stage);
	if (r < 0)
		return sb_err_set(err, r, "out of memory");
	r = take_lock(s, dir, exclusive, err);
	if (r == 0)
		r = check_format(dir, err);
	if (r == 0)
		r = open_parts(s, dir, err);
	if (r == 0)
		*ret = sb_take(&s);
	return r;
}

static void drop_packs(struct sb_snap_store *s)
{
	for (size_t i = 0; i < s->n_packs; i++)
		(void)sb_pack_free(s->packs[i]);
	free(s->packs);
	s->packs = NULL;
	s->n_packs = 0;
	s->loaded = false;
}

struct sb_snap_store *sb_snap_store_free(struct sb_snap_store *s)
{
	if (!s)
		return NULL;
	drop_packs(s);
	s->stage = sb_snap_stage_free(s->stage);
	for (size_t i = 0; i < SB_SNAP_PARTS; i++)
		sb_fd_close(&s->dirs[i]);
	sb_fd_close(&s->lock);
	(void)sb_digest_free(s->digest);
	(void)pthread_mutex_destroy(&s->mutex);
	free(s);
	return NULL;
}

int sb_snap_store_dir(const struct sb_snap_store *s, enum sb_snap_part part)
{
	return s->dirs[part];
}

struct sb_digest *sb_snap_store_digest(const struct sb_snap_store *s)
{
	return s->digest;
}

void sb_snap_store_on_damage(struct sb_snap_store *s, sb_snap_damage_fn *fn, void *arg)
{
	s->on_damage = fn;
	s->arg = arg;
}

void sb_snap_store_reload(struct sb_snap_store *s)
{
	drop_packs(s);
}

/* --- objects --- */

static int load_one(struct sb_snap_store *s, struct sb_digest *d, const char *name)
{
	struct sb_pack *p = NULL;
	const char *why = "";
	void *v;
	int r;

	if (strncmp(name, SB_SNAP_TMP, strlen(SB_SNAP_TMP)) == 0 || name[0] == '.')
		return 0;
	r = sb_pack_open(s->dirs[SB_SNAP_PACKS], name, d, &p, &why);
	if (r == -EBADMSG || r == -ENOENT || r == -ELOOP) {
		if (s->on_damage && r != -ENOENT)
			s->on_damage(s->arg, name, why);
		return 0;
	}
	if (r < 0)
		return r;
	v = realloc(s->packs, (s->n_packs + 1) * sizeof(struct sb_pack *));
	if (!v) {
		(void)sb_pack_free(p);
		return -ENOMEM;
	}
	s->packs = v;
	s->packs[s->n_packs++] = p;
	return 0;
}

static int load_all(struct sb_snap_store *s)
{
	sb_autodigest struct sb_digest *d = NULL;
	struct dirent *e;
	DIR *dir;
	int fd;
	int r = sb_digest_new(&d);

	if (r < 0)
		return r;
	fd = openat(s->dirs[SB_SNAP_PACKS], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		sb_fd_close(&fd);
		return r;
	}
	for (errno = 0; r == 0 && (e = readdir(dir)); errno = 0)
		r = load_one(s, d, e->d_name);
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(dir);
	if (r < 0)
		drop_packs(s);
	else
		s->loaded = true;
	return r;
}

static int need_packs(struct sb_snap_store *s)
{
	int r = 0;

	(void)pthread_mutex_lock(&s->mutex);
	if (!s->loaded)
		r = load_all(s);
	(void)pthread_mutex_unlock(&s->mutex);
	return r;
}

int sb_snap_store_packs(struct sb_snap_store *s, const struct sb_pack *const **ret, size_t *ret_n)
{
	int r = need_packs(s);

	if (r < 0)
		return r;
	*ret = (const struct sb_pack *const *)s->packs;
	*ret_n = s->n_packs;
	return 0;
}

int sb_snap_store_find(struct sb_snap_store *s, const uint8_t *hash, int *ret_fd, uint64_t *ret_at,
		       uint64_t *ret_len)
{
	int r = need_packs(s);

	for (size_t i = s->n_packs; r == 0 && i > 0; i--) {
		const struct sb_pack_entry *e = sb_pack_find(s->packs[i - 1], hash);

		if (!e)
			continue;
		*ret_fd = s->packs[i - 1]->fd;
		*ret_at = e->at;
		*ret_len = e->len;
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}

int sb_snap_store_has(struct sb_snap_store *s, const uint8_t *hash)
{
	uint64_t at;
	uint64_t len;
	int fd;
	int r = sb_snap_store_find(s, hash, &fd, &at, &len);

	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

int sb_snap_store_get(struct sb_snap_store *s, struct sb_digest *d, const uint8_t *hash, size_t cap,
		      uint8_t **ret, size_t *ret_len)
{
	sb_autofree uint8_t *p = NULL;
	uint8_t got[SB_SNAP_HASH];
	uint64_t at = 0;
	uint64_t len = 0;
	const void *staged = NULL;
	size_t staged_len = 0;
	ssize_t n;
	int fd = -1;
	int r = 0;

	if (sb_snap_stage_get(s->stage, hash, &staged, &staged_len))
		len = staged_len;
	else
		r = sb_snap_store_find(s, hash, &fd, &at, &len);
	if (r < 0)
		return r;
	if (len > cap)
		return -EFBIG;
	p = malloc(len + 1);
	if (!p)
		return -ENOMEM;
	if (staged)
		memcpy(p, staged, len);
	n = staged ? (ssize_t)len : sb_fd_read_at(fd, p, len, (off_t)at);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -EBADMSG;
	sb_digest_of(d, p, len, got);
	if (memcmp(got, hash, sizeof(got)) != 0)
		return -EBADMSG;
	p[len] = '\0';
	*ret = sb_take(&p);
	*ret_len = len;
	return 0;
}

int sb_snap_store_stage(struct sb_snap_store *s, const uint8_t *hash, const void *p, size_t len)
{
	return sb_snap_stage_add(s->stage, hash, p, len);
}

void sb_snap_store_unstage(struct sb_snap_store *s)
{
	sb_snap_stage_drop(s->stage);
}

/* --- snapshots --- */

/* @m as bytes, and their hash, its id. Return: 0; -errno. @b is the caller's to end in any case. */
static int write_out(struct sb_snap_store *s, const struct sb_snap_manifest *m, struct sb_buf *b,
		     uint8_t id[SB_SNAP_HASH])
{
	sb_buf_init(b, SB_SNAP_MANIFEST_MAX);
	sb_snap_manifest_write(b, m);
	if (sb_buf_error(b) == 0)
		sb_digest_of(s->digest, b->data, b->len, id);
	return sb_buf_error(b);
}

int sb_snap_store_stage_manifest(struct sb_snap_store *s, const struct sb_snap_manifest *m,
				 uint8_t id[SB_SNAP_HASH])
{
	struct sb_buf b;
	int r = write_out(s, m, &b, id);

	if (r == 0)
		r = sb_snap_store_stage(s, id, b.data, b.len);
	sb_buf_done(&b);
	return r;
}

int sb_snap_store_put(struct sb_snap_store *s, const struct sb_snap_manifest *m, bool sync,
		      uint8_t id[SB_SNAP_HASH])
{
	struct sb_buf b;
	char name[SB_PACK_NAME];
	int r = write_out(s, m, &b, id);

	if (r == 0) {
		sb_hex_write(id, SB_SNAP_HASH, name);
		r = sb_snap_store_write(s->dirs[SB_SNAP_MANIFESTS], name, b.data, b.len, sync);
	}
	if (r == 0 && sync && fsync(s->dirs[SB_SNAP_MANIFESTS]) < 0)
		r = -errno;
	sb_buf_done(&b);
	return r;
}

int sb_snap_store_load(struct sb_snap_store *s, const uint8_t *id, struct sb_snap_manifest *ret,
		       uint8_t **ret_bytes)
{
	sb_autofree char *text = NULL;
	uint8_t got[SB_SNAP_HASH];
	char name[SB_PACK_NAME];
	const void *staged = NULL;
	size_t len = 0;
	int r = 0;

	sb_hex_write(id, SB_SNAP_HASH, name);
	if (sb_snap_stage_get(s->stage, id, &staged, &len)) {
		text = malloc(len + 1);
		if (!text)
			return -ENOMEM;
		memcpy(text, staged, len);
	} else {
		r = sb_fd_read_file(s->dirs[SB_SNAP_MANIFESTS], name, SB_SNAP_MANIFEST_MAX, &text, &len);
	}
	if (r < 0)
		return r == -ELOOP || r == -EFBIG ? -EBADMSG : r;
	sb_digest_of(s->digest, text, len, got);
	if (memcmp(got, id, sizeof(got)) != 0)
		return -EBADMSG;
	r = sb_snap_manifest_parse(text, len, ret);
	if (r == 0)
		*ret_bytes = (uint8_t *)sb_take(&text);
	return r;
}

int sb_snap_store_list(struct sb_snap_store *s, uint8_t (**ret)[SB_SNAP_HASH], size_t *ret_n)
{
	uint8_t(*v)[SB_SNAP_HASH] = NULL;
	int fd = openat(s->dirs[SB_SNAP_MANIFESTS], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t n = 0;
	int r = 0;

	if (!dir) {
		r = -errno;
		sb_fd_close(&fd);
		return r;
	}
	for (errno = 0; r == 0 && (e = readdir(dir)); errno = 0) {
		uint8_t id[SB_SNAP_HASH];
		void *more;

		if (sb_hex_parse(e->d_name, id, sizeof(id)) < 0)
			continue;
		more = n % 64 == 0 ? realloc(v, (n + 64) * SB_SNAP_HASH) : v;
		if (!more) {
			r = -ENOMEM;
			break;
		}
		v = more;
		memcpy(v[n++], id, sizeof(id));
	}
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(dir);
	if (r < 0) {
		free(v);
		return r;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}
