#include "store/snap_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "store/snap_unsynced.h"

#define ENTRY_LEN 48
#define BLOCK_BYTES (1U << 20)
#define BLOCK_CAP (BLOCK_BYTES + SB_PACK_BIG)
#define PACK_ENTRIES_MAX (1ULL << 26)

static const char head[SB_PACK_HEAD] = { 'S', 'B', 'P', 'A', 'C', 'K', '1', '\n' };
static const char foot[8] = { 'S', 'B', 'P', 'K', 'E', 'N', 'D', '1' };

int sb_snap_tmp(int dir, char name[32])
{
	for (int i = 0; i < 8; i++) {
		uint8_t rnd[8];
		char hex[17];
		int fd;

		if (getrandom(rnd, sizeof(rnd), 0) != (ssize_t)sizeof(rnd))
			return -EIO;
		sb_hex_write(rnd, sizeof(rnd), hex);
		(void)snprintf(name, 32, SB_SNAP_TMP "%s", hex);
		fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int write_at(int fd, const void *p, size_t len, uint64_t at)
{
	const uint8_t *b = p;

	while (len > 0) {
		ssize_t n = pwrite(fd, b, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		b += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* --- reading --- */

static int by_hash(const void *a, const void *b)
{
	return memcmp(((const struct sb_pack_entry *)a)->hash, ((const struct sb_pack_entry *)b)->hash,
		      SB_SNAP_HASH);
}

/* Return: 0; -EBADMSG. */
static int read_index(struct sb_pack *p, const uint8_t *raw, const char **why)
{
	struct sb_rd r = { .p = raw, .len = p->n * ENTRY_LEN };

	*why = "its index is not in order";
	for (size_t i = 0; i < p->n; i++) {
		struct sb_pack_entry *e = &p->v[i];
		const uint8_t *hash = sb_rd_bytes(&r, SB_SNAP_HASH);

		memcpy(e->hash, hash, SB_SNAP_HASH);
		e->at = sb_rd_le64(&r);
		e->len = sb_rd_le64(&r);
		if ((i > 0 && by_hash(&p->v[i - 1], e) >= 0) || e->at < SB_PACK_HEAD ||
		    e->at > p->data_end || e->len > p->data_end - e->at)
			return -EBADMSG;
	}
	return 0;
}

static int read_foot(struct sb_pack *p, uint64_t size, uint8_t want[SB_SNAP_HASH], const char **why)
{
	uint8_t raw[SB_PACK_FOOT];
	uint8_t first[SB_PACK_HEAD];
	struct sb_rd r = { .p = raw, .len = sizeof(raw) };
	const uint8_t *hash;
	uint64_t n;

	*why = "its end is missing";
	if (size < SB_PACK_HEAD + SB_PACK_FOOT ||
	    sb_fd_read_at(p->fd, raw, sizeof(raw), (off_t)(size - SB_PACK_FOOT)) != (ssize_t)sizeof(raw) ||
	    memcmp(raw + 48, foot, sizeof(foot)) != 0)
		return -EBADMSG;
	*why = "its beginning is not that of a pack";
	if (sb_fd_read_at(p->fd, first, sizeof(first), 0) != (ssize_t)sizeof(first) ||
	    memcmp(first, head, sizeof(head)) != 0)
		return -EBADMSG;
	p->data_end = sb_rd_le64(&r);
	n = sb_rd_le64(&r);
	hash = sb_rd_bytes(&r, SB_SNAP_HASH);
	memcpy(want, hash, SB_SNAP_HASH);
	*why = "its end does not fit its length";
	if (n > PACK_ENTRIES_MAX || p->data_end < SB_PACK_HEAD || p->data_end > size ||
	    size - p->data_end != n * ENTRY_LEN + SB_PACK_FOOT)
		return -EBADMSG;
	p->n = n;
	return 0;
}

static int load(struct sb_pack *p, struct sb_digest *d, const char **why)
{
	uint8_t want[SB_SNAP_HASH];
	uint8_t got[SB_SNAP_HASH];
	sb_autofree uint8_t *raw = NULL;
	char hex[SB_PACK_NAME];
	struct stat st;
	ssize_t n;
	int r;

	if (fstat(p->fd, &st) < 0)
		return -errno;
	r = S_ISREG(st.st_mode) ? read_foot(p, (uint64_t)st.st_size, want, why) : -EBADMSG;
	if (r < 0)
		return r;
	raw = malloc(p->n * ENTRY_LEN + 1);
	p->v = calloc(p->n + 1, sizeof(*p->v));
	if (!raw || !p->v)
		return -ENOMEM;
	n = sb_fd_read_at(p->fd, raw, p->n * ENTRY_LEN, (off_t)p->data_end);
	if (n != (ssize_t)(p->n * ENTRY_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	sb_digest_of(d, raw, p->n * ENTRY_LEN, got);
	sb_hex_write(got, sizeof(got), hex);
	*why = "its index is damaged";
	if (memcmp(got, want, sizeof(got)) != 0 || strcmp(hex, p->name) != 0)
		return -EBADMSG;
	return read_index(p, raw, why);
}

int sb_pack_open(int dir, const char *name, struct sb_digest *d, struct sb_pack **ret,
		 const char **why)
{
	struct sb_pack *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	*why = "";
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	p->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	r = p->fd < 0 ? -errno : load(p, d, why);
	if (r < 0) {
		(void)sb_pack_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct sb_pack *sb_pack_free(struct sb_pack *p)
{
	if (p) {
		sb_fd_close(&p->fd);
		free(p->v);
	}
	free(p);
	return NULL;
}

const struct sb_pack_entry *sb_pack_find(const struct sb_pack *p, const uint8_t *hash)
{
	size_t lo = 0;
	size_t hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = memcmp(p->v[mid].hash, hash, SB_SNAP_HASH);

		if (c == 0)
			return &p->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static int by_place(const void *a, const void *b)
{
	const struct sb_pack_entry *x = *(const struct sb_pack_entry *const *)a;
	const struct sb_pack_entry *y = *(const struct sb_pack_entry *const *)b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->len > y->len) - (x->len < y->len);
}

bool sb_pack_tiles(const struct sb_pack *p)
{
	const struct sb_pack_entry **v = calloc(p->n + 1, sizeof(struct sb_pack_entry *));
	uint64_t at = SB_PACK_HEAD;
	bool ok = v != NULL;

	for (size_t i = 0; v && i < p->n; i++)
		v[i] = &p->v[i];
	if (v)
		qsort(v, p->n, sizeof(struct sb_pack_entry *), by_place);
	for (size_t i = 0; ok && i < p->n; i++) {
		ok = v[i]->at == at;
		at += v[i]->len;
	}
	free(v);
	return ok && at == p->data_end;
}

/* --- writing --- */

struct sb_packer {
	pthread_mutex_t lock;
	int dir; /* borrowed */
	int fd;
	char tmp[32];
	uint64_t end;             /* of what is written or reserved */
	struct sb_pack_entry *v;  /* at and len are set when their block is flushed */
	size_t n;
	size_t room;
	uint32_t *slots;          /* index + 1 in claimed */
	size_t n_slots;
	uint8_t (*claimed)[SB_SNAP_HASH];
	size_t n_claimed;
	size_t claimed_room;
	int error;
};

int sb_packer_new(int dir, struct sb_packer **ret)
{
	struct sb_packer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	(void)pthread_mutex_init(&p->lock, NULL);
	p->dir = dir;
	p->fd = -1;
	p->end = SB_PACK_HEAD;
	*ret = p;
	return 0;
}

struct sb_packer *sb_packer_free(struct sb_packer *p)
{
	if (!p)
		return NULL;
	if (p->fd >= 0 && p->tmp[0] != '\0')
		(void)unlinkat(p->dir, p->tmp, 0);
	sb_fd_close(&p->fd);
	(void)pthread_mutex_destroy(&p->lock);
	free(p->v);
	free(p->slots);
	free(p->claimed);
	free(p);
	return NULL;
}

static size_t slot_of(const struct sb_packer *p, const uint8_t *hash)
{
	uint64_t h;
	size_t i;

	memcpy(&h, hash, sizeof(h)); /* it is a hash already */
	for (i = (size_t)h & (p->n_slots - 1); p->slots[i] != 0; i = (i + 1) & (p->n_slots - 1))
		if (memcmp(p->claimed[p->slots[i] - 1], hash, SB_SNAP_HASH) == 0)
			break;
	return i;
}

static int grow_slots(struct sb_packer *p)
{
	size_t want = SB_MAX(p->n_slots * 2, (size_t)1024);
	uint32_t *v = calloc(want, sizeof(*v));

	if (!v)
		return -ENOMEM;
	free(p->slots);
	p->slots = v;
	p->n_slots = want;
	for (size_t i = 0; i < p->n_claimed; i++)
		v[slot_of(p, p->claimed[i])] = (uint32_t)(i + 1);
	return 0;
}

static int claim(struct sb_packer *p, const uint8_t *hash)
{
	size_t i;

	if (p->n_claimed * 4 >= p->n_slots * 3 && grow_slots(p) < 0)
		return -ENOMEM;
	i = slot_of(p, hash);
	if (p->slots[i] != 0)
		return 0;
	if (p->n_claimed == p->claimed_room) {
		size_t room = SB_MAX(p->claimed_room + p->claimed_room / 2, (size_t)512);
		void *v = realloc(p->claimed, room * SB_SNAP_HASH);

		if (!v || p->n_claimed >= UINT32_MAX - 1) {
			if (v)
				p->claimed = v;
			return -ENOMEM;
		}
		p->claimed = v;
		p->claimed_room = room;
	}
	memcpy(p->claimed[p->n_claimed++], hash, SB_SNAP_HASH);
	p->slots[i] = (uint32_t)p->n_claimed;
	return 1;
}

int sb_packer_claim(struct sb_packer *p, const uint8_t *hash)
{
	int r;

	(void)pthread_mutex_lock(&p->lock);
	r = claim(p, hash);
	(void)pthread_mutex_unlock(&p->lock);
	return r;
}

/* The file, and room for the block's entries. Return: where the block goes; -errno. */
static int64_t reserve(struct sb_packer *p, const struct sb_pack_block *b)
{
	int64_t at;

	if (p->fd < 0) {
		int fd = sb_snap_tmp(p->dir, p->tmp);
		int r = fd < 0 ? fd : write_at(fd, head, sizeof(head), 0);

		if (r < 0) {
			if (fd >= 0)
				(void)unlinkat(p->dir, p->tmp, 0);
			sb_fd_close(&fd);
			return r;
		}
		p->fd = fd;
	}
	if (p->room - p->n < b->n) {
		size_t room = SB_MAX(p->room + p->room / 2, p->n + b->n);
		void *v = realloc(p->v, room * sizeof(*p->v));

		if (!v)
			return -ENOMEM;
		p->v = v;
		p->room = room;
	}
	at = (int64_t)p->end;
	for (size_t i = 0; i < b->n; i++) {
		p->v[p->n] = b->v[i];
		p->v[p->n++].at += p->end;
	}
	p->end += b->data.len;
	return at;
}

int sb_packer_flush(struct sb_packer *p, struct sb_pack_block *b)
{
	int64_t at;
	int r;

	if (b->n == 0)
		return 0;
	(void)pthread_mutex_lock(&p->lock);
	at = p->error != 0 ? p->error : reserve(p, b);
	(void)pthread_mutex_unlock(&p->lock);
	r = at < 0 ? (int)at : write_at(p->fd, b->data.data, b->data.len, (uint64_t)at);
	if (r < 0) {
		(void)pthread_mutex_lock(&p->lock);
		p->error = r;
		(void)pthread_mutex_unlock(&p->lock);
	}
	b->n = 0;
	b->data.len = 0;
	return r;
}

int sb_packer_add(struct sb_packer *p, struct sb_pack_block *b, const uint8_t *hash, const void *data,
		  size_t len)
{
	if (b->data.cap == 0)
		sb_buf_init(&b->data, BLOCK_CAP);
	if (b->n == b->room) {
		size_t room = SB_MAX(b->room * 2, (size_t)256);
		void *v = realloc(b->v, room * sizeof(*b->v));

		if (!v)
			return -ENOMEM;
		b->v = v;
		b->room = room;
	}
	b->v[b->n] = (struct sb_pack_entry){ .at = b->data.len, .len = len };
	memcpy(b->v[b->n].hash, hash, SB_SNAP_HASH);
	sb_buf_add(&b->data, data, len);
	if (sb_buf_error(&b->data))
		return sb_buf_error(&b->data);
	b->n++;
	return b->data.len >= BLOCK_BYTES ? sb_packer_flush(p, b) : 0;
}

void sb_pack_block_done(struct sb_pack_block *b)
{
	sb_buf_done(&b->data);
	free(b->v);
	b->v = NULL;
}

/* Index, end, name. */
static int finish(int dir, int fd, const char *tmp, uint64_t end, struct sb_pack_entry *v, size_t n,
		  struct sb_digest *d, bool sync)
{
	uint8_t hash[SB_SNAP_HASH];
	char name[SB_PACK_NAME];
	struct sb_buf b;
	int r;

	sb_buf_init(&b, n * ENTRY_LEN + SB_PACK_FOOT);
	if (n > 1)
		qsort(v, n, sizeof(*v), by_hash);
	for (size_t i = 0; i < n; i++) {
		sb_buf_add(&b, v[i].hash, SB_SNAP_HASH);
		sb_buf_add_le64(&b, v[i].at);
		sb_buf_add_le64(&b, v[i].len);
	}
	r = sb_buf_error(&b);
	if (r == 0) {
		sb_digest_of(d, b.data, b.len, hash);
		sb_buf_add_le64(&b, end);
		sb_buf_add_le64(&b, n);
		sb_buf_add(&b, hash, sizeof(hash));
		sb_buf_add(&b, foot, sizeof(foot));
		r = sb_buf_error(&b);
	}
	if (r == 0)
		r = write_at(fd, b.data, b.len, end);
	sb_buf_done(&b);
	if (r == 0 && sync && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0)
		return r;
	sb_hex_write(hash, sizeof(hash), name);
	r = sync ? 0 : sb_snap_unsynced_note(dir, name);
	if (r == 0 && renameat(dir, tmp, dir, name) < 0)
		r = -errno;
	return r;
}

int sb_packer_end(struct sb_packer *p, struct sb_digest *d, bool sync, size_t *ret_n,
		  uint64_t *ret_bytes)
{
	int r = p->error;

	if (r == 0 && p->n > 0)
		r = finish(p->dir, p->fd, p->tmp, p->end, p->v, p->n, d, sync);
	if (r < 0)
		return r;
	*ret_n = p->n;
	*ret_bytes = p->end - SB_PACK_HEAD;
	if (p->n > 0)
		p->tmp[0] = '\0';
	return 0;
}

int sb_pack_big_start(int dir, struct sb_pack_big *b)
{
	int r;

	*b = (struct sb_pack_big){ .dir = dir, .fd = -1, .len = SB_PACK_HEAD };
	b->fd = sb_snap_tmp(dir, b->tmp);
	if (b->fd < 0)
		return b->fd;
	r = write_at(b->fd, head, sizeof(head), 0);
	if (r < 0)
		sb_pack_big_drop(b);
	return r;
}

int sb_pack_big_add(struct sb_pack_big *b, const void *p, size_t len)
{
	int r = write_at(b->fd, p, len, b->len);

	b->len += len;
	return r;
}

int sb_pack_big_end(struct sb_pack_big *b, const uint8_t *hash, struct sb_digest *d)
{
	struct sb_pack_entry e = { .at = SB_PACK_HEAD, .len = b->len - SB_PACK_HEAD };
	int r;

	memcpy(e.hash, hash, SB_SNAP_HASH);
	r = finish(b->dir, b->fd, b->tmp, b->len, &e, 1, d, false);
	if (r == 0)
		b->tmp[0] = '\0';
	sb_pack_big_drop(b);
	return r;
}

void sb_pack_big_drop(struct sb_pack_big *b)
{
	if (b->fd >= 0 && b->tmp[0] != '\0')
		(void)unlinkat(b->dir, b->tmp, 0);
	sb_fd_close(&b->fd);
}
