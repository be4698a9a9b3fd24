#include "image_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define EVERY_MS 200

void image_text_end(struct image_text *t)
{
	if (t->open)
		(void)fprintf(stderr, "\r\033[K");
	t->open = false;
}

void image_text_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
	struct image_text *t = arg;
	struct timespec now;
	uint64_t ms;

	if (t->quiet)
		return;
	if (done == 0 && total == 0) {
		image_text_end(t);
		cli_error("%s", what);
		return;
	}
	if (!isatty(STDERR_FILENO) || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return;
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (t->open && ms - t->last_ms < EVERY_MS)
		return;
	t->last_ms = ms;
	t->open = true;
	if (total > 0)
		(void)fprintf(stderr, "\r\033[Kimage: %s %" PRIu64 " of %" PRIu64 " MiB (%u %%)", what,
			      done >> 20, total >> 20, (unsigned int)(done / (total / 100 + 1)));
	else
		(void)fprintf(stderr, "\r\033[Kimage: %s %" PRIu64 " MiB", what, done >> 20);
	(void)fflush(stderr);
}
