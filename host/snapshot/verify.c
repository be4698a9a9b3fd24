/*
 * Every byte of the store is covered: packs are read whole, their objects must fill them, each has its
 * hash; snapshots have their id; every object that a snapshot needs must be there and be what its
 * entry says. A finding names the file, and the path of the snapshot that suffers.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <dirent.h>

#include "base/fd.h"
#include "base/num.h"
#include "snapshot.h"

struct verify {
	struct sb_snap_store *store;
	FILE *out;
	bool json;
	int64_t found;
	uint8_t (*bad)[SB_SNAP_HASH]; /* damaged objects */
	size_t n_bad;
	const struct snap_loaded *at; /* the snapshot at hand */
	int error;
};

static void finding(struct verify *v, const char *what, const char *name, const char *why)
{
	char text[SB_SNAP_PATH_MAX * 4 + 8];

	v->found++;
	snap_text((const uint8_t *)name, strlen(name), text, sizeof(text));
	if (v->json) {
		json_t *o = json_pack("{s:s, s:s, s:s}", "damaged", what, "name", text, "why", why);

		if (o && json_dumpf(o, v->out, JSON_COMPACT) == 0)
			(void)fputc('\n', v->out);
		json_decref(o);
		return;
	}
	(void)fprintf(v->out, "%s %s: %s\n", what, text, why);
}

static void on_pack(void *arg, const char *name, const char *why)
{
	finding(arg, "pack", name, why);
}

static void on_manifest(void *arg, const char *name, const char *why)
{
	finding(arg, "snapshot", name, why);
}

static int check_object(struct verify *v, const struct sb_pack *p, const struct sb_pack_entry *e)
{
	struct sb_digest *d = sb_snap_store_digest(v->store);
	static uint8_t buf[1U << 18];
	uint8_t got[SB_SNAP_HASH];
	char name[SB_PACK_NAME * 2 + 8];
	char hex[SB_PACK_NAME];
	void *more;

	sb_digest_start(d);
	for (uint64_t at = 0; at < e->len;) {
		size_t n = SB_MIN(e->len - at, (uint64_t)sizeof(buf));
		ssize_t k = sb_fd_read_at(p->fd, buf, n, (off_t)(e->at + at));

		if (k != (ssize_t)n)
			break;
		sb_digest_add(d, buf, n);
		at += n;
	}
	sb_digest_end(d, got);
	if (memcmp(got, e->hash, sizeof(got)) == 0)
		return 0;
	sb_hex_write(e->hash, SB_SNAP_HASH, hex);
	(void)snprintf(name, sizeof(name), "%s in pack %s", hex, p->name);
	finding(v, "object", name, "its bytes do not fit its hash");
	more = realloc(v->bad, (v->n_bad + 1) * SB_SNAP_HASH);
	if (!more)
		return -ENOMEM;
	v->bad = more;
	memcpy(v->bad[v->n_bad++], e->hash, SB_SNAP_HASH);
	return 0;
}

static int check_packs(struct verify *v)
{
	const struct sb_pack *const *packs = NULL;
	size_t n = 0;
	int r = sb_snap_store_packs(v->store, &packs, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!sb_pack_tiles(packs[i]))
			finding(v, "pack", packs[i]->name, "its objects do not fill it");
		for (size_t k = 0; r == 0 && k < packs[i]->n; k++)
			r = check_object(v, packs[i], &packs[i]->v[k]);
	}
	return r;
}

static bool is_bad(const struct verify *v, const uint8_t *hash)
{
	for (size_t i = 0; i < v->n_bad; i++)
		if (memcmp(v->bad[i], hash, SB_SNAP_HASH) == 0)
			return true;
	return false;
}

static void suffer(struct verify *v, const char *path, const char *why)
{
	char hex[SB_PACK_NAME];
	char name[SB_SNAP_PATH_MAX + 128];

	sb_hex_write(v->at->id, SB_SNAP_HASH, hex);
	(void)snprintf(name, sizeof(name), "%.12s: %s", hex, *path ? path : ".");
	finding(v, "snapshot", name, why);
}

static int need(struct verify *v, const char *path, const uint8_t *hash)
{
	int r = sb_snap_store_has(v->store, hash);

	if (r == 0)
		suffer(v, path, "its content is missing");
	else if (r > 0 && is_bad(v, hash))
		suffer(v, path, "its content is damaged");
	return r < 0 ? r : 0;
}

/* Of the second side alone: all of one snapshot. */
static int on_entry(void *arg, const struct snap_at *at)
{
	struct verify *v = arg;
	const struct sb_snap_entry *e = at->v[1];
	int r = 0;

	if (e->kind == SB_SNAP_FILE || e->kind == SB_SNAP_DIR)
		r = need(v, at->path, e->hash);
	if (r == 0 && e->has_xattrs)
		r = need(v, at->path, e->xattrs);
	if (r == 0 && e->kind == SB_SNAP_DIR) {
		sb_autofree uint8_t *p = NULL;
		struct sb_snap_reader rd;
		size_t len = 0;

		/* a folder that cannot be read was told; do not look into it */
		if (sb_snap_store_get(v->store, sb_snap_store_digest(v->store), e->hash, SB_SNAP_TREE_CAP, &p,
				      &len) < 0)
			return 1;
		if (sb_snap_tree_open(&rd, p, len) < 0) {
			suffer(v, at->path, "it is no folder");
			return 1;
		}
	}
	return r;
}

static int check_snapshot(struct verify *v, const struct snap_loaded *l, struct sb_err *err)
{
	const struct sb_snap_entry *const roots[SNAP_WALK] = { NULL, &l->m.root, NULL };
	struct sb_err e = { 0 };
	int r;

	v->at = l;
	r = snap_walk(v->store, roots, on_entry, v, &e);
	if (r == -EBADMSG || r == -ENAMETOOLONG) {
		suffer(v, ".", e.text);
		r = 0;
	}
	return r < 0 ? sb_err_set(err, r, "%s", e.text[0] ? e.text : strerror(-r)) : 0;
}

/* What came from a damaged store is not believed: the next captures read everything. */
static void drop_caches(struct sb_snap_store *s)
{
	int dir = sb_snap_store_dir(s, SB_SNAP_CACHE);
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		sb_fd_close(&fd);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			(void)unlinkat(dir, e->d_name, 0);
	(void)closedir(d);
}

int64_t snap_verify(struct sb_snap_store *s, const uint8_t *only, FILE *out, bool json, struct sb_err *err)
{
	struct verify v = { .store = s, .out = out, .json = json };
	struct snap_loaded *all = NULL;
	size_t n = 0;
	int r;

	sb_snap_store_on_damage(s, on_pack, &v);
	r = check_packs(&v);
	if (r < 0)
		(void)sb_err_set(err, r, "verify: %s", strerror(-r));
	if (r == 0)
		r = snap_load_all(s, &all, &n, on_manifest, &v, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!only || memcmp(only, all[i].id, SB_SNAP_HASH) == 0)
			r = check_snapshot(&v, &all[i], err);
	sb_snap_store_on_damage(s, NULL, NULL);
	if (v.found > 0)
		drop_caches(s);
	if (all)
		snap_loaded_free(all, n);
	free(v.bad);
	return r < 0 ? r : v.found;
}
