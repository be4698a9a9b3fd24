/*
 * A layer as an archive, from any bytes. Invariants: it ends, within its bounds, and what it writes is an
 * archive that the strict reader takes.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layer_out.h"
#include "wire/tar.h"

#define MAX_BYTES (4U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int entry(void *arg, const struct sb_tar_entry *e)
{
	(void)arg;
	if (e->path[0] == '/' || e->type == SB_TAR_CHR || e->type == SB_TAR_BLK)
		abort();
	return 0;
}

static int data_of(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return 0;
}

static int end_of(void *arg)
{
	(void)arg;
	return 0;
}

static const struct sb_tar_ops ops = { .entry = entry, .data = data_of, .end = end_of };

static int put(void *arg, const void *p, size_t len)
{
	return sb_tar_push(arg, p, len, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sb_autotar struct sb_tar *t = NULL;
	struct layer_out_sink to = { .put = put };
	struct sb_erofs fs;
	struct sb_err err = { 0 };
	int r;

	if (sb_erofs_open(data, size, &fs, NULL) != 0)
		return 0;
	if (sb_tar_new(&ops, NULL, &t) != 0)
		abort();
	to.arg = t;
	r = layer_out(&fs, 2000, MAX_BYTES, &to, &err);
	if (r == 0 && sb_tar_end(t, NULL) != 0)
		abort();
	if (r < 0 && err.code == 0) /* the reader has refused what was written */
		abort();
	return 0;
}
