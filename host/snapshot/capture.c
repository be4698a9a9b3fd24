/*
 * Theory of operation. A folder is listed and each entry looked at (lstat) by one worker; folders in
 * it, and files that the cache does not know, become tasks on one stack that all workers take from.
 * Who ends the last task of a folder writes the folder, which ends a task of its parent. The stack
 * makes the walk deep before it is wide, so that few folders are open and in memory at a time. More
 * workers than one start when there is enough to do.
 *
 * Nothing is opened by a path: each folder by its name in the parent's descriptor, without following
 * a link. What was looked at as a folder and is a link when it is opened has gone, and is left out.
 *
 * After a failure the tasks that are left end without doing anything, so that the tree is let go of
 * in the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "capture_i.h"
#include "core/guarded.h"

#define FILES_A_TASK 64
#define ENOUGH_TASKS 4      /* waiting: another worker is worth its start */
#define SLACK_NS 20000000LL /* clocks of files run behind by a tick */
#define DENTS 65536

static bool rule_fits(const char *p, const char *path, const char *name)
{
	return strchr(p, '/') ? fnmatch(p + (*p == '/'), path, FNM_PATHNAME) == 0 : fnmatch(p, name, 0) == 0;
}

enum snap_left snap_excluded(const struct snap_rules *r, const char *path, const char *name)
{
	const size_t mark = strlen(SNAP_RULE_INNER);
	enum snap_left left = SNAP_IN;

	for (uint32_t i = 0; r && i < r->n; i++) {
		const char *p = r->patterns[i];
		const bool inner = strncmp(p, SNAP_RULE_INNER, mark) == 0;

		if (!rule_fits(inner ? p + mark : p, path, name))
			continue;
		if (!inner)
			return SNAP_OUT;
		left = SNAP_OUT_INNER;
	}
	return left;
}

int cap_fail(struct cap *c, const struct cap_dir *d, const char *name, int code)
{
	char path[SB_SNAP_PATH_MAX + SB_SNAP_NAME_MAX + 2];

	(void)pthread_mutex_lock(&c->lock);
	if (c->error == 0) {
		size_t n = cap_path(d, name, path, sizeof(path));

		c->error = code;
		(void)snprintf(c->text, sizeof(c->text), "\"%.300s%s\": %s", path, n > 300 ? "..." : "", strerror(-code));
	}
	(void)pthread_mutex_unlock(&c->lock);
	return code;
}

size_t cap_path(const struct cap_dir *d, const char *name, char *out, size_t cap)
{
	size_t at = cap - 1;

	out[at] = '\0';
	for (bool first = true; name; first = false) {
		size_t n = strlen(name);

		if (n + !first > at) {
			out[0] = '\0';
			return 0;
		}
		if (!first)
			out[--at] = '/';
		at -= n;
		memcpy(out + at, name, n);
		name = d && d->parent ? d->parent->v[d->at].name : NULL;
		d = d ? d->parent : NULL;
	}
	memmove(out, out + at, cap - at);
	return cap - 1 - at;
}

