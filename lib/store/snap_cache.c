#include "store/snap_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

#define MAX_BYTES (4ULL << 30)
#define SPILL (1U << 20)

struct head {
	char magic[8];
	uint64_t dev;
	uint64_t root;
	int64_t before;
	uint64_t len; /* of the file */
	uint8_t manifest[SB_SNAP_HASH];
	uint8_t digest[SB_SNAP_HASH]; /* of the records, then of this head without the digest */
} SB_PACKED;
#define SIGNED_HEAD offsetof(struct head, digest)

struct record {
	uint8_t hash[SB_SNAP_HASH];
	uint32_t n;
	uint32_t len; /* of the entries */
} SB_PACKED;

static const char magic[8] = { 'S', 'B', 'C', 'A', 'C', 'H', 'E', '1' };

struct sb_snap_cache {
	uint8_t *p;
	size_t len;
	struct head head;
};

static bool counts(struct sb_snap_store *s, const struct sb_snap_cache *c, uint64_t dev)
{
	struct sb_digest *d = sb_snap_store_digest(s);
	uint8_t got[SB_SNAP_HASH];
	char name[SB_PACK_NAME];

	if (memcmp(c->head.magic, magic, sizeof(magic)) != 0 || c->head.dev != dev ||
	    c->head.len != c->len)
		return false;
	sb_hex_write(c->head.manifest, SB_SNAP_HASH, name);
	if (faccessat(sb_snap_store_dir(s, SB_SNAP_MANIFESTS), name, F_OK, 0) < 0)
		return false;
	sb_digest_start(d);
	sb_digest_add(d, c->p + sizeof(struct head), c->len - sizeof(struct head));
	sb_digest_add(d, c->p, SIGNED_HEAD);
	sb_digest_end(d, got);
	return memcmp(got, c->head.digest, sizeof(got)) == 0;
}

