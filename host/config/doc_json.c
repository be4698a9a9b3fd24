/* JSON as RFC 8259 has it, and nothing else: no comments, no trailing commas, no lone surrogates. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doc_i.h"

struct reader {
	struct doc_build *b;
	const char *p; /* what is left */
	const char *end;
	const char *bytes;
	struct text_place at;
};

static void place(struct reader *r, const char *where, struct doc_node *n)
{
	text_place_to(&r->at, (size_t)(where - r->bytes));
	n->line = r->at.line;
	n->col = r->at.col;
	n->file = r->b->d->file;
}

static int bad(struct reader *r, const char *where, const char *what)
{
	struct doc_node n = { .kind = DOC_NULL };

	place(r, where, &n);
	problems_add(r->b->p, &n, "", "syntax", "%s", what);
	return -EBADMSG;
}

static void blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

static int hex4(const char *s, uint32_t *ret)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];
		uint32_t d;

		if (c >= '0' && c <= '9')
			d = (uint32_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			d = (uint32_t)((c | 0x20) - 'a') + 10;
		else
			return -EINVAL;
		v = v << 4 | d;
	}
	*ret = v;
	return 0;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* After "\u". */
static int unicode(struct reader *r, char *out, size_t *n)
{
	const char *from = r->p - 2;
	uint32_t c = 0;
	uint32_t low = 0;

	if (r->end - r->p < 4 || hex4(r->p, &c) < 0)
		return bad(r, from, "\\u needs four hexadecimal digits");
	r->p += 4;
	if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u' &&
	    hex4(r->p + 2, &low) == 0 && low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		r->p += 6;
	}
	if (c >= 0xd800 && c < 0xe000)
		return bad(r, from, "half of a surrogate pair is no character");
	if (c == 0)
		return bad(r, from, "a text may not hold the character NUL");
	*n += put_utf8(out + *n, c);
	return 0;
}

static int escape(struct reader *r, char *out, size_t *n)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *hit;

	if (r->p == r->end)
		return bad(r, r->p, "the text has no closing quote");
	if (*r->p == 'u') {
		r->p++;
		return unicode(r, out, n);
	}
	hit = *r->p ? strchr(from, *r->p) : NULL;
	if (!hit)
		return bad(r, r->p - 1, "unknown escape; there are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
	out[(*n)++] = to[hit - from];
	r->p++;
	return 0;
}

/* A string never gets longer by unescaping. */
static int string(struct reader *r, struct doc_node *ret)
{
	const char *from = r->p++;
	const char *close = r->p;
	size_t n = 0;
	char *out;

	while (close < r->end && *close != '"')
		close += *close == '\\' ? 2 : 1;
	if (close >= r->end)
		return bad(r, from, "the text has no closing quote");
	place(r, from, ret);
	out = arena_alloc(&r->b->d->arena, (size_t)(close - from) + 1);
	if (!out)
		return -ENOMEM;
	while (r->p < close) {
		unsigned char c = (unsigned char)*r->p++;
		int k = 0;

		if (c < 0x20)
			return bad(r, r->p - 1, "a line break, tab or control character in a text must "
				   "be written with a backslash, as \\n or \\t");
		if (c == '\\')
			k = escape(r, out, &n);
		else
			out[n++] = (char)c;
		if (k < 0)
			return k;
	}
	r->p = close + 1;
	ret->kind = DOC_STR;
	ret->text = out;
	ret->len = n;
	return 0;
}

/* [-] (0 | [1-9][0-9]*) [. [0-9]+] [eE [+-] [0-9]+] */
static bool is_number(const char *s, size_t len)
{
	const char *e = s + len;
	const char *from;

	s += s < e && *s == '-';
	from = s;
	if (s < e && *s == '0')
		s++;
	else
		for (; s < e && *s >= '0' && *s <= '9'; s++)
			;
	if (s == from)
		return false;
	if (s < e && *s == '.') {
		for (from = ++s; s < e && *s >= '0' && *s <= '9'; s++)
			;
		if (s == from)
			return false;
	}
	if (s < e && (*s == 'e' || *s == 'E')) {
		s++;
		s += s < e && (*s == '+' || *s == '-');
		for (from = s; s < e && *s >= '0' && *s <= '9'; s++)
			;
		if (s == from)
			return false;
	}
	return s == e;
}

