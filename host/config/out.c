/* Configuration and problems as JSON, problems for people. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cfg_i.h"

#define OUT_MAX (64U << 20)

static void add_string(struct sb_buf *b, const char *s)
{
	sb_buf_add_u8(b, '"');
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '"' || ch == '\\')
			sb_buf_add_u8(b, '\\');
		if (ch == '\n')
			sb_buf_add_str(b, "\\n");
		else if (ch == '\t')
			sb_buf_add_str(b, "\\t");
		else if (ch < 0x20 || ch == 0x7f)
			sb_buf_addf(b, "\\u%04x", ch);
		else
			sb_buf_add_u8(b, ch);
	}
	sb_buf_add_u8(b, '"');
}

/* As a file would say it: MiB and seconds where they are whole. */
static void add_integer(struct sb_buf *b, const struct cfg_value *v)
{
	int64_t unit = v->row && v->row->type == CFG_T_SIZE	 ? 1 << 20
		       : v->row && v->row->type == CFG_T_DURATION ? 1000
								   : 1;

	if (v->integer % unit == 0)
		sb_buf_addf(b, "%lld", (long long)(v->integer / unit));
	else
		sb_buf_addf(b, "\"%lld%s\"", (long long)v->integer, unit == 1000 ? "ms" : "b");
}

static void add_value(struct sb_buf *b, const struct cfg_value *v)
{
	switch (v->kind) {
	case DOC_BOOL:
		sb_buf_add_str(b, v->boolean ? "true" : "false");
		break;
	case DOC_INT:
		add_integer(b, v);
		break;
	case DOC_STR:
		add_string(b, v->text);
		break;
	case DOC_SEQ:
		sb_buf_add_u8(b, '[');
		for (size_t i = 0; i < v->n; i++) {
			if (i > 0)
				sb_buf_add_u8(b, ',');
			add_value(b, &v->items[i]);
		}
		sb_buf_add_u8(b, ']');
		break;
	case DOC_MAP:
		sb_buf_add_u8(b, '{');
		for (size_t i = 0; i < v->n; i++) {
			if (i > 0)
				sb_buf_add_u8(b, ',');
			add_string(b, v->keys[i]);
			sb_buf_add_u8(b, ':');
			add_value(b, &v->items[i]);
		}
		sb_buf_add_u8(b, '}');
		break;
	case DOC_NULL:
	case DOC_FLOAT:
	default:
		sb_buf_add_str(b, "null");
		break;
	}
}

static int finish(struct sb_buf *b, char **ret, size_t *ret_len)
{
	int r;

	sb_buf_add_u8(b, '\0');
	r = sb_buf_error(b);
	if (r < 0) {
		sb_buf_done(b);
		return r;
	}
	*ret = (char *)b->data;
	if (ret_len)
		*ret_len = b->len - 1;
	return 0;
}

int cfg_json(const struct cfg *c, char **ret, size_t *ret_len)
{
	struct sb_buf b;

	sb_buf_init(&b, OUT_MAX);
	add_value(&b, &c->root);
	return finish(&b, ret, ret_len);
}

int cfg_value_json(const struct cfg_value *v, char **ret)
{
	struct sb_buf b;

	sb_buf_init(&b, OUT_MAX);
	add_value(&b, v);
	return finish(&b, ret, NULL);
}

void problems_print(const struct problems *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct problem *v = &p->v[i];

		if (v->line > 0)
			(void)fprintf(stderr, "%s:%u:%u: ", v->file, v->line, v->col);
		else if (v->file[0])
			(void)fprintf(stderr, "%s: ", v->file);
		(void)fprintf(stderr, "error[%s]%s%s: %s", v->code, v->key[0] ? " " : "", v->key,
			      v->message);
		if (v->near[0])
			(void)fprintf(stderr, "; did you mean \"%s\"?", v->near);
		(void)fputc('\n', stderr);
		if (v->excerpt[0])
			(void)fprintf(stderr, "  %4u | %s\n", v->line, v->excerpt);
	}
	if (p->dropped > 0)
		(void)fprintf(stderr, "and %zu more\n", p->dropped);
}

int problems_json(const struct problems *p, int exit_code, char **ret)
{
	struct sb_buf b;

	sb_buf_init(&b, OUT_MAX);
	sb_buf_addf(&b, "{\"schema_version\":1,\"ok\":false,\"exit_code\":%d,\"diagnostics\":[",
		    exit_code);
	for (size_t i = 0; i < p->n; i++) {
		const struct problem *v = &p->v[i];
		const struct {
			const char *key;
			const char *text;
			bool always;
		} texts[] = { { "code", v->code, true },      { "path", v->key, true },
			      { "message", v->message, true }, { "file", v->file, false },
			      { "near", v->near, false },	{ "excerpt", v->excerpt, false } };

		sb_buf_add_u8(&b, i > 0 ? ',' : '{');
		if (i > 0)
			sb_buf_add_u8(&b, '{');
		for (size_t k = 0; k < SB_ARRAY_LEN(texts); k++) {
			if (!texts[k].always && !texts[k].text[0])
				continue;
			sb_buf_addf(&b, "%s\"%s\":", k > 0 ? "," : "", texts[k].key);
			add_string(&b, texts[k].text);
		}
		if (v->line > 0)
			sb_buf_addf(&b, ",\"line\":%u,\"column\":%u", v->line, v->col);
		sb_buf_add_u8(&b, '}');
	}
	sb_buf_addf(&b, "],\"more\":%zu}", p->dropped);
	return finish(&b, ret, NULL);
}
