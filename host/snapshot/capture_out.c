/* What a capture writes: folders, the cache's records, the manifest. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "capture_i.h"
#include "core/guarded.h"
#include "store/snap_unsynced.h"

static bool keeps_stat(const struct cap_entry *e)
{
	return e->why != SB_SNAP_EXCLUDED && e->why != SB_SNAP_MOUNT;
}

static struct sb_snap_entry entry_of(const struct cap_entry *e)
{
	struct sb_snap_entry s = { .name = (const uint8_t *)e->name, .name_len = e->name_len,
				   .kind = e->kind, .why = e->why };

	if (!keeps_stat(e))
		return s;
	s.mode = e->mode & 07777;
	s.uid = e->uid;
	s.gid = e->gid;
	s.mtime_s = e->mtime_s;
	s.mtime_ns = e->mtime_ns;
	s.size = e->kind == SB_SNAP_FILE ? e->size : 0;
	s.sparse = e->sparse;
	s.has_xattrs = e->xattrs && (e->kind == SB_SNAP_DIR || e->kind == SB_SNAP_FILE);
	memcpy(s.hash, e->hash, SB_SNAP_HASH);
	if (s.has_xattrs)
		memcpy(s.xattrs, e->xattrs, SB_SNAP_HASH);
	return s;
}

/* What is listed of the shared folder itself when not everything fits. */
enum part { ALL = 0, KNOWN, FOLDERS, GUARDED, PARTS };

/* Only of the shared folder: the name is the path. */
static bool in_part(const struct cap_entry *e, enum part part)
{
	return part == ALL || (part == KNOWN && e->old) || (part <= FOLDERS && e->kind == SB_SNAP_DIR) ||
	       sb_guarded(e->name) != SB_GUARDED_NO || sb_guarded_above(e->name) != SB_GUARDED_NO ||
	       sb_guarded_link(e->name) != SB_GUARDED_NO || sb_guarded_bare(e->name);
}

/* Return: 0; -EFBIG: it does not fit; -errno. */
static int list_tree(struct cap_worker *w, struct cap_dir *d, enum part part)
{
	char target[SB_SNAP_TARGET_MAX + 1];

	w->tree.len = 0;
	w->tree.error = 0;
	sb_snap_tree_start(&w->tree);
	for (uint32_t i = 0; i < d->n && !sb_buf_error(&w->tree); i++) {
		const size_t len = w->tree.len;
		struct sb_snap_entry s = entry_of(&d->v[i]);

		if (!in_part(&d->v[i], part)) {
			d->v[i].kind = SB_SNAP_NONE;
			continue;
		}
		if (s.kind == SB_SNAP_LINK) {
			ssize_t n = readlinkat(d->fd, d->v[i].name, target, sizeof(target));

			if (n < 0 && (errno == EINVAL || errno == ENOENT)) {
				d->v[i].kind = SB_SNAP_NONE; /* gone, or no link any more */
				continue;
			}
			if (n < 0 && errno == ENOMEM)
				return -ENOMEM;
			if (n <= 0 || n > SB_SNAP_TARGET_MAX) {
				cap_opaque(w, &d->v[i], SB_SNAP_UNREADABLE);
				s = entry_of(&d->v[i]);
			}
			s.target = (const uint8_t *)target;
			s.target_len = (uint16_t)SB_MAX(n, (ssize_t)0);
		}
		if (s.kind != SB_SNAP_NONE)
			sb_snap_tree_add(&w->tree, &s);
		if (part == GUARDED && sb_buf_error(&w->tree) == -EFBIG) { /* the last resort: the first ones */
			w->tree.len = len;
			w->tree.error = 0;
			break;
		}
	}
	return sb_buf_error(&w->tree);
}

/* A folder that does not fit is one entry of its parent, which may hold anything. The shared folder itself has
 * no parent: of it is listed what was there before, and folders and guarded names; one thing more is unreadable. */
static int write_tree(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e)
{
	int r = list_tree(w, d, ALL);

	if (r == -EFBIG && d->parent) {
		cap_opaque(w, e, SB_SNAP_DEEP);
		return 0;
	}
	w->unreadable += r == -EFBIG;
	for (enum part part = KNOWN; r == -EFBIG && part < PARTS; part++)
		r = list_tree(w, d, part);
	return r < 0 ? r : cap_put(w, w->tree.data, w->tree.len, e->hash);
}

