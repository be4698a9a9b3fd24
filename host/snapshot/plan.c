/*
 * What is to be done so that a folder becomes what it was: a comparison of three snapshots, what is
 * there now (n), what it shall be (t), and what the session left (e).
 *
 *   n = t               nothing
 *   n = e               the session changed it: put back
 *   e = t, n differs    the user changed it afterwards, the session did not: left alone, told
 *   all three differ    both changed it: a conflict, told, left alone
 *
 * Where e is damaged, all that differs is put back: what is there now is kept in a snapshot.
 * With --force the last one is put back as well. What the rules leave out is never touched, and a folder
 * that holds something that is left alone stays.
 */
#include <errno.h>
#include <string.h>

#include "guard.h"
#include "restore_i.h"

void snap_plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
		free(p->v[i].target);
	}
	free(p->v);
	p->v = NULL;
	p->n = 0;
	p->guard = snap_guard_free(p->guard);
}

struct op *snap_plan_add(struct plan *p, enum op_kind k, const char *path, const struct sb_snap_entry *e)
{
	struct op *o;

	if (p->n == p->room) {
		size_t room = SB_MAX(p->room * 2, (size_t)256);
		void *v = realloc(p->v, room * sizeof(*p->v));

		if (!v)
			return NULL;
		p->v = v;
		p->room = room;
	}
	o = &p->v[p->n];
	*o = (struct op){ .kind = k, .path = strdup(path) };
	if (!o->path)
		return NULL;
	p->n++;
	if (e) {
		o->e = *e;
		o->e.name = NULL;
		o->e.target = NULL;
		if (e->kind == SB_SNAP_LINK) {
			o->target = strndup((const char *)e->target, e->target_len);
			if (!o->target)
				return NULL;
		}
	}
	return o;
}

/* Equal for the question whether somebody changed it: not by times. */
static bool alike(const struct sb_snap_entry *a, const struct sb_snap_entry *b)
{
	return snap_status(a, b) == SNAP_SAME;
}

static bool left_out(const struct sb_snap_entry *e)
{
	return e && (e->why == SB_SNAP_EXCLUDED || e->why == SB_SNAP_MOUNT);
}

enum verdict { GO = 0, LEAVE };

static void tell_theirs(const struct plan *p, const char *path, bool there)
{
	p->res->theirs++;
	snap_tell(p->c, "yours", path, there ? "you changed it after the session, which did not"
					     : "you removed it after the session");
}

void snap_tell_unknown(struct plan *p, const char *path)
{
	if (!p->told_unknown)
		snap_tell(p->c, "damaged", *path ? path : ".",
			  "the snapshot after the session cannot be read from here on: what you changed since then is "
			  "put back, too (see sendbox snapshot verify)");
	p->told_unknown = true;
}

/* What the session closed is its own, and so is what it hid there. */
static bool in_blind(struct plan *p, const struct snap_at *at)
{
	const struct sb_snap_entry *e = at->v[2];
	const size_t n = strlen(p->blind);

	if (e && (e->why == SB_SNAP_UNREADABLE || e->why == SB_SNAP_DEEP)) {
		memcpy(p->blind, at->path, at->len + 1);
		return true;
	}
	return n > 0 && strncmp(p->blind, at->path, n) == 0 && at->path[n] == '/';
}

static enum verdict judge(struct plan *p, const struct snap_at *at)
{
	const struct sb_snap_entry *n = at->v[0];
	const struct sb_snap_entry *t = at->v[1];
	const struct sb_snap_entry *e = at->v[2];

