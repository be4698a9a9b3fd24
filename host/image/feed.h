#ifndef SB_HOST_IMAGE_FEED_H
#define SB_HOST_IMAGE_FEED_H
/* Frames on a descriptor (see helper.h) -> gzip or zstd -> tar -> merge. */
#include "image/merge.h"

/* Return: 0; -EBADMSG, -E2BIG, -ENOSPC, ... with the text in the merge's err. */
SB_MUST_CHECK int image_feed(struct image_merge *m, int fd);

#endif
