#include "image/oci_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "wire/tar.h"

#define PIECE (1U << 20)

struct scan {
	struct image_archive *a;
	struct sb_err *err;
	uint64_t at; /* bytes before the block that is pushed now */
};

static int refuse(const struct scan *s, const char *name, const char *why)
{
	char shown[64];
	size_t n = strnlen(name, sizeof(shown) - 1);

	for (size_t i = 0; i < n; i++)
		shown[i] = name[i] > 0x20 && name[i] < 0x7f ? name[i] : '?';
	shown[n] = '\0';
	return sb_err_set(s->err, -EBADMSG, "entry \"%s%s\": %s", shown, name[n] ? "..." : "", why);
}

static bool is_blob(const char *name)
{
	uint8_t bin[32];

	return strncmp(name, "blobs/sha256/", 13) == 0 && strlen(name) == 77 &&
	       sb_hex_parse(name + 13, bin, sizeof(bin)) == 0;
}

static bool is_folder(const char *name)
{
	static const char *const list[] = { ".", "./", "blobs", "blobs/", "blobs/sha256", "blobs/sha256/" };

	for (size_t i = 0; i < SB_ARRAY_LEN(list); i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

static int entry(void *arg, const struct sb_tar_entry *e)
{
	struct scan *s = arg;
	struct image_archive *a = s->a;
	const char *name = strncmp(e->path, "./", 2) == 0 && e->path[2] ? e->path + 2 : e->path;

	if (e->type == SB_TAR_DIR && is_folder(name))
		return 0;
	if (e->type != SB_TAR_REG ||
	    (strcmp(name, "oci-layout") != 0 && strcmp(name, "index.json") != 0 && !is_blob(name)))
		return refuse(s, e->path, "it does not belong into an OCI archive");
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, name) == 0)
			return refuse(s, e->path, "it is there twice");
	if (a->n == IMAGE_ARCHIVE_MAX)
		return refuse(s, e->path, "more than 512 entries");
	(void)snprintf(a->v[a->n].name, sizeof(a->v[a->n].name), "%s", name);
	a->v[a->n].at = s->at + SB_TAR_BLOCK;
	a->v[a->n++].size = e->size;
	return 0;
}

static int data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return 0;
}

static int end(void *arg)
{
	(void)arg;
	return 0;
}

static const struct sb_tar_ops ops = { .entry = entry, .data = data, .end = end };

/* Block by block: an entry is told within the push of the last block before its content. */
static int push(struct scan *s, struct sb_tar *t, const uint8_t *p, size_t len)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i += SB_TAR_BLOCK) {
		size_t n = SB_MIN(len - i, (size_t)SB_TAR_BLOCK);

		r = sb_tar_push(t, p + i, n, s->err);
		s->at += n;
	}
	return r;
}

int image_archive_scan(const uint8_t *p, size_t len, struct image_archive *ret, struct sb_err *err)
{
	sb_autotar struct sb_tar *t = NULL;
	struct scan s = { .a = ret, .err = err };
	int r;

	*ret = (struct image_archive){ .fd = -1 };
	r = sb_tar_new(&ops, &s, &t);
	if (r == 0)
		r = push(&s, t, p, len);
	return r < 0 ? r : sb_tar_end(t, err);
}

int image_archive_open(int fd, struct image_archive *ret, struct sb_err *err)
{
	sb_autotar struct sb_tar *t = NULL;
	sb_autofree uint8_t *buf = malloc(PIECE);
	struct scan s = { .a = ret, .err = err };
	int r = buf ? sb_tar_new(&ops, &s, &t) : -ENOMEM;

	*ret = (struct image_archive){ .fd = fd };
	while (r == 0) {
		ssize_t n = sb_fd_read_at(fd, buf, PIECE, (off_t)s.at);

		if (n <= 0) {
			r = (int)n;
			break;
		}
		r = push(&s, t, buf, (size_t)n);
	}
	if (r < 0)
		return err && err->code ? r : sb_err_set(err, r, "%s", strerror(-r));
	return sb_tar_end(t, err);
}

static const struct image_archive_entry *find(const struct image_archive *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, name) == 0)
			return &a->v[i];
	return NULL;
}

int image_archive_file(const struct image_archive *a, const char *name, char **ret, size_t *ret_len,
		       struct sb_err *err)
{
	const struct image_archive_entry *e = find(a, name);
	sb_autofree char *p = NULL;
	ssize_t n;

	if (!e)
		return sb_err_set(err, -ENOENT, "it has no %s", name);
	if (e->size > OCI_MAX_DOCUMENT)
		return sb_err_set(err, -EBADMSG, "%s: a document of more than 4 MiB", name);
	p = malloc((size_t)e->size + 1);
	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	n = sb_fd_read_at(a->fd, p, (size_t)e->size, (off_t)e->at);
	if (n != (ssize_t)e->size)
		return sb_err_set(err, n < 0 ? (int)n : -EBADMSG, "%s: it became shorter", name);
	p[e->size] = '\0';
	*ret_len = (size_t)e->size;
	*ret = sb_take(&p);
	return 0;
}

int image_archive_blob(const struct image_archive *a, const struct oci_blob *want, int *ret,
		       struct sb_err *err)
{
	char name[80];
	char path[40];
	const struct image_archive_entry *e;
	sb_autofd int fd = -1;

	(void)snprintf(name, sizeof(name), "blobs/sha256/%.64s", want->digest + 7);
	e = find(a, name);
	if (!e)
		return sb_err_set(err, -EBADMSG, "blob %.20s...: it is not in the archive", want->digest);
	if (e->size != want->size)
		return sb_err_set(err, -EBADMSG,
				  "blob %.20s...: %" PRIu64 " bytes, the manifest says %" PRIu64,
				  want->digest, e->size, want->size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", a->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || lseek(fd, (off_t)e->at, SEEK_SET) < 0)
		return sb_err_set(err, -errno, "%s", strerror(errno));
	*ret = sb_fd_take(&fd);
	return 0;
}
