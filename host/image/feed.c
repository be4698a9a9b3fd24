/*
 * libarchive unpacks gzip and zstd (format "raw": it sees one file and no archive); tar is read by
 * lib/wire/tar.c, because libarchive changes names between character sets and lets pass what must
 * be refused here.
 */
#include "image/feed.h"

#include <archive.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "image/helper.h"

struct feed {
	struct image_merge *m;
	int fd;
	uint64_t packed; /* bytes of this layer so far */
	bool layer_end;
	int error;
	uint8_t *buf;    /* IMAGE_FRAME_MAX */
};

/* Return: bytes in the buffer; 0 at the end of the layer, IMAGE_FRAME_END at the end of all. */
static int frame(struct feed *f, uint32_t *ret)
{
	uint32_t len = 0;
	int r = sb_fd_read_all(f->fd, &len, sizeof(len));

	len = le32toh(len);
	if (r == 0 && len != IMAGE_FRAME_END && len > IMAGE_FRAME_MAX)
		r = -EPROTO;
	if (r == 0 && len > 0 && len != IMAGE_FRAME_END)
		r = sb_fd_read_all(f->fd, f->buf, len);
	if (r < 0)
		return image_merge_fail(f->m, r, "the layers stopped coming");
	*ret = len;
	return 0;
}

static la_ssize_t give(struct archive *a, void *arg, const void **ret)
{
	struct feed *f = arg;
	uint32_t len = 0;

	(void)a;
	if (f->layer_end)
		return 0;
	f->error = frame(f, &len);
	if (f->error == 0 && len == IMAGE_FRAME_END)
		f->error = image_merge_fail(f->m, -EPROTO, "the layers stopped coming");
	if (f->error < 0)
		return -1;
	f->layer_end = len == 0;
	f->packed += len;
	*ret = f->buf;
	return (la_ssize_t)len;
}

static void archive_freep(struct archive **a)
{
	if (*a)
		(void)archive_read_free(*a);
}

static int unpack_fail(struct feed *f, struct archive *a)
{
	const char *text = archive_error_string(a);

	if (f->error < 0)
		return f->error;
	return image_merge_fail(f->m, -EBADMSG, "cannot be unpacked: %s", text ? text : "no reason");
}

static int check_ratio(struct feed *f, uint64_t unpacked)
{
	const struct image_limits *l = f->m->limits;

	if (unpacked <= l->free_ratio || (unpacked - l->free_ratio) / l->max_ratio <= f->packed)
		return 0;
	return image_merge_fail(f->m, -EBADMSG,
				"it unpacks to more than %u times its size: a decompression bomb",
				l->max_ratio);
}

static int blocks(struct feed *f, struct archive *a, struct sb_tar *t)
{
	uint64_t total = 0;

	for (;;) {
		const void *p = NULL;
		size_t len = 0;
		la_int64_t at = 0;
		int r = archive_read_data_block(a, &p, &len, &at);

		if (r == ARCHIVE_EOF)
			return image_merge_end(f->m, t);
		if (r != ARCHIVE_OK)
			return unpack_fail(f, a);
		total += len;
		r = check_ratio(f, total);
		if (r == 0)
			r = image_merge_push(f->m, t, p, len);
		if (r < 0)
			return r;
	}
}

static int layer(struct feed *f)
{
	SB_CLEANUP(archive_freep) struct archive *a = archive_read_new();
	sb_autotar struct sb_tar *t = NULL;
	struct archive_entry *e;
	int r;

	if (!a || archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    archive_read_support_format_raw(a) != ARCHIVE_OK)
		return image_merge_fail(f->m, -ENOMEM, "libarchive does not work");
	r = image_merge_layer(f->m, &t);
	if (r < 0)
		return r;
	if (archive_read_open(a, f, NULL, give, NULL) != ARCHIVE_OK ||
	    archive_read_next_header(a, &e) != ARCHIVE_OK)
		return unpack_fail(f, a);
	r = blocks(f, a, t);
	while (r == 0 && !f->layer_end) { /* behind the end of the packed data */
		uint32_t len = 0;

		r = frame(f, &len);
		if (r == 0 && len == IMAGE_FRAME_END)
			r = image_merge_fail(f->m, -EPROTO, "the layers stopped coming");
		f->layer_end = len == 0;
	}
	return r;
}

int image_feed(struct image_merge *m, int fd)
{
	sb_autofree uint8_t *buf = malloc(IMAGE_FRAME_MAX);
	int r = 0;

	if (!buf)
		return image_merge_fail(m, -ENOMEM, "no memory");
	for (;;) {
		struct feed f = { .m = m, .fd = fd, .buf = buf };
		uint32_t more = 0;

		/* a frame of length 0 before each layer, END after the last */
		r = frame(&f, &more);
		if (r < 0 || more == IMAGE_FRAME_END)
			return r;
		if (more != 0)
			return image_merge_fail(m, -EPROTO, "the layers stopped coming");
		r = layer(&f);
		if (r < 0)
			return r;
	}
}
