#ifndef SB_HOST_IMGFS_LAYER_OUT_H
#define SB_HOST_IMGFS_LAYER_OUT_H
/*
 * An erofs file as a layer archive with OCI whiteouts: the way back of image/merge.h. The file may be anything:
 * what is no layer of ours is refused, and the walk is bounded.
 */
#include "base/err.h"
#include "erofs/read.h"

struct layer_out_sink {
	int (*put)(void *arg, const void *p, size_t len); /* 0, or a negative errno */
	void *arg;
};
/* @max_bytes, @max_entries: of the archive. Return: 0; -EBADMSG, -E2BIG, -EFBIG with the entry in @err;
 * what put returned. */
SB_MUST_CHECK int layer_out(const struct sb_erofs *fs, uint64_t max_entries, uint64_t max_bytes,
			    const struct layer_out_sink *to, struct sb_err *err);

/* sendbox-imgfs --tar @max_bytes. Return: exit status. */
int imgfs_tar(const char *max_bytes);

#endif
