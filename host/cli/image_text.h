#ifndef SB_HOST_CLI_IMAGE_TEXT_H
#define SB_HOST_CLI_IMAGE_TEXT_H
/* What is told while an image is fetched: lines on stderr; on a terminal also how far it is. */
#include "base/mem.h"

struct image_text {
	bool quiet;
	bool open;        /* a line that is written over stands there */
	uint64_t last_ms; /* when it was written */
};
/* For struct image_want.progress, with a struct image_text as its argument. */
void image_text_progress(void *arg, const char *what, uint64_t done, uint64_t total);
/* Ends an open line. */
void image_text_end(struct image_text *t);

#endif
