/*
 * What no snapshot needs goes: packs without a needed object are removed, packs of which less than
 * half is needed, and small ones, are written anew as one. A pack is removed after the new one is on
 * the disk. A snapshot that cannot be read whole stops it: what it needs is not known then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "snapshot.h"

#define SMALL (4U << 20)

/* Hashes that are needed; sorted when complete. */
struct set {
	uint8_t (*v)[SB_SNAP_HASH];
	size_t n;
	size_t room;
	size_t sorted; /* the first ones are, each once */
};

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, SB_SNAP_HASH);
}

static int set_add(struct set *s, const uint8_t *hash)
{
	if (s->n == s->room) {
		size_t room = SB_MAX(s->room * 2, (size_t)4096);
		void *v = realloc(s->v, room * SB_SNAP_HASH);

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->room = room;
	}
	memcpy(s->v[s->n++], hash, SB_SNAP_HASH);
	return 0;
}

static void set_sort(struct set *s)
{
	size_t k = 0;

	if (s->n == 0)
		return;
	qsort(s->v, s->n, SB_SNAP_HASH, by_bytes);
	for (size_t i = 1; i < s->n; i++)
		if (by_bytes(s->v[k], s->v[i]) != 0)
			memmove(s->v[++k], s->v[i], SB_SNAP_HASH);
	s->n = k + 1;
	s->sorted = s->n;
}

static bool set_has(const struct set *s, const uint8_t *hash)
{
	return s->n > 0 && bsearch(hash, s->v, s->n, SB_SNAP_HASH, by_bytes);
}

/* --- marking: folders from a list, each read once --- */

struct mark {
	struct sb_snap_store *store;
	struct set needed; /* everything */
	struct set seen;   /* folders that were read */
	struct set todo;
};

static int mark_dir(struct mark *m, const uint8_t *hash)
{
	sb_autofree uint8_t *p = NULL;
	struct sb_snap_reader rd;
	struct sb_snap_entry e;
	size_t len = 0;
	int r = sb_snap_store_get(m->store, sb_snap_store_digest(m->store), hash, SB_SNAP_TREE_CAP, &p, &len);

	if (r == 0)
		r = sb_snap_tree_open(&rd, p, len);
	while (r == 0 && (r = sb_snap_tree_next(&rd, &e)) == 1) {
		r = e.kind == SB_SNAP_FILE || e.kind == SB_SNAP_DIR ? set_add(&m->needed, e.hash) : 0;
		if (r == 0 && e.has_xattrs)
			r = set_add(&m->needed, e.xattrs);
		if (r == 0 && e.kind == SB_SNAP_DIR)
			r = set_add(&m->todo, e.hash);
	}
	return r;
}

/* Level by level: of each level the folders that were not read before. */
static int mark_all(struct mark *m)
{
	while (m->todo.n > 0) {
		struct set level = m->todo;
		int r = 0;

		m->todo = (struct set){ 0 };
		set_sort(&level);
		set_sort(&m->seen);
		for (size_t i = 0, old = m->seen.n; r == 0 && i < level.n; i++) {
			struct set before = { m->seen.v, old, 0, old };

			if (set_has(&before, level.v[i]))
				continue;
			r = mark_dir(m, level.v[i]);
			if (r == 0)
				r = set_add(&m->seen, level.v[i]);
		}
		free(level.v);
		if (r < 0)
			return r;
	}
	set_sort(&m->needed);
	return 0;
}

static void stop_at(void *arg, const char *name, const char *why)
{
	struct sb_err *err = arg;

	(void)sb_err_set(err, -EBADMSG, "nothing is removed: snapshot %.16s cannot be read (%s); remove it "
			 "with sendbox snapshot rm if it is not wanted", name, why);
}

static int mark(struct mark *m, struct sb_err *err)
{
	struct snap_loaded *all = NULL;
	size_t n = 0;
	int r = snap_load_all(m->store, &all, &n, stop_at, err, err);

	if (r == 0 && err->code < 0)
		r = err->code;
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = set_add(&m->needed, all[i].m.root.hash);
		if (r == 0)
			r = set_add(&m->todo, all[i].m.root.hash);
		if (r == 0 && all[i].m.root.has_xattrs)
			r = set_add(&m->needed, all[i].m.root.xattrs);
	}
	if (all)
		snap_loaded_free(all, n);
	if (r == 0)
		r = mark_all(m);
	if (r == -EBADMSG || r == -ENOENT)
		return sb_err_set(err, r, "nothing is removed: a snapshot is damaged; sendbox snapshot verify "
				  "names it");
	return r < 0 ? sb_err_set(err, r, "gc: %s", strerror(-r)) : 0;
}

/* --- sweeping --- */

struct fate {
	uint64_t live; /* bytes */
	uint64_t size;
	size_t n_live;
	bool redo;
};

static void judge(const struct sb_pack *p, const struct set *needed, struct fate *f)
{
	for (size_t i = 0; i < p->n; i++) {
		f->size += p->v[i].len;
		if (!set_has(needed, p->v[i].hash))
			continue;
		f->live += p->v[i].len;
		f->n_live++;
	}
}

static int move_one(struct sb_snap_store *s, struct sb_packer *out, struct sb_pack_block *b,
		    const uint8_t *hash)
{
	sb_autofree uint8_t *p = NULL;
	size_t len = 0;
	int r = sb_packer_claim(out, hash);

	if (r <= 0)
		return r;
	r = sb_snap_store_get(s, sb_snap_store_digest(s), hash, SIZE_MAX / 2, &p, &len);
	return r < 0 ? r : sb_packer_add(out, b, hash, p, len);
}

