#include "erofs/read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COMPAT_XATTR_FILTER 4U /* a filter of names beside the attributes: not needed to read */
#define COMPAT_KNOWN (SB_EROFS_COMPAT_CHECKSUM | SB_EROFS_COMPAT_MTIME | COMPAT_XATTR_FILTER)
#define FORMAT_KNOWN (SB_EROFS_EXTENDED | SB_EROFS_LAYOUT_MASK << SB_EROFS_LAYOUT_SHIFT)
#define MAX_BLOCKS (1ULL << 32)
#define CRC32C 0x82f63b78U /* reflected */

static uint16_t rd16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t rd32(const uint8_t *p)
{
	return (uint32_t)rd16(p) | (uint32_t)rd16(p + 2) << 16;
}

static uint64_t rd64(const uint8_t *p)
{
	return (uint64_t)rd32(p) | (uint64_t)rd32(p + 4) << 32;
}

#define AT16(p, type, field) rd16((p) + offsetof(type, field))
#define AT32(p, type, field) rd32((p) + offsetof(type, field))
#define AT64(p, type, field) rd64((p) + offsetof(type, field))

/* Whether [at, at + n) lies in the file. */
static bool within(const struct sb_erofs *fs, uint64_t at, uint64_t n)
{
	return at <= fs->len && n <= fs->len - at;
}

/* ---- superblock ---- */

static uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? CRC32C : 0);
	}
	return crc;
}

static bool checksum_ok(const uint8_t *super)
{
	static const uint8_t zero[4];
	const size_t at = offsetof(struct sb_erofs_super, checksum);
	const size_t len = SB_EROFS_BLOCK - SB_EROFS_SUPER_OFFSET;
	uint32_t crc = crc32c(~0U, super, at);

	crc = crc32c(crc, zero, sizeof(zero));
	crc = crc32c(crc, super + at + 4, len - at - 4);
	return crc == rd32(super + at);
}

/* What of the format is used that is not ours; NULL = nothing. */
static const char *foreign(const uint8_t *s)
{
	typedef struct sb_erofs_super S;

	if (AT32(s, S, magic) != SB_EROFS_MAGIC)
		return "no EROFS file";
	if (s[offsetof(S, block_bits)] != SB_EROFS_BLOCK_BITS)
		return "blocks that are not 4 KiB";
	if (AT32(s, S, feature_incompat) != 0)
		return "compression, chunks or another feature that is not read here";
	if (AT32(s, S, feature_compat) & ~COMPAT_KNOWN)
		return "an unknown feature";
	if (s[offsetof(S, ext_slots)] != 0 || AT16(s, S, extra_devices) != 0 ||
	    s[offsetof(S, dirblk_bits)] != 0 || s[offsetof(S, xattr_prefix_count)] != 0)
		return "devices, slots or prefixes that are not read here";
	if ((AT32(s, S, feature_compat) & SB_EROFS_COMPAT_CHECKSUM) && !checksum_ok(s))
		return "a wrong checksum";
	return NULL;
}

static int bad(const char **why, const char *text)
{
	if (why)
		*why = text;
	return -EBADMSG;
}

int sb_erofs_open(const uint8_t *p, size_t len, struct sb_erofs *ret, const char **why)
{
	typedef struct sb_erofs_super S;
	const uint8_t *s = p + SB_EROFS_SUPER_OFFSET;
	struct sb_erofs fs = { .p = p };
	struct sb_erofs_node root;
	const char *text;

	if (len < SB_EROFS_BLOCK)
		return bad(why, "shorter than one block");
	text = foreign(s);
	if (text)
		return bad(why, text);
	fs.len = (uint64_t)AT32(s, S, blocks) * SB_EROFS_BLOCK;
	if (fs.len < SB_EROFS_BLOCK || fs.len > len)
		return bad(why, "more blocks than the file has");
	fs.meta = (uint64_t)AT32(s, S, meta_blkaddr) * SB_EROFS_BLOCK;
	fs.xattrs = (uint64_t)AT32(s, S, xattr_blkaddr) * SB_EROFS_BLOCK;
	fs.root = AT16(s, S, root_nid);
	fs.inodes = AT64(s, S, inodes);
	fs.time = AT64(s, S, build_time);
	fs.time_nsec = AT32(s, S, build_time_nsec);
	if (fs.time_nsec > 999999999U)
		return bad(why, "a time that is none");
	if (sb_erofs_node(&fs, fs.root, &root) < 0 || !S_ISDIR(root.mode))
		return bad(why, "no root directory");
	*ret = fs;
	return 0;
}

/* ---- inodes ---- */

