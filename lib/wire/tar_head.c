/* Fields of a tar header and records of a pax header. */
#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "wire/tar_i.h"

static int bad(struct sb_err *err, const char *what)
{
	return sb_err_set(err, -EBADMSG, "%s", what);
}

static int base256(const uint8_t *p, size_t len, int64_t *ret)
{
	bool negative = (p[0] & 0x40) != 0;
	uint64_t v = negative ? UINT64_MAX : 0;

	for (size_t i = 0; i < len; i++) {
		uint8_t b = p[i];

		if (i == 0)
			b = negative ? (uint8_t)(b | 0x80) : (uint8_t)(b & 0x7f);
		if ((v >> 55) != (negative ? 0x1ffU : 0)) /* the next shift would lose bits */
			return -EINVAL;
		v = (v << 8) | b;
	}
	*ret = (int64_t)v;
	return 0;
}

static int octal(const uint8_t *p, size_t len, int64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		v = v * 8 + (uint64_t)(p[i] - '0'); /* 12 digits at most: 36 bits */
	for (; i < len; i++)
		if (p[i] != ' ' && p[i] != '\0')
			return -EINVAL;
	*ret = (int64_t)v;
	return 0;
}

static int number(const uint8_t *p, size_t len, int64_t *ret)
{
	return p[0] & 0x80 ? base256(p, len, ret) : octal(p, len, ret);
}

int tar_number(const uint8_t *p, size_t len, uint64_t *ret)
{
	int64_t v = 0;
	int r = number(p, len, &v);

	if (r < 0 || v < 0)
		return -EINVAL;
	*ret = (uint64_t)v;
	return 0;
}

int tar_checksum(const uint8_t *block, struct sb_err *err)
{
	uint64_t want = 0;
	uint64_t sum = 0;
	int64_t old = 0; /* some old writers summed signed bytes */

	for (size_t i = 0; i < SB_TAR_BLOCK; i++) {
		uint8_t b = i >= TAR_SUM && i < TAR_SUM + 8 ? ' ' : block[i];

		sum += b;
		old += (int8_t)b;
	}
	if (tar_number(block + TAR_SUM, 8, &want) < 0 || (want != sum && (int64_t)want != old))
		return bad(err, "this is no tar archive, or a damaged one: wrong checksum");
	return 0;
}

static int number32(const uint8_t *p, const char *what, uint32_t *ret, struct sb_err *err)
{
	uint64_t v = 0;

	if (tar_number(p, 8, &v) < 0 || v >= UINT32_MAX)
		return sb_err_set(err, -EBADMSG, "%s is no number in range", what);
	*ret = (uint32_t)v;
	return 0;
}

/* A string of a header field after a prefix (which may be empty). */
static int field_string(char *out, const uint8_t *prefix, size_t prefix_cap, const uint8_t *p,
			size_t cap)
{
	size_t a = strnlen((const char *)prefix, prefix_cap);
	size_t b = strnlen((const char *)p, cap);

	memcpy(out, prefix, a);
	if (a > 0)
		out[a++] = '/';
	memcpy(out + a, p, b);
	out[a + b] = '\0';
	return 0;
}

static int text_string(char *out, const char *p, size_t len, const char *what, struct sb_err *err)
{
	if (len == 0 || len > SB_TAR_MAX_PATH)
		return sb_err_set(err, -EBADMSG, "%s of %zu bytes, at most %u", what, len,
				  SB_TAR_MAX_PATH);
	if (memchr(p, '\0', len))
		return sb_err_set(err, -EBADMSG, "%s with a NUL byte", what);
	memcpy(out, p, len);
	out[len] = '\0';
	return 0;
}

static int decimal(const char *p, size_t len, uint64_t max, uint64_t *ret)
{
	char text[24];

	if (len == 0 || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, p, len);
	text[len] = '\0';
	return sb_num_u64(text, 0, max, ret);
}

/* [-]SECONDS[.FRACTION] */
static int pax_time(const char *p, size_t len, int64_t *ret, uint32_t *ret_nsec)
{
	bool negative = len > 0 && p[0] == '-';
	const char *dot;
	uint64_t s = 0;
	uint32_t nsec = 0;
	uint32_t unit = 100000000;

	if (negative) {
		p++;
		len--;
	}
	dot = memchr(p, '.', len);
	if (decimal(p, dot ? (size_t)(dot - p) : len, INT64_MAX / 2, &s) < 0)
		return -EINVAL;
	for (const char *q = dot ? dot + 1 : p + len; q < p + len; q++, unit /= 10) {
		if (*q < '0' || *q > '9')
			return -EINVAL;
		nsec += (uint32_t)(*q - '0') * unit; /* unit 0: too fine to keep */
	}
	*ret = negative ? -(int64_t)s : (int64_t)s;
	if (negative && nsec > 0) {
		*ret -= 1;
		nsec = 1000000000 - nsec;
	}
	*ret_nsec = nsec;
	return 0;
}

