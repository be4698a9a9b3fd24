/* Three folders side by side. What is the same in the first two is never read. */
#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "snapshot.h"

#define THIRD 2

struct walk {
	struct sb_snap_store *store;
	snap_walk_fn *fn;
	void *arg;
	struct sb_err *err;
	char path[SB_SNAP_PATH_MAX + 1];
	size_t len;
};

struct side {
	uint8_t *bytes; /* owned; NULL: no folder */
	struct sb_snap_reader r;
	struct sb_snap_entry e;
	bool have; /* e is the next one */
	bool unknown; /* what is in it cannot be read */
	size_t len;
};

static int broken(struct walk *w, const uint8_t *hash, int code)
{
	char text[800];
	char hex[SB_PACK_NAME];

	snap_text((const uint8_t *)w->path, w->len, text, sizeof(text));
	sb_hex_write(hash, SB_SNAP_HASH, hex);
	return sb_err_set(w->err, code, "store of snapshots: folder \"%.200s\" (object %.16s) is %s; see "
			  "sendbox snapshot verify", text, hex,
			  code == -ENOENT ? "missing" : code == -EBADMSG ? "damaged" : strerror(-code));
}

static int next(struct walk *w, struct side *s, const struct sb_snap_entry *dir)
{
	int r = s->bytes ? sb_snap_tree_next(&s->r, &s->e) : 0;

	s->have = r == 1;
	return r < 0 ? broken(w, dir->hash, r) : 0;
}

static int open_side(struct walk *w, const struct sb_snap_entry *e, struct side *s)
{
	size_t len = 0;
	int r;

	if (!e || e->kind != SB_SNAP_DIR)
		return 0;
	r = sb_snap_store_get(w->store, sb_snap_store_digest(w->store), e->hash, SB_SNAP_TREE_CAP,
			      &s->bytes, &len);
	if (r == 0)
		r = sb_snap_tree_open(&s->r, s->bytes, len);
	s->len = len;
	return r < 0 ? broken(w, e->hash, r) : next(w, s, e);
}

/* The third one only helps to tell whose a change is: the walk goes on without it. */
static int open_third(struct walk *w, const struct sb_snap_entry *e, struct side *s)
{
	struct sb_err e_was = w->err ? *w->err : (struct sb_err){ 0 };
	int r = open_side(w, e, s);

	if (r != -ENOENT && r != -EBADMSG && r != -EFBIG)
		return r;
	if (w->err)
		*w->err = e_was;
	free(s->bytes);
	*s = (struct side){ .unknown = true };
	return 0;
}

static bool same_two(const struct sb_snap_entry *const v[SNAP_WALK])
{
	return v[0] && v[1] && sb_snap_same(v[0], v[1]);
}

static int visit(struct walk *w, const struct sb_snap_entry *const v[SNAP_WALK], const struct side *in,
		 bool unknown);

/* The first name of all, and who has it. */
static bool pick(struct side s[SNAP_WALK], const struct sb_snap_entry *v[SNAP_WALK])
{
	const struct sb_snap_entry *first = NULL;

	for (size_t i = 0; i < SNAP_WALK; i++)
		if (s[i].have && (!first || sb_snap_name_cmp(s[i].e.name, s[i].e.name_len, first->name,
							     first->name_len) < 0))
			first = &s[i].e;
	for (size_t i = 0; first && i < SNAP_WALK; i++)
		v[i] = s[i].have && sb_snap_name_cmp(s[i].e.name, s[i].e.name_len, first->name,
						     first->name_len) == 0
			       ? &s[i].e
			       : NULL;
	return first != NULL;
}

static int enter(struct walk *w, const struct sb_snap_entry *name)
{
	size_t need = w->len + (w->len > 0) + name->name_len;

	if (need > SB_SNAP_PATH_MAX)
		return sb_err_set(w->err, -ENAMETOOLONG, "a path is longer than %d bytes: %.100s...",
				  SB_SNAP_PATH_MAX, w->path);
	if (w->len > 0)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, name->name, name->name_len);
	w->len += name->name_len;
	w->path[w->len] = '\0';
	return 0;
}

