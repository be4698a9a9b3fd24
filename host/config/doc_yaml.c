/*
 * YAML by libfyaml's events. The library resolves nothing here: anchors, aliases and tags are
 * refused where they stand, so there is nothing that could grow. Places are counted by us from the
 * byte offset, the same way for every problem.
 */
#include <errno.h>
#include <libfyaml.h>
#include <stdio.h>
#include <string.h>

#include "doc_i.h"

/* ---- plain scalars ---- */

static bool is_one_of(const char *s, const char *const *v)
{
	for (; *v; v++)
		if (strcmp(s, *v) == 0)
			return true;
	return false;
}

static size_t digits(const char *s, const char *set)
{
	return strspn(s, set);
}

/* Leading zeros mean octal to some readers and nothing to others: such a word stays a string. */
static bool resolve_int(struct doc_node *n)
{
	const char *s = n->text;
	bool minus = *s == '-';
	unsigned int base = 10;
	const char *set = "0123456789";
	uint64_t v = 0;

	s += *s == '-' || *s == '+';
	if (s == n->text && s[0] == '0' && (s[1] == 'x' || s[1] == 'o')) {
		base = s[1] == 'x' ? 16 : 8;
		set = s[1] == 'x' ? "0123456789abcdefABCDEF" : "01234567";
		s += 2;
	} else if (s[0] == '0' && s[1] != '\0') {
		return false;
	}
	if (*s == '\0' || s[digits(s, set)] != '\0')
		return false;
	for (; *s; s++) {
		unsigned int d = *s <= '9' ? (unsigned int)(*s - '0')
					   : (unsigned int)((*s | 0x20) - 'a') + 10;

		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v) ||
		    v > (uint64_t)INT64_MAX + (minus ? 1 : 0)) {
			n->kind = DOC_FLOAT; /* a number, too large for any key */
			n->number = strtod(n->text, NULL);
			return true;
		}
	}
	n->kind = DOC_INT;
	n->integer = minus ? (int64_t)(0 - v) : (int64_t)v;
	n->number = (double)n->integer;
	return true;
}

static bool resolve_float(struct doc_node *n)
{
	static const char *const inf[] = { ".inf", ".Inf", ".INF", NULL };
	static const char *const nan[] = { ".nan", ".NaN", ".NAN", NULL };
	const char *s = n->text;
	size_t whole;
	size_t frac = 0;

	if (is_one_of(s, nan)) {
		n->kind = DOC_FLOAT;
		n->number = __builtin_nan("");
		return true;
	}
	s += *s == '-' || *s == '+';
	if (is_one_of(s, inf)) {
		n->kind = DOC_FLOAT;
		n->number = *n->text == '-' ? -__builtin_inf() : __builtin_inf();
		return true;
	}
	whole = digits(s, "0123456789");
	if (whole > 1 && *s == '0')
		return false;
	s += whole;
	if (*s == '.') {
		frac = digits(++s, "0123456789");
		s += frac;
	}
	if (whole + frac == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		if (digits(s, "0123456789") == 0)
			return false;
		s += digits(s, "0123456789");
	}
	if (*s != '\0')
		return false;
	n->kind = DOC_FLOAT;
	n->number = strtod(n->text, NULL);
	return true;
}

