/* One file: its data, its holes, its attributes. Everything by descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "capture_i.h"

#define TRIES 3
#define JOINED_MAX (64ULL << 20) /* zeroes that are taken for holes, at least */
#define PACKED_MAX 256
#define FLOOR_MAX (64ULL << 20)  /* room that a capture leaves for records, journals and the user; or a 20th */
#define FLOOR_EACH (1U << 20)
#define NAMES_MAX 65536
#define PIECES (-E2BIG)      /* a sparse file in more pieces than are kept */
#define SOURCE (-EREMOTEIO) /* the file cannot be read; other errors are of the store */

/* A capture does not take the last of the disk: a journal, the log and whoever tidies up need some.
 * Return: 0; -ENOSPC. */
static int room_for(struct cap_worker *w, size_t len)
{
	struct statfs fs;
	uint64_t block;

	if (w->unchecked > len) {
		w->unchecked -= len;
		return 0;
	}
	if (fstatfs(sb_snap_store_dir(w->cap->store, SB_SNAP_PACKS), &fs) < 0)
		return -errno;
	block = (uint64_t)SB_MAX(fs.f_bsize, 1);
	w->unchecked = FLOOR_EACH;
	return (uint64_t)fs.f_bavail < (SB_MIN((uint64_t)fs.f_blocks * block / 20, FLOOR_MAX) + len) / block ? -ENOSPC : 0;
}

/* An object that fits no block: a folder of very many names. */
static int put_big(struct cap_worker *w, const void *p, size_t len, const uint8_t hash[SB_SNAP_HASH])
{
	struct sb_pack_big out;
	int r = sb_pack_big_start(sb_snap_store_dir(w->cap->store, SB_SNAP_PACKS), &out);

	if (r == 0)
		r = sb_pack_big_add(&out, p, len);
	if (r == 0)
		r = sb_pack_big_end(&out, hash, w->digest);
	else
		sb_pack_big_drop(&out);
	w->big += r == 0;
	return r;
}

int cap_put(struct cap_worker *w, const void *p, size_t len, uint8_t hash[SB_SNAP_HASH])
{
	int r;

	sb_digest_of(w->digest, p, len, hash);
	r = sb_snap_store_has(w->cap->store, hash);
	if (r == 0 && w->cap->conf->stage)
		return sb_snap_store_stage(w->cap->store, hash, p, len);
	if (r == 0) {
		r = sb_packer_claim(w->cap->packer, hash);
		if (r == 1 && room_for(w, len) < 0)
			return -ENOSPC;
		if (r == 1)
			return len >= SB_PACK_BIG ? put_big(w, p, len, hash)
						  : sb_packer_add(w->cap->packer, &w->block, hash, p, len);
	}
	return r < 0 ? r : 0;
}

/* --- attributes --- */