	if (left_out(n) || left_out(t) || left_out(e))
		return LEAVE;
	if (at->unknown) {
		snap_tell_unknown(p, at->path);
		return GO;
	}
	if (in_blind(p, at))
		return GO;
	if (!p->with_expect || alike(n, t) || alike(n, e))
		return GO;
	/* what an interrupted one did: it removes before it makes, and opens folders */
	if (p->resume && (!n || (n->kind == SB_SNAP_DIR && t && t->kind == SB_SNAP_DIR)))
		return GO;
	if (!alike(e, t) && p->c->force)
		return GO;
	if (!alike(e, t)) {
		p->res->conflicts++;
		snap_tell(p->c, "conflict", at->path,
			  !n ? "changed by the session, removed by you afterwards"
			     : "changed by the session, and again by you afterwards");
	} else if (!p->c->force || !t || t->kind != SB_SNAP_DIR || (n && n->kind == SB_SNAP_DIR)) {
		tell_theirs(p, at->path, n != NULL);
	} /* else something of the session's may have to come back in it: plan_parents() */
	return LEAVE;
}

/* What is there, so that a change in the last moment is seen. */
static int need(struct op *o, const struct sb_snap_entry *now)
{
	if (!o)
		return -ENOMEM;
	/* a folder whose times alone differ is set right, and not worth a word */
	o->silent = (o->kind == OP_DIR || o->kind == OP_DIR_META) && now && alike(now, &o->e);
	o->now_kind = now ? now->kind : SB_SNAP_NONE;
	if (now) {
		o->now_s = now->mtime_s;
		o->now_ns = now->mtime_ns;
		o->now_size = now->size;
		o->now_mode = now->mode;
		o->now_uid = now->uid;
		o->now_gid = now->gid;
	}
	return 0;
}

static int plan_other(struct plan *p, const struct snap_at *at)
{
	const struct sb_snap_entry *n = at->v[0];
	const struct sb_snap_entry *t = at->v[1];

	if (n && snap_status(n, t) == SNAP_SAME)
		return 1;
	p->res->lost++;
	snap_tell(p->c, "lost", at->path, t->why == SB_SNAP_UNREADABLE || t->why > SB_SNAP_EXCLUDED
						? "it cannot be given back: it could not be read when the snapshot "
						  "was taken"
						: "it cannot be given back: sockets, FIFOs and devices are listed, "
						  "not kept");
	return n && !snap_plan_add(p, OP_LEFT, at->path, NULL) ? -ENOMEM : 1;
}

static bool is_mount(const struct sb_snap_entry *e)
{
	return e && e->why == SB_SNAP_MOUNT;
}

/* What came with the session and is of another file system may be anybody's: nothing is removed there, and that is said. */
static void tell_mount(struct plan *p, const struct snap_at *at)
{
	if (!is_mount(at->v[0]) || left_out(at->v[1]) || (p->with_expect && !is_mount(at->v[2])))
		return;
	p->res->lost++;
	snap_tell(p->c, "lost", at->path, "it cannot be given back: another file system is there, in which nothing is touched; "
					  "remove it by hand");
}

/* It stays, and the folders that it is in; or, with --force, comes back for what the session changed in it. */
static int leave(struct plan *p, const struct snap_at *at)
{
	const struct sb_snap_entry *n = at->v[0];
	const struct sb_snap_entry *t = at->v[1];
	int r = 0;

	tell_mount(p, at);
	if (left_out(n) || left_out(t)) /* of one that holds guarded names these are not left out */
		return n && !snap_plan_add(p, OP_LEFT, at->path, NULL) ? -ENOMEM : 0;
	if (p->c->force && t && t->kind == SB_SNAP_DIR && (!n || n->kind != SB_SNAP_DIR) &&
	    alike(at->v[2], t)) {
		r = need(snap_plan_add(p, OP_NONE, at->path, t), n);
		if (r == 0)
			p->v[p->n - 1].theirs = true;
		return r;
	}
	return n && !snap_plan_add(p, OP_LEFT, at->path, NULL) ? -ENOMEM : 0;
}

/* Of a restore of guarded paths alone: what the review would name, and all of a folder that something else
 * was put in the place of. */
static bool is_guarded(struct plan *p, const struct snap_at *at)
{
	const struct sb_snap_entry *n = at->v[0];
	const struct sb_snap_entry *t = at->v[1];
	const size_t len = strlen(p->whole);

	if (len > 0 && strncmp(p->whole, at->path, len) == 0 && at->path[len] == '/')
		return true;
	if (sb_guarded(at->path) == SB_GUARDED_NO && snap_guard_of(p->guard, at, 1, 0) == SB_GUARDED_NO)
		return false;
	if (n && n->kind != SB_SNAP_DIR && t && t->kind == SB_SNAP_DIR)
		memcpy(p->whole, at->path, at->len + 1);
	return true;
}

