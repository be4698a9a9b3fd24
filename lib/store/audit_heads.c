#include "store/audit_heads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define WINDOW (64U << 10)
#define ORIGIN "sendbox-audit-" /* a head begins with this line */

void sb_audit_heads_done(struct sb_audit_heads *h)
{
	free(h->list);
	*h = (struct sb_audit_heads){ 0 };
}

/* Of the older half every second one goes. @item: bytes of one. Return: how many are left. */
static size_t thin_half(void *list, size_t n, size_t item)
{
	char *p = list;
	size_t half = n / 2;
	size_t to = 0;

	for (size_t i = 0; i < n; i++)
		if (i >= half || i % 2 == 0)
			memmove(p + to++ * item, p + i * item, item);
	return to;
}

static int push(struct sb_audit_heads *h, const struct sb_audit_head *one, bool thin)
{
	if (thin && h->n == SB_AUDIT_HEADS_KEEP)
		h->n = thin_half(h->list, h->n, sizeof(*h->list));
	if (h->n == SB_AUDIT_HEADS_MAX)
		return -E2BIG;
	if (h->n == h->room) {
		struct sb_audit_head *more = realloc(h->list, (2 * h->room + 16) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		h->list = more;
		h->room = 2 * h->room + 16;
	}
	h->list[h->n++] = *one;
	return 0;
}

int sb_audit_heads_parse(struct sb_audit_heads *h, const char *text, size_t len, bool last, bool thin,
			 const uint8_t pub[32], size_t *ret_used)
{
	size_t at = 0;

	while (at < len && (last || len - at >= SB_AUDIT_HEAD_MAX)) {
		struct sb_audit_head one;
		size_t used = 0;
		const char *nl;
		int r;

		if (sb_audit_head_open(text + at, len - at, pub, &one, &used) < 0) {
			nl = memchr(text + at, '\n', len - at);
			at = nl ? (size_t)(nl + 1 - text) : len;
			continue;
		}
		r = push(h, &one, thin);
		if (r < 0)
			return r;
		at += used;
	}
	*ret_used = at;
	return 0;
}

int sb_audit_heads_read(struct sb_audit_heads *h, int dir, const char *path, bool thin,
			const uint8_t pub[32])
{
	sb_autofree char *buf = malloc(WINDOW);
	sb_autofd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
						     (thin ? O_NONBLOCK : 0));
	struct stat st;
	size_t have = 0;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (thin && !S_ISREG(st.st_mode))
		return -EBADMSG;
	if (!buf)
		return -ENOMEM;
	for (bool last = false; r == 0 && !last;) {
		ssize_t n = sb_fd_read_most(fd, buf + have, WINDOW - have);
		size_t used = 0;

		if (n < 0)
			return (int)n;
		have += (size_t)n;
		last = have < WINDOW;
		r = sb_audit_heads_parse(h, buf, have, last, thin, pub, &used);
		have -= used;
		memmove(buf, buf + used, have);
	}
	return r;
}

static int by_size(const void *a, const void *b)
{
	const struct sb_audit_head *x = a;
	const struct sb_audit_head *y = b;

	return x->n < y->n ? -1 : x->n > y->n;
}

void sb_audit_heads_sort(struct sb_audit_heads *h)
{
	if (h->n > 0)
		qsort(h->list, h->n, sizeof(*h->list), by_size);
}

/* ---- the writer ---- */

struct place {
	off_t at;
	off_t end;
};
struct places {
	struct place list[SB_AUDIT_HEADS_KEEP]; /* where heads are */
	size_t n;
	size_t match; /* bytes of ORIGIN that were seen since the line began; else NO */
};
#define NO SIZE_MAX

static void end_place(struct places *p, off_t end)
{
	if (p->n > 0)
		p->list[p->n - 1].end = end;
}

/* Where heads begin. Nothing is verified: who reads them does. @from: of the file, where @buf stands */
static void find_places(struct places *p, const char *buf, size_t len, off_t from)
{
	const size_t all = sizeof(ORIGIN) - 1;

	for (size_t i = 0; i < len; i++) {
		if (p->match != NO && buf[i] == ORIGIN[p->match]) {
			off_t at = from + (off_t)i + 1 - (off_t)all;

			if (++p->match < all)
				continue;
			end_place(p, at);
			if (p->n == SB_AUDIT_HEADS_KEEP)
				p->n = thin_half(p->list, p->n, sizeof(p->list[0]));
			p->list[p->n++].at = at;
		}
		p->match = buf[i] == '\n' ? 0 : NO;
	}
}

static int scan(int fd, struct places *p)
{
	sb_autofree char *buf = malloc(WINDOW);
	off_t at = 0;
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	do {
		n = sb_fd_read_at(fd, buf, WINDOW, at);
		if (n < 0)
			return (int)n;
		find_places(p, buf, (size_t)n, at);
		at += n;
	} while ((size_t)n == WINDOW);
	end_place(p, at);
	return 0;
}

/* So that it is not to be done again soon, however long each is. */
static void thin_to(struct places *p, uint64_t bytes)
{
	for (;;) {
		uint64_t sum = 0;

		for (size_t i = 0; i < p->n; i++)
			sum += (uint64_t)(p->list[i].end - p->list[i].at);
		if (sum <= bytes || p->n < 4)
			return;
		p->n = thin_half(p->list, p->n, sizeof(p->list[0]));
	}
}

/* One head to a file, unless it is none: too long, or torn. */
static int copy_head(int fd, const struct place *one, int to)
{
	char text[SB_AUDIT_HEAD_MAX];
	size_t len = (size_t)SB_MIN((uint64_t)(one->end - one->at), (uint64_t)SB_AUDIT_HEAD_MAX + 1);
	ssize_t n = len > sizeof(text) ? 0 : sb_fd_read_at(fd, text, len, one->at);

	return n < 0 ? (int)n
	       : n == 0 || text[n - 1] != '\n' ? 0 : sb_fd_write_all(to, text, (size_t)n);
}

static int thin_file(int dir, int fd)
{
	static const char tmp[] = ".heads.new"; /* the name is whose the lock is */
	sb_autofree struct places *p = calloc(1, sizeof(*p));
	sb_autofd int to = -1;
	int r = p ? scan(fd, p) : -ENOMEM;

	if (r < 0)
		return r;
	thin_to(p, SB_AUDIT_HEADS_BYTES / 4 * 3);
	to = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < p->n; i++)
		r = copy_head(fd, &p->list[i], to);
	if (r == 0 && fdatasync(to) < 0)
		r = -errno;
	if (r == 0 && renameat(dir, tmp, dir, "heads") < 0)
		r = -errno;
	return r;
}

int sb_audit_heads_add(int dir, const char *text, size_t len)
{
	sb_autofd int fd = openat(dir, "heads", O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
						O_NONBLOCK, 0600);
	struct stat st;
	int r = fd < 0 ? -errno : sb_fd_write_all(fd, text, len);

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	return r == 0 && st.st_size > SB_AUDIT_HEADS_BYTES ? thin_file(dir, fd) : r;
}