/* Needed objects of packs to be redone into one new pack, on the disk before anything goes. */
static int rewrite(struct sb_snap_store *s, const struct sb_pack *const *packs, const struct fate *f, size_t n,
		   const struct set *needed)
{
	struct sb_pack_block b = { 0 };
	struct sb_packer *out = NULL;
	uint64_t bytes = 0;
	size_t count = 0;
	int r = sb_packer_new(sb_snap_store_dir(s, SB_SNAP_PACKS), &out);

	for (size_t i = 0; r == 0 && i < n; i++)
		for (size_t k = 0; f[i].redo && r == 0 && k < packs[i]->n; k++)
			if (set_has(needed, packs[i]->v[k].hash))
				r = move_one(s, out, &b, packs[i]->v[k].hash);
	if (r == 0)
		r = sb_packer_flush(out, &b);
	if (r == 0)
		r = sb_packer_end(out, sb_snap_store_digest(s), true, &count, &bytes);
	if (r == 0 && fsync(sb_snap_store_dir(s, SB_SNAP_PACKS)) < 0)
		r = -errno;
	sb_pack_block_done(&b);
	(void)sb_packer_free(out);
	return r;
}

static void choose(const struct sb_pack *const *packs, struct fate *f, size_t n)
{
	size_t n_redo = 0;

	for (size_t i = 0; i < n; i++) {
		/* one big object is needed or not */
		f[i].redo = f[i].n_live > 0 && packs[i]->n > 1 &&
			    (f[i].live * 2 < f[i].size || f[i].size < SMALL);
		n_redo += f[i].redo;
	}
	for (size_t i = 0; n_redo == 1 && i < n; i++)
		if (f[i].redo && f[i].live * 2 >= f[i].size)
			f[i].redo = false; /* a single small one is fine */
}

static int sweep(struct sb_snap_store *s, const struct set *needed, struct snap_gone *ret)
{
	const struct sb_pack *const *packs = NULL;
	sb_autofree struct fate *f = NULL;
	size_t n = 0;
	size_t n_redo = 0;
	int r = sb_snap_store_packs(s, &packs, &n);

	if (r < 0)
		return r;
	f = calloc(n + 1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		judge(packs[i], needed, &f[i]);
	choose(packs, f, n);
	for (size_t i = 0; i < n; i++)
		n_redo += f[i].redo;
	if (n_redo > 0)
		r = rewrite(s, packs, f, n, needed);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (f[i].n_live > 0 && !f[i].redo)
			continue;
		if (unlinkat(sb_snap_store_dir(s, SB_SNAP_PACKS), packs[i]->name, 0) < 0 && errno != ENOENT)
			r = -errno;
		ret->packs++;
		ret->bytes += f[i].size - (f[i].redo ? f[i].live : 0);
	}
	return r;
}

/* Files that nobody finished: nobody else is here. */
static int clear_unfinished(struct sb_snap_store *s, struct snap_gone *ret)
{
	for (int part = 0; part < SB_SNAP_PARTS; part++) {
		int dir = sb_snap_store_dir(s, (enum sb_snap_part)part);
		int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *e;

		if (!d) {
			sb_fd_close(&fd);
			return -errno;
		}
		while ((e = readdir(d)))
			if (strncmp(e->d_name, SB_SNAP_TMP, strlen(SB_SNAP_TMP)) == 0 &&
			    unlinkat(dir, e->d_name, 0) == 0)
				ret->files++;
		(void)closedir(d);
	}
	return 0;
}

/* Caches that belong to a snapshot that is gone do not count any more; see snap_cache.h. */
int snap_gc(struct sb_snap_store *s, struct snap_gone *ret, struct sb_err *err)
{
	struct mark m = { .store = s };
	int r;

	*ret = (struct snap_gone){ 0 };
	r = clear_unfinished(s, ret);
	if (r < 0)
		return sb_err_set(err, r, "gc: %s", strerror(-r));
	r = mark(&m, err);
	if (r == 0)
		r = sweep(s, &m.needed, ret);
	free(m.needed.v);
	free(m.seen.v);
	free(m.todo.v);
	sb_snap_store_reload(s);
	return r < 0 ? sb_err_set(err, r, "gc: %s", strerror(-r)) : 0;
}

int snap_remove(struct sb_snap_store *s, const uint8_t *id, struct sb_err *err)
{
	char hex[SB_PACK_NAME];

	sb_hex_write(id, SB_SNAP_HASH, hex);
	if (unlinkat(sb_snap_store_dir(s, SB_SNAP_MANIFESTS), hex, 0) < 0)
		return sb_err_set(err, -errno, "snapshot %.16s: %s", hex, strerror(errno));
	return 0;
}

/* An interrupted undo needs its three. */
static bool is_needed(struct sb_snap_store *s, const struct snap_loaded *l)
{
	sb_autofree char *text = NULL;
	char path[SB_SNAP_PATH_MAX + 1];
	struct snap_tree t;
	size_t len = 0;

	memcpy(path, l->m.path.p, l->m.path.len);
	path[l->m.path.len] = '\0';
	snap_tree_init(&t, -1, path);
	if (sb_fd_read_file(sb_snap_store_dir(s, SB_SNAP_UNDO), t.key, 4096, &text, &len) < 0)
		return false;
	return memmem(text, len, l->id, SB_SNAP_HASH) != NULL;
}

bool snap_needed(struct sb_snap_store *s, const uint8_t *id)
{
	struct snap_loaded l = { 0 };
	struct sb_err err = { 0 };
	bool needed = snap_load(s, id, &l, &err) == 0 && is_needed(s, &l);

	snap_loaded_done(&l);
	return needed;
}
