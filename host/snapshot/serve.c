/* The captures of one session, on request. Between them it waits, with nothing but the store open. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helper.h"
#include "snapshot.h"

#define TELL_MAX 500

struct serve {
	struct sb_snap_store *store;
	struct snap_tree *trees;
	const struct snap_rules *rules;
	int sock;
	size_t n;
	size_t told;
	uint8_t before[SNAP_TREES_MAX][SB_SNAP_HASH];
	uint8_t root[SNAP_TREES_MAX][SB_SNAP_HASH];
	uint64_t since[SNAP_TREES_MAX]; /* when they were taken */
	bool have[SNAP_TREES_MAX];
};

static int put(const struct serve *s, const void *p, size_t len)
{
	ssize_t n;

	do
		n = send(s->sock, p, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int on_guarded(void *arg, enum snap_status st, const char *path, const char *what)
{
	struct serve *s = arg;
	struct snap_msg_guarded m = { .type = SNAP_MSG_GUARDED, .status = st };

	if (s->told++ >= TELL_MAX)
		return 0;
	snap_text((const uint8_t *)path, strlen(path), m.path, sizeof(m.path));
	(void)snprintf(m.what, sizeof(m.what), "%s", what);
	return put(s, &m, sizeof(m));
}

static int compare(struct serve *s, const struct snap_request *q, struct snap_msg_done *m,
		   struct sb_err *err)
{
	struct snap_loaded a = { 0 };
	struct snap_loaded b = { 0 };
	struct snap_diff_counts n = { 0 };
	int r = snap_load(s->store, s->before[q->tree], &a, err);

	if (r == 0)
		r = snap_load(s->store, m->id, &b, err);
	s->told = 0;
	if (r == 0)
		r = snap_guarded(s->store, &a.m, &b.m, on_guarded, s, &n, err);
	m->added = n.added;
	m->deleted = n.deleted;
	m->modified = n.modified;
	m->guarded = n.guarded;
	m->same = n.added + n.deleted + n.modified == 0;
	snap_loaded_done(&a);
	snap_loaded_done(&b);
	return r;
}

/* When the snapshot after the session cannot be written, what the session changed is compared all the same:
 * a full disk is no way around the review. Return: 0: @got is in memory, why is in @m's text; -errno. */
static int without(struct snap_capture *c, struct snap_captured *got, struct snap_msg_done *m, struct sb_err *err)
{
	struct sb_err e = { 0 };
	int r;

	c->stage = true;
	r = snap_capture(c, got, &e);
	if (r < 0)
		return r; /* the first reason says more */
	m->staged = 1;
	(void)snprintf(m->text, sizeof(m->text), "%.511s", err->text);
	*err = (struct sb_err){ 0 };
	return 0;
}

/* What is told as taken can be read back. */
static int check(struct serve *s, const struct snap_captured *got, struct sb_err *err)
{
	sb_autofree uint8_t *p = NULL;
	struct snap_loaded l = { 0 };
	size_t len = 0;
	int r = snap_load(s->store, got->id, &l, err);

	if (r == 0) {
		r = sb_snap_store_get(s->store, sb_snap_store_digest(s->store), got->root, SB_SNAP_TREE_CAP, &p, &len);
		if (r < 0)
			(void)sb_err_set(err, r, "the snapshot cannot be read back: %s", strerror(-r));
	}
	snap_loaded_done(&l);
	return r;
}

static int answer(struct serve *s, const struct snap_request *q, struct snap_msg_done *m,
		  struct sb_err *err)
{
	const bool after = q->op == SNAP_OP_AFTER;
	struct snap_captured got;
	struct snap_capture c = { .store = s->store, .tree = &s->trees[q->tree], .rules = s->rules,
				  .label = q->label, .since_ns = after ? s->since[q->tree] : 0,
				  .sync = !after, /* what an undo needs is on the disk before the command runs */
				  .role = after ? SB_SNAP_ROLE_AFTER : SB_SNAP_ROLE_BEFORE };
	int r = snap_capture(&c, &got, err);

	if (r == 0)
		r = check(s, &got, err);
	if (r < 0 && after && s->have[q->tree])
		r = without(&c, &got, m, err);
	if (r < 0)
		return r;
	memcpy(m->id, got.id, sizeof(m->id));
	m->files = got.counts.files;
	m->bytes = got.counts.bytes;
	m->read_files = got.read_files;
	m->unreadable = got.unreadable;
	if (!after) {
		memcpy(s->before[q->tree], got.id, SB_SNAP_HASH);
		memcpy(s->root[q->tree], got.root, SB_SNAP_HASH);
		s->since[q->tree] = got.time_ns;
		s->have[q->tree] = true;
		return 0;
	}
	m->same = s->have[q->tree] && memcmp(s->root[q->tree], got.root, SB_SNAP_HASH) == 0;
	return s->have[q->tree] && !m->same ? compare(s, q, m, err) : 0;
}

int snap_serve(struct sb_snap_store *store, struct snap_tree *trees, size_t n, const struct snap_rules *rules,
	       int sock, struct sb_err *err)
{
	struct serve *s = calloc(1, sizeof(*s));
	int r = s ? 0 : sb_err_set(err, -ENOMEM, "out of memory");

	if (s)
		*s = (struct serve){ .store = store, .trees = trees, .rules = rules, .sock = sock, .n = n };
	while (r == 0) {
		struct snap_msg_done m = { .type = SNAP_MSG_DONE };
		struct sb_err e = { 0 };
		struct snap_request q;
		ssize_t got = recv(sock, &q, sizeof(q), 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break; /* the session is over */
		if (got != (ssize_t)sizeof(q) || q.tree >= n || q.op < SNAP_OP_BEFORE || q.op > SNAP_OP_AFTER) {
			r = sb_err_set(err, -EBADMSG, "a request that is none");
			break;
		}
		q.label[sizeof(q.label) - 1] = '\0';
		m.code = answer(s, &q, &m, &e);
		sb_snap_store_unstage(store);
		if (e.text[0])
			(void)snprintf(m.text, sizeof(m.text), "%.511s", e.text);
		r = put(s, &m, sizeof(m));
	}
	free(s);
	return r;
}
