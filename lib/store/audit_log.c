/*
 * Theory of operation. What is in the log is what stands in the segments, in order; everything else in
 * the directory can be made again from there and the key. Who has the lock may write, at the end of
 * the last segment alone, and a line that has no newline is nobody's record: it was never
 * acknowledged, and the next one who has the lock removes it. A segment is continued by another one
 * exactly when it has SB_AUDIT_SEGMENT bytes, so a writer knows when to look for one.
 *
 * A head is written after the sync, so that a power cut leaves no head without its records. A log
 * that does not hold what its head says is not continued: it was cut or changed.
 */
#include "store/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "store/audit_heads.h"

#define BATCH (1U << 20) /* bytes of a batch */
#define LOCK_TRIES 2000
#define LOCK_WAIT_NS 5000000L
#define CHUNK (256U << 10)
#define REMEDY                                                                                     \
	"sendbox audit verify says more; nothing is recorded until the log is as it was, or moved " \
	"away, which begins a new one"

struct sb_audit_log {
	int dir;  /* borrowed */
	int lock; /* owned */
	int fd;   /* owned; the last segment */
	uint64_t first;
	uint64_t offset; /* end of what is read or written */
	struct sb_audit_state state;
	struct sb_audit_state before; /* of the batch */
	uint64_t signed_n;
	bool dirty;
	char *buf; /* owned; the batch */
	size_t len;
	uint8_t pub[32];
	uint8_t sec[64];
};

struct sb_audit_log *sb_audit_log_free(struct sb_audit_log *l)
{
	if (l) {
		sb_fd_close(&l->fd);
		sb_fd_close(&l->lock);
		free(l->buf);
		sb_wipe(l->sec, sizeof(l->sec));
		free(l);
	}
	return NULL;
}

static int io_error(struct sb_err *err, int r, const char *what)
{
	return sb_err_set(err, r, "the audit log: cannot %s: %s", what, strerror(-r));
}

static int damaged(const struct sb_audit_log *l, struct sb_err *err, const char *what)
{
	return sb_err_set(err, -EBADMSG, "the audit log was damaged at record %llu: %.200s; " REMEDY,
			  (unsigned long long)l->state.tree.n, what);
}

static int lock(struct sb_audit_log *l, struct sb_err *err)
{
	const struct timespec wait = { .tv_nsec = LOCK_WAIT_NS };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(l->lock, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return io_error(err, -errno, "lock it");
		(void)nanosleep(&wait, NULL);
	}
	return sb_err_set(err, -ETIMEDOUT, "the audit log: another session holds its lock");
}

static void unlock(const struct sb_audit_log *l)
{
	(void)flock(l->lock, LOCK_UN);
}

/* ---- reading what is there ---- */

/* A segment whose first line was not written whole has nothing else. */
static int check_first_line(struct sb_audit_log *l, int fd, struct sb_err *err)
{
	char want[SB_AUDIT_LOG_LINE_MAX];
	char got[SB_AUDIT_LOG_LINE_MAX];
	size_t len = sb_audit_log_head(&l->state, want);
	ssize_t n = sb_fd_read_at(fd, got, sizeof(got), 0);
	int r;

	if (n < 0)
		return io_error(err, (int)n, "read it");
	if ((size_t)n >= len && memcmp(want, got, len) == 0) {
		l->offset = len;
		return 0;
	}
	if (memchr(got, '\n', (size_t)n) || (size_t)n > len || memcmp(want, got, (size_t)n) != 0)
		return damaged(l, err, "the segment that begins there does not fit");
	r = ftruncate(fd, 0) < 0 ? -errno : sb_fd_write_all(fd, want, len);
	if (r == 0 && (fsync(fd) < 0 || fsync(l->dir) < 0))
		r = -errno;
	l->offset = len;
	return r < 0 ? io_error(err, r, "begin a segment") : 0;
}

/* The segment that the state leads to. @create: make it. Return: 0; -ENOENT; -errno with text. */
static int next_segment(struct sb_audit_log *l, bool create, struct sb_err *err)
{
	char name[SB_AUDIT_FILE_NAME_ROOM];
	sb_autofd int fd = -1;
	int r;

	sb_audit_log_name(l->state.tree.n, name);
	fd = openat(l->dir, name,
		    O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT : 0),
		    0600);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return io_error(err, -errno, "open a segment");
	if (l->dirty && fdatasync(l->fd) < 0)
		return io_error(err, -errno, "sync it");
	r = check_first_line(l, fd, err);
	if (r < 0)
		return r;
	sb_fd_close(&l->fd);
	l->fd = sb_fd_take(&fd);
	l->first = l->state.tree.n;
	return 0;
}