/* Where the data is, and that all of it is there. @after: right behind inode and attributes. */
static int place_data(const struct sb_erofs *fs, struct sb_erofs_node *n, unsigned int layout,
		      uint32_t u, uint64_t after)
{
	uint64_t whole = n->size;
	uint64_t tail = 0;

	if (layout == SB_EROFS_FLAT_INLINE && n->size > 0) {
		whole = (n->size - 1) / SB_EROFS_BLOCK * SB_EROFS_BLOCK;
		tail = n->size - whole;
		/* the kernel refuses one that crosses a block: so do we, or the two would differ */
		if (!within(fs, after, tail) || after % SB_EROFS_BLOCK + tail > SB_EROFS_BLOCK)
			return -EBADMSG;
	} else if (layout != SB_EROFS_FLAT_PLAIN && layout != SB_EROFS_FLAT_INLINE) {
		return -EBADMSG;
	}
	if (whole > 0 && !within(fs, (uint64_t)u * SB_EROFS_BLOCK, whole))
		return -EBADMSG;
	n->data = (uint64_t)u * SB_EROFS_BLOCK;
	n->whole = whole;
	n->tail = after;
	return 0;
}

static int check_type(const struct sb_erofs *fs, struct sb_erofs_node *n, unsigned int layout,
		      uint32_t u, uint64_t after)
{
	switch (n->mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
		return place_data(fs, n, layout, u, after);
	case S_IFLNK:
		if (n->size == 0 || n->size >= SB_EROFS_BLOCK)
			return -EBADMSG;
		return place_data(fs, n, layout, u, after);
	case S_IFCHR:
	case S_IFBLK:
		n->dev = u;
		n->size = 0;
		return 0;
	case S_IFIFO:
	case S_IFSOCK:
		n->size = 0;
		return 0;
	default:
		return -EBADMSG;
	}
}

static void take_compact(const struct sb_erofs *fs, const uint8_t *i, struct sb_erofs_node *n)
{
	typedef struct sb_erofs_compact C;

	n->mode = AT16(i, C, mode);
	n->nlink = AT16(i, C, nlink);
	n->size = AT32(i, C, size);
	n->uid = AT16(i, C, uid);
	n->gid = AT16(i, C, gid);
	n->time = fs->time;
	n->time_nsec = fs->time_nsec;
}

static void take_extended(const uint8_t *i, struct sb_erofs_node *n)
{
	typedef struct sb_erofs_extended E;

	n->mode = AT16(i, E, mode);
	n->nlink = AT32(i, E, nlink);
	n->size = AT64(i, E, size);
	n->uid = AT32(i, E, uid);
	n->gid = AT32(i, E, gid);
	n->time = AT64(i, E, mtime);
	n->time_nsec = AT32(i, E, mtime_nsec);
}

int sb_erofs_node(const struct sb_erofs *fs, uint64_t nid, struct sb_erofs_node *ret)
{
	struct sb_erofs_node n = { .nid = nid };
	const uint8_t *i;
	uint64_t at;
	uint64_t room;
	unsigned int format;
	uint32_t count;
	uint32_t u;

	if (nid > MAX_BLOCKS * (SB_EROFS_BLOCK / SB_EROFS_SLOT))
		return -ENOENT;
	at = fs->meta + nid * SB_EROFS_SLOT;
	if (!within(fs, at, sizeof(struct sb_erofs_compact)))
		return -ENOENT;
	i = fs->p + at;
	format = rd16(i);
	if (format & ~FORMAT_KNOWN)
		return -EBADMSG;
	room = format & SB_EROFS_EXTENDED ? sizeof(struct sb_erofs_extended)
					  : sizeof(struct sb_erofs_compact);
	if (!within(fs, at, room))
		return -EBADMSG;
	if (format & SB_EROFS_EXTENDED)
		take_extended(i, &n);
	else
		take_compact(fs, i, &n);
	_Static_assert(offsetof(struct sb_erofs_compact, u) == 16 &&
		       offsetof(struct sb_erofs_extended, u) == 16, "one place for both");
	u = rd32(i + 16);
	count = AT16(i, struct sb_erofs_compact, xattr_icount);
	if (count > 0) {
		n.xattr = at + room;
		n.xattr_len = (uint32_t)sizeof(struct sb_erofs_xattr_header) + 4 * (count - 1);
		if (!within(fs, n.xattr, n.xattr_len))
			return -EBADMSG;
	}
	if (n.time_nsec > 999999999U || n.size > INT64_MAX)
		return -EBADMSG;
	if (check_type(fs, &n, format >> SB_EROFS_LAYOUT_SHIFT & SB_EROFS_LAYOUT_MASK, u,
		       at + room + n.xattr_len) < 0)
		return -EBADMSG;
	*ret = n;
	return 0;
}

