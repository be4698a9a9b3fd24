/* What is different between two snapshots, for people and programs. Guarded paths come first. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "guard.h"
#include "snapshot.h"

#define TEXT_CAP (8U << 20) /* larger files are not shown line by line */

enum snap_status snap_status(const struct sb_snap_entry *a, const struct sb_snap_entry *b)
{
	if ((a && a->why == SB_SNAP_EXCLUDED) || (b && b->why == SB_SNAP_EXCLUDED))
		return SNAP_SAME;
	if (!a || !b)
		return b ? SNAP_ADDED : a ? SNAP_DELETED : SNAP_SAME;
	if (a->kind != b->kind || a->why != b->why)
		return SNAP_TYPE;
	if (a->kind != SB_SNAP_DIR && !sb_snap_same_content(a, b))
		return SNAP_MODIFIED;
	if (a->mode != b->mode || a->uid != b->uid || a->gid != b->gid ||
	    a->has_xattrs != b->has_xattrs ||
	    (a->has_xattrs && memcmp(a->xattrs, b->xattrs, SB_SNAP_HASH) != 0))
		return SNAP_META;
	return SNAP_SAME;
}

bool snap_wanted(const char *const *paths, const char *path)
{
	if (!paths || !*paths)
		return true;
	for (; *paths; paths++) {
		size_t n = strlen(*paths);

		if (n == 0 || (strncmp(*paths, path, n) == 0 && (path[n] == '\0' || path[n] == '/')))
			return true;
	}
	return false;
}

/* --- collecting --- */

struct change {
	char *path;
	enum snap_status st;
	enum sb_guarded g;
	struct sb_snap_entry e[2]; /* kind, mode, size, hash; targets are copies */
	bool has[2];
	char *target[2];
};

struct changes {
	const struct snap_diff_conf *c;
	struct snap_guard *guard;
	struct change *v;
	size_t n;
	size_t room;
	struct snap_diff_counts counts;
	bool keep;
	bool guarded_only;
};

static void changes_done(struct changes *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].target[0]);
		free(l->v[i].target[1]);
	}
	free(l->v);
	(void)snap_guard_free(l->guard);
}

