#ifndef DOC_CHECK_H
#define DOC_CHECK_H
/* What holds for every document. */
#include <errno.h>
#include <string.h>

#include "config/doc.h"

static inline void doc_check_node(const struct doc_node *n, unsigned int depth, size_t *total)
{
	sb_assert(depth <= DOC_MAX_DEPTH && ++*total <= DOC_MAX_NODES);
	sb_assert(n->line > 0 && n->col > 0 && strcmp(n->file, "f") == 0);
	if (n->kind == DOC_SEQ || n->kind == DOC_MAP) {
		sb_assert((n->n == 0) == (n->items == NULL));
		for (size_t i = 0; i < n->n; i++)
			doc_check_node(&n->items[i], depth + 1, total);
		for (size_t i = 0; n->kind == DOC_MAP && i < n->n; i++) {
			sb_assert(n->keys[i].kind == DOC_STR && ++*total <= DOC_MAX_NODES);
			sb_assert(doc_get(n, n->keys[i].text) == &n->items[i]); /* no duplicates */
		}
		return;
	}
	sb_assert(n->text && strlen(n->text) == n->len && n->len <= DOC_MAX_SCALAR && n->n == 0);
}

static inline void doc_check_problems(const struct problems *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct problem *v = &p->v[i];

		sb_assert(v->line > 0 && v->col > 0 && v->code[0] && v->message[0]);
		for (const char *c = v->message; *c; c++)
			sb_assert((unsigned char)*c >= 0x20 && *c != 0x7f);
		for (const char *c = v->excerpt; *c; c++)
			sb_assert((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
}

/* libfyaml 0.7.12 loses a buffer of a text that ends in an error; bounded, and not ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml";
}

/* Return: whether it was accepted. */
static inline bool doc_check(const uint8_t *data, size_t len, enum doc_format f)
{
	struct problems p = { 0 };
	struct doc *d = NULL;
	size_t total = 0;
	int r = doc_load((const char *)data, len, f, "f", &d, &p);

	sb_assert(r == 0 || r == -EBADMSG || r == -ENOMEM);
	sb_assert((r == 0) == (d != NULL) && (r != -EBADMSG || p.n > 0) && (r != 0 || p.n == 0));
	doc_check_problems(&p);
	if (d && doc_root(d))
		doc_check_node(doc_root(d), 0, &total);
	(void)doc_free(d);
	problems_done(&p);
	return r == 0;
}

#endif