size_t sb_erofs_span(const struct sb_erofs *fs, const struct sb_erofs_node *n, uint64_t at,
		     const uint8_t **ret)
{
	if (at >= n->size)
		return 0;
	if (at < n->whole) {
		*ret = fs->p + n->data + at;
		return (size_t)(n->whole - at);
	}
	*ret = fs->p + n->tail + (at - n->whole);
	return (size_t)(n->size - at);
}

/* ---- directories ---- */

struct block {
	const uint8_t *p;
	size_t len;
	size_t n; /* entries */
};

static size_t name_at(const struct block *b, size_t i)
{
	return rd16(b->p + i * sizeof(struct sb_erofs_dirent) +
		    offsetof(struct sb_erofs_dirent, nameoff));
}

static int get_block(const struct sb_erofs *fs, const struct sb_erofs_node *dir, uint64_t number,
		     struct block *ret)
{
	const uint8_t *p = NULL;
	size_t len = sb_erofs_span(fs, dir, number * SB_EROFS_BLOCK, &p);
	struct block b = { .p = p, .len = SB_MIN(len, (size_t)SB_EROFS_BLOCK) };
	size_t first;

	if (b.len < sizeof(struct sb_erofs_dirent))
		return -EBADMSG;
	first = name_at(&b, 0);
	if (first == 0 || first % sizeof(struct sb_erofs_dirent) != 0 || first >= b.len)
		return -EBADMSG;
	b.n = first / sizeof(struct sb_erofs_dirent);
	*ret = b;
	return 0;
}

static int get_entry(const struct block *b, size_t i, struct sb_erofs_entry *ret)
{
	const uint8_t *d = b->p + i * sizeof(struct sb_erofs_dirent);
	size_t from = name_at(b, i);
	size_t to = i + 1 < b->n ? name_at(b, i + 1) : b->len;
	const char *name = (const char *)b->p + from;
	size_t len;

	if (from < b->n * sizeof(struct sb_erofs_dirent) || from >= to || to > b->len)
		return -EBADMSG;
	len = i + 1 < b->n ? to - from : strnlen(name, to - from);
	if (len == 0 || len > SB_EROFS_NAME_MAX || memchr(name, '/', len) || memchr(name, 0, len))
		return -EBADMSG;
	*ret = (struct sb_erofs_entry){
		.nid = rd64(d),
		.name = name,
		.name_len = len,
		.type = d[offsetof(struct sb_erofs_dirent, file_type)],
	};
	return 0;
}

static int compare(const char *a, size_t a_len, const struct sb_erofs_entry *e)
{
	int c = memcmp(a, e->name, SB_MIN(a_len, e->name_len));

	if (c != 0)
		return c;
	return a_len < e->name_len ? -1 : a_len > e->name_len;
}

static uint64_t n_blocks(const struct sb_erofs_node *dir)
{
	return (dir->size + SB_EROFS_BLOCK - 1) / SB_EROFS_BLOCK;
}

/* The last block whose first name is not after @name. Return: 0; -ENOENT; -EBADMSG. */
static int find_block(const struct sb_erofs *fs, const struct sb_erofs_node *dir, const char *name,
		      size_t len, struct block *ret)
{
	uint64_t lo = 0;
	uint64_t hi = n_blocks(dir);
	bool found = false;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		struct sb_erofs_entry e;
		struct block b;
		int r = get_block(fs, dir, mid, &b);

		if (r == 0)
			r = get_entry(&b, 0, &e);
		if (r < 0)
			return r;
		if (compare(name, len, &e) < 0) {
			hi = mid;
		} else {
			*ret = b;
			found = true;
			lo = mid + 1;
		}
	}
	return found ? 0 : -ENOENT;
}

int sb_erofs_lookup(const struct sb_erofs *fs, const struct sb_erofs_node *dir, const char *name,
		    size_t len, struct sb_erofs_entry *ret)
{
	size_t lo = 0;
	size_t hi;
	struct block b;
	int r;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	r = find_block(fs, dir, name, len, &b);
	if (r < 0)
		return r;
	hi = b.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct sb_erofs_entry e;
		int c;

		r = get_entry(&b, mid, &e);
		if (r < 0)
			return r;
		c = compare(name, len, &e);
		if (c == 0) {
			*ret = e;
			return 0;
		}
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return -ENOENT;
}

