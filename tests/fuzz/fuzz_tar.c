/*
 * An archive as one layer, and twice as an image. Invariants: link counts are what the tree says,
 * the output is whole blocks, and no more entries exist than were charged.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A fuzzer does not find checksums by itself. */
static void seal(uint8_t *p, size_t len)
{
	for (size_t at = 0; at + 512 <= len; at += 512) {
		unsigned int sum = 0;

		if (memcmp(p + at + 257, "ustar", 5) != 0)
			continue;
		memset(p + at + 148, ' ', 8);
		for (size_t i = 0; i < 512; i++)
			sum += p[at + i];
		for (size_t i = 0; i < 6; i++)
			p[at + 153 - i] = (uint8_t)('0' + ((sum >> (3 * i)) & 7));
		p[at + 154] = '\0';
	}
}

static void check_tree(const struct image_merge *m)
{
	uint64_t live = 0;

	for (struct sb_erofs_entry *e = m->tree.root; e; e = sb_erofs_walk(m->tree.root, e)) {
		uint32_t dirs = 0;

		live++;
		if (e->inode->nlink == 0 || (e != m->tree.root && e->name_len == 0))
			abort();
		for (const struct sb_erofs_entry *c = e->child; c; c = c->next) {
			dirs += S_ISDIR(c->inode->mode);
			if (c->parent != e || (c->next && c->next->prev != c))
				abort();
		}
		if (e->child && !S_ISDIR(e->inode->mode))
			abort();
		if (S_ISDIR(e->inode->mode) && e->inode->nlink != 2 + dirs)
			abort();
	}
	if (live != m->tree.n_live || live > m->limits->max_entries)
		abort();
}

static void run(enum image_mode mode, unsigned int layers, const uint8_t *p, size_t len, int out,
		int spool)
{
	static const struct image_limits limits = { .max_entries = 2000, .max_bytes = 1 << 20,
						    .max_memory = 4 << 20 };
	struct image_merge m;
	int r;

	if (ftruncate(out, 0) < 0 || ftruncate(spool, 0) < 0 ||
	    image_merge_init(&m, mode, &limits, out, spool, NULL) < 0)
		return;
	r = 0;
	for (unsigned int i = 0; r == 0 && i < layers; i++) {
		sb_autotar struct sb_tar *t = NULL;

		r = image_merge_layer(&m, &t);
		if (r == 0)
			r = image_merge_push(&m, t, p, len);
		if (r == 0)
			r = image_merge_end(&m, t);
	}
	check_tree(&m);
	if (r == 0 && image_merge_finish(&m) == 0 && sb_erofs_size(m.w) % 4096 != 0)
		abort();
	image_merge_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int out = -1;
	static int spool = -1;
	uint8_t *copy;

	if (out < 0) {
		out = memfd_create("out", MFD_CLOEXEC);
		spool = memfd_create("spool", MFD_CLOEXEC);
	}
	if (size < 2 || size > 65536)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	seal(copy, size);
	run(IMAGE_MODE_LAYER, 1, copy, size, out, spool);
	run(IMAGE_MODE_IMAGE, 2, copy, size, out, spool);
	free(copy);
	return 0;
}