static int inside(struct walk *w, const struct sb_snap_entry *const dirs[SNAP_WALK], bool unknown)
{
	struct side s[SNAP_WALK] = { 0 };
	const struct sb_snap_entry *v[SNAP_WALK];
	int r = 0;

	for (size_t i = 0; r == 0 && i < SNAP_WALK; i++)
		r = i == THIRD ? open_third(w, dirs[i], &s[i]) : open_side(w, dirs[i], &s[i]);
	unknown = unknown || s[THIRD].unknown;
	while (r == 0 && pick(s, v)) {
		const size_t len = w->len;

		if (!same_two(v)) {
			r = enter(w, v[0] ? v[0] : v[1] ? v[1] : v[2]);
			if (r == 0)
				r = visit(w, v, s, unknown);
			w->len = len;
			w->path[len] = '\0';
		}
		for (size_t i = 0; r == 0 && i < SNAP_WALK; i++)
			if (v[i])
				r = next(w, &s[i], dirs[i]);
	}
	for (size_t i = 0; i < SNAP_WALK; i++)
		free(s[i].bytes);
	return r;
}

bool snap_walk_beside(const struct snap_at *at, size_t side, const char *name, struct sb_snap_entry *ret)
{
	const struct side *s = at->in ? &at->in[side] : NULL;
	struct sb_snap_reader r;

	if (!s || !s->bytes || sb_snap_tree_open(&r, s->bytes, s->len) < 0)
		return false;
	while (sb_snap_tree_next(&r, ret) == 1)
		if (sb_snap_name_cmp(ret->name, ret->name_len, (const uint8_t *)name, strlen(name)) == 0)
			return true;
	return false;
}

static int visit(struct walk *w, const struct sb_snap_entry *const v[SNAP_WALK], const struct side *in,
		 bool unknown)
{
	const struct snap_at at = { w->path, w->len, { v[0], v[1], v[2] }, in, unknown };
	bool dirs = (v[0] && v[0]->kind == SB_SNAP_DIR) || (v[1] && v[1]->kind == SB_SNAP_DIR);
	int r = w->fn(w->arg, &at);

	if (r != 0 || !dirs)
		return r < 0 ? r : 0;
	if (v[0] && v[1] && v[0]->kind == SB_SNAP_DIR && v[1]->kind == SB_SNAP_DIR &&
	    memcmp(v[0]->hash, v[1]->hash, SB_SNAP_HASH) == 0)
		return 0; /* modes and times alone */
	return inside(w, v, unknown); /* as deep as a path is long */
}

int snap_walk(struct sb_snap_store *s, const struct sb_snap_entry *const roots[SNAP_WALK],
	      snap_walk_fn *fn, void *arg, struct sb_err *err)
{
	struct walk *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return sb_err_set(err, -ENOMEM, "out of memory");
	w->store = s;
	w->fn = fn;
	w->arg = arg;
	w->err = err;
	r = same_two(roots) ? 0 : visit(w, roots, NULL, false);
	free(w);
	return r;
}

int snap_lookup(struct sb_snap_store *s, const struct sb_snap_manifest *m, const char *path,
		struct sb_snap_entry *ret)
{
	struct sb_snap_entry e = m->root;
	int r = 0;

	while (r == 0 && *path) {
		const char *slash = strchr(path, '/');
		size_t n = slash ? (size_t)(slash - path) : strlen(path);
		sb_autofree uint8_t *bytes = NULL;
		struct sb_snap_reader rd;
		size_t len = 0;

		if (e.kind != SB_SNAP_DIR)
			return -ENOENT;
		r = sb_snap_store_get(s, sb_snap_store_digest(s), e.hash, SB_SNAP_TREE_CAP, &bytes, &len);
		if (r == 0)
			r = sb_snap_tree_open(&rd, bytes, len);
		if (r < 0)
			return r == -ENOENT ? -EBADMSG : r;
		while ((r = sb_snap_tree_next(&rd, &e)) == 1)
			if (sb_snap_name_cmp(e.name, e.name_len, (const uint8_t *)path, n) == 0)
				break;
		if (r != 1)
			return r < 0 ? r : -ENOENT;
		r = 0;
		e.name = NULL;
		e.target = NULL;
		path += n + (slash != NULL);
	}
	*ret = e;
	return r;
}