static int write_record(struct cap_worker *w, struct cap_dir *d, const struct cap_entry *e,
			uint64_t *ret)
{
	uint32_t n = 0;
	int64_t at;

	for (uint32_t i = 0; i < d->n; i++)
		n += d->v[i].kind != SB_SNAP_NONE;
	w->record.error = 0;
	sb_snap_seen_start(&w->record, e->hash, n);
	for (uint32_t i = 0; i < d->n; i++) {
		const struct cap_entry *v = &d->v[i];
		struct sb_snap_seen s = { .ino = v->ino, .size = v->size, .ctime_ns = v->ctime_ns,
					  .child = v->child_at, .mode = v->mode, .uid = v->uid,
					  .gid = v->gid, .kind = v->kind, .why = v->why,
					  .name_len = v->name_len };

		if (v->kind == SB_SNAP_NONE)
			continue;
		s.mtime_ns = (int64_t)((uint64_t)v->mtime_s * 1000000000U + v->mtime_ns);
		s.flags = (uint8_t)((v->sparse ? SB_SNAP_SEEN_SPARSE : 0) |
				    (v->xattrs ? SB_SNAP_SEEN_XATTRS : 0) |
				    (v->again || v->why == SB_SNAP_UNREADABLE || v->why > SB_SNAP_EXCLUDED ? SB_SNAP_SEEN_AGAIN : 0));
		memcpy(s.hash, v->hash, SB_SNAP_HASH);
		if (v->xattrs)
			memcpy(s.xattrs, v->xattrs, SB_SNAP_HASH);
		sb_snap_seen_add(&w->record, &s, (const uint8_t *)v->name);
	}
	if (!w->cap->cachew)
		return 0;
	at = sb_snap_cachew_add(w->cap->cachew, &w->record);
	if (at < 0)
		return (int)at;
	*ret = (uint64_t)at;
	return 0;
}

static size_t groups_max(const struct cap *c)
{
	return c->conf->max_groups ? c->conf->max_groups : SB_SNAP_MANIFEST_MAX / 2;
}

/* Names that will not fit are not collected, either: memory is bounded. */
static bool link_fits(struct cap *c, size_t len)
{
	bool fits;

	(void)pthread_mutex_lock(&c->lock);
	fits = len < groups_max(c) * 2 - c->link_bytes;
	c->link_bytes += fits ? len : 0;
	(void)pthread_mutex_unlock(&c->lock);
	return fits;
}

static int note_link(struct cap_worker *w, const struct cap_dir *d, const struct cap_entry *e)
{
	char path[SB_SNAP_PATH_MAX + 1];

	if (cap_path(d, e->name, path, sizeof(path)) == 0)
		return 0; /* beyond what a manifest names: two files */
	if (!link_fits(w->cap, strlen(path))) {
		w->unreadable++; /* the same, and told: somebody wanted it so */
		return 0;
	}
	if (w->n_links == w->links_room) {
		size_t room = SB_MAX(w->links_room * 2, (size_t)64);
		void *v = realloc(w->links, room * sizeof(*w->links));

		if (!v)
			return -ENOMEM;
		w->links = v;
		w->links_room = room;
	}
	w->links[w->n_links] = (struct cap_link){ .ino = e->ino, .path = strdup(path) };
	if (!w->links[w->n_links].path)
		return -ENOMEM;
	w->n_links++;
	return 0;
}

static int count(struct cap_worker *w, const struct cap_dir *d)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < d->n; i++) {
		const struct cap_entry *v = &d->v[i];

		w->counts.files += v->kind == SB_SNAP_FILE;
		w->counts.links += v->kind == SB_SNAP_LINK;
		w->counts.others += v->kind == SB_SNAP_OTHER;
		w->counts.excluded += v->why == SB_SNAP_EXCLUDED;
		if (v->kind == SB_SNAP_FILE)
			w->counts.bytes += v->size;
		if (v->kind == SB_SNAP_FILE && v->links > 1)
			r = note_link(w, d, v);
	}
	w->counts.dirs++;
	return r;
}

int cap_folder(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e)
{
	bool same = d->old_hash && d->old_n == d->n;
	int r = 0;

	for (uint32_t i = 0; same && i < d->n; i++)
		same = d->v[i].same;
	if (same)
		memcpy(e->hash, d->old_hash, SB_SNAP_HASH);
	else
		r = write_tree(w, d, e);
	if (r < 0 || e->kind != SB_SNAP_DIR)
		return r;
	r = count(w, d);
	/* what the parent's record said of this folder is true as a whole, or not at all */
	e->same = e->same && same;
	if (r == 0)
		r = write_record(w, d, e, &e->child_at);
	return r;
}

/* --- the manifest --- */

static int by_inode(const void *a, const void *b)
{
	const struct cap_link *x = a;
	const struct cap_link *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return strcmp(x->path, y->path);
}

struct group {
	const struct cap_link *v;
	uint32_t n;
};

static int by_first(const void *a, const void *b)
{
	return strcmp(((const struct group *)a)->v->path, ((const struct group *)b)->v->path);
}

/* Those that fit. @left: names of others, which are files of their own. Return: groups; -errno. */
static int64_t put_groups(struct sb_buf *to, const struct group *g, size_t n, uint64_t *left)
{
	uint32_t done = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t len = to->len;
		struct sb_snap_bytes *paths = calloc(g[i].n, sizeof(*paths));

		if (!paths)
			return -ENOMEM;
		for (uint32_t k = 0; k < g[i].n; k++)
			paths[k] = (struct sb_snap_bytes){ (const uint8_t *)g[i].v[k].path,
							   strlen(g[i].v[k].path) };
		sb_snap_group_add(to, paths, g[i].n);
		free(paths);
		if (sb_buf_error(to) == -EFBIG) {
			to->len = len;
			to->error = 0;
			*left += g[i].n;
			continue;
		}
		done++;
	}
	return sb_buf_error(to) ? (int64_t)sb_buf_error(to) : (int64_t)done;
}

