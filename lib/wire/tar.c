/*
 * Theory of operation. Blocks of 512 bytes. States:
 *
 *   HEADER   collecting a header block
 *   EXTEND   collecting the text of a pax header or of a GNU long name (bounded)
 *   SKIP     passing over the text of a global header or a volume label
 *   DATA     handing out the data of a file
 *   PAD      passing over the rest of the last block
 *   ZERO     one block of zeroes was seen, the second one has to follow
 *   DONE     the end marker was seen; what follows is padding and not looked at
 *
 * The one who wrote the archive controls every byte. Sizes are bounded before anything is
 * allocated; an extended header is kept only until the entry it describes was handed out.
 */
#include "wire/tar.h"

#include <errno.h>
#include <string.h>

#include "wire/tar_i.h"

struct sb_tar *sb_tar_free(struct sb_tar *t)
{
	if (t) {
		for (size_t i = 0; i < TAR_N_TEXTS; i++)
			free(t->texts[i].p);
		free(t);
	}
	return NULL;
}

int sb_tar_new(const struct sb_tar_ops *ops, void *arg, struct sb_tar **ret)
{
	struct sb_tar *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->ops = *ops;
	t->arg = arg;
	*ret = t;
	return 0;
}

static int start_text(struct sb_tar *t, enum tar_text_kind kind, uint64_t size, struct sb_err *err)
{
	struct tar_text *x = &t->texts[kind];

	if (size == 0 || size > SB_TAR_MAX_EXTENDED)
		return sb_err_set(err, -EBADMSG, "an extended header of %llu bytes, at most %u",
				  (unsigned long long)size, SB_TAR_MAX_EXTENDED);
	if (x->p)
		return sb_err_set(err, -EBADMSG, "two extended headers of one kind in a row");
	x->p = malloc((size_t)size + 1);
	if (!x->p)
		return -ENOMEM;
	x->len = 0;
	x->want = (size_t)size;
	t->kind = kind;
	t->state = TAR_EXTEND;
	t->left = size;
	t->pad = (0 - size) & (SB_TAR_BLOCK - 1);
	return 0;
}

static void drop_texts(struct sb_tar *t)
{
	for (size_t i = 0; i < TAR_N_TEXTS; i++) {
		free(t->texts[i].p);
		t->texts[i] = (struct tar_text){ 0 };
	}
}

static int start_entry(struct sb_tar *t, struct sb_err *err)
{
	struct sb_tar_entry e = { 0 };
	struct sb_tar_xattr xattrs[SB_TAR_MAX_XATTRS];
	int r = tar_entry(t, &e, xattrs, err);

	if (r < 0)
		return r;
	r = t->ops.entry(t->arg, &e);
	drop_texts(t);
	if (r < 0)
		return r;
	t->is_file = e.type == SB_TAR_REG;
	t->left = e.size;
	t->pad = (0 - e.size) & (SB_TAR_BLOCK - 1);
	t->state = TAR_DATA;
	return 0;
}

static bool all_zero(const uint8_t *p)
{
	for (size_t i = 0; i < SB_TAR_BLOCK; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static int zero_block(struct sb_tar *t, struct sb_err *err)
{
	for (size_t i = 0; i < TAR_N_TEXTS; i++)
		if (t->texts[i].p)
			return sb_err_set(err, -EBADMSG, "an extended header without its entry");
	t->state = t->state == TAR_ZERO ? TAR_DONE : TAR_ZERO;
	return 0;
}

static int header(struct sb_tar *t, struct sb_err *err)
{
	uint64_t size = 0;
	int r;

	t->have = 0;
	if (all_zero(t->block))
		return zero_block(t, err);
	if (t->state == TAR_ZERO)
		return sb_err_set(err, -EBADMSG, "an entry after a block of zeroes");
	r = tar_checksum(t->block, err);
	if (r < 0)
		return r;
	switch (t->block[TAR_TYPE]) {
	case 'x':
	case 'L':
	case 'K':
	case 'g':
	case 'V':
		r = tar_number(t->block + TAR_SIZE, 12, &size);
		if (r < 0)
			return sb_err_set(err, -EBADMSG, "the size of an extended header is no number");
		break;
	default:
		return start_entry(t, err);
	}
	if (t->block[TAR_TYPE] == 'x')
		return start_text(t, TAR_TEXT_PAX, size, err);
	if (t->block[TAR_TYPE] == 'L')
		return start_text(t, TAR_TEXT_NAME, size, err);
	if (t->block[TAR_TYPE] == 'K')
		return start_text(t, TAR_TEXT_LINK, size, err);
	if (size > SB_TAR_MAX_EXTENDED)
		return sb_err_set(err, -EBADMSG, "a global header of %llu bytes, at most %u",
				  (unsigned long long)size, SB_TAR_MAX_EXTENDED);
	t->state = TAR_SKIP;
	t->left = size;
	t->pad = (0 - size) & (SB_TAR_BLOCK - 1);
	return 0;
}

/* The body of something came to its end. */
static int body_done(struct sb_tar *t)
{
	int r = 0;

	if (t->state == TAR_DATA && t->is_file)
		r = t->ops.end(t->arg);
	if (t->state == TAR_EXTEND)
		t->texts[t->kind].p[t->texts[t->kind].len] = '\0';
	t->is_file = false;
	t->state = t->pad ? TAR_PAD : TAR_HEADER;
	t->left = t->pad;
	t->pad = 0;
	return r;
}

static int body(struct sb_tar *t, const uint8_t *p, size_t len)
{
	struct tar_text *x = &t->texts[t->kind];

	t->left -= len;
	if (t->state == TAR_EXTEND) {
		sb_assert(x->len + len <= x->want);
		memcpy(x->p + x->len, p, len);
		x->len += len;
	} else if (t->state == TAR_DATA && len > 0) {
		return t->ops.data(t->arg, p, len);
	}
	return 0;
}

static bool in_body(const struct sb_tar *t)
{
	return t->state == TAR_EXTEND || t->state == TAR_SKIP || t->state == TAR_DATA ||
	       t->state == TAR_PAD;
}

int sb_tar_push(struct sb_tar *t, const uint8_t *p, size_t len, struct sb_err *err)
{
	int r = 0;

	while (r == 0 && t->state != TAR_DONE) {
		size_t n = SB_TAR_BLOCK - t->have;

		if (in_body(t)) {
			n = t->left < len ? (size_t)t->left : len;
			r = body(t, p, n);
			p += n;
			len -= n;
			if (r == 0 && t->left == 0)
				r = body_done(t);
			else if (len == 0)
				break;
			continue;
		}
		if (len == 0)
			break;
		n = SB_MIN(n, len);
		memcpy(t->block + t->have, p, n);
		t->have += n;
		p += n;
		len -= n;
		if (t->have == SB_TAR_BLOCK)
			r = header(t, err);
	}
	return r;
}

int sb_tar_end(const struct sb_tar *t, struct sb_err *err)
{
	if (t->state == TAR_DONE || (t->state == TAR_ZERO && t->have == 0))
		return 0;
	return sb_err_set(err, -EBADMSG, in_body(t) || t->have > 0 ?
						 "cut off in the middle of an entry" :
						 "cut off: there is no end marker");
}

bool sb_tar_between(const struct sb_tar *t)
{
	for (size_t i = 0; i < TAR_N_TEXTS; i++)
		if (t->texts[i].p)
			return false;
	return t->state == TAR_HEADER && t->have == 0;
}