static int on_path(void *arg, const struct snap_at *at)
{
	struct plan *p = arg;
	const struct sb_snap_entry *n = at->v[0];
	const struct sb_snap_entry *t = at->v[1];
	bool n_dir = n && n->kind == SB_SNAP_DIR;
	bool t_dir = t && t->kind == SB_SNAP_DIR;
	bool wanted = snap_wanted(p->c->paths, at->path) && (!p->c->guarded || is_guarded(p, at));
	int r;

	if (!n && !t)
		return 0;
	if (at->len == 0) /* the root is there */
		return wanted ? need(snap_plan_add(p, OP_DIR_META, "", t), n) : 0;
	if (!wanted) {
		(void)in_blind(p, at);
		/* a folder that is gone must come back for what was in it */
		if (t_dir && !n_dir && !left_out(n) && (!n || p->c->guarded) && (p->c->paths || p->c->guarded)) {
			r = need(snap_plan_add(p, OP_NONE, at->path, t), n);
			if (r == 0)
				p->v[p->n - 1].instead = n != NULL;
			return r;
		}
		return 0;
	}
	if (judge(p, at) == LEAVE)
		return leave(p, at);
	if (t && t->kind == SB_SNAP_OTHER)
		return plan_other(p, at);
	if (!t)
		return (r = need(snap_plan_add(p, OP_REMOVE, at->path, n), n)) == 0 && n_dir
			       ? (p->v[p->n - 1].was_dir = true, 0)
			       : r;
	if (n && (n_dir != t_dir || (n->kind == SB_SNAP_OTHER && t_dir))) {
		r = need(snap_plan_add(p, OP_REMOVE, at->path, n), n);
		if (r < 0)
			return r;
		p->v[p->n - 1].was_dir = n_dir || (n->why == SB_SNAP_UNREADABLE);
	}
	if (t_dir)
		return (r = need(snap_plan_add(p, OP_DIR, at->path, t), n)) < 0
			       ? r
			       : need(snap_plan_add(p, OP_DIR_META, at->path, t), n);
	if (t->kind == SB_SNAP_LINK)
		return need(snap_plan_add(p, OP_LINK, at->path, t), n);
	if (n && n->kind == SB_SNAP_FILE && sb_snap_same_content(n, t))
		return need(snap_plan_add(p, OP_META, at->path, t), n);
	return need(snap_plan_add(p, OP_FILE, at->path, t), n);
}

/* --- hard links --- */

struct names { /* path -> group, of one snapshot, in the order of paths */
	struct name {
		struct sb_snap_bytes path;
		uint32_t group; /* from 1 */
	} *v;
	size_t n;
};

static int by_path(const void *a, const void *b)
{
	const struct name *x = a;
	const struct name *y = b;

	return sb_snap_name_cmp(x->path.p, x->path.len, y->path.p, y->path.len);
}

static int names_of(const struct sb_snap_manifest *m, struct names *ret)
{
	struct sb_rd at = { 0 };
	struct sb_snap_group g;
	size_t room = 0;
	uint32_t group = 0;

	while (sb_snap_group_next(m, &at, &g) == 1) {
		group++;
		for (uint32_t i = 0; i < g.n; i++) {
			if (ret->n == room) {
				void *v = realloc(ret->v, (room = SB_MAX(room * 2, (size_t)64)) *
								  sizeof(*ret->v));

				if (!v)
					return -ENOMEM;
				ret->v = v;
			}
			ret->v[ret->n++] = (struct name){ sb_snap_group_path(&g), group };
		}
	}
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
	return 0;
}

static uint32_t group_of(const struct names *l, const char *path)
{
	struct name key = { .path = { (const uint8_t *)path, strlen(path) } };
	const struct name *f = l->n ? bsearch(&key, l->v, l->n, sizeof(*l->v), by_path) : NULL;

	return f ? f->group : 0;
}

