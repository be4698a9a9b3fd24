#include "store/audit_verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

struct check {
	struct sb_audit_reader *r;
	struct sb_audit_state s;
	const struct sb_audit_head *heads;
	size_t n_heads;
	size_t next; /* head */
	struct sb_audit_report *rep;
	struct sb_err why; /* here, so that it is not cleared for each record */
};

static void bad(struct check *c, uint64_t seq, const struct sb_audit_line *l, const char *fmt, ...)
	SB_PRINTF(4, 5);
static void bad(struct check *c, uint64_t seq, const struct sb_audit_line *l, const char *fmt, ...)
{
	va_list ap;

	c->rep->good = false;
	c->rep->bad = seq;
	c->rep->bad_from = seq;
	sb_audit_log_name(l->first, c->rep->file);
	c->rep->offset = l->offset;
	va_start(ap, fmt);
	(void)vsnprintf(c->rep->text, sizeof(c->rep->text), fmt, ap);
	va_end(ap);
}

/* Heads of the size that the tree has now. Return: false: one is of another log. */
static bool heads_fit(struct check *c, const struct sb_audit_line *l)
{
	uint8_t root[SB_MERKLE_HASH];

	while (c->next < c->n_heads && c->heads[c->next].n == c->s.tree.n && c->s.tree.n > 0) {
		sb_merkle_root(&c->s.tree, root);
		if (memcmp(root, c->heads[c->next].root, sizeof(root)) != 0) {
			bad(c, c->s.tree.n - 1, l, "it was changed after the head of %llu records was "
			    "signed, or all from record %llu on were written anew",
			    (unsigned long long)c->s.tree.n, (unsigned long long)c->rep->good_n);
			c->rep->bad_from = c->rep->good_n;
			return false;
		}
		c->rep->good_n = c->heads[c->next++].n;
	}
	return true;
}

/* With the hash of the record that stands before it, the line would be the one that was signed. */
static bool only_prev_changed(const struct check *c, const struct sb_audit_line *l)
{
	static const char key[] = "\"prev\":\"";
	sb_autofree char *line = strndup(l->p, l->len);
	char *at = line ? strstr(line, key) : NULL;
	struct sb_merkle t = c->s.tree;
	uint8_t h[SB_MERKLE_HASH];
	char hex[2 * SB_MERKLE_HASH + 1];

	if (!at || c->next >= c->n_heads || c->heads[c->next].n != t.n + 1)
		return false;
	sb_hex_write(c->s.prev, sizeof(c->s.prev), hex);
	memcpy(at + sizeof(key) - 1, hex, 2 * SB_MERKLE_HASH);
	sb_merkle_leaf(line, l->len, h);
	sb_merkle_add(&t, h);
	sb_merkle_root(&t, h);
	return memcmp(h, c->heads[c->next].root, sizeof(h)) == 0;
}

/*
 * Record @n names another one before it than the one that stands there. Which of the two was changed
 * shows the next one: it names the @n that was written.
 */
static void name_broken(struct check *c, const struct sb_audit_line *before,
			const struct sb_audit_line *l)
{
	uint64_t n = c->s.tree.n;
	struct sb_audit_line at = *l;
	struct sb_audit_line next;
	struct sb_audit_record rec;
	uint8_t leaf[SB_MERKLE_HASH];
	/* all before it are as they were signed, or it would be, too */
	bool head_says = c->rep->good_n == n || only_prev_changed(c, l);

	sb_merkle_leaf(l->p, l->len, leaf);
	at.p = NULL;
	if (head_says || (sb_audit_reader_next(c->r, &rec, &next, NULL) == 0 && rec.seq == n + 1 &&
			  memcmp(rec.prev, leaf, sizeof(leaf)) != 0))
		bad(c, n, &at, "it is not what was written there");
	else
		bad(c, n > 0 ? n - 1 : 0, before, "it is not what was written there: the next record names another");
}

/* A record. Return: whether the log is good so far. */
static bool record(struct check *c, const struct sb_audit_line *before,
		   const struct sb_audit_line *l)
{
	struct sb_audit_record rec;
	uint64_t n = c->s.tree.n;

	if (sb_audit_parse(l->p, l->len, &rec, &c->why) < 0) {
		bad(c, n, l, "%.200s", c->why.text);
		return false;
	}
	if (rec.seq != n) {
		bad(c, n, l, "record %llu stands in its place", (unsigned long long)rec.seq);
		return false;
	}
	if (memcmp(rec.prev, c->s.prev, sizeof(rec.prev)) != 0) {
		name_broken(c, before, l);
		return false;
	}
	sb_merkle_leaf(l->p, l->len, c->s.prev);
	sb_merkle_add(&c->s.tree, c->s.prev);
	return heads_fit(c, l);
}

/* The first line of a segment repeats what the log has come to. */
static bool first_line(struct check *c, const struct sb_audit_line *l, bool very_first)
{
	struct sb_audit_state s;

	if (sb_audit_log_parse(l->p, l->len, &s) < 0 || s.tree.n != l->first) {
		bad(c, l->first, l, "the first line of its segment was changed");
		return false;
	}
	if (very_first) { /* where earlier ones may be gone: the heads tell whether it is true */
		c->s = s;
		return heads_fit(c, l);
	}
	if (s.tree.n != c->s.tree.n) {
		bad(c, c->s.tree.n, l, "it is missing: the next segment begins with record %llu",
		    (unsigned long long)s.tree.n);
		return false;
	}
	if (memcmp(s.prev, c->s.prev, sizeof(s.prev)) != 0 ||
	    memcmp(s.tree.peak, c->s.tree.peak,
		   sb_merkle_peaks(s.tree.n) * SB_MERKLE_HASH) != 0) {
		bad(c, l->first, l, "the first line of its segment was changed");
		return false;
	}
	return true;
}

