#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doc_i.h"
#include "text.h"

void problems_done(struct problems *p)
{
	free(p->v);
	*p = (struct problems){ 0 };
}

static struct problem *next(struct problems *p)
{
	struct problem *v;

	if (p->n == PROBLEMS_MAX || p->dropped > 0)
		goto drop;
	if ((p->n & (p->n - 1)) == 0) { /* 0, 1, 2, 4, 8, ... are full */
		v = realloc(p->v, SB_MAX(p->n * 2, (size_t)1) * sizeof(*p->v));
		if (!v)
			goto drop;
		p->v = v;
	}
	v = &p->v[p->n++];
	memset(v, 0, sizeof(*v));
	return v;
drop:
	p->dropped++;
	return NULL;
}

static void show(const char *in, char *out, size_t cap)
{
	text_show(in, strlen(in), out, cap);
}

void problems_addv(struct problems *p, const struct problem_at *at, const char *key,
		   const char *code, const char *fmt, va_list ap)
{
	struct problem *v = next(p);
	char text[sizeof(v->message)];

	if (!v)
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	show(text, v->message, sizeof(v->message));
	show(key ? key : "", v->key, sizeof(v->key));
	show(at->file ? at->file : "", v->file, sizeof(v->file));
	(void)snprintf(v->code, sizeof(v->code), "%s", code);
	v->line = at->line;
	v->col = at->col;
}

void problems_add(struct problems *p, const struct doc_node *at, const char *key, const char *code,
		  const char *fmt, ...)
{
	struct problem_at where = { 0 };
	va_list ap;

	if (at)
		where = (struct problem_at){ at->file, at->line, at->col };
	va_start(ap, fmt);
	problems_addv(p, &where, key, code, fmt, ap);
	va_end(ap);
}

void problems_near(struct problems *p, size_t before, const char *near)
{
	if (p->n > before && near)
		show(near, p->v[p->n - 1].near, sizeof(p->v[0].near));
}

void problems_excerpts(struct problems *p, size_t from, const char *file, const char *bytes,
		       size_t len)
{
	char shown[sizeof(p->v[0].file)];

	show(file, shown, sizeof(shown));
	for (size_t i = from; i < p->n; i++) {
		struct problem *v = &p->v[i];
		size_t at = 0;
		size_t end;

		if (v->line == 0 || v->excerpt[0] || strcmp(v->file, shown) != 0)
			continue;
		for (uint32_t line = 1; line < v->line && at < len; line++) {
			while (at < len && bytes[at] != '\n' && bytes[at] != '\r')
				at++;
			at += at + 1 < len && bytes[at] == '\r' && bytes[at + 1] == '\n';
			at += at < len;
		}
		for (end = at; end < len && bytes[end] != '\n' && bytes[end] != '\r'; end++)
			;
		text_show(bytes + at, end - at, v->excerpt, sizeof(v->excerpt));
	}
}