static int word(struct reader *r, struct doc_node *ret)
{
	const char *from = r->p;
	size_t len;

	while (r->p < r->end && ((*r->p >= '0' && *r->p <= '9') || (*r->p >= 'a' && *r->p <= 'z') ||
				 (*r->p >= 'A' && *r->p <= 'Z') || *r->p == '+' || *r->p == '-' ||
				 *r->p == '.'))
		r->p++;
	len = (size_t)(r->p - from);
	if (len == 0)
		return bad(r, from, r->p == r->end ? "the document ends too early"
						   : "a value is expected here");
	if (!(len == 4 && memcmp(from, "true", 4) == 0) && !(len == 4 && memcmp(from, "null", 4) == 0) &&
	    !(len == 5 && memcmp(from, "false", 5) == 0) && !is_number(from, len))
		return bad(r, from, "neither a number, true, false nor null; a text needs double quotes");
	place(r, from, ret);
	ret->text = arena_text(&r->b->d->arena, from, len);
	if (!ret->text)
		return -ENOMEM;
	ret->len = len;
	doc_resolve_plain(ret); /* what JSON calls a number is the same in YAML */
	return 0;
}

/* A key with its colon. */
static int key(struct reader *r)
{
	struct doc_node n = { .kind = DOC_STR };
	int k;

	if (r->p == r->end || *r->p != '"')
		return bad(r, r->p, "a key in double quotes is expected here");
	k = string(r, &n);
	if (k == 0)
		k = doc_build_put(r->b, &n);
	if (k < 0)
		return k;
	blanks(r);
	if (r->p == r->end || *r->p != ':')
		return bad(r, r->p, "a colon is expected after the key");
	r->p++;
	blanks(r);
	return 0;
}

/* After a value: commas and closing brackets up to the next value. Sets @done at the end. */
static int after(struct reader *r, bool *done)
{
	for (;;) {
		const struct doc_frame *f;
		int k;

		blanks(r);
		if (r->b->depth == 0) {
			*done = true;
			return r->p == r->end ? 0 : bad(r, r->p, "something follows after the document");
		}
		f = &r->b->frames[r->b->depth - 1];
		if (r->p == r->end)
			return bad(r, r->p, "the document ends inside a list or map");
		if (*r->p == ',') {
			r->p++;
			blanks(r);
			return f->node.kind == DOC_MAP ? key(r) : 0;
		}
		if (*r->p != (f->node.kind == DOC_MAP ? '}' : ']'))
			return bad(r, r->p, f->node.kind == DOC_MAP ? "a comma or } is expected here"
								    : "a comma or ] is expected here");
		r->p++;
		k = doc_build_close(r->b);
		if (k < 0)
			return k;
	}
}

/* A value, or the opening of one; @opened: the container is not empty, its first value follows. */
static int value(struct reader *r, bool *opened)
{
	struct doc_node n = { .kind = DOC_NULL };
	bool map;
	int k;

	*opened = false;
	if (r->p < r->end && *r->p != '{' && *r->p != '[') {
		k = *r->p == '"' ? string(r, &n) : word(r, &n);
		return k < 0 ? k : doc_build_put(r->b, &n);
	}
	if (r->p == r->end)
		return bad(r, r->p, "the document ends too early");
	map = *r->p == '{';
	place(r, r->p, &n);
	k = doc_build_open(r->b, map ? DOC_MAP : DOC_SEQ, n.line, n.col);
	if (k < 0)
		return k;
	r->p++;
	blanks(r);
	if (r->p < r->end && *r->p == (map ? '}' : ']')) {
		r->p++;
		return doc_build_close(r->b);
	}
	*opened = true;
	return map ? key(r) : 0;
}

int doc_read_json(struct doc_build *b, const char *bytes, size_t len)
{
	struct reader r = { .b = b, .p = bytes, .end = bytes + len, .bytes = bytes };
	bool done = false;

	text_place_init(&r.at, bytes, len);
	blanks(&r);
	while (!done) {
		bool opened;
		int k = value(&r, &opened);

		if (k == 0 && !opened)
			k = after(&r, &done);
		if (k < 0)
			return k;
	}
	return 0;
}