static int walk(struct check *c, struct sb_err *err)
{
	struct sb_audit_line before = { .first = c->rep->first };
	bool any = false;

	for (;;) {
		struct sb_audit_line l;
		int k = sb_audit_reader_line(c->r, &l, &c->why);

		if (k == SB_AUDIT_END)
			return 0;
		if (k == -EBADMSG) {
			bad(c, c->s.tree.n, &before, "%.200s", c->why.text);
			return 0;
		}
		if (k < 0)
			return sb_err_set(err, k, "%s", c->why.text);
		if (!(l.is_head ? first_line(c, &l, !any) : record(c, &before, &l)))
			return 0;
		any = true;
		before = l;
		before.p = NULL;
	}
}

/* Everything is there that a head speaks of. */
static void check_end(struct check *c)
{
	struct sb_audit_line l = { .first = c->rep->first };

	if (c->next >= c->n_heads)
		return;
	if (c->heads[c->next].n < c->s.tree.n) /* of what is gone */
		bad(c, c->heads[c->next].n, &l, "the records of the head of %llu are gone: verify with a "
		    "later head", (unsigned long long)c->heads[c->next].n);
	else
		bad(c, c->s.tree.n, &l, "it is missing: the head was signed for %llu records, and the log "
		    "ends after %llu", (unsigned long long)c->heads[c->n_heads - 1].n,
		    (unsigned long long)c->s.tree.n);
}

/* Whether the log begins early enough: the first line of its first segment alone proves nothing. */
static bool check_begin(struct check *c, uint64_t from)
{
	struct sb_audit_line l = { .first = c->rep->first };

	if (c->rep->first <= from)
		return true;
	bad(c, from, &l, "it is missing, and all up to record %llu: --from %llu verifies the rest",
	    (unsigned long long)c->rep->first - 1, (unsigned long long)c->rep->first);
	return false;
}

int sb_audit_verify(int dir, const struct sb_audit_head *heads, size_t n_heads, uint64_t from,
		    struct sb_audit_report *ret, struct sb_err *err)
{
	struct sb_audit_report rep = { .good = true };
	struct check c = { .heads = heads, .n_heads = n_heads, .rep = &rep };
	sb_autoreader struct sb_audit_reader *r = NULL;
	int k = sb_audit_reader_new(dir, &r, err);

	if (k < 0)
		return k;
	c.r = r;
	rep.first = sb_audit_reader_first(r);
	if (!check_begin(&c, from)) {
		*ret = rep;
		return 0;
	}
	while (c.next < n_heads && heads[c.next].n < rep.first)
		c.next++; /* nothing can be said about them */
	if (c.next == n_heads && n_heads > 0)
		c.next = n_heads - 1;
	k = walk(&c, err);
	if (k < 0)
		return k;
	rep.n = c.s.tree.n;
	rep.rest = sb_audit_reader_rest(r);
	sb_merkle_root(&c.s.tree, rep.root);
	if (rep.good)
		check_end(&c);
	*ret = rep;
	return 0;
}

/* ---- proofs ---- */

static int take(const struct sb_audit_line *l, char **line, struct sb_err *err)
{
	*line = strndup(l->p, l->len);
	return *line ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
}

int sb_audit_hashes(int dir, uint64_t n, const struct sb_merkle_range *ranges, size_t n_ranges,
		    uint8_t (*ret)[SB_MERKLE_HASH], uint64_t m, uint8_t *leaf, char **line,
		    struct sb_err *err)
{
	sb_autoreader struct sb_audit_reader *r = NULL;
	sb_autofree struct sb_merkle *trees = calloc(n_ranges + 1, sizeof(*trees));
	struct sb_audit_state s = { 0 };
	int k = trees ? sb_audit_reader_new(dir, &r, err) : sb_err_set(err, -ENOMEM, "out of memory");

	if (k == 0 && sb_audit_reader_first(r) > 0)
		k = sb_err_set(err, -ENODATA, "the first records are gone: proofs need them");
	while (k == 0 && s.tree.n < n) {
		struct sb_audit_line l;
		uint64_t seq = s.tree.n;

		k = sb_audit_reader_line(r, &l, err);
		if (k == SB_AUDIT_END)
			k = sb_err_set(err, -ENODATA, "the log has %llu records only",
				       (unsigned long long)seq);
		if (k < 0 || l.is_head)
			continue;
		k = sb_audit_state_add(&s, l.p, l.len, NULL, err);
		if (k < 0)
			return sb_err_add(err, k, "at record %llu: see sendbox audit verify",
					  (unsigned long long)seq);
		for (size_t i = 0; i < n_ranges; i++)
			if (seq >= ranges[i].from && seq < ranges[i].to)
				sb_merkle_add(&trees[i], s.prev);
		if (leaf && seq == m)
			memcpy(leaf, s.prev, SB_MERKLE_HASH);
		if (line && seq == m)
			k = take(&l, line, err);
	}
	for (size_t i = 0; k == 0 && i < n_ranges; i++)
		sb_merkle_root(&trees[i], ret[i]);
	return k;
}
