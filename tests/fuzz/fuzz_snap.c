/*
 * What lies in the store of snapshots: a folder, attributes, a manifest; the first byte chooses.
 * Invariant: what is read and written again is the same bytes, so there is one way to say each thing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/snap_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_equal(struct sb_buf *b, const uint8_t *p, size_t len)
{
	if (sb_buf_error(b) || b->len != len || (len > 0 && memcmp(b->data, p, len) != 0))
		abort();
}

static void tree(const uint8_t *p, size_t len)
{
	struct sb_snap_reader r;
	struct sb_snap_entry e;
	struct sb_buf b;
	int k = sb_snap_tree_open(&r, p, len);

	sb_buf_init(&b, len + 16);
	sb_snap_tree_start(&b);
	while (k == 0 && (k = sb_snap_tree_next(&r, &e)) == 1) {
		if (!sb_snap_name_ok(e.name, e.name_len) || !sb_snap_same(&e, &e))
			abort();
		sb_snap_tree_add(&b, &e);
		k = 0;
	}
	if (k == 0)
		must_equal(&b, p, len);
	sb_buf_done(&b);
}

static void xattrs(const uint8_t *p, size_t len)
{
	const uint8_t *value;
	struct sb_rd r;
	struct sb_buf b;
	char name[256];
	uint32_t n;
	int k = sb_snap_xattrs_open(&r, p, len);

	sb_buf_init(&b, len + 16);
	sb_snap_xattrs_start(&b);
	while (k == 0 && (k = sb_snap_xattrs_next(&r, name, &value, &n)) == 1) {
		sb_snap_xattrs_add(&b, name, value, n);
		k = 0;
	}
	if (k == 0)
		must_equal(&b, p, len);
	sb_buf_done(&b);
}

static void manifest(const uint8_t *p, size_t len)
{
	struct sb_snap_manifest m;
	struct sb_snap_group g;
	struct sb_rd at = { 0 };
	struct sb_buf b;
	uint32_t n = 0;

	if (sb_snap_manifest_parse(p, len, &m) < 0)
		return;
	while (sb_snap_group_next(&m, &at, &g) == 1) {
		n++;
		for (uint32_t i = 0; i < g.n; i++) {
			struct sb_snap_bytes path = sb_snap_group_path(&g);

			if (!sb_snap_path_ok(path.p, path.len))
				abort();
		}
	}
	if (n != m.n_groups)
		abort();
	sb_buf_init(&b, len + 16);
	sb_snap_manifest_write(&b, &m);
	must_equal(&b, p, len);
	sb_buf_done(&b);
}

static void sparse(const uint8_t *p, size_t len)
{
	struct sb_snap_extent x;
	uint64_t min = 0;
	uint32_t n;

	if (len < SB_SNAP_SPARSE_HEAD || sb_snap_sparse_count(p, &n) < 0)
		return;
	for (size_t at = SB_SNAP_SPARSE_HEAD; n > 0 && len - at >= 16; n--, at += 16) {
		if (sb_snap_sparse_extent(p + at, min, 1U << 30, &x) < 0)
			return;
		if (x.at < min || x.at + x.len > 1U << 30 || x.len == 0)
			abort();
		min = x.at + x.len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'T':
		tree(data + 1, size - 1);
		break;
	case 'X':
		xattrs(data + 1, size - 1);
		break;
	case 'M':
		manifest(data + 1, size - 1);
		break;
	case 'S':
		sparse(data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
