#ifndef SB_HOST_IMAGE_BUILD_H
#define SB_HOST_IMAGE_BUILD_H
/* One erofs file being made by sendbox-image (see helper.h), from bytes that the caller has. */
#include "image/helper.h"
#include "image/image.h"

struct image_build;
/* @layer: keep the whiteouts of the one archive; else merge a list of them. @max_bytes: 0 = the
 * helper's own bound. */
SB_MUST_CHECK int image_build_start(const struct sb_dirs *d, bool layer, uint64_t max_bytes,
				    struct image_build **ret, struct sb_err *err);
/* Kills the helper if it runs, removes what it made. */
struct image_build *image_build_free(struct image_build *b);
static inline void image_build_freep(struct image_build **b)
{
	(void)image_build_free(*b);
}
#define image_autobuild SB_CLEANUP(image_build_freep)

SB_MUST_CHECK int image_build_begin(struct image_build *b, struct sb_err *err); /* next layer */
SB_MUST_CHECK int image_build_add(struct image_build *b, const void *p, size_t len,
				  struct sb_err *err);
SB_MUST_CHECK int image_build_end(struct image_build *b, struct sb_err *err);
/* All layers were given. @ret: the layer in the cache; @counts: may be NULL. */
SB_MUST_CHECK int image_build_finish(struct image_build *b, struct sb_plan_layer *ret,
				     struct image_result *counts, struct sb_err *err);

#endif
