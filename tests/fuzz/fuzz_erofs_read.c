/*
 * The EROFS reader: whatever the bytes say, every answer lies within them, a walk that is bounded
 * in steps ends, and what a directory lists is found again by name as long as its names are sorted
 * (which a look-up may take for granted).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "erofs/read.h"

#define STEPS 4000U

static void must(bool ok)
{
	if (!ok)
		abort();
}

struct walk {
	struct sb_erofs fs;
	const uint8_t *p;
	size_t len;
	unsigned int left;
	uint32_t sum;
};

static void touch(struct walk *w, const uint8_t *p, size_t len)
{
	must(p >= w->p && len <= w->len && (size_t)(p - w->p) <= w->len - len);
	w->sum += (uint32_t)p[0] + p[len / 2] + p[len - 1];
}

static void data(struct walk *w, const struct sb_erofs_node *n)
{
	uint64_t at = 0;
	int runs = 0;

	while (at < n->size) {
		const uint8_t *p = NULL;
		size_t len = sb_erofs_span(&w->fs, n, at, &p);

		must(len > 0 && len <= n->size - at && ++runs <= 2);
		touch(w, p, len);
		at += len;
	}
	must(sb_erofs_span(&w->fs, n, n->size, &(const uint8_t *){ NULL }) == 0);
}

static void xattrs(struct walk *w, const struct sb_erofs_node *n)
{
	uint64_t pos = 0;
	struct sb_erofs_xattr x;
	int r;

	while (w->left > 0 && (r = sb_erofs_xattr(&w->fs, n, &pos, &x)) > 0) {
		struct sb_erofs_xattr again;

		w->left--;
		if (r == 2)
			continue;
		must(strnlen(x.name, sizeof(x.name)) < sizeof(x.name));
		if (x.len > 0)
			touch(w, x.value, x.len);
		must(sb_erofs_xattr_get(&w->fs, n, x.name, &again) == 0);
	}
}

static int compare(const struct sb_erofs_entry *a, const char *b, size_t b_len)
{
	int c = memcmp(a->name, b, SB_MIN(a->name_len, b_len));

	return c ? c : (a->name_len > b_len) - (a->name_len < b_len);
}

static void visit(struct walk *w, uint64_t nid, int depth);

/* Whether every name stands in its order. */
static bool is_sorted(struct walk *w, const struct sb_erofs_node *n)
{
	char last[SB_EROFS_NAME_MAX];
	size_t last_len = 0;
	struct sb_erofs_entry e;
	uint64_t pos = 0;
	int r;

	while ((r = sb_erofs_next(&w->fs, n, &pos, &e)) == 1) {
		if (w->left == 0 || (last_len > 0 && compare(&e, last, last_len) <= 0))
			return false;
		w->left--;
		memcpy(last, e.name, e.name_len);
		last_len = e.name_len;
	}
	return r == 0;
}

static void directory(struct walk *w, const struct sb_erofs_node *n, int depth)
{
	struct sb_erofs_entry e;
	bool sorted = is_sorted(w, n);
	uint64_t pos = 0;

	while (w->left > 0 && sb_erofs_next(&w->fs, n, &pos, &e) == 1) {
		struct sb_erofs_entry found;
		int r = sb_erofs_lookup(&w->fs, n, e.name, e.name_len, &found);

		w->left--;
		touch(w, (const uint8_t *)e.name, e.name_len);
		must(!sorted || (r == 0 && found.nid == e.nid));
		if (e.name[0] != '.')
			visit(w, e.nid, depth + 1);
	}
}

static void visit(struct walk *w, uint64_t nid, int depth)
{
	struct sb_erofs_node n;
	struct sb_erofs_entry e;

	if (depth > 16 || w->left == 0 || sb_erofs_node(&w->fs, nid, &n) < 0)
		return;
	w->left--;
	must(n.nid == nid);
	xattrs(w, &n);
	data(w, &n);
	if (S_ISDIR(n.mode))
		directory(w, &n, depth);
	else
		must(sb_erofs_lookup(&w->fs, &n, "a", 1, &e) == -ENOTDIR);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct walk w = { .len = size, .left = STEPS };
	uint8_t *copy = malloc(size + (size == 0));
	const char *why = NULL;

	must(copy != NULL);
	if (size)
		memcpy(copy, bytes, size);
	w.p = copy;
	if (sb_erofs_open(copy, size, &w.fs, &why) < 0) {
		must(why != NULL);
		/* once more without the checksum, which no mutation gets right */
		if (size > SB_EROFS_SUPER_OFFSET + 8)
			copy[SB_EROFS_SUPER_OFFSET + 8] &= (uint8_t)~SB_EROFS_COMPAT_CHECKSUM;
		if (sb_erofs_open(copy, size, &w.fs, &why) < 0) {
			free(copy);
			return 0;
		}
	}
	must(w.fs.len <= size);
	visit(&w, w.fs.root, 0);
	for (uint64_t nid = 0; nid < 64; nid++)
		visit(&w, nid, 16);
	free(copy);
	return (int)(w.sum & 0);
}