void cap_stat(struct cap_entry *e, const struct stat *st)
{
	e->ino = st->st_ino;
	e->size = (uint64_t)st->st_size;
	e->mtime_s = st->st_mtim.tv_sec;
	e->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	e->ctime_ns = (int64_t)((uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec);
	e->mode = st->st_mode;
	e->uid = st->st_uid;
	e->gid = st->st_gid;
	e->links = S_ISDIR(st->st_mode) ? 1 : (uint32_t)st->st_nlink;
}

void cap_opaque(struct cap_worker *w, struct cap_entry *e, uint8_t why)
{
	e->kind = SB_SNAP_OTHER;
	e->why = why;
	e->same = e->known = false;
	w->unreadable++;
}

static void leave_out(struct cap_entry *e)
{
	*e = (struct cap_entry){ .name = e->name, .name_len = e->name_len, .kind = SB_SNAP_OTHER,
				 .why = SB_SNAP_EXCLUDED };
}

/* --- tasks --- */

static void *work(void *arg);

static int push(struct cap *c, struct cap_dir *d, uint32_t from, uint32_t to)
{
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	if (c->n_stack == c->stack_room) {
		size_t room = SB_MAX(c->stack_room * 2, (size_t)256);
		void *v = realloc(c->stack, room * sizeof(*c->stack));

		if (v) {
			c->stack = v;
			c->stack_room = room;
		} else {
			r = -ENOMEM;
		}
	}
	if (r == 0) {
		c->stack[c->n_stack++] = (struct cap_task){ d, from, to };
		if (from != to)
			d->pending++;
		else if (d->parent)
			d->parent->pending++;
		if (c->n_stack >= ENOUGH_TASKS && c->n_workers < c->max_workers) {
			struct cap_worker *w = &c->w[c->n_workers];

			if (pthread_create(&w->thread, NULL, work, w) == 0)
				c->n_workers++;
			else
				c->max_workers = c->n_workers; /* fewer do, too */
		}
		(void)pthread_cond_signal(&c->more);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

static struct cap_dir *dir_free(struct cap_dir *d)
{
	if (!d)
		return NULL;
	for (uint32_t i = 0; i < d->n; i++)
		free(d->v[i].xattrs);
	sb_fd_close(&d->fd);
	free(d->v);
	free(d->arena);
	free(d);
	return NULL;
}

static bool failed(struct cap *c)
{
	bool f;

	(void)pthread_mutex_lock(&c->lock);
	f = c->error != 0;
	(void)pthread_mutex_unlock(&c->lock);
	return f;
}

static bool all_left_out(const struct cap_dir *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (d->v[i].why != SB_SNAP_EXCLUDED && d->v[i].kind != SB_SNAP_NONE)
			return false;
	return d->rest;
}

/* One task of @d is done; write @d, and its parents, when it was the last one. */
static void end_task(struct cap_worker *w, struct cap_dir *d)
{
	struct cap *c = w->cap;

	while (d) {
		struct cap_dir *parent = d->parent;
		struct cap_entry *e = parent ? &parent->v[d->at] : &c->root;
		bool last;
		int r;

		(void)pthread_mutex_lock(&c->lock);
		last = --d->pending == 0;
		(void)pthread_mutex_unlock(&c->lock);
		if (!last)
			return;
		if (d->fd >= 0 && all_left_out(d)) {
			leave_out(e);
		} else if (d->fd >= 0 && !failed(c)) {
			r = cap_folder(w, d, e);
			if (r < 0)
				(void)cap_fail(c, parent, parent ? e->name : ".", r);
		}
		e->child = NULL;
		(void)dir_free(d);
		d = parent;
	}
}

/* --- listing --- */

struct listing {
	char *arena;
	size_t len;
	size_t room;
	uint32_t n;
};

static int list_add(struct listing *l, const char *name)
{
	size_t n = strlen(name) + 1;

	if (l->room - l->len < n + 1) {
		size_t room = SB_MAX(l->room * 2, (size_t)4096);
		void *v = realloc(l->arena, room);

		if (!v)
			return -ENOMEM;
		l->arena = v;
		l->room = room;
	}
	l->arena[l->len++] = (char)(uint8_t)(n - 1); /* its length first */
	memcpy(l->arena + l->len, name, n);
	l->len += n;
	l->n++;
	return 0;
}

struct dent {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static int list(struct cap_worker *w, int fd, struct listing *l)
{
	for (;;) {
		long n = syscall(SYS_getdents64, fd, w->data, DENTS);

		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (long at = 0; at < n;) {
			const struct dent *e = (const struct dent *)(const void *)(w->data + at);
			int r = 0;

			if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
				r = list_add(l, e->name);
			if (r < 0)
				return r;
			at += e->len;
		}
	}
}

static int by_name(const void *a, const void *b)
{
	const struct cap_entry *x = a;
	const struct cap_entry *y = b;

	return sb_snap_name_cmp((const uint8_t *)x->name, x->name_len, (const uint8_t *)y->name,
				y->name_len);
}

static uint8_t why_of(mode_t mode)
{
	return S_ISFIFO(mode)   ? SB_SNAP_FIFO
	       : S_ISSOCK(mode) ? SB_SNAP_SOCKET
	       : S_ISCHR(mode)  ? SB_SNAP_CHAR
				: SB_SNAP_BLOCK;
}

/* Whether a project's rule holds for what @e is: guarded names, and what shows a repository, are kept. */
static bool rule_holds(const struct cap_entry *e, const char *path)
{
	if (e->kind == SB_SNAP_DIR)
		return true;
	return sb_guarded(path) == SB_GUARDED_NO && sb_guarded_above(path) == SB_GUARDED_NO &&
	       !sb_guarded_bare(e->name) &&
	       (e->kind != SB_SNAP_LINK || sb_guarded_link(path) == SB_GUARDED_NO);
}

static enum snap_left by_rules(const struct cap *c, const struct cap_dir *d, const struct cap_entry *e, char *path,
			       size_t cap)
{
	const struct snap_rules *r = c->conf->rules;
	enum snap_left left;

	if (!r || r->n == 0)
		return SNAP_IN;
	if (cap_path(d, e->name, path, cap) == 0)
		return d->rest ? SNAP_OUT : SNAP_IN;
	left = snap_excluded(r, path, e->name);
	if (left == SNAP_OUT_INNER && sb_guarded(path) != SB_GUARDED_NO)
		return SNAP_IN;
	if (left == SNAP_IN && d->rest && sb_guarded(path) == SB_GUARDED_NO)
		return SNAP_OUT_INNER;
	return left;
}

/* Look at one entry. @e->kind stays NONE when it has gone. */
static int look(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e)
{
	const struct cap *c = w->cap;
	const struct snap_capture *conf = c->conf;
	char path[SB_SNAP_PATH_MAX + 1];
	enum snap_left left;
	struct stat st;

	if (conf->leftover && strncmp(e->name, conf->leftover, strlen(conf->leftover)) == 0)
		return unlinkat(d->fd, e->name, 0) < 0 && errno != ENOENT ? -errno : 0;
	left = by_rules(c, d, e, path, sizeof(path));
	if (left == SNAP_OUT) {
		leave_out(e);
		return 0;
	}
	if (fstatat(d->fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOMEM)
			return -errno;
		if (errno != ENOENT)
			cap_opaque(w, e, SB_SNAP_UNREADABLE);
		return 0;
	}
	cap_stat(e, &st);
	if (st.st_dev != c->dev) {
		*e = (struct cap_entry){ .name = e->name, .name_len = e->name_len };
		e->kind = SB_SNAP_OTHER;
		e->why = SB_SNAP_MOUNT;
	} else if (S_ISDIR(st.st_mode)) {
		e->kind = SB_SNAP_DIR;
	} else if (S_ISREG(st.st_mode)) {
		e->kind = SB_SNAP_FILE;
	} else if (S_ISLNK(st.st_mode)) {
		e->kind = SB_SNAP_LINK;
	} else {
		e->kind = SB_SNAP_OTHER;
		e->why = why_of(st.st_mode);
	}
	if (left == SNAP_OUT_INNER && rule_holds(e, path)) {
		e->rest = e->kind == SB_SNAP_DIR;
		if (!e->rest)
			leave_out(e);
	}
	return 0;
}

static int64_t believed(const struct cap *c)
{
	const int64_t old = sb_snap_cache_before(c->old);
	const uint64_t since = c->conf->since_ns;

	return since != 0 && since < INT64_MAX ? SB_MIN(old, (int64_t)since) : old;
}

/* Take from the cache what is true of @e still. */
static void compare(const struct cap *c, struct cap_entry *e, const struct sb_snap_seen *s)
{
	uint64_t mtime = (uint64_t)e->mtime_s * 1000000000U + e->mtime_ns;

	if (e->kind == SB_SNAP_DIR)
		e->old_child = s->child;
	if (e->kind != s->kind || e->why != s->why)
		return;
	if (e->kind == SB_SNAP_OTHER && (e->why == SB_SNAP_EXCLUDED || e->why == SB_SNAP_MOUNT)) {
		e->same = true;
		return;
	}
	if (e->ino != s->ino || e->mode != s->mode || e->uid != s->uid || e->gid != s->gid ||
	    (int64_t)mtime != s->mtime_ns || e->ctime_ns != s->ctime_ns)
		return;
	if (e->kind != SB_SNAP_DIR && e->size != s->size)
		return;
	if ((s->flags & SB_SNAP_SEEN_AGAIN) || e->ctime_ns >= believed(c) - SLACK_NS)
		return;
	if (s->flags & SB_SNAP_SEEN_XATTRS) {
		e->xattrs = malloc(SB_SNAP_HASH);
		if (!e->xattrs)
			return; /* read again instead */
		memcpy(e->xattrs, s->xattrs, SB_SNAP_HASH);
	}
	e->known = true;
	e->same = true;
	e->sparse = (s->flags & SB_SNAP_SEEN_SPARSE) != 0;
	memcpy(e->hash, s->hash, SB_SNAP_HASH);
}

/* Both lists are in order. */
static void use_cache(const struct cap *c, struct cap_dir *d, uint64_t at)
{
	struct sb_snap_seen_dir old;
	struct sb_snap_seen s;
	const uint8_t *name = NULL;
	bool more;

	if (!c->old || at == 0 || !sb_snap_cache_dir(c->old, at, &old))
		return;
	d->old_n = old.left;
	d->old_hash = old.hash;
	more = sb_snap_cache_next(&old, &s, &name);
	for (uint32_t i = 0; i < d->n && more;) {
		struct cap_entry *e = &d->v[i];
		int k = sb_snap_name_cmp((const uint8_t *)e->name, e->name_len, name, s.name_len);

		e->old = k == 0;
		if (k == 0)
			compare(c, e, &s);
		if (k <= 0)
			i++;
		if (k >= 0)
			more = sb_snap_cache_next(&old, &s, &name);
	}
}

static int fill(struct cap_worker *w, struct cap_dir *d, struct listing *l)
{
	size_t at = 0;
	uint32_t n = 0;

	d->arena = sb_take(&l->arena);
	d->v = calloc(l->n ? l->n : 1, sizeof(*d->v));
	if (!d->v)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		struct cap_entry *e = &d->v[n];
		int r;

		*e = (struct cap_entry){ .name_len = (uint8_t)d->arena[at], .name = d->arena + at + 1 };
		at += 2U + e->name_len;
		r = look(w, d, e);
		if (r < 0)
			return cap_fail(w->cap, d, e->name, r);
		if (e->kind != SB_SNAP_NONE)
			n++;
	}
	d->n = n;
	qsort(d->v, n, sizeof(*d->v), by_name);
	return 0;
}

/* Files that must be read, and folders, as tasks; few files at once. */
static int distribute(struct cap_worker *w, struct cap_dir *d)
{
	struct cap *c = w->cap;
	uint32_t from = 0;
	uint32_t unknown = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < d->n; i++) {
		struct cap_dir *child;

		if (d->v[i].kind != SB_SNAP_DIR)
			continue;
		child = calloc(1, sizeof(*child));
		if (!child)
			return -ENOMEM;
		child->parent = d;
		child->at = i;
		child->fd = -1;
		child->rest = d->v[i].rest;
		child->depth = d->depth + 1;
		child->len = d->len + (d->len > 0) + d->v[i].name_len;
		child->pending = 1; /* its listing */
		d->v[i].child = child;
		r = push(c, child, 0, 0);
		if (r < 0)
			free(child);
	}
	for (uint32_t i = 0; r == 0 && i < d->n; i++) {
		if (d->v[i].kind != SB_SNAP_FILE || d->v[i].known)
			continue;
		if (++unknown % FILES_A_TASK == 0) {
			r = push(c, d, from, i + 1);
			from = i + 1;
		}
	}
	for (uint32_t i = from; r == 0 && unknown % FILES_A_TASK != 0 && i < d->n; i++) {
		struct cap_entry *e = &d->v[i];

		if (e->kind != SB_SNAP_FILE || e->known)
			continue;
		r = cap_file(w, d, e);
		if (r < 0)
			return cap_fail(c, d, e->name, r);
	}
	return r;
}

/* A folder that cannot be opened or listed. Return: 0: that is noted in @e; -errno. */
static int closed_dir(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e, int code)
{
	sb_fd_close(&d->fd);
	if (!d->parent || code == -ENOMEM)
		return code;
	if (code == -ENOENT || code == -ENOTDIR || code == -ELOOP) {
		e->kind = SB_SNAP_NONE;
		e->same = false;
	} else {
		cap_opaque(w, e, code == -EMFILE || code == -ENFILE || code == -ENAMETOOLONG ? SB_SNAP_DEEP
											     : SB_SNAP_UNREADABLE);
	}
	return 0;
}

/* Return: 0: @d->fd is open, or why it is not is noted in @e; -errno. */
static int open_dir(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct cap *c = w->cap;
	struct stat st;

	if (d->depth > SB_SNAP_DEPTH_MAX || d->len + 1 + SB_SNAP_NAME_MAX > SB_SNAP_PATH_MAX)
		return closed_dir(w, d, e, -ENAMETOOLONG);
	if (!d->parent)
		d->fd = openat(c->conf->tree->fd, ".", flags);
	else
		d->fd = openat(d->parent->fd, e->name, flags);
	if (d->fd < 0 || fstat(d->fd, &st) < 0)
		return closed_dir(w, d, e, -errno);
	if (st.st_ino != e->ino) /* another one by now */
		e->known = e->same = false;
	if (st.st_dev != c->dev) { /* mounted just now */
		sb_fd_close(&d->fd);
		*e = (struct cap_entry){ .name = e->name, .name_len = e->name_len,
					 .kind = SB_SNAP_OTHER, .why = SB_SNAP_MOUNT };
		return 0;
	}
	if (!e->known)
		cap_stat(e, &st);
	return 0;
}

static int do_dir(struct cap_worker *w, struct cap_dir *d)
{
	struct cap *c = w->cap;
	struct cap_entry *e = d->parent ? &d->parent->v[d->at] : &c->root;
	struct listing l = { 0 };
	int r = open_dir(w, d, e);

	if (r == 0 && d->fd < 0)
		return 0;
	if (r == 0 && !e->known)
		r = cap_xattrs(w, d->fd, e);
	if (r == 0) {
		r = list(w, d->fd, &l);
		if (r < 0 && closed_dir(w, d, e, r) == 0) {
			free(l.arena);
			return 0;
		}
	}
	if (r == 0)
		r = fill(w, d, &l);
	free(l.arena);
	if (r < 0)
		return cap_fail(c, d->parent, d->parent ? e->name : ".", r);
	use_cache(c, d, d->parent ? e->old_child : c->root.old_child);
	return distribute(w, d);
}

static int do_files(struct cap_worker *w, const struct cap_task *t)
{
	for (uint32_t i = t->from; i < t->to; i++) {
		struct cap_entry *e = &t->dir->v[i];
		int r;

		if (e->kind != SB_SNAP_FILE || e->known)
			continue;
		r = cap_file(w, t->dir, e);
		if (r < 0)
			return cap_fail(w->cap, t->dir, e->name, r);
	}
	return 0;
}

static int worker_ready(struct cap_worker *w)
{
	if (!w->data) {
		w->data = malloc(CAP_DATA);
		sb_buf_init(&w->tree, w->cap->conf->max_tree ? w->cap->conf->max_tree : SB_SNAP_TREE_CAP);
		sb_buf_init(&w->record, UINT32_MAX);
	}
	if (!w->digest && sb_digest_new(&w->digest) < 0)
		return -ENOMEM;
	return w->data ? 0 : -ENOMEM;
}

static bool take(struct cap *c, struct cap_task *t)
{
	(void)pthread_mutex_lock(&c->lock);
	while (c->n_stack == 0 && c->running > 0)
		(void)pthread_cond_wait(&c->more, &c->lock);
	if (c->n_stack == 0) { /* and nobody can bring more */
		(void)pthread_cond_broadcast(&c->more);
		(void)pthread_mutex_unlock(&c->lock);
		return false;
	}
	*t = c->stack[--c->n_stack];
	c->running++;
	(void)pthread_mutex_unlock(&c->lock);
	return true;
}

static void *work(void *arg)
{
	struct cap_worker *w = arg;
	struct cap *c = w->cap;
	struct cap_task t;

	if (worker_ready(w) < 0)
		(void)cap_fail(c, NULL, ".", -ENOMEM);
	while (take(c, &t)) {
		int r = 0;

		if (!failed(c))
			r = t.from == t.to ? do_dir(w, t.dir) : do_files(w, &t);
		if (r < 0)
			(void)cap_fail(c, t.dir->parent, ".", r);
		end_task(w, t.dir);
		(void)pthread_mutex_lock(&c->lock);
		if (--c->running == 0 && c->n_stack == 0)
			(void)pthread_cond_broadcast(&c->more);
		(void)pthread_mutex_unlock(&c->lock);
	}
	if (!c->conf->stage && !failed(c)) {
		int r = sb_packer_flush(c->packer, &w->block);

		if (r < 0)
			(void)cap_fail(c, NULL, "the store", r);
	}
	return NULL;
}

/* --- one capture --- */

static void worker_done(struct cap_worker *w)
{
	for (size_t i = 0; i < w->n_links; i++)
		free(w->links[i].path);
	free(w->links);
	free(w->data);
	sb_buf_done(&w->tree);
	sb_buf_done(&w->record);
	sb_pack_block_done(&w->block);
	(void)sb_digest_free(w->digest);
}

static void cap_done(struct cap *c)
{
	for (size_t i = 0; i < CAP_WORKERS; i++)
		worker_done(&c->w[i]);
	free(c->stack);
	free(c->root.xattrs);
	(void)sb_packer_free(c->packer);
	(void)sb_snap_cachew_free(c->cachew);
	(void)sb_snap_cache_free(c->old);
	(void)pthread_cond_destroy(&c->more);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

static size_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return SB_MIN(SB_MAX((size_t)CPU_COUNT(&set), (size_t)1), (size_t)CAP_WORKERS);
}

/* The shared folder itself was closed to its owner: it is opened by the descriptor from before, for the review
 * and an undo are worth more than the mode, which is told as it is then. */
static void open_root(int fd, struct stat *st)
{
	int probe = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const bool closed = probe < 0 && errno == EACCES;

	sb_fd_close(&probe);
	if (closed && fchmod(fd, (st->st_mode & 07777) | 0700) == 0)
		(void)fstat(fd, st);
}

static int start(struct cap *c, struct cap_dir **root)
{
	const struct snap_tree *tree = c->conf->tree;
	struct stat st;
	int r;

	if (fstat(tree->fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 0500) != 0500)
		open_root(tree->fd, &st);
	c->dev = st.st_dev;
	cap_stat(&c->root, &st);
	c->root.kind = SB_SNAP_DIR;
	c->max_workers = processors();
	for (size_t i = 0; i < CAP_WORKERS; i++)
		c->w[i].cap = c;
	r = c->conf->stage ? 0 : sb_packer_new(sb_snap_store_dir(c->store, SB_SNAP_PACKS), &c->packer);
	if (r == 0 && !c->conf->stage)
		r = sb_snap_cachew_new(c->store, &c->cachew);
	if (r == 0 && !c->conf->no_cache)
		r = sb_snap_cache_open(c->store, tree->key, c->dev, &c->old);
	if (r == 0 && c->old)
		c->root.old_child = sb_snap_cache_root(c->old);
	*root = r == 0 ? calloc(1, sizeof(**root)) : NULL;
	if (r == 0 && !*root)
		r = -ENOMEM;
	if (r == 0) {
		(*root)->fd = -1;
		(*root)->pending = 1;
		c->n_workers = 1; /* this thread */
		r = push(c, *root, 0, 0);
		if (r < 0)
			free(*root);
	}
	return r;
}

int snap_capture(const struct snap_capture *conf, struct snap_captured *ret, struct sb_err *err)
{
	struct cap *c = calloc(1, sizeof(*c));
	struct cap_dir *root = NULL;
	struct timespec now;
	int r;

	if (!c)
		return sb_err_set(err, -ENOMEM, "out of memory");
	*ret = (struct snap_captured){ 0 };
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->more, NULL);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	c->conf = conf;
	c->store = conf->store;
	r = start(c, &root);
	if (r == 0) {
		(void)work(&c->w[0]);
		for (size_t i = 1; i < c->n_workers; i++)
			(void)pthread_join(c->w[i].thread, NULL);
		r = c->error;
	}
	if (r == 0)
		r = cap_end(c, ret, (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec);
	if (r < 0)
		(void)sb_err_set(err, r, "snapshot of %s: %s", conf->tree->path,
				 c->text[0] ? c->text : strerror(-r));
	cap_done(c);
	return r;
}
