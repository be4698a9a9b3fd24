#ifndef SB_HOST_IMAGE_MERGE_H
#define SB_HOST_IMAGE_MERGE_H
/*
 * Layers of an image, one tar archive after the other, become one tree whose file data goes to an
 * erofs writer as it comes. No file is touched but the two that the writer was given.
 *
 * IMAGE: whiteouts act on the layers below. LAYER: one archive, whose whiteouts are kept in
 * overlay's form (character device 0:0; xattrs trusted.overlay.opaque and user.overlay.opaque).
 *
 * Names: a leading "/" and "." parts are dropped, as other tools do; ".." is refused. Nothing is
 * resolved through a link: an entry beneath one is refused, and so are a name twice in one layer
 * and a hard link to nothing. Device nodes, and attributes that only overlay or SELinux give a
 * meaning, are left out and counted.
 */
#include "base/err.h"
#include "erofs/tree.h"
#include "erofs/write.h"
#include "wire/tar.h"

enum image_mode { IMAGE_MODE_NONE = 0, IMAGE_MODE_IMAGE, IMAGE_MODE_LAYER };

struct image_limits {
	uint64_t max_entries; /* of all layers */
	uint64_t max_bytes;   /* data of all layers, and the output */
	size_t max_memory;    /* names, attributes, inodes */
	uint64_t free_ratio;  /* a layer may always unpack to so many bytes */
	uint32_t max_ratio;   /* beyond: at most so many times its packed size */
};
extern const struct image_limits image_limits_default;

struct image_counts {
	uint64_t entries;
	uint64_t bytes;
	uint64_t devices; /* left out */
	uint64_t xattrs;  /* left out */
};
struct image_merge {
	enum image_mode mode;
	const struct image_limits *limits;
	struct sb_erofs_tree tree;
	struct sb_erofs_writer *w;
	uint32_t layer; /* 1, 2, ... */
	struct image_counts counts;
	struct sb_err *err;
	char entry[128]; /* the one at hand, cut, for messages */
};

/* @out, @spool: as for sb_erofs_new; @err: borrowed, of every later call. Return: 0; -errno. */
SB_MUST_CHECK int image_merge_init(struct image_merge *m, enum image_mode mode,
				   const struct image_limits *limits, int out, int spool,
				   struct sb_err *err);
void image_merge_done(struct image_merge *m);
/* The next layer begins: its archive is read with @ret, which the caller frees. */
SB_MUST_CHECK int image_merge_layer(struct image_merge *m, struct sb_tar **ret);
/* All layers were read. */
SB_MUST_CHECK int image_merge_finish(struct image_merge *m);

/* sb_tar_push and sb_tar_end with the layer and the entry in the message. */
SB_MUST_CHECK int image_merge_push(struct image_merge *m, struct sb_tar *t, const uint8_t *p,
				   size_t len);
SB_MUST_CHECK int image_merge_end(struct image_merge *m, struct sb_tar *t);
/* "layer 2: entry "a/b": " before @fmt. Return: @code. */
int image_merge_fail(struct image_merge *m, int code, const char *fmt, ...) SB_PRINTF(3, 4);

#endif
