#ifndef SB_HOST_IMAGE_CACHE_H
#define SB_HOST_IMAGE_CACHE_H
/*
 * What is kept of images:
 *
 *   <cache>/layers/HEX.erofs   a layer, mode 0400, named by the SHA-256 of its bytes
 *   <cache>/layers/HEX.is      "dev ino size ctime_ns\n": the file that was hashed
 *   <cache>/layers/tmp-*       being made; locked (flock) as long as its maker lives
 *   <cache>/images/HEX.json    what is known of an image, by the digest of its manifest
 *   <cache>/images/HEX.lock    held (flock) while that image is made; empty
 *   <cache>/images/tmp-*       folder with blobs of an image being fetched; locked likewise
 */
#include <jansson.h>

#include "image/image.h"

SB_MUST_CHECK int image_dir_open(const struct sb_dirs *d, const char *name, int *ret,
				 struct sb_err *err);
/* A new name "tmp-..." in @out (32 bytes). */
void image_tmp_name(char out[32]);
/*
 * image_layer_keep - a finished erofs file becomes a layer of the cache
 * @dir: <cache>/layers; @tmp: its name there; @fd: the same file
 * The name @tmp is gone afterwards, also when that content was there already.
 */
SB_MUST_CHECK int image_layer_keep(const struct sb_dirs *d, int dir, const char *tmp, int fd,
				   struct sb_plan_layer *ret, struct sb_err *err);

/* Of our own records: a member that may be absent, and a list of variables. @ret: owned, also partly after
 * a failure. Return: 0; -EBADMSG; -ENOMEM. */
SB_MUST_CHECK int image_copy_text(const json_t *j, const char *key, char **ret);
SB_MUST_CHECK int image_copy_env(const json_t *list, char ***ret);
/* <cache>/images/HEX.json as a struct; @i's layer is found and checked, too.
 * Return: 0; -ENOENT: not there, or its layer is gone; -ESTALE; -errno. */
SB_MUST_CHECK int image_record_load(const struct sb_dirs *d, const char *digest, struct image *i,
				    struct sb_err *err);
SB_MUST_CHECK int image_record_save(const struct sb_dirs *d, const struct image *i,
				    struct sb_err *err);

/* @fn for every image in the cache, until it returns another value than 0; one that is broken is passed
 * over, and told by @broken unless that is NULL. Return: 0; what @fn returned; -errno. */
SB_MUST_CHECK int image_each(const struct sb_dirs *d, int (*fn)(void *arg, const struct image *i),
			     void (*broken)(void *arg, const char *text), void *arg,
			     struct sb_err *err);
/* @layer: the layer's file, too. Return: 0; -errno. */
SB_MUST_CHECK int image_record_remove(const struct sb_dirs *d, const struct image *i, bool layer,
				      struct sb_err *err);
/* Ask the registry whether @w's tag stands for another digest than @i's now; nothing is changed.
 * Return: 1: it does; 0: it does not, or this is no tag of a registry; -errno. */
SB_MUST_CHECK int image_moved(const struct sb_dirs *d, const struct image_want *w,
			      const struct image *i, struct sb_err *err);

/* Remove what makers that were killed left behind. @n: counted up. */
SB_MUST_CHECK int image_gc(const struct sb_dirs *d, size_t *n, struct sb_err *err);

/* "sha256:" and 64 lower-case digits. */
SB_MUST_CHECK bool image_digest_ok(const char *s);

#endif
