/*
 * Which changes are for the review. By the name, for what is no folder; and by three things that a name does
 * not tell: a link of a guarded name makes its target guarded (one step, within the tree), a repository
 * without a work tree is known by what is beside its settings, and a folder that cannot be looked into, or
 * is of another file system (a subvolume, too) and was not before, may hold anything.
 */
#include <errno.h>
#include <string.h>

#include "guard.h"

#define LINKS_MAX 65536
#define LINKS_A_TARGET 16 /* with one target; more are no help to anybody */

struct link {
	char *target; /* relative to the tree, normal */
	char *path;   /* of the link */
	size_t at;    /* in the order of finding: those that were there before come first */
	bool bare;    /* guarded by what is beside it, not by its name */
};

struct snap_guard {
	const struct sb_snap_bytes *top; /* the tree's own path; borrowed */
	struct link *v;
	size_t n;
	size_t room;
};

/* --- repositories --- */

static bool beside(const struct snap_at *at, size_t side, const char *name)
{
	struct sb_snap_entry e;

	return snap_walk_beside(at, side, name, &e);
}

/* Settings, what makes a folder a repository, in whatever order they came, and git's folders in it once they are
 * something else. */
static enum sb_guarded by_neighbours(const struct snap_at *at, size_t side)
{
	const char *slash = strrchr(at->path, '/');
	const char *name = slash ? slash + 1 : at->path;
	bool head = strcmp(name, "HEAD") == 0;

	if (!sb_guarded_bare(name))
		return SB_GUARDED_NO;
	return (!head && beside(at, side, "HEAD")) || beside(at, side, "objects") ||
			       (strcmp(name, "commondir") != 0 && beside(at, side, "commondir")) ||
			       (head && beside(at, side, "config"))
		       ? SB_GUARDED_GIT
		       : SB_GUARDED_NO;
}

/* --- links --- */

/* @target as seen from the folder of @path, as a path in the tree. Return: its length; 0: it leads out. */
static size_t resolve(const struct sb_snap_bytes *top, const char *path, const uint8_t *target, size_t len,
		      char out[SB_SNAP_PATH_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	size_t at = slash ? (size_t)(slash - path) : 0;

	memcpy(out, path, at);
	if (len > 0 && target[0] == '/') {
		if (len <= top->len || memcmp(target, top->p, top->len) != 0 || target[top->len] != '/')
			return 0;
		target += top->len;
		len -= top->len;
		at = 0;
	}
	for (size_t i = 0; i < len;) {
		const uint8_t *end = memchr(target + i, '/', len - i);
		size_t n = end ? (size_t)(end - target) - i : len - i;

		if (n == 2 && target[i] == '.' && target[i + 1] == '.') {
			if (at == 0)
				return 0;
			while (at > 0 && out[at - 1] != '/')
				at--;
			at -= at > 0;
		} else if (n > 0 && !(n == 1 && target[i] == '.')) {
			if (at + 1 + n > SB_SNAP_PATH_MAX)
				return 0;
			if (at > 0)
				out[at++] = '/';
			memcpy(out + at, target + i, n);
			at += n;
		}
		i += n + (end != NULL);
	}
	out[at] = '\0';
	return at;
}

static int add(struct snap_guard *g, const char *path, const struct sb_snap_entry *e, bool bare)
{
	char target[SB_SNAP_PATH_MAX + 1];
	struct link *l;

	if (g->n == LINKS_MAX || resolve(g->top, path, e->target, e->target_len, target) == 0)
		return 0;
	if (g->n == g->room) {
		size_t room = SB_MAX(g->room * 2, (size_t)64);
		void *v = realloc(g->v, room * sizeof(*g->v));

		if (!v)
			return -ENOMEM;
		g->v = v;
		g->room = room;
	}
	l = &g->v[g->n];
	*l = (struct link){ .target = strdup(target), .path = strdup(path), .at = g->n, .bare = bare };
	g->n++;
	return l->target && l->path ? 0 : -ENOMEM;
}

static int on_link(void *arg, const struct snap_at *at)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < 2; i++) {
		bool named;

		if (!at->v[i] || at->v[i]->kind != SB_SNAP_LINK)
			continue;
		named = sb_guarded_link(at->path) != SB_GUARDED_NO;
		if (named || by_neighbours(at, i) != SB_GUARDED_NO)
			r = add(arg, at->path, at->v[i], !named);
	}
	return r;
}

static int by_target(const void *a, const void *b)
{
	const struct link *x = a;
	const struct link *y = b;
	int k = strcmp(x->target, y->target);

	return k != 0 ? k : (x->at > y->at) - (x->at < y->at);
}

