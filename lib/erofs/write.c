/*
 * Theory of operation. The output is written once, from front to back, through one buffer:
 *
 *   block 0   left empty, the superblock is put there last
 *   data      whole blocks of files in the order of their arrival, then of directories
 *   inodes    from meta_blkaddr on, in the order of a walk of the sorted tree; nid 1 is the root
 *
 * Three walks: the first gives every inode its number, which needs the sizes of inodes and of
 * directories alone; the second writes the directories' whole blocks, whose entries need the
 * numbers; the third writes inodes and what stands with them.
 *
 * The kernel refuses an inline tail that crosses a block: an inode, its attributes and its tail
 * stand in one block, or the tail gets a block of its own.
 */
#include "erofs/write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "erofs/dir.h"
#include "erofs/erofs_fs.h"

#define BUF ((size_t)1 << 20)
#define XATTR_HEAD sizeof(struct sb_erofs_xattr_header)

struct stream { /* appends to a file */
	int fd;
	uint64_t at; /* bytes that are in the file */
	size_t len;  /* bytes in the buffer */
	uint8_t *buf;
};
struct sb_erofs_writer {
	struct stream out;
	struct stream spool;
	uint64_t max_bytes;
	struct sb_erofs_inode *file; /* whose data comes */
	uint64_t got;
	size_t tail_len;
	uint8_t tail[SB_EROFS_BLOCK];
	size_t xattrs_len;
	uint8_t *xattrs; /* SB_EROFS_MAX_XATTRS */
	uint64_t cursor; /* of the inodes, from meta_blkaddr on */
	uint64_t meta;   /* where they begin */
	uint32_t inodes;
	uint8_t dir[SB_EROFS_BLOCK];
};

static const uint8_t uuid[16] = { 's', 'e', 'n', 'd', 'b', 'o', 0x40, 'x', 0x80, 'e', 'r', 'o', 'f',
				  's', 0, 1 };

static uint64_t stream_end(const struct stream *s)
{
	return s->at + s->len;
}