/* Ops of files by path; they are pointers into an array that grows, so numbers. */
struct index {
	const struct plan *p;
	size_t *v;
	size_t n;
};

static const struct plan *sorting; /* one thread */

static int by_op_path(const void *a, const void *b)
{
	return strcmp(sorting->v[*(const size_t *)a].path, sorting->v[*(const size_t *)b].path);
}

static int index_files(struct plan *p, struct index *x)
{
	x->p = p;
	x->v = calloc(p->n + 1, sizeof(*x->v));
	if (!x->v)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].kind == OP_FILE || p->v[i].kind == OP_META)
			x->v[x->n++] = i;
	sorting = p;
	if (x->n > 1)
		qsort(x->v, x->n, sizeof(*x->v), by_op_path);
	return 0;
}

static struct op *file_op(struct plan *p, const struct index *x, const char *path)
{
	size_t lo = 0;
	size_t hi = x->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int k = strcmp(p->v[x->v[mid]].path, path);

		if (k == 0)
			return &p->v[x->v[mid]];
		if (k < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static void text_of(struct sb_snap_bytes b, char path[SB_SNAP_PATH_MAX + 1])
{
	memcpy(path, b.p, b.len);
	path[b.len] = '\0';
}

/* A group that shall be: if it is not so now, every name but the first one is linked to it anew. */
static int one_group(struct plan *p, const struct names *now, const struct sb_snap_group *g,
		     const struct index *x)
{
	struct sb_snap_group look = *g;
	char first[SB_SNAP_PATH_MAX + 1];
	char path[SB_SNAP_PATH_MAX + 1];
	uint32_t group = 0;
	bool right = true;

	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t is;

		text_of(sb_snap_group_path(&look), path);
		is = group_of(now, path);
		if (i == 0) {
			memcpy(first, path, sizeof(first));
			group = is;
		}
		if (!snap_wanted(p->c->paths, path) || p->c->guarded)
			return 0; /* parts of a group stay as they are */
		right = right && is != 0 && is == group && !file_op(p, x, path);
	}
	look = *g;
	(void)sb_snap_group_path(&look);
	for (uint32_t i = 1; !right && i < g->n; i++) {
		struct op *o;

		text_of(sb_snap_group_path(&look), path);
		o = snap_plan_add(p, OP_HARD, path, NULL);
		if (!o || !(o->target = strdup(first)))
			return -ENOMEM;
	}
	return 0;
}

/* A group that is and shall not be: names that belong elsewhere become files of their own. */
static int part_group(struct plan *p, const struct names *then, struct sb_snap_group g,
		      const struct sb_snap_manifest *now, const struct sb_snap_manifest *target,
		      const struct index *x)
{
	char path[SB_SNAP_PATH_MAX + 1];
	uint32_t keep = 0;
	bool have = false;

	for (uint32_t i = 0; i < g.n; i++) {
		struct sb_snap_entry e;
		struct sb_snap_entry is_now;
		uint32_t is;
		int r;

		text_of(sb_snap_group_path(&g), path);
		is = group_of(then, path);
		r = snap_lookup(p->c->store, target, path, &e);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r < 0 || e.kind != SB_SNAP_FILE)
			continue; /* it goes anyway */
		if (!have || (is != 0 && is == keep)) {
			have = true;
			keep = is;
			continue;
		}
		if (!snap_wanted(p->c->paths, path) || p->c->guarded || file_op(p, x, path))
			continue;
		r = snap_lookup(p->c->store, now, path, &is_now);
		if (r == 0)
			r = need(snap_plan_add(p, OP_FILE, path, &e), &is_now);
		if (r < 0)
			return r;
	}
	return 0;
}

