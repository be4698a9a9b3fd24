#include "grants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "approve_note.h"
#include "base/fd.h"
#include "core/grant_head.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "keys.h"
#include "state/grant.h"

#define HEAD "grants.head"
#define REMEDY "sendbox grants revoke --all begins anew"

void grants_done(struct grants *g)
{
	free(g->g);
	*g = (struct grants){ 0 };
}

/* ---- rows and their digest ---- */

struct reading {
	struct grants *to;
	size_t room;
	struct sb_sha256 sha;
};

static int on_row(void *arg, const struct sb_appr_grant *g)
{
	struct reading *r = arg;
	char line[SB_GRANT_LINE_MAX];

	sb_sha256_add(&r->sha, line, sb_grant_line(g, line));
	if (r->to->n == r->room) {
		size_t room = r->room ? 2 * r->room : 16;
		struct sb_appr_grant *more = realloc(r->to->g, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->to->g = more;
		r->room = room;
	}
	r->to->g[r->to->n++] = *g;
	return 0;
}

/* All rows, and the state that they are. */
static int read_rows(struct state *s, struct grants *ret, struct sb_grant_state *state,
		     struct sb_err *err)
{
	struct reading r = { .to = ret };
	int k = grants_generation(s, &ret->generation, err);

	sb_sha256_start(&r.sha);
	if (k == 0)
		k = grants_each(s, on_row, &r, err);
	sb_sha256_end(&r.sha, state->sha256);
	state->generation = ret->generation;
	if (k < 0)
		grants_done(ret);
	return k == -ENOMEM ? sb_err_set(err, k, "out of memory") : k;
}

/* ---- the head ---- */

static int keys_dir(const struct sb_dirs *d, struct sb_err *err)
{
	char path[4200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/keys", d->state);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno)) : fd;
}

/* Return: 0; 1: there is none; -EBADMSG: not signed by a key that counts; -errno. */
static int read_head(const struct sb_dirs *d, struct sb_grant_head *ret, struct sb_err *err)
{
	cli_autokeys struct cli_keys keys = { 0 };
	sb_autofree char *text = NULL;
	sb_autofd int dir = -1;
	size_t len = 0;
	int r = cli_keys_load(d, &keys, err);

	if (r < 0)
		return r;
	dir = keys_dir(d, err);
	if (dir < 0)
		return dir;
	r = sb_fd_read_own(dir, HEAD, SB_GRANT_HEAD_MAX, &text, &len);
	if (r == -ENOENT)
		return 1;
	if (r < 0)
		return sb_err_set(err, r, "keys/" HEAD ": %s", r == -EPERM ? SB_FD_NOT_OWN : strerror(-r));
	if (sb_grant_head_parse(text, len, ret) < 0 ||
	    cli_keys_check(&keys, ret->key, (uint64_t)time(NULL), NULL) < 0 ||
	    !sb_sign_verify(text, ret->signed_len, ret->sig, ret->key))
		return -EBADMSG;
	return 0;
}

/* @h: with key and states. */
static int put_head(const struct sb_dirs *d, struct sb_grant_head *h, const uint8_t sec[64],
		    struct sb_err *err)
{
	char text[SB_GRANT_HEAD_MAX];
	sb_autofd int dir = -1;
	size_t len = sb_grant_head_signed(h, text);
	int r;

	sb_sign(text, len, sec, h->sig);
	len = sb_grant_head_write(h, text);
	dir = keys_dir(d, err);
	if (dir < 0)
		return dir;
	r = sb_fd_write_file(dir, HEAD, text, len, 0600);
	return r < 0 ? sb_err_set(err, r, "keys/" HEAD ": %s", strerror(-r)) : 0;
}

static int write_head(const struct sb_dirs *d, const struct sb_grant_state *now,
		      const struct sb_grant_state *next, struct sb_err *err)
{
	struct sb_grant_head h = { .now = *now, .changing = next != NULL };
	uint8_t sec[64];
	int r = cli_host_key(d, h.key, sec, err);

	if (r < 0)
		return r;
	if (next)
		h.next = *next;
	r = put_head(d, &h, sec, err);
	sb_wipe(sec, sizeof(sec));
	return r;
}

/* Whether the head covers the rows. Return: 0, noted in @g; -errno. */
static int judge(const struct sb_dirs *d, struct grants *g, const struct sb_grant_state *state,
		 struct sb_err *err)
{
	struct sb_grant_head h;
	int r = read_head(d, &h, err);

	if (r < 0 && r != -EBADMSG)
		return r;
	g->sound = r == 1 ? g->generation == 0 && g->n == 0 : r == 0 && sb_grant_head_covers(&h, state);
	/* a change that was interrupted: from now on what came of it alone counts */
	if (g->sound && r == 0 && h.changing)
		return write_head(d, state, NULL, err);
	if (g->sound)
		return 0;
	if (r == -EBADMSG)
		(void)snprintf(g->why, sizeof(g->why), "keys/" HEAD " is not signed by this host's key; no "
						       "grant counts: " REMEDY);
	else if (r == 1)
		(void)snprintf(g->why, sizeof(g->why), "keys/" HEAD " is missing; no grant counts: " REMEDY);
	else
		(void)snprintf(g->why, sizeof(g->why), "the grants are not those that were given last "
						       "(generation %llu, the head has %llu): an old or changed state.db; no "
						       "grant counts: " REMEDY,
			       (unsigned long long)g->generation, (unsigned long long)h.now.generation);
	return 0;
}

int grants_load(const struct sb_dirs *d, struct grants *ret, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	struct sb_grant_state state;
	struct grants g = { 0 };
	int r = state_open(d, &s, err);

	/* as a writer, so that no change is half done */
	if (r == 0)
		r = grants_begin(s, err);
	if (r < 0)
		return r;
	r = read_rows(s, &g, &state, err);
	if (r == -EBADMSG) { /* rows of nobody: the same as rows that do not fit */
		(void)snprintf(g.why, sizeof(g.why), "%.250s", err->text);
		*err = (struct sb_err){ 0 };
		r = 0;
	} else if (r == 0) {
		r = judge(d, &g, &state, err);
	}
	grants_rollback(s);
	if (r < 0) {
		grants_done(&g);
		return r;
	}
	*ret = g;
	return 0;
}

/* ---- changes ---- */

struct change {
	const struct sb_dirs *d;
	struct state *s;
	struct grants was;
	struct sb_grant_state now;
	bool unreadable;
};

static void change_done(struct change *c)
{
	if (c->s)
		grants_rollback(c->s); /* nothing, after a commit */
	c->s = state_close(c->s);
	grants_done(&c->was);
}
#define autochange SB_CLEANUP(change_done)

static int change_begin(struct change *c, const struct sb_dirs *d, struct sb_err *err)
{
	int r = state_open(d, &c->s, err);

	c->d = d;
	if (r == 0)
		r = grants_begin(c->s, err);
	if (r == 0)
		r = read_rows(c->s, &c->was, &c->now, err);
	if (r == -EBADMSG && grants_generation(c->s, &c->was.generation, NULL) == 0) {
		*err = (struct sb_err){ 0 };
		c->unreadable = true;
		(void)snprintf(c->was.why, sizeof(c->was.why), "a grant's row cannot be read: " REMEDY);
		return 0;
	}
	return r == 0 ? judge(d, &c->was, &c->now, err) : r;
}

/* The head says both states until the rows are there; then the new one alone. */
static int change_commit(struct change *c, bool anew, struct sb_err *err)
{
	struct grants g = { 0 };
	struct sb_grant_state next;
	struct sb_grant_head h = { 0 };
	int r;

	/* beyond whatever an older copy may have had */
	if (anew && read_head(c->d, &h, NULL) == 0 && h.now.generation > c->was.generation)
		c->was.generation = h.now.generation;
	r = read_rows(c->s, &g, &next, err);
	next.generation = c->was.generation + 1;
	grants_done(&g);
	if (r == 0)
		r = write_head(c->d, anew ? &next : &c->now, anew ? NULL : &next, err);
	if (r == 0)
		r = grants_commit(c->s, next.generation, err);
	if (r < 0)
		return r;
	/* either counts until this is done, so a failure changes nothing */
	return write_head(c->d, &next, NULL, err);
}

static int stale(const struct change *c, struct sb_err *err)
{
	return c->was.sound ? 0 : sb_err_set(err, -ESTALE, "%s", c->was.why);
}

int grants_add(const struct sb_dirs *d, const struct sb_appr_grant *g, const struct approve_answer *ans,
	       int64_t *ret_id, struct sb_err *err)
{
	autochange struct change c = { 0 };
	size_t same = 0;
	int64_t id = 0;
	int r = change_begin(&c, d, err);

	if (r == 0)
		r = stale(&c, err);
	for (size_t i = 0; r == 0 && i < c.was.n; i++)
		same += c.was.g[i].deny == g->deny;
	if (r == 0 && same >= SB_APPR_MAX_GRANTS)
		r = sb_err_set(err, -E2BIG, "there are %d already: sendbox grants revoke removes some",
			       SB_APPR_MAX_GRANTS);
	if (r == 0)
		r = grants_insert(c.s, g, &id, err);
	if (r == 0)
		r = approve_note_grant(d, g->deny ? "deny-rule" : "grant", id, g, ans, err);
	if (r == 0)
		r = change_commit(&c, false, err);
	if (r == 0)
		*ret_id = id;
	return r;
}

static const struct sb_appr_grant *by_id(const struct change *c, int64_t id)
{
	for (size_t i = 0; i < c->was.n; i++)
		if (c->was.g[i].id == id)
			return &c->was.g[i];
	return NULL;
}

int grants_use(const struct sb_dirs *d, int64_t id, struct sb_err *err)
{
	autochange struct change c = { 0 };
	const struct sb_appr_grant *g = NULL;
	size_t n = 0;
	int r = change_begin(&c, d, err); /* nobody else changes them until it is committed */

	if (r == 0)
		r = stale(&c, err);
	if (r == 0)
		g = by_id(&c, id);
	if (r == 0 && !g)
		r = sb_err_set(err, -ENOENT, "grant %lld is gone", (long long)id);
	if (r < 0 || g->uses == 0)
		return r;
	r = g->uses > 1 ? grants_uses(c.s, id, g->uses - 1, err) : grants_delete(c.s, id, &n, err);
	return r == 0 ? change_commit(&c, false, err) : r;
}

int grants_revoke(const struct sb_dirs *d, int64_t id, size_t *ret_n, struct sb_err *err)
{
	autochange struct change c = { 0 };
	const struct sb_appr_grant *g = NULL;
	int r = change_begin(&c, d, err);

	if (r == 0 && id != 0)
		r = stale(&c, err);
	if (r == 0)
		g = by_id(&c, id);
	if (r == 0 && id != 0 && !g)
		r = sb_err_set(err, -ENOENT, "there is no grant %lld: sendbox grants ls lists them",
			       (long long)id);
	if (r == 0)
		r = grants_delete(c.s, id, ret_n, err);
	if (r == 0)
		r = approve_note_grant(d, id == 0 ? "revoke-all" : "revoke", id, g, NULL, err);
	return r == 0 ? change_commit(&c, id == 0 && !c.was.sound, err) : r;
}

/* Sound grants: their head by the new key. What does not count is not made to. */
static int resign(void *arg, const uint8_t key[32], const uint8_t sec[64], struct sb_err *err)
{
	const struct change *c = arg;
	struct sb_grant_head h = { .now = c->now };

	if (!c->was.sound || c->was.generation == 0)
		return 0;
	memcpy(h.key, key, sizeof(h.key));
	return put_head(c->d, &h, sec, err);
}

int grants_rotate(const struct sb_dirs *d, bool floor, uint8_t ret[32], struct sb_err *err)
{
	autochange struct change c = { 0 }; /* no grant changes meanwhile */
	int r = change_begin(&c, d, err);

	return r < 0 ? r : cli_keys_rotate(d, floor, resign, &c, ret, err);
}
