/*
 * Files of the earlier system: what asks for something that is not available yet becomes a comment,
 * line by line, so that everything else of the file stays as it was written. Rounds, because a map
 * whose every key went has to go as well.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cfg_i.h"

#define ROUNDS 16

struct range { /* lines from 0 */
	size_t first;
	size_t end;
	size_t indent; /* bytes in front of what is commented out */
	char note[300];
};

struct text {
	const char *bytes;
	size_t len;
	size_t *line; /* owned: offset of each line, and of the end */
	size_t n;
};

static int split(struct text *t)
{
	size_t n = 1;

	for (size_t i = 0; i < t->len; i++)
		n += t->bytes[i] == '\n';
	t->line = malloc((n + 1) * sizeof(*t->line));
	if (!t->line)
		return -ENOMEM;
	t->n = 0;
	t->line[t->n++] = 0;
	for (size_t i = 0; i < t->len; i++)
		if (t->bytes[i] == '\n')
			t->line[t->n++] = i + 1;
	t->line[t->n] = t->len;
	return 0;
}

static size_t indent_of(const struct text *t, size_t line)
{
	size_t at = t->line[line];

	while (at < t->line[line + 1] && t->bytes[at] == ' ')
		at++;
	return at - t->line[line];
}

/* Neither blank nor a comment. */
static bool has_content(const struct text *t, size_t line)
{
	size_t at = t->line[line] + indent_of(t, line);

	return at < t->line[line + 1] && t->bytes[at] != '#' && t->bytes[at] != '\n' &&
	       t->bytes[at] != '\r';
}

/* ---- from a problem to lines ---- */

/* An entry of a map or list begins a line of its own: its first line and how far it goes. */
static bool block(const struct text *t, const struct doc_node *key, const struct doc_node *value,
		  struct range *r)
{
	uint32_t from = key ? key->line : value->line;
	size_t line = from - 1;
	size_t indent;
	size_t last;

	if (from == 0 || line >= t->n)
		return false;
	indent = indent_of(t, line);
	if (key ? key->col != indent + 1 : t->bytes[t->line[line] + indent] != '-')
		return false;
	last = line;
	for (size_t i = line + 1; i < t->n; i++) {
		size_t in = indent_of(t, i);

		if (!has_content(t, i))
			continue;
		if (in < indent || (in == indent && !(key && value->kind == DOC_SEQ &&
						      t->bytes[t->line[i] + in] == '-')))
			break;
		last = i;
	}
	r->first = line;
	r->end = last + 1;
	r->indent = indent;
	return true;
}

struct step {
	const struct doc_node *node;
	size_t next;
};

/* The innermost entry that holds the place and begins a line. */
static bool find_range(const struct text *t, const struct doc_node *root, const struct problem *p,
		       struct range *ret)
{
	struct step way[DOC_MAX_DEPTH + 1] = { { root, 0 } };
	size_t depth = 1;

	while (depth > 0) {
		struct step *s = &way[depth - 1];
		const struct doc_node *v;

		if (s->next == s->node->n) {
			depth--;
			continue;
		}
		v = &s->node->items[s->next++];
		if (v->line == p->line && v->col == p->col) {
			struct range r = { 0 };

			for (; depth > 0; depth--) {
				s = &way[depth - 1];
				if (!block(t, s->node->kind == DOC_MAP ? &s->node->keys[s->next - 1] : NULL,
					   &s->node->items[s->next - 1], &r))
					continue;
				*ret = r;
				return true;
			}
			return false;
		}
		if (v->n > 0)
			way[depth++] = (struct step){ v, 0 };
	}
	return false;
}

/* ---- one round ---- */