/* When the tree has come to the size of the head, it is that tree. */
static int check_head(const struct sb_audit_log *l, const struct sb_audit_head *head,
		      struct sb_err *err)
{
	uint8_t root[SB_MERKLE_HASH];

	if (head->n != l->state.tree.n)
		return 0;
	sb_merkle_root(&l->state.tree, root);
	return memcmp(root, head->root, sizeof(root)) == 0
		       ? 0
		       : damaged(l, err, "one before it was changed after the log was signed");
}

/* Records from the offset on. Whatever is behind the last whole one is cut off. @head: may be NULL;
 * checked when the tree has come to its size. */
static int read_on(struct sb_audit_log *l, const struct sb_audit_head *head, struct sb_err *err)
{
	sb_autofree char *buf = NULL;
	size_t have = 0;
	struct stat st;

	if (fstat(l->fd, &st) < 0)
		return io_error(err, -errno, "look at it");
	if (!S_ISREG(st.st_mode) || st.st_nlink == 0 || (uint64_t)st.st_size < l->offset)
		return damaged(l, err, "the log was cut off or removed");
	if ((uint64_t)st.st_size == l->offset)
		return 0;
	buf = malloc(CHUNK);
	if (!buf)
		return io_error(err, -ENOMEM, "read it");
	for (;;) {
		ssize_t n = sb_fd_read_at(l->fd, buf + have, CHUNK - have, (off_t)(l->offset + have));
		char *at = buf;
		char *nl;

		if (n < 0)
			return io_error(err, (int)n, "read it");
		have += (size_t)n;
		while ((nl = memchr(at, '\n', have - (size_t)(at - buf))) != NULL) {
			struct sb_err why = { 0 };

			if (sb_audit_state_add(&l->state, at, (size_t)(nl - at), NULL, &why) < 0)
				return damaged(l, err, why.text);
			if (head && check_head(l, head, err) < 0)
				return -EBADMSG;
			l->offset += (size_t)(nl + 1 - at);
			at = nl + 1;
		}
		have -= (size_t)(at - buf);
		memmove(buf, at, have);
		if (have >= SB_AUDIT_LINE_MAX)
			return damaged(l, err, "a line longer than any record");
		if (n == 0)
			break;
	}
	l->dirty = true; /* another one's, not synced as far as we know */
	if (have > 0 && ftruncate(l->fd, (off_t)l->offset) < 0)
		return io_error(err, -errno, "remove a record that was not written whole");
	return 0;
}

static int catch_up(struct sb_audit_log *l, const struct sb_audit_head *head, struct sb_err *err)
{
	int r = read_on(l, head, err);

	while (r == 0 && l->offset >= SB_AUDIT_SEGMENT) {
		r = next_segment(l, false, err);
		if (r == -ENOENT)
			return 0;
		if (r == 0)
			r = read_on(l, head, err);
	}
	return r;
}

/* ---- open ---- */