#define KEY_IS(lit) (key_len == sizeof(lit) - 1 && memcmp(key, lit, key_len) == 0)
#define KEY_STARTS(lit) (key_len > sizeof(lit) - 1 && memcmp(key, lit, sizeof(lit) - 1) == 0)

static int add_xattr(struct sb_tar_entry *e, struct sb_tar_xattr *xattrs, const char *name,
		     size_t name_len, const char *value, size_t value_len, struct sb_err *err)
{
	for (size_t i = 0; i < e->n_xattrs; i++)
		if (xattrs[i].name_len == name_len && memcmp(xattrs[i].name, name, name_len) == 0)
			return bad(err, "one extended attribute twice");
	if (e->n_xattrs == SB_TAR_MAX_XATTRS)
		return sb_err_set(err, -EBADMSG, "more than %u extended attributes",
				  SB_TAR_MAX_XATTRS);
	if (memchr(name, '\0', name_len) || name_len > 255)
		return bad(err, "an extended attribute's name is too long or holds a NUL byte");
	if (value_len > UINT16_MAX)
		return bad(err, "an extended attribute of more than 65535 bytes");
	xattrs[e->n_xattrs++] = (struct sb_tar_xattr){ .name = name,
						       .name_len = name_len,
						       .value = (const uint8_t *)value,
						       .value_len = value_len };
	return 0;
}

struct pax {
	struct sb_tar *t;
	struct sb_tar_entry *e;
	struct sb_tar_xattr *xattrs;
	bool size;
	bool path;
	bool link;
};

static int pax_id(const char *value, size_t len, const char *what, uint32_t *ret, struct sb_err *err)
{
	uint64_t v = 0;

	if (decimal(value, len, UINT32_MAX - 1, &v) < 0)
		return sb_err_set(err, -EBADMSG, "%s is no number in range", what);
	*ret = (uint32_t)v;
	return 0;
}

static int pax_record(struct pax *x, const char *key, size_t key_len, const char *value, size_t len,
		      struct sb_err *err)
{
	if (KEY_IS("path")) {
		x->path = true;
		return text_string(x->t->path, value, len, "a name", err);
	}
	if (KEY_IS("linkpath")) {
		x->link = true;
		return text_string(x->t->link, value, len, "the target of a link", err);
	}
	if (KEY_IS("uid"))
		return pax_id(value, len, "the owner", &x->e->uid, err);
	if (KEY_IS("gid"))
		return pax_id(value, len, "the group", &x->e->gid, err);
	if (KEY_IS("mtime"))
		return pax_time(value, len, &x->e->mtime, &x->e->mtime_nsec) < 0 ?
			       bad(err, "the time is no number") : 0;
	if (KEY_IS("size")) {
		x->size = true;
		return decimal(value, len, INT64_MAX, &x->e->size) < 0 ?
			       bad(err, "the size is no number") : 0;
	}
	if (KEY_STARTS("GNU.sparse."))
		return bad(err, "a sparse file, which is not taken");
	if (KEY_STARTS("SCHILY.xattr."))
		return add_xattr(x->e, x->xattrs, key + sizeof("SCHILY.xattr.") - 1,
				 key_len - (sizeof("SCHILY.xattr.") - 1), value, len, err);
	return 0; /* times of access, names of owners, comments */
}

/* "LEN KEY=VALUE\n", LEN counts itself and the newline */
static int pax_records(struct pax *x, const char *p, size_t len, struct sb_err *err)
{
	while (len > 0) {
		const char *blank = memchr(p, ' ', SB_MIN(len, (size_t)8));
		const char *eq;
		uint64_t n = 0;
		int r;

		if (!blank || decimal(p, (size_t)(blank - p), len, &n) < 0 ||
		    n < (size_t)(blank - p) + 3 || p[n - 1] != '\n')
			return bad(err, "a pax record is malformed");
		blank++;
		eq = memchr(blank, '=', (size_t)(p + n - 1 - blank));
		if (!eq || eq == blank)
			return bad(err, "a pax record without a key");
		r = pax_record(x, blank, (size_t)(eq - blank), eq + 1, (size_t)(p + n - 1 - eq - 1), err);
		if (r < 0)
			return r;
		p += n;
		len -= n;
	}
	return 0;
}

