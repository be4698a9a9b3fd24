#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/num.h"
#include "crypto/digest.h"
#include "restore_i.h"

void snap_tree_init(struct snap_tree *t, int fd, const char *path)
{
	sb_autodigest struct sb_digest *d = NULL;
	uint8_t hash[SB_SNAP_HASH];

	*t = (struct snap_tree){ .fd = fd, .path = path };
	if (sb_digest_new(&d) < 0)
		return; /* nothing works without it, and the store says so first */
	sb_digest_of(d, path, strlen(path), hash);
	sb_hex_write(hash, 16, t->key);
}

int snap_find(struct sb_snap_store *s, const char *prefix, uint8_t id[SB_SNAP_HASH], struct sb_err *err)
{
	uint8_t(*all)[SB_SNAP_HASH] = NULL;
	const size_t len = strlen(prefix);
	size_t n = 0;
	size_t found = 0;
	int r = sb_snap_store_list(s, &all, &n);

	if (r < 0)
		return sb_err_set(err, r, "store of snapshots: %s", strerror(-r));
	for (size_t i = 0; i < n; i++) {
		char hex[SB_PACK_NAME];

		sb_hex_write(all[i], SB_SNAP_HASH, hex);
		if (len < 4 || strncmp(hex, prefix, len) != 0)
			continue;
		memcpy(id, all[i], SB_SNAP_HASH);
		found++;
	}
	free(all);
	if (found == 1)
		return 0;
	return sb_err_set(err, -ENOENT, found == 0 ? "no snapshot \"%.80s\"; sendbox snapshot ls lists them, "
			  "4 digits of an id are enough"
						   : "several snapshots begin with \"%.80s\"", prefix);
}

int snap_load(struct sb_snap_store *s, const uint8_t *id, struct snap_loaded *ret, struct sb_err *err)
{
	char hex[SB_PACK_NAME];
	int r = sb_snap_store_load(s, id, &ret->m, &ret->bytes);

	if (r == 0) {
		memcpy(ret->id, id, SB_SNAP_HASH);
		return 0;
	}
	sb_hex_write(id, SB_SNAP_HASH, hex);
	return sb_err_set(err, r, "snapshot %.16s %s", hex,
			  r == -ENOENT    ? "is not there"
			  : r == -EBADMSG ? "is damaged; see sendbox snapshot verify"
			  : r == -EPROTONOSUPPORT ? "was written by a later sendbox"
						  : strerror(-r));
}

void snap_loaded_done(struct snap_loaded *l)
{
	free(l->bytes);
	l->bytes = NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct snap_loaded *x = a;
	const struct snap_loaded *y = b;

	if (x->m.time_ns != y->m.time_ns)
		return x->m.time_ns < y->m.time_ns ? -1 : 1;
	return memcmp(x->id, y->id, SB_SNAP_HASH);
}

int snap_load_all(struct sb_snap_store *s, struct snap_loaded **ret, size_t *ret_n,
		  sb_snap_damage_fn *bad, void *arg, struct sb_err *err)
{
	uint8_t(*ids)[SB_SNAP_HASH] = NULL;
	struct snap_loaded *v;
	size_t n = 0;
	size_t k = 0;
	int r = sb_snap_store_list(s, &ids, &n);

	if (r < 0)
		return sb_err_set(err, r, "store of snapshots: %s", strerror(-r));
	v = calloc(n + 1, sizeof(*v));
	for (size_t i = 0; v && r == 0 && i < n; i++) {
		struct sb_err e = { 0 };
		char hex[SB_PACK_NAME];

		r = snap_load(s, ids[i], &v[k], &e);
		if (r == 0) {
			k++;
			continue;
		}
		sb_hex_write(ids[i], SB_SNAP_HASH, hex);
		if (bad)
			bad(arg, hex, r == -EBADMSG ? "its bytes do not fit its id, or are no snapshot"
						    : e.text);
		if (r == -EBADMSG || r == -EPROTONOSUPPORT || r == -ENOENT)
			r = 0;
	}
	free(ids);
	if (!v || r < 0) {
		if (v)
			snap_loaded_free(v, k);
		return sb_err_set(err, v ? r : -ENOMEM, "store of snapshots: %s", strerror(v ? -r : ENOMEM));
	}
	qsort(v, k, sizeof(*v), by_time);
	*ret = v;
	*ret_n = k;
	return 0;
}

void snap_loaded_free(struct snap_loaded *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snap_loaded_done(&v[i]);
	free(v);
}

/* Length of the UTF-8 character at @p; 0: none, or one that should not be shown. */
static size_t utf8(const uint8_t *p, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80 ? 1 : (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3
			       : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7fU >> n);

	if (n == 0 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (n > 1 && (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
		return 0;
	/* controls of both kinds, marks of direction and other invisible ones */
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
	    (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x2069) || c == 0xfeff ||
	    (c >= 0xe0000 && c <= 0xe0fff))
		return 0;
	return n;
}

void snap_text(const uint8_t *p, size_t len, char *out, size_t cap)
{
	size_t at = 0;

	for (size_t i = 0; i < len && at + 5 < cap;) {
		size_t n = p[i] == '\\' ? 0 : utf8(p + i, len - i);

		if (n > 0) {
			memcpy(out + at, p + i, n);
			at += n;
			i += n;
		} else if (p[i] == '\\') {
			out[at++] = '\\';
			out[at++] = '\\';
			i++;
		} else {
			at += (size_t)snprintf(out + at, cap - at, "\\%03o", p[i]);
			i++;
		}
	}
	out[at] = '\0';
}

int snap_json_path(json_t *o, const char *key, const char *path)
{
	char text[SB_SNAP_PATH_MAX * 4 + 8];
	json_t *v = json_string(path);
	char more[40];

	if (v)
		return json_object_set_new(o, key, v) < 0 ? -ENOMEM : 0;
	/* bytes that are no text: as text for people, and as they are */
	snap_text((const uint8_t *)path, strlen(path), text, sizeof(text));
	(void)snprintf(more, sizeof(more), "%.20s_base64", key);
	if (json_object_set_new(o, key, json_string(text)) < 0)
		return -ENOMEM;
	sb_base64_write((const uint8_t *)path, strlen(path), text);
	return json_object_set_new(o, more, json_string(text)) < 0 ? -ENOMEM : 0;
}

int snap_put_json(FILE *out, json_t *o, const char *source)
{
	if (snap_json_path(o, "source", source) < 0 || json_dumpf(o, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 ||
	    fputc('\n', out) == EOF)
		return -EIO;
	return 0;
}

int snap_there(int root, const char *path)
{
	sb_autofd int fd = snap_open_beneath(root, *path ? path : ".", O_PATH | O_NOFOLLOW);

	return fd >= 0 || fd == -EACCES ? 0 : fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV ? -ENOENT : fd;
}