static int stream_flush(struct stream *s)
{
	size_t done = 0;

	while (done < s->len) {
		ssize_t n = pwrite(s->fd, s->buf + done, s->len - done, (off_t)(s->at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	s->at += s->len;
	s->len = 0;
	return 0;
}

static int stream_add(struct stream *s, const void *p, size_t len)
{
	const uint8_t *from = p;

	while (len > 0) {
		size_t n = SB_MIN(len, BUF - s->len);

		memcpy(s->buf + s->len, from, n);
		s->len += n;
		from += n;
		len -= n;
		if (s->len == BUF) {
			int r = stream_flush(s);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int stream_pad(struct stream *s, uint64_t to)
{
	static const uint8_t zero[SB_EROFS_BLOCK];
	int r = 0;

	while (r == 0 && stream_end(s) < to)
		r = stream_add(s, zero, (size_t)SB_MIN(to - stream_end(s), sizeof(zero)));
	return r;
}

static int stream_pad_block(struct stream *s)
{
	return stream_pad(s, (stream_end(s) + SB_EROFS_BLOCK - 1) & ~(uint64_t)(SB_EROFS_BLOCK - 1));
}

struct sb_erofs_writer *sb_erofs_free(struct sb_erofs_writer *w)
{
	if (w) {
		free(w->out.buf);
		free(w->spool.buf);
		free(w->xattrs);
		free(w);
	}
	return NULL;
}

int sb_erofs_new(int out, int spool, uint64_t max_bytes, struct sb_erofs_writer **ret)
{
	sb_autoerofs struct sb_erofs_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->out = (struct stream){ .fd = out, .buf = malloc(BUF) };
	w->spool = (struct stream){ .fd = spool, .buf = malloc(BUF) };
	w->xattrs = malloc(SB_EROFS_MAX_XATTRS);
	w->max_bytes = max_bytes;
	if (!w->out.buf || !w->spool.buf || !w->xattrs)
		return -ENOMEM;
	r = stream_pad(&w->out, SB_EROFS_BLOCK);
	if (r < 0)
		return r;
	*ret = sb_take(&w);
	return 0;
}

uint64_t sb_erofs_size(const struct sb_erofs_writer *w)
{
	return stream_end(&w->out);
}

static size_t xattr_size(const struct sb_erofs_inode *i)
{
	return i->xattrs_len ? XATTR_HEAD + i->xattrs_len : 0;
}

static size_t head_size(const struct sb_erofs_inode *i)
{
	return sizeof(struct sb_erofs_extended) + xattr_size(i);
}

static bool fits_inline(const struct sb_erofs_inode *i, size_t tail)
{
	return tail > 0 && head_size(i) + tail <= SB_EROFS_BLOCK;
}

static int room_for(const struct sb_erofs_writer *w, uint64_t len)
{
	uint64_t limit = SB_MIN(w->max_bytes, (uint64_t)UINT32_MAX * SB_EROFS_BLOCK);
	uint64_t end = stream_end(&w->out);

	return end > limit || len > limit - end ? -EFBIG : 0;
}

int sb_erofs_data_begin(struct sb_erofs_writer *w, struct sb_erofs_inode *i)
{
	int r = room_for(w, i->size);

	if (r < 0)
		return r;
	sb_assert(!w->file && stream_end(&w->out) % SB_EROFS_BLOCK == 0);
	w->file = i;
	w->got = 0;
	w->tail_len = 0;
	i->block = (uint32_t)(stream_end(&w->out) / SB_EROFS_BLOCK);
	i->inlined = fits_inline(i, (size_t)(i->size % SB_EROFS_BLOCK));
	return 0;
}

int sb_erofs_data_add(struct sb_erofs_writer *w, const uint8_t *p, size_t len)
{
	const struct sb_erofs_inode *i = w->file;
	uint64_t whole = i->inlined ? i->size - i->size % SB_EROFS_BLOCK : i->size;
	size_t n;

	if (len > i->size - w->got)
		return -EINVAL;
	n = w->got < whole ? (size_t)SB_MIN(len, whole - w->got) : 0;
	w->got += len;
	if (len > n) {
		memcpy(w->tail + w->tail_len, p + n, len - n);
		w->tail_len += len - n;
	}
	return stream_add(&w->out, p, n);
}

int sb_erofs_data_end(struct sb_erofs_writer *w)
{
	struct sb_erofs_inode *i = w->file;

	w->file = NULL;
	if (w->got != i->size)
		return -EINVAL;
	if (i->inlined) {
		i->tail = stream_end(&w->spool);
		return stream_add(&w->spool, w->tail, w->tail_len);
	}
	return stream_pad_block(&w->out);
}

bool sb_erofs_in_data(const struct sb_erofs_writer *w)
{
	return w->file != NULL;
}

void sb_erofs_data_drop(struct sb_erofs_writer *w, const struct sb_erofs_inode *i)
{
	uint64_t from = (uint64_t)i->block * SB_EROFS_BLOCK;
	uint64_t len = i->size - i->size % SB_EROFS_BLOCK;

	if (!S_ISREG(i->mode) || len == 0 || i == w->file || stream_flush(&w->out) < 0)
		return;
	/* to save space alone: where it does not work the old bytes stay, unreferenced */
	(void)fallocate(w->out.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			(off_t)len);
}

static const struct {
	const char *prefix;
	uint8_t len;
	uint8_t index;
	bool whole; /* there is no rest */
} prefixes[] = {
	{ "user.", 5, SB_EROFS_XATTR_USER, false },
	{ "trusted.", 8, SB_EROFS_XATTR_TRUSTED, false },
	{ "security.", 9, SB_EROFS_XATTR_SECURITY, false },
	{ "system.posix_acl_access", 23, SB_EROFS_XATTR_ACL_ACCESS, true },
	{ "system.posix_acl_default", 24, SB_EROFS_XATTR_ACL_DEFAULT, true },
};

int sb_erofs_xattr_add(struct sb_erofs_writer *w, const char *name, size_t name_len,
		       const void *value, size_t len)
{
	struct sb_erofs_xattr_entry e = { 0 };
	size_t need;

	for (size_t i = 0; i < SB_ARRAY_LEN(prefixes) && e.name_index == 0; i++) {
		size_t n = prefixes[i].len;

		if (name_len < n || memcmp(name, prefixes[i].prefix, n) != 0 ||
		    (prefixes[i].whole ? name_len != n : name_len == n))
			continue;
		e.name_index = prefixes[i].index;
		name += n;
		name_len -= n;
	}
	if (e.name_index == 0)
		return -EOPNOTSUPP;
	if (name_len > UINT8_MAX || len > UINT16_MAX)
		return -E2BIG;
	need = (sizeof(e) + name_len + len + SB_EROFS_XATTR_ALIGN - 1) &
	       ~(size_t)(SB_EROFS_XATTR_ALIGN - 1);
	if (need > SB_EROFS_MAX_XATTRS - w->xattrs_len)
		return -E2BIG;
	e.name_len = (uint8_t)name_len;
	e.value_size = htole16((uint16_t)len);
	memset(w->xattrs + w->xattrs_len, 0, need);
	memcpy(w->xattrs + w->xattrs_len, &e, sizeof(e));
	memcpy(w->xattrs + w->xattrs_len + sizeof(e), name, name_len);
	if (len > 0)
		memcpy(w->xattrs + w->xattrs_len + sizeof(e) + name_len, value, len);
	w->xattrs_len += need;
	return 0;
}

int sb_erofs_xattr_set(struct sb_erofs_writer *w, struct sb_erofs_tree *t, struct sb_erofs_inode *i)
{
	size_t len = w->xattrs_len;
	uint8_t *p;

	w->xattrs_len = 0;
	if (len == 0)
		return 0;
	if (len > SB_EROFS_MAX_XATTRS - i->xattrs_len)
		return -E2BIG;
	p = sb_erofs_alloc(t, i->xattrs_len + len);
	if (!p)
		return -ENOMEM;
	if (i->xattrs_len > 0)
		memcpy(p, i->xattrs, i->xattrs_len);
	memcpy(p + i->xattrs_len, w->xattrs, len);
	i->xattrs = p;
	i->xattrs_len += (uint32_t)len;
	return 0;
}

/* First walk: a number for every inode. */
static void place(struct sb_erofs_writer *w, struct sb_erofs_entry *e)
{
	struct sb_erofs_inode *i = e->inode;
	size_t tail = (size_t)(i->size % SB_EROFS_BLOCK);
	size_t total;

	if (i->placed)
		return;
	if (S_ISDIR(i->mode)) {
		sb_erofs_sort(e);
		i->size = erofs_dir_size(e);
		tail = (size_t)(i->size % SB_EROFS_BLOCK);
	}
	if (S_ISDIR(i->mode) || S_ISLNK(i->mode))
		i->inlined = fits_inline(i, tail);
	total = head_size(i) + (i->inlined ? tail : 0);
	w->cursor = (w->cursor + SB_EROFS_SLOT - 1) & ~(uint64_t)(SB_EROFS_SLOT - 1);
	if (total <= SB_EROFS_BLOCK && w->cursor % SB_EROFS_BLOCK + total > SB_EROFS_BLOCK)
		w->cursor = (w->cursor + SB_EROFS_BLOCK - 1) & ~(uint64_t)(SB_EROFS_BLOCK - 1);
	i->nid = w->cursor / SB_EROFS_SLOT;
	i->placed = true;
	w->cursor += total;
	w->inodes++;
}

/* Second walk: whole blocks of directories, links that do not fit beside their inodes. */
static int write_blocks(struct sb_erofs_writer *w, struct sb_erofs_entry *e)
{
	struct sb_erofs_inode *i = e->inode;
	struct erofs_dir_at at;
	int r = S_ISREG(i->mode) ? 0 : room_for(w, i->size);

	if (r < 0)
		return r;
	if (S_ISLNK(i->mode) && !i->inlined && i->block == 0) {
		i->block = (uint32_t)(stream_end(&w->out) / SB_EROFS_BLOCK);
		r = stream_add(&w->out, i->target, (size_t)i->size);
		return r < 0 ? r : stream_pad_block(&w->out);
	}
	if (!S_ISDIR(i->mode))
		return 0;
	i->block = (uint32_t)(stream_end(&w->out) / SB_EROFS_BLOCK);
	erofs_dir_start(&at, e);
	for (uint64_t done = 0; r == 0 && done < i->size; done += SB_EROFS_BLOCK) {
		if (i->inlined && i->size - done < SB_EROFS_BLOCK)
			break;
		(void)erofs_dir_block(&at, w->dir);
		r = stream_add(&w->out, w->dir, SB_EROFS_BLOCK);
	}
	return r;
}

static int write_tail(struct sb_erofs_writer *w, const struct sb_erofs_entry *e)
{
	const struct sb_erofs_inode *i = e->inode;
	size_t len = (size_t)(i->size % SB_EROFS_BLOCK);
	struct erofs_dir_at at;
	ssize_t n;

	if (S_ISLNK(i->mode))
		return stream_add(&w->out, i->target, len);
	if (S_ISDIR(i->mode)) {
		erofs_dir_start(&at, e);
		for (uint64_t done = 0; done < i->size; done += SB_EROFS_BLOCK)
			(void)erofs_dir_block(&at, w->dir);
		return stream_add(&w->out, w->dir, len);
	}
	n = sb_fd_read_at(w->spool.fd, w->tail, len, (off_t)i->tail);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -EIO;
	return stream_add(&w->out, w->tail, len);
}

static int write_xattrs(struct sb_erofs_writer *w, const struct sb_erofs_inode *i)
{
	const struct sb_erofs_xattr_header head = { 0 };
	int r;

	if (i->xattrs_len == 0)
		return 0;
	r = stream_add(&w->out, &head, sizeof(head));
	return r < 0 ? r : stream_add(&w->out, i->xattrs, i->xattrs_len);
}

/* Third walk. */
static int write_inode(struct sb_erofs_writer *w, const struct sb_erofs_entry *e)
{
	struct sb_erofs_inode *i = e->inode;
	unsigned int layout = i->inlined ? SB_EROFS_FLAT_INLINE : SB_EROFS_FLAT_PLAIN;
	bool device = S_ISCHR(i->mode) || S_ISBLK(i->mode) || S_ISFIFO(i->mode) || S_ISSOCK(i->mode);
	struct sb_erofs_extended d = { 0 };
	int r;

	if (i->written)
		return 0;
	i->written = true;
	d.format = htole16((uint16_t)(SB_EROFS_EXTENDED | layout << SB_EROFS_LAYOUT_SHIFT));
	d.xattr_icount = htole16(i->xattrs_len ? (uint16_t)(1 + i->xattrs_len / 4) : 0);
	d.mode = htole16(i->mode);
	d.size = htole64(i->size);
	d.u = htole32(device ? i->rdev : i->block);
	d.ino = htole32(++w->inodes);
	d.uid = htole32(i->uid);
	d.gid = htole32(i->gid);
	d.mtime = htole64((uint64_t)i->mtime);
	d.mtime_nsec = htole32(i->mtime_nsec);
	d.nlink = htole32(i->nlink);
	r = stream_pad(&w->out, w->meta + i->nid * SB_EROFS_SLOT);
	if (r == 0)
		r = stream_add(&w->out, &d, sizeof(d));
	if (r == 0)
		r = write_xattrs(w, i);
	if (r == 0 && i->inlined)
		r = write_tail(w, e);
	return r;
}

static uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int b = 0; b < 8; b++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78U : 0);
	}
	return crc;
}

static int write_super(struct sb_erofs_writer *w)
{
	struct sb_erofs_super s = { 0 };
	uint8_t block[SB_EROFS_BLOCK] = { 0 };

	s.magic = htole32(SB_EROFS_MAGIC);
	s.feature_compat = htole32(SB_EROFS_COMPAT_CHECKSUM | SB_EROFS_COMPAT_MTIME);
	s.block_bits = SB_EROFS_BLOCK_BITS;
	s.root_nid = htole16(1);
	s.inodes = htole64(w->inodes);
	s.blocks = htole32((uint32_t)(w->out.at / SB_EROFS_BLOCK));
	s.meta_blkaddr = htole32((uint32_t)(w->meta / SB_EROFS_BLOCK));
	memcpy(s.uuid, uuid, sizeof(uuid));
	memcpy(s.volume_name, "sendbox", 7);
	memcpy(block + SB_EROFS_SUPER_OFFSET, &s, sizeof(s));
	s.checksum = htole32(crc32c(UINT32_MAX, block + SB_EROFS_SUPER_OFFSET,
				    SB_EROFS_BLOCK - SB_EROFS_SUPER_OFFSET));
	memcpy(block + SB_EROFS_SUPER_OFFSET, &s, sizeof(s));
	w->out.at = 0; /* the buffer is empty */
	w->out.len = 0;
	return stream_add(&w->out, block, sizeof(block));
}

int sb_erofs_finish(struct sb_erofs_writer *w, struct sb_erofs_tree *t)
{
	struct sb_erofs_entry *e;
	uint64_t end;
	int r = stream_flush(&w->spool);

	w->cursor = SB_EROFS_SLOT; /* number 0 is nobody's */
	for (e = t->root; r == 0 && e; e = sb_erofs_walk(t->root, e))
		place(w, e);
	for (e = t->root; r == 0 && e; e = sb_erofs_walk(t->root, e))
		r = write_blocks(w, e);
	if (r == 0)
		r = room_for(w, w->cursor);
	w->meta = stream_end(&w->out);
	w->inodes = 0;
	for (e = t->root; r == 0 && e; e = sb_erofs_walk(t->root, e))
		r = write_inode(w, e);
	if (r == 0)
		r = stream_pad_block(&w->out);
	if (r == 0)
		r = stream_flush(&w->out);
	if (r < 0)
		return r;
	end = w->out.at;
	r = write_super(w);
	if (r == 0)
		r = stream_flush(&w->out);
	w->out.at = end;
	return r;
}