static int make_groups(const struct cap *c, struct sb_buf *to, uint32_t *ret_n, uint64_t *left)
{
	int64_t r;

	sb_autofree struct cap_link *all = NULL;
	sb_autofree struct group *g = NULL;
	size_t n = 0;
	size_t n_groups = 0;

	for (size_t i = 0; i < c->n_workers; i++)
		n += c->w[i].n_links;
	if (n < 2)
		return 0;
	all = calloc(n, sizeof(*all));
	g = calloc(n / 2 + 1, sizeof(*g));
	if (!all || !g)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < c->n_workers; i++)
		for (size_t k = 0; k < c->w[i].n_links; k++)
			all[n++] = c->w[i].links[k];
	qsort(all, n, sizeof(*all), by_inode);
	for (size_t i = 0; i < n;) {
		size_t end = i + 1;

		while (end < n && all[end].ino == all[i].ino)
			end++;
		if (end - i > 1)
			g[n_groups++] = (struct group){ &all[i], (uint32_t)(end - i) };
		i = end;
	}
	if (n_groups > 1)
		qsort(g, n_groups, sizeof(*g), by_first);
	r = put_groups(to, g, n_groups, left);
	if (r < 0)
		return (int)r;
	*ret_n = (uint32_t)r;
	return 0;
}

static void add_counts(const struct cap *c, struct snap_captured *ret)
{
	for (size_t i = 0; i < c->n_workers; i++) {
		const struct cap_worker *w = &c->w[i];

		ret->counts.files += w->counts.files;
		ret->counts.dirs += w->counts.dirs;
		ret->counts.links += w->counts.links;
		ret->counts.others += w->counts.others;
		ret->counts.excluded += w->counts.excluded;
		ret->counts.bytes += w->counts.bytes;
		ret->read_files += w->read_files;
		ret->unreadable += w->unreadable;
		ret->changed += w->changed;
		ret->new_objects += w->big;
	}
}

/* All objects that the snapshot may need are on the disk, under their names. @fresh: there is a new pack. */
static int settle(const struct cap *c, bool fresh)
{
	const int dir = sb_snap_store_dir(c->store, SB_SNAP_PACKS);
	bool any = false;
	int r = sb_snap_unsynced_settle(dir, &any);

	return r == 0 && fresh && !any && fsync(dir) < 0 ? -errno : r;
}

int cap_end(struct cap *c, struct snap_captured *ret, uint64_t time_ns)
{
	const struct snap_capture *conf = c->conf;
	struct sb_snap_manifest *m = calloc(1, sizeof(*m));
	struct sb_digest *d = sb_snap_store_digest(c->store);
	struct sb_buf groups;
	size_t n = 0;
	int r;

	if (!m)
		return -ENOMEM;
	sb_buf_init(&groups, groups_max(c));
	add_counts(c, ret);
	r = conf->stage ? 0 : sb_packer_end(c->packer, d, conf->sync, &n, &ret->new_bytes);
	ret->new_objects += n;
	if (r == 0 && conf->sync && !conf->stage)
		r = settle(c, ret->new_objects > 0);
	m->time_ns = time_ns;
	m->role = (uint8_t)conf->role;
	m->path = (struct sb_snap_bytes){ (const uint8_t *)conf->tree->path, strlen(conf->tree->path) };
	m->label = (struct sb_snap_bytes){ (const uint8_t *)conf->label, strlen(conf->label) };
	m->root = entry_of(&c->root);
	m->counts = ret->counts;
	for (uint32_t i = 0; conf->rules && i < conf->rules->n; i++)
		m->excludes[m->n_excludes++] = (struct sb_snap_bytes){
			(const uint8_t *)conf->rules->patterns[i], strlen(conf->rules->patterns[i]) };
	if (r == 0)
		r = make_groups(c, &groups, &m->n_groups, &ret->unreadable);
	m->groups = (struct sb_snap_bytes){ groups.data, groups.len };
	if (r == 0)
		r = conf->stage ? sb_snap_store_stage_manifest(c->store, m, ret->id)
				: sb_snap_store_put(c->store, m, conf->sync, ret->id);
	ret->time_ns = time_ns;
	memcpy(ret->root, c->root.hash, SB_SNAP_HASH);
	if (r == 0 && !conf->stage)
		r = sb_snap_cachew_end(c->cachew, conf->tree->key, ret->id, (uint64_t)c->dev,
				       c->root.child_at, (int64_t)time_ns);
	if (ret->new_objects > 0)
		sb_snap_store_reload(c->store);
	sb_buf_done(&groups);
	free(m);
	return r;
}
