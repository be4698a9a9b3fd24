#include "store/snap_manifest.h"

#include <errno.h>
#include <string.h>

static const char magic[] = "sendbox-snapshot ";
static const char version[] = "1\n";

static void put_bytes(struct sb_buf *to, struct sb_snap_bytes b)
{
	sb_buf_add_le16(to, (uint16_t)b.len);
	sb_buf_add(to, b.p, b.len);
}

static struct sb_snap_bytes get_bytes(struct sb_rd *r)
{
	struct sb_snap_bytes b = { .len = sb_rd_le16(r) };

	b.p = sb_rd_bytes(r, b.len);
	return b;
}

void sb_snap_manifest_write(struct sb_buf *to, const struct sb_snap_manifest *m)
{
	const struct sb_snap_counts *c = &m->counts;
	const uint64_t counts[] = { c->files, c->dirs, c->links, c->others, c->excluded, c->bytes };
	const struct sb_snap_entry *e = &m->root;

	sb_buf_add_str(to, magic);
	sb_buf_add_str(to, version);
	sb_buf_add_le64(to, m->time_ns);
	sb_buf_add_u8(to, m->role);
	put_bytes(to, m->path);
	put_bytes(to, m->label);
	sb_buf_add_le32(to, e->mode);
	sb_buf_add_le32(to, e->uid);
	sb_buf_add_le32(to, e->gid);
	sb_buf_add_le64(to, (uint64_t)e->mtime_s);
	sb_buf_add_le32(to, e->mtime_ns);
	sb_buf_add(to, e->hash, SB_SNAP_HASH);
	sb_buf_add_u8(to, e->has_xattrs);
	if (e->has_xattrs)
		sb_buf_add(to, e->xattrs, SB_SNAP_HASH);
	for (size_t i = 0; i < SB_ARRAY_LEN(counts); i++)
		sb_buf_add_le64(to, counts[i]);
	sb_buf_add_le32(to, m->n_excludes);
	for (uint32_t i = 0; i < m->n_excludes; i++)
		put_bytes(to, m->excludes[i]);
	sb_buf_add_le32(to, m->n_groups);
	sb_buf_add(to, m->groups.p, m->groups.len);
}

bool sb_snap_path_ok(const uint8_t *p, size_t len)
{
	size_t from = 0;

	if (len == 0 || len > SB_SNAP_PATH_MAX)
		return false;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && p[i] != '/')
			continue;
		if (!sb_snap_name_ok(p + from, i - from))
			return false;
		from = i + 1;
	}
	return true;
}

static bool get_root(struct sb_rd *r, struct sb_snap_entry *e)
{
	const uint8_t *hash;
	uint8_t has;

	e->kind = SB_SNAP_DIR;
	e->mode = sb_rd_le32(r);
	e->uid = sb_rd_le32(r);
	e->gid = sb_rd_le32(r);
	e->mtime_s = (int64_t)sb_rd_le64(r);
	e->mtime_ns = sb_rd_le32(r);
	hash = sb_rd_bytes(r, SB_SNAP_HASH);
	if (hash)
		memcpy(e->hash, hash, SB_SNAP_HASH);
	has = sb_rd_u8(r);
	e->has_xattrs = has == 1;
	if (e->has_xattrs && (hash = sb_rd_bytes(r, SB_SNAP_HASH)))
		memcpy(e->xattrs, hash, SB_SNAP_HASH);
	return !r->bad && has <= 1 && e->mode <= 07777 && e->mtime_ns <= 999999999;
}

static void get_counts(struct sb_rd *r, struct sb_snap_counts *c)
{
	c->files = sb_rd_le64(r);
	c->dirs = sb_rd_le64(r);
	c->links = sb_rd_le64(r);
	c->others = sb_rd_le64(r);
	c->excluded = sb_rd_le64(r);
	c->bytes = sb_rd_le64(r);
}

/* Every path normal, ascending within its group; groups ascending by their first path. */
static bool groups_ok(struct sb_rd r, uint32_t n)
{
	struct sb_snap_bytes first = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = sb_rd_le32(&r);
		struct sb_snap_bytes last = { 0 };

		if (count < 2)
			return false;
		for (uint32_t k = 0; k < count; k++) {
			struct sb_snap_bytes b = get_bytes(&r);

			if (r.bad || !sb_snap_path_ok(b.p, b.len) ||
			    (last.p && sb_snap_name_cmp(last.p, last.len, b.p, b.len) >= 0))
				return false;
			if (k == 0 && first.p && sb_snap_name_cmp(first.p, first.len, b.p, b.len) >= 0)
				return false;
			if (k == 0)
				first = b;
			last = b;
		}
	}
	return sb_rd_end(&r) == 0;
}

int sb_snap_manifest_parse(const void *p, size_t len, struct sb_snap_manifest *ret)
{
	struct sb_snap_manifest m = { 0 };
	struct sb_rd r = { .p = p, .len = len };
	const size_t head = sizeof(magic) - 1;

	if (len < head + sizeof(version) - 1 || len > SB_SNAP_MANIFEST_MAX ||
	    memcmp(p, magic, head) != 0)
		return -EBADMSG;
	if (memcmp((const uint8_t *)p + head, version, sizeof(version) - 1) != 0)
		return -EPROTONOSUPPORT;
	(void)sb_rd_bytes(&r, head + sizeof(version) - 1);
	m.time_ns = sb_rd_le64(&r);
	m.role = sb_rd_u8(&r);
	m.path = get_bytes(&r);
	m.label = get_bytes(&r);
	if (!get_root(&r, &m.root) || m.role < SB_SNAP_ROLE_MANUAL || m.role > SB_SNAP_ROLE_UNDO)
		return -EBADMSG;
	if (m.path.len > SB_SNAP_PATH_MAX || m.path.len == 0 || m.path.p[0] != '/' ||
	    memchr(m.path.p, '\0', m.path.len) || m.label.len > SB_SNAP_LABEL_MAX ||
	    (m.label.len > 0 && memchr(m.label.p, '\0', m.label.len)))
		return -EBADMSG;
	get_counts(&r, &m.counts);
	m.n_excludes = sb_rd_le32(&r);
	if (r.bad || m.n_excludes > SB_SNAP_EXCLUDES_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < m.n_excludes; i++) {
		m.excludes[i] = get_bytes(&r);
		if (r.bad || m.excludes[i].len == 0 || memchr(m.excludes[i].p, '\0', m.excludes[i].len))
			return -EBADMSG;
	}
	m.n_groups = sb_rd_le32(&r);
	m.groups = (struct sb_snap_bytes){ .p = r.p, .len = r.len };
	if (r.bad || !groups_ok(r, m.n_groups))
		return -EBADMSG;
	*ret = m;
	return 0;
}

void sb_snap_group_add(struct sb_buf *to, const struct sb_snap_bytes *paths, uint32_t n)
{
	sb_buf_add_le32(to, n);
	for (uint32_t i = 0; i < n; i++)
		put_bytes(to, paths[i]);
}

int sb_snap_group_next(const struct sb_snap_manifest *m, struct sb_rd *at, struct sb_snap_group *ret)
{
	if (!at->p)
		*at = (struct sb_rd){ .p = m->groups.p, .len = m->groups.len };
	if (at->len == 0 || m->n_groups == 0)
		return 0;
	ret->n = sb_rd_le32(at);
	ret->rd = *at;
	for (uint32_t i = 0; i < ret->n; i++)
		(void)get_bytes(at);
	return at->bad ? 0 : 1;
}

struct sb_snap_bytes sb_snap_group_path(struct sb_snap_group *g)
{
	return get_bytes(&g->rd);
}
