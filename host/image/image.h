#ifndef SB_HOST_IMAGE_IMAGE_H
#define SB_HOST_IMAGE_IMAGE_H
/*
 * Base images. A reference is resolved to one read-only erofs file in the cache, by content.
 *
 *   NAME[:TAG][@sha256:...]   pulled with skopeo (its own configuration says from where); the
 *                             digest is pinned in the lock file, see image_lock
 *   oci:DIR[:TAG]             OCI layout
 *   oci-archive:FILE[:TAG], docker-archive:FILE
 *   dir:DIR or /abs/path      a directory with a root file system (DIR image, served, no erofs)
 *   host                      the host's /usr
 *
 * Layers are read by sendbox-image, a jailed program that has descriptors only: layer archives in,
 * one erofs file out. Nothing is extracted onto the host.
 */
#include "core/plan.h"
#include "provider/provider.h"

enum image_form {
	IMAGE_FORM_NONE = 0,
	IMAGE_FORM_HOST,
	IMAGE_FORM_DIR,
	IMAGE_FORM_EROFS,
};
struct image { /* owned */
	enum image_form form;
	char *reference;      /* as given */
	char *digest;         /* "sha256:..." of the manifest; NULL for HOST and DIR */
	char *path;           /* DIR: canonical */
	struct sb_plan_layer layer; /* EROFS: whole base as one layer */
	char **env;           /* NULL-terminated "K=V" of the image's config */
	char *user;           /* of the image's config, or NULL; for information */
	char *workdir;
	bool pulled;          /* this call fetched something */
	char *moved_from;     /* the lock's digest when a mutable tag has moved and @update was set */
};
void image_done(struct image *i);

struct image_want {
	const char *reference;
	const char *lock_path; /* lock file beside the configuration, or NULL: <config>/images.lock */
	bool offline;          /* use what is there; never fetch */
	bool update;           /* resolve a tag anew and move the lock */
	/* progress for people: what, done, total (bytes; 0 = unknown). May be NULL. */
	void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
	void *arg;
};
/*
 * image_get - from a reference to what the plan names
 * Safe against others that do the same at once: they wait and use the same file.
 * Return: 0; -EINVAL (reference); -ENOENT; -EBADMSG (hostile or broken image, text says which
 * entry of which layer); -ENOSPC; -errno.
 */
SB_MUST_CHECK int image_get(const struct sb_dirs *d, const struct image_want *w, struct image *ret,
			    struct sb_err *err);

/*
 * image_layer_from_tar - one layer archive (OCI whiteouts) on @fd becomes one erofs file that
 * keeps the whiteouts in overlay form, to be put over other layers
 * @name: file name of the result's record in the cache, see cache.md; the file is named by content
 * Return: as image_get. @ret's path is owned by the caller.
 */
SB_MUST_CHECK int image_layer_from_tar(const struct sb_dirs *d, int fd, uint64_t max_bytes,
				       struct sb_plan_layer *ret, struct sb_err *err);
/* The way back: the layer as an archive with OCI whiteouts, written to @out. Return: as image_get; -EFBIG. */
SB_MUST_CHECK int image_layer_to_tar(const struct sb_dirs *d, const struct sb_plan_layer *l, int out,
				     uint64_t max_bytes, struct sb_err *err);
void image_layer_done(struct sb_plan_layer *l);

/* Cache: <cache>/layers/<sha256>.erofs (0400) and one record beside it with dev, ino, size, ctime.
 * image_layer_find: the layer of that content, if it is there and is still what was hashed.
 * Return: 0; -ENOENT; -ESTALE (changed since: refused, text says remove); -errno. */
SB_MUST_CHECK int image_layer_find(const struct sb_dirs *d, const uint8_t sha256[32],
				   struct sb_plan_layer *ret, struct sb_err *err);

#endif
