#include "wire/tar_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK SB_TAR_OUT_BLOCK
#define NAME_MAX_USTAR 100
#define MAX_SIZE_USTAR 077777777777ULL
#define MAX_ID_USTAR 07777777U
#define MAX_PAX (4U << 20)

/* POSIX.1-2001, pax(1), "ustar Interchange Format" */
struct ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char chksum[8];
	char typeflag;
	char linkname[100];
	char magic[6];
	char version[2];
	char uname[32];
	char gname[32];
	char devmajor[8];
	char devminor[8];
	char prefix[155];
	char pad[12];
};
_Static_assert(sizeof(struct ustar) == BLOCK, "one block");

/* @room - 1 octal digits and a NUL; a value that is too large is told by a pax record. */
static void octal(char *to, size_t room, uint64_t v)
{
	to[room - 1] = '\0';
	for (size_t i = room - 1; i > 0; i--) {
		to[i - 1] = (char)('0' + (v & 7));
		v >>= 3;
	}
}

static void text(char *to, size_t room, const char *s)
{
	memcpy(to, s, SB_MIN(strlen(s), room));
}

static void put(struct sb_buf *out, struct ustar *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned int sum = 0;

	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	octal(h->devmajor, sizeof(h->devmajor), 0);
	octal(h->devminor, sizeof(h->devminor), 0);
	memset(h->chksum, ' ', sizeof(h->chksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	octal(h->chksum, 7, sum);
	sb_buf_add(out, h, sizeof(*h));
}

static size_t digits(size_t v)
{
	size_t n = 1;

	while (v >= 10) {
		v /= 10;
		n++;
	}
	return n;
}

/* "LEN key=value\n", where LEN counts itself. */
static void record(struct sb_buf *b, const char *key, const void *value, size_t len)
{
	size_t rest = strlen(key) + len + 3;
	size_t total = rest + digits(rest);

	if (digits(total) != digits(rest))
		total++;
	sb_buf_addf(b, "%zu %s=", total, key);
	sb_buf_add(b, value, len);
	sb_buf_add_u8(b, '\n');
}

static void number(struct sb_buf *b, const char *key, int64_t v)
{
	char s[24];
	int n = snprintf(s, sizeof(s), "%" PRId64, v);

	record(b, key, s, (size_t)SB_MAX(n, 0));
}

static bool is_ascii(const char *s)
{
	for (; s && *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

/* pax is UTF-8 unless it says otherwise; a file name is bytes. */
static void records(struct sb_buf *b, const struct sb_tar_out *e)
{
	bool long_path = strlen(e->path) + (e->type == SB_TAR_OUT_DIR) > NAME_MAX_USTAR;
	bool long_link = e->link && strlen(e->link) > NAME_MAX_USTAR;

	if ((long_path && !is_ascii(e->path)) || (long_link && !is_ascii(e->link)))
		record(b, "hdrcharset", "BINARY", 6);
	if (long_path)
		record(b, "path", e->path, strlen(e->path));
	if (long_link)
		record(b, "linkpath", e->link, strlen(e->link));
	if (e->size > MAX_SIZE_USTAR)
		number(b, "size", (int64_t)e->size);
	if (e->uid > MAX_ID_USTAR)
		number(b, "uid", e->uid);
	if (e->gid > MAX_ID_USTAR)
		number(b, "gid", e->gid);
	if (e->mtime_s < 0 || (uint64_t)e->mtime_s > MAX_SIZE_USTAR)
		number(b, "mtime", e->mtime_s);
	for (size_t i = 0; i < e->n_xattrs; i++) {
		char key[300];

		(void)snprintf(key, sizeof(key), "SCHILY.xattr.%.255s", e->xattrs[i].name);
		record(b, key, e->xattrs[i].value, e->xattrs[i].len);
	}
}

static void pad(struct sb_buf *out, size_t len)
{
	static const uint8_t zeros[BLOCK];

	if (len % BLOCK)
		sb_buf_add(out, zeros, BLOCK - len % BLOCK);
}

static int extended(struct sb_buf *out, const struct sb_tar_out *e)
{
	sb_autobuf struct sb_buf b = { 0 };
	struct ustar h = { .typeflag = 'x' };

	sb_buf_init(&b, MAX_PAX);
	records(&b, e);
	if (sb_buf_error(&b) < 0 || b.len == 0)
		return sb_buf_error(&b);
	text(h.name, sizeof(h.name), "PaxHeader");
	octal(h.mode, sizeof(h.mode), 0600);
	octal(h.uid, sizeof(h.uid), 0);
	octal(h.gid, sizeof(h.gid), 0);
	octal(h.size, sizeof(h.size), b.len);
	octal(h.mtime, sizeof(h.mtime), 0);
	put(out, &h);
	sb_buf_add(out, b.data, b.len);
	pad(out, b.len);
	return 0;
}

int sb_tar_out_header(struct sb_buf *out, const struct sb_tar_out *e)
{
	struct ustar h = { .typeflag = (char)e->type };
	int r = extended(out, e);

	if (r < 0)
		return r;
	text(h.name, sizeof(h.name), e->path);
	if (e->type == SB_TAR_OUT_DIR && strlen(e->path) < sizeof(h.name))
		h.name[strlen(e->path)] = '/';
	if (e->link)
		text(h.linkname, sizeof(h.linkname), e->link);
	octal(h.mode, sizeof(h.mode), e->mode & 07777);
	octal(h.uid, sizeof(h.uid), SB_MIN(e->uid, MAX_ID_USTAR));
	octal(h.gid, sizeof(h.gid), SB_MIN(e->gid, MAX_ID_USTAR));
	octal(h.size, sizeof(h.size),
	      e->type == SB_TAR_OUT_FILE ? SB_MIN(e->size, MAX_SIZE_USTAR) : 0);
	octal(h.mtime, sizeof(h.mtime), e->mtime_s < 0 ? 0 : (uint64_t)e->mtime_s);
	put(out, &h);
	return sb_buf_error(out);
}
