/*
 * From a reference to a layer in the cache. What is known of an image is kept under the digest that
 * its name stands for (of the list, when there is one), which is also what the lock file pins.
 * Everything that a registry or an archive brings is fetched into a folder of its own, verified,
 * fed to sendbox-image and removed again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/cache.h"
#include "image/lock.h"
#include "image/ref.h"
#include "image/skopeo.h"
#include "image/source.h"
#include "os/rmtree.h"

#define MAX_NESTED 4 /* lists in lists */
#define ARCHIVE_MAX_FILE (64ULL << 30)

struct get {
	const struct sb_dirs *d;
	const struct image_want *w;
	const struct image_ref *ref;
	char key[4300];       /* of the lock file: NAME:TAG */
	char lock_path[PATH_MAX];
	char digest[72];      /* what the reference stands for */
	char *manifest;       /* owned: of this machine; NULL = not known yet */
	size_t manifest_len;
	char instance[72];    /* its digest */
	struct oci_manifest m;
	char tmp[32];         /* folder in <cache>/images */
	int images;
	uint64_t total;
};

static void say(const struct get *g, const char *what)
{
	if (g->w->progress)
		g->w->progress(g->w->arg, what, 0, 0);
}

/* ---- the folder that is fetched into ---- */

static int tmp_make(struct get *g, int *ret, char path[PATH_MAX], struct sb_err *err)
{
	char name[32];

	image_tmp_name(name);
	if (mkdirat(g->images, name, 0700) < 0)
		return sb_err_set(err, -errno, "cannot make a folder in %s/images: %s", g->d->cache,
				  strerror(errno));
	memcpy(g->tmp, name, sizeof(name));
	*ret = openat(g->images, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret < 0 || flock(*ret, LOCK_EX | LOCK_NB) < 0)
		return sb_err_set(err, -errno, "cannot use a folder in %s/images: %s", g->d->cache,
				  strerror(errno));
	if (snprintf(path, PATH_MAX, "%s/images/%s", g->d->cache, name) >= PATH_MAX)
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", g->d->cache);
	return 0;
}