/* Where the writer left off, if the head and the last record say the same. */
static bool use_tail(struct sb_audit_log *l, const struct sb_audit_head *head)
{
	char name[SB_AUDIT_FILE_NAME_ROOM];
	struct sb_audit_tail t;
	uint8_t root[SB_MERKLE_HASH];
	char last[SB_AUDIT_LINE_MAX];
	struct sb_audit_record rec;
	size_t len;
	size_t at;
	ssize_t n;

	if (sb_audit_tail_read(l->dir, &t) < 0 || t.state.tree.n != head->n || head->n == 0)
		return false;
	sb_merkle_root(&t.state.tree, root);
	if (memcmp(root, head->root, sizeof(root)) != 0)
		return false;
	sb_audit_log_name(t.first, name);
	l->fd = openat(l->dir, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	len = (size_t)SB_MIN(t.offset, (uint64_t)sizeof(last));
	n = l->fd < 0 ? -1 : sb_fd_read_at(l->fd, last, len, (off_t)(t.offset - len));
	if (n <= 0 || (size_t)n != len || last[len - 1] != '\n')
		goto no;
	for (at = len - 1; at > 0 && last[at - 1] != '\n'; at--)
		continue;
	/* its hash is in the root; the root is signed */
	sb_merkle_leaf(last + at, len - 1 - at, root);
	if (sb_audit_parse(last + at, len - 1 - at, &rec, NULL) < 0 || rec.seq + 1 != head->n ||
	    memcmp(root, t.state.prev, sizeof(root)) != 0)
		goto no;
	l->state = t.state;
	l->first = t.first;
	l->offset = t.offset;
	return true;
no:
	sb_fd_close(&l->fd);
	return false;
}

/* From the first line of segment @first. */
static int use_segment(struct sb_audit_log *l, uint64_t first, struct sb_err *err)
{
	char name[SB_AUDIT_FILE_NAME_ROOM];
	char line[SB_AUDIT_LOG_LINE_MAX];
	const char *nl;
	ssize_t n;

	sb_audit_log_name(first, name);
	l->state.tree.n = first;
	l->fd = openat(l->dir, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	n = l->fd < 0 ? -errno : sb_fd_read_at(l->fd, line, sizeof(line), 0);
	if (n < 0)
		return io_error(err, (int)n, "read it");
	nl = memchr(line, '\n', (size_t)n);
	if (!nl && first == 0) { /* the very first line was not written whole */
		l->state = (struct sb_audit_state){ 0 };
		return check_first_line(l, l->fd, err);
	}
	if (!nl || sb_audit_log_parse(line, (size_t)(nl - line), &l->state) < 0 ||
	    l->state.tree.n != first)
		return damaged(l, err, "the first line of its segment is none");
	l->first = first;
	l->offset = (size_t)(nl + 1 - line);
	return 0;
}

/* The last record of a segment that another one follows. Return: its number + 1; 0: there is none. */
static uint64_t end_of(int dir, uint64_t first)
{
	char name[SB_AUDIT_FILE_NAME_ROOM];
	char last[SB_AUDIT_LINE_MAX];
	struct sb_audit_record rec;
	struct stat st;
	sb_autofd int fd = -1;
	size_t len;
	size_t at;

	sb_audit_log_name(first, name);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return 0;
	len = (size_t)SB_MIN((uint64_t)st.st_size, (uint64_t)sizeof(last));
	if (sb_fd_read_at(fd, last, len, st.st_size - (off_t)len) != (ssize_t)len || last[len - 1] != '\n')
		return 0;
	for (at = len - 1; at > 0 && last[at - 1] != '\n'; at--)
		continue;
	return sb_audit_parse(last + at, len - 1 - at, &rec, NULL) < 0 ? 0 : rec.seq + 1;
}

/* No segment is missing, from record 0 on: one ends where the next begins. What is in them, verify tells. */
static int check_chain(struct sb_audit_log *l, const uint64_t *segs, size_t n, struct sb_err *err)
{
	uint64_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (segs[i] != at) {
			l->state.tree.n = at;
			return damaged(l, err, "it is missing, and what follows up to the next segment");
		}
		if (i + 1 < n)
			at = end_of(l->dir, segs[i]);
	}
	return 0;
}

/* The newest segment that the head's tree reaches back to; an older one when that has no first line
 * yet (it was being begun). */
static int use_segments(struct sb_audit_log *l, const uint64_t *segs, size_t n,
			const struct sb_audit_head *head, struct sb_err *err)
{
	size_t i;

	if (n == 0)
		return head ? damaged(l, err, "it is gone") : next_segment(l, true, err);
	i = n - 1;
	while (i > 0 && (!head || segs[i] > head->n || i == n - 1))
		i--;
	return use_segment(l, segs[i], err);
}

static int load(struct sb_audit_log *l, struct sb_err *err)
{
	sb_autofree uint64_t *segs = NULL;
	size_t n = 0;
	struct sb_audit_head head;
	int r = sb_audit_head_read(l->dir, l->pub, &head);
	bool signed_once = r == 0;

	if (r == -EKEYREJECTED || r == -EBADMSG)
		return damaged(l, err, "its head was not signed with this host's audit key");
	if (r < 0 && r != -ENOENT)
		return io_error(err, r, "read its head");
	r = sb_audit_log_list(l->dir, &segs, &n);
	if (r < 0)
		return io_error(err, r, "list it");
	r = check_chain(l, segs, n, err);
	if (r < 0)
		return r;
	if (!signed_once || !use_tail(l, &head)) {
		r = use_segments(l, segs, n, signed_once ? &head : NULL, err);
		if (r == 0 && signed_once)
			r = check_head(l, &head, err);
		if (r < 0)
			return r;
	}
	r = catch_up(l, signed_once ? &head : NULL, err);
	if (r == 0 && signed_once && l->state.tree.n < head.n)
		r = damaged(l, err, "it and those behind it are missing");
	if (r == 0)
		l->signed_n = signed_once ? head.n : 0;
	return r;
}

int sb_audit_log_open(int dir, const uint8_t sec[64], struct sb_audit_log **ret,
		      struct sb_err *err)
{
	struct sb_audit_log *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return io_error(err, -ENOMEM, "open it");
	l->dir = dir;
	l->fd = -1;
	l->lock = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	l->buf = malloc(BATCH);
	memcpy(l->sec, sec, sizeof(l->sec));
	sb_sign_public(sec, l->pub);
	r = l->lock < 0 ? -errno : l->buf ? 0 : -ENOMEM;
	if (r < 0)
		(void)io_error(err, r, "open it");
	else
		r = lock(l, err);
	if (r == 0) {
		r = load(l, err);
		unlock(l);
	}
	if (r < 0)
		l = sb_audit_log_free(l);
	else
		*ret = l;
	return r;
}

/* ---- writing ---- */

int sb_audit_log_begin(struct sb_audit_log *l, struct sb_err *err)
{
	int r = lock(l, err);

	if (r < 0)
		return r;
	r = catch_up(l, NULL, err);
	if (r == 0 && l->offset >= SB_AUDIT_SEGMENT)
		r = next_segment(l, true, err);
	if (r < 0)
		unlock(l);
	l->before = l->state;
	l->len = 0;
	return r;
}

bool sb_audit_log_full(const struct sb_audit_log *l)
{
	return BATCH - l->len < SB_AUDIT_LINE_MAX;
}

void sb_audit_log_abort(struct sb_audit_log *l)
{
	l->state = l->before;
	l->len = 0;
	unlock(l);
}

int sb_audit_log_put(struct sb_audit_log *l, const struct sb_audit_event *e, uint64_t *ret_seq)
{
	int n;

	if (sb_audit_log_full(l))
		return -ENOBUFS;
	n = sb_audit_encode(e, l->state.tree.n, l->state.prev, l->buf + l->len);
	if (n < 0)
		return n;
	*ret_seq = l->state.tree.n;
	sb_merkle_leaf(l->buf + l->len, (size_t)n - 1, l->state.prev);
	sb_merkle_add(&l->state.tree, l->state.prev);
	l->len += (size_t)n;
	return 0;
}

int sb_audit_log_end(struct sb_audit_log *l, struct sb_err *err)
{
	int r = l->len > 0 ? sb_fd_write_all(l->fd, l->buf, l->len) : 0;

	if (r < 0) {
		if (ftruncate(l->fd, (off_t)l->offset) < 0)
			(void)io_error(err, -errno, "take back what was written in part");
		l->state = l->before;
		unlock(l);
		return io_error(err, r, "write to it");
	}
	l->dirty |= l->len > 0;
	l->offset += l->len;
	l->len = 0;
	unlock(l);
	return 0;
}

int sb_audit_log_sync(struct sb_audit_log *l, struct sb_err *err)
{
	if (!l->dirty)
		return 0;
	if (fdatasync(l->fd) < 0)
		return io_error(err, -errno, "sync it");
	l->dirty = false;
	return 0;
}

bool sb_audit_log_dirty(const struct sb_audit_log *l)
{
	return l->dirty;
}

bool sb_audit_log_unsigned(const struct sb_audit_log *l)
{
	return l->state.tree.n > l->signed_n;
}

/* Under the lock: nobody else's is newer. */
static int put_head(struct sb_audit_log *l, const struct sb_audit_head *mine, struct sb_err *err)
{
	const struct sb_audit_tail tail = { .state = l->state, .first = l->first,
					    .offset = l->offset };
	struct sb_audit_head there = { 0 };
	char text[SB_AUDIT_HEAD_MAX];
	int r = sb_audit_head_read(l->dir, l->pub, &there);
	size_t len;

	if (r < 0 && r != -ENOENT)
		return damaged(l, err, "its head was replaced");
	if (r == 0 && there.n >= mine->n)
		return 0;
	len = sb_audit_head_sign(mine, l->pub, l->sec, text);
	r = sb_audit_heads_add(l->dir, text, len);
	if (r == 0)
		r = sb_audit_put_file(l->dir, "head", text, len);
	if (r == 0)
		r = sb_audit_tail_write(l->dir, &tail);
	return r < 0 ? io_error(err, r, "write its head") : 0;
}

int sb_audit_log_sign(struct sb_audit_log *l, struct sb_audit_head *ret, struct sb_err *err)
{
	struct sb_audit_head h = { .n = l->state.tree.n };
	int r = sb_audit_log_sync(l, err);

	sb_merkle_root(&l->state.tree, h.root);
	if (r == 0 && h.n > l->signed_n) {
		r = lock(l, err);
		if (r == 0) {
			r = put_head(l, &h, err);
			unlock(l);
		}
	}
	if (r == 0) {
		l->signed_n = SB_MAX(l->signed_n, h.n);
		if (ret)
			*ret = h;
	}
	return r;
}
