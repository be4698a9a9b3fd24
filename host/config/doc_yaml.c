/*
 * Theory of operation. A YAML file comes from whoever wrote the project, and libfyaml is a large
 * parser that has crashed on a few bytes. So it runs in a child that can do nothing but write to one
 * pipe (doc_yaml_jail.c), turns the bytes into events there (doc_yaml_fy.c), and what this process
 * sees are records of fixed form, of which it makes the tree, with every limit and every meaning of
 * a word decided here. A child that is taken over can make any tree; so could its file.
 */
#include <errno.h>
#include <string.h>

#include "doc_yaml.h"

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

/* ---- the tree ---- */

static int put(struct doc_build *b, const struct yaml_event *e)
{
	struct doc_node n = { .kind = DOC_STR, .line = e->line, .col = e->col,
			      .file = b->d->file, .text = "" };
	const char *text = e->text;
	size_t len = e->len;

	if (memchr(text, '\0', len)) {
		problems_add(b->p, &n, "", "syntax", "a text may not hold the character NUL");
		len = 0;
	}
	n.text = arena_text(&b->d->arena, text, len);
	n.len = len;
	if (!n.text)
		return -ENOMEM;
	if (e->what == YAML_PLAIN)
		doc_resolve_plain(&n);
	return doc_build_put(b, &n);
}

int yaml_build(void *arg, const struct yaml_event *e)
{
	struct doc_build *b = arg;
	struct doc_node n = { .kind = DOC_NULL, .line = e->line, .col = e->col,
			      .file = b->d->file, .text = "" };

	switch (e->what) {
	case YAML_PLAIN:
	case YAML_QUOTED:
		return put(b, e);
	case YAML_NOTHING:
		if (doc_build_in_key(b))
			n.kind = DOC_STR;
		return doc_build_put(b, &n);
	case YAML_SEQ:
		return doc_build_open(b, DOC_SEQ, e->line, e->col);
	case YAML_MAP:
		return doc_build_open(b, DOC_MAP, e->line, e->col);
	case YAML_CLOSE:
		return b->depth > 0 ? doc_build_close(b) : -EBADMSG;
	case YAML_PROBLEM:
		problems_add(b->p, &n, "", "syntax", "%.*s", (int)SB_MIN(e->len, (size_t)500), e->text);
		return 0;
	case YAML_NONE:
	default:
		return -EBADMSG;
	}
}

bool doc_yaml_inside;

int doc_read_yaml(struct doc_build *b, const char *bytes, size_t len)
{
	int r;

	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
		bytes += 3;
		len -= 3;
	}
	r = doc_yaml_inside ? yaml_parse(bytes, len, yaml_build, b) : yaml_jailed(b, bytes, len);
	/* one whole document, or none: nothing that was taken over in the child decides on more */
	if (r == 0 && (b->depth > 0 || b->n > 1))
		return -EBADMSG;
	return r;
}