int sb_snap_cache_open(struct sb_snap_store *s, const char *key, uint64_t dev,
		       struct sb_snap_cache **ret)
{
	sb_autofd int fd = openat(sb_snap_store_dir(s, SB_SNAP_CACHE), key,
				  O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct sb_snap_cache *c;
	struct stat st;

	*ret = NULL;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size < (off_t)sizeof(struct head) || st.st_size > (off_t)MAX_BYTES)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->len = (size_t)st.st_size;
	c->p = mmap(NULL, c->len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (c->p == MAP_FAILED) {
		free(c);
		return -ENOMEM;
	}
	memcpy(&c->head, c->p, sizeof(c->head));
	if (counts(s, c, dev))
		*ret = c;
	else
		(void)sb_snap_cache_free(c);
	return 0;
}

struct sb_snap_cache *sb_snap_cache_free(struct sb_snap_cache *c)
{
	if (c)
		(void)munmap(c->p, c->len);
	free(c);
	return NULL;
}

uint64_t sb_snap_cache_root(const struct sb_snap_cache *c)
{
	return c->head.root;
}

int64_t sb_snap_cache_before(const struct sb_snap_cache *c)
{
	return c->head.before;
}

bool sb_snap_cache_dir(const struct sb_snap_cache *c, uint64_t at, struct sb_snap_seen_dir *ret)
{
	struct record r;

	if (at < sizeof(struct head) || at > c->len || c->len - at < sizeof(r))
		return false;
	memcpy(&r, c->p + at, sizeof(r));
	if (r.len > c->len - at - sizeof(r))
		return false;
	*ret = (struct sb_snap_seen_dir){ .p = c->p + at + sizeof(r),
					  .end = c->p + at + sizeof(r) + r.len,
					  .hash = c->p + at,
					  .left = r.n };
	return true;
}

bool sb_snap_cache_next(struct sb_snap_seen_dir *d, struct sb_snap_seen *ret, const uint8_t **name)
{
	if (d->left == 0 || (size_t)(d->end - d->p) < sizeof(*ret))
		return false;
	memcpy(ret, d->p, sizeof(*ret));
	d->p += sizeof(*ret);
	if (ret->name_len > d->end - d->p)
		return false;
	*name = d->p;
	d->p += ret->name_len;
	d->left--;
	return true;
}

/* --- writing --- */

struct sb_snap_cachew {
	pthread_mutex_t lock;
	int dir;
	int fd;
	char tmp[32];
	struct sb_digest *digest;
	struct sb_buf buf;
	uint64_t at; /* where buf goes */
	int error;
};

int sb_snap_cachew_new(struct sb_snap_store *s, struct sb_snap_cachew **ret)
{
	struct sb_snap_cachew *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	(void)pthread_mutex_init(&w->lock, NULL);
	sb_buf_init(&w->buf, SIZE_MAX / 2);
	w->dir = sb_snap_store_dir(s, SB_SNAP_CACHE);
	w->at = sizeof(struct head);
	w->fd = sb_snap_tmp(w->dir, w->tmp);
	r = w->fd < 0 ? w->fd : sb_digest_new(&w->digest);
	if (r == 0 && lseek(w->fd, (off_t)w->at, SEEK_SET) < 0)
		r = -errno;
	if (r < 0) {
		(void)sb_snap_cachew_free(w);
		return r;
	}
	sb_digest_start(w->digest);
	*ret = w;
	return 0;
}

struct sb_snap_cachew *sb_snap_cachew_free(struct sb_snap_cachew *w)
{
	if (!w)
		return NULL;
	if (w->fd >= 0 && w->tmp[0] != '\0')
		(void)unlinkat(w->dir, w->tmp, 0);
	sb_fd_close(&w->fd);
	(void)sb_digest_free(w->digest);
	sb_buf_done(&w->buf);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

void sb_snap_seen_start(struct sb_buf *to, const uint8_t *hash, uint32_t n)
{
	struct record r = { .n = n };

	memcpy(r.hash, hash, sizeof(r.hash));
	to->len = 0;
	sb_buf_add(to, &r, sizeof(r));
}

void sb_snap_seen_add(struct sb_buf *to, const struct sb_snap_seen *e, const uint8_t *name)
{
	sb_buf_add(to, e, sizeof(*e));
	sb_buf_add(to, name, e->name_len);
}

static int spill(struct sb_snap_cachew *w)
{
	int r = sb_fd_write_all(w->fd, w->buf.data, w->buf.len);

	sb_digest_add(w->digest, w->buf.data, w->buf.len);
	w->at += w->buf.len;
	w->buf.len = 0;
	return r;
}

int64_t sb_snap_cachew_add(struct sb_snap_cachew *w, const struct sb_buf *record)
{
	struct record head;
	int64_t at;

	if (sb_buf_error(record) || record->len < sizeof(head) || record->len > UINT32_MAX)
		return -ENOMEM;
	memcpy(&head, record->data, sizeof(head));
	head.len = (uint32_t)(record->len - sizeof(head));
	(void)pthread_mutex_lock(&w->lock);
	at = (int64_t)(w->at + w->buf.len);
	sb_buf_add(&w->buf, &head, sizeof(head));
	sb_buf_add(&w->buf, record->data + sizeof(head), head.len);
	if (w->error == 0)
		w->error = sb_buf_error(&w->buf);
	if (w->error == 0 && w->buf.len >= SPILL)
		w->error = spill(w);
	if (w->error < 0)
		at = w->error;
	(void)pthread_mutex_unlock(&w->lock);
	return at;
}

int sb_snap_cachew_end(struct sb_snap_cachew *w, const char *key, const uint8_t *manifest, uint64_t dev,
		       uint64_t root, int64_t before)
{
	struct head h = { .dev = dev, .root = root, .before = before };
	int r = w->error ? w->error : spill(w);

	if (r < 0)
		return r;
	memcpy(h.magic, magic, sizeof(magic));
	memcpy(h.manifest, manifest, SB_SNAP_HASH);
	h.len = w->at;
	sb_digest_add(w->digest, &h, SIGNED_HEAD);
	sb_digest_end(w->digest, h.digest);
	if (lseek(w->fd, 0, SEEK_SET) < 0)
		return -errno;
	r = sb_fd_write_all(w->fd, &h, sizeof(h));
	if (r < 0)
		return r;
	if (renameat(w->dir, w->tmp, w->dir, key) < 0)
		return -errno;
	w->tmp[0] = '\0';
	return 0;
}
