/*
 * Listing of directories. Without OPENDIR there is no handle: a request brings the offset, and a
 * small set of streams remembers where the last ones stopped. An offset of a real directory is
 * the host file system's own cookie, of a virtual one the index.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "fs/fs.h"

struct raw_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

struct out {
	fuse_req_t req;
	char *buf;
	size_t len;
	size_t cap;
	bool plus;
};

static void stream_close(struct fs_stream *s)
{
	sb_fd_close(&s->fd);
	s->nodeid = 0;
	s->pos = s->len = 0;
}

void fs_dir_drop(struct fs *fs, uint64_t nodeid)
{
	for (size_t i = 0; i < FS_MAX_STREAMS; i++)
		if (fs->streams[i].nodeid == nodeid)
			stream_close(&fs->streams[i]);
}

static int stream_open(struct fs *fs, struct fs_node *n, struct fs_stream *s)
{
	int at = fs_node_fd(fs, n);

	if (at < 0)
		return at;
	if (!s->buf) {
		s->buf = malloc(FS_DIRBUF);
		if (!s->buf)
			return -ENOMEM;
	}
	s->fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0)
		return -errno;
	if (!fs_public(fs, s->fd, S_IROTH | S_IXOTH)) {
		sb_fd_close(&s->fd);
		return -EACCES;
	}
	s->nodeid = fs_node_id(fs, n);
	s->next = 0;
	return 0;
}

/* A stream of @n that stands at @off. */
static int stream_at(struct fs *fs, struct fs_node *n, uint64_t off, struct fs_stream **ret)
{
	uint64_t id = fs_node_id(fs, n);
	struct fs_stream *s = NULL;
	struct fs_stream *oldest = &fs->streams[0];
	int r;

	for (size_t i = 0; i < FS_MAX_STREAMS; i++) {
		struct fs_stream *t = &fs->streams[i];

		if (t->nodeid == id && (!s || t->next == off))
			s = t;
		if (t->used < oldest->used)
			oldest = t;
	}
	if (!s) {
		s = oldest;
		stream_close(s);
		r = stream_open(fs, n, s);
		if (r < 0)
			return r;
	}
	s->used = ++fs->clock;
	if (s->next != off || off == 0) {
		if (off > INT64_MAX || lseek(s->fd, (off_t)off, SEEK_SET) < 0)
			return -EINVAL;
		s->pos = s->len = 0;
		s->next = off;
	}
	*ret = s;
	return 0;
}

/* The entry at the stream's position. Return: 0; 1 = end; -errno. */
static int stream_peek(struct fs_stream *s, const struct raw_dirent **ret)
{
	if (s->pos >= s->len) {
		long n = syscall(SYS_getdents64, s->fd, s->buf, FS_DIRBUF);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 1;
		s->pos = 0;
		s->len = (size_t)n;
	}
	*ret = (const void *)(s->buf + s->pos);
	return 0;
}

static void stream_advance(struct fs_stream *s, const struct raw_dirent *d)
{
	s->next = (uint64_t)d->off;
	s->pos += d->len;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Add one entry. Return: 0; 1 = no room; -ENOENT = it is gone. */
static int emit(struct out *o, struct fs *fs, struct fs_node *dir, const char *name, uint64_t ino,
		mode_t type, uint64_t off)
{
	struct fuse_entry_param e = { 0 };
	size_t need;
	int r;

	e.attr.st_ino = ino;
	e.attr.st_mode = type;
	if (!o->plus) {
		need = fuse_add_direntry(o->req, o->buf + o->len, o->cap - o->len, name, &e.attr,
					 (off_t)off);
		if (need > o->cap - o->len)
			return 1;
		o->len += need;
		return 0;
	}
	need = fuse_add_direntry_plus(o->req, NULL, 0, name, NULL, 0);
	if (need > o->cap - o->len)
		return 1;
	if (!is_dot(name)) {
		r = fs_lookup(fs, dir, name, &e);
		if (r == -ENOENT)
			return r;
		if (r < 0) { /* listed all the same; a look-up of its own will tell why */
			e = (struct fuse_entry_param){ 0 };
			e.attr.st_ino = ino;
			e.attr.st_mode = type;
		}
	}
	o->len += fuse_add_direntry_plus(o->req, o->buf + o->len, o->cap - o->len, name, &e,
					 (off_t)off);
	return 0;
}

static int list_virtual(struct out *o, struct fs *fs, struct fs_node *n, uint64_t off)
{
	for (uint64_t i = off; i < n->n_vents + 2; i++) {
		const char *name = i == 0 ? "." : i == 1 ? ".." : n->vents[i - 2].name;
		struct fs_node *v = i < 2 ? n : n->vents[i - 2].node;
		int r = emit(o, fs, n, name, fs_attr_ino(fs, v->virtual ? 1 : v->id.dev, v->id.ino),
			     v->id.type, i + 1);

		if (r == 1)
			break;
	}
	return 0;
}

static bool hidden(const struct fs *fs, const struct fs_node *dir, const char *name)
{
	const struct fs_rule *r;

	if (fs->conf->n_rules == 0)
		return false;
	r = fs_rule_sub(dir == fs->root ? &fs->conf->rules : dir->rule, name);
	return r && r->hide;
}

static int list_real(struct out *o, struct fs *fs, struct fs_node *n, uint64_t off)
{
	const struct raw_dirent *d = NULL;
	struct fs_stream *s;
	int r = stream_at(fs, n, off, &s);

	if (r < 0)
		return r;
	while ((r = stream_peek(s, &d)) == 0) {
		if (!hidden(fs, n, d->name)) {
			r = emit(o, fs, n, d->name, fs_attr_ino(fs, n->id.dev, d->ino),
				 (mode_t)DTTOIF(d->type), (uint64_t)d->off);
			if (r == 1)
				break;
		}
		stream_advance(s, d);
	}
	if (r < 0 && r != -ENOENT)
		return o->len > 0 ? 0 : r;
	return 0;
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	struct out o = { .req = req, .buf = fs->data_buf, .cap = SB_MIN(size, FS_MAX_IO),
			 .plus = plus };
	int r;

	if (!n)
		r = -ESTALE;
	else if (n->virtual)
		r = list_virtual(&o, fs, n, (uint64_t)off);
	else if (!S_ISDIR(n->id.type))
		r = -ENOTDIR;
	else {
		fs_notify_watch(fs, n);
		r = list_real(&o, fs, n, (uint64_t)off);
	}
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else
		(void)fuse_reply_buf(req, o.buf, o.len);
}

void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		   struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, off, false);
}

void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, off, true);
}
