/*
 * Theory of operation. What is there now is captured first, as a snapshot of its own: it says what
 * differs, and nothing that is overwritten is lost. Then a journal (undo/KEY in the store) is written,
 * then the steps are taken: removals from the inside out, then folders, files and links, then further
 * names of files, then what folders are like. Then the journal goes.
 *
 * Each step is one rename, one removal or one change of attributes, so after a kill at any place the
 * tree holds whole files of one state or the other, and at most one temporary file, whose name begins
 * as the journal says. The next restore finds the journal: the same restore goes on (it compares
 * again, so what is done is done), another one is refused until that one was finished or taken back.
 * One restore of a folder at a time: undo/KEY.lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "helper.h"
#include "restore_i.h"

#define TMP_NAME ".sendbox-undo-"
#define ROUNDS 64 /* of opening closed folders, each one deeper */

struct journal {
	bool there;
	uint8_t target[SB_SNAP_HASH];
	uint8_t expect[SB_SNAP_HASH]; /* zeroes: none */
	uint8_t saved[SB_SNAP_HASH];
	char tag[17];
};

static const char head[] = "sendbox-undo 1\n";

void snap_tell(const struct snap_restore *c, const char *what, const char *path, const char *why)
{
	char text[SB_SNAP_PATH_MAX * 4 + 8];

	snap_text((const uint8_t *)path, strlen(path), text, sizeof(text));
	if (!c->out)
		return;
	if (c->json) {
		json_t *o = json_pack("{s:s, s:s}", "event", what, "text", why);

		if (o && snap_json_path(o, "path", path) == 0)
			(void)snap_put_json(c->out, o, c->tree->path);
		json_decref(o);
		return;
	}
	(void)fprintf(c->out, "%s: %s%s%s\n", what, text, *why ? ": " : "", why);
}

/* --- journal --- */

static int journal_read(const struct snap_restore *c, struct journal *j, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	struct sb_rd r;
	size_t len = 0;
	int k = sb_fd_read_file(sb_snap_store_dir(c->store, SB_SNAP_UNDO), c->tree->key, 4096, &text, &len);
	const uint8_t *p[4];

	if (k == -ENOENT)
		return 0;
	if (k < 0)
		return sb_err_set(err, k, "undo: journal: %s", strerror(-k));
	r = (struct sb_rd){ .p = (const uint8_t *)text, .len = len };
	p[0] = sb_rd_bytes(&r, sizeof(head) - 1);
	for (size_t i = 1; i < 4; i++) {
		p[i] = sb_rd_bytes(&r, SB_SNAP_HASH);
		if (p[i])
			memcpy(i == 1 ? j->target : i == 2 ? j->expect : j->saved, p[i], SB_SNAP_HASH);
	}
	p[1] = sb_rd_bytes(&r, 16);
	if (sb_rd_end(&r) < 0 || memcmp(p[0], head, sizeof(head) - 1) != 0)
		return sb_err_set(err, -EBADMSG, "undo: the journal of an interrupted undo is damaged; "
				  "remove %s/undo/%s of the store of snapshots by hand, then undo again",
				  "snapshots", c->tree->key);
	memcpy(j->tag, p[1], 16);
	j->there = true;
	return 0;
}

static int journal_write(const struct snap_restore *c, const struct journal *j, struct sb_err *err)
{
	struct sb_buf b;
	int r;

	sb_buf_init(&b, 4096);
	sb_buf_add_str(&b, head);
	sb_buf_add(&b, j->target, SB_SNAP_HASH);
	sb_buf_add(&b, j->expect, SB_SNAP_HASH);
	sb_buf_add(&b, j->saved, SB_SNAP_HASH);
	sb_buf_add(&b, j->tag, 16);
	r = sb_buf_error(&b);
	if (r == 0)
		r = sb_snap_store_write(sb_snap_store_dir(c->store, SB_SNAP_UNDO), c->tree->key, b.data,
					b.len, true);
	sb_buf_done(&b);
	return r < 0 ? sb_err_set(err, r, "undo: journal: %s", strerror(-r)) : 0;
}

static int take_lock(const struct snap_restore *c, int *ret, struct sb_err *err)
{
	char name[SNAP_KEY + 8];

	(void)snprintf(name, sizeof(name), "%s.lock", c->tree->key);
	*ret = openat(sb_snap_store_dir(c->store, SB_SNAP_UNDO), name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		      0600);
	if (*ret < 0)
		return sb_err_set(err, -errno, "undo: lock: %s", strerror(errno));
	if (flock(*ret, LOCK_EX | LOCK_NB) < 0)
		return sb_err_set(err, -EBUSY, "another undo of this folder is running");
	return 0;
}