static int by_line(const void *a, const void *b)
{
	const struct range *x = a;
	const struct range *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

static void write_out(const struct text *t, struct range *r, size_t n, struct sb_buf *out)
{
	size_t line = 0;

	qsort(r, n, sizeof(*r), by_line);
	for (size_t i = 0; i < n; i++) {
		if (r[i].first < line)
			continue; /* inside of one before */
		sb_buf_add(out, t->bytes + t->line[line], t->line[r[i].first] - t->line[line]);
		if (r[i].note[0])
			sb_buf_addf(out, "%*s# %s\n", (int)r[i].indent, "", r[i].note);
		for (line = r[i].first; line < r[i].end; line++) {
			size_t in = SB_MIN(indent_of(t, line), r[i].indent);
			const char *from = t->bytes + t->line[line];
			size_t len = t->line[line + 1] - t->line[line];

			sb_buf_add(out, from, in);
			sb_buf_add_str(out, len == in || from[in] == '\n' ? "#" : "# ");
			sb_buf_add(out, from + in, len - in);
		}
	}
	sb_buf_add(out, t->bytes + t->line[line], t->len - t->line[line]);
}

/* Whether a problem goes away when its entry becomes a comment. */
static bool goes(const struct problem *p, const struct problems *first, bool again)
{
	if (strcmp(p->code, "not_available") == 0)
		return true;
	if (!again || strcmp(p->code, "wrong_type") != 0 || strncmp(p->message, "has no value", 12) != 0)
		return false;
	for (size_t i = 0; i < first->n; i++) /* it had no value from the start */
		if (strcmp(first->v[i].key, p->key) == 0 && strcmp(first->v[i].code, p->code) == 0)
			return false;
	return true;
}

static int look(const struct text *t, const char *file, struct doc **doc, struct problems *p)
{
	struct cfg_source s = { CFG_PROJECT, file, t->bytes, t->len };
	struct arena a = { NULL };
	struct cfg_value v;
	int r = doc_load_partial(t->bytes, t->len, DOC_YAML, file, doc, p);

	if (r == 0)
		r = cfg_check(&a, *doc, &s, &v, p);
	arena_done(&a);
	return r;
}

static int round_of(struct text *t, const char *file, const struct problems *first, bool again,
		    struct sb_buf *out, size_t *n, struct problems *p)
{
	sb_autofree struct range *r = NULL;
	struct doc *d = NULL;
	int k = look(t, file, &d, p);

	*n = 0;
	r = calloc(p->n + 1, sizeof(*r));
	if (k == 0 && !r)
		k = -ENOMEM;
	for (size_t i = 0; k == 0 && i < p->n; i++) {
		if (!goes(&p->v[i], first, again) || !doc_root(d) ||
		    !find_range(t, doc_root(d), &p->v[i], &r[*n]))
			continue;
		if (strcmp(p->v[i].code, "not_available") == 0)
			(void)snprintf(r[*n].note, sizeof(r[*n].note), "not available yet: %.250s",
				       p->v[i].key);
		++*n;
	}
	if (k == 0 && *n > 0)
		write_out(t, r, *n, out);
	(void)doc_free(d);
	return k == -EBADMSG ? 0 : k; /* told in @p */
}

int cfg_migrate(const char *bytes, size_t len, const char *file, char **ret, size_t *ret_len,
		size_t *ret_changes, struct problems *problems)
{
	sb_autofree char *now = NULL;
	struct problems first = { 0 };
	size_t changes = 0;
	size_t now_len = len;
	size_t n = 1;
	int r = 0;

	if (len > DOC_MAX_BYTES) {
		problems_add(problems, &(struct doc_node){ .file = file }, "", "limit",
			     "the file has more than %u MiB", DOC_MAX_BYTES >> 20);
		return -EBADMSG;
	}
	now = malloc(len + 1);
	if (!now)
		return -ENOMEM;
	memcpy(now, bytes, len);
	now[len] = '\0';
	for (int round = 0; r == 0 && n > 0 && round < ROUNDS; round++) {
		struct text t = { now, now_len, NULL, 0 };
		struct problems p = { 0 };
		struct sb_buf out;

		sb_buf_init(&out, 2 * DOC_MAX_BYTES);
		r = split(&t);
		if (r == 0)
			r = round_of(&t, file, &first, round > 0, &out, &n, &p);
		if (r == 0 && n > 0) {
			sb_buf_add_u8(&out, '\0');
			r = sb_buf_error(&out);
		}
		free(t.line);
		if (r == 0 && n > 0) {
			free(now);
			now = (char *)out.data;
			now_len = out.len - 1;
			changes += n;
		} else {
			sb_buf_done(&out);
		}
		if (round == 0)
			first = p;
		else
			problems_done(&p);
	}
	problems_done(&first);
	if (r == 0) { /* what is left is the file's own */
		struct cfg_source s = { CFG_PROJECT, file, now, now_len };
		struct cfg *c = NULL;

		r = cfg_compile(&s, 1, &c, problems);
		(void)cfg_free(c);
	}
	if (r < 0)
		return r == -EFBIG ? -ENOMEM : r;
	*ret = sb_take(&now);
	*ret_len = now_len;
	*ret_changes = changes;
	return 0;
}