static int plan_links(struct plan *p, const struct sb_snap_manifest *now,
		      const struct sb_snap_manifest *target)
{
	struct names n = { 0 };
	struct names t = { 0 };
	struct sb_rd at = { 0 };
	struct sb_snap_group g;
	struct index x = { 0 };
	int r = names_of(now, &n);

	if (r == 0)
		r = names_of(target, &t);
	/* what is one file now and was not: a change through one name would be a change of the other */
	for (size_t i = 0; r == 0 && n.n > 0 && i < p->n; i++)
		if (p->v[i].kind == OP_META && group_of(&n, p->v[i].path) != 0)
			p->v[i].kind = OP_FILE;
	if (r == 0 && (n.n > 0 || t.n > 0))
		r = index_files(p, &x);
	while (r == 0 && sb_snap_group_next(now, &at, &g) == 1)
		r = part_group(p, &t, g, now, target, &x);
	free(x.v);
	x = (struct index){ 0 };
	if (r == 0 && t.n > 0)
		r = index_files(p, &x);
	at = (struct sb_rd){ 0 };
	while (r == 0 && sb_snap_group_next(target, &at, &g) == 1)
		r = one_group(p, &n, &g, &x);
	free(x.v);
	free(n.v);
	free(t.v);
	return r;
}

static bool within(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* Folders that are not wanted themselves come back when something in them does. */
static int plan_parents(struct plan *p)
{
	const char *last = "";

	for (size_t i = p->n; i > 0; i--) {
		const struct op o = p->v[i - 1];
		struct op *more;

		if (o.kind == OP_NONE && within(last, o.path)) {
			p->v[i - 1].kind = OP_DIR;
			last = o.path;
			if (!snap_plan_add(p, OP_DIR_META, o.path, &o.e))
				return -ENOMEM;
			if ((!o.theirs && !o.instead) || o.now_kind == SB_SNAP_NONE)
				continue;
			more = snap_plan_add(p, OP_REMOVE, o.path, NULL);
			if (!more)
				return -ENOMEM;
			more->now_kind = o.now_kind;
			more->now_s = o.now_s;
			more->now_ns = o.now_ns;
			more->now_size = o.now_size;
		} else if (o.kind == OP_NONE && o.theirs) {
			tell_theirs(p, o.path, o.now_kind != SB_SNAP_NONE);
		} else if (o.kind != OP_NONE && o.kind != OP_REMOVE && o.kind != OP_LEFT) {
			last = o.path;
		}
	}
	return 0;
}

/* A folder that would go, and holds what is left alone, stays. What is in a folder follows it. */
static void keep_full(struct plan *p)
{
	const char *left = "";

	for (size_t i = p->n; i > 0; i--) {
		struct op *o = &p->v[i - 1];

		if (o->kind == OP_LEFT)
			left = o->path;
		if (o->kind != OP_REMOVE || !o->was_dir || !within(left, o->path))
			continue;
		o->kind = OP_LEFT;
		p->res->theirs++;
		snap_tell(p->c, "left", o->path, "it holds what is left alone");
		for (size_t k = i; k < p->n && strcmp(p->v[k].path, o->path) == 0; k++)
			p->v[k].kind = OP_LEFT; /* what should have come in its place */
	}
}

bool snap_plan_any(const struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].kind != OP_NONE && p->v[i].kind != OP_LEFT && !p->v[i].silent)
			return true;
	return false;
}

int snap_plan_make(struct plan *p, const struct sb_snap_manifest *now,
		   const struct sb_snap_manifest *target, const struct sb_snap_manifest *expect,
		   struct sb_err *err)
{
	const struct sb_snap_entry *const roots[SNAP_WALK] = { &now->root, &target->root,
							       expect ? &expect->root : NULL };
	int r;

	p->with_expect = expect != NULL;
	r = p->c->guarded ? snap_guard_new(p->c->store, target, now, &p->guard, err) : 0;
	if (r < 0)
		return r;
	r = snap_walk(p->c->store, roots, on_path, p, err);
	if (r == 0)
		keep_full(p);
	if (r == 0)
		r = plan_links(p, now, target);
	if (r == 0)
		r = plan_parents(p);
	return r < 0 ? sb_err_set(err, r, "restore: %s", strerror(-r)) : 0;
}