static int settle(const struct snap_restore *c, struct journal *j, struct sb_err *err)
{
	static const uint8_t none[SB_SNAP_HASH];
	uint8_t rnd[8];

	if (j->there && c->going_on == SNAP_GO_START && memcmp(j->target, c->target, SB_SNAP_HASH) != 0)
		return sb_err_set(err, -EBUSY, "an undo of this folder was interrupted: finish it with "
				  "sendbox undo --continue, or take it back with sendbox undo --abort");
	if (!j->there && c->going_on != SNAP_GO_START)
		return sb_err_set(err, -ENODATA, "no undo of this folder was interrupted");
	if (!j->there) {
		memcpy(j->target, c->target, SB_SNAP_HASH);
		memcpy(j->expect, c->expect ? c->expect : none, SB_SNAP_HASH);
		if (getrandom(rnd, sizeof(rnd), 0) != (ssize_t)sizeof(rnd))
			return sb_err_set(err, -EIO, "no random numbers");
		sb_hex_write(rnd, sizeof(rnd), j->tag);
	} else if (c->going_on == SNAP_GO_BACK) {
		memcpy(j->target, j->saved, SB_SNAP_HASH);
		memset(j->expect, 0, SB_SNAP_HASH);
	}
	return 0;
}

/* --- steps --- */

struct state {
	const struct snap_restore *c;
	struct journal j;
	struct snap_loaded now;
	struct snap_loaded target;
	struct snap_loaded expect;
	struct plan plan;
	bool with_expect;
	bool lost_expect; /* there was one, and it cannot be read */
	char leftover[48];
	struct snap_captured cap;
	bool staged; /* what is there could not be kept: no journal either */
};

static int capture_now(struct state *s, struct sb_err *err)
{
	char hex[SB_PACK_NAME];
	char label[SB_SNAP_LABEL_MAX];
	struct snap_capture cap = { .store = s->c->store, .tree = s->c->tree, .rules = s->c->rules,
				    .label = label, .role = SB_SNAP_ROLE_UNDO, .leftover = s->leftover,
				    .sync = !s->c->dry, .since_ns = s->target.m.time_ns };
	int r;

	sb_hex_write(s->j.target, SB_SNAP_HASH, hex);
	(void)snprintf(label, sizeof(label), "before restoring %.12s", hex);
	r = snap_capture(&cap, &s->cap, err);
	if (r < 0 && s->c->guarded && !s->c->dry && !s->j.there) {
		/* better without a copy of what the session made than with its hooks in place */
		*err = (struct sb_err){ 0 };
		cap.stage = s->staged = true;
		r = snap_capture(&cap, &s->cap, err);
	}
	if (r < 0)
		return r;
	snap_loaded_done(&s->now);
	return snap_load(s->c->store, s->cap.id, &s->now, err);
}

struct opening {
	const struct snap_restore *c;
	size_t n;
};

static int open_above(int root, const char *path)
{
	char above[SB_SNAP_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) : 0;

	memcpy(above, path, n);
	above[n] = '\0';
	return snap_open_beneath(root, above, O_PATH | O_NOFOLLOW);
}

/* A folder that the session closed: open it, so that it can be looked into. */
static int on_closed(void *arg, const struct snap_at *at)
{
	struct opening *o = arg;
	const struct sb_snap_entry *n = at->v[0];
	const struct sb_snap_entry *t = at->v[1];
	sb_autofd int fd = -1;
	char path[40];
	struct stat st;

	if (!n || n->why != SB_SNAP_UNREADABLE || (t && t->why == SB_SNAP_UNREADABLE) ||
	    !snap_wanted(o->c->paths, at->path))
		return 0;
	fd = snap_open_beneath(o->c->tree->fd, at->path, O_PATH | O_NOFOLLOW);
	if (fd == -EACCES) /* the folder that it is in lets nobody through */
		fd = open_above(o->c->tree->fd, at->path);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) || (st.st_mode & 0700) == 0700)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fchmodat(AT_FDCWD, path, (st.st_mode & 07777) | 0700, 0) == 0)
		o->n++;
	return 0;
}