static void tick(void *arg)
{
	const struct get *g = arg;
	sb_autofd int dir = openat(g->images, g->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;
	DIR *list = dir >= 0 ? fdopendir(dir) : NULL;

	if (!list)
		return;
	while ((e = readdir(list)) != NULL)
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	(void)sb_fd_take(&dir); /* the list's */
	(void)closedir(list);
	if (g->w->progress)
		g->w->progress(g->w->arg, "downloading", g->total ? SB_MIN(sum, g->total) : sum,
			       g->total);
}

/* ---- manifests ---- */

static int digest_differs(const char *what, const char *want, const char *got, struct sb_err *err)
{
	return sb_err_set(err, -EBADMSG, "%s: the digest is %.20s..., %.20s... was asked for", what,
			  got, want);
}

/* A document that should be @want. */
static int check_bytes(const char *p, size_t len, const char *want, struct sb_err *err)
{
	char got[72];

	image_digest(p, len, got);
	return strcmp(got, want) == 0 ? 0 : digest_differs("manifest", want, got, err);
}

static int set_manifest(struct get *g, char **text, size_t len, const char *digest,
			struct sb_err *err)
{
	int r = oci_manifest_parse(*text, len, &g->m, err);

	if (r < 0)
		return r;
	g->manifest = sb_take(text);
	g->manifest_len = len;
	memcpy(g->instance, digest, 72);
	g->total = g->m.total;
	return 0;
}

/* From the list down to the manifest for this machine; @blobs NULL: from the registry. */
static int descend(struct get *g, const struct image_blobs *blobs, char **text, size_t len,
		   const char *digest, struct sb_err *err)
{
	char now[72];
	int r = 0;

	memcpy(now, digest, 72);
	for (int depth = 0; r == 0 && depth < MAX_NESTED; depth++) {
		enum oci_kind kind = OCI_NONE;
		struct oci_blob next;

		r = oci_kind(*text, len, &kind, err);
		if (r == 0 && kind == OCI_MANIFEST)
			return set_manifest(g, text, len, now, err);
		if (r == 0)
			r = oci_index_pick(*text, len, NULL, image_arch(), &next, err);
		free(sb_take(text));
		if (r == 0 && blobs)
			r = image_blob_read(blobs, &next, text, err);
		else if (r == 0)
			r = skopeo_raw(g->ref, next.digest, text, &len, err);
		if (r == 0 && blobs)
			len = (size_t)next.size;
		if (r == 0)
			r = check_bytes(*text, len, next.digest, err);
		memcpy(now, next.digest, 72);
	}
	return r < 0 ? r : sb_err_set(err, -EBADMSG, "lists within lists within lists");
}

/* ---- one image, once ---- */

static int image_lock_file(const struct get *g, int *ret, struct sb_err *err)
{
	char name[80];

	(void)snprintf(name, sizeof(name), "%.64s.lock", g->digest + 7);
	*ret = openat(g->images, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*ret < 0)
		return sb_err_set(err, -errno, "%s/images/%s: %s", g->d->cache, name,
				  strerror(errno));
	if (flock(*ret, LOCK_EX | LOCK_NB) == 0)
		return 0;
	say(g, "waiting for another sendbox that makes the same image");
	return flock(*ret, LOCK_EX) < 0 ? sb_err_set(err, -errno, "flock: %s", strerror(errno)) : 0;
}

static int make_and_record(struct get *g, const struct image_blobs *blobs, struct image *ret,
			   struct sb_err *err)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	int r = image_make(g->d, g->w, blobs, &g->m, &i, err);

	if (r < 0)
		return r;
	i.digest = strdup(g->digest);
	i.reference = strdup(g->w->reference);
	if (!i.digest || !i.reference)
		return sb_err_set(err, -ENOMEM, "out of memory");
	i.pulled = true;
	r = image_record_save(g->d, &i, err);
	if (r < 0)
		return r;
	*ret = i;
	i = (struct image){ 0 };
	return 0;
}

/* Return: 0: it was there; -ENOENT; -errno. */
static int known(const struct get *g, struct image *ret, struct sb_err *err)
{
	int r = image_record_load(g->d, g->digest, ret, err);
	char *as_given;

	if (r < 0)
		return r;
	as_given = strdup(g->w->reference);
	if (!as_given)
		return -ENOMEM;
	free(ret->reference);
	ret->reference = as_given;
	return 0;
}

/* ---- a layout on this machine ---- */

