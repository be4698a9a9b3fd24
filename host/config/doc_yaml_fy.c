/*
 * YAML by libfyaml's events. The library resolves nothing here: anchors, aliases and tags are
 * refused where they stand, so there is nothing that could grow. Places are counted by us from the
 * byte offset, the same way for every problem. Runs in a jail: see doc_yaml.c.
 */
#include <errno.h>
#include <libfyaml.h>
#include <stdio.h>
#include <string.h>

#include "doc_yaml.h"

struct reader {
	yaml_sink *sink;
	void *arg;
	struct text_place at;
	bool started;   /* a document was begun */
};

/* @sign: the library's mark stands behind it, people look at the sign itself; 0 = none */
static void place(struct reader *r, const struct fy_mark *m, char sign, struct yaml_event *e)
{
	if (m) {
		size_t pos = SB_MIN(m->input_pos, r->at.len);

		pos -= sign && pos > 0 && r->at.bytes[pos - 1] == sign;
		text_place_to(&r->at, pos);
	}
	e->line = r->at.line;
	e->col = r->at.col;
}

static int tell(struct reader *r, struct yaml_event *e, const char *what)
{
	e->what = YAML_PROBLEM;
	e->text = what;
	e->len = strlen(what);
	return r->sink(r->arg, e);
}

static int refuse(struct reader *r, struct fy_token *t, char sign, const char *what)
{
	struct yaml_event e = { .text = "" };

	place(r, fy_token_start_mark(t), sign, &e);
	return tell(r, &e, what);
}

static int no_properties(struct reader *r, struct fy_token *anchor, struct fy_token *tag)
{
	int k = 0;

	if (anchor)
		k = refuse(r, anchor, '&',
			   "anchors (&name) are not supported; write the value out");
	if (k == 0 && tag)
		k = refuse(r, tag, '!', "tags (!name) are not supported; write the plain value");
	return k;
}

static int on_scalar(struct reader *r, struct fy_event *v)
{
	enum fy_scalar_style style = v->scalar.value ? fy_token_scalar_style(v->scalar.value)
						     : FYSS_PLAIN;
	struct yaml_event e = { .what = style == FYSS_PLAIN ? YAML_PLAIN : YAML_QUOTED };
	int k = no_properties(r, v->scalar.anchor, v->scalar.tag);

	if (k < 0)
		return k;
	place(r, v->scalar.value ? fy_token_start_mark(v->scalar.value) : NULL,
	      style == FYSS_SINGLE_QUOTED   ? '\''
	      : style == FYSS_DOUBLE_QUOTED ? '"'
					    : 0,
	      &e);
	e.text = v->scalar.value ? fy_token_get_text(v->scalar.value, &e.len) : "";
	return e.text ? r->sink(r->arg, &e) : -ENOMEM;
}

static int on_open(struct reader *r, struct fy_event *v, enum yaml_what what)
{
	struct yaml_event e = { .text = "" };
	int k = what == YAML_SEQ
			? no_properties(r, v->sequence_start.anchor, v->sequence_start.tag)
			: no_properties(r, v->mapping_start.anchor, v->mapping_start.tag);

	if (k < 0)
		return k;
	place(r, fy_event_start_mark(v), 0, &e);
	e.what = what;
	return r->sink(r->arg, &e);
}

static int on_document(struct reader *r, struct fy_event *d)
{
	struct fy_document_state *s = d->document_start.document_state;
	struct yaml_event e = { .text = "" };
	const struct fy_version *v;
	char text[96];
	int k = 0;

	place(r, fy_event_start_mark(d), 0, &e);
	if (r->started) {
		k = tell(r, &e, "a second document begins here; one file holds one");
		return k < 0 ? k : -EBADMSG;
	}
	r->started = true;
	v = s && fy_document_state_version_explicit(s) ? fy_document_state_version(s) : NULL;
	if (v && (v->major != 1 || v->minor != 2)) {
		(void)snprintf(text, sizeof(text), "%%YAML %d.%d is not supported; leave the line out",
			       v->major, v->minor);
		k = tell(r, &e, text);
	}
	if (k == 0 && s && fy_document_state_tags_explicit(s))
		k = tell(r, &e, "%TAG is not supported; leave the line out");
	return k;
}

static int on_event(struct reader *r, struct fy_event *v)
{
	struct yaml_event e = { .text = "" };
	int k;

	switch (v->type) {
	case FYET_DOCUMENT_START:
		return on_document(r, v);
	case FYET_SCALAR:
		return on_scalar(r, v);
	case FYET_SEQUENCE_START:
		return on_open(r, v, YAML_SEQ);
	case FYET_MAPPING_START:
		return on_open(r, v, YAML_MAP);
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		e.what = YAML_CLOSE;
		return r->sink(r->arg, &e);
	case FYET_ALIAS:
		k = refuse(r, v->alias.anchor, '*',
			   "aliases (*name) are not supported; a text that begins with * needs quotes: "
			   "\"*.example.com\"");
		place(r, NULL, 0, &e);
		e.what = YAML_NOTHING;
		return k < 0 ? k : r->sink(r->arg, &e);
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

static int tell_syntax(struct reader *r, struct fy_diag *diag)
{
	struct yaml_event at = { .line = r->at.line, .col = r->at.col };
	const struct fy_diag_error *e;
	char text[500];
	uint32_t tab;
	void *it = NULL;

	e = fy_diag_errors_iterate(diag, &it);
	if (e && e->line > 0) {
		at.line = (uint32_t)e->line;
		at.col = e->column > 0 ? (uint32_t)e->column : 1;
	}
	tab = tab_near(r, at.line);
	if (tab > 0)
		(void)snprintf(text, sizeof(text), "%.400s; line %u is indented with a tab: use blanks",
			       e && e->msg ? e->msg : "cannot be read as YAML", tab);
	else
		(void)snprintf(text, sizeof(text), "%.400s",
			       e && e->msg ? e->msg : "cannot be read as YAML");
	return tell(r, &at, text);
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
		k = tell_syntax(r, diag);
		return k < 0 ? k : -EBADMSG;
	}
	return 0;
}

int yaml_parse(const char *bytes, size_t len, yaml_sink *sink, void *arg)
{
	struct reader r = { .sink = sink, .arg = arg };
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
					     FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE };
	struct fy_parser *parser = NULL;
	int k = -ENOMEM;

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