static int entry_type(struct sb_tar_entry *e, uint8_t type, const char *path, struct sb_err *err)
{
	size_t len = strlen(path);

	switch (type) {
	case '\0':
	case '0':
	case '7':
		/* before POSIX a directory was a file whose name ends with a slash */
		e->type = len > 0 && path[len - 1] == '/' ? SB_TAR_DIR : SB_TAR_REG;
		return 0;
	case '1':
		e->type = SB_TAR_HARD_LINK;
		return 0;
	case '2':
		e->type = SB_TAR_SYMLINK;
		return 0;
	case '3':
		e->type = SB_TAR_CHR;
		return 0;
	case '4':
		e->type = SB_TAR_BLK;
		return 0;
	case '5':
		e->type = SB_TAR_DIR;
		return 0;
	case '6':
		e->type = SB_TAR_FIFO;
		return 0;
	case 'S':
		return bad(err, "a sparse file, which is not taken");
	default:
		return sb_err_set(err, -EBADMSG, "an entry of unknown type 0x%02x", type);
	}
}

/* The kernel's and GNU's long name end with NULs, which are not part of it. */
static int long_name(const struct tar_text *x, char *out, const char *what, struct sb_err *err)
{
	size_t len = x->len;

	while (len > 0 && x->p[len - 1] == '\0')
		len--;
	return text_string(out, x->p, len, what, err);
}

static int names(struct pax *x, struct sb_err *err)
{
	struct sb_tar *t = x->t;
	bool posix = memcmp(t->block + TAR_MAGIC, "ustar", 6) == 0;
	int r = 0;

	if (!x->path && t->texts[TAR_TEXT_NAME].p)
		r = long_name(&t->texts[TAR_TEXT_NAME], t->path, "a name", err);
	else if (!x->path)
		r = field_string(t->path, t->block + TAR_PREFIX, posix ? 155 : 0,
				 t->block + TAR_NAME, 100);
	if (r == 0 && !x->link && t->texts[TAR_TEXT_LINK].p)
		r = long_name(&t->texts[TAR_TEXT_LINK], t->link, "the target of a link", err);
	else if (r == 0 && !x->link)
		r = field_string(t->link, t->block, 0, t->block + TAR_LINK, 100);
	if (r == 0 && t->path[0] == '\0')
		return bad(err, "an entry without a name");
	return r;
}

int tar_entry(struct sb_tar *t, struct sb_tar_entry *e, struct sb_tar_xattr *xattrs,
	      struct sb_err *err)
{
	struct pax x = { .t = t, .e = e, .xattrs = xattrs };
	const uint8_t *b = t->block;
	uint32_t mode = 0;
	uint64_t size = 0;
	int r = number32(b + TAR_MODE, "the mode", &mode, err);

	if (r == 0)
		r = number32(b + TAR_UID, "the owner", &e->uid, err);
	if (r == 0)
		r = number32(b + TAR_GID, "the group", &e->gid, err);
	if (r == 0 && number(b + TAR_MTIME, 12, &e->mtime) < 0)
		r = bad(err, "the time is no number");
	if (r == 0 && t->texts[TAR_TEXT_PAX].p)
		r = pax_records(&x, t->texts[TAR_TEXT_PAX].p, t->texts[TAR_TEXT_PAX].len, err);
	if (r == 0 && tar_number(b + TAR_SIZE, 12, &size) < 0)
		r = bad(err, "the size is no number");
	if (r == 0)
		r = names(&x, err);
	if (r == 0)
		r = entry_type(e, b[TAR_TYPE], t->path, err);
	if (r == 0 && (e->type == SB_TAR_CHR || e->type == SB_TAR_BLK)) {
		r = number32(b + TAR_MAJOR, "the device", &e->major, err);
		if (r == 0)
			r = number32(b + TAR_MINOR, "the device", &e->minor, err);
	}
	if (r < 0)
		return r;
	if (!x.size)
		e->size = size;
	if (e->type != SB_TAR_REG)
		e->size = 0; /* as other readers do: such entries have no data */
	else if (e->size > INT64_MAX - SB_TAR_BLOCK)
		return bad(err, "the size is out of range");
	if (e->type != SB_TAR_HARD_LINK && e->type != SB_TAR_SYMLINK)
		t->link[0] = '\0';
	else if (t->link[0] == '\0')
		return bad(err, "a link without a target");
	e->path = t->path;
	e->link = t->link;
	e->mode = (uint16_t)(mode & 07777);
	e->xattrs = xattrs;
	return 0;
}