static int get_layout(struct get *g, struct image *ret, struct sb_err *err)
{
	sb_autofd int dir = open(g->ref->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct image_blobs blobs = { .dir = dir, .layout = true };
	sb_autofree char *text = NULL;
	sb_autofd int lock = -1;
	struct oci_blob top;
	size_t len = 0;
	int r;

	if (dir < 0)
		return sb_err_set(err, -errno, "image oci:%.300s: %s", g->ref->name, strerror(errno));
	r = sb_fd_read_file(dir, "index.json", OCI_MAX_DOCUMENT, &text, &len);
	if (r < 0)
		return sb_err_set(err, r, "image oci:%.300s: index.json: %s", g->ref->name,
				  strerror(-r));
	r = oci_index_pick(text, len, g->ref->tag[0] ? g->ref->tag : NULL, image_arch(), &top, err);
	if (r < 0)
		return r;
	memcpy(g->digest, top.digest, 72);
	r = image_lock_file(g, &lock, err);
	if (r == 0)
		r = known(g, ret, err);
	if (r != -ENOENT)
		return r;
	free(sb_take(&text));
	r = image_blob_read(&blobs, &top, &text, err);
	if (r == 0)
		r = descend(g, &blobs, &text, (size_t)top.size, top.digest, err);
	return r < 0 ? r : make_and_record(g, &blobs, ret, err);
}

/* ---- archives, and the end of a pull ---- */

static int fetch(struct get *g, const char *digest, struct image *ret, struct sb_err *err)
{
	uint64_t max = ARCHIVE_MAX_FILE;
	sb_autofree char *text = NULL;
	sb_autofd int dir = -1;
	struct image_blobs blobs = { 0 };
	char path[PATH_MAX];
	size_t len = 0;
	int r = tmp_make(g, &dir, path, err);

	if (digest) { /* no file is larger than the largest that the manifest names */
		max = OCI_MAX_DOCUMENT;
		for (size_t i = 0; i < g->m.n_layers; i++)
			max = SB_MAX(max, g->m.layers[i].size);
	}
	if (r == 0)
		r = skopeo_copy(g->ref, digest, path, max, tick, g, err);
	if (r < 0)
		return r;
	blobs.dir = dir;
	r = sb_fd_read_file(dir, "manifest.json", OCI_MAX_DOCUMENT, &text, &len);
	if (r < 0)
		return sb_err_set(err, r, "skopeo brought no manifest: %s", strerror(-r));
	if (digest) {
		r = check_bytes(text, len, g->instance, err);
	} else {
		image_digest(text, len, g->digest);
		r = known(g, ret, err);
		if (r != -ENOENT)
			return r;
		r = set_manifest(g, &text, len, g->digest, err);
	}
	return r < 0 ? r : make_and_record(g, &blobs, ret, err);
}

/* ---- registries ---- */

static int resolve(struct get *g, const char *digest, char **text, size_t *len, struct sb_err *err)
{
	int r;

	if (g->ref->loopback)
		say(g, "the registry is on this machine: plain http is taken");
	r = skopeo_raw(g->ref, digest, text, len, err);
	if (r < 0)
		return r;
	if (digest)
		return check_bytes(*text, *len, digest, err);
	image_digest(*text, *len, g->digest);
	return 0;
}

static int offline(const struct get *g, const char *why, struct sb_err *err)
{
	return sb_err_set(err, -ENOENT,
			  "image %.200s: %s, and nothing may be fetched (offline); run: sendbox image "
			  "pull %.200s", g->w->reference, why, g->w->reference);
}

/* What the name stands for. @text: set when the registry was asked. */
static int pin(struct get *g, char **text, size_t *len, char **moved_from, bool *write_lock,
	       struct sb_err *err)
{
	char locked[72] = "";
	int r;

	if (g->ref->digest[0]) {
		memcpy(g->digest, g->ref->digest, 72);
		return 0;
	}
	r = image_lock_get(g->lock_path, g->key, locked, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && !g->w->update) {
		memcpy(g->digest, locked, 72);
		return 0;
	}
	if (g->w->offline)
		return offline(g, "its digest is not in the lock file", err);
	r = resolve(g, NULL, text, len, err);
	if (r < 0)
		return r;
	*write_lock = strcmp(locked, g->digest) != 0;
	if (locked[0] && *write_lock) {
		*moved_from = strdup(locked);
		if (!*moved_from)
			return -ENOMEM;
	}
	return 0;
}

static int pull(struct get *g, char **text, size_t len, struct image *ret, struct sb_err *err)
{
	int r = 0;

	if (!*text)
		r = resolve(g, g->digest, text, &len, err);
	if (r == 0)
		r = descend(g, NULL, text, len, g->digest, err);
	return r < 0 ? r : fetch(g, g->instance, ret, err);
}

static int get_registry(struct get *g, struct image *ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	sb_autofree char *moved_from = NULL;
	sb_autofd int lock = -1;
	bool write_lock = false;
	size_t len = 0;
	int r;

	(void)snprintf(g->key, sizeof(g->key), "%s:%s", g->ref->name,
		       g->ref->tag[0] ? g->ref->tag : "latest");
	r = pin(g, &text, &len, &moved_from, &write_lock, err);
	if (r == 0)
		r = image_lock_file(g, &lock, err);
	if (r < 0)
		return r;
	r = known(g, ret, err);
	if (r == -ENOENT && g->w->offline)
		return offline(g, "it is not in the cache", err);
	if (r == -ENOENT)
		r = pull(g, &text, len, ret, err);
	if (r == 0 && write_lock)
		r = image_lock_set(g->lock_path, g->key, g->digest, err);
	if (r == 0)
		ret->moved_from = sb_take(&moved_from);
	return r;
}

static int get_plain(const struct get *g, struct image *ret, struct sb_err *err)
{
	char real[PATH_MAX];

	ret->form = g->ref->source == IMAGE_SOURCE_HOST ? IMAGE_FORM_HOST : IMAGE_FORM_DIR;
	ret->reference = strdup(g->w->reference);
	if (!ret->reference)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (ret->form == IMAGE_FORM_HOST)
		return 0;
	if (!realpath(g->ref->name, real))
		return sb_err_set(err, -errno, "image %.300s: %s", g->ref->name, strerror(errno));
	ret->path = strdup(real);
	return ret->path ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
}

static int get(struct get *g, struct image *ret, struct sb_err *err)
{
	int n = g->w->lock_path ? snprintf(g->lock_path, sizeof(g->lock_path), "%s", g->w->lock_path)
				: snprintf(g->lock_path, sizeof(g->lock_path), "%s/images.lock",
					   g->d->config);
	int r;

	if (n < 0 || (size_t)n >= sizeof(g->lock_path))
		return sb_err_set(err, -ENAMETOOLONG, "path of the lock file too long");
	r = image_dir_open(g->d, "images", &g->images, err);
	if (r < 0)
		return r;
	switch (g->ref->source) {
	case IMAGE_SOURCE_OCI:
		r = get_layout(g, ret, err);
		break;
	case IMAGE_SOURCE_OCI_ARCHIVE:
	case IMAGE_SOURCE_DOCKER_ARCHIVE:
		r = fetch(g, NULL, ret, err);
		break;
	case IMAGE_SOURCE_REGISTRY:
		r = get_registry(g, ret, err);
		break;
	case IMAGE_SOURCE_NONE:
	case IMAGE_SOURCE_HOST:
	case IMAGE_SOURCE_DIR:
	default:
		r = -EINVAL;
	}
	if (g->tmp[0])
		r = sb_rmtree(g->images, g->tmp) < 0 && r == 0 ? -EIO : r;
	sb_fd_close(&g->images);
	free(g->manifest);
	return r;
}

int image_get(const struct sb_dirs *d, const struct image_want *w, struct image *ret,
	      struct sb_err *err)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	sb_autofree struct image_ref *ref = calloc(1, sizeof(*ref));
	sb_autofree struct get *g = calloc(1, sizeof(*g));
	struct sb_err why = { 0 };
	int r;

	if (!ref || !g)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = image_ref_parse(w->reference, ref, err);
	if (r < 0)
		return r;
	*g = (struct get){ .d = d, .w = w, .ref = ref, .images = -1 };
	if (ref->source == IMAGE_SOURCE_HOST || ref->source == IMAGE_SOURCE_DIR)
		r = get_plain(g, &i, &why);
	else
		r = get(g, &i, &why);
	if (r < 0)
		return sb_err_set(err, r, "image %.150s: %s", w->reference,
				  why.code ? why.text : strerror(-r));
	*ret = i;
	i = (struct image){ 0 };
	return 0;
}

int image_moved(const struct sb_dirs *d, const struct image_want *w, const struct image *i,
		struct sb_err *err)
{
	sb_autofree struct image_ref *ref = calloc(1, sizeof(*ref));
	sb_autofree char *text = NULL;
	char digest[72];
	size_t len = 0;
	int r;

	(void)d;
	if (!ref)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = image_ref_parse(w->reference, ref, err);
	if (r < 0 || ref->source != IMAGE_SOURCE_REGISTRY || ref->digest[0])
		return r;
	r = skopeo_raw(ref, NULL, &text, &len, err);
	if (r < 0)
		return r;
	image_digest(text, len, digest);
	return strcmp(digest, i->digest) != 0;
}