void doc_resolve_plain(struct doc_node *n)
{
	static const char *const none[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const yes[] = { "true", "True", "TRUE", NULL };
	static const char *const no[] = { "false", "False", "FALSE", NULL };

	n->kind = DOC_STR;
	if (is_one_of(n->text, none)) {
		n->kind = DOC_NULL;
	} else if (is_one_of(n->text, yes) || is_one_of(n->text, no)) {
		n->kind = DOC_BOOL;
		n->boolean = (n->text[0] | 0x20) == 't';
	} else if (!resolve_int(n)) {
		(void)resolve_float(n);
	}
}

/* ---- events ---- */

struct reader {
	struct doc_build *b;
	struct text_place at;
	bool started;   /* a document was begun */
};

/* @sign: the library's mark stands behind it, people look at the sign itself; 0 = none */
static void place(struct reader *r, const struct fy_mark *m, char sign, struct doc_node *n)
{
	if (m) {
		size_t pos = SB_MIN(m->input_pos, r->at.len);

		pos -= sign && pos > 0 && r->at.bytes[pos - 1] == sign;
		text_place_to(&r->at, pos);
	}
	n->line = r->at.line;
	n->col = r->at.col;
	n->file = r->b->d->file;
}

static void refuse(struct reader *r, struct fy_token *t, char sign, const char *what)
{
	struct doc_node n = { .kind = DOC_NULL };

	place(r, fy_token_start_mark(t), sign, &n);
	problems_add(r->b->p, &n, "", "syntax", "%s", what);
}

static void no_properties(struct reader *r, struct fy_token *anchor, struct fy_token *tag)
{
	if (anchor)
		refuse(r, anchor, '&', "anchors (&name) are not supported; write the value out");
	if (tag)
		refuse(r, tag, '!', "tags (!name) are not supported; write the plain value");
}

static int on_scalar(struct reader *r, struct fy_event *e)
{
	enum fy_scalar_style style = e->scalar.value ? fy_token_scalar_style(e->scalar.value)
						     : FYSS_PLAIN;
	struct doc_node n = { .kind = DOC_STR };
	const char *text;
	size_t len = 0;

	no_properties(r, e->scalar.anchor, e->scalar.tag);
	place(r, e->scalar.value ? fy_token_start_mark(e->scalar.value) : NULL,
	      style == FYSS_SINGLE_QUOTED   ? '\''
	      : style == FYSS_DOUBLE_QUOTED ? '"'
					    : 0,
	      &n);
	text = e->scalar.value ? fy_token_get_text(e->scalar.value, &len) : "";
	if (!text)
		return -ENOMEM;
	if (memchr(text, '\0', len)) {
		problems_add(r->b->p, &n, "", "syntax", "a text may not hold the character NUL");
		text = "";
		len = 0;
	}
	n.text = arena_text(&r->b->d->arena, text, len);
	n.len = len;
	if (!n.text)
		return -ENOMEM;
	if (style == FYSS_PLAIN)
		doc_resolve_plain(&n);
	return doc_build_put(r->b, &n);
}

static int on_open(struct reader *r, struct fy_event *e, enum doc_kind kind)
{
	struct doc_node n = { .kind = kind };

	if (kind == DOC_SEQ)
		no_properties(r, e->sequence_start.anchor, e->sequence_start.tag);
	else
		no_properties(r, e->mapping_start.anchor, e->mapping_start.tag);
	place(r, fy_event_start_mark(e), 0, &n);
	return doc_build_open(r->b, kind, n.line, n.col);
}

static int on_document(struct reader *r, struct fy_event *e)
{
	struct fy_document_state *s = e->document_start.document_state;
	struct doc_node n = { .kind = DOC_NULL };
	const struct fy_version *v;

	place(r, fy_event_start_mark(e), 0, &n);
	if (r->started) {
		problems_add(r->b->p, &n, "", "syntax",
			     "a second document begins here; one file holds one");
		return -EBADMSG;
	}
	r->started = true;
	v = s && fy_document_state_version_explicit(s) ? fy_document_state_version(s) : NULL;
	if (v && (v->major != 1 || v->minor != 2))
		problems_add(r->b->p, &n, "", "syntax", "%%YAML %d.%d is not supported; leave the line "
			     "out", v->major, v->minor);
	if (s && fy_document_state_tags_explicit(s))
		problems_add(r->b->p, &n, "", "syntax", "%%TAG is not supported; leave the line out");
	return 0;
}

static int on_event(struct reader *r, struct fy_event *e)
{
	struct doc_node n = { .kind = DOC_NULL, .text = "" };

	switch (e->type) {
	case FYET_DOCUMENT_START:
		return on_document(r, e);
	case FYET_SCALAR:
		return on_scalar(r, e);
	case FYET_SEQUENCE_START:
		return on_open(r, e, DOC_SEQ);
	case FYET_MAPPING_START:
		return on_open(r, e, DOC_MAP);
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		return doc_build_close(r->b);
	case FYET_ALIAS:
		refuse(r, e->alias.anchor, '*',
		       "aliases (*name) are not supported; a text that begins with * needs quotes: "
		       "\"*.example.com\"");
		place(r, NULL, 0, &n);
		if (doc_build_in_key(r->b))
			n.kind = DOC_STR;
		return doc_build_put(r->b, &n);
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
	default:
		return 0;
	}
}

/* The line, this one or the next, that is indented with a tab; 0 = none. */
static uint32_t tab_near(const struct reader *r, uint32_t line)
{
	const char *p = r->at.bytes;
	const char *end = p + r->at.len;

	for (uint32_t i = 1; p && p < end && i <= line + 1; i++) {
		const char *in = p;

		while (in < end && *in == ' ')
			in++;
		if (i >= line && in < end && *in == '\t')
			return i;
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	return 0;
}

static void tell_syntax(struct reader *r, struct fy_diag *diag)
{
	struct doc_node n = { .line = r->at.line, .col = r->at.col, .file = r->b->d->file };
	const struct fy_diag_error *e;
	uint32_t tab;
	void *at = NULL;

	e = fy_diag_errors_iterate(diag, &at);
	if (e && e->line > 0) {
		n.line = (uint32_t)e->line;
		n.col = e->column > 0 ? (uint32_t)e->column : 1;
	}
	tab = tab_near(r, n.line);
	if (tab > 0)
		problems_add(r->b->p, &n, "", "syntax", "%s; line %u is indented with a tab: use blanks",
			     e && e->msg ? e->msg : "cannot be read as YAML", tab);
	else
		problems_add(r->b->p, &n, "", "syntax", "%s",
			     e && e->msg ? e->msg : "cannot be read as YAML");
}

static int run(struct reader *r, struct fy_parser *parser, struct fy_diag *diag)
{
	bool ended = false;
	int k = 0;

	while (k == 0 && !ended) {
		struct fy_event *e = fy_parser_parse(parser);

		if (!e)
			break;
		ended = e->type == FYET_STREAM_END;
		k = on_event(r, e);
		fy_parser_event_free(parser, e);
	}
	if (k < 0)
		return k;
	if (!ended || fy_parser_get_stream_error(parser) || fy_diag_got_error(diag)) {
		tell_syntax(r, diag);
		return -EBADMSG;
	}
	return 0;
}

int doc_read_yaml(struct doc_build *b, const char *bytes, size_t len)
{
	struct reader r = { .b = b };
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
					     FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE };
	struct fy_parser *parser = NULL;
	int k = -ENOMEM;

	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
		bytes += 3;
		len -= 3;
	}
	text_place_init(&r.at, bytes, len);
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.level = FYET_ERROR;
	cfg.diag = fy_diag_create(&diag_cfg);
	if (!cfg.diag)
		return -ENOMEM;
	fy_diag_set_collect_errors(cfg.diag, true);
	parser = fy_parser_create(&cfg);
	if (parser && fy_parser_set_string(parser, bytes, len) == 0)
		k = run(&r, parser, cfg.diag);
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(cfg.diag);
	return k;
}