/* The first link to what the first @n bytes of @path name. */
static size_t first_link(const struct snap_guard *g, const char *path, size_t n)
{
	size_t lo = 0;
	size_t hi = g->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int k = strncmp(g->v[mid].target, path, n);

		if (k < 0)
			lo = mid + 1;
		else /* equal, or longer: the shortest comes first */
			hi = mid;
	}
	return lo;
}

/* What @path is called through a link to its first @n bytes. */
static enum sb_guarded through(const struct snap_guard *g, const char *path, size_t n)
{
	char other[2 * SB_SNAP_PATH_MAX + 2];
	size_t i = first_link(g, path, n);

	for (size_t k = 0; k < LINKS_A_TARGET && i < g->n; k++, i++) {
		enum sb_guarded r;

		if (strncmp(g->v[i].target, path, n) != 0 || g->v[i].target[n] != '\0')
			break;
		(void)snprintf(other, sizeof(other), "%s%s", g->v[i].path, path + n);
		if (path[n] == '\0' && g->v[i].bare)
			return SB_GUARDED_GIT;
		r = path[n] == '\0' ? sb_guarded_link(other) : sb_guarded(other);
		if (r != SB_GUARDED_NO)
			return r;
	}
	return SB_GUARDED_NO;
}

static enum sb_guarded by_links(const struct snap_guard *g, const char *path)
{
	enum sb_guarded r = SB_GUARDED_NO;

	for (const char *end = path; g->n > 0 && end && r == SB_GUARDED_NO;) {
		end = strchr(end + 1, '/');
		r = through(g, path, end ? (size_t)(end - path) : strlen(path));
	}
	return r;
}

/* --- one change --- */

static bool is_dir(const struct sb_snap_entry *e)
{
	return !e || e->kind == SB_SNAP_DIR;
}

static bool blind(const struct sb_snap_entry *e)
{
	return e && (e->why == SB_SNAP_UNREADABLE || e->why == SB_SNAP_DEEP || e->why == SB_SNAP_MOUNT);
}

enum sb_guarded snap_guard_of(const struct snap_guard *g, const struct snap_at *at, size_t before, size_t after)
{
	const struct sb_snap_entry *a = at->v[before];
	const struct sb_snap_entry *b = at->v[after];
	enum sb_guarded r;

	if (is_dir(a) && is_dir(b))
		return SB_GUARDED_NO; /* what is in it counts */
	r = sb_guarded(at->path);
	if (r == SB_GUARDED_NO)
		r = sb_guarded_above(at->path);
	if (r == SB_GUARDED_NO && ((a && a->kind == SB_SNAP_LINK) || (b && b->kind == SB_SNAP_LINK)))
		r = sb_guarded_link(at->path);
	if (r == SB_GUARDED_NO)
		r = by_links(g, at->path);
	/* the branch of a repository without a work tree changes every day: only a new one counts */
	if (r == SB_GUARDED_NO && (!a || strcmp(at->path + at->len - SB_MIN(at->len, (size_t)4), "HEAD") != 0))
		r = by_neighbours(at, b ? after : before);
	if (r == SB_GUARDED_NO && blind(b) && !(a && a->kind == b->kind && a->why == b->why))
		r = SB_GUARDED_BLIND;
	return r;
}

struct snap_guard *snap_guard_free(struct snap_guard *g)
{
	for (size_t i = 0; g && i < g->n; i++) {
		free(g->v[i].target);
		free(g->v[i].path);
	}
	if (g)
		free(g->v);
	free(g);
	return NULL;
}

int snap_guard_new(struct sb_snap_store *s, const struct sb_snap_manifest *before,
		   const struct sb_snap_manifest *after, struct snap_guard **ret, struct sb_err *err)
{
	const struct sb_snap_entry *const all[SNAP_WALK] = { &before->root, NULL, NULL };
	const struct sb_snap_entry *const changed[SNAP_WALK] = { &before->root, &after->root, NULL };
	struct snap_guard *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return sb_err_set(err, -ENOMEM, "out of memory");
	g->top = &before->path;
	r = snap_walk(s, all, on_link, g, err);
	if (r == 0)
		r = snap_walk(s, changed, on_link, g, err);
	if (r < 0) {
		(void)snap_guard_free(g);
		return err && err->text[0] ? r : sb_err_set(err, r, "guarded paths: %s", strerror(-r));
	}
	if (g->n > 1)
		qsort(g->v, g->n, sizeof(*g->v), by_target);
	*ret = g;
	return 0;
}
