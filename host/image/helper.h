#ifndef SB_HOST_IMAGE_HELPER_H
#define SB_HOST_IMAGE_HELPER_H
/*
 * Between sendbox and sendbox-image, one process of which makes one erofs file.
 *
 *   sendbox-image image|layer MAX_BYTES
 *
 *   fd 0   layers, lowest first, in frames: length (4 bytes, little-endian), bytes. A frame of
 *          length 0 stands before and after each layer, IMAGE_FRAME_END after the last one.
 *   fd 1   the output: an empty file, read-write
 *   fd 3   the result: struct image_result, written once
 *   fd 4   spool: an empty file, read-write
 *
 *   sendbox-imgfs --tar MAX_BYTES   (the way back: the reader of erofs files is there)
 *
 *   fd 0   an erofs file
 *   fd 1   its layer archive
 *   fd 3   the result
 *
 * What comes back is believed for messages and counts alone; the file is hashed by the parent.
 */
#include "base/mem.h"

#define IMAGE_FRAME_MAX (1U << 20)
#define IMAGE_FRAME_END UINT32_MAX
#define IMAGE_RESULT_FD 3
#define IMAGE_SPOOL_FD 4

struct image_result {
	int32_t code; /* 0 or a negative errno */
	uint32_t layers;
	uint64_t entries;
	uint64_t bytes;   /* data of files */
	uint64_t devices; /* left out */
	uint64_t xattrs;  /* left out */
	char text[512];   /* of a failure; NUL-terminated */
};

#endif