static int keep(struct changes *l, const struct snap_at *at, enum snap_status st, enum sb_guarded g)
{
	struct change *c;

	if (l->n == l->room) {
		size_t room = SB_MAX(l->room * 2, (size_t)256);
		void *v = realloc(l->v, room * sizeof(*l->v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->room = room;
	}
	c = &l->v[l->n];
	*c = (struct change){ .st = st, .g = g, .path = strdup(at->path) };
	if (!c->path)
		return -ENOMEM;
	l->n++;
	for (size_t i = 0; i < 2; i++) {
		if (!at->v[i])
			continue;
		c->has[i] = true;
		c->e[i] = *at->v[i];
		c->e[i].name = NULL;
		if (at->v[i]->kind != SB_SNAP_LINK)
			continue;
		c->target[i] = strndup((const char *)at->v[i]->target, at->v[i]->target_len);
		if (!c->target[i])
			return -ENOMEM;
		c->e[i].target = (const uint8_t *)c->target[i];
	}
	return 0;
}

static int on_change(void *arg, const struct snap_at *at)
{
	struct changes *l = arg;
	enum snap_status st = snap_status(at->v[0], at->v[1]);
	enum sb_guarded g;

	if (st == SNAP_SAME || at->len == 0 || (l->c && !snap_wanted(l->c->paths, at->path)))
		return 0;
	g = snap_guard_of(l->guard, at, 0, 1);
	if (l->c && l->guarded_only && g == SB_GUARDED_NO)
		return 0;
	l->counts.added += st == SNAP_ADDED;
	l->counts.deleted += st == SNAP_DELETED;
	l->counts.modified += st != SNAP_ADDED && st != SNAP_DELETED;
	l->counts.guarded += g != SB_GUARDED_NO;
	if (!l->keep || (l->guarded_only && g == SB_GUARDED_NO))
		return 0;
	return keep(l, at, st, g);
}

static int collect(struct sb_snap_store *s, const struct sb_snap_manifest *a,
		   const struct sb_snap_manifest *b, struct changes *l, struct sb_err *err)
{
	const struct sb_snap_entry *const roots[SNAP_WALK] = { &a->root, &b->root, NULL };
	int r = snap_guard_new(s, a, b, &l->guard, err);

	return r < 0 ? r : snap_walk(s, roots, on_change, l, err);
}

int snap_guarded(struct sb_snap_store *s, const struct sb_snap_manifest *a,
		 const struct sb_snap_manifest *b, snap_guarded_fn *fn, void *arg,
		 struct snap_diff_counts *ret, struct sb_err *err)
{
	struct changes l = { .keep = true, .guarded_only = true };
	int r = collect(s, a, b, &l, err);

	/* who looks at a few looks at what runs soonest: git, editors, agents, shells; many of the others hide none of it */
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; r == 0 && i < l.n; i++)
			if ((l.v[i].g > SB_GUARDED_SHELL) == (pass == 1))
				r = fn(arg, l.v[i].st, l.v[i].path, sb_guarded_text(l.v[i].g));
	*ret = l.counts;
	changes_done(&l);
	return r;
}

/* --- showing --- */

int snap_content(struct sb_snap_store *s, const struct sb_snap_entry *e, size_t cap, uint8_t **ret,
		 size_t *ret_len)
{
	sb_autofree uint8_t *obj = NULL;
	uint8_t *out;
	size_t len = 0;
	uint32_t n = 0;
	size_t data;
	uint64_t min = 0;
	int r;

	if (e->size > cap)
		return -EFBIG;
	r = sb_snap_store_get(s, sb_snap_store_digest(s), e->hash, cap + (1U << 24), &obj, &len);
	if (r < 0)
		return r;
	if (!e->sparse) {
		*ret = sb_take(&obj);
		*ret_len = len;
		return 0;
	}
	if (len < SB_SNAP_SPARSE_HEAD || sb_snap_sparse_count(obj, &n) < 0 ||
	    (len - SB_SNAP_SPARSE_HEAD) / 16 < n)
		return -EBADMSG;
	out = calloc(1, e->size + 1);
	if (!out)
		return -ENOMEM;
	data = SB_SNAP_SPARSE_HEAD + 16U * (size_t)n;
	for (uint32_t i = 0; i < n; i++) {
		struct sb_snap_extent x;

		if (sb_snap_sparse_extent(obj + SB_SNAP_SPARSE_HEAD + 16U * (size_t)i, min, e->size, &x) < 0 ||
		    x.len > len - data) {
			free(out);
			return -EBADMSG;
		}
		memcpy(out + x.at, obj + data, x.len);
		data += x.len;
		min = x.at + x.len;
	}
	*ret = out;
	*ret_len = e->size;
	return 0;
}

static int content_of(const struct snap_diff_conf *c, const struct change *v, int side, uint8_t **ret,
		      size_t *len)
{
	if (!v->has[side] || v->e[side].kind == SB_SNAP_DIR || v->e[side].kind == SB_SNAP_OTHER) {
		*ret = calloc(1, 1);
		*len = 0;
		return *ret ? 0 : -ENOMEM;
	}
	if (v->e[side].kind == SB_SNAP_LINK) {
		*ret = (uint8_t *)strdup(v->target[side]);
		*len = *ret ? v->e[side].target_len : 0;
		return *ret ? 0 : -ENOMEM;
	}
	return snap_content(c->store, &v->e[side], TEXT_CAP, ret, len);
}

static const char *kind_text(const struct sb_snap_entry *e)
{
	static const char *const others[] = { "", "FIFO", "socket", "character device", "block device",
					      "other file system", "unreadable", "excluded", "too deep to be looked into",
					      "in too many pieces" };

	switch (e->kind) {
	case SB_SNAP_DIR:
		return "directory";
	case SB_SNAP_FILE:
		return "file";
	case SB_SNAP_LINK:
		return "link";
	default:
		return others[e->why <= SB_SNAP_WHY_LAST ? e->why : 0];
	}
}

static void describe(const struct change *v, char *out, size_t cap)
{
	const struct sb_snap_entry *a = &v->e[0];
	const struct sb_snap_entry *b = &v->e[1];

	out[0] = '\0';
	if (v->st == SNAP_TYPE)
		(void)snprintf(out, cap, "  (%s, was %s%s)", kind_text(b), kind_text(a),
			       a->kind == SB_SNAP_OTHER ? ": not kept, cannot be given back" : "");
	else if (v->st != SNAP_ADDED && v->st != SNAP_DELETED && a->mode != b->mode)
		(void)snprintf(out, cap, "  (mode %04o, was %04o)", b->mode, a->mode);
	else if (v->st == SNAP_META)
		(void)snprintf(out, cap, a->uid != b->uid || a->gid != b->gid ? "  (owner)"
									      : "  (attributes)");
	else if ((v->st == SNAP_ADDED ? b : a)->kind == SB_SNAP_OTHER)
		(void)snprintf(out, cap, "  (%s: not kept%s)", kind_text(v->st == SNAP_ADDED ? b : a),
			       v->st == SNAP_ADDED ? "" : ", cannot be given back");
}

/* What is not there does not look as if it were. */
static char letter(const struct snap_diff_conf *c, const struct change *v)
{
	return c->quarantined ? 'Q' : (char)v->st;
}

static void show_name(const struct snap_diff_conf *c, const struct change *v, const char *text)
{
	char what[200];
	bool dir = (v->has[1] ? &v->e[1] : &v->e[0])->kind == SB_SNAP_DIR;

	if (c->names) {
		(void)fprintf(c->out, "%c %s%s\n", letter(c, v), text, dir ? "/" : "");
		return;
	}
	describe(v, what, sizeof(what));
	(void)fprintf(c->out, "%c %s%s%s", letter(c, v), text, dir ? "/" : "", what);
	if (v->g != SB_GUARDED_NO)
		(void)fprintf(c->out, "  [%s]", sb_guarded_text(v->g));
	(void)fputc('\n', c->out);
}

static int show_text(const struct snap_diff_conf *c, const struct change *v, const char *text,
		     struct snap_lines *n)
{
	sb_autofree uint8_t *a = NULL;
	sb_autofree uint8_t *b = NULL;
	size_t a_len = 0;
	size_t b_len = 0;
	int r = content_of(c, v, 0, &a, &a_len);

	if (r == 0)
		r = content_of(c, v, 1, &b, &b_len);
	if (r == -EFBIG) {
		n->binary = true;
		return 0;
	}
	if (r < 0)
		return r;
	if (!c->stat && !c->json && (a_len > 0 || b_len > 0) && v->st != SNAP_META)
		(void)fprintf(c->out, "--- %s%s\n+++ %s%s\n", v->has[0] ? "a/" : "", v->has[0] ? text : "/dev/null",
			      v->has[1] ? "b/" : "", v->has[1] ? text : "/dev/null");
	return snap_diff_text(c->stat || c->json ? NULL : c->out, c->escape, a, a_len, b, b_len, n);
}

static int show_json(const struct snap_diff_conf *c, const struct change *v, const char *text)
{
	char status[2] = { (char)v->st, '\0' };
	struct snap_lines n = { 0 };
	json_t *o;
	int r = c->stat ? show_text(c, v, text, &n) : 0;

	if (r < 0)
		return r;
	o = json_pack("{s:s, s:s}", "status", status, "kind", kind_text(v->has[1] ? &v->e[1] : &v->e[0]));
	if (!o)
		return -ENOMEM;
	r = snap_json_path(o, "path", v->path);
	if (v->has[0] && v->e[0].kind == SB_SNAP_OTHER)
		r |= json_object_set_new(o, "lost", json_true()); /* it was listed, not kept */
	if (v->g != SB_GUARDED_NO)
		r |= json_object_set_new(o, "guarded", json_string(sb_guarded_text(v->g)));
	for (int i = 0; i < 2; i++)
		if (v->has[i] && v->e[i].kind == SB_SNAP_FILE)
			r |= json_object_set_new(o, i ? "size" : "old_size",
						 json_integer((json_int_t)v->e[i].size));
	for (int i = 0; i < 2; i++)
		if (v->has[i] && v->e[i].kind != SB_SNAP_OTHER)
			r |= json_object_set_new(o, i ? "mode" : "old_mode", json_integer(v->e[i].mode));
	if (c->quarantined)
		r |= json_object_set_new(o, "quarantined", json_string(c->quarantined));
	if (c->stat) {
		r |= json_object_set_new(o, "added", json_integer((json_int_t)n.added));
		r |= json_object_set_new(o, "removed", json_integer((json_int_t)n.removed));
	}
	if (r == 0)
		r = snap_put_json(c->out, o, c->source);
	json_decref(o);
	return r != 0 ? -EIO : 0;
}

static int show(const struct snap_diff_conf *c, const struct change *v)
{
	char text[SB_SNAP_PATH_MAX * 4 + 8];
	struct snap_lines n = { 0 };
	int r;

	snap_text((const uint8_t *)v->path, strlen(v->path), text, sizeof(text));
	if (c->json)
		return show_json(c, v, text);
	if (c->names) {
		show_name(c, v, text);
		return 0;
	}
	if (!c->stat)
		show_name(c, v, text);
	r = show_text(c, v, text, &n);
	if (r < 0 || !c->stat)
		return r;
	if (n.binary)
		(void)fprintf(c->out, "%c %s | binary\n", letter(c, v), text);
	else
		(void)fprintf(c->out, "%c %s | +%llu -%llu\n", letter(c, v), text,
			      (unsigned long long)n.added, (unsigned long long)n.removed);
	return 0;
}

static void show_rules(const struct snap_diff_conf *c, const struct sb_snap_manifest *a,
		       const struct sb_snap_manifest *b)
{
	const struct sb_snap_manifest *m = b->n_excludes > 0 ? b : a;
	char text[1100];

	if (m->n_excludes == 0 || c->json || c->names)
		return;
	(void)fprintf(c->out, "not looked at, by rules of the configuration:");
	for (uint32_t i = 0; i < m->n_excludes; i++) {
		const uint8_t *p = m->excludes[i].p;
		size_t len = m->excludes[i].len;
		const size_t mark = strlen(SNAP_RULE_INNER);

		if (len > mark && memcmp(p, SNAP_RULE_INNER, mark) == 0) {
			p += mark;
			len -= mark;
		}
		snap_text(p, SB_MIN(len, (size_t)256), text, sizeof(text));
		(void)fprintf(c->out, " %s", text);
	}
	(void)fprintf(c->out, " (%llu places)\n", (unsigned long long)m->counts.excluded);
}

int snap_diff(const struct snap_diff_conf *conf, const struct sb_snap_manifest *a,
	      const struct sb_snap_manifest *b, struct snap_diff_counts *ret, struct sb_err *err)
{
	char source[SB_SNAP_PATH_MAX + 1];
	struct snap_diff_conf with = *conf;
	const struct snap_diff_conf *c = &with;
	struct changes l = { .c = c, .keep = c->out != NULL, .guarded_only = c->guarded };
	char text[2000];
	const bool words = c->out && !c->json && !c->names;
	const size_t len = SB_MIN(b->path.len, (size_t)SB_SNAP_PATH_MAX);
	int r = collect(c->store, a, b, &l, err);

	memcpy(source, b->path.p, len);
	source[len] = '\0';
	with.source = source;
	if (r == 0 && words && c->heads && l.n > 0) {
		snap_text(b->path.p, b->path.len, text, sizeof(text));
		(void)fprintf(c->out, "%s:\n", text);
	}
	if (r == 0 && l.counts.guarded > 0 && words && c->quarantined)
		(void)fprintf(c->out, "in quarantine (%llu), not there any more; sendbox snapshot restore %.12s PATH brings "
			      "one back:\n", (unsigned long long)l.counts.guarded, c->quarantined);
	else if (r == 0 && l.counts.guarded > 0 && words)
		(void)fprintf(c->out, "guarded paths (%llu), look at these first:\n",
			      (unsigned long long)l.counts.guarded);
	for (int pass = 0; r == 0 && pass < 2; pass++) {
		for (size_t i = 0; r == 0 && i < l.n; i++)
			if ((l.v[i].g != SB_GUARDED_NO) == (pass == 0))
				r = show(c, &l.v[i]);
		if (pass == 0 && r == 0 && l.counts.guarded > 0 && l.counts.guarded < l.n && words)
			(void)fprintf(c->out, "others:\n");
	}
	if (r == 0 && c->out && !c->quarantined)
		show_rules(c, a, b);
	if (r < 0)
		(void)sb_err_set(err, r, "diff: %s", r == -ENOENT    ? "an object is missing from the store; "
								      "see sendbox snapshot verify"
						     : r == -EBADMSG ? "an object of the store is damaged; "
								       "see sendbox snapshot verify"
								     : strerror(-r));
	*ret = l.counts;
	changes_done(&l);
	return r;
}
