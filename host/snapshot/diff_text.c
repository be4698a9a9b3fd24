/*
 * Unified differences of two texts, by Myers' algorithm (An O(ND) Difference Algorithm, 1986), with a
 * bound on D: texts that are more different than that are told as one removed and one added.
 */
#include <errno.h>
#include <string.h>

#include "snapshot.h"

#define CONTEXT 3
#define MAX_D 1000  /* memory: D^2 * 4 bytes */
#define MAX_LINES 400000

struct line {
	const uint8_t *p;
	size_t len; /* with its newline */
	uint64_t h;
};

struct text {
	struct line *v;
	size_t n;
};

static int split(const uint8_t *p, size_t len, struct text *t)
{
	size_t room = 0;

	while (len > 0) {
		const uint8_t *nl = memchr(p, '\n', len);
		struct line l = { .p = p, .len = nl ? (size_t)(nl - p) + 1 : len, .h = 1469598103934665603U };

		for (size_t i = 0; i < l.len; i++)
			l.h = (l.h ^ p[i]) * 1099511628211U;
		if (t->n == room) {
			void *v = realloc(t->v, (room = SB_MAX(room * 2, (size_t)256)) * sizeof(*t->v));

			if (!v)
				return -ENOMEM;
			t->v = v;
		}
		t->v[t->n++] = l;
		p += l.len;
		len -= l.len;
	}
	return 0;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->h == b->h && a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}

/* Marks: which lines of each go. */
struct edit {
	const struct line *a;
	const struct line *b;
	int n;
	int m;
	uint8_t *del;
	uint8_t *add;
};

static void all(struct edit *e)
{
	memset(e->del, 1, (size_t)e->n);
	memset(e->add, 1, (size_t)e->m);
}

static void trace(struct edit *e, const int *const *rows, int d)
{
	int x = e->n;
	int y = e->m;

	for (; d > 0; d--) {
		const int *v = rows[d - 1] + d; /* of the step before, by diagonal; row d-1 has 2d+1 */
		int k = x - y;
		bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
		int pk = down ? k + 1 : k - 1;
		int px = v[pk];
		int py = px - pk;

		if (down)
			e->add[py] = 1;
		else
			e->del[px] = 1;
		x = px;
		y = py;
	}
}

static int myers(struct edit *e)
{
	const int bound = SB_MIN(e->n + e->m, MAX_D);
	int **rows = calloc((size_t)bound + 1, sizeof(*rows));
	int *v = calloc(2 * (size_t)bound + 3, sizeof(*v));
	int *mid = v ? v + bound + 1 : NULL;
	int r = rows && v ? 1 : -ENOMEM;
	int d;

	for (d = 0; r == 1 && d <= bound; d++) {
		for (int k = -d; k <= d; k += 2) {
			int x = k == -d || (k != d && mid[k - 1] < mid[k + 1]) ? mid[k + 1] : mid[k - 1] + 1;
			int y = x - k;

			while (x < e->n && y < e->m && same(&e->a[x], &e->b[y])) {
				x++;
				y++;
			}
			mid[k] = x;
			if (x >= e->n && y >= e->m) {
				trace(e, (const int *const *)rows, d);
				r = 0;
				break;
			}
		}
		if (r == 1) {
			rows[d] = malloc((2 * (size_t)d + 3) * sizeof(**rows));
			if (rows[d])
				memcpy(rows[d], mid - d - 1, (2 * (size_t)d + 3) * sizeof(**rows));
			else
				r = -ENOMEM;
		}
	}
	for (int i = 0; rows && i <= bound; i++)
		free(rows[i]);
	free(rows);
	free(v);
	if (r == 1)
		all(e);
	return r < 0 ? r : 0;
}

/* --- output --- */

static void put_line(FILE *out, bool escape, char mark, const struct line *l)
{
	size_t len = l->len > 0 && l->p[l->len - 1] == '\n' ? l->len - 1 : l->len;

	(void)fputc(mark, out);
	for (size_t i = 0; escape && i < len;) {
		char part[1024 * 4 + 8];
		size_t n = SB_MIN(len - i, (size_t)1024);

		/* not in the middle of a character */
		while (n < len - i && n > 1 && (l->p[i + n] & 0xc0) == 0x80)
			n--;
		for (size_t k = i, end = i + n; k < end;) { /* tabs and backslashes stay */
			const uint8_t *stop = l->p + k;

			while (stop < l->p + end && *stop != '\t' && *stop != '\\')
				stop++;
			snap_text(l->p + k, (size_t)(stop - (l->p + k)), part, sizeof(part));
			(void)fputs(part, out);
			k = (size_t)(stop - l->p);
			if (k < end)
				(void)fputc(l->p[k++], out);
		}
		i += n;
	}
	if (!escape)
		(void)fwrite(l->p, 1, len, out);
	(void)fputc('\n', out);
	if (len == l->len)
		(void)fputs("\\ No newline at end of file\n", out);
}