/* Labels of the machine, which its policy sets anew. */
static bool is_ours(const char *name)
{
	return strcmp(name, "security.selinux") != 0 && strcmp(name, "security.ima") != 0 &&
	       strcmp(name, "security.evm") != 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those that fit together, in the order of names; the rest is told as not read. */
static int pack_xattrs(struct cap_worker *w, int fd, char **names, size_t n, struct cap_entry *e)
{
	sb_autofree uint8_t *value = malloc(65536);
	uint8_t hash[SB_SNAP_HASH];
	struct sb_buf b;
	bool all = true;
	int r = value ? 0 : -ENOMEM;

	sb_buf_init(&b, SB_SNAP_XATTR_MAX);
	sb_snap_xattrs_start(&b);
	for (size_t i = 0; r == 0 && i < n; i++) {
		ssize_t len = fgetxattr(fd, names[i], value, 65536);

		if (len < 0 && errno == ENOMEM)
			r = -ENOMEM;
		else if (len >= 0 && b.len + 5 + strlen(names[i]) + (size_t)len <= SB_SNAP_XATTR_MAX)
			sb_snap_xattrs_add(&b, names[i], value, (uint32_t)len);
		else if (len >= 0 || (errno != ENODATA && errno != EPERM && errno != EACCES))
			all = false;
	}
	w->unreadable += !all;
	if (r == 0)
		r = sb_buf_error(&b);
	if (r == 0)
		r = cap_put(w, b.data, b.len, hash);
	if (r == 0) {
		e->xattrs = malloc(SB_SNAP_HASH);
		if (e->xattrs)
			memcpy(e->xattrs, hash, SB_SNAP_HASH);
		else
			r = -ENOMEM;
	}
	sb_buf_done(&b);
	return r;
}

static char **sorted(char *list, size_t len, size_t *ret_n)
{
	char **v = calloc(len + 1, sizeof(char *)); /* a name has a byte at least */
	size_t n = 0;

	for (size_t at = 0; v && at < len; at += strlen(list + at) + 1)
		if (is_ours(list + at))
			v[n++] = list + at;
	if (n > 1)
		qsort(v, n, sizeof(*v), by_text);
	*ret_n = n;
	return v;
}

int cap_xattrs(struct cap_worker *w, int fd, struct cap_entry *e)
{
	char few[1024];
	sb_autofree char *many = NULL;
	sb_autofree char **names = NULL;
	char *list = few;
	size_t n = 0;
	ssize_t len;

	free(e->xattrs);
	e->xattrs = NULL;
	len = flistxattr(fd, few, sizeof(few));
	if (len < 0 && errno == ERANGE) {
		list = many = malloc(NAMES_MAX);
		if (!many)
			return -ENOMEM;
		len = flistxattr(fd, many, NAMES_MAX);
	}
	if (len < 0 && errno == ENOMEM)
		return -ENOMEM;
	if (len <= 0) { /* E2BIG: more names than the kernel tells */
		w->unreadable += len < 0 && errno != ENOTSUP && errno != EPERM && errno != EACCES;
		return 0;
	}
	names = sorted(list, (size_t)len, &n);
	if (!names)
		return -ENOMEM;
	return n > 0 ? pack_xattrs(w, fd, names, n, e) : 0;
}

/* --- data --- */

struct extents {
	struct sb_snap_extent *v;
	uint32_t n;
	uint64_t total;
};

/* Join what lies close together, until half of @max are left; holes between them become zeroes. */
static void join(struct extents *x, uint32_t max)
{
	for (uint64_t gap = 4096; x->n > max / 2 && x->n > 1; gap *= 2) {
		uint32_t n = 0;

		for (uint32_t i = 1; i < x->n; i++) {
			struct sb_snap_extent *last = &x->v[n];

			if (x->v[i].at - (last->at + last->len) <= gap)
				last->len = x->v[i].at + x->v[i].len - last->at;
			else
				x->v[++n] = x->v[i];
		}
		x->n = n + 1;
	}
	x->total = 0;
	for (uint32_t i = 0; i < x->n; i++)
		x->total += x->v[i].len;
}

static int add_extent(struct extents *x, uint64_t at, uint64_t len)
{
	if (x->n % 64 == 0) {
		void *v = realloc(x->v, (x->n + 64) * sizeof(*x->v));

		if (!v)
			return -ENOMEM;
		x->v = v;
	}
	x->v[x->n++] = (struct sb_snap_extent){ at, len };
	x->total += len;
	return 0;
}

/* Where data is. A file takes no more in the store than it takes on its disk, give or take joined holes.
 * Return: 0; PIECES; -ENOMEM. */
static int find_extents(const struct cap *c, int fd, const struct stat *st, struct extents *x)
{
	const uint32_t max = c->conf->max_extents ? c->conf->max_extents : SB_SNAP_EXTENTS_MAX;
	const uint64_t size = (uint64_t)st->st_size;
	const uint64_t most = (uint64_t)st->st_blocks * 1024 + JOINED_MAX;
	bool joined = false;
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && at < size) {
		off_t from = lseek(fd, (off_t)at, SEEK_DATA);
		off_t to = from < 0 ? -1 : lseek(fd, from, SEEK_HOLE);

		if (from < 0 && errno == ENXIO)
			break;
		if (from < 0 || to <= from) { /* no such calls here */
			x->n = 0;
			x->total = 0;
			from = 0;
			to = (off_t)size;
		}
		to = (off_t)SB_MIN((uint64_t)to, size);
		if (from < to)
			r = add_extent(x, (uint64_t)from, (uint64_t)(to - from));
		if (r == 0 && x->n == max) {
			join(x, max);
			joined = true;
		}
		at = (uint64_t)to;
	}
	/* what a file system packs may be many times what it takes */
	return r < 0 ? r : (joined ? x->total : x->total / PACKED_MAX) > most ? PIECES : 0;
}

