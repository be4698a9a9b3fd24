#include "image/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "image/build.h"

#define PIECE (256U << 10)

const char *image_arch(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#else
#error "name this machine as images do"
#endif
}

static void digest_text(const uint8_t sha[32], char ret[72])
{
	memcpy(ret, "sha256:", 7);
	sb_hex_write(sha, 32, ret + 7);
}

void image_digest(const void *p, size_t len, char ret[72])
{
	uint8_t sha[32];

	sb_sha256(p, len, sha);
	digest_text(sha, ret);
}

static int open_blob(const struct image_blobs *b, const struct oci_blob *want, int *ret,
		     struct sb_err *err)
{
	sb_autofd int fd = -1;
	char name[100];
	struct stat st;

	if (b->archive)
		return image_archive_blob(b->archive, want, ret, err);
	(void)snprintf(name, sizeof(name), "%s%.64s", b->layout ? "blobs/sha256/" : "",
		       want->digest + 7);
	fd = openat(b->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "blob %.20s...: %s", want->digest, strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != want->size)
		return sb_err_set(err, -EBADMSG,
				  "blob %.20s...: %" PRIu64 " bytes, the manifest says %" PRIu64,
				  want->digest, (uint64_t)st.st_size, want->size);
	*ret = sb_fd_take(&fd);
	return 0;
}

static int compare(const struct oci_blob *want, const uint8_t sha[32], struct sb_err *err)
{
	char got[72];

	digest_text(sha, got);
	if (strcmp(got, want->digest) == 0)
		return 0;
	return sb_err_set(err, -EBADMSG, "blob %.20s...: its content has the digest %.20s...",
			  want->digest, got);
}

int image_blob_read(const struct image_blobs *b, const struct oci_blob *want, char **ret,
		    struct sb_err *err)
{
	sb_autofree char *text = NULL;
	sb_autofd int fd = -1;
	uint8_t sha[32];
	int r;

	if (want->size > OCI_MAX_DOCUMENT)
		return sb_err_set(err, -EBADMSG, "a document of more than 4 MiB");
	r = open_blob(b, want, &fd, err);
	if (r < 0)
		return r;
	text = malloc((size_t)want->size + 1);
	if (!text)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = sb_fd_read_all(fd, text, (size_t)want->size);
	if (r < 0)
		return sb_err_set(err, r, "blob %.20s...: %s", want->digest, strerror(-r));
	text[want->size] = '\0';
	sb_sha256(text, (size_t)want->size, sha);
	r = compare(want, sha, err);
	if (r == 0)
		*ret = sb_take(&text);
	return r;
}

struct feed {
	const struct image_want *w;
	struct image_build *b;
	uint8_t *buf; /* PIECE */
	uint64_t done;
	uint64_t total;
};

static int feed_blob(struct feed *f, int fd, const struct oci_blob *want, struct sb_err *err)
{
	struct sb_sha256 s;
	uint64_t left = want->size;
	uint8_t sha[32];
	int r = image_build_begin(f->b, err);

	sb_sha256_start(&s);
	while (r == 0 && left > 0) {
		size_t n = (size_t)SB_MIN(left, (uint64_t)PIECE);

		r = sb_fd_read_all(fd, f->buf, n);
		if (r < 0)
			return sb_err_set(err, r == -ENODATA ? -EBADMSG : r,
					  "blob %.20s...: it became shorter", want->digest);
		/* the helper unpacks on while this one hashes */
		r = image_build_add(f->b, f->buf, n, err);
		sb_sha256_add(&s, f->buf, n);
		left -= n;
		f->done += n;
		if (f->w->progress)
			f->w->progress(f->w->arg, "unpacking", f->done, f->total);
	}
	if (r == 0)
		r = image_build_end(f->b, err);
	if (r < 0)
		return r;
	sb_sha256_end(&s, sha);
	return compare(want, sha, err);
}

int image_make_layer(const struct sb_dirs *d, const struct image_want *w,
		     const struct image_blobs *blobs, const struct oci_manifest *m, size_t first,
		     size_t n, bool keep, struct sb_plan_layer *ret, struct sb_err *err)
{
	image_autobuild struct image_build *b = NULL;
	sb_autofree uint8_t *buf = malloc(PIECE);
	struct feed f = { .w = w, .buf = buf, .total = m->total };
	struct image_result counts;
	int r;

	if (!buf)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = image_build_start(d, keep, 0, &b, err);
	f.b = b;
	for (size_t i = first; r == 0 && i < first + n; i++) {
		sb_autofd int fd = -1;

		r = open_blob(blobs, &m->layers[i], &fd, err);
		if (r == 0)
			r = feed_blob(&f, fd, &m->layers[i], err);
	}
	if (r == 0)
		r = image_build_finish(b, ret, &counts, err);
	if (r == 0 && w->progress && counts.devices + counts.xattrs > 0) {
		char text[120];

		(void)snprintf(text, sizeof(text),
			       "left out: %" PRIu64 " device nodes, %" PRIu64 " attributes",
			       counts.devices, counts.xattrs);
		w->progress(w->arg, text, 0, 0);
	}
	return r;
}

int image_make(const struct sb_dirs *d, const struct image_want *w, const struct image_blobs *b,
	       const struct oci_manifest *m, struct image *ret, struct sb_err *err)
{
	sb_autofree char *config = NULL;
	struct oci_config c = { 0 };
	int r = image_blob_read(b, &m->config, &config, err);

	if (r == 0)
		r = oci_config_parse(config, (size_t)m->config.size, image_arch(), m->n_layers, &c,
				     err);
	if (r < 0)
		return r;
	r = image_make_layer(d, w, b, m, 0, m->n_layers, false, &ret->layer, err);
	if (r < 0) {
		oci_config_done(&c);
		return r;
	}
	ret->form = IMAGE_FORM_EROFS;
	ret->env = c.env;
	ret->user = c.user;
	ret->workdir = c.workdir;
	return 0;
}