static void put_hunk(FILE *out, bool escape, const struct text *a, const struct text *b, const uint8_t *del,
		     const uint8_t *add, const size_t r[4])
{
	size_t x = r[0];
	size_t y = r[2];

	(void)fprintf(out, "@@ -%zu,%zu +%zu,%zu @@\n", r[1] > r[0] ? r[0] + 1 : r[0], r[1] - r[0],
		      r[3] > r[2] ? r[2] + 1 : r[2], r[3] - r[2]);
	while (x < r[1] || y < r[3]) {
		if (x < r[1] && del[x])
			put_line(out, escape, '-', &a->v[x++]);
		else if (y < r[3] && add[y])
			put_line(out, escape, '+', &b->v[y++]);
		else {
			put_line(out, escape, ' ', &a->v[x++]);
			y++;
		}
	}
}

static void put_all(FILE *out, bool escape, const struct text *a, const struct text *b, const uint8_t *del,
		    const uint8_t *add)
{
	size_t x = 0;
	size_t y = 0;

	while (x < a->n || y < b->n) {
		size_t r[4];
		size_t calm = 0;

		while (x < a->n && y < b->n && !del[x] && !add[y]) {
			x++;
			y++;
		}
		if (x >= a->n && y >= b->n)
			break;
		r[0] = x > CONTEXT ? x - CONTEXT : 0;
		r[2] = y > CONTEXT ? y - CONTEXT : 0;
		while ((x < a->n || y < b->n) && calm <= 2 * CONTEXT) {
			if (x < a->n && del[x]) {
				x++;
				calm = 0;
			} else if (y < b->n && add[y]) {
				y++;
				calm = 0;
			} else {
				x++;
				y++;
				calm++;
			}
		}
		r[1] = calm > CONTEXT ? x - (calm - CONTEXT) : x;
		r[3] = calm > CONTEXT ? y - (calm - CONTEXT) : y;
		put_hunk(out, escape, a, b, del, add, r);
	}
}

static int run(FILE *out, bool escape, const struct text *a, const struct text *b, struct snap_lines *ret)
{
	sb_autofree uint8_t *del = calloc(1, a->n + 1);
	sb_autofree uint8_t *add = calloc(1, b->n + 1);
	size_t from = 0;
	size_t tail = 0;
	struct edit e;
	int r;

	if (!del || !add)
		return -ENOMEM;
	while (from < a->n && from < b->n && same(&a->v[from], &b->v[from]))
		from++;
	while (tail < a->n - from && tail < b->n - from &&
	       same(&a->v[a->n - 1 - tail], &b->v[b->n - 1 - tail]))
		tail++;
	e = (struct edit){ a->v + from, b->v + from, (int)(a->n - from - tail), (int)(b->n - from - tail),
			   del + from, add + from };
	r = myers(&e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < a->n; i++)
		ret->removed += del[i];
	for (size_t i = 0; i < b->n; i++)
		ret->added += add[i];
	if (out)
		put_all(out, escape, a, b, del, add);
	return 0;
}

int snap_diff_text(FILE *out, bool escape, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
		   struct snap_lines *ret)
{
	struct text ta = { 0 };
	struct text tb = { 0 };
	int r;

	*ret = (struct snap_lines){ 0 };
	if (memchr(a, '\0', a_len) || memchr(b, '\0', b_len)) {
		ret->binary = a_len != b_len || memcmp(a, b, a_len) != 0;
		if (ret->binary && out)
			(void)fputs("binary files differ\n", out);
		return 0;
	}
	r = split(a, a_len, &ta);
	if (r == 0)
		r = split(b, b_len, &tb);
	if (r == 0 && (ta.n > MAX_LINES || tb.n > MAX_LINES)) {
		ret->added = tb.n;
		ret->removed = ta.n;
		if (out)
			(void)fputs("too many lines to show\n", out);
	} else if (r == 0) {
		r = run(out, escape, &ta, &tb, ret);
	}
	free(ta.v);
	free(tb.v);
	return r;
}