static int open_closed(struct state *s, struct sb_err *err)
{
	for (int i = 0; i < ROUNDS && s->cap.unreadable > 0; i++) {
		const struct sb_snap_entry *const roots[SNAP_WALK] = { &s->now.m.root, &s->target.m.root, NULL };
		struct opening o = { .c = s->c };
		int r = snap_walk(s->c->store, roots, on_closed, &o, err);

		if (r < 0 || o.n == 0)
			return r;
		r = capture_now(s, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static const char *why_failed(int code)
{
	switch (code) {
	case -ELOOP:
	case -EXDEV:
	case -ENOTDIR:
		return "refused: a link is in the way";
	case -ENOTEMPTY:
	case -EEXIST:
		return "left: it holds what the snapshot does not know";
	case -ESTALE:
		return "left: it changed in this moment";
	case -ENODATA:
		return "its content is missing from the store; see sendbox snapshot verify";
	case -EBADMSG:
		return "its content is damaged in the store; see sendbox snapshot verify";
	default:
		return strerror(-code);
	}
}

/* What can be known of a step without taking it. */
static int foresee(const struct state *s, const struct op *o)
{
	int r = o->kind == OP_FILE ? sb_snap_store_has(s->c->store, o->e.hash) : 1;

	return r == 0 ? -ENODATA : r < 0 ? r : 0;
}

static void one(struct state *s, struct apply *a, const struct op *o, struct snap_restored *res)
{
	int r = s->c->dry ? foresee(s, o) : snap_apply(a, o);

	if (r < 0) {
		res->failed++;
		snap_tell(s->c, s->c->dry ? "would fail" : "failed", o->path, why_failed(r));
		return;
	}
	if (o->silent)
		return;
	if (o->kind == OP_REMOVE) {
		res->removed++;
		snap_tell(s->c, s->c->dry ? "would remove" : "removed", o->path, "");
	} else if (o->kind != OP_DIR_META && o->kind != OP_NONE) {
		res->restored++;
		snap_tell(s->c, s->c->dry ? "would restore" : "restored", o->path, "");
	}
}

static void steps(struct state *s, struct apply *a, struct snap_restored *res)
{
	struct plan *p = &s->plan;

	for (size_t i = p->n; i > 0; i--)
		if (p->v[i - 1].kind == OP_REMOVE)
			one(s, a, &p->v[i - 1], res);
	/* the disk may be full: what makes room comes before what needs some */
	for (size_t i = 0; i < p->n; i++)
		if (snap_shrinks(&p->v[i]))
			one(s, a, &p->v[i], res);
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].kind == OP_DIR)
			one(s, a, &p->v[i], res);
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].kind == OP_LINK || p->v[i].kind == OP_META ||
		    (p->v[i].kind == OP_FILE && !snap_shrinks(&p->v[i])))
			one(s, a, &p->v[i], res);
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].kind == OP_HARD)
			one(s, a, &p->v[i], res);
	for (size_t i = p->n; i > 0; i--)
		if (p->v[i - 1].kind == OP_DIR_META)
			one(s, a, &p->v[i - 1], res);
}

static int apply_all(struct state *s, struct snap_restored *res, struct sb_err *err)
{
	struct apply *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return sb_err_set(err, -ENOMEM, "out of memory");
	a->c = s->c;
	a->dir = -1;
	a->root = geteuid() == 0;
	(void)snprintf(a->tmp, sizeof(a->tmp), "%s", s->leftover);
	r = sb_digest_new(&a->digest);
	if (r == 0)
		steps(s, a, res);
	sb_fd_close(&a->dir);
	(void)sb_digest_free(a->digest);
	free(a);
	return r < 0 ? sb_err_set(err, r, "SHA-256: %s", strerror(-r)) : 0;
}

bool snap_is_set(const uint8_t id[SB_SNAP_HASH])
{
	for (size_t i = 0; i < SB_SNAP_HASH; i++)
		if (id[i] != 0)
			return true;
	return false;
}

static int load_both(struct state *s, struct sb_err *err)
{
	int r = snap_load(s->c->store, s->j.target, &s->target, err);

	s->with_expect = r == 0 && snap_is_set(s->j.expect);
	if (s->with_expect)
		r = snap_load(s->c->store, s->j.expect, &s->expect, err);
	if (s->with_expect && (r == -EBADMSG || r == -ENOENT)) { /* it only tells whose a change is */
		*err = (struct sb_err){ 0 };
		s->with_expect = false;
		s->lost_expect = true;
		r = 0;
	}
	return r;
}

static int forget(struct state *s, const uint8_t *id)
{
	char hex[SB_PACK_NAME];

	sb_hex_write(id, SB_SNAP_HASH, hex);
	return unlinkat(sb_snap_store_dir(s->c->store, SB_SNAP_MANIFESTS), hex, 0) < 0 ? -errno : 0;
}

static int make_plan(struct state *s, struct plan *p, struct sb_err *err)
{
	if (s->lost_expect)
		snap_tell_unknown(p, "");
	return snap_plan_make(p, &s->now.m, &s->target.m, s->with_expect ? &s->expect.m : NULL, err);
}

