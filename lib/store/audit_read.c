#include "store/audit_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define BUFFER (1U << 20)

struct sb_audit_reader {
	int dir; /* borrowed */
	uint64_t *segs; /* owned */
	size_t n_segs;
	size_t at;   /* index of the open one */
	int fd;      /* owned */
	uint64_t off; /* of buf[0] in its file */
	size_t have;
	size_t pos;  /* next line */
	char *buf;   /* owned; BUFFER */
};

struct sb_audit_reader *sb_audit_reader_free(struct sb_audit_reader *r)
{
	if (r) {
		sb_fd_close(&r->fd);
		free(r->segs);
		free(r->buf);
		free(r);
	}
	return NULL;
}

static int open_seg(struct sb_audit_reader *r, size_t i, struct sb_err *err)
{
	char name[SB_AUDIT_FILE_NAME_ROOM];
	struct stat st;

	sb_audit_log_name(r->segs[i], name);
	sb_fd_close(&r->fd);
	r->fd = openat(r->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st) < 0)
		return sb_err_set(err, -errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return sb_err_set(err, -EBADMSG, "%s is no regular file", name);
	r->at = i;
	r->off = 0;
	r->have = r->pos = 0;
	return 0;
}

int sb_audit_reader_new(int dir, struct sb_audit_reader **ret, struct sb_err *err)
{
	struct sb_audit_reader *r = calloc(1, sizeof(*r));
	int k = r ? 0 : -ENOMEM;

	if (r) {
		r->fd = -1;
		r->dir = dir;
		r->buf = malloc(BUFFER);
		k = r->buf ? sb_audit_log_list(dir, &r->segs, &r->n_segs) : -ENOMEM;
	}
	if (k < 0)
		(void)sb_err_set(err, k, "the audit log: %s", strerror(-k));
	else if (r->n_segs == 0)
		k = sb_err_set(err, -ENOENT, "there is no audit log yet");
	else
		k = open_seg(r, 0, err);
	if (k < 0)
		r = sb_audit_reader_free(r);
	else
		*ret = r;
	return k;
}

uint64_t sb_audit_reader_first(const struct sb_audit_reader *r)
{
	return r->segs[0];
}

/* More bytes. Return: 1; 0: none; -errno. */
static int fill(struct sb_audit_reader *r)
{
	ssize_t n;

	if (r->pos > 0) {
		memmove(r->buf, r->buf + r->pos, r->have - r->pos);
		r->off += r->pos;
		r->have -= r->pos;
		r->pos = 0;
	}
	do
		n = pread(r->fd, r->buf + r->have, BUFFER - r->have, (off_t)(r->off + r->have));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->have += (size_t)n;
	return n > 0;
}

/* The segment is at its end: is there another one by now? Return: 1; 0; -errno. */
static int more_segs(struct sb_audit_reader *r)
{
	uint64_t last = r->segs[r->at];
	uint64_t *list = NULL;
	size_t n = 0;
	int k;

	if (r->at + 1 < r->n_segs)
		return 1;
	k = sb_audit_log_list(r->dir, &list, &n);
	if (k < 0)
		return k;
	free(r->segs);
	r->segs = list;
	r->n_segs = n;
	for (r->at = 0; r->at < n && list[r->at] != last; r->at++)
		continue;
	return r->at + 1 < n ? 1 : r->at == n ? -ESTALE : 0;
}

int sb_audit_reader_line(struct sb_audit_reader *r, struct sb_audit_line *ret, struct sb_err *err)
{
	for (;;) {
		char *from = r->buf + r->pos;
		char *nl = memchr(from, '\n', r->have - r->pos);
		bool again;
		int k;

		if (nl) {
			*ret = (struct sb_audit_line){ .p = from,
						       .len = (size_t)(nl - from),
						       .first = r->segs[r->at],
						       .offset = r->off + r->pos,
						       .is_head = r->off + r->pos == 0 };
			r->pos += ret->len + 1;
			return 0;
		}
		if (r->have - r->pos >= SB_AUDIT_LINE_MAX)
			return sb_err_set(err, -EBADMSG, "a line longer than any record");
		k = fill(r);
		if (k > 0)
			continue;
		again = k == 0;
		if (again)
			k = more_segs(r);
		if (k == 0)
			return SB_AUDIT_END;
		/* what was written between the two looks */
		if (k > 0 && fill(r) > 0)
			continue;
		if (k > 0 && r->pos < r->have)
			return sb_err_set(err, -EBADMSG, "the last line of a segment that was "
							 "continued is cut off");
		if (k > 0)
			k = open_seg(r, r->at + 1, err);
		if (k < 0)
			return sb_err_set(err, k, "cannot read the audit log: %s", strerror(-k));
	}
}

int sb_audit_reader_next(struct sb_audit_reader *r, struct sb_audit_record *ret,
			 struct sb_audit_line *line, struct sb_err *err)
{
	struct sb_audit_line l;
	int k;

	do
		k = sb_audit_reader_line(r, &l, err);
	while (k == 0 && l.is_head);
	if (k == 0)
		k = sb_audit_parse(l.p, l.len, ret, err);
	if (k == 0 && line)
		*line = l;
	return k;
}

size_t sb_audit_reader_rest(const struct sb_audit_reader *r)
{
	return r->have - r->pos;
}

/* ---- seeking ---- */

/* The first whole record at or behind @at. Return: 0 with its number and place; SB_AUDIT_END; -errno. */
static int probe(const struct sb_audit_reader *r, uint64_t at, uint64_t *ret_seq, uint64_t *ret_at)
{
	char buf[2 * SB_AUDIT_LINE_MAX];
	ssize_t n = sb_fd_read_at(r->fd, buf, sizeof(buf), (off_t)at);
	struct sb_audit_record rec;
	const char *from;
	const char *nl;

	if (n < 0)
		return (int)n;
	from = memchr(buf, '\n', (size_t)n);
	if (!from)
		return SB_AUDIT_END;
	from++;
	nl = memchr(from, '\n', (size_t)(buf + n - from));
	if (!nl)
		return SB_AUDIT_END;
	if (sb_audit_parse(from, (size_t)(nl - from), &rec, NULL) < 0)
		return SB_AUDIT_END;
	*ret_seq = rec.seq;
	*ret_at = at + (uint64_t)(from - buf);
	return 0;
}

/* Halve the file until what is left is short: the best place known is a record not behind @seq. */
static int bisect(struct sb_audit_reader *r, uint64_t seq, struct sb_err *err)
{
	uint64_t low = 0;
	uint64_t best = 0;
	uint64_t high;
	struct stat st;

	if (fstat(r->fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot read the audit log: %s", strerror(errno));
	high = (uint64_t)st.st_size;
	while (high - low > 2 * (uint64_t)SB_AUDIT_LINE_MAX) {
		uint64_t mid = low + (high - low) / 2;
		uint64_t got = 0;
		uint64_t place = 0;
		int k = probe(r, mid, &got, &place);

		if (k < 0)
			return sb_err_set(err, k, "cannot read the audit log: %s", strerror(-k));
		if (k == 0 && got <= seq) {
			best = place;
			low = SB_MAX(place, mid + 1);
			if (low > high)
				break;
		} else {
			high = mid;
		}
	}
	r->off = best;
	r->have = r->pos = 0;
	return 0;
}

int sb_audit_reader_seek(struct sb_audit_reader *r, uint64_t seq, struct sb_err *err)
{
	size_t i = r->n_segs - 1;
	int k;

	while (i > 0 && r->segs[i] > seq)
		i--;
	k = open_seg(r, i, err);
	if (k == 0)
		k = bisect(r, seq, err);
	return k;
}
