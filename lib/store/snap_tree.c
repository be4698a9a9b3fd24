#include "store/snap_tree.h"

#include <errno.h>
#include <string.h>

#define FLAG_SPARSE 1U
#define FLAG_XATTRS 2U

static const char tree_magic[4] = { 'S', 'B', 'T', '1' };
static const char xattr_magic[4] = { 'S', 'B', 'X', '1' };
static const char sparse_magic[4] = { 'S', 'B', 'S', '1' };

int sb_snap_name_cmp(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	int c = memcmp(a, b, SB_MIN(a_len, b_len));

	return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
}

bool sb_snap_name_ok(const uint8_t *name, size_t len)
{
	if (len == 0 || len > SB_SNAP_NAME_MAX || memchr(name, '/', len) || memchr(name, '\0', len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

/* --- writing --- */

void sb_snap_tree_start(struct sb_buf *to)
{
	sb_buf_add(to, tree_magic, sizeof(tree_magic));
}

void sb_snap_tree_add(struct sb_buf *to, const struct sb_snap_entry *e)
{
	sb_assert(sb_snap_name_ok(e->name, e->name_len));
	sb_buf_add_u8(to, e->kind);
	sb_buf_add_u8(to, (uint8_t)((e->sparse ? FLAG_SPARSE : 0) | (e->has_xattrs ? FLAG_XATTRS : 0)));
	sb_buf_add_u8(to, e->why);
	sb_buf_add_u8(to, e->name_len);
	sb_buf_add(to, e->name, e->name_len);
	sb_buf_add_le32(to, e->mode);
	sb_buf_add_le32(to, e->uid);
	sb_buf_add_le32(to, e->gid);
	sb_buf_add_le64(to, (uint64_t)e->mtime_s);
	sb_buf_add_le32(to, e->mtime_ns);
	if (e->kind == SB_SNAP_FILE)
		sb_buf_add_le64(to, e->size);
	if (e->kind == SB_SNAP_FILE || e->kind == SB_SNAP_DIR)
		sb_buf_add(to, e->hash, SB_SNAP_HASH);
	if (e->kind == SB_SNAP_LINK) {
		sb_buf_add_le16(to, e->target_len);
		sb_buf_add(to, e->target, e->target_len);
	}
	if (e->has_xattrs)
		sb_buf_add(to, e->xattrs, SB_SNAP_HASH);
}

/* --- reading --- */

int sb_snap_tree_open(struct sb_snap_reader *r, const void *p, size_t len)
{
	*r = (struct sb_snap_reader){ .rd = { .p = p, .len = len } };
	if (len < sizeof(tree_magic) || memcmp(p, tree_magic, sizeof(tree_magic)) != 0)
		return -EBADMSG;
	(void)sb_rd_bytes(&r->rd, sizeof(tree_magic));
	return 0;
}

static void get_hash(struct sb_rd *rd, uint8_t out[SB_SNAP_HASH])
{
	const uint8_t *p = sb_rd_bytes(rd, SB_SNAP_HASH);

	if (p)
		memcpy(out, p, SB_SNAP_HASH);
}

static bool flags_ok(const struct sb_snap_entry *e, uint8_t flags)
{
	if ((flags & ~(FLAG_SPARSE | FLAG_XATTRS)) != 0 || (e->sparse && e->kind != SB_SNAP_FILE))
		return false;
	return !e->has_xattrs || e->kind == SB_SNAP_FILE || e->kind == SB_SNAP_DIR;
}

static bool entry_ok(const struct sb_snap_entry *e, uint8_t flags)
{
	if (!flags_ok(e, flags) || e->mode > 07777 || e->mtime_ns > 999999999 || e->size > INT64_MAX)
		return false;
	if ((e->kind == SB_SNAP_OTHER) != (e->why != SB_SNAP_KEPT) || e->why > SB_SNAP_WHY_LAST)
		return false;
	if (e->kind == SB_SNAP_LINK &&
	    (e->target_len == 0 || e->target_len > SB_SNAP_TARGET_MAX ||
	     memchr(e->target, '\0', e->target_len)))
		return false;
	return e->kind >= SB_SNAP_DIR && e->kind <= SB_SNAP_OTHER;
}

int sb_snap_tree_next(struct sb_snap_reader *r, struct sb_snap_entry *ret)
{
	struct sb_snap_entry e = { 0 };
	struct sb_rd *rd = &r->rd;
	uint8_t flags;

	if (rd->len == 0 && !rd->bad)
		return 0;
	e.kind = sb_rd_u8(rd);
	flags = sb_rd_u8(rd);
	e.why = sb_rd_u8(rd);
	e.name_len = sb_rd_u8(rd);
	e.name = sb_rd_bytes(rd, e.name_len);
	e.mode = sb_rd_le32(rd);
	e.uid = sb_rd_le32(rd);
	e.gid = sb_rd_le32(rd);
	e.mtime_s = (int64_t)sb_rd_le64(rd);
	e.mtime_ns = sb_rd_le32(rd);
	e.sparse = (flags & FLAG_SPARSE) != 0;
	e.has_xattrs = (flags & FLAG_XATTRS) != 0;
	if (e.kind == SB_SNAP_FILE)
		e.size = sb_rd_le64(rd);
	if (e.kind == SB_SNAP_FILE || e.kind == SB_SNAP_DIR)
		get_hash(rd, e.hash);
	if (e.kind == SB_SNAP_LINK) {
		e.target_len = sb_rd_le16(rd);
		e.target = sb_rd_bytes(rd, e.target_len);
	}
	if (e.has_xattrs)
		get_hash(rd, e.xattrs);
	if (rd->bad || !entry_ok(&e, flags) || !sb_snap_name_ok(e.name, e.name_len))
		return -EBADMSG;
	if (r->last && sb_snap_name_cmp(r->last, r->last_len, e.name, e.name_len) >= 0)
		return -EBADMSG;
	r->last = e.name;
	r->last_len = e.name_len;
	*ret = e;
	return 1;
}

/* --- comparing --- */

bool sb_snap_same_content(const struct sb_snap_entry *a, const struct sb_snap_entry *b)
{
	if (a->kind != b->kind || a->why != b->why || a->sparse != b->sparse || a->size != b->size)
		return false;
	if (a->kind == SB_SNAP_LINK)
		return a->target_len == b->target_len &&
		       memcmp(a->target, b->target, a->target_len) == 0;
	return memcmp(a->hash, b->hash, SB_SNAP_HASH) == 0;
}

bool sb_snap_same(const struct sb_snap_entry *a, const struct sb_snap_entry *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
	       a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns &&
	       a->has_xattrs == b->has_xattrs &&
	       (!a->has_xattrs || memcmp(a->xattrs, b->xattrs, SB_SNAP_HASH) == 0) &&
	       sb_snap_same_content(a, b);
}

/* --- extended attributes --- */

void sb_snap_xattrs_start(struct sb_buf *to)
{
	sb_buf_add(to, xattr_magic, sizeof(xattr_magic));
}

void sb_snap_xattrs_add(struct sb_buf *to, const char *name, const void *value, uint32_t len)
{
	size_t n = strlen(name);

	sb_assert(n > 0 && n <= 255);
	sb_buf_add_u8(to, (uint8_t)n);
	sb_buf_add(to, name, n);
	sb_buf_add_le32(to, len);
	sb_buf_add(to, value, len);
}

int sb_snap_xattrs_open(struct sb_rd *r, const void *p, size_t len)
{
	*r = (struct sb_rd){ .p = p, .len = len };
	if (len < sizeof(xattr_magic) || len > SB_SNAP_XATTR_MAX ||
	    memcmp(p, xattr_magic, sizeof(xattr_magic)) != 0)
		return -EBADMSG;
	(void)sb_rd_bytes(r, sizeof(xattr_magic));
	return 0;
}

int sb_snap_xattrs_next(struct sb_rd *r, char name[256], const uint8_t **value, uint32_t *len)
{
	const uint8_t *p;
	uint8_t n;

	if (r->len == 0 && !r->bad)
		return 0;
	n = sb_rd_u8(r);
	p = sb_rd_bytes(r, n);
	*len = sb_rd_le32(r);
	*value = sb_rd_bytes(r, *len);
	if (r->bad || n == 0 || memchr(p, '\0', n))
		return -EBADMSG;
	memcpy(name, p, n);
	name[n] = '\0';
	return 1;
}

/* --- sparse files --- */

void sb_snap_sparse_head(struct sb_buf *to, const struct sb_snap_extent *v, uint32_t n)
{
	sb_buf_add(to, sparse_magic, sizeof(sparse_magic));
	sb_buf_add_le32(to, n);
	for (uint32_t i = 0; i < n; i++) {
		sb_buf_add_le64(to, v[i].at);
		sb_buf_add_le64(to, v[i].len);
	}
}

int sb_snap_sparse_count(const uint8_t head[SB_SNAP_SPARSE_HEAD], uint32_t *n)
{
	struct sb_rd r = { .p = head + 4, .len = 4 };
	uint32_t v = sb_rd_le32(&r);

	if (memcmp(head, sparse_magic, sizeof(sparse_magic)) != 0 || v > SB_SNAP_EXTENTS_MAX)
		return -EBADMSG;
	*n = v;
	return 0;
}

int sb_snap_sparse_extent(const uint8_t p[16], uint64_t min, uint64_t size, struct sb_snap_extent *ret)
{
	struct sb_rd r = { .p = p, .len = 16 };
	struct sb_snap_extent e = { .at = sb_rd_le64(&r) };

	e.len = sb_rd_le64(&r);
	if (e.len == 0 || e.at < min || e.at > size || e.len > size - e.at)
		return -EBADMSG;
	*ret = e;
	return 0;
}