/* Who started this puts it on record first. */
static int ask(const struct state *s, const struct plan *p, struct sb_err *err)
{
	struct snap_msg_plan m = { .type = SNAP_MSG_PLAN, .conflicts = p->res->conflicts,
				   .yours = p->res->theirs };
	uint32_t go = 0;

	if (s->c->ask < 0)
		return 0;
	memcpy(m.saved, s->j.saved, sizeof(m.saved));
	for (size_t i = 0; i < p->n; i++) {
		const enum op_kind k = p->v[i].kind;

		m.remove += k == OP_REMOVE;
		m.restore += k != OP_REMOVE && k != OP_NONE && k != OP_LEFT && k != OP_DIR_META && !p->v[i].silent;
	}
	if (send(s->c->ask, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m) ||
	    recv(s->c->ask, &go, sizeof(go), 0) != (ssize_t)sizeof(go) || go != 1)
		return sb_err_set(err, -ECANCELED, "nothing was changed");
	return 0;
}

/* A look ahead, without a word, when there are closed folders: what is in them is known when they are open. */
static int agree_blind(struct state *s, struct sb_err *err)
{
	struct snap_restored res = { 0 };
	struct snap_restore quiet = *s->c;
	struct plan p = { .c = &quiet, .resume = s->plan.resume, .res = &res };
	int r;

	quiet.out = NULL;
	r = make_plan(s, &p, err);
	if (r == 0)
		r = ask(s, &p, err);
	snap_plan_done(&p);
	return r;
}

/* Return: 0: go on; 1: there is nothing to do. */
static int agree(struct state *s, struct sb_err *err)
{
	const bool closed = !s->c->dry && s->cap.unreadable > 0;
	int r = closed ? agree_blind(s, err) : make_plan(s, &s->plan, err);

	if (r < 0 || closed || s->c->dry)
		return r;
	if (!s->j.there && !snap_plan_any(&s->plan))
		return 1;
	return ask(s, &s->plan, err);
}

static int act(struct state *s, struct snap_restored *ret, struct sb_err *err)
{
	const bool closed = s->cap.unreadable > 0;
	int r = s->staged ? 0 : journal_write(s->c, &s->j, err);

	if (r == 0 && closed)
		r = open_closed(s, err);
	if (r == 0 && closed)
		r = make_plan(s, &s->plan, err);
	if (r == 0)
		r = apply_all(s, ret, err);
	if (r == 0 && !s->staged && unlinkat(sb_snap_store_dir(s->c->store, SB_SNAP_UNDO), s->c->tree->key, 0) < 0)
		r = sb_err_set(err, -errno, "undo: journal: %s", strerror(errno));
	return r;
}

static int run(struct state *s, struct snap_restored *ret, struct sb_err *err)
{
	int r = load_both(s, err);

	if (r == 0)
		r = capture_now(s, err);
	if (r < 0)
		return r;
	if (!s->j.there && !s->staged)
		memcpy(s->j.saved, s->cap.id, SB_SNAP_HASH);
	memcpy(ret->saved, s->j.saved, SB_SNAP_HASH);
	s->plan.c = s->c;
	s->plan.resume = s->j.there;
	s->plan.res = ret;
	r = agree(s, err);
	if (r == 0 && !s->c->dry)
		return act(s, ret, err);
	if (r == 0)
		r = apply_all(s, ret, err);
	memset(ret->saved, 0, sizeof(ret->saved)); /* of nothing that was done */
	if (!s->j.there || r >= 0)
		(void)forget(s, s->cap.id);
	return r < 0 ? r : 0;
}

int snap_restore(const struct snap_restore *c, struct snap_restored *ret, struct sb_err *err)
{
	struct state *s = calloc(1, sizeof(*s));
	sb_autofd int lock = -1;
	int r;

	if (!s)
		return sb_err_set(err, -ENOMEM, "out of memory");
	*ret = (struct snap_restored){ 0 };
	s->c = c;
	r = take_lock(c, &lock, err);
	if (r == 0)
		r = journal_read(c, &s->j, err);
	if (r == 0)
		r = settle(c, &s->j, err);
	(void)snprintf(s->leftover, sizeof(s->leftover), "%s%.16s", TMP_NAME, s->j.tag);
	if (r == 0)
		r = run(s, ret, err);
	snap_plan_done(&s->plan);
	snap_loaded_done(&s->now);
	snap_loaded_done(&s->target);
	snap_loaded_done(&s->expect);
	free(s);
	return r;
}