/* A position is block * BLOCK + number of the entry in it. */
int sb_erofs_next(const struct sb_erofs *fs, const struct sb_erofs_node *dir, uint64_t *pos,
		  struct sb_erofs_entry *ret)
{
	uint64_t number = *pos / SB_EROFS_BLOCK;
	size_t i = (size_t)(*pos % SB_EROFS_BLOCK);
	struct block b;
	int r;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	if (number >= n_blocks(dir))
		return 0;
	r = get_block(fs, dir, number, &b);
	if (r < 0)
		return r;
	if (i >= b.n)
		return -EINVAL;
	r = get_entry(&b, i, ret);
	if (r < 0)
		return r;
	*pos = i + 1 < b.n ? *pos + 1 : (number + 1) * SB_EROFS_BLOCK;
	return 1;
}

/* ---- extended attributes ---- */

/*
 * The entry at position @pos: numbers of shared ones first, then offsets behind them. @ret_room: the
 * bytes that it may fill. Return: 1 with @pos moved on; 0 = none; -EBADMSG.
 */
static int find_xattr(const struct sb_erofs *fs, const struct sb_erofs_node *n, uint64_t *pos,
		      uint64_t *ret, uint64_t *ret_room)
{
	const size_t head = sizeof(struct sb_erofs_xattr_entry);
	uint64_t at = n->xattr + sizeof(struct sb_erofs_xattr_header);
	uint64_t end = n->xattr + n->xattr_len;
	uint64_t shared;
	uint64_t len;

	if (n->xattr_len == 0)
		return 0;
	shared = fs->p[n->xattr + offsetof(struct sb_erofs_xattr_header, shared_count)];
	if (4 * shared > end - at)
		return -EBADMSG;
	if (*pos < shared) {
		*ret = fs->xattrs + 4ULL * rd32(fs->p + at + 4 * *pos);
		if (*ret > fs->len)
			return -EBADMSG;
		*ret_room = fs->len - *ret;
		++*pos;
		return 1;
	}
	at += 4 * shared;
	if (*pos - shared > end - at)
		return -EBADMSG;
	at += *pos - shared;
	if (end - at < head)
		return 0;
	len = head + fs->p[at] + AT16(fs->p + at, struct sb_erofs_xattr_entry, value_size);
	len = (len + SB_EROFS_XATTR_ALIGN - 1) & ~(uint64_t)(SB_EROFS_XATTR_ALIGN - 1);
	if (len > end - at)
		return -EBADMSG;
	*ret = at;
	*ret_room = len;
	*pos += len;
	return 1;
}

static const char *prefix_of(uint8_t index)
{
	static const char *const prefixes[] = {
		[SB_EROFS_XATTR_USER] = "user.",
		[SB_EROFS_XATTR_ACL_ACCESS] = "system.posix_acl_access",
		[SB_EROFS_XATTR_ACL_DEFAULT] = "system.posix_acl_default",
		[SB_EROFS_XATTR_TRUSTED] = "trusted.",
		[SB_EROFS_XATTR_SECURITY] = "security.",
	};

	return index < SB_ARRAY_LEN(prefixes) ? prefixes[index] : NULL;
}

int sb_erofs_xattr(const struct sb_erofs *fs, const struct sb_erofs_node *n, uint64_t *pos,
		   struct sb_erofs_xattr *ret)
{
	typedef struct sb_erofs_xattr_entry X;
	uint64_t at = 0;
	uint64_t room = 0;
	const uint8_t *e;
	const char *prefix;
	size_t name_len;
	size_t value_len;
	int r = find_xattr(fs, n, pos, &at, &room);

	if (r <= 0)
		return r;
	if (room < sizeof(X))
		return -EBADMSG;
	e = fs->p + at;
	name_len = e[offsetof(X, name_len)];
	value_len = AT16(e, X, value_size);
	if (sizeof(X) + name_len + value_len > room)
		return -EBADMSG;
	prefix = prefix_of(e[offsetof(X, name_index)]);
	if (!prefix)
		return 2;
	if (memchr(e + sizeof(X), 0, name_len))
		return -EBADMSG;
	(void)snprintf(ret->name, sizeof(ret->name), "%s%.*s", prefix, (int)name_len,
		       (const char *)e + sizeof(X));
	ret->value = e + sizeof(X) + name_len;
	ret->len = value_len;
	return 1;
}

int sb_erofs_xattr_get(const struct sb_erofs *fs, const struct sb_erofs_node *n, const char *name,
		       struct sb_erofs_xattr *ret)
{
	uint64_t pos = 0;

	for (;;) {
		struct sb_erofs_xattr x;
		int r = sb_erofs_xattr(fs, n, &pos, &x);

		if (r <= 0)
			return r < 0 ? r : -ENODATA;
		if (r == 1 && strcmp(x.name, name) == 0) {
			*ret = x;
			return 0;
		}
	}
}