/* Where an object goes that comes in pieces: memory, or a pack of its own when it is big; of one that is
 * staged only the hash is wanted. */
struct sink {
	struct cap_worker *w;
	bool stage;
	bool big;
	size_t len;
	struct sb_pack_big out;
};

static int sink_add(struct sink *s, const void *p, size_t len)
{
	if (s->big && room_for(s->w, len) < 0)
		return -ENOSPC;
	if (s->big || s->stage) {
		sb_digest_add(s->w->digest, p, len);
		return s->stage ? 0 : sb_pack_big_add(&s->out, p, len);
	}
	if (len > CAP_DATA - s->len)
		return -EFBIG;
	if (p != s->w->data + s->len)
		memcpy(s->w->data + s->len, p, len);
	s->len += len;
	return 0;
}

/* Return: bytes; less than @len at the end of the file; -errno. */
static int64_t copy_range(struct sink *s, int fd, uint64_t at, uint64_t len)
{
	uint64_t done = 0;

	while (done < len) {
		/* straight to its place when it is collected in memory */
		const bool through = s->big || s->stage;
		uint8_t *to = through ? s->w->data : s->w->data + s->len;
		size_t room = through ? 1U << 20 : CAP_DATA - s->len;
		ssize_t n;
		int r;

		if (room == 0)
			return -EFBIG;
		n = pread(fd, to, SB_MIN(room, len - done), (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ENOMEM ? -ENOMEM : SOURCE;
		if (n == 0)
			break;
		r = sink_add(s, to, (size_t)n);
		if (r < 0)
			return r;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

static int sink_end(struct sink *s, uint8_t hash[SB_SNAP_HASH])
{
	int r;

	if (!s->big && !s->stage)
		return cap_put(s->w, s->w->data, s->len, hash);
	sb_digest_end(s->w->digest, hash);
	if (s->stage)
		return 0;
	r = sb_snap_store_has(s->w->cap->store, hash);
	if (r == 0)
		r = sb_packer_claim(s->w->cap->packer, hash);
	else if (r == 1)
		r = 0;
	if (r == 1) {
		r = sb_pack_big_end(&s->out, hash, s->w->digest);
		s->w->big += r == 0;
		return r;
	}
	sb_pack_big_drop(&s->out);
	return r;
}

static int sink_start(struct sink *s, struct cap_worker *w, uint64_t expected)
{
	const bool stage = w->cap->conf->stage;

	*s = (struct sink){ .w = w, .stage = stage, .big = !stage && expected >= SB_PACK_BIG };
	if (!s->big && !stage)
		return 0;
	sb_digest_start(w->digest);
	if (stage)
		return 0;
	return sb_pack_big_start(sb_snap_store_dir(w->cap->store, SB_SNAP_PACKS), &s->out);
}

/* @last: take what there is of a file that never holds still.
 * Return: 0: @e's size and hash are set; -EAGAIN: it is being written; -errno. */
static int read_plain(struct cap_worker *w, int fd, struct cap_entry *e, bool last)
{
	struct sink s;
	int64_t n;
	int r = sink_start(&s, w, e->size);

	if (r < 0)
		return r;
	n = copy_range(&s, fd, 0, e->size + !last); /* one more: is this the end? */
	if (last && n >= 0)
		e->size = (uint64_t)n;
	if (n == (int64_t)e->size) {
		e->sparse = false;
		return sink_end(&s, e->hash);
	}
	if (s.big)
		sb_pack_big_drop(&s.out);
	return n < 0 && n != -EFBIG ? (int)n : -EAGAIN;
}

/* @n of zeroes, where a file has become shorter. */
static int add_zeroes(struct sink *s, uint64_t n)
{
	static const uint8_t zeroes[65536];
	int r = 0;

	for (; r == 0 && n > 0; n -= SB_MIN(n, (uint64_t)sizeof(zeroes)))
		r = sink_add(s, zeroes, SB_MIN(n, (uint64_t)sizeof(zeroes)));
	return r;
}

static int read_sparse(struct cap_worker *w, int fd, struct cap_entry *e, const struct extents *x, bool last)
{
	struct sink s;
	struct sb_buf head;
	int r = sink_start(&s, w, x->total + x->n * 16ULL);

	if (r < 0)
		return r;
	sb_buf_init(&head, SB_SNAP_SPARSE_HEAD + SB_SNAP_EXTENTS_MAX * 16ULL);
	sb_snap_sparse_head(&head, x->v, x->n);
	r = sb_buf_error(&head);
	if (r == 0)
		r = sink_add(&s, head.data, head.len);
	sb_buf_done(&head);
	for (uint32_t i = 0; r == 0 && i < x->n; i++) {
		int64_t n = copy_range(&s, fd, x->v[i].at, x->v[i].len);

		if (last && n >= 0)
			r = add_zeroes(&s, x->v[i].len - (uint64_t)n);
		else if (n != (int64_t)x->v[i].len)
			r = n < 0 && n != -EFBIG ? (int)n : -EAGAIN;
	}
	if (r == 0) {
		e->sparse = true;
		return sink_end(&s, e->hash);
	}
	if (s.big)
		sb_pack_big_drop(&s.out);
	return r;
}

static int read_once(struct cap_worker *w, int fd, const struct stat *st, struct cap_entry *e,
		     bool last)
{
	struct extents x = { 0 };
	int r;

	if (st->st_blocks * 512 >= st->st_size)
		return read_plain(w, fd, e, last);
	r = find_extents(w->cap, fd, st, &x);
	if (r == 0)
		r = x.total < e->size ? read_sparse(w, fd, e, &x, last) : read_plain(w, fd, e, last);
	free(x.v);
	return r;
}

static bool moved(const struct stat *a, const struct stat *b)
{
	return a->st_size != b->st_size || a->st_ctim.tv_sec != b->st_ctim.tv_sec ||
	       a->st_ctim.tv_nsec != b->st_ctim.tv_nsec || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
	       a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

/* Return: descriptor; -EACCES; -ESTALE: it is gone; SOURCE; -ENOMEM. */
static int open_file(const struct cap *c, const struct cap_dir *d, const char *name, struct stat *st)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(d->fd, name, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM)
		fd = openat(d->fd, name, flags);
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO || errno == ENOTDIR
			       ? -ESTALE
			       : errno == ENOMEM ? -ENOMEM : errno == EPERM || errno == EACCES ? -EACCES : SOURCE;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || st->st_dev != c->dev) {
		sb_fd_close(&fd);
		return -ESTALE;
	}
	return fd;
}

static int read_stable(struct cap_worker *w, int fd, struct stat *st, struct cap_entry *e)
{
	struct stat now;
	int r = 0;

	for (int i = 0; i < TRIES; i++) {
		cap_stat(e, st);
		r = read_once(w, fd, st, e, i == TRIES - 1);
		if (fstat(fd, &now) < 0)
			return SOURCE;
		if (r == 0 && !moved(st, &now))
			return 0;
		if (r < 0 && r != -EAGAIN)
			return r;
		*st = now;
	}
	w->changed++;
	e->again = true;
	return r;
}

int cap_file(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e)
{
	struct stat st;
	sb_autofd int fd = open_file(w->cap, d, e->name, &st);
	int r;

	if (fd == -ESTALE) { /* it was there a moment ago: as if it had gone before */
		e->kind = SB_SNAP_NONE;
		return 0;
	}
	r = fd == -EACCES ? SOURCE : fd < 0 ? fd : 0;
	if (r == 0) {
		w->read_files++;
		r = read_stable(w, fd, &st, e);
	}
	if (r == SOURCE || r == PIECES || r == -EAGAIN) {
		cap_opaque(w, e, r == PIECES ? SB_SNAP_PIECES : SB_SNAP_UNREADABLE);
		return 0;
	}
	return r < 0 ? r : cap_xattrs(w, fd, e);
}
